"""A progress line in the terminal: evidence, violation and time left."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


class TerminalProgress:
    """Shows the entries of a fit's history as they come; use it as a context.

    Examples
    --------
    >>> with TerminalProgress(disable=True) as show:
    ...     show({"step": 10, "evidence": -1.5, "violation": 0.1, "left": 12.0, "phase": "relaxed"})
    """

    def __init__(self, *, disable: bool = False) -> None:
        text = "{task.description} evidence {task.fields[evidence]:.3f}  h {task.fields[violation]:.1e}"
        self._progress = Progress(
            TextColumn(text),
            BarColumn(),
            TextColumn("{task.fields[left]:.0f} s left"),
            TimeElapsedColumn(),
            console=Console(),  # of its own: on a shared one only the first of several displays would be shown
            disable=disable,
            transient=True,
        )
        self._task = self._progress.add_task(
            "start", total=None, evidence=float("nan"), violation=1.0, left=0.0
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def __call__(self, entry: dict[str, Any]) -> None:
        """Show one entry."""
        elapsed = float(entry.get("seconds", 0.0))
        self._progress.update(
            self._task,
            description=f"{entry['phase']} step {entry['step']}",
            completed=elapsed,
            total=elapsed + entry["left"],
            evidence=entry["evidence"],
            violation=entry["violation"],
            left=entry["left"],
            refresh=True,  # a quick fit may end before the display renews itself
        )
