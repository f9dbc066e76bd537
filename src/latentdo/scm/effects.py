"""What parents of every kind do to a variable: one term per parent, added up.

==============  ==========================================================
term            of a parent with value ``x``
==============  ==========================================================
a number        that number times ``x``
`PerLog`        a number times ``log(1 + x)``: what a count of ``x`` does
`PerLevel`      one number for each level of a categorical parent
`Bent`          a number times a curve at ``x``, see `curves.CURVES`
==============  ==========================================================
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from latentdo.scm.curves import CURVES
from latentdo.scm.mechanisms import AdditiveMechanism, check_array, check_parents
from latentdo.scm.noise import FloatArray


class Term(ABC):
    """The contribution of one parent."""

    @abstractmethod
    def __call__(self, values: FloatArray) -> FloatArray:
        """Contribution of the parent's ``values [n]``, shape ``[n]``."""

    @abstractmethod
    def formula(self, parent: str) -> str:
        """The term for people."""


@dataclass(frozen=True)
class Slope(Term):
    """Proportional to the parent."""

    weight: float

    def __call__(self, values: FloatArray) -> FloatArray:
        """Weight times value."""
        return np.asarray(self.weight * values)

    def formula(self, parent: str) -> str:
        """The term for people."""
        return f"{self.weight:.3g} {parent}"


@dataclass(frozen=True)
class PerLog(Term):
    """Proportional to the logarithm of one plus a count: doubling a large count always does the same."""

    weight: float

    def __call__(self, values: FloatArray) -> FloatArray:
        """Weight times ``log(1 + value)``."""
        return np.asarray(self.weight * np.log1p(values))

    def formula(self, parent: str) -> str:
        """The term for people."""
        return f"{self.weight:.3g} log(1 + {parent})"


@dataclass(frozen=True)
class PerLevel(Term):
    """One effect for each level of a categorical parent, in the order of its levels."""

    effects: tuple[float, ...]

    def __post_init__(self) -> None:
        values = tuple(float(value) for value in self.effects)
        check_array("PerLevel", "effects", values, (len(values),))
        object.__setattr__(self, "effects", values)

    def __call__(self, values: FloatArray) -> FloatArray:
        """Effect of the level at every place."""
        return np.asarray(self.effects)[values.astype(np.int64)]

    def formula(self, parent: str) -> str:
        """The term for people."""
        return f"[{', '.join(f'{value:.3g}' for value in self.effects)}][{parent}]"


@dataclass(frozen=True)
class Bent(Term):
    """A curve, by its name in `curves.CURVES`, of the parent in some unit."""

    weight: float
    curve: str
    unit: float = 1.0

    def __post_init__(self) -> None:
        if self.curve not in CURVES:
            raise ValueError(f"Bent: curve {self.curve!r} is unknown: choose one of {', '.join(CURVES)}")
        if not (np.isfinite(self.unit) and self.unit > 0):
            raise ValueError(f"Bent: unit must be a positive number, got {self.unit!r}")

    def __call__(self, values: FloatArray) -> FloatArray:
        """Weight times the curve."""
        return np.asarray(self.weight * CURVES[self.curve](values / self.unit))

    def formula(self, parent: str) -> str:
        """The term for people."""
        return f"{self.weight:.3g} {self.curve}({parent})"


@dataclass(frozen=True)
class Effects(AdditiveMechanism):
    """Sum of one term per parent plus an intercept.

    Parameters
    ----------
    terms
        Parent name to `Term`; a number is a slope.
    intercept
        Added constant.

    Examples
    --------
    >>> Effects({"dose": 1.5, "cells": PerLog(0.5), "tissue": PerLevel((0.0, 1.0, -1.0))}).formula()
    '1.5 dose + 0.5 log(1 + cells) + [0, 1, -1][tissue] + e'
    """

    terms: Mapping[str, Term | float] = field(default_factory=dict)
    intercept: float = 0.0
    parents: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.terms, Mapping):
            raise TypeError(f"Effects: terms must map parent names to terms, got {self.terms!r}")
        terms = {
            name: term if isinstance(term, Term) else Slope(check_array("Effects", name, term, ()).item())
            for name, term in self.terms.items()
        }
        object.__setattr__(self, "parents", check_parents(terms, "Effects"))
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "intercept", check_array("Effects", "intercept", self.intercept, ()).item())

    def location(self, parents: FloatArray) -> FloatArray:
        """Sum of the terms at ``parents [n, n_parents]`` and the intercept, shape ``[n]``."""
        total = np.full(parents.shape[0], self.intercept)
        for term, column in zip(self.terms.values(), parents.T, strict=True):
            assert isinstance(term, Term)  # numbers became slopes
            total += term(column)
        return total

    def formula(self) -> str:
        """Right-hand side of the structural equation for people; ``e`` is the noise."""
        shown = [term.formula(name) for name, term in self.terms.items() if isinstance(term, Term)]
        return " + ".join([*shown, *([f"{self.intercept:.3g}"] if self.intercept else []), "e"])


@dataclass(frozen=True)
class Logits(AdditiveMechanism):
    """One signal for each level of a categorical variable, added to the logarithm of the level's probability.

    Parameters
    ----------
    by_level
        Level to its signal, in the order of the variable's levels.

    Examples
    --------
    >>> Logits({"calm": Effects(), "windy": Effects({"pressure": -0.5})}).parents
    ('pressure',)
    """

    by_level: Mapping[str, AdditiveMechanism]
    parents: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.by_level, Mapping) or not all(
            isinstance(signal, AdditiveMechanism) and not isinstance(signal, Logits)
            for signal in self.by_level.values()
        ):
            raise TypeError(
                f"Logits: give a signal such as Effects({{...}}) per level, got {self.by_level!r}"
            )
        object.__setattr__(self, "by_level", dict(self.by_level))
        named = dict.fromkeys(name for signal in self.by_level.values() for name in signal.parents)
        object.__setattr__(self, "parents", tuple(named))

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels, in order."""
        return tuple(self.by_level)

    def location(self, parents: FloatArray) -> FloatArray:
        """Signals at ``parents [n, n_parents]``, shape ``[n, n_levels]``."""
        return np.column_stack(
            [
                signal.location(parents[:, [self.parents.index(name) for name in signal.parents]])
                for signal in self.by_level.values()
            ]
        )

    def formula(self) -> str:
        """Right-hand side of the structural equation for people; ``e`` is the noise."""
        shown = (f"{level}: {signal.formula()}" for level, signal in self.by_level.items())
        return "; ".join(text.removesuffix(" + e").replace(": e", ": 0") for text in shown)
