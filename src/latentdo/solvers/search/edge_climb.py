"""Uphill edge by edge: a graph that no single edge makes better, where scores are too dear to fill tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from latentdo.graphs import is_dag
from latentdo.graphs.constraints import Constraints


def climb_edges(
    start: NDArray[np.int8],
    constraints: Constraints,
    score: Callable[[int, NDArray[np.int64]], float],
    worthwhile: float,
) -> NDArray[np.int8]:
    """Add, drop and turn single edges while that raises the score by enough, the best change first.

    Parameters
    ----------
    start : ndarray [d, d] of int8
        A DAG that keeps the constraints.
    constraints
        What is known of the graph.
    score
        Of a variable given its parents, ascending; it should remember what it was asked before.
    worthwhile : float
        Smallest gain for which the graph changes.
    """
    graph, d = start.astype(np.int8), len(start)
    free = constraints.allowed & ~constraints.required
    gains = np.full((d, d), -np.inf)  # of changing whether i is a parent of j
    stale = set(range(d))
    while True:
        for j in stale:
            parents = np.flatnonzero(graph[:, j])
            # Too few rows for these parents: anything that has a score is better, and finite, like sums of two gains.
            now = max(score(j, parents), np.finfo(np.float64).min / 4.0)
            for i in np.flatnonzero(free[:, j]).tolist():
                changed = np.setxor1d(parents, [i])
                fits = changed.size <= constraints.max_parents
                gains[i, j] = score(j, changed) - now if fits else -np.inf
        pairs = np.argwhere(np.isfinite(gains)).tolist()
        changes = [(gains[i, j], i, j, False) for i, j in pairs]
        changes += [(gains[i, j] + gains[j, i], i, j, True) for i, j in pairs if graph[i, j]]
        for gain, i, j, turned in sorted(changes, reverse=True):
            if gain < worthwhile:
                return graph
            trial = graph.copy()
            trial[i, j] ^= 1
            trial[j, i] ^= turned
            if is_dag(trial):
                graph, stale = trial, {i, j} if turned else {j}
                break
        else:
            return graph
