"""Progress of a fit: a live panel on a terminal, plain lines elsewhere, nothing where a machine listens."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from rich.console import Group
from rich.live import Live
from rich.panel import Panel
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from latentdo.cli.console import console
from latentdo.names import visible

Step = Callable[[Mapping[str, Any]], None]

SECONDS_BETWEEN_LINES: Final = 5.0
_LAST_STAGE: Final = "final"
"""Of a search; half-samples and checks follow, and how long they take depends on what was found."""
_STAGES: Final = {
    "one regime": "one regime for all rows",
    "labels": "regimes as labelled",
    "from one regime": "looking for regimes",
    "from lines": "looking for regimes, from what lines found",
    "again": "looking for regimes once more",
    "graph": "choosing the graph",
    "graph again": "choosing the graph once more",
    "all rows": "assigning all rows",
    _LAST_STAGE: "settling, then probabilities and checks",
}
"""What searches call their stages, for people."""
_OF = re.compile(r"(\d+) of (\d+)")


@dataclass
class Course:
    """Where a fit stands, from the entries that solvers send.

    Parameters
    ----------
    n_stages : int, optional
        How many entries there will be at most, where a solver sends one per stage.
    """

    n_stages: int | None = None
    began: float = field(default_factory=time.perf_counter)
    clock: Callable[[], float] = time.perf_counter
    entries: int = 0
    restart: int = 1
    last: Mapping[str, Any] = field(default_factory=dict)
    at: float = 0.0
    """When the last entry came, in seconds since the start."""
    counting: tuple[str, float, int] | None = None
    """What is being counted, since when, and what was done by then."""

    def add(self, entry: Mapping[str, Any]) -> None:
        """Take note of one entry."""
        step, before = entry.get("step"), self.last.get("step")
        if isinstance(step, int) and isinstance(before, int) and step < before:
            self.restart += 1  # gradient solvers count steps anew in every restart
        counted = _OF.search(str(step))
        if counted:
            what = _OF.sub(counted[2], str(step))
            if self.counting is None or self.counting[0] != what:  # what came before took its own time
                self.counting = (what, self.at, int(counted[1]) - 1)
        self.entries += 1
        self.last, self.at = entry, self.seconds

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return self.clock() - self.began

    def stage(self) -> str:
        """What is being done."""
        step = self.last.get("step", "starting")
        if not isinstance(step, int):
            return visible(_STAGES.get(step, step))
        return visible(f"restart {self.restart}, {self.last.get('phase', 'training')}, step {step}")

    def left(self) -> tuple[str, float] | None:
        """How much longer it takes: "about" or "at most", and seconds; None where nobody can tell.

        The clock runs on between two entries, so what was left at the last one shrinks.
        """
        step, since = str(self.last.get("step", "")), self.seconds - self.at
        told = self.last.get("left")
        if isinstance(told, int | float):
            return "about", max(float(told) - since, 0.0)
        counted = _OF.search(step)
        if counted and self.counting is not None:
            done, total = int(counted[1]), int(counted[2])
            _, began, before = self.counting
            rate = (self.at - began) / max(done - before, 1)
            return "about", max(rate * (total - done) - since, 0.0)
        if self.n_stages is None or not 0 < self.entries < self.n_stages or step == _LAST_STAGE:
            return None
        return "at most", max(self.at / self.entries * (self.n_stages - self.entries) - since, 0.0)

    def facts(self) -> list[tuple[str, str]]:
        """Names and values to show; what a solver does not report is left out."""
        shown = [("stage", self.stage())]
        evidence = self.last.get("evidence")
        if isinstance(evidence, int | float):  # of all rows, or (gradient solvers, held-out rows) a row
            shown.append(("evidence", f"{evidence:,.1f}" if abs(evidence) >= 100 else f"{evidence:.3f}"))
        for name, key, form in (
            ("distance from acyclic (h)", "violation", ".1e"),
            ("regimes", "regimes", ",.0f"),
            ("edges", "edges", ",.0f"),
        ):
            value = self.last.get(key)
            if isinstance(value, int | float):
                shown.append((name, format(value, form)))
        left = self.left()
        shown.append(("time", duration(self.seconds)))
        if self.last:
            words = "unknown" if left is None else f"{left[0]} {duration(left[1])}"
            if left is not None and left[0] == "at most":
                words += " of search, then checks"  # which nobody has timed yet
            shown.append(("time left", words))
        return shown


def duration(seconds: float) -> str:
    """Seconds as people say them.

    Examples
    --------
    >>> duration(4.2), duration(75), duration(7300)
    ('4 s', '1 min 15 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class _View:
    """The panel, drawn again by rich several times a second so that the clock runs between two entries."""

    def __init__(self, title: str, course: Course) -> None:
        self._course = course
        self._spinner = Spinner("dots", Text(visible(title)))

    def __rich__(self) -> Panel:
        grid = Table.grid(padding=(0, 2))
        for name, value in self._course.facts():
            grid.add_row(Text(name, style="dim"), Text(value))
        return Panel(Group(self._spinner, grid), subtitle="Ctrl-C stops", expand=False)


@contextmanager
def progress(text: str, *, n_stages: int | None = None, silent: bool = False) -> Iterator[Step | None]:
    """Show how a fit goes.

    Parameters
    ----------
    text : str
        What is being done.
    n_stages : int, optional
        See :class:`Course`.
    silent : bool
        Say nothing: a program reads along.

    Yields
    ------
    callable or None
        What the estimator calls after every step.
    """
    if silent:
        yield None
        return
    screen, course = console(stderr=True), Course(n_stages)
    if screen.is_terminal:
        with Live(_View(text, course), console=screen, transient=True, refresh_per_second=8):
            yield course.add
    else:
        yield _lines(text, course)
    screen.print(f"{text}: {duration(course.seconds)}", soft_wrap=True)


def _lines(text: str, course: Course) -> Step:
    """One line now and then, for logs."""
    shown = -SECONDS_BETWEEN_LINES

    def step(entry: Mapping[str, Any]) -> None:
        nonlocal shown
        course.add(entry)
        if course.seconds - shown >= SECONDS_BETWEEN_LINES:
            shown = course.seconds
            (_, stage), *facts = course.facts()
            told = "  ".join(f"{name} {value}" for name, value in facts if value != "unknown")
            console(stderr=True).print(f"{text}: {stage}  {told}", soft_wrap=True)

    return step
