r"""Smooth curves: a natural cubic spline for every parent, summed, plus noise of any shape.

.. math:: f(x) = c + \sum_i \sum_{m=1}^{L} b_{im} N_{im}(x_i)

with :math:`N_{i1}(x) = x` and knots at quantiles of the parent. Evidence says how much every parent bends
(:mod:`.splines`); a mechanism of lines alone is returned as such.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit
from latentdo.model.mechanisms.any_noise import (
    ROW_TURNS,
    Shaped,
    as_shape,
    beginning,
    fit_rows,
    squares_of_fit,
)
from latentdo.model.mechanisms.base import AdditiveNoise, Array, Mechanism, Parents
from latentdo.model.mechanisms.family import Fits, MechanismFamily
from latentdo.model.mechanisms.linear import LinearMechanism
from latentdo.model.mechanisms.noise import Noise
from latentdo.model.mechanisms.splines import FUNCTIONS, Basis, choose_levels, expand, sum_of_curves

ROWS_PER_FUNCTION: Final = 8.0
"""Rows for every function of a curve at least: the Schwarz criterion is generous where rows are few."""

MORE_FUNCTIONS: Final = 3
"""Functions by which a curve may grow in one fit: all at once would cost the square of them."""

_LARGEST = 1e50  # parameter of standardised variables; means of what is far out then stay finite


class AdditiveMechanism(AdditiveNoise, Shaped, MechanismFamily):
    """``parameters`` are how much every parent bends, its knots, parent by parent, ``c``, and all ``b``."""

    family: ClassVar[str] = "additive"
    summary: ClassVar[str] = "sums of smooth curves, one per parent, with noise of any shape"

    def mean(self, x: Array) -> Array:
        """See :class:`AdditiveNoise`."""
        _, knots, coefficients = _parts(self.parameters, x.shape[1])
        curves = coefficients[1:].reshape(-1, FUNCTIONS)
        return np.asarray(sum_of_curves(np.ascontiguousarray(x), knots, coefficients[0], curves))

    @property
    def levels(self) -> NDArray[np.int64]:
        """Functions that were fitted of every parent, ``[p]``: one for a line."""
        p = (self.parameters.size - 1) // (2 * FUNCTIONS + 2)
        return self.parameters[:p].astype(np.int64)

    @classmethod
    def check(cls, parameters: Array, n_parents: int) -> None:
        """See :class:`AdditiveNoise`."""
        if parameters.size != 1 + n_parents * (2 * FUNCTIONS + 2):
            raise ValueError(f"curves of {n_parents} parents cannot have {parameters.size} parameters")
        if not (np.abs(parameters) < _LARGEST).all():
            raise ValueError("a coefficient is not such as a fit gives")
        levels, knots, _ = _parts(parameters, n_parents)
        if not np.isin(levels, np.arange(1, FUNCTIONS + 1)).all():
            raise ValueError("the number of functions of a curve is not such as a fit gives")
        if not (np.diff(knots, axis=1) > 0.0).all():
            raise ValueError("the knots of a curve do not ascend")

    @classmethod
    def prepare(cls, z: Array) -> tuple[Basis, ...]:
        """See :class:`RowFamily`: the functions of every variable."""
        return tuple(Basis.of(column, np.delete(z, i, axis=1)) for i, column in enumerate(z.T))

    @classmethod
    def functions(cls, prepared: tuple[Basis, ...], z: Array) -> Array:
        """See :class:`RowFamily`."""
        return np.column_stack([basis.functions(column) for basis, column in zip(prepared, z.T, strict=True)])

    @classmethod
    def given(cls, prepared: tuple[Basis, ...] | None, parents: Parents) -> Fits:
        """See :class:`RowFamily`."""
        if prepared is None:
            return cls
        return Curves(tuple(prepared[i] for i in parents))

    @classmethod
    def fit(cls, x: Array, y: Array, weights: Array, start: Mechanism | None = None) -> AdditiveNoise:
        """See :class:`RowFamily`."""
        return Curves(_bases(x, y)).fit(x, y, weights, start)

    @classmethod
    def refit(cls, x: Array, y: Array, weights: Array, start: Mechanism) -> AdditiveNoise:
        """See :class:`RowFamily`: as bent, and with as many Gaussians, as before."""
        return Curves(_bases(x, y)).refit(x, y, weights, start)


def _bases(x: Array, y: Array) -> tuple[Basis, ...]:
    return tuple(Basis.of(column, y[:, None]) for column in x.T)


def _parts(parameters: Array, p: int) -> tuple[Array, Array, Array]:
    """Levels ``[p]``, knots ``[p, L + 1]`` and coefficients."""
    cut = p * (FUNCTIONS + 2)
    return parameters[:p], parameters[p:cut].reshape(p, FUNCTIONS + 1), parameters[cut:]


@dataclass(frozen=True, eq=False)
class Curves:
    """Fits of curves to parents whose functions are known."""

    bases: tuple[Basis, ...]

    def fit(self, x: Array, y: Array, weights: Array, start: Mechanism | None = None) -> AdditiveNoise:
        """See :class:`RowFamily`; a parent whose curve is known may bend a little more than it did."""
        rows = int(weights.sum() / ROWS_PER_FUNCTION / max(len(self.bases), 1))
        most = np.array([max(min(basis.most, rows), 1) for basis in self.bases], dtype=np.int64)
        before = None if start is None else self._levels(start)
        levels = most if before is None else np.minimum(most, before + MORE_FUNCTIONS)
        return self._fit(x, y, weights, levels, *beginning(start))

    def refit(self, x: Array, y: Array, weights: Array, start: Mechanism) -> AdditiveNoise:
        """See :class:`RowFamily`: as bent, and with as many Gaussians, as before."""
        assert isinstance(start, AdditiveNoise)
        levels = self._levels(start)
        if levels is None:
            return self.fit(x, y, weights, start)
        return self._fit(x, y, weights, levels, as_shape(start.noise), 0, choose=False)

    def _levels(self, start: Mechanism) -> NDArray[np.int64] | None:
        """How much every parent bends in a mechanism, if it is one of these parents."""
        p = len(self.bases)
        if isinstance(start, LinearMechanism):
            return np.ones(p, dtype=np.int64) if start.parameters.size == 1 + p else None
        if not isinstance(start, AdditiveMechanism) or start.levels.size != p:
            return None
        _, knots, _ = _parts(start.parameters, p)
        same = all(np.array_equal(a, basis.knots) for a, basis in zip(knots, self.bases, strict=True))
        return start.levels if same else None

    def _fit(
        self,
        x: Array,
        y: Array,
        weights: Array,
        levels: NDArray[np.int64],
        shape: Array,
        reach: int,
        *,
        choose: bool = True,
    ) -> AdditiveNoise:
        """Curves with at most these levels; ``shape`` and ``reach`` are those of :func:`.choose_shape`."""
        weights, p = np.ascontiguousarray(weights), len(self.bases)
        if (levels == 1).all():
            rows = np.column_stack([np.ones(len(y)), x, y])
            fit = fit_rows(rows, weights, shape, reach, ROW_TURNS)
            return LinearMechanism(fit.coefficients, Noise(*fit.shape), growth=fit.growth)
        knots = np.stack([basis.knots for basis in self.bases])
        rotations = np.stack([basis.rotation for basis in self.bases])
        rows = _rotated(expand(np.ascontiguousarray(x), knots), rotations, y)
        if choose:
            levels, shape = _choose(rows, weights, levels, shape, reach)
            if (levels == 1).all():
                return self._fit(x, y, weights, levels, shape, 0)
        picked = _columns(levels)
        fit = fit_rows(np.ascontiguousarray(rows[:, picked]), weights, shape, 0, ROW_TURNS)
        noise = Noise(*fit.shape)
        n_free = LinearMechanism(fit.coefficients, noise, growth=fit.growth).n_parameters
        full = np.zeros(1 + p * FUNCTIONS)
        full[picked[:-1]] = fit.coefficients
        curves = np.einsum("pab,pb->pa", rotations, full[1:].reshape(p, FUNCTIONS))
        parameters = np.concatenate([levels, knots.ravel(), full[:1], curves.ravel()])
        return AdditiveMechanism(parameters, noise, n_free, fit.growth)


def _columns(levels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Columns of the rows that hold the constant, so many functions of every parent, and the values."""
    own = [1 + a * FUNCTIONS + np.arange(level) for a, level in enumerate(levels.tolist())]
    return np.concatenate([[0], *own, [1 + levels.size * FUNCTIONS]]).astype(np.int64)


@njit
def _rotated(functions, rotations, y):  # type: ignore[no-untyped-def]
    """Ones, the functions of every parent with the smoothest first, and values, ``[n, 1 + p L + 1]``."""
    n, p, length = y.shape[0], rotations.shape[0], rotations.shape[1]
    rows = np.empty((n, 2 + p * length))
    rows[:, 0] = 1.0
    rows[:, 1 + p * length] = y
    for a in range(p):
        own = slice(a * length, (a + 1) * length)
        rows[:, 1 + a * length : 1 + (a + 1) * length] = (
            np.ascontiguousarray(functions[:, own]) @ rotations[a]
        )
    return rows


def _choose(
    rows: Array, weights: Array, levels: NDArray[np.int64], shape: Array, reach: int
) -> tuple[NDArray[np.int64], Array]:
    """How much every parent bends, and the shape of the noise: the most flexible mean leaves the purest noise."""
    picked = _columns(levels)
    some = rows if picked.size == rows.shape[1] else np.ascontiguousarray(rows[:, picked])
    fit = fit_rows(some, weights, shape, reach, 1)
    gram = squares_of_fit(some, weights, fit)
    price = 0.5 * np.log(max(float(weights.sum()), 2.0))
    full = np.zeros((rows.shape[1], rows.shape[1]))
    full[np.ix_(picked, picked)] = gram
    return choose_levels(full, levels, np.ones_like(levels), FUNCTIONS, price), fit.shape
