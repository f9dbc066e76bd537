"""What a user should be told about a fit and its progress."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from latentdo.data import Dataset
from latentdo.data.remarks import ColumnsWarning
from latentdo.messages import listed
from latentdo.notices import collecting, is_part, warn
from latentdo.result import FitResult

STREAMED_AS_THEY_ARE = (
    "Some columns are rounded, or have values (limits, zeros) that many rows share. Streamed rows are fitted as they "
    "are, so regimes may be artefacts of such values. Compare with a fit to as many rows as fit into memory, which "
    "allows for them."
)
"""The warning about streamed rows that are not quite continuous."""


def past_is_left(dataset: Dataset) -> str:
    """What to say if rows are in order of time, but what the past explains cannot be taken away; empty otherwise."""
    named = zip(dataset.columns, dataset.kinds, strict=True)
    discrete = [name for name, kind in named if kind.is_discrete]
    if not discrete or dataset.time is None:
        return ""
    return (
        f"What the past and cycles explain is not removed, because {listed(discrete)} "
        f"{'is' if len(discrete) == 1 else 'are'} not continuous: autocorrelated noise may look like regimes. Compare "
        f"with a fit without {'it' if len(discrete) == 1 else 'them'}."
    )


def warn_of_skew(dataset: Dataset) -> None:
    """Say before a fit, which may take minutes, that a transform would make it faster and better.

    The check at the end of the fit comes back to it.
    """
    from latentdo.checks.columns import check_skew

    check = check_skew(dataset.x, dataset.columns, dataset.preprocessor)
    if check.failed and not is_part():
        warn(check.words, ColumnsWarning, stacklevel=3)  # the line that called fit


@contextmanager
def noting() -> Iterator[list[str]]:
    """Collect what is warned of, so that the result can repeat it, and warn the user all the same.

    What a check at the end of the fit comes back to is left to it.
    """
    notes: list[str] = []
    with collecting() as heard:
        yield notes
    for notice in dict.fromkeys(heard):  # every part of a stream may say the same
        if not issubclass(notice.category, ColumnsWarning):
            notes.append(notice.message)
        warn(notice.message, notice.category, stacklevel=4)  # the line that called fit


def at_the_limit(result: FitResult, max_regimes: int) -> str:
    """What to say if ``max_regimes`` may have decided the number of regimes; empty if it has not."""
    if result.n_regimes >= max_regimes > 1:
        return (
            f"All of max_regimes={max_regimes} regimes are in use: there may be more. Fit again with a larger "
            "max_regimes to see whether the number grows."
        )
    most = max((int(entry.get("regimes", 1)) for entry in result.history), default=1)
    if result.n_regimes == 1 and most >= max_regimes > 1:
        return (
            f"The search filled all of max_regimes={max_regimes} regimes and then preferred a single one, because a "
            "mixture of so few regimes does not explain the rows well. Fit again with a larger max_regimes."
        )
    return ""


def contested(result: FitResult) -> list[str]:
    """A sentence on edges of the graph that are less probable than their reverse or their absence."""
    edges = result.contested_edges()
    if edges.empty:
        return []
    shown = "; ".join(
        f"{cause} -> {effect} {forward:.0%}, reversed {backward:.0%}, absent {absent:.0%}"
        for cause, effect, forward, backward, absent in edges.head(5).itertuples(index=False, name=None)
    )
    more = f"; and {len(edges) - 5} more" if len(edges) > 5 else ""
    message = (
        "The graph shown is the single best one; averaged over all graphs, some of its edges are not the most probable "
        f"state of their pair ({shown}{more}). Read these as undecided."
    )
    return [message]


def print_step(entry: Mapping[str, Any]) -> None:
    """One line per step; the solvers' entries share "step", "evidence" and "seconds"."""
    rest = "   ".join(f"{name} {value}" for name, value in entry.items() if isinstance(value, int))
    print(
        f"[{entry.get('seconds', 0.0):7.1f} s] {entry['step']!s:<12} evidence {entry['evidence']:14.1f}   {rest}",
        flush=True,
    )
