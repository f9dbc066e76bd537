"""Linear mechanisms: a weighted sum of the parents, or a constant, plus noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from latentdo.compilation import njit
from latentdo.model.mechanisms.base import AdditiveNoise, Array, LinearForm, Parents
from latentdo.model.mechanisms.noise import LOG_2PI

_LARGEST = 1e50  # coefficient of standardised variables; means of what is far out then stay finite


@njit
def _residuals(z, variables, parents, coefficients, starts, out):  # type: ignore[no-untyped-def]
    """Fill ``out [m, n]``; ``parents`` and ``coefficients`` (constant first) are joined, cut at ``starts``."""
    for m in range(variables.shape[0]):
        first, last = starts[m], starts[m + 1]
        for row in range(z.shape[0]):
            out[m, row] = z[row, variables[m]] - coefficients[first]
            for a in range(first + 1, last):
                out[m, row] -= coefficients[a] * z[row, parents[a]]


class LinearMechanism(AdditiveNoise):
    """``y = c + b' x + noise``; ``parameters`` are ``c`` and ``b``, or ``c`` alone: it then ignores its parents."""

    family: ClassVar[str] = "linear"

    def mean(self, x: Array) -> Array:
        """See :class:`AdditiveNoise`."""
        if self.parameters.size == 1:
            return np.full(len(x), self.parameters[0])
        return np.asarray(self.parameters[0] + x @ self.parameters[1:])

    @property
    def linear_form(self) -> LinearForm | None:
        """See :class:`Mechanism`."""
        if self.grows:
            return None  # no single variance, and noise that is not centred moves the coefficients too
        centred = self.parameters.copy()
        centred[0] += self.noise.mean
        return LinearForm(centred, self.noise.variance)

    @classmethod
    def check(cls, parameters: Array, n_parents: int) -> None:
        """See :class:`AdditiveNoise`."""
        if parameters.size not in (1, 1 + n_parents):
            raise ValueError(f"a linear mechanism of {n_parents} parents has {parameters.size} coefficients")
        if not (np.abs(parameters) < _LARGEST).all():
            raise ValueError("a coefficient is not such as a fit gives")

    @classmethod
    def log_densities(
        cls, mechanisms: Sequence[Self], z: Array, variables: Sequence[int], parents: Sequence[Parents]
    ) -> Array:
        """See :class:`Mechanism`; all residuals in one compiled pass."""
        sizes = [one.parameters.size for one in mechanisms]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        joined = np.zeros(starts[-1], dtype=np.int64)
        for first, size, inputs in zip(starts, sizes, parents, strict=False):
            joined[first + 1 : first + size] = inputs[: size - 1]
        coefficients = np.concatenate([one.parameters for one in mechanisms])
        out = np.empty((len(mechanisms), len(z)))
        _residuals(z, np.array(variables, dtype=np.int64), joined, coefficients, starts, out)
        if all(one.noise.is_gaussian and not one.grows for one in mechanisms):
            variances = np.array([one.noise.variances[0] for one in mechanisms])[:, None]
            return np.asarray(-0.5 * (LOG_2PI + np.log(variances) + out**2 / variances))
        densities = []
        for one, residual, variable in zip(mechanisms, out, variables, strict=True):
            log_scale = one.scaled(z[:, variable] - residual)
            densities.append(one.noise.log_density(residual * np.exp(-log_scale)) - log_scale)
        return np.stack(densities)
