r"""Noise distributions: the exogenous part :math:`\varepsilon_j` of a structural equation.

Each family is a small frozen value with natural parameters, its exact mean and variance, a sampler that takes
a generator, and a log-density. A new family is one new class; an entry in `NOISE_FAMILIES` makes it available
to `latentdo.scm.simulate` by name.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from math import sqrt
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import signal, special

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

    @abstractmethod
    def shifted(self, by: float) -> Self:
        """Return the same shape, moved to the right."""

    def __str__(self) -> str:
        parameters: Any = self  # families are dataclasses, which the type of this class does not say
        values = ((item.name, getattr(self, item.name)) for item in fields(parameters))
        shown = (
            f"{name}={value}" if isinstance(value, Noise) else f"{name}={value:.4g}" for name, value in values
        )
        return f"{type(self).__name__}({', '.join(shown)})"


class _LocationScale(Noise):
    r"""Noise of the form :math:`\varepsilon = a + s\,\eta`: subclasses describe the standard :math:`\eta`."""

    loc: float
    scale: float

    def __post_init__(self) -> None:
        _require_finite(self, "loc")
        _require_positive(self, "scale")

    @property
    def mean(self) -> float:
        """Exact mean; ``nan`` if it does not exist."""
        return float(self.loc + self.scale * self._standard_moments()[0])

    @property
    def variance(self) -> float:
        """Exact variance; ``inf`` or ``nan`` if it is not finite."""
        return float(self.scale**2 * self._standard_moments()[1])

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw ``n`` independent values, shape ``[n]``."""
        return np.asarray(self.loc + self.scale * self._standard_sample(rng, n))

    def log_density(self, values: FloatArray) -> FloatArray:
        """Log-density at ``values``, elementwise; ``-inf`` outside the support."""
        standard = (np.asarray(values, dtype=np.float64) - self.loc) / self.scale
        return np.asarray(self._standard_log_density(standard) - np.log(self.scale))

    def shifted(self, by: float) -> Self:
        """Return the same shape, moved to the right."""
        parameters: Any = self  # families are dataclasses, which the type of this class does not say
        moved: Self = replace(parameters, loc=self.loc + by)
        return moved

    @abstractmethod
    def _standard_moments(self) -> tuple[float, float]: ...

    @abstractmethod
    def _standard_sample(self, rng: np.random.Generator, n: int) -> FloatArray: ...

    @abstractmethod
    def _standard_log_density(self, values: FloatArray) -> FloatArray: ...


@dataclass(frozen=True)
class Gaussian(_LocationScale):
    """Normal distribution with mean ``loc`` and standard deviation ``scale``.

    Examples
    --------
    >>> Gaussian(loc=2.0, scale=3.0).variance
    9.0
    """

    loc: float = 0.0
    scale: float = 1.0

    def _standard_moments(self) -> tuple[float, float]:
        return 0.0, 1.0

    def _standard_sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        return rng.standard_normal(n)

    def _standard_log_density(self, values: FloatArray) -> FloatArray:
        return np.asarray(-0.5 * values**2 - 0.5 * np.log(2 * np.pi))


@dataclass(frozen=True)
class StudentT(_LocationScale):
    """Heavy tails: ``loc`` plus ``scale`` times a t variable, whose variance is ``df / (df - 2)``.

    With ``df <= 2`` the variance is not finite, with ``df <= 1`` there is no mean either.
    """

    df: float = 5.0
    loc: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_positive(self, "df")

    def _standard_moments(self) -> tuple[float, float]:
        if self.df > 2:
            return 0.0, self.df / (self.df - 2)
        return (0.0, np.inf) if self.df > 1 else (np.nan, np.nan)

    def _standard_sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        return rng.standard_t(self.df, size=n)

    def _standard_log_density(self, values: FloatArray) -> FloatArray:
        half = 0.5 * self.df
        normaliser = special.gammaln(half + 0.5) - special.gammaln(half) - 0.5 * np.log(self.df * np.pi)
        return np.asarray(normaliser - (half + 0.5) * np.log1p(values**2 / self.df))


@dataclass(frozen=True)
class Laplace(_LocationScale):
    """Double exponential with centre ``loc``; its variance is ``2 * scale**2``."""

    loc: float = 0.0
    scale: float = 1.0

    def _standard_moments(self) -> tuple[float, float]:
        return 0.0, 2.0

    def _standard_sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        return rng.laplace(size=n)

    def _standard_log_density(self, values: FloatArray) -> FloatArray:
        return np.asarray(-np.abs(values) - np.log(2.0))


@dataclass(frozen=True)
class Exponential(_LocationScale):
    """Skewed to the right: ``loc`` plus an exponential variable with mean ``scale``."""

    scale: float = 1.0
    loc: float = 0.0

    def _standard_moments(self) -> tuple[float, float]:
        return 1.0, 1.0

    def _standard_sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        return rng.standard_exponential(n)

    def _standard_log_density(self, values: FloatArray) -> FloatArray:
        return np.where(values >= 0, -values, -np.inf)


@dataclass(frozen=True)
class Gamma(_LocationScale):
    """Skewed to the right: ``loc`` plus a gamma variable; its skewness is ``2 / sqrt(shape)``."""

    shape: float = 2.0
    scale: float = 1.0
    loc: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_positive(self, "shape")

    def _standard_moments(self) -> tuple[float, float]:
        return self.shape, self.shape

    def _standard_sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        return rng.standard_gamma(self.shape, size=n)

    def _standard_log_density(self, values: FloatArray) -> FloatArray:
        # xlogy keeps shape == 1 (the exponential) finite at the edge of the support.
        inside = special.xlogy(self.shape - 1, np.maximum(values, 0.0)) - values - special.gammaln(self.shape)
        return np.where(values >= 0, inside, -np.inf)


@dataclass(frozen=True)
class Uniform(Noise):
    """Uniform distribution on ``[low, high]``."""

    low: float = -1.0
    high: float = 1.0

    def __post_init__(self) -> None:
        _require_finite(self, "low", "high")
        if not self.low < self.high:
            raise ValueError(f"Uniform: low must be below high, got low={self.low!r}, high={self.high!r}")

    @property
    def mean(self) -> float:
        """Exact mean."""
        return float(0.5 * (self.low + self.high))

    @property
    def variance(self) -> float:
        """Exact variance."""
        return float((self.high - self.low) ** 2 / 12)

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw ``n`` independent values, shape ``[n]``."""
        return rng.uniform(self.low, self.high, size=n)

    def log_density(self, values: FloatArray) -> FloatArray:
        """Log-density at ``values``, elementwise; ``-inf`` outside the interval."""
        inside = (values >= self.low) & (values <= self.high)
        return np.where(inside, -np.log(self.high - self.low), -np.inf)

    def shifted(self, by: float) -> Self:
        """Return an interval of the same length, moved to the right."""
        return replace(self, low=self.low + by, high=self.high + by)


@dataclass(frozen=True)
class Bimodal(_LocationScale):
    """Two humps: Gaussians of standard deviation ``scale`` at ``separation`` times that on each side of ``loc``.

    The variance is ``(1 + separation**2) * scale**2``.
    """

    separation: float = 2.0
    loc: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_positive(self, "separation")

    def _standard_moments(self) -> tuple[float, float]:
        return 0.0, 1.0 + self.separation**2

    def _standard_sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        side = 1.0 - 2.0 * rng.integers(0, 2, size=n)
        return np.asarray(self.separation * side + rng.standard_normal(n))

    def _standard_log_density(self, values: FloatArray) -> FloatArray:
        left, right = (-0.5 * (values - side * self.separation) ** 2 for side in (-1, 1))
        return np.asarray(np.logaddexp(left, right) - 0.5 * np.log(8 * np.pi))


@dataclass(frozen=True)
class Autocorrelated(Noise):
    """Any noise whose draws follow one another: each row resembles the row before.

    The draws are those of ``noise``, put into an order in which their ranks follow a Gaussian autoregression;
    so every single draw is distributed as ``noise`` is, whose moments and density these are.

    Parameters
    ----------
    noise
        Distribution of a single draw.
    correlation
        Of neighbours in the underlying autoregression, between 0 and 1.
    """

    noise: Noise
    correlation: float = 0.9

    def __post_init__(self) -> None:
        if not 0 <= self.correlation < 1:
            raise ValueError(f"Autocorrelated: correlation must be at least 0 and below 1, got {self!r}")

    @property
    def mean(self) -> float:
        """Exact mean of a single draw."""
        return self.noise.mean

    @property
    def variance(self) -> float:
        """Exact variance of a single draw."""
        return self.noise.variance

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw ``n`` values, shape ``[n]``, neighbours alike."""
        values = np.sort(self.noise.sample(rng, n))
        steps = rng.standard_normal(n)
        steps[1:] *= sqrt(1 - self.correlation**2)  # the first is drawn from the stationary distribution
        path = signal.lfilter([1.0], [1.0, -self.correlation], steps)
        return np.asarray(values[np.argsort(np.argsort(path))])

    def log_density(self, values: FloatArray) -> FloatArray:
        """Log-density of a single draw, elementwise."""
        return self.noise.log_density(values)

    def shifted(self, by: float) -> Self:
        """Return the same shape, moved to the right."""
        return replace(self, noise=self.noise.shifted(by))


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

    def shifted(self, by: float) -> Self:
        """Return another value."""
        return replace(self, value=self.value + by)


NOISE_FAMILIES: dict[str, Callable[[float], Noise]] = {
    "gaussian": lambda std: Gaussian(0.0, std),
    "student": lambda std: StudentT(5.0, 0.0, std * sqrt(3 / 5)),
    "uniform": lambda std: Uniform(-sqrt(3) * std, sqrt(3) * std),
    "laplace": lambda std: Laplace(0.0, std / sqrt(2)),
    "exponential": lambda std: Exponential(std, loc=-std),
    "gamma": lambda std: Gamma(2.0, std / sqrt(2), loc=-sqrt(2) * std),
    "bimodal": lambda std: Bimodal(2.0, 0.0, std / sqrt(5)),
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
