"""Trained networks as a fitted model: same numbers as the training code, saved and restored."""

import pickle

import numpy as np
import pytest
import torch

from latentdo.model.fitted import Topology
from latentdo.model.mixture import Architecture, LatentMixture
from latentdo.model.neural_mixture import NeuralMixture


def make(density: str, perfect: bool) -> NeuralMixture:
    shape = Architecture(density, perfect, 3, 2, embedding_size=4, width=6, n_blocks=1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        mixture = LatentMixture(shape)
    topology = Topology(
        np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=np.int8),
        np.array([[0, 0, 0], [0, 1, 0]], dtype=np.int8),
        np.array([0.25, 0.75]),
    )
    state = {name: value.numpy() for name, value in mixture.density.state_dict().items()}
    return NeuralMixture(topology, shape, mixture.embeddings.mean.detach().numpy(), state)


cases = pytest.mark.parametrize(
    ("density", "perfect"),
    [(name, perfect) for name in ("linear", "nonlinear", "flow") for perfect in (True, False)],
)


@cases
def test_saved_and_restored(density, perfect):
    model = make(density, perfect)
    z = np.random.default_rng(0).normal(size=(20, 3))
    arrays = model.to_arrays()
    assert all(isinstance(value, np.ndarray) for value in arrays.values())
    for again in (NeuralMixture.from_arrays(arrays), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.log_density(z), model.log_density(z))


@cases
def test_only_targets_differ_between_regimes(density, perfect):
    model = make(density, perfect)
    z = np.random.default_rng(0).normal(size=(20, 3))
    for j in range(3):
        same = np.allclose(model.variable_log_density(z, j, 0), model.variable_log_density(z, j, 1))
        assert same == (j != 1)
    np.testing.assert_allclose(model.responsibilities(z).sum(axis=1), 1.0)


@cases
def test_samples_follow_the_model(density, perfect):
    model = make(density, perfect)
    rng = np.random.default_rng(1)
    z = model.sample(500, 1, rng)
    assert np.isfinite(z).all()
    # Gibbs' inequality, in the variable that the regime changed: its own density scores the draws better
    own, other = (model.variable_log_density(z, 1, k) for k in (1, 0))
    assert np.mean(own - other) > 0
    fixed = model.sample(10, 0, rng, do={0: 1.5})
    assert (fixed[:, 0] == 1.5).all()


@pytest.mark.parametrize("perfect", [True, False])
def test_linear_networks_have_a_closed_form(perfect):
    model = make("linear", perfect)
    z = np.random.default_rng(0).normal(size=(20, 3))
    np.testing.assert_allclose(model.to_linear().log_density(z), model.log_density(z), rtol=1e-4, atol=1e-4)


def test_other_families_have_none():
    with pytest.raises(ValueError, match="no linear form"):
        make("flow", True).to_linear()
