"""The state of a structural search: a fitted mixture, and the assignment of rows under it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from latentdo.model.fitted import FittedModel
from latentdo.model.mechanisms import AdditiveNoise


@dataclass(frozen=True, eq=False)
class State:
    """A fitted mixture together with the assignment of rows under it.

    Parameters
    ----------
    responsibilities : ndarray [n, K]
        Under ``model``; rows sum to one.
    model : FittedModel
        Graph, targets, mechanisms.
    loglik : float
        Log-likelihood of the rows, regimes summed out (labelled rows: at their label).
    cost : float
        What the structure costs, see :mod:`latentdo.model.penalties`.
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
    def terms(self) -> dict[str, float]:
        """What the evidence is made of."""
        return {"log_likelihood": self.loglik, "structure_cost": -self.cost}

    @property
    def adjacency(self) -> NDArray[np.int8]:
        """The graph."""
        return self.model.topology.adjacency

    @property
    def targets(self) -> NDArray[np.int8]:
        """The targets, ``[K, d]``."""
        return self.model.topology.targets

    @property
    def mechanisms(self) -> dict[int, AdditiveNoise]:
        """All reference mechanisms, as a start for another fit."""
        return dict(enumerate(cast("tuple[AdditiveNoise, ...]", self.model.reference)))

    def mechanism(self, j: int) -> AdditiveNoise:
        """The reference mechanism of a variable."""
        return cast("AdditiveNoise", self.model.reference[j])

    def residual(self, z: NDArray[np.float64], j: int, k: int | None = None) -> NDArray[np.float64]:
        """Residuals of the rows ``z`` under the reference mechanism of ``j``, or that of regime ``k``, ``[n]``."""
        mechanism = self.model.reference[j] if k is None else self.model.mechanism(j, k)
        return np.asarray(z[:, j] - cast("AdditiveNoise", mechanism).mean(self.model.inputs(z, j)))

    def following(self, j: int) -> NDArray[np.float64]:
        """How much of every row follows the reference mechanism of ``j``, ``[n]``."""
        return np.asarray(self.responsibilities @ (1.0 - self.targets[:, j]))

    def is_like(self, other: State, share: float) -> bool:
        """Whether graph, targets and regimes are those of another state, apart from a share of the rows.

        Regimes may come in another order.
        """
        if self.n_regimes != other.n_regimes or not np.array_equal(self.adjacency, other.adjacency):
            return False
        apart = np.abs(self.responsibilities[:, :, None] - other.responsibilities[:, None]).sum(axis=0)
        match = apart.argmin(axis=1)
        return bool(
            np.unique(match).size == match.size
            and 0.5 * apart.min(axis=1).sum() < share * len(self.responsibilities)
            and np.array_equal(self.targets, other.targets[match])
        )

    @property
    def n_regimes(self) -> int:
        """Number of regimes ``K``."""
        return int(self.responsibilities.shape[1])
