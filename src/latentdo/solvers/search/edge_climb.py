"""Uphill edge by edge: a graph that no single edge makes better, where scores are too dear to fill tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from latentdo.graphs import is_dag
from latentdo.graphs.constraints import Constraints

Parents = NDArray[np.int64]


class Scored(Protocol):
    """Scores of the parent sets of one variable, ascending; they should remember what they were asked before."""

    def fit(self, parents: Parents) -> float:
        """The score."""
        ...

    def rough(self, parents: Parents) -> float:
        """About the score, in a fraction of the time."""
        ...

    def slack(self, parents: Parents) -> float:
        """How much more a fit may find than is said without."""
        ...


class _Change(NamedTuple):
    """An edge that comes or goes, or is turned: its ends, what it gains by rough scores, and by how much these err."""

    i: int
    j: int
    turned: bool
    gain: float
    slack: float


def climb_edges(
    start: NDArray[np.int8], constraints: Constraints, scores: Sequence[Scored], worthwhile: float
) -> NDArray[np.int8]:
    """Add, drop and turn single edges while that raises the score by enough, the best change first.

    Parameters
    ----------
    start : ndarray [d, d] of int8
        A DAG that keeps the constraints.
    constraints
        What is known of the graph.
    scores : sequence of Scored
        Of every variable. Only changes that may pay are fitted.
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
    """Too few rows for these parents: anything that has a score is better, and finite, like sums of two gains."""
    return max(score, np.finfo(np.float64).min / 4.0)
