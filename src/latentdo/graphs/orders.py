"""Cycles, causal orders and who is upstream of whom."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latentdo.graphs.matrix import Adjacency, GraphLike, as_adjacency


def _peel(matrix: Adjacency) -> tuple[list[int], NDArray[np.bool_]]:
    """Remove sources until none is left: their order, and a mask of the variables on or below a cycle."""
    incoming = matrix.sum(axis=0)
    remaining = np.ones(len(matrix), dtype=bool)
    order: list[int] = []
    while True:
        sources = np.flatnonzero(remaining & (incoming == 0))
        if not len(sources):
            return order, remaining
        order.extend(sources.tolist())
        remaining[sources] = False
        incoming -= matrix[sources].sum(axis=0)


def is_dag(adjacency: GraphLike) -> bool:
    """Whether the graph has no directed cycle (a loop ``i -> i`` is one, and so is ``i -> j -> i``).

    Examples
    --------
    >>> is_dag([[0, 1], [0, 0]]), is_dag([[0, 1], [1, 0]])
    (True, False)
    """
    return not _peel(as_adjacency(adjacency))[1].any()


def find_cycle(adjacency: GraphLike) -> list[int] | None:
    """Find one directed cycle.

    Returns
    -------
    list of int or None
        Variables ``[a, b, ..., c]`` with ``a -> b -> ... -> c -> a``, the smallest first; None for a DAG.

    Examples
    --------
    >>> find_cycle([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    [0, 1, 2]
    >>> find_cycle([[0, 1], [0, 0]]) is None
    True
    """
    matrix = as_adjacency(adjacency)
    remaining = _peel(matrix)[1]
    if not remaining.any():
        return None
    # Every variable left has a cause that is left, so walking upwards must come back to where it was.
    walk = [int(np.flatnonzero(remaining)[0])]
    while True:
        cause = int(np.flatnonzero(matrix[:, walk[-1]] & remaining)[0])
        if cause in walk:
            cycle = walk[walk.index(cause) :][::-1]
            start = cycle.index(min(cycle))
            return cycle[start:] + cycle[:start]
        walk.append(cause)


def topological_order(adjacency: GraphLike) -> list[int]:
    """Order the variables so that every cause comes before its effects.

    The order is deterministic: layer by layer, by index within a layer.

    Raises
    ------
    ValueError
        If the graph is cyclic; the message names one cycle.

    Examples
    --------
    >>> topological_order([[0, 0, 0], [1, 0, 0], [1, 1, 0]])
    [2, 1, 0]
    """
    order, remaining = _peel(as_adjacency(adjacency))
    if remaining.any():
        names = list(adjacency.columns) if isinstance(adjacency, pd.DataFrame) else None
        cycle = find_cycle(adjacency) or []
        shown = [str(names[index] if names else index) for index in [*cycle, *cycle[:1]]]
        raise ValueError(f"the graph is not acyclic: it has the cycle {' -> '.join(shown)}")
    return order


def reachability(adjacency: GraphLike) -> Adjacency:
    """Matrix of directed paths: ``[i, j] == 1`` if there is a path of at least one edge from i to j.

    In a DAG, row i marks the descendants of i and column j the ancestors of j.

    Examples
    --------
    >>> reachability([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    array([[0, 1, 1],
           [0, 0, 1],
           [0, 0, 0]])
    """
    reach = as_adjacency(adjacency).astype(bool)
    for middle in range(len(reach)):  # Warshall's closure
        reach |= np.outer(reach[:, middle], reach[middle])
    return reach.astype(np.int64)


def ancestors(adjacency: GraphLike, variable: int) -> frozenset[int]:
    """Variables with a directed path of at least one edge into `variable`.

    Examples
    --------
    >>> sorted(ancestors([[0, 1, 0], [0, 0, 1], [0, 0, 0]], 2))
    [0, 1]
    """
    matrix = as_adjacency(adjacency)
    found: set[int] = set()
    todo = [variable]
    while todo:
        causes = set(np.flatnonzero(matrix[:, todo.pop()]).tolist()) - found
        found |= causes
        todo.extend(causes)
    return frozenset(found)
