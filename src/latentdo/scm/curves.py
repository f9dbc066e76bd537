"""Smooth mechanisms: sums and products of curves, one per parent."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from latentdo.scm.mechanisms import AdditiveMechanism, check_array, check_parents
from latentdo.scm.noise import FloatArray

CURVES: Mapping[str, Callable[[FloatArray], FloatArray]] = MappingProxyType(
    {
        "saturating": lambda z: np.asarray(np.tanh(1.5 * z)),
        "wavy": lambda z: np.asarray(np.sin(1.5 * z)),  # turns round about one unit from the middle
        "softplus": lambda z: np.asarray(np.logaddexp(0.0, 2.0 * z)),
    }
)
"""Name to curve, for inputs of about unit variance."""


@dataclass(frozen=True, eq=False)
class _Curves(AdditiveMechanism):
    """What sums and products of curves share: a weight and a unit for each parent, and an intercept."""

    parents: tuple[str, ...]
    weights: FloatArray
    units: FloatArray
    intercept: float = 0.0

    def __post_init__(self) -> None:
        owner = type(self).__name__
        parents = check_parents(self.parents, owner)
        object.__setattr__(self, "parents", parents)
        for name in ("weights", "units"):
            array = check_array(owner, name, getattr(self, name), (len(parents),))
            object.__setattr__(self, name, array)
        if not (self.units > 0).all():
            raise ValueError(f"{owner}: units must be positive, got {self.units.tolist()}")
        object.__setattr__(self, "intercept", check_array(owner, "intercept", self.intercept, ()).item())

    @abstractmethod
    def location(self, parents: FloatArray) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class Smooth(_Curves):
    r"""Weighted sum of curves, one per parent, plus noise.

    .. math:: x_j = c + \sum_i w_i\, g_i(x_i / u_i) + \varepsilon_j

    Parameters
    ----------
    parents
        Names.
    weights, units
        :math:`w` and :math:`u`, ``[n_parents]``; a unit is the standard deviation of the parent, say.
    intercept
        :math:`c`.
    curves
        Name of each curve :math:`g_i`: ``"saturating"``, ``"wavy"`` or ``"softplus"``.

    Examples
    --------
    >>> Smooth(["dose"], [2.0], [1.0], curves=["saturating"]).formula()
    '2 saturating(dose) + e'
    """

    curves: tuple[str, ...] = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "curves", tuple(self.curves))
        if len(self.curves) != len(self.parents):
            raise ValueError(f"Smooth: {len(self.parents)} parents need as many curves, got {self.curves}")
        for name in self.curves:
            if name not in CURVES:
                raise ValueError(f"Smooth: curve {name!r} is unknown: choose one of {', '.join(CURVES)}")

    def location(self, parents: FloatArray) -> FloatArray:
        """Sum of the curves at ``parents [n, n_parents]``, shape ``[n]``."""
        total = np.full(parents.shape[0], self.intercept)
        for column, name, weight, unit in zip(parents.T, self.curves, self.weights, self.units, strict=True):
            total += weight * CURVES[name](column / unit)
        return total

    def formula(self) -> str:
        """Right-hand side of the structural equation for people; ``e`` is the noise."""
        parts = zip(self.weights, self.curves, self.parents, strict=True)
        return " + ".join([*(f"{weight:.3g} {curve}({parent})" for weight, curve, parent in parts), "e"])


@dataclass(frozen=True, eq=False)
class Multiplicative(_Curves):
    r"""Parents whose effects multiply: each raises or lowers the variable by a factor; plus noise.

    .. math:: x_j = c + a \prod_i \exp\bigl(2 w_i \tanh(x_i / 2 u_i)\bigr) + \varepsilon_j

    Around the middle this is linear on the logarithmic scale; far out the factors level off, so that a long chain
    of such variables does not explode.

    Parameters
    ----------
    parents
        Names.
    weights, units
        :math:`w` and :math:`u`, ``[n_parents]``; a unit is the standard deviation of the parent, say.
    intercept, amplitude
        :math:`c` and :math:`a`.
    """

    amplitude: float = 1.0

    def location(self, parents: FloatArray) -> FloatArray:
        """Product of the factors at ``parents [n, n_parents]``, shape ``[n]``."""
        exponent = 2.0 * np.tanh(parents / (2.0 * self.units)) @ self.weights
        return np.asarray(self.intercept + self.amplitude * np.exp(exponent))

    def formula(self) -> str:
        """Right-hand side of the structural equation for people; ``e`` is the noise."""
        return f"{self.amplitude:.3g} {' '.join(f'f({parent})' for parent in self.parents)} + e"
