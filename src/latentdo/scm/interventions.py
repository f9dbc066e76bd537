r"""Interventions: what replaces a variable's structural equation.

==========  ======================================================================  =======================
kind        new equation                                                            shorthand in ``do``
==========  ======================================================================  =======================
atomic      :math:`x_j = c`                                                         a number
stochastic  :math:`x_j = \tilde\varepsilon_j`                                       a `Noise`
imperfect   :math:`x_j = \tilde\zeta_j(x_{\mathrm{pa}(j)}, \tilde\varepsilon_j)`    `Mechanism`, `Variable`
==========  ======================================================================  =======================

Atomic and stochastic interventions are *perfect*: they cut the variable off from its parents. A discrete variable is
held at a value or a level, and drawn from another distribution of its kind.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from latentdo.scm.discrete import Discrete, Held
from latentdo.scm.mechanisms import Linear, Mechanism
from latentdo.scm.noise import Noise, PointMass
from latentdo.scm.variable import Variable


class Intervention(ABC):
    """A change of one variable's structural equation."""

    is_perfect: ClassVar[bool]
    """Whether the variable no longer depends on its parents."""

    @abstractmethod
    def apply(self, variable: Variable) -> Variable:
        """Return the intervened variable."""


@dataclass(frozen=True)
class Atomic(Intervention):
    """Hold the variable at ``value``: a number, or the name of a level."""

    is_perfect = True

    value: float | str

    def apply(self, variable: Variable) -> Variable:
        """Return a variable without parents that is always ``value``."""
        if isinstance(variable.noise, Discrete):
            return Variable(Linear(), Held.at(self.value, variable.noise))
        if isinstance(self.value, str):
            raise TypeError("that is the name of a level, but the variable is continuous; give a number")
        return Variable(Linear(), PointMass(self.value))


@dataclass(frozen=True)
class Stochastic(Intervention):
    """Draw the variable from ``noise``, whatever its parents are."""

    is_perfect = True

    noise: Noise

    def apply(self, variable: Variable) -> Variable:  # noqa: ARG002
        """Return a variable without parents that is its new noise."""
        return Variable(Linear(), self.noise)


@dataclass(frozen=True)
class Imperfect(Intervention):
    """Change the mechanism, the noise, or both; what is not given stays as it is.

    Parameters
    ----------
    mechanism
        New mechanism. Its parents must be among those the variable has without interventions.
    noise
        New noise.
    """

    is_perfect = False

    mechanism: Mechanism | None = None
    noise: Noise | None = None

    def __post_init__(self) -> None:
        if self.mechanism is None and self.noise is None:
            raise ValueError("Imperfect: give a new mechanism, a new noise, or both")

    def apply(self, variable: Variable) -> Variable:
        """Return the variable with its mechanism, its noise or both replaced."""
        return Variable(
            variable.mechanism if self.mechanism is None else self.mechanism,
            variable.noise if self.noise is None else self.noise,
        )


InterventionLike = Intervention | float | str | Noise | Mechanism | Variable
"""What ``scm.do`` accepts for a variable; see the table above."""


def as_intervention(value: object, name: str) -> Intervention:
    """Read the shorthands of ``scm.do``; ``name`` is the variable, for the error message."""
    if isinstance(value, Intervention):
        return value
    if isinstance(value, Noise):
        return Stochastic(value)
    if isinstance(value, Mechanism):
        return Imperfect(mechanism=value)
    if isinstance(value, Variable):
        return Imperfect(value.mechanism, value.noise)
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        return Atomic(float(value))
    if isinstance(value, str):
        return Atomic(value)
    raise TypeError(
        f"do: cannot intervene on {name!r} with {value!r}; give a number or a level (atomic), a Noise (stochastic), "
        "a Mechanism or Variable (imperfect), or an Intervention"
    )
