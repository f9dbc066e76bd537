r"""Noise distributions: the exogenous part :math:`\varepsilon_j` of a structural equation.

Each family is a small frozen value with natural parameters, its exact mean and variance, a sampler that takes
a generator, and a log-density. A new family is one new class; an entry in `NOISE_FAMILIES` makes it available
to `latentdo.scm.simulate` by name.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from math import sqrt
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
from scipy import stats

FloatArray = npt.NDArray[np.float64]

ATOM_STD = 1e-6
"""Standard deviation of the narrow Gaussian that stands for a point mass where a density is asked for."""


class Noise(ABC):
    """A univariate distribution that can be sampled and evaluated."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """Exact mean; ``nan`` if it does not exist."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """Exact variance; ``inf`` or ``nan`` if it is not finite."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw ``n`` independent values, shape ``[n]``."""

    @abstractmethod
    def log_density(self, values: FloatArray) -> FloatArray:
        """Log-density at ``values``, elementwise; ``-inf`` outside the support."""

    def __str__(self) -> str:
        parameters: Any = self  # families are dataclasses, which the type of this class does not say
        shown = ", ".join(f"{item.name}={getattr(self, item.name):.4g}" for item in fields(parameters))
        return f"{type(self).__name__}({shown})"


class _FromScipy(Noise):
    """Noise that is a distribution of scipy with some parameters."""

    distribution: ClassVar[stats.rv_continuous]

    def __post_init__(self) -> None:
        _require_finite(self, "loc")
        _require_positive(self, *(item.name for item in fields(cast("Any", self)) if item.name != "loc"))

    def _parameters(self) -> dict[str, float]:
        """Parameters by scipy's names."""
        return {item.name: getattr(self, item.name) for item in fields(cast("Any", self))}

    @property
    def mean(self) -> float:
        """Exact mean; ``nan`` if it does not exist."""
        return float(self.distribution.mean(**self._parameters()))

    @property
    def variance(self) -> float:
        """Exact variance; ``inf`` or ``nan`` if it is not finite."""
        return float(self.distribution.var(**self._parameters()))

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw ``n`` independent values, shape ``[n]``."""
        return np.asarray(self.distribution.rvs(**self._parameters(), size=n, random_state=rng))

    def log_density(self, values: FloatArray) -> FloatArray:
        """Log-density at ``values``, elementwise; ``-inf`` outside the support."""
        return np.asarray(self.distribution.logpdf(values, **self._parameters()))


@dataclass(frozen=True)
class Gaussian(_FromScipy):
    """Normal distribution with mean ``loc`` and standard deviation ``scale``.

    Examples
    --------
    >>> Gaussian(loc=2.0, scale=3.0).variance
    9.0
    """

    loc: float = 0.0
    scale: float = 1.0
    distribution: ClassVar = stats.norm


@dataclass(frozen=True)
class StudentT(_FromScipy):
    """Heavy tails: ``loc`` plus ``scale`` times a t variable, whose variance is ``df / (df - 2)``.

    With ``df <= 2`` the variance is not finite, with ``df <= 1`` there is no mean either.
    """

    df: float = 5.0
    loc: float = 0.0
    scale: float = 1.0
    distribution: ClassVar = stats.t

    @property
    def mean(self) -> float:
        """Exact mean; ``nan`` if it does not exist (scipy says infinity)."""
        return float(self.loc) if self.df > 1 else float("nan")


@dataclass(frozen=True)
class Laplace(_FromScipy):
    """Double exponential with centre ``loc``; its variance is ``2 * scale**2``."""

    loc: float = 0.0
    scale: float = 1.0
    distribution: ClassVar = stats.laplace


@dataclass(frozen=True)
class Exponential(_FromScipy):
    """Skewed to the right: ``loc`` plus an exponential variable with mean ``scale``."""

    scale: float = 1.0
    loc: float = 0.0
    distribution: ClassVar = stats.expon


@dataclass(frozen=True)
class Gamma(_FromScipy):
    """Skewed to the right: ``loc`` plus a gamma variable; its skewness is ``2 / sqrt(shape)``."""

    shape: float = 2.0
    scale: float = 1.0
    loc: float = 0.0
    distribution: ClassVar = stats.gamma

    def _parameters(self) -> dict[str, float]:
        return {"a": self.shape, "loc": self.loc, "scale": self.scale}


@dataclass(frozen=True)
class Uniform(_FromScipy):
    """Uniform distribution on ``[low, high]``."""

    low: float = -1.0
    high: float = 1.0
    distribution: ClassVar = stats.uniform

    def __post_init__(self) -> None:
        _require_finite(self, "low", "high")
        if not self.low < self.high:
            raise ValueError(f"Uniform: low must be below high, got low={self.low!r}, high={self.high!r}")

    def _parameters(self) -> dict[str, float]:
        return {"loc": self.low, "scale": self.high - self.low}


@dataclass(frozen=True)
class PointMass(Noise):
    """No noise at all: always ``value``. This is what an atomic intervention leaves."""

    value: float = 0.0

    def __post_init__(self) -> None:
        _require_finite(self, "value")

    @property
    def mean(self) -> float:
        """The value."""
        return float(self.value)

    @property
    def variance(self) -> float:
        """Zero."""
        return 0.0

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:  # noqa: ARG002
        """Return the value ``n`` times."""
        return np.full(n, float(self.value))

    def log_density(self, values: FloatArray) -> FloatArray:
        """Log-density of a Gaussian of standard deviation `ATOM_STD` around the value.

        A point mass has no density. Where one is needed (assigning rows to regimes) this stands in for it:
        narrow enough to win wherever the value is hit, wide enough to survive rounding.
        """
        return Gaussian(self.value, ATOM_STD).log_density(values)


NOISE_FAMILIES: dict[str, Callable[[float], Noise]] = {
    "gaussian": lambda std: Gaussian(0.0, std),
    "student": lambda std: StudentT(5.0, 0.0, std * sqrt(3 / 5)),
    "uniform": lambda std: Uniform(-sqrt(3) * std, sqrt(3) * std),
    "laplace": lambda std: Laplace(0.0, std / sqrt(2)),
    "exponential": lambda std: Exponential(std, loc=-std),
    "gamma": lambda std: Gamma(2.0, std / sqrt(2), loc=-sqrt(2) * std),
}
"""Name to family with mean zero, as a function of its standard deviation."""


def centred_noise(family: str, variance: float) -> Noise:
    """Noise of a named family with mean zero and the given variance.

    Examples
    --------
    >>> centred_noise("exponential", 4.0)
    Exponential(scale=2.0, loc=-2.0)
    """
    if family not in NOISE_FAMILIES:
        raise ValueError(f"noise={family!r} is unknown: choose one of {', '.join(sorted(NOISE_FAMILIES))}")
    if not (np.isfinite(variance) and variance > 0):
        raise ValueError(f"noise variance must be a positive number, got {variance!r}")
    return NOISE_FAMILIES[family](sqrt(variance))


def _require_finite(noise: Noise, *names: str) -> None:
    for name in names:
        if not np.isfinite(getattr(noise, name)):
            raise ValueError(f"{type(noise).__name__}: {name} must be a finite number, got {noise!r}")


def _require_positive(noise: Noise, *names: str) -> None:
    for name in names:
        if not (np.isfinite(getattr(noise, name)) and getattr(noise, name) > 0):
            raise ValueError(f"{type(noise).__name__}: {name} must be a positive number, got {noise!r}")
