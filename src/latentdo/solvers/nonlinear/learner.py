"""How networks are learnt from rows that are assigned to regimes: as any family, from where the last fit left them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from latentdo.model.fitted import FittedModel, Topology
from latentdo.model.mechanisms import AdditiveNoise, Mechanism, NetworkMechanism
from latentdo.model.mechanisms.network import with_inputs
from latentdo.solvers.nonlinear.family import MixedNetworks, Networks
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.rows import RowLearner
from latentdo.solvers.settings import NETWORK_EM_TOLERANCE, SEARCH_NOISE


@dataclass(frozen=True, eq=False)
class NetworkLearner(RowLearner):
    """Fits of networks to weighted rows, see :class:`.learner.Learner`."""

    family: type[Networks]
    tolerance: ClassVar[float] = NETWORK_EM_TOLERANCE

    def beginning(self, model: FittedModel, j: int, parents: NDArray[np.int64]) -> Mechanism | None:
        """See :class:`RowLearner`: the same network, inputs that it did not have ignored so far."""
        before, known = model.reference[j], model.parents[j].tolist()
        if known == parents.tolist():
            return before
        if not isinstance(before, NetworkMechanism) or not set(known) & set(parents.tolist()):
            return None
        return NetworkMechanism(with_inputs(before.parameters, known, parents.tolist()), before.noise)


def with_networks(problem: Problem, n_gaussians: int = SEARCH_NOISE) -> Problem:
    """The same problem, for networks whose noise has so many Gaussians."""
    return replace(problem, learner=NetworkLearner(family_of(n_gaussians)))


def family_of(n_gaussians: int) -> type[Networks]:
    """Networks whose noise has so many Gaussians."""
    return MixedNetworks if n_gaussians == MixedNetworks.n_gaussians else Networks


def beginning(
    adjacency: NDArray[np.int8], targets: NDArray[np.int8], mechanisms: Mapping[int, AdditiveNoise]
) -> FittedModel:
    """Reference mechanisms as a model that fits can begin at; there is nothing else in it."""
    weights = np.full(len(targets), 1.0 / len(targets))
    reference = tuple(mechanisms[j] for j in range(len(adjacency)))
    return FittedModel(Topology(adjacency, targets, weights), reference, {})
