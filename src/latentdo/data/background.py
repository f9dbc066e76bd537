r"""What a row owes to when and where it was measured, and neither to causes nor to interventions.

A metric resembles itself a minute ago, follows the hour of the day, and every plate has a level and a scale of its own.
None of this is an intervention, and a search that does not know of it would take it for some. So it is taken away
first: with :math:`z_t` the standardised row, :math:`c_t` functions of its time and :math:`b` its batch,

.. math::
    z_t = a_b + s_b \circ \Bigl(C^\top c_t + \sum_{l=1}^{L} B_l \, s^{-1} (z_{t-l} - a) + \sigma \circ u_t\Bigr),

and the search is for causes and regimes of what is new in a row, :math:`u_t`. For lines nothing is lost by this: where

.. math:: z_t = A^\top z_t + \sum_l A_l^\top z_{t-l} + \varepsilon_t,

the rest :math:`u_t = (I - A^\top)^{-1} \varepsilon_t` has the graph and the noise of lag 0, whatever the past did.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentdo.data.circumstances import HARMONICS, Circumstances
from latentdo.data.shifts import SMALLEST, Shifts, new_by_shift

Array = NDArray[np.float64]

MOST_LAGS: Final = 2
"""Rows back that a mechanism may look; with more, a regime that lasts could be learnt as a habit of the noise."""

BATCH_ROWS: Final = 20
"""Rows from which level and scale of a batch can be told."""

NORMAL_RANGE: Final = 1.3489795003921634
"""Range between the quartiles of a Gaussian, in standard deviations."""

ROUNDS: Final = 3
"""Times the past is fitted: shifts of level that were found are taken out the next time."""


class _Line(NamedTuple):
    """A regression of all variables: coefficients ``[p, d]``, zero where they do not pay, and what is left."""

    coefficients: Array
    scale: Array

    @property
    def n_parameters(self) -> int:
        """Coefficients that paid, and one scale per variable."""
        return int((self.coefficients != 0.0).sum()) + self.scale.size


@dataclass(frozen=True, eq=False)
class Background:
    """What time, the past and batches explain of rows; fitted, so that it can be taken away from new ones.

    Parameters
    ----------
    lags : int
        Rows back that were looked at.
    periods : tuple of float
        Lengths of the cycles.
    usual : float
        The usual time between neighbours.
    first, later : ndarray [p, d]
        Coefficients of the functions of time, for rows without a past; and of these and the past, for the others.
    first_scale, later_scale : ndarray [d]
        Standard deviations of what is then left.
    habits : ndarray [lags, d]
        How much of a level of every variable is left after so many rows.
    root : ndarray [d, d]
        Makes what is left of rows with a past independent, and of one standard deviation.
    sparse : bool
        Whether shifts of level are those of few of its directions, see :class:`.Shifts`.
    batch_names : tuple
        Names of the batches.
    level, scale : ndarray [n_batches, d]
        Of every batch.
    """

    lags: int = 0
    periods: tuple[float, ...] = ()
    usual: float = 0.0
    first: Array = field(default_factory=lambda: np.empty((0, 0)))
    later: Array = field(default_factory=lambda: np.empty((0, 0)))
    first_scale: Array = field(default_factory=lambda: np.empty(0))
    habits: Array = field(default_factory=lambda: np.empty((0, 0)))
    root: Array = field(default_factory=lambda: np.empty((0, 0)))
    sparse: bool = False
    later_scale: Array = field(default_factory=lambda: np.empty(0))
    batch_names: tuple[Hashable, ...] = ()
    level: Array = field(default_factory=lambda: np.empty((0, 0)))
    scale: Array = field(default_factory=lambda: np.empty((0, 0)))

    @classmethod
    def fit(
        cls,
        z: Array,
        where: Circumstances,
        *,
        lags: int = 0,
        periods: tuple[float, ...] = (),
        responsibilities: Array | None = None,
        adjacency: NDArray[np.int8] | None = None,
    ) -> Background:
        """Fit to rows ``z [n, d]``.

        Parameters
        ----------
        z : ndarray [n, d]
            Standardised rows.
        where : Circumstances
            When and where they were measured.
        lags : int
            Rows back that may explain a row.
        periods : tuple of float
            Cycles that may.
        responsibilities : ndarray [n, K], optional
            What is known of regimes. Their levels are then fitted beside the rest, and left in the rows.
        adjacency : ndarray [d, d] of int8, optional
            What is known of the graph: shifts of level are then those of single equations.
        """
        found = cls()
        rest = z
        others = np.empty((len(z), 0)) if responsibilities is None else responsibilities[:, 1:]
        if where.batch is not None:
            level, scale = _batches(z, where, others)
            found = replace(found, batch_names=where.batch_names, level=level, scale=scale)
            rest = (z - level[where.batch]) / scale[where.batch]
        if where.time is None:
            return found
        usual = where.usual_gap()
        waves = _waves(where.time, periods)
        first = _regress(np.column_stack([waves, others]), rest, where.weight)
        later, shifts = first, Shifts()
        before = where.before(lags, usual)
        whole = np.flatnonzero((before >= 0).all(axis=0)) if lags else np.empty(0, dtype=np.int64)
        if whole.size <= MOST_LAGS * (waves.shape[1] + lags * z.shape[1]):
            lags, before = 0, before[:0]
        weights = None if where.weight is None else where.weight[whole]
        if responsibilities is not None and lags:  # steps within a regime
            same = (responsibilities[whole] * responsibilities[before[0, whole]]).sum(axis=1)
            weights = same if weights is None else same * weights
        shift = np.zeros_like(rest)
        for turn in range(ROUNDS if lags else 0):
            usually = rest - shift
            past = [usually[row[whole]] for row in before]
            design = np.column_stack([waves[whole], *past, others[whole]])
            later = _regress(design, usually[whole], weights)
            new = np.zeros_like(rest)
            new[whole] = usually[whole] - design @ later.coefficients
            # Shifts inflate what is usual; until they are known, all variables together show them best.
            graph = adjacency if turn else None
            shifts = Shifts.of(new[whole], later.coefficients[waves.shape[1] :], lags, graph)
            new[whole] += new_by_shift(shift, before, later.coefficients[waves.shape[1] :])[whole]
            shift = shifts.levels(new, where, usual)
        kept = waves.shape[1] + lags * z.shape[1]
        return replace(
            found,
            lags=lags,
            periods=periods,
            usual=usual,
            first=first.coefficients[: waves.shape[1]],
            first_scale=first.scale,
            later=later.coefficients[:kept],
            later_scale=later.scale,
            habits=shifts.habits,
            root=shifts.root,
            sparse=shifts.sparse,
        )

    @property
    def n_parameters(self) -> int:
        """Free parameters of what most rows are explained by."""
        return int((self.later != 0.0).sum() + self.later_scale.size + self.level.size + self.scale.size)

    @property
    def is_empty(self) -> bool:
        """Whether it explains nothing: no batches, no cycles, and no past."""
        return not self.batch_names and not (self.first[1:].any() or self.later[1:].any())

    def uses_past(self) -> bool:
        """Whether any variable is explained by rows before."""
        waves = self.first.shape[0]
        return bool(self.later[waves:].any())

    def lagged(self, z: Array, where: Circumstances, adjacency: NDArray[np.int8]) -> NDArray[np.int8]:
        """Which variables cause which how many rows later, ``[lags, d, d]``, besides the causes in the same row.

        Every variable is regressed on its causes, on time, and on the past of all, less what does not pay.
        """
        d = z.shape[1]
        found = np.zeros((self.lags, d, d), dtype=np.int8)
        if where.time is None or not self.lags:
            return found
        level, scale = self._batches_of(z, where)
        _, _, shift = self._describe(z, where)
        rest = (z - level - shift) / scale
        before = where.before(self.lags, self.usual)
        whole = np.flatnonzero((before >= 0).all(axis=0))
        weights = None if where.weight is None else where.weight[whole]
        waves = _waves(where.time[whole], self.periods)
        past = np.column_stack([rest[row[whole]] for row in before])
        for j in range(d):
            causes = rest[np.ix_(whole, np.flatnonzero(adjacency[:, j]))]
            fitted = _regress(np.column_stack([waves, causes, past]), rest[whole, j : j + 1], weights)
            found[:, :, j] = fitted.coefficients[-self.lags * d :, 0].reshape(self.lags, d) != 0.0
        return found

    def describe(self, z: Array, where: Circumstances) -> tuple[Array, Array]:
        """What is expected of rows ``z [n, d]``, and the unit of what is new in them, both ``[n, d]``."""
        expected, unit, _ = self._describe(z, where)
        return expected, unit

    def shifts(self, z: Array, where: Circumstances) -> Array:
        """By how much rows ``z [n, d]`` are off their level for a while, in the unit of what is new in them."""
        _, unit, shift = self._describe(z, where)
        return shift / unit

    def _describe(self, z: Array, where: Circumstances) -> tuple[Array, Array, Array]:
        n = len(z)
        level, scale = self._batches_of(z, where)
        shift = np.zeros_like(z)
        if not self.first.size:
            return level, scale, shift
        rest = (z - level) / scale
        if where.time is None:
            expected = np.repeat(self.first[:1], n, axis=0)
            return level + scale * expected, scale * self.first_scale, shift
        waves = _waves(where.time, self.periods)
        expected = waves @ self.first
        unit = np.repeat(self.first_scale[None], n, axis=0)
        before = where.before(self.lags, self.usual)
        known = np.flatnonzero((before >= 0).all(axis=0)) if self.lags else np.arange(n)
        design = np.column_stack([waves[known], *(rest[row[known]] for row in before)])
        expected[known] = design @ self.later
        unit[known] = self.later_scale
        if self.lags:
            new = np.zeros_like(rest)
            new[known] = rest[known] - expected[known]
            shift = Shifts(self.habits, self.root, self.sparse).levels(new, where, self.usual)
            # a past that was shifted is counted from its level
            expected[known] += (new_by_shift(shift, before, self.later[waves.shape[1] :]) - shift)[known]
        return level + scale * expected, scale * unit, scale * shift

    def _batches_of(self, z: Array, where: Circumstances) -> tuple[Array, Array]:
        """Level and scale of every row's batch; those of batches that were not fitted are those of their rows."""
        if not self.batch_names:
            return np.zeros_like(z), np.ones_like(z)
        if where.batch is None:
            raise ValueError(
                "this model was fitted with batch=, and batches differ in level and scale: pass the batch of every row"
            )
        known = {name: place for place, name in enumerate(self.batch_names)}
        level, scale = np.empty_like(z), np.empty_like(z)
        for code in np.unique(where.batch):
            rows, name = np.flatnonzero(where.batch == code), where.batch_names[code]
            if name in known:
                level[rows], scale[rows] = self.level[known[name]], self.scale[known[name]]
                continue
            if rows.size < BATCH_ROWS:
                raise ValueError(
                    f"batch {name!r} was not fitted, and its {rows.size} rows are too few to tell its level and scale; "
                    f"pass at least {BATCH_ROWS} rows of it"
                )
            level[rows], scale[rows] = _typical(z, rows, where, _last(where))
        return level, scale

    def typical_unit(self) -> Array:
        """The usual unit of what is new in a row, ``[d]``."""
        d = max(self.later.shape[1], self.level.shape[1])
        batch = np.exp(np.log(self.scale).mean(axis=0)) if self.batch_names else np.ones(d)
        return batch * self.later_scale if self.later_scale.size else batch

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Numbers for a file; ``batch_names`` go elsewhere."""
        return {
            "lags": np.array(self.lags, dtype=np.int64),
            "periods": np.array(self.periods, dtype=np.float64),
            "usual": np.array(self.usual),
            "sparse": np.array(self.sparse),
            **{name: getattr(self, name) for name in _TABLES},
        }

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], batch_names: tuple[Hashable, ...], d: int
    ) -> Background:
        """Undo :meth:`to_arrays`; what does not fit together is a :class:`ValueError`."""
        try:
            numbers = {name: np.array(arrays[name], dtype=np.float64) for name in _TABLES}
            lags, periods = int(arrays["lags"]), np.array(arrays["periods"], dtype=np.float64)
            usual, sparse = float(arrays["usual"]), bool(arrays["sparse"])
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"the background is not complete ({error})") from error
        if set(arrays) - {"lags", "periods", "usual", "sparse", *_TABLES}:
            raise ValueError("the background holds more than a fit leaves")
        if not (0 <= lags <= MOST_LAGS and periods.ndim == 1 and (periods > 0.0).all() and usual >= 0.0):
            raise ValueError("the background has lags, periods or gaps that no fit has")
        waves = 1 + 2 * HARMONICS * periods.size if numbers["first"].size else 0
        shapes = {
            "first": (waves, d),
            "later": (waves + lags * d, d),
            "first_scale": (d,),
            "later_scale": (d,),
            "habits": (lags, d),
            "root": (d, d),
            "level": (len(batch_names), d),
            "scale": (len(batch_names), d),
        }
        for name, array in numbers.items():
            if (array.size or 0 not in shapes[name]) and array.size and array.shape != shapes[name]:
                raise ValueError(f"{name} of the background has the shape {array.shape}")
            if not np.isfinite(array).all() or (name.endswith("scale") and not (array > 0.0).all()):
                raise ValueError(f"{name} of the background holds what no fit gives")
        if (numbers["first"].size == 0) != (numbers["later"].size == 0) or (
            len(batch_names) != len(numbers["level"]) and numbers["level"].size
        ):
            raise ValueError("parts of the background are missing")
        return cls(lags, tuple(periods.tolist()), usual, sparse=sparse, batch_names=batch_names, **numbers)


_TABLES: Final = ("first", "later", "first_scale", "later_scale", "habits", "root", "level", "scale")


def _waves(time: Array, periods: Sequence[float]) -> Array:
    """Functions of time, ``[n, 1 + 2 H P]``: a constant, then sines and cosines of every cycle."""
    found = [np.ones(time.size)]
    for period in periods:
        phase = 2.0 * np.pi * (time / period % 1.0)
        for harmonic in range(1, HARMONICS + 1):
            found += [np.cos(harmonic * phase), np.sin(harmonic * phase)]
    return np.column_stack(found)


def _last(where: Circumstances) -> NDArray[np.int64] | None:
    """The row before each in time, -1 if there is none; None where rows are in no order."""
    return None if where.time is None else where.before(1, where.usual_gap())[0]


def _typical(
    z: Array, rows: NDArray[np.int64], where: Circumstances, last: NDArray[np.int64] | None
) -> tuple[Array, Array]:
    """Level and scale of a batch, by quartiles: interventions on a minority do not move them much.

    Where rows are in order of time, the scale is that of steps from one to the next: levels that wander tell nothing.
    """
    own = z[rows]
    low, middle, high = _quartiles(own, where, rows)
    if last is not None:
        later = rows[np.isin(last[rows], rows)]
        if later.size >= BATCH_ROWS:
            own = z[later] - z[last[later]]
            low, _, high = _quartiles(own, where, later)
    spread = (high - low) / NORMAL_RANGE
    return middle, np.maximum(np.where(spread > 0.0, spread, own.std(axis=0)), SMALLEST)


def _quartiles(values: Array, where: Circumstances, rows: NDArray[np.int64]) -> Array:
    """Quartiles of some rows' values, ``[3, d]``."""
    shares = np.array([0.25, 0.5, 0.75])
    if where.weight is None:
        return np.asarray(np.quantile(values, shares, axis=0))
    order = np.argsort(values, axis=0)
    below = np.cumsum(where.weight[rows][order], axis=0)
    at = [np.searchsorted(column, shares * column[-1]) for column in below.T]
    ordered = np.take_along_axis(values, order, axis=0)
    return np.asarray(np.take_along_axis(ordered, np.stack(at, axis=1), axis=0))


def _batches(z: Array, where: Circumstances, others: Array) -> tuple[Array, Array]:
    """Level and scale of every batch, ``[n_batches, d]`` each; beside the levels of regimes, if they are known."""
    batch, n_batches, last = where.batch, len(where.batch_names), _last(where)
    assert batch is not None
    rest = z
    if others.shape[1]:
        held = np.column_stack([np.eye(n_batches)[batch], others])
        root = np.sqrt(np.ones(len(z)) if where.weight is None else where.weight)[:, None]
        coefficients = np.linalg.lstsq(held * root, z * root, rcond=None)[0]
        rest = z - others @ coefficients[n_batches:]
    level, scale = np.empty((n_batches, z.shape[1])), np.empty((n_batches, z.shape[1]))
    for code in range(n_batches):
        rows = np.flatnonzero(batch == code)
        level[code], scale[code] = _typical(rest, rows, where, last)
        if others.shape[1] and last is None:  # nothing is left to guard against
            weights = None if where.weight is None else where.weight[rows]
            level[code] = np.average(rest[rows], axis=0, weights=weights)
            variance = np.average((rest[rows] - level[code]) ** 2, axis=0, weights=weights)
            scale[code] = np.maximum(np.sqrt(variance), SMALLEST)
    few = np.bincount(batch, minlength=n_batches) < BATCH_ROWS
    if few.any():  # too few to tell their scale: it is that of the others
        rows = np.arange(len(z))
        rest = rest - level[batch]
        usual = _typical(rest, rows, where, last)[1] if few.all() else np.median(scale[~few], axis=0)
        scale[few] = usual
    return level, scale


def _regress(design: Array, values: Array, weights: Array | None = None) -> _Line:
    """Regressions of every column of ``values [n, d]``, less the regressors that do not pay (Schwarz).

    The first regressor is the constant, and stays.
    """
    weighted = design if weights is None else design * weights[:, None]
    count = max(float(len(design) if weights is None else weights.sum()), 2.0)
    gram, cross = weighted.T @ design, weighted.T @ values
    total = (values**2).sum(axis=0) if weights is None else weights @ values**2
    size = design.shape[1]
    gram[np.diag_indices(size)] += SMALLEST**2 * count
    coefficients, scale = np.zeros((size, values.shape[1])), np.empty(values.shape[1])
    for j in range(values.shape[1]):
        active = np.arange(size)
        while True:
            inverse = np.linalg.inv(gram[np.ix_(active, active)])
            found = inverse @ cross[active, j]
            variance = max((total[j] - found @ cross[active, j]) / count, SMALLEST**2)
            gains = 0.5 * found**2 / (variance * np.diag(inverse))
            gains[active == 0] = np.inf
            poor = np.argsort(gains, kind="stable")[: max(int((gains < 0.5 * np.log(count)).sum()) // 2, 1)]
            if gains[poor[0]] >= 0.5 * np.log(count):
                break
            active = np.delete(active, poor)
        coefficients[active, j], scale[j] = found, np.sqrt(variance)
    return _Line(coefficients, scale)
