"""The mixture of mechanisms: its equation by brute force, labels, weights, and fewer regimes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from latentdo.model import FittedModel, Topology
from latentdo.model.fitted import own_mechanisms
from latentdo.model.mechanisms import LinearMechanism, Noise


def _brute_force(model, z):
    """The equation of the module, term by term and row by row."""
    topology = model.topology
    density = np.zeros((len(z), topology.n_regimes))
    for i, row in enumerate(z):
        for k in range(topology.n_regimes):
            for j in range(topology.n_variables):
                mechanism = model.own[k, j] if topology.targets[k, j] else model.reference[j]
                parents = np.flatnonzero(topology.adjacency[:, j])
                density[i, k] += mechanism.log_density(row[None, parents], row[[j]])[0]
    return density


def test_the_equation_of_the_model(model, rows):
    # float32 networks add up in another order when rows come alone
    some = rows[::4]
    np.testing.assert_allclose(model.log_density(some), _brute_force(model, some), rtol=1e-5, atol=1e-5)


def test_rows_have_the_product_of_their_mechanisms(model, rows):
    topology = model.topology
    terms = [
        [model.variable_log_density(rows, j, k) for j in range(topology.n_variables)]
        for k in range(topology.n_regimes)
    ]
    np.testing.assert_allclose(model.log_density(rows), np.sum(terms, axis=1).T, rtol=1e-10, atol=1e-6)


def test_mixture_over_regimes(model, rows):
    with np.errstate(divide="ignore"):
        joint = model.log_density(rows) + np.log(model.topology.weights)
    np.testing.assert_array_equal(model.log_joint(rows), joint)
    total = logsumexp(joint, axis=1)
    np.testing.assert_allclose(model.score_samples(rows), total)
    responsibilities = model.responsibilities(rows)
    np.testing.assert_allclose(responsibilities, np.exp(joint - total[:, None]), atol=1e-12)
    np.testing.assert_allclose(responsibilities.sum(axis=1), 1.0)
    assert (responsibilities[:, model.topology.weights == 0] == 0.0).all()


def test_labels_are_believed(model, rows):
    labels = np.where(np.arange(len(rows)) % 2 == 0, 1, -1)
    found, free = model.assign(rows, labels), model.assign(rows)
    known = labels >= 0
    np.testing.assert_array_equal(
        found.responsibilities[known], np.eye(model.topology.n_regimes)[labels[known]]
    )
    np.testing.assert_allclose(found.log_likelihood[known], model.log_joint(rows)[known, 1])
    np.testing.assert_array_equal(found.responsibilities[~known], free.responsibilities[~known])
    np.testing.assert_array_equal(found.log_likelihood[~known], free.log_likelihood[~known])


def test_only_targets_differ_between_regimes(model, rows):
    topology = model.topology
    for k in range(1, topology.n_regimes):
        for j in range(topology.n_variables):
            own, reference = (model.variable_log_density(rows, j, regime) for regime in (k, 0))
            assert np.allclose(own, reference) == (topology.targets[k, j] == 0)
            assert (model.mechanism(j, k) is model.reference[j]) == (topology.targets[k, j] == 0)


def test_a_mechanism_can_be_tried_on_a_variable(model, rows):
    for (k, j), own in model.own.items():
        np.testing.assert_array_equal(
            model.log_density_under(rows, j, own), model.variable_log_density(rows, j, k)
        )


def test_other_weights_change_nothing_else(model, rows):
    weights = np.full(model.topology.n_regimes, 1.0 / model.topology.n_regimes)
    other = model.with_weights(weights)
    np.testing.assert_array_equal(other.topology.weights, weights)
    np.testing.assert_array_equal(other.log_density(rows), model.log_density(rows))
    assert model.topology.weights is not weights


def test_regimes_can_be_kept(model, rows):
    last = model.topology.n_regimes - 1
    for kept in ([0], [0, last], [0, 1], list(range(last + 1))):
        fewer = model.keep(np.array(kept))
        assert fewer.topology.n_regimes == len(kept)
        np.testing.assert_array_equal(fewer.topology.targets, model.topology.targets[kept])
        np.testing.assert_allclose(
            fewer.topology.weights, model.topology.weights[kept] / model.topology.weights[kept].sum()
        )
        np.testing.assert_allclose(
            fewer.log_density(rows), model.log_density(rows)[:, kept], rtol=1e-10, atol=1e-10
        )
        again = FittedModel.from_arrays(fewer.to_arrays())
        np.testing.assert_array_equal(again.log_density(rows), fewer.log_density(rows))


def test_kept_regimes_without_rows_share_the_weight(linear):
    np.testing.assert_array_equal(linear.keep(np.array([3])).topology.weights, [1.0])


def test_own_mechanisms_come_in_the_order_of_the_targets():
    targets = np.array([[0, 0], [0, 1], [1, 0]], dtype=np.int8)
    first, second = (LinearMechanism(np.array([place]), Noise.gaussian(1.0)) for place in (0.0, 1.0))
    assert own_mechanisms(targets, [first, second]) == {(1, 1): first, (2, 0): second}
    with pytest.raises(ValueError, match="shorter"):
        own_mechanisms(targets, [first])


def test_topology_counts():
    topology = Topology(
        np.zeros((3, 3), dtype=np.int8), np.zeros((2, 3), dtype=np.int8), np.array([1.0, 0.0])
    )
    assert topology.n_regimes == 2
    assert topology.n_variables == 3
