"""Noise of any shape: what a mechanism leaves over, as a mixture of Gaussians, often of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit

Array = NDArray[np.float64]

LOG_2PI = float(np.log(2.0 * np.pi))

VARIANCE_FLOOR = 1e-12
"""Smallest noise variance of a standardised variable. Mixtures and atomic interventions have an unbounded likelihood;
deep graphs of the paper's benchmark have noise down to 1e-11, and float64 moments round at about 1e-15. With 1e-14
lines lost an edge of a small atomic table (a test has it); networks had 1e-14 before, and find the same with this."""

COMB = 32
"""Gaussians in a row that make up nearly uniform noise: 36 nats short of its density on 3000 rows; 24 are 46 short, and
six free ones 55."""

NEGLIGIBLE = -40.0
"""Logarithm of a share that is lost in the rounding of a sum: nobody need compute it, and of a comb's most are."""

ROUNDING = 1e-9
"""How far numbers that were made equal may be from each other."""

SUM_TOLERANCE = 1e-6
"""How far probabilities that must sum to one may be from it: far above rounding, far below what anybody would read."""


@njit
def _log_density(residual, weights, means, variances):  # type: ignore[no-untyped-def]
    level = np.log(weights) - 0.5 * (LOG_2PI + np.log(variances))
    density, terms = np.empty(residual.shape[0]), np.empty(weights.shape[0])
    for i in range(residual.shape[0]):
        top = -np.inf
        for c in range(weights.shape[0]):
            off = residual[i] - means[c]
            terms[c] = level[c] - 0.5 * off * off / variances[c]
            top = max(top, terms[c])
        total = 0.0
        for c in range(weights.shape[0]):
            if terms[c] - top > NEGLIGIBLE:
                total += np.exp(terms[c] - top)
        density[i] = top + np.log(total) if top > -np.inf else top
    return density


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
        return 1 if self.is_comb else 3 * self.weights.size - 2

    @property
    def is_comb(self) -> bool:
        """Whether the components stand in a row, all alike: nearly uniform noise, which has a width and no more."""
        return self.weights.size == COMB and bool(
            np.ptp(self.weights) < ROUNDING and np.ptp(self.variances) < ROUNDING * self.variances[0]
        )

    @property
    def is_gaussian(self) -> bool:
        """Whether there is one component, around zero."""
        return self.weights.size == 1 and self.means[0] == 0.0

    @property
    def mean(self) -> float:
        """Mean of the whole; zero for one Gaussian, but not in general."""
        return float(self.weights @ self.means / self.weights.sum())

    @property
    def variance(self) -> float:
        """Variance of the whole."""
        share = self.weights / self.weights.sum()
        return float(share @ (self.variances + (self.means - self.mean) ** 2))

    def log_joint(self, residual: Array) -> Array:
        """``log p(residual, component)``, ``[n, c]``."""
        centred = residual[:, None] - self.means
        return np.asarray(
            np.log(self.weights) - 0.5 * (LOG_2PI + np.log(self.variances) + centred**2 / self.variances)
        )

    def log_density(self, residual: Array) -> Array:
        """``log p(residual)``, ``[n]``."""
        return np.asarray(_log_density(residual, self.weights, self.means, self.variances))

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Samples ``[n]``."""
        if self.weights.size == 1:
            return np.asarray(self.means[0] + np.sqrt(self.variances[0]) * rng.standard_normal(n))
        component = rng.choice(self.weights.size, size=n, p=self.weights / self.weights.sum())
        return np.asarray(self.means[component] + np.sqrt(self.variances[component]) * rng.standard_normal(n))

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
