r"""Smooth curves: a natural cubic spline for every parent, summed, plus noise of any shape.

.. math:: f(x) = c + \sum_i \sum_{m=1}^{L} b_{im} N_{im}(x_i)

with :math:`N_{i1}(x) = x` and knots at quantiles of the parent. A line is the case of one function per parent, and is
returned as one; evidence chooses among lines and two degrees of bending, for all parents of a variable alike.
"""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from latentdo.compilation import njit
from latentdo.model.mechanisms.any_noise import Shaped, as_shape, beginning, fit_rows
from latentdo.model.mechanisms.base import AdditiveNoise, Array, Mechanism
from latentdo.model.mechanisms.family import MechanismFamily
from latentdo.model.mechanisms.linear import LinearMechanism
from latentdo.model.mechanisms.noise import Noise

LEVELS: Final = (5, 3)
"""Functions per parent that are tried beside lines."""

LINE: Final = 1
"""Functions per parent of a line."""

EDGE: Final = 0.03
"""Share of the rows beyond the outermost knots on either side, where curves go on as lines."""

_LARGEST = 1e50  # parameter of standardised variables; means of what is far out then stay finite


class AdditiveMechanism(AdditiveNoise, Shaped, MechanismFamily):
    """``parameters`` are the number of functions per parent, the knots of every parent, ``c``, and all ``b``."""

    family: ClassVar[str] = "additive"
    summary: ClassVar[str] = "sums of smooth curves, one per parent, with noise of any shape"

    def mean(self, x: Array) -> Array:
        """See :class:`AdditiveNoise`."""
        level, p = int(self.parameters[0]), x.shape[1]
        knots = self.parameters[1 : 1 + p * (level + 1)].reshape(p, level + 1)
        coefficients = self.parameters[1 + p * (level + 1) :]
        return np.asarray(coefficients[0] + expand(np.ascontiguousarray(x), knots) @ coefficients[1:])

    @classmethod
    def check(cls, parameters: Array, n_parents: int) -> None:
        """See :class:`AdditiveNoise`."""
        level = parameters[0] if parameters.size else 0.0
        if level not in LEVELS or parameters.size != 2 + n_parents * (2 * int(level) + 1):
            raise ValueError(f"curves of {n_parents} parents cannot have {parameters.size} parameters")
        if not (np.abs(parameters) < _LARGEST).all():
            raise ValueError("a coefficient is not such as a fit gives")
        knots = parameters[1 : 1 + n_parents * (int(level) + 1)].reshape(n_parents, -1)
        if not (np.diff(knots, axis=1) > 0.0).all():
            raise ValueError("the knots of a curve do not ascend")

    @classmethod
    def fit(cls, x: Array, y: Array, weights: Array, start: Mechanism | None = None) -> AdditiveNoise:
        """See :class:`RowFamily`."""
        # The most flexible mean leaves the purest noise: its shape serves the others.
        return cls._best(x, y, weights, (*LEVELS, LINE), *beginning(start))

    @classmethod
    def refit(cls, x: Array, y: Array, weights: Array, start: Mechanism) -> AdditiveNoise:
        """See :class:`RowFamily`: as bent, and with as many Gaussians, as before."""
        assert isinstance(start, AdditiveNoise)
        level = int(start.parameters[0]) if isinstance(start, cls) else LINE
        return cls._best(x, y, weights, (level, LINE) if level != LINE else (LINE,), as_shape(start.noise), 0)

    @classmethod
    def _best(
        cls, x: Array, y: Array, weights: Array, levels: tuple[int, ...], shape: Array, reach: int
    ) -> AdditiveNoise:
        """The level of highest evidence; ``shape`` and ``reach`` are those of :func:`.choose_shape`."""
        ones, x, weights = np.ones(len(y)), np.ascontiguousarray(x), np.ascontiguousarray(weights)
        best = -np.inf
        found: AdditiveNoise | None = None
        for level in levels if x.shape[1] else (LINE,):
            places = np.linspace(EDGE, 1.0 - EDGE, level + 1)
            knots = np.ascontiguousarray(np.quantile(x, places, axis=0).T)
            if level != LINE and (np.diff(knots, axis=1) <= 0.0).any():
                continue  # too few different values for so many knots
            functions = x if level == LINE else expand(x, knots)
            rows = np.column_stack([ones, functions, y])
            coefficients, growth, shape, value = fit_rows(rows, weights, shape, reach)
            reach = 0
            if value > best:
                noise, best = Noise(*shape), value
                grown = tuple(growth.tolist())
                found = LinearMechanism(coefficients, noise, growth=grown)
                if level != LINE:
                    n_free = found.n_parameters
                    found = cls(np.concatenate([[level], knots.ravel(), coefficients]), noise, n_free, grown)
        assert found is not None
        return found


@njit
def _cube(u):  # type: ignore[no-untyped-def]
    return u * u * u if u > 0.0 else 0.0


@njit
def expand(x, knots):  # type: ignore[no-untyped-def]
    """Values of the functions of every parent, ``[n, p L]``, for ``x [n, p]`` and ``knots [p, L + 1]``."""
    n, p = x.shape
    level = knots.shape[1] - 1
    out = np.empty((n, p * level))
    for a in range(p):
        low, width = knots[a, 0], knots[a, level] - knots[a, 0]
        place = (knots[a] - low) / width
        for i in range(n):
            u = (x[i, a] - low) / width
            out[i, a * level] = x[i, a]
            last = _cube(u - 1.0)
            before = (_cube(u - place[level - 1]) - last) / (1.0 - place[level - 1])
            for m in range(level - 1):
                bend = (_cube(u - place[m]) - last) / (1.0 - place[m])
                out[i, a * level + m + 1] = bend - before
    return out
