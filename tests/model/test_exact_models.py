"""Fitted models against formulas written out by hand: networks, and the Gaussians that linear models are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm


@pytest.fixture(scope="module")
def linear_rows(linear):
    rng = np.random.default_rng(0)
    return np.concatenate([linear.sample(40, k, rng) for k in range(4)])


def test_networks_are_their_formulas(named_model):
    model = named_model("network-mixed")
    z = model.sample(50, 0, np.random.default_rng(0))
    a, b, _ = z.T
    first, second = np.maximum(-0.2 + a + b, 0.0), np.maximum(0.1 + 0.5 * a - 2.0 * b, 0.0)
    expected = {
        (0, 0): np.full(len(a), 0.2),
        (0, 1): 0.5 - a + 2.0 * np.maximum(0.3 + a, 0.0),
        (0, 2): 0.5 * a - 0.5 * b + 1.5 * first - second,
        (1, 1): np.full(len(a), 2.0),
        (1, 2): 0.5 * a - 0.5 * b + 1.5 * first - second,  # as in the reference
        (2, 1): -1.0 + 0.5 * a,
        (2, 2): np.full(len(a), 0.5),
        (3, 2): 0.1 - 0.5 * a + b + 0.7 * first - 0.4 * second,
    }
    for (k, j), value in expected.items():
        mechanism = model.mechanism(j, k)
        np.testing.assert_allclose(mechanism.mean(model.inputs(z, j)), value, atol=1e-12)
        noise = mechanism.noise
        components = norm(noise.means, np.sqrt(noise.variances)).logpdf((z[:, j] - value)[:, None])
        density = logsumexp(components, b=noise.weights, axis=1)
        np.testing.assert_allclose(model.variable_log_density(z, j, k), density, rtol=1e-9, atol=1e-12)
    assert model.own[2, 1].n_parameters == 3
    assert model.own[3, 2].n_parameters == 5 + 7


def _gaussian(equations, model, regime):
    """Exact mean and covariance of a regime."""
    slopes, constants, variances = equations(model, regime)
    inverse = np.linalg.inv(np.eye(len(slopes)) - slopes)
    return inverse @ constants, inverse @ np.diag(variances) @ inverse.T


def test_density_of_a_linear_regime_is_its_gaussian(linear, linear_rows, equations):
    for k in (0, 1, 3):  # regime 2 is nearly singular: next test
        mean, covariance = _gaussian(equations, linear, k)
        np.testing.assert_allclose(
            linear.log_density(linear_rows)[:, k],
            multivariate_normal(mean, covariance).logpdf(linear_rows),
            rtol=1e-8,
            atol=1e-8,
        )


def test_density_is_the_product_of_mechanisms_also_where_one_is_almost_atomic(linear, linear_rows):
    a, b, c = linear_rows.T
    expected = norm(0.1, 1.0).logpdf(a)
    expected = expected + norm(-1.0 + 0.5 * a, np.sqrt(0.1)).logpdf(b) + norm(3.0, 1e-4).logpdf(c)
    np.testing.assert_allclose(linear.log_density(linear_rows)[:, 2], expected, rtol=1e-9)


def test_a_regime_without_weight_explains_nothing(linear, linear_rows):
    assert (linear.log_joint(linear_rows)[:, 3] == -np.inf).all()
    assert (linear.responsibilities(linear_rows)[:, 3] == 0.0).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_far_rows_still_belong_somewhere(linear):
    far = np.array([[1e6, -1e6, 1e6], [0.0, 0.0, 1e8], [0.0, 1e200, 0.0], [1e200, 1e200, 1e200]])
    found = linear.assign(far)
    assert np.isfinite(found.responsibilities).all()
    assert np.isfinite(found.log_likelihood).all()
    np.testing.assert_allclose(found.responsibilities.sum(axis=1), 1.0)


@pytest.mark.parametrize("regime", [0, 1, 2])
def test_samples_have_the_exact_moments(linear, regime, equations):
    n = 60_000
    rows = linear.sample(n, regime, np.random.default_rng(1))
    mean, covariance = _gaussian(equations, linear, regime)
    spread = np.sqrt(np.diag(covariance))
    assert (np.abs(rows.mean(axis=0) - mean) < 5 * spread / np.sqrt(n)).all()
    tolerance = 8 * np.outer(spread, spread) / np.sqrt(n)
    assert (np.abs(np.cov(rows, rowvar=False) - covariance) < tolerance).all()


def test_do_sets_and_propagates(linear):
    rows = linear.sample(20_000, 0, np.random.default_rng(2), do={1: 4.0})
    assert (rows[:, 1] == 4.0).all()
    assert rows[:, 0].mean() == pytest.approx(0.1, abs=0.05)
    assert rows[:, 2].mean() == pytest.approx(-0.2 + 0.5 * 0.1 - 4.0, abs=0.05)
