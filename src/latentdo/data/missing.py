"""Missing cells: what is refused, what is assumed, and what speaks against it.

A fit with ``missing="model"`` sums missing cells out (:mod:`latentdo.model.incomplete`). That is right if cells are
*missing at random*: given what was measured in a row, whether a cell is missing has nothing to do with its value. No
table can show that they are. But it can show on what missing cells depend: on other columns (then leaving rows out
would distort the rest, and summing out does not), or on the regime (then an intervention may have made them so, and
what it did to their values was never seen).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, t

from latentdo.data.table import DataWarning
from latentdo.messages import listed
from latentdo.notices import warn

Array = NDArray[np.float64]

LEVEL: Final = 0.01
"""Chance of saying of any column of a table that its missing cells depend on something, if none do."""

FEWEST: Final = 10
"""Units with missing cells, and units without, from which on dependence is tested; below, means are not Gaussian."""

_SHOWN: Final = 5


class Dependence(NamedTuple):
    """Whether cells of ``column`` are missing depends on ``on``, by number; ``p_value`` allows for all tests made."""

    column: int
    on: int
    correlation: float
    p_value: float


def check_seen(values: Array, names: Sequence[str]) -> None:
    """Refuse columns of which nothing is seen, by name."""
    empty = [names[int(j)] for j in np.flatnonzero(np.isnan(values).all(axis=0))]
    if empty:
        raise ValueError(
            f"Columns without a single value: {listed(empty)}. Nothing can be said of what was never measured; drop "
            "these columns."
        )


def dependences(missing: NDArray[np.bool_], values: Array, blocks: NDArray[np.int64] | None) -> list[Dependence]:
    """On which ``values [n, m]`` it depends whether cells of columns are ``missing [n, d]``, the clearest first.

    Every pair of a column with missing cells and one of values is tested for correlation; p-values are those of Holm.
    Rows of a block (a group, a stretch of time) are not independent, so that a block counts as one, by its mean. A
    column is not tested against itself: where ``values`` are the table, its cell is missing then, too.
    """
    found = []
    for on in range(values.shape[1]):
        seen = np.flatnonzero(~np.isnan(values[:, on]))
        if not seen.size:
            continue
        unit = np.arange(seen.size) if blocks is None else np.unique(blocks[seen], return_inverse=True)[1]
        sizes = np.bincount(unit)
        level = np.bincount(unit, values[seen, on]) / sizes
        for column in np.flatnonzero(missing[seen].any(axis=0)):
            share = np.bincount(unit, missing[seen, column]) / sizes
            if min((share > 0.0).sum(), (share < 1.0).sum()) < FEWEST or not np.ptp(level):
                continue
            correlation = float(np.corrcoef(share, level)[0, 1])
            freedom = sizes.size - 2
            statistic = abs(correlation) * np.sqrt(freedom / max(1.0 - correlation**2, 1e-300))
            found.append(Dependence(int(column), on, correlation, float(2.0 * t.sf(statistic, freedom))))
    found.sort(key=lambda one: one.p_value)
    least, adjusted = 0.0, []
    for place, one in enumerate(found):
        least = max(least, min((len(found) - place) * one.p_value, 1.0))
        adjusted.append(one._replace(p_value=least))
    return adjusted


def warn_about_missing(
    x: Array, names: Sequence[str], blocks: NDArray[np.int64] | None, stacklevel: int = 2
) -> None:
    """Say how many cells are missing, what a fit makes of them, and what it depends on whether they are."""
    missing = np.isnan(x)
    if not missing.any():
        return
    counts = missing.sum(axis=0)
    worst = [f"{names[j]!r} {counts[j]}" for j in np.argsort(-counts, kind="stable") if counts[j]]
    more = f", ... ({len(worst)} columns)" if len(worst) > _SHOWN else ""
    rows, empty = int(missing.any(axis=1).sum()), int(missing.all(axis=1).sum())
    nothing = f" Rows without any value ({empty}) say nothing." if empty else ""
    warn(
        f"{int(counts.sum())} cells in {rows} of {len(x)} rows are missing ({', '.join(worst[:_SHOWN])}{more}) and are "
        f"summed out.{nothing} This assumes that they are missing at random: that their values, given what was "
        "measured in their rows, had no part in it.",
        DataWarning,
        stacklevel=stacklevel + 1,
    )
    ranks = rankdata(x, axis=0, nan_policy="omit")  # whatever the shape of columns
    clear = [one for one in dependences(missing, ranks, blocks) if one.p_value < LEVEL]
    if clear:
        pairs = [
            f"{names[one.column]!r} more often where {names[one.on]!r} is {'high' if one.correlation > 0 else 'low'} "
            f"({_chance(one.p_value)})"
            for one in {one.column: one for one in reversed(clear)}.values()
        ][::-1]
        more = f"; and {len(pairs) - _SHOWN} more columns" if len(pairs) > _SHOWN else ""
        warn(
            f"Which cells are missing depends on other columns: {'; '.join(pairs[:_SHOWN])}{more}. The fit allows for "
            "that, but ask why they are missing: if their own values decided, as where an instrument fails beyond its "
            "range, results are off, and by how much these rows cannot tell.",
            DataWarning,
            stacklevel=stacklevel + 1,
        )


def missing_by_regime(
    x: Array,
    names: Sequence[str],
    responsibilities: Array,
    regime_names: Sequence[object],
    blocks: NDArray[np.int64] | None,
) -> list[str]:
    """What to say of columns whose cells are missing more often in some regimes than in others."""
    missing = np.isnan(x)
    if not missing.any() or responsibilities.shape[1] == 1:
        return []
    said = []
    # Not by ranks: a row that lacks cells is assigned less surely, and only the mean of its probabilities stays.
    clear = [one for one in dependences(missing, responsibilities, blocks) if one.p_value < LEVEL]
    for one in {one.column: one for one in reversed(clear)}.values():
        member = responsibilities[:, one.on]
        inside, outside = (
            float(weights @ missing[:, one.column] / max(weights.sum(), 1.0))
            for weights in (member, 1.0 - member)
        )
        said.append(
            f"{names[one.column]!r} is missing in {inside:.0%} of the rows of regime {regime_names[one.on]!r} and in "
            f"{outside:.0%} of the others ({_chance(one.p_value)}): the intervention may have made it so, and what it "
            f"did to {names[one.column]!r} was then never seen. Do not take the regime's effect on it for granted."
        )
    return said[::-1]


def _chance(p_value: float) -> str:
    return f"p = {p_value:.1g} after correction" if p_value >= 1e-12 else "p < 1e-12 after correction"
