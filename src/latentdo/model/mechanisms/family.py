"""What the search asks of a family of mechanisms: a weighted fit, and what an intervention may put in its place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from latentdo.model.mechanisms.base import Array, Mechanism


class MechanismFamily(ABC):
    """A family of mechanisms of one's own: one method to write, see the page "Your own family" of the documentation."""

    name: ClassVar[str]
    """What users write for ``density``."""

    summary: ClassVar[str] = ""
    """One sentence on what it is."""

    mechanisms: ClassVar[tuple[type[Mechanism], ...]]
    """Classes of the mechanisms that its fits return: files hold them by their names."""

    @abstractmethod
    def fit(self, x: Array, y: Array, weights: Array, start: Mechanism | None = None) -> Mechanism:
        """The likeliest mechanism of ``y [n]`` given parents ``x [n, p]``, rows weighed by ``weights [n]``.

        ``x`` may have no columns. ``start`` is a mechanism of the same variable, maybe of other parents: a place to
        begin where one is needed.
        """

    def may_differ(
        self,
        x: Array,  # noqa: ARG002
        y: Array,  # noqa: ARG002
        responsibilities: Array,
        reference: Mechanism,  # noqa: ARG002
    ) -> NDArray[np.bool_]:
        """Regimes ``[K]`` for which an intervention is worth fitting: all, unless a family has a quick test."""
        return np.ones(responsibilities.shape[1], dtype=bool)

    def intervene(
        self,
        x: Array,
        y: Array,
        weights: Array,
        reference: Mechanism,
        *,
        imperfect: bool,
    ) -> Mechanism:
        """What an intervention puts in the place of ``reference``, fitted to its rows.

        A perfect one ignores the parents; where imperfect ones are allowed, the one with the higher evidence is taken.
        """
        found = [self.fit(x[:, :0], y, weights, reference)]
        if imperfect and x.shape[1]:
            found.append(self.fit(x, y, weights, reference))
        return max(found, key=lambda one: evidence(one, x, y, weights))


def evidence(mechanism: Mechanism, x: Array, y: Array, weights: Array) -> float:
    """Log-likelihood of weighted rows, less the Schwarz cost of the mechanism's parameters."""
    loglik = float(weights @ mechanism.log_density(x, y))
    return loglik - 0.5 * mechanism.n_parameters * float(np.log(max(weights.sum(), 2.0)))
