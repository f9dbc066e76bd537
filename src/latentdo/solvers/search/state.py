"""Where a structural search stands: a fitted mixture, and the assignment of rows under it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from latentdo.model.fitted import FittedModel


@dataclass(frozen=True, eq=False)
class State:
    """A fitted mixture together with the assignment of rows under it; each search names its family of models.

    Parameters
    ----------
    responsibilities : ndarray [n, K]
        Under ``model``; rows sum to one.
    model : FittedModel
        Graph, targets, mechanisms.
    loglik : float
        Log-likelihood of the rows, components summed out (labelled rows: at their label).
    cost : float
        What the structure costs, see :mod:`.penalties`.
    """

    responsibilities: NDArray[np.float64]
    model: FittedModel
    loglik: float
    cost: float

    @property
    def evidence(self) -> float:
        """Penalised log-likelihood: what states are compared by."""
        return self.loglik - self.cost

    @property
    def adjacency(self) -> NDArray[np.int8]:
        """The graph."""
        return self.model.topology.adjacency

    @property
    def targets(self) -> NDArray[np.int8]:
        """The targets, ``[K, d]``."""
        return self.model.topology.targets

    @property
    def n_components(self) -> int:
        """Number of components ``K``."""
        return int(self.responsibilities.shape[1])
