"""One graph from many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def consensus_dag(support: Array, threshold: float = 0.5) -> NDArray[np.int64]:
    """A DAG of well supported edges, ``[d, d]``: best first, leaving out what would close a cycle.

    A majority of acyclic graphs may prefer a cycle (each of its edges is in most of them, all never); its least
    supported edge is then left out.

    Examples
    --------
    >>> import numpy as np
    >>> consensus_dag(np.array([[0.0, 0.9, 0.0], [0.1, 0.0, 0.6], [0.55, 0.0, 0.0]]))
    array([[0, 1, 0],
           [0, 0, 1],
           [0, 0, 0]])
    """
    d = len(support)
    chosen = np.zeros((d, d), dtype=np.int64)
    reach = np.eye(d, dtype=bool)
    order = np.argsort(-support, axis=None, kind="stable")
    for i, j in zip(*np.unravel_index(order, support.shape), strict=True):
        if support[i, j] <= threshold or i == j:
            continue
        if not reach[j, i]:
            chosen[i, j] = 1
            reach |= np.outer(reach[:, i], reach[j])
    return chosen
