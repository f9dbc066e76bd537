"""Hill climbing over single edges, where scores are too expensive to fill tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from latentdo.graphs import is_dag
from latentdo.graphs.constraints import Constraints

Parents = NDArray[np.int64]


class Scored(Protocol):
    """Scores of the parent sets of one variable, ascending; implementations should cache them."""

    def fit(self, parents: Parents) -> float:
        """The score."""
        ...

    def rough(self, parents: Parents) -> float:
        """An approximate score, in a fraction of the time."""
        ...

    def slack(self, parents: Parents) -> float:
        """Upper bound on how much a fit may exceed the approximate score."""
        ...


class _Change(NamedTuple):
    """An edge that is added, dropped or reversed: its ends, its gain by approximate scores, and the error of these."""

    i: int
    j: int
    turned: bool
    gain: float
    slack: float


def climb_edges(
    start: NDArray[np.int8], constraints: Constraints, scores: Sequence[Scored], worthwhile: float
) -> NDArray[np.int8]:
    """Add, drop and reverse single edges while that raises the score by enough, the best change first.

    Parameters
    ----------
    start : ndarray [d, d] of int8
        A DAG that keeps the constraints.
    constraints
        What is known of the graph.
    scores : sequence of Scored
        Of every variable. Only changes that may raise the score are fitted.
    worthwhile : float
        Smallest gain for which the graph changes.
    """
    graph, d = start.astype(np.int8), len(start)
    free = constraints.allowed & ~constraints.required
    gains, slacks = np.full((d, d), -np.inf), np.zeros((d, d))  # of changing whether i is a parent of j
    stale = set(range(d))

    def gain(i: int, j: int) -> float:
        """By fits."""
        parents = np.flatnonzero(graph[:, j])
        return scores[j].fit(np.setxor1d(parents, [i])) - _finite(scores[j].fit(parents))

    while True:
        for j in stale:
            parents = np.flatnonzero(graph[:, j])
            now = _finite(scores[j].fit(parents))
            for i in np.flatnonzero(free[:, j]).tolist():
                changed = np.setxor1d(parents, [i])
                if changed.size <= constraints.max_parents:
                    gains[i, j], slacks[i, j] = scores[j].rough(changed) - now, scores[j].slack(changed)
                else:
                    gains[i, j] = -np.inf
        pairs = np.argwhere(np.isfinite(gains)).tolist()
        changes = [_Change(i, j, False, gains[i, j], slacks[i, j]) for i, j in pairs]
        changes += [
            _Change(i, j, True, gains[i, j] + gains[j, i], slacks[i, j] + slacks[j, i])
            for i, j in pairs
            if graph[i, j]
        ]
        fitted = [
            (gain(one.i, one.j) + (gain(one.j, one.i) if one.turned else 0.0), one)
            for one in changes
            if one.gain + one.slack > worthwhile
        ]
        for value, (i, j, turned, _, _) in sorted(fitted, reverse=True):
            if value < worthwhile:
                return graph
            trial = graph.copy()
            trial[i, j] ^= 1
            trial[j, i] ^= turned
            if is_dag(trial):
                graph, stale = trial, {i, j} if turned else {j}
                break
        else:
            return graph


def _finite(score: float) -> float:
    """With too few rows for these parents, any set that has a score is better, by a finite gain that can be added."""
    return max(score, np.finfo(np.float64).min / 4.0)
