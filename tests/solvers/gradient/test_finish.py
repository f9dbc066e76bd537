"""From trained networks to a fitted model: same numbers as the training code."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from latentdo.model.mechanisms import LinearMechanism
from latentdo.model.mechanisms.neural import NeuralMechanism
from latentdo.model.variational.graph import GraphSample
from latentdo.model.variational.mixture import Architecture, LatentMixture
from latentdo.solvers.gradient.edges import without_edge
from latentdo.solvers.gradient.harden import fit_weights, harden

ADJACENCY = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=np.int8)
CASES = pytest.mark.parametrize(
    ("density", "perfect"), list(product(("linear", "nonlinear", "flow"), (True, False)))
)


def _mixture(density, *, perfect):
    """Untrained, but with regimes that differ and one certain target, in the middle variable."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        mixture = LatentMixture(Architecture(density, perfect, 3, 2, embedding_size=4, width=6, n_blocks=1))
        with torch.no_grad():
            for parameter in mixture.embeddings.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
            for parameter in mixture.targets.parameters():
                parameter.fill_(-5.0)
                parameter.view(-1, 3)[-1, 1] = 5.0
    mixture.eval()
    return mixture


@CASES
def test_hardening_keeps_the_density(density, perfect):
    mixture = _mixture(density, perfect=perfect)
    model = harden(mixture, ADJACENCY, np.array([0.25, 0.75]))
    np.testing.assert_array_equal(model.topology.targets, [[0, 0, 0], [0, 1, 0]])
    kind = LinearMechanism if density == "linear" else NeuralMechanism
    assert {type(one) for one in (*model.reference, *model.own.values())} == {kind}
    z = np.random.default_rng(0).normal(size=(20, 3))
    graph = GraphSample(torch.as_tensor(ADJACENCY[None].astype(np.float32)))
    x, u, rows = torch.as_tensor(z, dtype=torch.float32), mixture.embeddings.mean, torch.arange(20)
    with torch.no_grad():
        reference = mixture.density.reference(x, graph, u).numpy()
        own = mixture.density.intervened(x, graph, u, rows, torch.ones_like(rows)).numpy()
    expected = np.column_stack([reference.sum(axis=1), reference[:, [0, 2]].sum(axis=1) + own[:, 1]])
    np.testing.assert_allclose(model.log_density(z), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("density", ["nonlinear", "flow"])
def test_a_cut_edge_is_no_longer_seen(density):
    model = harden(_mixture(density, perfect=False), ADJACENCY, np.array([0.25, 0.75]))
    cut = without_edge(model, 0, 1)
    np.testing.assert_array_equal(cut.topology.adjacency, [[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    z = np.random.default_rng(0).normal(size=(20, 3))
    other = z.copy()
    other[:, 0] += 1.0
    for k in (0, 1):
        assert not np.allclose(model.variable_log_density(z, 1, k), model.variable_log_density(other, 1, k))
        np.testing.assert_array_equal(
            cut.variable_log_density(z, 1, k), cut.variable_log_density(other, 1, k)
        )
        np.testing.assert_array_equal(cut.variable_log_density(z, 2, k), model.variable_log_density(z, 2, k))


def test_weights_are_fitted_with_the_mechanisms_held_fixed():
    model = harden(_mixture("linear", perfect=True), ADJACENCY, np.array([0.5, 0.5]))
    z = np.concatenate([model.sample(n, k, np.random.default_rng(k)) for k, n in enumerate((100, 300))])
    labels = np.repeat([0, 1], [100, 300])
    np.testing.assert_allclose(fit_weights(model, z, labels).topology.weights, [0.25, 0.75])
    unknown = np.full(400, -1)
    values = [fit_weights(model, z, unknown, n_steps).score_samples(z).sum() for n_steps in (0, 1, 2, 5, 20)]
    assert (np.diff(values) >= -1e-9).all(), "EM never lowers the likelihood"
    fitted = fit_weights(model, z, unknown, 200)
    np.testing.assert_allclose(fitted.responsibilities(z).mean(axis=0), fitted.topology.weights, atol=1e-3)
