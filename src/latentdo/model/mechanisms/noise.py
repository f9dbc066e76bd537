"""Noise of any shape: what a mechanism leaves over, as a mixture of Gaussians, often of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from latentdo.compilation import njit

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

NEGLIGIBLE = -25.0
"""Logarithm of a share, 1e-11, that changes no sum: nobody need compute it, and of a row's most are that small."""

ROUNDING = 1e-9
"""How far numbers that were made equal may be from each other."""

SUM_TOLERANCE = 1e-6
"""How far probabilities that must sum to one may be from it: far above rounding, far below what anybody would read."""


@njit
def fill_terms(value, level, means, variances, in_row, terms):  # type: ignore[no-untyped-def]
    """Fill ``terms [c]`` with the logarithms of the densities of the Gaussians at a value, as far as they matter.

    ``level [c]`` are those at the means, weights included, up to a constant. Of Gaussians in a row, in ascending order,
    only some neighbours matter. Returns the range of those that do, and the largest term.
    """
    c = level.shape[0]
    top = -np.inf
    if not in_row:
        for a in range(c):
            off = value - means[a]
            terms[a] = level[a] - 0.5 * off * off / variances[a]
            top = max(top, terms[a])
        return 0, c, top
    first, last = 0, c - 1
    while last - first > 1:
        middle = (first + last) // 2
        if means[middle] > value:
            last = middle
        else:
            first = middle
    # Outwards to both sides, as long as terms matter, or rise: of a value far out, the nearest is not the largest.
    before = -np.inf
    while last < c:
        off = value - means[last]
        terms[last] = level[last] - 0.5 * off * off / variances[last]
        top = max(top, terms[last])
        if terms[last] < top + NEGLIGIBLE and terms[last] < before:
            break
        before = terms[last]
        last += 1
    before = -np.inf
    while first >= 0:
        off = value - means[first]
        terms[first] = level[first] - 0.5 * off * off / variances[first]
        top = max(top, terms[first])
        if terms[first] < top + NEGLIGIBLE and terms[first] < before:
            break
        before = terms[first]
        first -= 1
    return first + 1, last, top


@njit
def stray_term(value, means):  # type: ignore[no-untyped-def]
    """Logarithm of the density of strays at a value: a Gaussian as wide as half of the row, around its middle."""
    c = means.shape[0]
    width = 0.5 * (means[c - 1] - means[0])
    off = (value - 0.5 * (means[0] + means[c - 1])) / width
    return np.log(STRAYS / width) - 0.5 * (LOG_2PI + off * off)


@njit
def with_strays(log_density, value, means):  # type: ignore[no-untyped-def]
    """Log-density of a row of Gaussians with its strays at a value, from that of the row alone."""
    own, stray = log_density + np.log1p(-STRAYS), stray_term(value, means)
    top = max(own, stray)
    return top + np.log1p(np.exp(min(own, stray) - top)) if top > -np.inf else top


@njit
def log_density(residual, weights, means, variances, in_row):  # type: ignore[no-untyped-def]
    """Logarithm of the density of a mixture of Gaussians, free or in a row, at residuals, ``[n]``."""
    level = np.log(weights) - 0.5 * (LOG_2PI + np.log(variances))
    density, terms = np.empty(residual.shape[0]), np.empty(weights.shape[0])
    if weights.shape[0] == 1:
        return level[0] - 0.5 * (residual - means[0]) ** 2 / variances[0]
    if in_row:
        for i in range(residual.shape[0]):
            first, last, top = fill_terms(residual[i], level, means, variances, in_row, terms)
            density[i] = with_strays(_log_sum(terms, first, last, top), residual[i], means)
        return density
    halves = 0.5 / variances
    for i in range(residual.shape[0]):  # fill_terms, in place: calls would take most of the time
        top = -np.inf
        for a in range(terms.shape[0]):
            off = residual[i] - means[a]
            terms[a] = level[a] - off * off * halves[a]
            top = max(top, terms[a])
        density[i] = _log_sum(terms, 0, terms.shape[0], top)
    return density


@njit
def _log_sum(terms, first, last, top):  # type: ignore[no-untyped-def]
    """Logarithm of a sum of exponentials, the largest of which is known."""
    if top == -np.inf:
        return top
    total = 0.0
    for a in range(first, last):
        if terms[a] - top > NEGLIGIBLE:
            total += np.exp(terms[a] - top)
    return top + np.log(total)


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

    @property
    def is_row(self) -> bool:
        """Whether the components stand side by side, in order: noise with a sharp end, whose weights follow a law.

        The law has a width, and two numbers for its form unless it is flat; see :mod:`.shapes`.
        """
        if self.weights.size != ROW:
            return False
        widths = np.sqrt(self.variances)
        off = np.diff(self.means) - widths[1:] - widths[:-1]
        return bool((np.abs(off) < ROUNDING * widths.sum()).all())

    @property
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
