"""A variable of a structural causal model: its mechanism and its noise."""

from dataclasses import dataclass, field

import numpy as np

from latentdo.scm.mechanisms import AdditiveMechanism, Linear, Mechanism
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
    '0.8 rain + e,  e ~ Gaussian(loc=0.0, scale=0.5)'
    """

    mechanism: Mechanism = field(default_factory=Linear)
    noise: Noise = field(default_factory=Gaussian)

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise TypeError(
                f"Variable: mechanism must be a Mechanism such as Linear(...), got {self.mechanism!r}"
            )
        if not isinstance(self.noise, Noise):
            raise TypeError(f"Variable: noise must be a Noise such as Gaussian(...), got {self.noise!r}")

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the parents."""
        return self.mechanism.parents

    def formula(self) -> str:
        """Right-hand side of the structural equation, and the distribution of its noise ``e``."""
        return f"{self.mechanism.formula()},  e ~ {self.noise!r}"

    def sample(self, parents: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw the variable given ``parents [n, n_parents]``; returns ``[n]``."""
        return self.mechanism(parents, self.noise.sample(rng, parents.shape[0]))

    def log_density(self, values: FloatArray, parents: FloatArray) -> FloatArray:
        r"""Exact :math:`\log p(x_j \mid x_{\mathrm{pa}(j)})` for additive mechanisms, shape ``[n]``."""
        if not isinstance(self.mechanism, AdditiveMechanism):
            raise NotImplementedError(
                f"the conditional density of {self.mechanism.formula()} has no closed form, because its noise goes "
                "through the mechanism; use an additive mechanism (linear or nonlinear) where densities are needed"
            )
        return self.noise.log_density(values - self.mechanism.location(parents))
