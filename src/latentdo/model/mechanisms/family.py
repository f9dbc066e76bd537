"""What the search asks of a family of mechanisms: weighted fits, and what an intervention may put in their place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from latentdo.model.mechanisms.base import Array, Mechanism


class RowFamily(ABC):
    """A family of mechanisms that can be fitted to weighted rows; all methods are of the class."""

    @classmethod
    @abstractmethod
    def fit(cls, x: Array, y: Array, weights: Array, start: Any = None) -> Any:
        """The most likely mechanism of ``y [n]`` given its parents ``x [n, p]``, rows counted by ``weights [n]``.

        ``x`` may have no columns: such a mechanism takes the place of one whose parents an intervention cut off, and
        ignores the parents it is given later. ``start`` is an earlier fit of the same variable, maybe with other
        parents: a place to begin where one is needed.
        """

    @classmethod
    def may_differ(
        cls,
        x: Array,  # noqa: ARG003
        y: Array,  # noqa: ARG003
        responsibilities: Array,
        reference: Mechanism,  # noqa: ARG003
    ) -> NDArray[np.bool_]:
        """Regimes ``[K]`` for which an intervention is worth fitting: all, unless a family has a quick test."""
        return np.ones(responsibilities.shape[1], dtype=bool)

    @classmethod
    def intervene(
        cls, x: Array, y: Array, weights: Array, reference: Mechanism, *, imperfect: bool
    ) -> Mechanism:
        """What an intervention puts in the place of ``reference``, fitted to its rows.

        A perfect one ignores the parents; where imperfect ones are allowed, the one with the higher evidence is taken.
        """
        found: list[Mechanism] = [cls.fit(x[:, :0], y, weights)]
        if imperfect and x.shape[1]:
            found.append(cls.fit(x, y, weights, reference))
        return max(found, key=lambda one: evidence(one, x, y, weights))


class MechanismFamily(Mechanism, RowFamily):
    """Mechanisms that can be fitted to weighted rows: all that the search asks of a family, also of a user's own.

    The class is the family, its instances are the mechanisms. See :func:`latentdo.register_family`.
    """

    summary: ClassVar[str]
    """What the family is: one phrase for messages, help and reports."""


def evidence(mechanism: Mechanism, x: Array, y: Array, weights: Array) -> float:
    """Log-likelihood of weighted rows, less the Schwarz cost of the mechanism's parameters."""
    loglik = float(weights @ mechanism.log_density(x, y))
    return loglik - 0.5 * mechanism.n_parameters * float(np.log(max(weights.sum(), 2.0)))
