"""A variable of a structural causal model: its mechanism and its noise."""

from dataclasses import dataclass, field

import numpy as np

from latentdo.scm.discrete import Categorical, Discrete, Held, kind_of, levels_of
from latentdo.scm.effects import Logits
from latentdo.scm.mechanisms import AdditiveMechanism, Heteroscedastic, Linear, Mechanism
from latentdo.scm.noise import FloatArray, Gaussian, Noise


@dataclass(frozen=True)
class Variable:
    """One structural equation.

    Parameters
    ----------
    mechanism
        How the variable depends on its parents; by default it has none.
    noise
        Distribution of its own noise; by default standard normal. With a `Discrete` distribution the variable is
        binary, a count or a category, and the mechanism moves it on the scale of its link.

    Examples
    --------
    >>> Variable(Linear({"rain": 0.8}), Gaussian(scale=0.5)).formula()
    '0.8 rain + e,  e ~ Gaussian(loc=0, scale=0.5)'
    >>> from latentdo.scm import Poisson
    >>> Variable(Linear({"rain": 0.8}), Poisson(3.0)).formula()
    'Poisson(rate=3), log-rate + 0.8 rain'
    """

    mechanism: Mechanism = field(default_factory=Linear)
    noise: Noise = field(default_factory=Gaussian)

    def __post_init__(self) -> None:
        for value, kind, example in (
            (self.mechanism, Mechanism, "Linear({...})"),
            (self.noise, Noise, "Gaussian()"),
        ):
            if not isinstance(value, kind):
                name = kind.__name__.lower()
                raise TypeError(f"the {name} must be a {kind.__name__} such as {example}, got {value!r}")
        if isinstance(self.noise, Discrete) and not isinstance(self.mechanism, AdditiveMechanism):
            raise TypeError(
                f"{self.noise} needs a mechanism without noise of its own such as Effects({{...}}), "
                f"got {self.mechanism.formula()}"
            )
        if isinstance(self.noise, Categorical) and self.parents:
            if not isinstance(self.mechanism, Logits) or self.mechanism.levels != self.noise.levels:
                levels = ", ".join(self.noise.levels)
                raise TypeError(
                    f"{self.noise} needs Logits with one signal for each of {levels}, in this order"
                )
        elif isinstance(self.mechanism, Logits) and not isinstance(self.noise, Categorical | Held):
            raise TypeError(f"Logits are for Categorical variables, got {self.noise}")

    @property
    def kind(self) -> str:
        """One of ``"continuous"``, ``"binary"``, ``"count"`` and ``"categorical"``."""
        return kind_of(self.noise)

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels of a categorical variable, in order; none for all others."""
        return levels_of(self.noise)

    @property
    def is_linear(self) -> bool:
        """Whether its mean is a weighted sum of its parents; a discrete variable then has none."""
        return isinstance(self.mechanism, Linear) and not (isinstance(self.noise, Discrete) and self.parents)

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the parents."""
        return self.mechanism.parents

    def formula(self) -> str:
        """Right-hand side of the structural equation, and the distribution of its noise ``e``."""
        if isinstance(self.noise, Discrete):
            signal = self.mechanism.formula().removesuffix("e").removesuffix(" + ")
            return f"{self.noise}, {self.noise.link} + {signal}" if signal else f"{self.noise}"
        return f"{self.mechanism.formula()},  e ~ {self.noise}"

    def sample(
        self, parents: FloatArray, rng: np.random.Generator, offset: FloatArray | None = None
    ) -> FloatArray:
        """Draw the variable given ``parents [n, n_parents]``; returns ``[n]``.

        An ``offset [n]`` is added to the signal of a count: the logarithm of what its row was exposed to.
        """
        if isinstance(self.noise, Discrete):
            return self.noise.sample_given(rng, self._signal(parents, offset))
        return self.mechanism(parents, self.noise.sample(rng, parents.shape[0]))

    def log_density(
        self, values: FloatArray, parents: FloatArray, offset: FloatArray | None = None
    ) -> FloatArray:
        r"""Exact :math:`\log p(x_j \mid x_{\mathrm{pa}(j)})` unless the noise goes through the mechanism; ``[n]``.

        Of a discrete variable it is the logarithm of a probability.
        """
        if isinstance(self.noise, Discrete):
            return self.noise.log_probability(values, self._signal(parents, offset))
        if isinstance(self.mechanism, Heteroscedastic):
            location, spread = self.mechanism.location_and_spread(parents)
            return np.asarray(self.noise.log_density((values - location) / spread) - np.log(spread))
        if not isinstance(self.mechanism, AdditiveMechanism):
            raise NotImplementedError(
                f"the density of {self.mechanism.formula()} is not available, because the noise goes through "
                "the mechanism; use an additive mechanism (linear or nonlinear) where densities are needed"
            )
        return self.noise.log_density(values - self.mechanism.location(parents))

    def _signal(self, parents: FloatArray, offset: FloatArray | None) -> FloatArray:
        assert isinstance(self.mechanism, AdditiveMechanism)  # as checked above
        signal = self.mechanism.location(parents)
        return signal if offset is None else signal + offset


def as_variable(name: str, value: object) -> Variable:
    """Read the shorthands of ``SCM({name: value})``; ``name`` is for the error message."""
    if isinstance(value, Variable):
        return value
    if isinstance(value, Noise):
        return Variable(noise=value)
    if isinstance(value, Mechanism):
        return Variable(value)
    if isinstance(value, tuple) and len(value) == 2:
        try:
            return Variable(*value)
        except TypeError as error:
            raise TypeError(f"variable {name!r}: {error}") from None
    raise TypeError(
        f"variable {name!r}: give a Variable, a Noise (no parents), a Mechanism (standard normal noise), "
        f"or a pair (mechanism, noise), got {value!r}"
    )
