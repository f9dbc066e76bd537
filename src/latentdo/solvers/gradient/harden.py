"""From a trained state to a fitted model: hard targets, weights, and no empty regimes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from latentdo.model.assignment import LIKELY, assign
from latentdo.model.fitted import Array, FittedModel, Topology, own_mechanisms
from latentdo.model.mechanisms import LinearMechanism, Noise
from latentdo.model.mechanisms.neural import Networks, NeuralMechanism
from latentdo.model.variational.densities import LinearDensity
from latentdo.model.variational.mixture import LatentMixture
from latentdo.model.variational.supervision import Supervision
from latentdo.solvers.settings import WEIGHT_STEPS


@dataclass(frozen=True, eq=False)
class Finished:
    """A fitted model and what belongs to its regimes.

    Parameters
    ----------
    model : FittedModel
        In standardised units.
    kept : ndarray of int64
        Index, in the trained model, of every regime that is left.
    target_probabilities : ndarray [n_regimes, d]
        Posterior probabilities of the targets.
    """

    model: FittedModel
    kept: NDArray[np.int64]
    target_probabilities: Array

    def own_labels(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Labels as positions among the regimes that are left; -1 stays -1."""
        place = np.full(max(int(self.kept.max()), int(labels.max(initial=0))) + 2, -1, dtype=np.int64)
        place[self.kept] = np.arange(len(self.kept))
        return np.asarray(place[labels])


@torch.no_grad()
def harden(mixture: LatentMixture, adjacency: NDArray[np.int8], weights: Array) -> FittedModel:
    """The model at its posterior means, with this DAG and targets above one half."""
    targets = (mixture.targets.probabilities() > LIKELY).cpu().numpy().astype(np.int8)
    topology = Topology(adjacency.astype(np.int8), targets, weights)
    if isinstance(mixture.density, LinearDensity):
        return _linear_model(mixture, topology)
    state = {name: value.cpu().float().numpy() for name, value in mixture.density.state_dict().items()}
    shape = replace(mixture.architecture, dropout=0.0, amortised=False)
    networks = Networks(shape, mixture.embeddings.mean.cpu().float().numpy(), state)
    parents = [np.flatnonzero(column) for column in topology.adjacency.T]
    return FittedModel(
        topology,
        tuple(NeuralMechanism(networks, j, parents[j]) for j in range(topology.n_variables)),
        {
            (int(k), int(j)): NeuralMechanism(networks, int(j), parents[j], int(k), intervened=True)
            for k, j in np.argwhere(targets)
        },
    )


def _linear_model(mixture: LatentMixture, topology: Topology) -> FittedModel:
    """Linear densities as equations: coefficients ``[K, parent, variable]`` of every regime, of which few are used."""
    density, u = mixture.density, mixture.embeddings.mean
    assert isinstance(density, LinearDensity), "only linear densities are equations"
    slopes, constants, log_scale = (
        torch.cat([first, own[1:]]).double().cpu().numpy()
        for first, own in zip(density.reference_mechanism(u), density.mechanisms(u), strict=True)
    )

    def mechanism(k: int, j: int, *, alone: bool) -> LinearMechanism:
        inputs = slopes[k, topology.adjacency[:, j] == 1, j]
        coefficients = np.concatenate([[constants[k, j]], inputs[:0] if alone else inputs])
        return LinearMechanism(coefficients, Noise.gaussian(float(np.exp(2.0 * log_scale[k, j]))))

    perfect = mixture.architecture.perfect
    own = [mechanism(int(k), int(j), alone=perfect) for k, j in np.argwhere(topology.targets)]
    reference = tuple(mechanism(0, j, alone=False) for j in range(topology.n_variables))
    return FittedModel(topology, reference, own_mechanisms(topology.targets, own))


def fit_weights(
    model: FittedModel, z: Array, labels: NDArray[np.int64], n_steps: int = WEIGHT_STEPS
) -> FittedModel:
    """Expectation-maximisation of the regimes' weights alone, the mechanisms held fixed."""
    density = model.log_density(z)
    weights = model.topology.weights
    for _ in range(n_steps):
        weights = assign(density.copy(), weights, labels).responsibilities.mean(axis=0)
    return model.with_weights(weights)


def finish(
    mixture: LatentMixture,
    adjacency: NDArray[np.int8],
    z: Array,
    supervision: Supervision,
    min_share: float,
    n_labelled: int = 1,
) -> Finished:
    """Harden a trained mixture, fit its weights and drop the regimes that no row needs.

    Parameters
    ----------
    mixture : LatentMixture
        After training.
    adjacency : ndarray [d, d]
        The DAG.
    z : ndarray [n, d]
        Training rows.
    supervision : Supervision
        What is known of them.
    min_share : float
        Unlabelled regimes with a smaller share of the rows are dropped; the reference never is.
    n_labelled : int
        Regimes that carry the user's labels, which stay, rows or not.
    """
    with torch.no_grad():
        start = torch.softmax(mixture.sticks.expected_log_weights().double(), 0).cpu().numpy()
        probabilities = mixture.targets.probabilities().double().cpu().numpy()
    model = harden(mixture, adjacency, start)
    labels = supervision.labels
    model = fit_weights(model, z, labels)
    named = np.arange(model.topology.n_regimes) < max(n_labelled, 1)
    kept = np.flatnonzero(named | (model.topology.weights >= min_share))
    finished = Finished(model.keep(kept), kept, probabilities[kept])
    return replace(finished, model=fit_weights(finished.model, z, finished.own_labels(labels)))
