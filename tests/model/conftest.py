"""Small fitted models of every family, for whatever is asked of all of them alike."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pytest
import torch

from latentdo.choices import DENSITY
from latentdo.model import FittedModel, Topology
from latentdo.model.fitted import own_mechanisms
from latentdo.model.mechanisms import LinearMechanism, NetworkMechanism, Noise
from latentdo.model.mechanisms.neural import Networks, NeuralMechanism
from latentdo.model.variational.mixture import Architecture, LatentMixture

ADJACENCY = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=np.int8)  # a -> b -> c, a -> c
MIXED = Noise(np.array([0.5, 0.3, 0.2]), np.array([0.0, 0.4, -0.6]), np.array([0.01, 0.2, 1.0]))


def _linear(coefficients, variance):
    return LinearMechanism(np.array(coefficients), Noise.gaussian(variance))


def _linear_model():
    """Regime 1 is perfect on b, regime 2 imperfect on b and perfect (almost an atom) on c; 3 has no rows."""
    targets = np.array([[0, 0, 0], [0, 1, 0], [0, 1, 1], [1, 0, 0]], dtype=np.int8)
    reference = (_linear([0.1], 1.0), _linear([0.0, 1.5], 0.2), _linear([-0.2, 0.5, -1.0], 0.05))
    own = [_linear([2.0], 0.3), _linear([-1.0, 0.5], 0.1), _linear([3.0], 1e-8), _linear([9.0], 1.0)]
    topology = Topology(ADJACENCY, targets, np.array([0.5, 0.3, 0.2, 0.0]))
    return FittedModel(topology, reference, own_mechanisms(targets, own))


def _network_model(noise):
    """Own mechanisms: a constant, linear in the parents, again a constant, and another last layer."""
    targets = np.array([[0, 0, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1]], dtype=np.int8)
    last = NetworkMechanism(np.array([0.0, 0.5, -0.5, 1.5, -0.2, 1.0, 1.0, -1.0, 0.1, 0.5, -2.0]), noise)
    reference = (
        NetworkMechanism(np.array([0.2]), Noise.gaussian(1.0)),
        NetworkMechanism(np.array([0.5, -1.0, 2.0, 0.3, 1.0]), noise),
        last,
    )
    own = {
        (1, 1): LinearMechanism(np.array([2.0]), noise),
        (2, 1): _linear([-1.0, 0.5], 0.3),
        (2, 2): _linear([0.5], 0.02),
        (3, 2): last.with_last_layer(np.array([0.1, -0.5, 1.0, 0.7, -0.4]), 2, noise),
    }
    return FittedModel(Topology(ADJACENCY, targets, np.array([0.4, 0.3, 0.2, 0.1])), reference, own)


def _neural_model(density, *, perfect):
    """Untrained networks; regime 1 targets b."""
    shape = Architecture(density, perfect, 3, 2, embedding_size=4, width=6, n_blocks=1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        mixture = LatentMixture(shape)
    state = {name: value.numpy() for name, value in mixture.density.state_dict().items()}
    networks = Networks(shape, mixture.embeddings.mean.detach().numpy(), state)
    parents = [np.flatnonzero(column) for column in ADJACENCY.T]
    topology = Topology(ADJACENCY, np.array([[0, 0, 0], [0, 1, 0]], dtype=np.int8), np.array([0.25, 0.75]))
    return FittedModel(
        topology,
        tuple(NeuralMechanism(networks, j, parents[j]) for j in range(3)),
        {(1, 1): NeuralMechanism(networks, 1, parents[1], 1, intervened=True)},
    )


def _mixed_model():
    """All families in one model: linear a, network b, neural c; what interventions put there is of others again."""
    networks, neural = _network_model(MIXED), _neural_model("flow", perfect=False)
    targets = np.array([[0, 0, 0], [1, 1, 0], [0, 1, 1]], dtype=np.int8)
    reference = (_linear([0.1], 1.0), networks.reference[1], neural.reference[2])
    own = [networks.reference[0], neural.own[1, 1], _linear([-1.0, 0.5], 0.3), networks.own[3, 2]]
    topology = Topology(ADJACENCY, targets, np.array([0.5, 0.3, 0.2]))
    return FittedModel(topology, reference, own_mechanisms(targets, own))


BUILDERS = {
    "linear": _linear_model,
    "network": partial(_network_model, Noise.gaussian(0.25)),
    "network-mixed": partial(_network_model, MIXED),
    **{
        f"neural-{density}-{'perfect' if perfect else 'imperfect'}": partial(
            _neural_model, density, perfect=perfect
        )
        for density in DENSITY.names("gradient")
        for perfect in (True, False)
    },
    "all-families": _mixed_model,
}


@cache
def _built(name):
    return BUILDERS[name]()


@pytest.fixture(params=BUILDERS)
def model(request):
    return _built(request.param)


@pytest.fixture(scope="session")
def named_model():
    """A model by its name."""
    return _built


@pytest.fixture(scope="session")
def rows():
    """Near zero: untrained flows draw rows that are far out."""
    return np.random.default_rng(0).normal(size=(80, 3))


@pytest.fixture(scope="session")
def linear():
    return _built("linear")
