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

from latentdo.data.kinds import Kind
from latentdo.data.refusals import ColumnError
from latentdo.data.remarks import DataWarning
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
        raise ColumnError(
            f"Columns without a single value: {listed(empty)}. Nothing can be learnt about what was never measured; "
            "drop these columns.",
            empty,
        )


def dependences(
    missing: NDArray[np.bool_], values: Array, blocks: NDArray[np.int64] | None
) -> list[Dependence]:
    """On which ``values [n, m]`` it depends whether cells of columns are ``missing [n, d]``, the clearest first.

    Every pair of a column with missing cells and one of values is tested for correlation; p-values are those of Holm.
    Rows of a block (a group, a stretch of time) are not independent, so that a block counts as one, by its mean. A
    column is not tested against itself: where ``values`` are the table, its cell is missing then, too.
    """
    found = []
    columns = np.flatnonzero(missing.any(axis=0))
    for on in range(values.shape[1]):
        seen = np.flatnonzero(~np.isnan(values[:, on]))
        level, share = values[seen, on], missing[np.ix_(seen, columns)].astype(np.float64)
        if blocks is not None and seen.size:
            level, share = _means(level[:, None], blocks[seen])[:, 0], _means(share, blocks[seen])
        tested = np.minimum((share > 0.0).sum(axis=0), (share < 1.0).sum(axis=0)) >= FEWEST
        if not tested.any() or not np.ptp(level):
            continue
        level, share = level - level.mean(), (share - share.mean(axis=0))[:, tested]
        correlation = level @ share / np.sqrt((level @ level) * (share**2).sum(axis=0))
        freedom = len(level) - 2
        statistic = np.abs(correlation) * np.sqrt(
            freedom / np.maximum(1.0 - correlation**2, np.finfo(float).tiny)
        )
        chances = 2.0 * t.sf(statistic, freedom)
        found += [
            Dependence(int(column), on, float(size), float(chance))
            for column, size, chance in zip(columns[tested], correlation, chances, strict=True)
        ]
    found.sort(key=lambda one: one.p_value)
    least, adjusted = 0.0, []
    for place, one in enumerate(found):
        least = max(least, min((len(found) - place) * one.p_value, 1.0))
        adjusted.append(one._replace(p_value=least))
    return adjusted


def _means(values: Array, blocks: NDArray[np.int64]) -> Array:
    """Means of the rows of every block, ``[n, m]`` to ``[n_blocks, m]``."""
    order = np.argsort(blocks, kind="stable")
    _, first, sizes = np.unique(blocks[order], return_index=True, return_counts=True)
    return np.asarray(np.add.reduceat(values[order], first, axis=0) / sizes[:, None])


def warn_about_rows_left_out(count: int, n: int, stacklevel: int = 2) -> None:
    """Say how many of ``n`` rows were left out because they lack cells."""
    if count:
        message = (
            f"Rows left out because cells are missing or infinite: {count} of {n}. To keep rows that only lack cells, "
            'pass missing="model".'
        )
        warn(message, DataWarning, stacklevel=stacklevel + 1)


def warn_about_missing(
    x: Array,
    names: Sequence[str],
    blocks: NDArray[np.int64] | None,
    kinds: Sequence[Kind] = (),
    stacklevel: int = 2,
) -> None:
    """Say how many cells are missing, what a fit makes of them, and what it depends on whether they are."""
    missing = np.isnan(x)
    if not missing.any():
        return
    counts = missing.sum(axis=0)
    worst = [f"{names[j]!r} {counts[j]}" for j in np.argsort(-counts, kind="stable") if counts[j]]
    more = f", ... ({len(worst)} columns)" if len(worst) > _SHOWN else ""
    rows, empty = int(missing.any(axis=1).sum()), int(missing.all(axis=1).sum())
    nothing = f" Rows without any value ({empty}) carry no information." if empty else ""
    warn(
        f"{int(counts.sum())} cells in {rows} of {len(x)} rows are missing ({', '.join(worst[:_SHOWN])}{more}) and are "
        f"summed out.{nothing} This assumes that they are missing at random: given what was measured in a row, "
        "whether a cell is missing does not depend on its value.",
        DataWarning,
        stacklevel=stacklevel + 1,
    )
    values, words = _ranks_and_levels(x, names, kinds)
    clear = [one for one in dependences(missing, values, blocks) if one.p_value < LEVEL]
    if clear:
        pairs = [
            f"{names[one.column]!r} more often where {words[one.on][one.correlation > 0.0]} ({_chance(one.p_value)})"
            for one in _clearest(clear)
        ]
        warn(
            f"Which cells are missing depends on other columns: {_shortened(pairs)}. The fit allows for this, but ask "
            "why they are missing: if it depends on their own values, as where an instrument fails beyond its range, "
            "results are biased, by an amount that these rows cannot show.",
            DataWarning,
            stacklevel=stacklevel + 1,
        )


def _ranks_and_levels(
    x: Array, names: Sequence[str], kinds: Sequence[Kind]
) -> tuple[Array, list[tuple[str, str]]]:
    """What a missing cell may depend on, ``[n, m]``, and what is said of low and of high values of it.

    Ranks, whatever the shape of columns; of those with levels, whether a row has one of them.
    """
    columns, words = [], []
    for j, name in enumerate(names):
        levels = kinds[j].levels if kinds else ()
        for code, level in enumerate(levels):
            columns.append(np.where(np.isnan(x[:, j]), np.nan, x[:, j] == code))
            words.append((f"{name!r} is not {level!r}", f"{name!r} is {level!r}"))
        if not levels:
            columns.append(rankdata(x[:, j], nan_policy="omit"))
            words.append((f"{name!r} is low", f"{name!r} is high"))
    return np.column_stack(columns), words


def missing_by_regime(
    x: Array,
    names: Sequence[str],
    responsibilities: Array,
    regime_names: Sequence[object],
    blocks: NDArray[np.int64] | None,
) -> str:
    """What to say of columns whose cells are missing more often in some regimes than in others; empty if none are."""
    missing = np.isnan(x)
    if not missing.any() or responsibilities.shape[1] == 1:
        return ""
    # Not by ranks: a row that lacks cells is assigned less surely, and only the mean of its probabilities stays.
    clear = [one for one in dependences(missing, responsibilities, blocks) if one.p_value < LEVEL]
    if not clear:
        return ""
    shares = []
    for one in _clearest(clear):
        member = responsibilities[:, one.on]
        inside, outside = (
            float(weights @ missing[:, one.column] / max(weights.sum(), 1.0))
            for weights in (member, 1.0 - member)
        )
        shares.append(
            f"{names[one.column]!r} in {inside:.0%} of the rows of regime {regime_names[one.on]!r} and in "
            f"{outside:.0%} of the others ({_chance(one.p_value)})"
        )
    return (
        f"Cells are missing more often in some regimes than in others: {_shortened(shares)}. If an intervention "
        "caused this, its effect on these columns was not observed: do not rely on the estimate of that effect."
    )


def _clearest(found: list[Dependence]) -> list[Dependence]:
    """What every column depends on most clearly."""
    return list({one.column: one for one in reversed(found)}.values())[::-1]


def _shortened(words: Sequence[str]) -> str:
    more = f"; and {len(words) - _SHOWN} more columns" if len(words) > _SHOWN else ""
    return "; ".join(words[:_SHOWN]) + more


def _chance(p_value: float) -> str:
    return f"p = {p_value:.1g} after correction" if p_value >= 1e-12 else "p < 1e-12 after correction"
