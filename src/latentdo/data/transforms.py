"""Column-wise transforms and standardisation, with the Jacobian that log-densities need.

The model is fitted to ``z = (t(x) - mean) / scale``, where ``t`` acts on each column alone. A density of the
user's data therefore is ``log p(x) = log p(z) + log |dz/dx|``; :class:`Preprocessor` supplies both terms. Columns of
other kinds than continuous stay what they are, 0/1, counts or codes of levels: they have probabilities, which no unit
changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, Self, cast, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from latentdo.data.kinds import CONTINUOUS, Kind

TransformName = Literal["none", "log", "log1p", "rank-gaussian"]
TRANSFORMS: Final[tuple[str, ...]] = get_args(TransformName)

Array = NDArray[np.float64]

_MAX_SEGMENTS = 128  # equal-mass segments of a rank-gaussian map: its slopes are a density estimate
_ROWS_PER_SEGMENT = 10  # a slope from fewer rows is noise, and held-out densities would pay for it
_TAIL_MASS = 0.1  # the linear tails continue the mean slope over this outermost share of the rows
_MIN_GAP = 1e-10  # knots closer than this share of the range are one knot: keeps slopes finite

_LARGEST = 1e150  # squares and reciprocals of values, and of their spread, stay finite

_LOWER_BOUND = {"log": 0.0, "log1p": -1.0}  # each transform is defined strictly above its bound


@dataclass(frozen=True, eq=False)
class Preprocessor:
    """An invertible map from the user's units ``x`` to standardised ``z``, fitted once and then fixed.

    Parameters
    ----------
    transform : {"none", "log", "log1p", "rank-gaussian"}
        ``"log"`` is the natural logarithm (values above 0), ``"log1p"`` is ``log(1 + x)`` (values above -1),
        and ``"rank-gaussian"`` maps each column piecewise linearly and strictly increasingly onto the normal
        quantiles of its ranks, with linear tails beyond the range of the fitted rows.
    columns : tuple of str
        Names of the variables, for messages and for :meth:`forward_column`.
    mean, scale : ndarray [d]
        Location and standard deviation of the transformed columns; the scale of a constant column is 1.
    knots : tuple of (ndarray, ndarray), one per column
        Per-column state of ``"rank-gaussian"``: increasing values, and the normal quantile at each.
        Empty for the other transforms, which have no state.
    kinds : tuple of Kind
        What the columns are; all continuous by default.
    exposure : float, optional
        A typical exposure, where counts are in proportion to one: the geometric mean of those of the fitted rows.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 90.0]])
    >>> prep = Preprocessor.fit(x, "log", columns=("a", "b"))
    >>> z = prep.forward(x)
    >>> bool(np.allclose(z.mean(axis=0), 0.0) and np.allclose(z.std(axis=0), 1.0))
    True
    >>> bool(np.allclose(prep.inverse(z), x))
    True
    >>> prep.log_jacobian(x).shape
    (3,)
    """

    transform: TransformName
    columns: tuple[str, ...]
    mean: Array
    scale: Array
    knots: tuple[tuple[Array, Array], ...] = ()
    kinds: tuple[Kind, ...] = ()
    exposure: float | None = None

    def __post_init__(self) -> None:
        """Columns of which nothing is said are continuous."""
        if not self.kinds:
            object.__setattr__(self, "kinds", (CONTINUOUS,) * len(self.columns))

    @classmethod
    def fit(
        cls,
        x: ArrayLike,
        transform: str = "none",
        columns: tuple[str, ...] | None = None,
        row_index: NDArray[np.int64] | None = None,
        weights: Array | None = None,
        kinds: tuple[Kind, ...] = (),
    ) -> Self:
        """Learn the transform and the scaling from ``x [n, d]``.

        Parameters
        ----------
        x : array [n, d]
            Finite numbers in the user's units, or NaN for cells that are missing: they have no part in it.
        transform : {"none", "log", "log1p", "rank-gaussian"}
            Applied to every column.
        columns : tuple of str, optional
            Names for messages; ``X1 .. Xd`` by default.
        row_index : ndarray [n], optional
            Row numbers for messages, where rows of the user's table were dropped before.
        weights : ndarray [n], optional
            How often every row counts.
        kinds : tuple of Kind, optional
            What the columns are; only continuous ones are transformed.

        Raises
        ------
        ValueError
            If the transform is unknown, a value lies outside its domain, or a column's size defeats float64.
        """
        if transform not in TRANSFORMS:
            raise ValueError(
                f"transform={transform!r} is unknown; use one of {', '.join(map(repr, TRANSFORMS))}."
            )
        values = np.asarray(x, dtype=np.float64)
        if values.ndim != 2 or values.shape[0] == 0:
            raise ValueError(f"Expected a 2D array with at least one row, got shape {values.shape}.")
        if columns is None:
            columns = tuple(f"X{j + 1}" for j in range(values.shape[1]))
        if any(kind.is_discrete for kind in kinds):
            return cls._fit_continuous(values, transform, columns, row_index, weights, kinds)
        _check_float64(np.fmax.reduce(np.abs(values)) < _LARGEST, columns, "are too large")
        constant = _range(values) == 0.0
        _check_float64(constant | (_range(values) > 1.0 / _LARGEST), columns, "vary too little")
        name = cast("TransformName", transform)
        d = values.shape[1]
        knots = tuple(_rank_knots(values[:, j], weights) for j in range(d)) if name == "rank-gaussian" else ()
        raw = cls(name, tuple(columns), np.zeros(d), np.ones(d), knots)
        raw._check_domain(values, row_index)
        transformed = raw._transformed(values)
        mean, scale = _mean_and_scale(transformed, weights)
        mean[constant] = np.fmax.reduce(transformed)[constant]
        scale[constant] = 1.0
        _check_float64(constant | (_range(transformed) > 1.0 / _LARGEST), columns, "vary too little")
        return cls(name, tuple(columns), _frozen(mean), _frozen(scale), knots)

    @classmethod
    def _fit_continuous(
        cls,
        values: Array,
        transform: str,
        columns: tuple[str, ...],
        row_index: NDArray[np.int64] | None,
        weights: Array | None,
        kinds: tuple[Kind, ...],
    ) -> Self:
        """The same where only some columns are continuous."""
        own = np.array([not kind.is_discrete for kind in kinds])
        mean, scale = np.zeros(len(kinds)), np.ones(len(kinds))
        knots = [_AS_IT_IS for _ in kinds] if transform == "rank-gaussian" else []
        if own.any():
            names = tuple(np.array(columns, dtype=object)[own])
            part = cls.fit(values[:, own], transform, names, row_index, weights)
            mean[own], scale[own] = part.mean, part.scale
            for j, pair in zip(np.flatnonzero(own), part.knots, strict=False):
                knots[j] = pair
        name = cast("TransformName", transform)
        return cls(name, tuple(columns), _frozen(mean), _frozen(scale), tuple(knots), kinds)

    @property
    def n_variables(self) -> int:
        """Number of columns ``d``."""
        return len(self.columns)

    @cached_property
    def continuous(self) -> NDArray[np.bool_]:
        """Which columns are continuous, ``[d]``."""
        return np.array([not kind.is_discrete for kind in self.kinds], dtype=bool)

    @cached_property
    def _part(self) -> Self:
        """The same for the continuous columns alone."""
        own = np.flatnonzero(self.continuous)
        knots = tuple(self.knots[j] for j in own) if self.knots else ()
        return type(self)(
            self.transform, tuple(self.columns[j] for j in own), self.mean[own], self.scale[own], knots
        )

    def offset_of(self, exposure: Array | None) -> Array | None:
        """Logarithm of the exposure of rows in units of a typical one, ``[n]``; None where counts have none.

        Raises
        ------
        ValueError
            If the fitted rows had an exposure and these have none, or these have one and the fitted rows had none.
        """
        if self.exposure is None and exposure is None:
            return None
        if exposure is None:
            raise ValueError(
                "counts were fitted in proportion to offset=, and these rows have none; pass offset= with the size of "
                f"each row (a typical one was {self.exposure:.4g})"
            )
        if self.exposure is None:
            raise ValueError(
                "offset= was given, but counts were fitted without one; leave it out, or fit with it"
            )
        return np.asarray(np.log(exposure / self.exposure))

    def to_frame(self, x: ArrayLike) -> pd.DataFrame:
        """Rows ``x [n, d]`` as a table, levels by their names."""
        values = self._checked(x)
        if self.continuous.all():
            return pd.DataFrame(values, columns=list(self.columns))
        decoded = [kind.decode(column) for kind, column in zip(self.kinds, values.T, strict=True)]
        return pd.DataFrame(dict(enumerate(decoded))).set_axis(list(self.columns), axis=1)

    def forward(self, x: ArrayLike) -> Array:
        """Transform, then standardise: ``x [n, d]`` in the user's units to ``z [n, d]``.

        Raises
        ------
        ValueError
            If a value lies outside the domain of the transform; the message names row, column and remedy.
        """
        values = self._checked(x)
        if not self.continuous.all():
            out = values.copy()
            out[:, self.continuous] = self._part.forward(values[:, self.continuous])
            return out
        self._check_domain(values)
        return (self._transformed(values) - self.mean) / self.scale

    def inverse(self, z: ArrayLike) -> Array:
        """Undo :meth:`forward`: ``z [n, d]`` to the user's units.

        Under a logarithm a ``z`` too large for float64 gives infinity, without a warning.
        """
        if not self.continuous.all():
            out = self._checked(z).copy()
            out[:, self.continuous] = self._part.inverse(out[:, self.continuous])
            return out
        t = self._checked(z) * self.scale + self.mean
        with np.errstate(over="ignore"):
            if self.transform == "log":
                return cast("Array", np.exp(t))
            if self.transform == "log1p":
                return cast("Array", np.expm1(t))
        for j, (xs, zs) in enumerate(self.knots):
            t[:, j] = _piecewise(t[:, j], zs, xs, 1.0 / _slopes(xs, zs))
        return t

    def log_jacobian(self, x: ArrayLike) -> Array:
        """``log |dz/dx|`` summed over columns, one number per row: ``log p(x) = log p(z) + log_jacobian(x)``.

        Parameters
        ----------
        x : array [n, d]
            Rows in the user's units. At a knot of ``"rank-gaussian"`` the slope to its right is used. Missing cells
            (NaN) are not counted.

        Returns
        -------
        ndarray [n]
        """
        values = self._checked(x)
        if not self.continuous.all():
            return self._part.log_jacobian(values[:, self.continuous])
        self._check_domain(values)
        seen = ~np.isnan(values)
        total = -np.where(seen, np.log(self.scale), 0.0).sum(axis=1)
        if self.transform == "log":
            total -= np.nansum(np.log(values), axis=1)
        elif self.transform == "log1p":
            total -= np.nansum(np.log1p(values), axis=1)
        for j, (xs, zs) in enumerate(self.knots):
            slopes = np.log(_slopes(xs, zs))[np.searchsorted(xs, values[:, j], side="right")]
            total += np.where(seen[:, j], slopes, 0.0)
        return cast("Array", total)

    def forward_column(self, column: str, values: ArrayLike) -> Array:
        """Standardise values of one variable, as ``do={"PKA": 1.5}`` needs.

        Examples
        --------
        >>> prep = Preprocessor.fit([[0.0, 1.0], [2.0, 5.0]], columns=("a", "b"))
        >>> prep.forward_column("b", [3.0, 5.0])
        array([0., 1.])
        """
        only, flat = self._one(column), np.atleast_1d(np.asarray(values, dtype=np.float64))
        return only.forward(flat[:, None])[:, 0]

    def inverse_column(self, column: str, z: ArrayLike) -> Array:
        """Undo :meth:`forward_column`."""
        only, flat = self._one(column), np.atleast_1d(np.asarray(z, dtype=np.float64))
        return only.inverse(flat[:, None])[:, 0]

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and strings: survives JSON exactly (floats are written with all their digits)."""
        return {
            "transform": self.transform,
            "columns": list(self.columns),
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
            "knots": [[xs.tolist(), zs.tolist()] for xs, zs in self.knots],
            **({} if self.continuous.all() else {"kinds": [kind.to_dict() for kind in self.kinds]}),
            **({} if self.exposure is None else {"exposure": self.exposure}),
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Self:
        """Rebuild what :meth:`to_dict` wrote.

        Examples
        --------
        >>> import json
        >>> prep = Preprocessor.fit([[0.0], [1.0], [5.0]], "rank-gaussian")
        >>> again = Preprocessor.from_dict(json.loads(json.dumps(prep.to_dict())))
        >>> bool((again.forward([[0.3]]) == prep.forward([[0.3]])).all())
        True
        """
        if state["transform"] not in TRANSFORMS:
            raise ValueError(f"transform={state['transform']!r} is unknown to this version of latentdo.")
        loaded = cls(
            transform=state["transform"],
            columns=tuple(state["columns"]),
            mean=_frozen(np.asarray(state["mean"], dtype=np.float64)),
            scale=_frozen(np.asarray(state["scale"], dtype=np.float64)),
            knots=tuple(
                (_frozen(np.asarray(xs, dtype=np.float64)), _frozen(np.asarray(zs, dtype=np.float64)))
                for xs, zs in state["knots"]
            ),
            kinds=tuple(Kind.from_dict(kind) for kind in state.get("kinds", ())),
            exposure=state.get("exposure"),
        )
        loaded._check()
        return loaded

    def _check(self) -> None:
        """Refuse a map that could not have been fitted: it would turn good rows into NaN."""
        d = self.n_variables
        if len(self.kinds) != d:
            raise ValueError(f"{len(self.kinds)} kinds are not those of {d} columns.")
        if self.exposure is not None and not (
            isinstance(self.exposure, float) and 1.0 / _LARGEST < self.exposure < _LARGEST
        ):
            raise ValueError("the typical exposure of counts is not such as a fit gives.")
        if self.mean.shape != (d,) or self.scale.shape != (d,):
            raise ValueError(
                f"mean and scale have the shapes {self.mean.shape} and {self.scale.shape}, not {(d,)}."
            )
        fine = (np.abs(self.mean) < _LARGEST) & (self.scale > 1.0 / _LARGEST) & (self.scale < _LARGEST)
        if not fine.all():
            raise ValueError(
                f"mean or scale of column {self.columns[int(fine.argmin())]!r} is not such as a fit gives"
            )
        if len(self.knots) != (d if self.transform == "rank-gaussian" else 0):
            raise ValueError(f"{len(self.knots)} columns have knots.")
        for xs, zs in self.knots:
            rising = all(np.isfinite(v).all() and (np.diff(v) > 0.0).all() for v in (xs, zs))
            if xs.ndim != 1 or xs.shape != zs.shape or xs.size == 0 or not rising:
                raise ValueError("the knots of a column do not rise.")

    def _one(self, column: str) -> Self:
        """Restrict to one variable."""
        if column not in self.columns:
            raise ValueError(f"There is no variable {column!r}; the variables are {', '.join(self.columns)}.")
        j = self.columns.index(column)
        at = slice(j, j + 1)
        return type(self)(
            self.transform, (column,), self.mean[at], self.scale[at], self.knots[at], self.kinds[at]
        )

    def _checked(self, values: ArrayLike) -> Array:
        array = np.asarray(values, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != self.n_variables:
            raise ValueError(f"Expected a 2D array with {self.n_variables} columns, got shape {array.shape}.")
        return array

    def _check_domain(self, values: Array, row_index: NDArray[np.int64] | None = None) -> None:
        """Refuse what the logarithm is not defined for: the first cell, and how many there are."""
        bound = _LOWER_BOUND.get(self.transform)
        if bound is None:
            return
        bad = ~((values > bound) | np.isnan(values))
        if bad.any():
            row, j = (int(i) for i in np.argwhere(bad)[0])
            shown = row if row_index is None else int(row_index[row])
            other = (
                'transform="log1p" (values above -1) or transform="rank-gaussian" (any values)'
                if self.transform == "log"
                else 'transform="rank-gaussian" (any values)'
            )
            raise ValueError(
                f'transform="{self.transform}" needs values above {bound:g}, but row {shown} (counted from 0), column '
                f"{self.columns[j]!r} is {values[row, j]:g} ({int(bad.sum())} such cells in "
                f"{int(bad.any(axis=0).sum())} columns); use {other}, or drop these rows."
            )

    def _transformed(self, values: Array) -> Array:
        if self.transform == "log":
            return cast("Array", np.log(values))
        if self.transform == "log1p":
            return cast("Array", np.log1p(values))
        if not self.knots:
            return values
        out = np.empty_like(values)
        for j, (xs, zs) in enumerate(self.knots):
            out[:, j] = _piecewise(values[:, j], xs, zs, _slopes(xs, zs))
        return out


_AS_IT_IS = (np.array([0.0, 1.0]), np.array([0.0, 1.0]))  # knots of a column that is not transformed


def _check_float64(good: NDArray[np.bool_], columns: tuple[str, ...], what: str) -> None:
    for j in np.flatnonzero(~good):
        raise ValueError(
            f"The values of column {columns[j]!r} {what} for float64 arithmetic; "
            "express the column in another unit, or drop it."
        )


def _range(values: Array) -> Array:
    """Largest less smallest value of every column, missing cells left out."""
    return cast("Array", np.fmax.reduce(values) - np.fmin.reduce(values))


def _mean_and_scale(values: Array, weights: Array | None) -> tuple[Array, Array]:
    """Mean and standard deviation of every column, missing cells left out."""
    seen = ~np.isnan(values)
    if seen.all():
        if weights is None:
            return values.mean(axis=0), values.std(axis=0)
        mean = np.average(values, axis=0, weights=weights)
        return mean, np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weights))
    shares = seen * (np.ones(len(values)) if weights is None else weights)[:, None]
    shares /= shares.sum(axis=0)
    mean = np.where(seen, shares * values, 0.0).sum(axis=0)
    return mean, np.sqrt(np.where(seen, shares * (values - mean) ** 2, 0.0).sum(axis=0))


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array


def _rank_knots(column: Array, weights: Array | None = None) -> tuple[Array, Array]:
    """Choose knots of the rank-gaussian map: distinct values, and the normal quantile of their mean rank.

    Ties share their mean rank. Knots are spaced by equal mass, refined geometrically towards both ends, so
    that tails are resolved where rows are few, out to the extremes.
    """
    seen = ~np.isnan(column)
    values, which = np.unique(column[seen], return_inverse=True)
    counts = np.bincount(which, None if weights is None else weights[seen])
    n = counts.sum()
    quantiles = ndtri((np.cumsum(counts) - counts / 2.0) / n)
    segments = max(2, min(_MAX_SEGMENTS, int(n // _ROWS_PER_SEGMENT)))
    inner = np.arange(1, segments) / segments
    tail = 0.5 ** np.arange(1, 64) / segments
    tail = tail[tail * n >= _ROWS_PER_SEGMENT]
    mass = np.concatenate([[0.0], tail, inner, 1.0 - tail, [1.0]])
    at = np.searchsorted(np.cumsum(counts), np.ceil(mass * n), side="left")
    chosen = np.unique(np.clip(at, 0, values.size - 1))
    xs, zs = values[chosen], quantiles[chosen]
    keep = np.ones(xs.size, dtype=bool)
    gap = _MIN_GAP * (xs[-1] - xs[0])
    last = 0
    for i in range(1, xs.size):
        if xs[i] - xs[last] > gap:
            last = i
        else:
            keep[i] = False
    return _frozen(xs[keep]), _frozen(zs[keep])


def _slopes(xs: Array, zs: Array) -> Array:
    """``dz/dx`` left of the first knot, in each segment, and right of the last knot: ``[n_knots + 1]``."""
    if xs.size == 1:
        return np.ones(2)
    middle = np.diff(zs) / np.diff(xs)
    low = max(1, int(np.searchsorted(zs, ndtri(_TAIL_MASS))))
    high = min(xs.size - 2, int(np.searchsorted(zs, ndtri(1.0 - _TAIL_MASS))))
    left = (zs[low] - zs[0]) / (xs[low] - xs[0])
    right = (zs[-1] - zs[high]) / (xs[-1] - xs[high])
    return np.concatenate([[left], middle, [right]])


def _piecewise(at: Array, xs: Array, ys: Array, slopes: Array) -> Array:
    """Evaluate the piecewise linear map through ``(xs, ys)`` with linear tails."""
    segment = np.searchsorted(xs, at, side="right")
    anchor = np.maximum(segment - 1, 0)
    ceiling = np.append(ys, np.inf)[segment]  # rounding must not overtake the next knot
    return cast("Array", np.minimum(ys[anchor] + (at - xs[anchor]) * slopes[segment], ceiling))
