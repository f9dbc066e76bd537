"""A variable of a structural causal model: its mechanism and its noise."""

from dataclasses import dataclass, field

import numpy as np

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
        Distribution of its own noise; by default standard normal.

    Examples
    --------
    >>> Variable(Linear({"rain": 0.8}), Gaussian(scale=0.5)).formula()
    '0.8 rain + e,  e ~ Gaussian(loc=0, scale=0.5)'
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

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the parents."""
        return self.mechanism.parents

    def formula(self) -> str:
        """Right-hand side of the structural equation, and the distribution of its noise ``e``."""
        return f"{self.mechanism.formula()},  e ~ {self.noise}"

    def sample(self, parents: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw the variable given ``parents [n, n_parents]``; returns ``[n]``."""
        return self.mechanism(parents, self.noise.sample(rng, parents.shape[0]))

    def log_density(self, values: FloatArray, parents: FloatArray) -> FloatArray:
        r"""Exact :math:`\log p(x_j \mid x_{\mathrm{pa}(j)})` unless the noise goes through the mechanism; ``[n]``."""
        if isinstance(self.mechanism, Heteroscedastic):
            location, spread = self.mechanism.location_and_spread(parents)
            return np.asarray(self.noise.log_density((values - location) / spread) - np.log(spread))
        if not isinstance(self.mechanism, AdditiveMechanism):
            raise NotImplementedError(
                f"the density of {self.mechanism.formula()} is not available, because the noise goes through "
                "the mechanism; use an additive mechanism (linear or nonlinear) where densities are needed"
            )
        return self.noise.log_density(values - self.mechanism.location(parents))


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
