"""From a trained state to a fitted model: hard targets, weights, and no empty regimes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from latentdo.model.fitted import Array, FittedModel, Topology
from latentdo.model.linear_mixture import LinearMixture
from latentdo.model.mixture import LatentMixture
from latentdo.model.neural_mixture import NeuralMixture
from latentdo.model.variants import Supervision

Model = NeuralMixture | LinearMixture


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
def harden(mixture: LatentMixture, adjacency: NDArray[np.int8], weights: Array) -> NeuralMixture:
    """The model at its posterior means, with this DAG and targets above one half."""
    targets = (mixture.targets.probabilities() > 0.5).cpu().numpy().astype(np.int8)
    topology = Topology(adjacency.astype(np.int8), targets, weights)
    state = {name: value.cpu().float().numpy() for name, value in mixture.density.state_dict().items()}
    shape = replace(mixture.architecture, dropout=0.0, amortised=False)
    return NeuralMixture(topology, shape, mixture.embeddings.mean.cpu().float().numpy(), state)


def with_weights(model: Model, weights: Array) -> Model:
    """The same model under other weights."""
    return replace(model, topology=replace(model.topology, weights=weights))


def keep_regimes(model: Model, kept: NDArray[np.int64]) -> Model:
    """The same model with some of its regimes; their weights are scaled to sum to one."""
    weights = model.topology.weights[kept]
    total = weights.sum()
    weights = weights / total if total > 0 else np.full(len(kept), 1.0 / len(kept))
    topology = Topology(model.topology.adjacency, model.topology.targets[kept], weights)
    if isinstance(model, NeuralMixture):
        shape = replace(model.architecture, n_regimes=len(kept))
        return NeuralMixture(topology, shape, model.embeddings[kept], model.state)
    place = np.full(model.topology.n_regimes, -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    left = np.flatnonzero(place[model.target_index[:, 0]] >= 0)
    index = model.target_index[left].copy()
    index[:, 0] = place[index[:, 0]]
    return replace(
        model,
        topology=topology,
        target_index=index,
        target_coefficients=model.target_coefficients[left],
        target_variances=model.target_variances[left],
    )


def labelled_responsibilities(model: FittedModel, z: Array, labels: NDArray[np.int64]) -> Array:
    """Responsibilities of the rows, certain where there is a label."""
    found = model.responsibilities(z)
    known = labels >= 0
    found[known] = np.eye(model.topology.n_regimes)[labels[known]]
    return found


def fit_weights(model: Model, z: Array, labels: NDArray[np.int64], n_steps: int = 20) -> Model:
    """Expectation-maximisation of the regimes' weights alone, the mechanisms held fixed."""
    density = model.log_density(z)
    weights = model.topology.weights
    known = labels >= 0
    certain = np.eye(len(weights))[labels[known]]
    for _ in range(n_steps):
        with np.errstate(divide="ignore"):
            joint = density + np.log(weights)
        joint -= joint.max(axis=1, keepdims=True)
        q = np.exp(joint)
        q /= q.sum(axis=1, keepdims=True)
        q[known] = certain
        weights = q.mean(axis=0)
    return with_weights(model, weights)


def finish(
    mixture: LatentMixture,
    adjacency: NDArray[np.int8],
    z: Array,
    supervision: Supervision,
    min_share: float,
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
    """
    with torch.no_grad():
        start = torch.softmax(mixture.sticks.expected_log_weights().double(), 0).cpu().numpy()
        probabilities = mixture.targets.probabilities().double().cpu().numpy()
    labels = supervision.labels
    trained = harden(mixture, adjacency, start)
    if mixture.architecture.density == "linear":
        return _finish(trained.to_linear(), z, labels, probabilities, min_share)
    return _finish(trained, z, labels, probabilities, min_share)


def _finish(
    model: Model, z: Array, labels: NDArray[np.int64], probabilities: Array, min_share: float
) -> Finished:
    n_regimes = model.topology.n_regimes
    model = fit_weights(model, z, labels)
    named = np.zeros(n_regimes, dtype=bool)
    named[labels[labels >= 0]] = True
    named[0] = True
    kept = np.flatnonzero(named | (model.topology.weights >= min_share))
    model = keep_regimes(model, kept)
    place = np.full(n_regimes + 1, -1)
    place[kept] = np.arange(len(kept))
    model = fit_weights(model, z, place[labels])
    return Finished(model, kept, probabilities[kept])


__all__ = ["Finished", "LinearMixture", "finish", "harden", "labelled_responsibilities"]
