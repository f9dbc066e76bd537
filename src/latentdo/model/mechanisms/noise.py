"""Noise of any shape: what a mechanism leaves over, as a mixture of Gaussians, often of one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from latentdo.compilation import njit, vectorised
from latentdo.model.transcendental import LOWEST, fast_exp, fast_log

Array = NDArray[np.float64]

LOG_2PI = float(np.log(2.0 * np.pi))

VARIANCE_FLOOR = 1e-12
"""Smallest noise variance of a standardised variable. Mixtures and atomic interventions have an unbounded likelihood;
deep graphs of the paper's benchmark have noise down to 1e-11, and float64 moments round at about 1e-15. With 1e-14
lines lost an edge of a small atomic table (a test has it); networks had 1e-14 before, and find the same with this."""

ROW = 32
"""Gaussians that stand side by side in noise with sharp ends: 12 nats short of an exponential density on 3000 rows; 24
are 21 short, and 48, which take half as long again, 5."""

STRAYS = 0.002
"""Share of noise with sharp ends that lies anywhere: rows of regimes that are still unborn, and errors of fitted
values, must not make a sharp end impossible. Costs six nats on 3000 rows without strays."""

BLOCK = 256
"""Values at which a density is computed at a time, so that what is needed of them stays in the fastest memory."""

IMPOSSIBLE = -1e300
"""Log-density of a value so far out that its square is infinite."""

UNREACHED = 1e-280
"""Density below which a sum of exponentials that are cut off at their smallest says nothing."""

ROUNDING = 1e-9
"""How far numbers that were made equal may be from each other."""

SUM_TOLERANCE = 1e-6
"""How far probabilities that must sum to one may be from it: far above rounding, far below what anybody would read."""


@vectorised
def fill_shares(values, shape, in_row, shares, density):  # type: ignore[no-untyped-def]
    """Fill ``shares [c, n]`` with the probabilities that values came from each Gaussian, and their log-density ``[n]``.

    The rows of ``shape [3, c]`` are weights, means and variances. Those of a row of Gaussians do not sum to one: the
    rest is the probability of a stray.
    """
    n, c = values.shape[0], shape.shape[1]
    density[:] = IMPOSSIBLE
    for a in range(c):
        level, mean = np.log(shape[0, a]) - 0.5 * (LOG_2PI + np.log(shape[2, a])), shape[1, a]
        half = 0.5 / shape[2, a]
        for i in range(n):
            off = values[i] - mean
            term = level - off * off * half
            shares[a, i] = term
            density[i] = max(density[i], term)
    total = np.zeros(n)
    for a in range(c):
        for i in range(n):
            part = fast_exp(max(shares[a, i] - density[i], LOWEST))
            shares[a, i] = part
            total[i] += part
    for i in range(n):
        density[i] += fast_log(total[i])
        total[i] = 1.0 / total[i]
    if in_row:
        _add_strays(values, shape, density, total)
    for a in range(c):
        for i in range(n):
            shares[a, i] *= total[i]


@vectorised
def _add_strays(values, shape, density, scale):  # type: ignore[no-untyped-def]
    """Add strays to a density, in place: a Gaussian as wide as half of the row, around its middle.

    ``scale`` is multiplied by the probability that a value is none.
    """
    last = shape.shape[1] - 1
    width, middle = 0.5 * (shape[1, last] - shape[1, 0]), 0.5 * (shape[1, 0] + shape[1, last])
    level, others = np.log(STRAYS / width) - 0.5 * LOG_2PI, np.log1p(-STRAYS)
    for i in range(values.shape[0]):
        off = (values[i] - middle) / width
        stray, own = max(level - 0.5 * off * off, IMPOSSIBLE), density[i] + others
        top = max(own, stray)
        density[i] = top + fast_log(1.0 + fast_exp(max(min(own, stray) - top, LOWEST)))
        scale[i] *= fast_exp(max(own - density[i], LOWEST))


@njit
def log_density(residual, weights, means, variances, in_row):  # type: ignore[no-untyped-def]
    """Logarithm of the density of a mixture of Gaussians, free or in a row, at residuals, ``[n]``."""
    n, c = residual.shape[0], weights.shape[0]
    if c == 1:
        level = np.log(weights[0]) - 0.5 * (LOG_2PI + np.log(variances[0]))
        return level - 0.5 * (residual - means[0]) ** 2 / variances[0]
    shape = np.empty((3, c))
    shape[0], shape[1], shape[2] = weights, means, variances
    density = np.empty(n)
    if in_row:
        _fill_density_of_row(residual, shape, density)
        return density
    shares = np.empty((c, BLOCK))
    for first in range(0, n, BLOCK):
        block = slice(first, min(first + BLOCK, n))
        fill_shares(residual[block], shape, False, shares, density[block])
    return density


@vectorised
def _fill_density_of_row(values, shape, density):  # type: ignore[no-untyped-def]
    """Fill the log-density of a row of Gaussians with its strays, ``[n]``.

    Where no Gaussian of the row reaches, strays decide: so their densities can be added as they are.
    """
    n, total, scale = values.shape[0], np.empty(BLOCK), np.empty(BLOCK)
    for first in range(0, n, BLOCK):
        some, found = values[first : min(first + BLOCK, n)], density[first : min(first + BLOCK, n)]
        total[:] = 0.0
        for a in range(shape.shape[1]):
            level = np.log(shape[0, a]) - 0.5 * (LOG_2PI + np.log(shape[2, a]))
            mean, half = shape[1, a], 0.5 / shape[2, a]
            for i in range(some.shape[0]):
                off = some[i] - mean
                total[i] += fast_exp(max(level - off * off * half, LOWEST))
        for i in range(some.shape[0]):
            found[i] = fast_log(total[i]) if total[i] > UNREACHED else IMPOSSIBLE
        _add_strays(some, shape, found, scale)


_LARGEST = 1e50  # of standardised variables; squares of what is far out then stay finite


@dataclass(frozen=True, eq=False)
class Noise:
    """Density of what a mechanism leaves over.

    Parameters
    ----------
    weights, means, variances : ndarray [c]
        Of its components.
    """

    weights: Array
    means: Array
    variances: Array

    @classmethod
    def gaussian(cls, variance: float) -> Self:
        """One component around zero."""
        return cls(np.ones(1), np.zeros(1), np.array([variance]))

    @property
    def n_parameters(self) -> int:
        """Free parameters beyond the mechanism's own constant."""
        if self.is_row:
            return 1 if self.is_flat else 3
        return 3 * self.weights.size - 2

    @cached_property
    def is_row(self) -> bool:
        """Whether the components stand side by side, in order: noise with a sharp end, whose weights follow a law.

        The law has a width, and two numbers for its form unless it is flat; see :mod:`.shapes`.
        """
        if self.weights.size != ROW:
            return False
        widths = np.sqrt(self.variances)
        off = np.diff(self.means) - widths[1:] - widths[:-1]
        return bool((np.abs(off) < ROUNDING * widths.sum()).all())

    @cached_property
    def is_flat(self) -> bool:
        """Whether the components stand side by side and no part of the row is denser: nearly uniform noise."""
        density = self.weights / np.sqrt(self.variances)
        return self.is_row and bool(np.ptp(density) < ROUNDING * density[0])

    @property
    def is_gaussian(self) -> bool:
        """Whether there is one component, around zero."""
        return self.weights.size == 1 and self.means[0] == 0.0

    @property
    def mean(self) -> float:
        """Mean of the whole; zero for one Gaussian, but not in general."""
        weights, means, _ = self._all()
        return float(weights @ means / weights.sum())

    @property
    def variance(self) -> float:
        """Variance of the whole."""
        weights, means, variances = self._all()
        share = weights / weights.sum()
        return float(share @ (variances + (means - self.mean) ** 2))

    def _all(self) -> tuple[Array, Array, Array]:
        """Weights, means and variances of all Gaussians, that of strays included."""
        if not self.is_row:
            return self.weights, self.means, self.variances
        ends = self.means[[0, -1]]
        return (
            np.append((1.0 - STRAYS) * self.weights / self.weights.sum(), STRAYS),
            np.append(self.means, ends.mean()),
            np.append(self.variances, (0.5 * np.ptp(ends)) ** 2),
        )

    def log_joint(self, residual: Array) -> Array:
        """``log p(residual, component)``, ``[n, c]``."""
        centred = residual[:, None] - self.means
        return np.asarray(
            np.log(self.weights) - 0.5 * (LOG_2PI + np.log(self.variances) + centred**2 / self.variances)
        )

    def log_density(self, residual: Array) -> Array:
        """``log p(residual)``, ``[n]``."""
        return np.asarray(log_density(residual, self.weights, self.means, self.variances, self.is_row))

    def below(self, residual: Array) -> Array:
        """Probability of less than ``residual``, ``[n]``."""
        weights, means, variances = self._all()
        found = np.zeros(len(residual))
        for weight, mean, variance in zip(weights / weights.sum(), means, variances, strict=True):
            found += weight * ndtr((residual - mean) / np.sqrt(variance))
        return found

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Samples ``[n]``."""
        if self.weights.size == 1:
            return np.asarray(self.means[0] + np.sqrt(self.variances[0]) * rng.standard_normal(n))
        weights, means, variances = self._all()
        component = rng.choice(weights.size, size=n, p=weights / weights.sum())
        return np.asarray(means[component] + np.sqrt(variances[component]) * rng.standard_normal(n))

    def to_array(self) -> Array:
        """All numbers, ``[3 c]``."""
        return np.concatenate([self.weights, self.means, self.variances])

    @classmethod
    def from_array(cls, flat: Array) -> Self:
        """Undo :meth:`to_array`; what is no density is a :class:`ValueError`."""
        if flat.size == 0 or flat.size % 3:
            raise ValueError(
                f"noise cannot have {flat.size} numbers: there are three for each of its Gaussians"
            )
        weights, means, variances = flat.reshape(3, -1)
        if not (
            (weights > 0.0).all()
            and abs(weights.sum() - 1.0) < SUM_TOLERANCE
            and np.isfinite(flat).all()
            and ((variances > 1.0 / _LARGEST) & (variances < _LARGEST)).all()
        ):
            raise ValueError("a variance or a weight of the noise is not such as a fit gives")
        return cls(weights, means, variances)
