"""What bars show of two variables of which one is not continuous: the effect by the cause, regime by regime."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentdo.data.quantities import Quantity, quantities
from latentdo.result import FitResult

Array = NDArray[np.float64]

MOST_GROUPS: Final = 4
"""Ranges into which values of a cause without levels are cut."""

FEWEST_ROWS: Final = 5
"""Rows from which on a bar is drawn: fewer say nothing."""


class Bars(NamedTuple):
    """Heights ``[n_groups, n_regimes]`` of bars, NaN where there are too few rows; and what they are of."""

    groups: tuple[str, ...]
    heights: Array
    words: str


def is_leveled(result: FitResult, *variables: int) -> bool:
    """Whether a drawing of these variables needs bars instead of dots."""
    return any(result.kinds[j].is_discrete for j in variables)


def bars(result: FitResult, x: Array, cause: int, effect: int) -> Bars:
    """Mean of the effect, or share of one of its levels, by levels or ranges of the cause.

    Of a categorical effect, that level is shown whose share differs most between groups.

    Parameters
    ----------
    result : FitResult
        What was found.
    x : ndarray [n, d]
        The fitted rows in the user's units, levels as their codes; those that lack one of the two are left out.
    cause, effect : int
        Two variables.
    """
    seen = np.isfinite(x[:, [cause, effect]]).all(axis=1)
    x, best = x[seen], result.regimes[seen]
    labels, member = _groups(result, x[:, cause], cause)
    found = [
        (one, _heights(one, x, member, best, (len(labels), result.n_regimes)))
        for one in quantities(result.columns, result.kinds, [effect])
    ]
    one, heights = max(found, key=lambda pair: _spread(pair[1]))
    kind = result.kinds[effect]
    name = result.columns[effect]
    words = f"{one.words} of {name}"
    if one.level is not None:
        words = f"share of {name} = {kind.levels[one.level]}"
    return Bars(labels, heights, words)


def _groups(result: FitResult, values: Array, cause: int) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Names of the groups, and that of every row."""
    levels = result.kinds[cause].levels
    if levels:
        return levels, values.astype(np.int64)
    cuts = np.unique(np.quantile(values, np.linspace(0.0, 1.0, MOST_GROUPS + 1)[1:-1]))
    member = np.searchsorted(cuts, values, side="right")
    present = np.unique(member)
    ends = [(values[member == place].min(), values[member == place].max()) for place in present]
    labels = tuple(f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}" for low, high in ends)
    return labels, np.searchsorted(present, member)


def _heights(
    one: Quantity, x: Array, member: NDArray[np.int64], best: NDArray[np.int64], size: tuple[int, int]
) -> Array:
    heights = np.full(size, np.nan)
    for group, k in np.ndindex(size):
        rows = (member == group) & (best == k)
        if rows.sum() >= FEWEST_ROWS:
            heights[group, k] = one.of(x[rows])
    return heights


def _spread(heights: Array) -> float:
    seen = heights[np.isfinite(heights)]
    return float(np.ptp(seen)) if seen.size else 0.0
