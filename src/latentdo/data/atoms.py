"""Columns that are not quite continuous: rounded values, detection limits, saturation, zeros.

In a continuous column hardly two rows share a value. Where many do, a density could rise without bound on that value,
and a regime could be invented for no other reason. So such columns are found before the fit:

- *rounded*: nearly all values are shared by many rows. The fit sees each value spread evenly over its own rounding,
  which is half the way to the neighbouring values.
- *limits*: the distribution is cut off at its lowest or highest value, which all rows beyond it share.
- *zeros*: many rows are exactly zero, and the others are spread.

A fit fills in what limits and zeros hide (:mod:`latentdo.solvers.hidden_values`). Other values that many rows share are
left alone: an intervention may have set them. So are columns of few different values (binary, categories).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import minimum_filter1d

from latentdo.data.remarks import ColumnsWarning
from latentdo.notices import warn

Array = NDArray[np.float64]
Side = Literal[-1, 0, 1]

SHARED: Final = 10
"""Rows from which on a shared value counts: a regime needs as many. Resampled rows repeat less often."""

FEW: Final = 8
"""Columns with fewer different values are binary, categories or small counts."""

TIED: Final = 3.0
"""Rows per different value in a rounded column, at least; resampled rows have 1.6."""

SET: Final = 0.9
"""Share of the rows of a label that must be zero for zero to be what an intervention set."""

SAME: Final = 1e-9
"""Values closer than this share of a column's range are one value; decimal fractions differ by so little in binary."""

NEIGHBOURS: Final = 6
"""Gaps around a value that say how finely it was rounded: single ones are wider where values are rare."""

EXCESS: Final = 2.0
"""A value of a rounded column is a point mass if it has so many times the rows that its neighbours lead one to expect.
Peaks of densities stay below; a fifth of the rows at a limit is above, with steps of a quarter standard deviation."""

STEP: Final = 0.1
"""What lies next to an end, as a share of the interquartile range of the rest."""

CUT: Final = 0.01
"""Share of the rest next to an end from which on the distribution is cut off there. A Gaussian that is cut at its
lowest fifth has 0.035, one that ends in its tail 0.001."""


class Mass(NamedTuple):
    """A value that many rows share: a limit from below (-1) or from above (1), or zero apart from the rest (0)."""

    value: float
    side: Side


@dataclass(frozen=True)
class Atoms:
    """What is not continuous about the columns of a table.

    Parameters
    ----------
    rounded : tuple of bool
        Whether a column is rounded.
    masses : tuple of tuples of Mass
        Limits and zeros of every column, in the user's units, ascending.
    """

    rounded: tuple[bool, ...]
    masses: tuple[tuple[Mass, ...], ...]

    @classmethod
    def of(
        cls,
        x: Array,
        regimes: NDArray[np.int64] | None = None,
        continuous: NDArray[np.bool_] | None = None,
    ) -> Atoms:
        """Look at the columns of ``x [n, d]``; zero may be what the interventions of known regimes set.

        Only ``continuous`` columns are looked at: of others it is known that rows share their values.
        """
        own = np.ones(x.shape[1], dtype=bool) if continuous is None else continuous
        seen = ~np.isnan(x)
        found = [
            _look(column[rows], None if regimes is None else regimes[rows]) if mine else (False, ())
            for column, rows, mine in zip(x.T, seen.T, own, strict=True)
        ]
        return cls(tuple(rounded for rounded, _ in found), tuple(masses for _, masses in found))

    @property
    def has_masses(self) -> bool:
        """Whether any column has limits or zeros."""
        return any(self.masses)

    @property
    def zeros(self) -> tuple[int, ...]:
        """Columns whose zeros stand for any value."""
        return tuple(j for j, masses in enumerate(self.masses) if any(mass.side == 0 for mass in masses))

    def spread(self, x: Array, rng: np.random.Generator) -> Array:
        """The rows ``[n, d]`` with rounded values spread evenly over their rounding; limits and zeros stay."""
        if not any(self.rounded):
            return x
        out = x.copy()
        for j in np.flatnonzero(self.rounded):
            seen = ~np.isnan(x[:, j])
            out[seen, j] = _spread(x[seen, j], self.masses[j], rng)
        return out

    def warn(self, x: Array, names: Sequence[str], stacklevel: int = 2) -> None:
        """Say what was seen, and what the fit makes of it."""
        rounded = [repr(name) for name, is_rounded in zip(names, self.rounded, strict=True) if is_rounded]
        if rounded:
            message = (
                f"Rounded columns, in which many rows share a value: {_shortened(rounded)}. The fit spreads their "
                "values evenly within the rounding. If you have more digits, use them."
            )
            warn(message, ColumnsWarning, stacklevel=stacklevel + 1)
        masses = [
            f"{name!r} ({_KINDS[mass.side]} {mass.value:.4g}, {_percent(at(x[:, j], mass.value))} of the rows)"
            for j, name in enumerate(names)
            for mass in self.masses[j]
        ]
        if masses:
            message = (
                f"Columns in which many rows share a single value: {_shortened(masses)}. Such values may hide "
                "others, which the fit fills in given the other columns, so that a shared value is not taken for an "
                "intervention. If an intervention set them, pass labels (regimes)."
            )
            warn(message, ColumnsWarning, stacklevel=stacklevel + 1)


def at(column: Array, value: float) -> NDArray[np.bool_]:
    """Rows of a column that have a value."""
    extent = np.fmax.reduce(column) - np.fmin.reduce(column)  # missing cells (NaN) have none
    return np.asarray(np.abs(column - value) <= SAME * extent)


_KINDS: Final = {-1: "at the lower limit", 0: "at", 1: "at the upper limit"}
_SHOWN: Final = 8


def _percent(rows: NDArray[np.bool_]) -> str:
    return f"{rows.mean():.0%}" if rows.mean() >= 0.01 else "under 1%"


def _shortened(words: Sequence[str]) -> str:
    more = f", ... ({len(words)} in all)" if len(words) > _SHOWN else ""
    return ", ".join(words[:_SHOWN]) + more


def _look(column: Array, regimes: NDArray[np.int64] | None) -> tuple[bool, tuple[Mass, ...]]:
    """Whether a column is rounded, and its limits and zeros."""
    values, counts = _different(column)
    shared = np.flatnonzero(counts >= SHARED)
    if values.size < FEW or not shared.size:
        return False, ()
    rounded = column.size >= TIED * values.size
    zero = np.flatnonzero(values == 0.0)
    masses = []
    for i in sorted({0, values.size - 1, *zero.tolist()} & set(shared.tolist())):
        if rounded and not _stands_out(counts, i):
            continue
        side = _side(values, counts, i)
        if side or (i in zero and not _was_set(column == 0.0, regimes)):
            masses.append(Mass(float(values[i]), side))
    return rounded, tuple(masses)


def _was_set(rows: NDArray[np.bool_], regimes: NDArray[np.int64] | None) -> bool:
    """Whether some known regime has hardly any row without a value, as if an intervention had set it."""
    if regimes is None:
        return False
    return any(rows[regimes == k].mean() > SET for k in np.unique(regimes[regimes >= 0]))


def _different(column: Array) -> tuple[Array, NDArray[np.int64]]:
    """The different values of a column, ascending, and how many rows have each."""
    values, counts = np.unique(column, return_counts=True)
    # Columns from one end of float64 to the other are one value here.
    with np.errstate(over="ignore"):
        first = np.append(True, np.diff(values) > SAME * (values[-1] - values[0]))
    return values[first], np.add.reduceat(counts, np.flatnonzero(first)).astype(np.int64)


def _stands_out(counts: NDArray[np.int64], i: int) -> bool:
    """Whether a value of a rounded column has far more rows than the values beside it lead one to expect."""
    if counts[i] < SHARED:
        return False
    expected = 0.0
    for one, two in ((i - 1, i - 2), (i + 1, i + 2)):
        if 0 <= one < counts.size and 0 <= two < counts.size:
            # A density that falls steadily, such as an exponential one, keeps its ratio.
            expected = max(expected, counts[one] * max(1.0, counts[one] / counts[two]))
    return bool(counts[i] > EXCESS * expected + EXCESS * np.sqrt(expected))


def _side(values: Array, counts: NDArray[np.int64], i: int) -> Side:
    """Whether a column is cut off at one of its values, and on which side."""
    side: Side = -1 if i == 0 else 1 if i == values.size - 1 else 0
    rest = np.repeat(np.delete(values, i), np.delete(counts, i))
    step = STEP * float(np.subtract(*np.quantile(rest, (0.75, 0.25))))
    distance = np.abs(rest - values[i])
    # One value at least, where the column is rounded.
    reach = max(step, 1.5 * float(np.median(np.diff(values))))
    return side if (distance < reach).mean() * step > CUT * reach else 0


def _spread(column: Array, masses: Sequence[Mass], rng: np.random.Generator) -> Array:
    values, _ = _different(column)
    gaps = np.diff(values)
    finest = minimum_filter1d(np.append(gaps, gaps[-1]), NEIGHBOURS, mode="nearest")
    width = finest[np.searchsorted(values, column, side="right").clip(1) - 1]
    for mass in masses:
        width[at(column, mass.value)] = 0.0
    spread = column + width * rng.uniform(-0.5, 0.5, column.size)
    # What cannot be negative was rounded to zero from above.
    return np.asarray(np.abs(spread) if values[0] >= 0.0 else spread)
