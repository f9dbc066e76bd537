"""What a diagnosis holds, and what it tells a reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

CONFUSED: Final = 0.2
"""Two regimes are too close if at least this share of the rows of one is assigned to the other."""

FOUND: Final = 0.5
"""An edge is shown by data of this size if more than this share of the refits has it."""

_MOST_NAMED = 8
_SPURIOUS = 0.5


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What a fit of this size can be expected to get right; ``print`` it.

    Parameters
    ----------
    n_rows, n_fitted_rows : int
        Rows of every simulated table, and of the fitted one.
    labelled : bool
        Whether the fit, and so every refit, was given regimes of rows.
    repeats : DataFrame
        One row a refit: ``missing``, ``extra`` and ``reversed`` edges, their ``hamming`` distance, the number of
        ``regimes`` found, the adjusted Rand index of the Bayes-optimal assignment (``ceiling``) and of the refit's
        (``reached``), both from values alone.
    edges : DataFrame
        One row an edge of the fitted graph, the least often found first: the shares of refits that ``found`` it, have
        it ``reversed`` or ``missing``, and whether its direction is ``open`` because equivalent graphs disagree on it.
    extra_edges : DataFrame
        Edges of refits between variables that the fitted graph does not connect, with the share that ``found`` them.
    regimes : DataFrame
        One row per regime with rows: ``weight``, the share of its rows that the Bayes-optimal assignment
        ``recognised``, and the mean Jaccard overlap with the matched regime of the refits (``refound``).
    pairs : DataFrame
        One row a pair of regimes, the closest first: the larger share of the rows of one that the Bayes-optimal
        assignment gives to the other (``confused``), and the share of refits that put most rows of both into one
        regime (``merged``).
    failures : tuple of str
        Why refits were impossible; they are left out.
    """

    n_rows: int
    n_fitted_rows: int
    labelled: bool
    repeats: pd.DataFrame
    edges: pd.DataFrame
    extra_edges: pd.DataFrame
    regimes: pd.DataFrame
    pairs: pd.DataFrame
    failures: tuple[str, ...] = ()

    @property
    def expected_error(self) -> dict[str, float]:
        """Mean number of edges that a refit gets wrong, by kind; ``hamming`` counts a reversal twice."""
        names = ("missing", "extra", "reversed", "hamming")
        return {name: float(self.repeats[name].mean()) for name in names}

    @property
    def ceiling(self) -> float:
        """Adjusted Rand index of the Bayes-optimal assignment: what no method can beat by more than luck."""
        return float(self.repeats["ceiling"].mean())

    @property
    def reached(self) -> float:
        """Adjusted Rand index that the refits reached."""
        return float(self.repeats["reached"].mean())

    @property
    def close_regimes(self) -> pd.DataFrame:
        """Pairs of regimes too close to separate: their rows are confused, or most refits merge them."""
        return self.pairs[(self.pairs["confused"] >= CONFUSED) | (self.pairs["merged"] > 0.5)]

    @property
    def lost_edges(self) -> pd.DataFrame:
        """Edges of the fitted graph that data of this size cannot show: at most half of the refits have them."""
        return self.edges[self.edges["found"] <= FOUND]

    def sentences(self) -> dict[str, list[str]]:
        """What to tell a reader, by subject."""
        return {
            "Expected edge error": self._about_edges(),
            "Assignment ceiling": self._about_rows(),
            "Regimes too close to separate": self._about_regimes(),
            "Edges that data of this size cannot show": self._about_lost_edges(),
            "How this was found": self._about_method(),
        }

    def summary(self) -> str:
        """The sentences as text, one subject a line."""
        return "\n".join(f"{heading}: {' '.join(said)}" for heading, said in self.sentences().items())

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "n_rows": self.n_rows,
            "n_fitted_rows": self.n_fitted_rows,
            "n_repeats": len(self.repeats),
            "labelled": self.labelled,
            "expected_error": self.expected_error,
            "ceiling": self.ceiling,
            "reached": self.reached,
            "repeats": _records(self.repeats),
            "edges": _records(self.edges),
            "lost_edges": [list(pair) for pair in _pairs(self.lost_edges, "cause", "effect")],
            "extra_edges": _records(self.extra_edges),
            "regimes": _records(self.regimes.reset_index()),
            "pairs": _records(self.pairs),
            "close_regimes": [list(pair) for pair in _pairs(self.close_regimes, "first", "second")],
            "failures": list(self.failures),
            "sentences": self.sentences(),
        }

    def _about_edges(self) -> list[str]:
        error = self.expected_error
        wrong = error["missing"] + error["extra"] + error["reversed"]
        kinds = ", ".join(f"{error[name]:.1f} {name}" for name in ("missing", "extra", "reversed"))
        size = f"{len(self.edges)} edge{'' if len(self.edges) == 1 else 's'}"
        said = [f"A refit gets {wrong:.1f} wrong on average ({kinds}); the fitted graph has {size}."]
        often = self.extra_edges[self.extra_edges["found"] > _SPURIOUS]
        if len(often):
            said.append(f"Extra in most refits: {_arrows(often)}.")
        return said

    def _about_rows(self) -> list[str]:
        if len(self.regimes) < 2:
            return ["There is only one regime, so there is nothing to assign."]
        subject = "rows without a label" if self.labelled else "rows"
        best = f"The best possible assignment of {subject} has an adjusted Rand index of {self.ceiling:.2f}"
        said = [f"{best}; the refits reached {self.reached:.2f}."]
        weak = self.regimes[self.regimes["refound"] <= 0.5]
        if len(weak) and not self.labelled:
            said.append(f"Regimes that most refits did not find again: {_listed(map(str, weak.index))}.")
        return said

    def _about_regimes(self) -> list[str]:
        close = self.close_regimes
        if close.empty:
            return ["None."]
        return [
            f"{first} and {second} ({_percent(confused)} of the rows of one look like the other; merged in "
            f"{_percent(merged)} of the refits)."
            for first, second, confused, merged in close.head(_MOST_NAMED).itertuples(index=False, name=None)
        ] + ([f"And {len(close) - _MOST_NAMED} more pairs."] if len(close) > _MOST_NAMED else [])

    def _about_lost_edges(self) -> list[str]:
        lost = self.lost_edges
        said = []
        gone = lost[lost["missing"] >= lost["reversed"]]
        turned = lost[lost["missing"] < lost["reversed"]]
        if len(gone):
            said.append(f"Lost in most refits: {_arrows(gone)}.")
        if len(turned):
            said.append(f"Connected, but reversed: {_arrows(turned)}.")
        left_open = self.edges[self.edges["open"]]
        if len(left_open):
            said.append(f"Direction open, however many rows there are: {_arrows(left_open)}.")
        return said or ["None of the fitted graph."]

    def _about_method(self) -> list[str]:
        size = f"{self.n_rows} rows"
        if self.n_rows < self.n_fitted_rows:
            size += f" (of {self.n_fitted_rows}, so the errors are somewhat too large)"
        count = f"{len(self.repeats)} table{'' if len(self.repeats) == 1 else 's'} of {size}"
        said = [
            f"{count} drawn from the fitted model, each fitted again with the same settings.",
            "This is a best case: it takes the fitted model to be true.",
            "It says nothing about edges that are too weak to be in the model.",
        ]
        if self.failures:
            said.append(
                f"{len(self.failures)} more could not be fitted; the last reason: {self.failures[-1]}"
            )
        return said


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


def _pairs(table: pd.DataFrame, first: str, second: str) -> list[tuple[Any, Any]]:
    return list(zip(table[first], table[second], strict=True))


def _arrows(table: pd.DataFrame) -> str:
    return _listed(f"{cause} -> {effect}" for cause, effect in _pairs(table, "cause", "effect"))


def _listed(names: Any) -> str:
    names = list(names)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _percent(share: float) -> str:
    return f"{round(100 * share)} %"
