"""Exact search: the best-scoring DAG by dynamic programming over subsets (Silander and Myllymaki, 2006)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit
from latentdo.solvers.search.orders import best_within


@njit
def _best_sinks(best):  # type: ignore[no-untyped-def]
    """For every subset the score of its best DAG, and that DAG's last variable."""
    n_variables, n_sets = best.shape
    value = np.full(n_sets, -np.inf)
    value[0] = 0.0
    sink = np.full(n_sets, -1, dtype=np.int64)
    for mask in range(1, n_sets):
        for j in range(n_variables):
            if mask >> j & 1:
                rest = mask & ~(1 << j)
                total = value[rest] + best[j, rest]
                if total > value[mask]:
                    value[mask] = total
                    sink[mask] = j
    return value, sink


def best_dag(table: NDArray[np.float64]) -> tuple[NDArray[np.int8], float]:
    """DAG with the highest sum of parent-set scores.

    Parameters
    ----------
    table
        ``[d, 2^d]``: the score of every variable with every parent set, written as a bit mask over all variables.

    Returns
    -------
    adjacency, score
        The best DAG and its score; the score is minus infinity when the constraints admit no DAG.
    """
    n_variables = table.shape[0]
    best, choice = best_within(table)
    value, sink = _best_sinks(best)
    adjacency = np.zeros((n_variables, n_variables), dtype=np.int8)
    mask = (1 << n_variables) - 1
    score = float(value[mask])
    while mask and np.isfinite(score):
        j = int(sink[mask])
        mask &= ~(1 << j)
        parents = int(choice[j, mask])
        for i in range(n_variables):
            adjacency[i, j] = parents >> i & 1
    return adjacency, score
