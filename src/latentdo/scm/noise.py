r"""Noise distributions: the exogenous part :math:`\varepsilon_j` of a structural equation.

Each family is a small frozen value with natural parameters, its exact mean and variance, a sampler that takes a
generator, and a log-density. A new family is one new class; add it to `NOISE_FAMILIES` to make it available to
`latentdo.scm.simulate` by name.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

FloatArray = npt.NDArray[np.float64]

ATOM_STD = 1e-6
"""Standard deviation of the narrow Gaussian that stands for a point mass where a density is asked for."""


def _require_finite(owner: object, **parameters: float) -> None:
    for name, value in parameters.items():
        if not np.isfinite(value):
            raise ValueError(f"{type(owner).__name__}: {name} must be a finite number, got {value!r}")


def _require_positive(owner: object, **parameters: float) -> None:
    for name, value in parameters.items():
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"{type(owner).__name__}: {name} must be a positive number, got {value!r}")


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


@dataclass(frozen=True)
class Gaussian(Noise):
    """Normal distribution with mean ``loc`` and standard deviation ``scale``.

    Examples
    --------
    >>> Gaussian(loc=2.0, scale=3.0).variance
    9.0
    """

    loc: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        _require_finite(self, loc=self.loc)
        _require_positive(self, scale=self.scale)

    @property
    def mean(self) -> float:  # noqa: D102
        return float(self.loc)

    @property
    def variance(self) -> float:  # noqa: D102
        return float(self.scale**2)

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:  # noqa: D102
        return rng.normal(self.loc, self.scale, size=n)

    def log_density(self, values: FloatArray) -> FloatArray:  # noqa: D102
        standard = (values - self.loc) / self.scale
        return np.asarray(-0.5 * standard**2 - np.log(self.scale) - 0.5 * np.log(2 * np.pi))


@dataclass(frozen=True)
class StudentT(Noise):
    """Student's t: heavy tails. ``df <= 2`` has no finite variance, ``df <= 1`` no mean.

    ``scale`` multiplies a standard t variable, whose variance is ``df / (df - 2)``.
    """

    df: float = 5.0
    loc: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        _require_finite(self, loc=self.loc)
        _require_positive(self, df=self.df, scale=self.scale)

    @property
    def mean(self) -> float:  # noqa: D102
        return float(self.loc) if self.df > 1 else float("nan")

    @property
    def variance(self) -> float:  # noqa: D102
        if self.df > 2:
            return float(self.scale**2 * self.df / (self.df - 2))
        return float("inf") if self.df > 1 else float("nan")

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:  # noqa: D102
        return np.asarray(self.loc + self.scale * rng.standard_t(self.df, size=n))

    def log_density(self, values: FloatArray) -> FloatArray:  # noqa: D102
        half = 0.5 * self.df
        standard = (values - self.loc) / self.scale
        normaliser = special.gammaln(half + 0.5) - special.gammaln(half) - 0.5 * np.log(self.df * np.pi)
        return np.asarray(normaliser - np.log(self.scale) - (half + 0.5) * np.log1p(standard**2 / self.df))


@dataclass(frozen=True)
class Uniform(Noise):
    """Uniform distribution on ``[low, high]``."""

    low: float = -1.0
    high: float = 1.0

    def __post_init__(self) -> None:
        _require_finite(self, low=self.low, high=self.high)
        if not self.low < self.high:
            raise ValueError(f"Uniform: low must be below high, got low={self.low!r}, high={self.high!r}")

    @property
    def mean(self) -> float:  # noqa: D102
        return float(0.5 * (self.low + self.high))

    @property
    def variance(self) -> float:  # noqa: D102
        return float((self.high - self.low) ** 2 / 12)

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:  # noqa: D102
        return rng.uniform(self.low, self.high, size=n)

    def log_density(self, values: FloatArray) -> FloatArray:  # noqa: D102
        inside = (values >= self.low) & (values <= self.high)
        return np.where(inside, -np.log(self.high - self.low), -np.inf)


@dataclass(frozen=True)
class Laplace(Noise):
    """Double exponential with centre ``loc``; its variance is ``2 * scale**2``."""

    loc: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        _require_finite(self, loc=self.loc)
        _require_positive(self, scale=self.scale)

    @property
    def mean(self) -> float:  # noqa: D102
        return float(self.loc)

    @property
    def variance(self) -> float:  # noqa: D102
        return float(2 * self.scale**2)

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:  # noqa: D102
        return rng.laplace(self.loc, self.scale, size=n)

    def log_density(self, values: FloatArray) -> FloatArray:  # noqa: D102
        return np.asarray(-np.abs(values - self.loc) / self.scale - np.log(2 * self.scale))


@dataclass(frozen=True)
class Gamma(Noise):
    """Skewed to the right: ``loc`` plus a gamma variable; skewness is ``2 / sqrt(shape)``."""

    shape: float = 2.0
    scale: float = 1.0
    loc: float = 0.0

    def __post_init__(self) -> None:
        _require_finite(self, loc=self.loc)
        _require_positive(self, shape=self.shape, scale=self.scale)

    @property
    def mean(self) -> float:  # noqa: D102
        return float(self.loc + self.shape * self.scale)

    @property
    def variance(self) -> float:  # noqa: D102
        return float(self.shape * self.scale**2)

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:  # noqa: D102
        return np.asarray(self.loc + rng.gamma(self.shape, self.scale, size=n))

    def log_density(self, values: FloatArray) -> FloatArray:  # noqa: D102
        standard = (values - self.loc) / self.scale
        # xlogy keeps shape == 1 (the exponential) finite at the edge of the support.
        inside = special.xlogy(self.shape - 1, np.maximum(standard, 0.0)) - standard
        normaliser = special.gammaln(self.shape) + np.log(self.scale)
        return np.where(standard >= 0, inside - normaliser, -np.inf)


@dataclass(frozen=True)
class Exponential(Noise):
    """Skewed to the right: ``loc`` plus an exponential variable with mean ``scale``."""

    scale: float = 1.0
    loc: float = 0.0

    def __post_init__(self) -> None:
        _require_finite(self, loc=self.loc)
        _require_positive(self, scale=self.scale)

    @property
    def mean(self) -> float:  # noqa: D102
        return float(self.loc + self.scale)

    @property
    def variance(self) -> float:  # noqa: D102
        return float(self.scale**2)

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:  # noqa: D102
        return np.asarray(self.loc + rng.exponential(self.scale, size=n))

    def log_density(self, values: FloatArray) -> FloatArray:  # noqa: D102
        standard = (values - self.loc) / self.scale
        return np.where(standard >= 0, -standard - np.log(self.scale), -np.inf)


@dataclass(frozen=True)
class PointMass(Noise):
    """No noise at all: always ``value``. This is what an atomic intervention leaves.

    A point mass has no density. Where one is needed (assigning rows to regimes), a Gaussian of standard deviation
    `ATOM_STD` stands in for it: narrow enough to win wherever the value is hit, wide enough to survive rounding.
    """

    value: float = 0.0

    def __post_init__(self) -> None:
        _require_finite(self, value=self.value)

    @property
    def mean(self) -> float:  # noqa: D102
        return float(self.value)

    @property
    def variance(self) -> float:  # noqa: D102
        return 0.0

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:  # noqa: ARG002, D102
        return np.full(n, float(self.value))

    def log_density(self, values: FloatArray) -> FloatArray:  # noqa: D102
        return Gaussian(self.value, ATOM_STD).log_density(values)


NOISE_FAMILIES: dict[str, Callable[[float], Noise]] = {
    "gaussian": lambda std: Gaussian(0.0, std),
    "student": lambda std: StudentT(5.0, 0.0, std * np.sqrt(3 / 5).item()),
    "uniform": lambda std: Uniform(-np.sqrt(3).item() * std, np.sqrt(3).item() * std),
    "laplace": lambda std: Laplace(0.0, std / np.sqrt(2).item()),
    "exponential": lambda std: Exponential(std, loc=-std),
    "gamma": lambda std: Gamma(2.0, std / np.sqrt(2).item(), loc=-np.sqrt(2).item() * std),
}
"""Name -> family, centred at zero, as a function of its standard deviation (Student t: 5 degrees of freedom)."""


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
    return NOISE_FAMILIES[family](float(np.sqrt(variance)))
