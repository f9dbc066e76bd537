r"""Distributions of variables that are no measurements: yes or no, counts, and categories.

Each has a level of its own, as noise has a location, and its parents move it on the scale of its link:

=====================  ===========  ==============================================================
distribution           kind         what a signal :math:`f` of the parents does
=====================  ===========  ==============================================================
`Bernoulli`            binary       is added to the log-odds
`Poisson`              count        multiplies the rate by :math:`e^f`
`NegativeBinomial`     count        multiplies the mean by :math:`e^f`; the dispersion stays
`Categorical`          categorical  one signal per level, added to the logarithm of its probability
`Held`                 any          nothing: the variable was set
=====================  ===========  ==============================================================

Values are numbers: 0 and 1, counts, or the place of a level. They are drawn by inverting the distribution function at
one uniform number per row, so that models that share a seed can be compared row by row. Densities are probabilities.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from latentdo.data.kinds import KINDS
from latentdo.scm.noise import FloatArray, Noise

CONTINUOUS, BINARY, COUNT, CATEGORICAL = KINDS


class Discrete(Noise):
    """A distribution over 0/1, counts or levels, moved by a signal on the scale of its link."""

    _kind: ClassVar[str]
    link: ClassVar[str]
    """What the signal is added to."""

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        return self._kind

    @abstractmethod
    def quantile(self, shares: FloatArray, signal: FloatArray) -> FloatArray:
        """Smallest value ``[n]`` up to which there are ``shares [n]`` of the probability, given ``signal [n]``."""

    @abstractmethod
    def log_probability(self, values: FloatArray, signal: FloatArray) -> FloatArray:
        """Log-probability of ``values [n]`` given ``signal [n]``; ``-inf`` for what cannot be."""

    def sample_given(self, rng: np.random.Generator, signal: FloatArray) -> FloatArray:
        """Draw one value per row of ``signal``."""
        return self.quantile(rng.random(len(signal)), signal)

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw ``n`` independent values at no signal, shape ``[n]``."""
        return self.sample_given(rng, np.zeros(n))

    def log_density(self, values: FloatArray) -> FloatArray:
        """Log-probability at no signal, elementwise; ``-inf`` for what cannot be."""
        values = np.asarray(values, dtype=np.float64)
        return self.log_probability(values.ravel(), np.zeros(values.size)).reshape(values.shape)


@dataclass(frozen=True)
class Bernoulli(Discrete):
    """One with ``probability``, else zero.

    Examples
    --------
    >>> print(round(Bernoulli(0.5).shifted(1.0).probability, 3))
    0.731
    """

    _kind: ClassVar[str] = BINARY
    link: ClassVar[str] = "log-odds"

    probability: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.probability < 1:
            raise ValueError(
                f"Bernoulli: probability={self.probability!r} must lie between 0 and 1; hold a variable by do(name=1)"
            )

    @property
    def mean(self) -> float:
        """The probability."""
        return float(self.probability)

    @property
    def variance(self) -> float:
        """Exact variance."""
        return float(self.probability * (1 - self.probability))

    def quantile(self, shares: FloatArray, signal: FloatArray) -> FloatArray:
        """Zero below the probability of a zero, else one."""
        return np.asarray(shares > special.expit(-special.logit(self.probability) - signal), dtype=np.float64)

    def log_probability(self, values: FloatArray, signal: FloatArray) -> FloatArray:
        """Of zeros and ones; ``-inf`` for anything else."""
        odds = special.logit(self.probability) + signal
        known = np.where(values == 1, -np.logaddexp(0.0, -odds), -np.logaddexp(0.0, odds))
        return np.where((values == 0) | (values == 1), known, -np.inf)

    def shifted(self, by: float) -> Self:
        """Return the distribution with other log-odds."""
        return replace(self, probability=float(special.expit(special.logit(self.probability) + by)))


@dataclass(frozen=True)
class Poisson(Discrete):
    """Counts of independent events; their mean and variance are ``rate``."""

    _kind: ClassVar[str] = COUNT
    link: ClassVar[str] = "log-rate"

    rate: float = 1.0

    def __post_init__(self) -> None:
        _require_positive("Poisson", rate=self.rate)

    @property
    def mean(self) -> float:
        """The rate."""
        return float(self.rate)

    @property
    def variance(self) -> float:
        """The rate."""
        return float(self.rate)

    def quantile(self, shares: FloatArray, signal: FloatArray) -> FloatArray:
        """Quantile of every row."""
        return np.asarray(stats.poisson.ppf(shares, self.rate * np.exp(signal)))

    def log_probability(self, values: FloatArray, signal: FloatArray) -> FloatArray:
        """Of non-negative integers; ``-inf`` for anything else."""
        possible, count = _counts(values)
        log_rate = np.log(self.rate) + signal
        known = count * log_rate - np.exp(log_rate) - special.gammaln(count + 1)
        return np.where(possible, known, -np.inf)

    def shifted(self, by: float) -> Self:
        """Return the distribution with the rate times ``exp(by)``."""
        return replace(self, rate=float(self.rate * np.exp(by)))


@dataclass(frozen=True)
class NegativeBinomial(Discrete):
    """Counts that vary more than a Poisson's: variance ``level + dispersion * level**2``.

    Parameters
    ----------
    level
        The mean.
    dispersion
        How much more; a Poisson has zero.
    """

    _kind: ClassVar[str] = COUNT
    link: ClassVar[str] = "log-mean"

    level: float = 1.0
    dispersion: float = 0.5

    def __post_init__(self) -> None:
        _require_positive("NegativeBinomial", level=self.level, dispersion=self.dispersion)

    @property
    def mean(self) -> float:
        """The level."""
        return float(self.level)

    @property
    def variance(self) -> float:
        """Exact variance."""
        return float(self.level + self.dispersion * self.level**2)

    def quantile(self, shares: FloatArray, signal: FloatArray) -> FloatArray:
        """Quantile of every row."""
        mean = self.level * np.exp(signal)
        return np.asarray(stats.nbinom.ppf(shares, 1 / self.dispersion, 1 / (1 + self.dispersion * mean)))

    def log_probability(self, values: FloatArray, signal: FloatArray) -> FloatArray:
        """Of non-negative integers; ``-inf`` for anything else."""
        possible, count = _counts(values)
        size = 1 / self.dispersion
        log_ratio = np.log(self.level) + signal + np.log(self.dispersion)  # of the mean and the size
        total = np.logaddexp(0.0, log_ratio)
        ways = special.gammaln(count + size) - special.gammaln(size) - special.gammaln(count + 1)
        return np.where(possible, ways + count * (log_ratio - total) - size * total, -np.inf)

    def shifted(self, by: float) -> Self:
        """Return the distribution with the mean times ``exp(by)``."""
        return replace(self, level=float(self.level * np.exp(by)))


@dataclass(frozen=True)
class Categorical(Discrete):
    """One of several levels.

    Parameters
    ----------
    probabilities
        Level to probability, in the order of the levels; scaled to sum to one.

    Examples
    --------
    >>> Categorical({"liver": 2.0, "lung": 1.0, "skin": 1.0}).probabilities
    {'liver': 0.5, 'lung': 0.25, 'skin': 0.25}
    """

    _kind: ClassVar[str] = CATEGORICAL
    link: ClassVar[str] = "log-probabilities"

    probabilities: Mapping[str, float]
    _log: FloatArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.probabilities, Mapping) or len(self.probabilities) < 2:
            raise ValueError(
                f"Categorical: give a probability for each of at least two levels, got {self.probabilities!r}"
            )
        shares = np.array(list(self.probabilities.values()), dtype=np.float64)
        if not (np.isfinite(shares).all() and (shares > 0).all()):
            raise ValueError(f"Categorical: probabilities must be positive, got {self.probabilities!r}")
        shares /= shares.sum()
        object.__setattr__(self, "probabilities", dict(zip(self.probabilities, shares.tolist(), strict=True)))
        object.__setattr__(self, "_log", np.log(shares))

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels, in order."""
        return tuple(self.probabilities)

    @property
    def mean(self) -> float:
        """``nan``: levels are no numbers."""
        return float("nan")

    @property
    def variance(self) -> float:
        """``nan``: levels are no numbers."""
        return float("nan")

    def log_shares(self, signal: FloatArray) -> FloatArray:
        """Log-probability of every level, ``[n, n_levels]``; a signal ``[n]`` for all levels changes nothing."""
        moved = self._log + (signal if signal.ndim == 2 else np.zeros((len(signal), 1)))
        return np.asarray(special.log_softmax(moved, axis=1))

    def quantile(self, shares: FloatArray, signal: FloatArray) -> FloatArray:
        """Place of the level at which the probabilities add up to more than ``shares``."""
        below = np.cumsum(np.exp(self.log_shares(signal)), axis=1)[:, :-1]
        return np.asarray((shares[:, None] > below).sum(axis=1), dtype=np.float64)

    def log_probability(self, values: FloatArray, signal: FloatArray) -> FloatArray:
        """Of places of levels; ``-inf`` for anything else."""
        possible, place = _counts(values)
        possible &= place < len(self.levels)
        shares = self.log_shares(signal)
        place = np.where(possible, place, 0).astype(np.int64)
        return np.where(possible, shares[np.arange(len(shares)), place], -np.inf)

    def shifted(self, by: float) -> Self:
        """Return the distribution with higher odds of the last level."""
        return self.favouring(self.levels[-1], by)

    def favouring(self, level: str, by: float) -> Self:
        """Return the distribution with the logarithm of the odds of one level raised by ``by``."""
        return replace(
            self,
            probabilities={
                name: share * (np.exp(by) if name == level else 1.0)
                for name, share in self.probabilities.items()
            },
        )

    def __str__(self) -> str:
        return f"Categorical({', '.join(f'{name}={p:.4g}' for name, p in self.probabilities.items())})"


@dataclass(frozen=True)
class Held(Discrete):
    """A discrete variable that was set: probability one of one value.

    Parameters
    ----------
    value
        Zero or one, a count, or the place of a level.
    like
        What the variable was before.
    """

    link: ClassVar[str] = "nothing"

    value: float
    like: Discrete

    @classmethod
    def at(cls, value: float | str, like: Discrete) -> "Held":
        """Hold a variable at a value, or at the level of that name."""
        if isinstance(like, Held):
            like = like.like
        if isinstance(like, Categorical):
            if value not in like.levels:
                raise ValueError(f"{value!r} is none of its levels {', '.join(map(str, like.levels))}")
            return cls(float(like.levels.index(str(value))), like)
        number = float(value)
        if not np.isfinite(like.log_probability(np.array([number]), np.zeros(1)))[0]:
            allowed = "0 or 1" if like.kind == BINARY else "a count: an integer of at least 0"
            raise ValueError(f"{value!r} is not {allowed}")
        return cls(number, like)

    @property
    def kind(self) -> str:
        """That of the variable before."""
        return self.like.kind

    @property
    def mean(self) -> float:
        """The value; ``nan`` for a level."""
        return float("nan") if self.kind == CATEGORICAL else self.value

    @property
    def variance(self) -> float:
        """Zero; ``nan`` for a level."""
        return float("nan") if self.kind == CATEGORICAL else 0.0

    def quantile(self, shares: FloatArray, signal: FloatArray) -> FloatArray:  # noqa: ARG002
        """Return the value, for every row."""
        return np.full(len(shares), self.value)

    def log_probability(self, values: FloatArray, signal: FloatArray) -> FloatArray:  # noqa: ARG002
        """Zero at the value, else ``-inf``."""
        return np.where(values == self.value, 0.0, -np.inf)

    def shifted(self, by: float) -> Self:  # noqa: ARG002
        """Return the same: what is held does not move."""
        return self

    def __str__(self) -> str:
        levels = levels_of(self)
        return f"held at {levels[int(self.value)] if levels else f'{self.value:g}'}"


def levels_of(noise: Noise) -> tuple[str, ...]:
    """Levels of a categorical variable; none for all others."""
    if isinstance(noise, Held):
        noise = noise.like
    return noise.levels if isinstance(noise, Categorical) else ()


def kind_of(noise: Noise) -> str:
    """Kind of a variable with this noise."""
    return noise.kind if isinstance(noise, Discrete) else CONTINUOUS


def _counts(values: FloatArray) -> tuple[npt.NDArray[np.bool_], FloatArray]:
    """Which values are non-negative integers, and these; zero in place of the others."""
    possible = np.isfinite(values) & (values >= 0) & (values == np.floor(values))
    return possible, np.where(possible, values, 0.0)


def _require_positive(owner: str, **values: float) -> None:
    for name, value in values.items():
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"{owner}: {name} must be a positive number, got {value!r}")


def check_kinds(kinds: Iterable[str]) -> tuple[str, ...]:
    """Kinds as a tuple, each one of `KINDS`."""
    checked = tuple(kinds)
    for kind in checked:
        if kind not in KINDS:
            raise ValueError(f"kind {kind!r} is unknown: choose one of {', '.join(KINDS)}")
    return checked
