"""The linear mixture against scipy's Gaussians and its own exact moments."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from latentdo.model import FittedModel, LinearMixture, Topology


@pytest.fixture(scope="module")
def model():
    """``a -> b -> c``, ``a -> c``; regime 1 is perfect on b, regime 2 imperfect on b and perfect on c; 3 is empty."""
    adjacency = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=np.int8)
    targets = np.array([[0, 0, 0], [0, 1, 0], [0, 1, 1], [1, 0, 0]], dtype=np.int8)
    return LinearMixture(
        Topology(adjacency, targets, np.array([0.5, 0.3, 0.2, 0.0])),
        coefficients=np.array([[0.1, 0, 0, 0], [0.0, 1.5, 0, 0], [-0.2, 0.5, -1.0, 0]]),
        variances=np.array([1.0, 0.2, 0.05]),
        target_index=np.array([[1, 1], [2, 1], [2, 2], [3, 0]]),
        target_coefficients=np.array([[2.0, 0, 0, 0], [-1.0, 0.5, 0, 0], [3.0, 0, 0, 0], [9.0, 0, 0, 0]]),
        target_variances=np.array([0.3, 0.1, 1e-8, 1.0]),
    )


def _gaussian(model, regime):
    """Exact mean and covariance of a regime."""
    d = model.topology.n_variables
    parts = [model.mechanism(j, regime) for j in range(d)]
    inverse = np.linalg.inv(np.eye(d) - np.array([coefficients[1:] for coefficients, _ in parts]))
    mean = inverse @ np.array([coefficients[0] for coefficients, _ in parts])
    return mean, inverse @ np.diag([variance for _, variance in parts]) @ inverse.T


@pytest.fixture(scope="module")
def rows(model):
    rng = np.random.default_rng(0)
    return np.concatenate([model.sample(40, k, rng) for k in range(4)])


def test_density_of_a_regime_is_its_gaussian(model, rows):
    for k in (0, 1, 3):  # regime 2 is nearly singular: next test
        mean, covariance = _gaussian(model, k)
        np.testing.assert_allclose(
            model.log_density(rows)[:, k],
            multivariate_normal(mean, covariance).logpdf(rows),
            rtol=1e-8,
            atol=1e-8,
        )


def test_density_is_the_product_of_mechanisms_also_where_one_is_almost_atomic(model, rows):
    a, b, c = rows.T
    expected = norm(0.1, 1.0).logpdf(a)
    expected = expected + norm(-1.0 + 0.5 * a, np.sqrt(0.1)).logpdf(b) + norm(3.0, 1e-4).logpdf(c)
    np.testing.assert_allclose(model.log_density(rows)[:, 2], expected, rtol=1e-9)


def test_fast_density_is_the_generic_one(model, rows):
    np.testing.assert_allclose(
        model.log_density(rows), FittedModel.log_density(model, rows), rtol=1e-10, atol=1e-10
    )
    for j in range(3):
        np.testing.assert_array_equal(
            model.reference_log_density(rows, j), model.variable_log_density(rows, j, 0)
        )


def test_mixture_over_regimes(model, rows):
    joint = model.log_joint(rows)
    assert (joint[:, 3] == -np.inf).all(), "a regime without weight explains nothing"
    np.testing.assert_allclose(model.score_samples(rows), logsumexp(joint, axis=1))
    responsibilities = model.responsibilities(rows)
    np.testing.assert_allclose(responsibilities.sum(axis=1), 1.0)
    assert (responsibilities[:, 3] == 0.0).all()
    np.testing.assert_allclose(
        responsibilities, np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True), atol=1e-12
    )


def test_far_rows_still_belong_somewhere(model):
    responsibilities = model.responsibilities(np.array([[1e6, -1e6, 1e6], [0.0, 0.0, 1e8]]))
    assert np.isfinite(responsibilities).all()
    np.testing.assert_allclose(responsibilities.sum(axis=1), 1.0)


def test_mechanism_is_the_reference_where_not_a_target(model):
    coefficients, variance = model.mechanism(2, 1)
    np.testing.assert_array_equal(coefficients, model.coefficients[2])
    assert variance == 0.05
    coefficients, variance = model.mechanism(1, 2)
    np.testing.assert_array_equal(coefficients, [-1.0, 0.5, 0, 0])
    assert variance == 0.1


@pytest.mark.parametrize("regime", [0, 1, 2])
def test_samples_have_the_exact_moments(model, regime):
    n = 60_000
    rows = model.sample(n, regime, np.random.default_rng(1))
    mean, covariance = _gaussian(model, regime)
    spread = np.sqrt(np.diag(covariance))
    assert (np.abs(rows.mean(axis=0) - mean) < 5 * spread / np.sqrt(n)).all()
    tolerance = 8 * np.outer(spread, spread) / np.sqrt(n)
    assert (np.abs(np.cov(rows, rowvar=False) - covariance) < tolerance).all()


def test_do_sets_and_propagates(model):
    rows = model.sample(20_000, 0, np.random.default_rng(2), do={1: 4.0})
    assert (rows[:, 1] == 4.0).all()
    assert rows[:, 0].mean() == pytest.approx(0.1, abs=0.05)
    assert rows[:, 2].mean() == pytest.approx(-0.2 + 0.5 * 0.1 - 4.0, abs=0.05)
    everything = model.sample(5, 1, np.random.default_rng(2), do={0: 1.0, 1: 2.0, 2: 3.0})
    np.testing.assert_array_equal(everything, np.tile([1.0, 2.0, 3.0], (5, 1)))


def test_arrays_round_trip(model, rows):
    again = LinearMixture.from_arrays(model.to_arrays())
    np.testing.assert_array_equal(again.log_joint(rows), model.log_joint(rows))
    np.testing.assert_array_equal(again.topology.adjacency, model.topology.adjacency)
    for name, array in model.to_arrays().items():
        assert again.to_arrays()[name].dtype == array.dtype


def test_restored_arrays_are_copies(model, rows):
    arrays = {name: array.copy() for name, array in model.to_arrays().items()}
    again = LinearMixture.from_arrays(arrays)
    before = again.log_joint(rows)
    for array in arrays.values():
        array[...] = 1
    np.testing.assert_array_equal(again.log_joint(rows), before)


def test_topology_counts():
    topology = Topology(
        np.zeros((3, 3), dtype=np.int8), np.zeros((2, 3), dtype=np.int8), np.array([1.0, 0.0])
    )
    assert topology.n_regimes == 2
    assert topology.n_variables == 3
