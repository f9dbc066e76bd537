r"""Smooth curves: a natural cubic spline for every parent, summed, plus noise of any shape.

.. math:: f(x) = c + \sum_i \sum_{m=1}^{L} b_{im} N_{im}(x_i)

with :math:`N_{i1}(x) = x` and knots at quantiles of the parent. A line is the case of one function per parent, and is
returned as one; evidence chooses among lines and two degrees of bending, for all parents of a variable alike.
"""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from latentdo.compilation import njit
from latentdo.model.mechanisms.any_noise import MOST_COMPONENTS, AnyNoise, Shaped, fit_rows
from latentdo.model.mechanisms.base import AdditiveNoise, Array, Mechanism
from latentdo.model.mechanisms.family import MechanismFamily, evidence
from latentdo.model.mechanisms.noise import Noise

LEVELS: Final = (3, 5)
"""Functions per parent that are tried beside lines."""

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
        found: list[AdditiveNoise] = [AnyNoise.fit(x, y, weights, start)]
        for level in LEVELS if x.shape[1] else ():
            knots = np.quantile(x, np.linspace(EDGE, 1.0 - EDGE, level + 1), axis=0).T
            if (np.diff(knots, axis=1) <= 0.0).any():
                break  # too few different values for so many knots
            rows = np.column_stack([np.ones(len(y)), expand(x, knots), y])
            coefficients, shape = fit_rows(rows, weights, MOST_COMPONENTS)
            noise = Noise(*shape)
            parameters = np.concatenate([[level], knots.ravel(), coefficients])
            found.append(cls(parameters, noise, coefficients.size + noise.n_parameters))
        return max(found, key=lambda one: evidence(one, x, y, weights))


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
            last = max(u - 1.0, 0.0) ** 3
            before = (max(u - place[level - 1], 0.0) ** 3 - last) / (1.0 - place[level - 1])
            for m in range(level - 1):
                bend = (max(u - place[m], 0.0) ** 3 - last) / (1.0 - place[m])
                out[i, a * level + m + 1] = bend - before
    return out
