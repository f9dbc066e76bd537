"""Which regime of one fit is which of another."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from latentdo.result import FitResult

Array = NDArray[np.float64]

_TARGET_WEIGHT: Final = 0.1  # targets only decide between regimes whose rows overlap about equally


def match_regimes(
    reference: FitResult, other: FitResult, responsibilities: Array, *, labelled: bool = False
) -> tuple[NDArray[np.int64], Array]:
    """Which regime of another fit is which of the reference.

    Parameters
    ----------
    reference : FitResult
        Gives the regimes, and the responsibilities ``[n, n_regimes]`` of the rows.
    other : FitResult
        A fit to other rows.
    responsibilities : ndarray [n, n_other]
        Its responsibilities for the rows of ``reference``.
    labelled : bool
        Regimes with the same name are the same because the user named them.

    Returns
    -------
    match : ndarray [n_regimes] of int64
        Regime of ``other``, -1 where nothing overlaps. The two reference regimes always match.
    overlap : ndarray [n_regimes]
        Jaccard coefficient of the soft sets of rows; 1 for two regimes without rows.
    """
    own = reference.responsibilities
    sums = own.sum(axis=0)[:, None] + responsibilities.sum(axis=0)[None]
    # min(a, b) = (a + b - |a - b|) / 2, a regime at a time to keep memory in n
    difference = np.stack([np.abs(own[:, [k]] - responsibilities).sum(axis=0) for k in range(own.shape[1])])
    shared = 0.5 * (sums - difference)
    union = np.maximum(sums - shared, 1e-12)
    jaccard = np.where(sums > 1e-9, shared / union, 1.0)
    targets, others = (r.model.topology.targets.astype(np.float64) for r in (reference, other))
    common = targets @ others.T
    size = np.maximum(targets.sum(axis=1)[:, None] + others.sum(axis=1)[None] - common, 1.0)
    score = jaccard + _TARGET_WEIGHT * common / size
    match = np.full(len(targets), -1, dtype=np.int64)
    match[0] = 0
    taken = {0}
    if labelled:
        place = {name: k for k, name in enumerate(other.regime_names)}
        for k, name in enumerate(reference.regime_names[1:], start=1):
            if name in place and place[name] not in taken:
                match[k] = place[name]
                taken.add(place[name])
    rows = np.flatnonzero(match < 0)
    columns = np.array([k for k in range(len(others)) if k not in taken], dtype=np.int64)
    for a, b in zip(*linear_sum_assignment(-score[np.ix_(rows, columns)]), strict=True):
        if shared[rows[a], columns[b]] > 1e-6:
            match[rows[a]] = columns[b]
    overlap = np.where(match >= 0, jaccard[np.arange(len(match)), match], 0.0)
    return match, overlap
