"""Network and noise of one variable."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo.model.mechanisms import NetworkMechanism, Noise
from latentdo.model.mechanisms.network import evaluate
from latentdo.solvers.nonlinear.levenberg import fit_network
from latentdo.solvers.nonlinear.mechanism import (
    NARROWEST,
    VARIANCE_FLOOR,
    fit_mechanism,
    fit_noise,
)


@pytest.fixture(scope="module")
def two_widths():
    """Three rows of four are narrow."""
    rng = np.random.default_rng(0)
    return np.where(rng.random(8000) < 0.75, 0.1, 1.0) * rng.standard_normal(8000)


def test_a_mixture_of_two_widths_is_recovered(two_widths):
    noise = fit_noise(two_widths, np.ones(8000), 2)
    narrow, wide = np.argsort(noise.variances)
    assert noise.weights[narrow] == pytest.approx(0.75, abs=0.03)
    assert np.sqrt(noise.variances[[narrow, wide]]) == pytest.approx([0.1, 1.0], rel=0.1)
    assert noise.means == pytest.approx([0.0, 0.0], abs=0.1)
    assert noise.weights.sum() == pytest.approx(1.0)


def test_more_rounds_of_em_never_lower_the_likelihood(two_widths):
    weights = np.random.default_rng(1).random(8000)
    noise, values = None, []
    for _ in range(6):
        noise = fit_noise(two_widths, weights, 3, noise)
        values.append(weights @ noise.log_density(two_widths))
    assert (np.diff(values) > -1e-6).all()


def test_rows_without_weight_do_not_shape_the_noise(two_widths):
    weights = np.where(np.arange(8000) < 4000, 1.0, 0.0)
    noise = fit_noise(two_widths, weights, 2)
    alone = fit_noise(two_widths[:4000], np.ones(4000), 2)
    np.testing.assert_allclose(noise.variances, alone.variances, rtol=1e-9)
    np.testing.assert_allclose(noise.weights, alone.weights, rtol=1e-9)


def test_one_component_is_the_variance_around_zero():
    residual, weights = np.array([1.0, -2.0, 3.0]), np.array([1.0, 0.5, 0.0])
    noise = fit_noise(residual, weights, 1)
    assert noise.variances == pytest.approx([(1.0 + 2.0) / 1.5])
    np.testing.assert_array_equal(noise.means, [0.0])


def test_no_width_falls_below_its_floor():
    atoms = np.concatenate([np.zeros(500), np.random.default_rng(0).standard_normal(500)])
    noise = fit_noise(atoms, np.ones(1000), 3)
    assert noise.variances.min() >= NARROWEST**2 * (atoms @ atoms / 1000) * (1 - 1e-9)
    assert np.isfinite(noise.log_density(atoms)).all()
    assert fit_noise(np.zeros(20), np.ones(20), 1).variances == [VARIANCE_FLOOR]
    assert (fit_noise(np.zeros(20), np.ones(20), 3).variances >= VARIANCE_FLOOR).all()


def test_a_given_floor_holds_whatever_the_whole_noise_is(two_widths):
    floors = [fit_noise(scale * two_widths, np.ones(8000), 3, floor=0.05).variances for scale in (0.3, 1.0)]
    assert min(variances.min() for variances in floors) == pytest.approx(0.05)
    assert fit_noise(two_widths, np.ones(8000), 3).variances.min() < 0.05


def test_without_inputs_mean_and_variance_have_closed_forms():
    rng = np.random.default_rng(1)
    y, weights = rng.standard_normal(200), rng.random(200)
    mean = np.average(y, weights=weights)
    variance = np.average((y - mean) ** 2, weights=weights)
    mechanism = fit_mechanism(np.empty((200, 0)), y, weights, np.array([7.0]))
    np.testing.assert_allclose(mechanism.parameters, [mean])
    np.testing.assert_allclose(mechanism.noise.variances, [variance])
    assert mechanism.n_parameters == 2
    expected = -0.5 * (np.log(2 * np.pi * variance) + (y - mean) ** 2 / variance)
    np.testing.assert_allclose(mechanism.log_density(np.empty((200, 0)), y), expected)


def test_the_gaussian_variance_is_the_weighted_residual():
    rng = np.random.default_rng(2)
    x, weights = rng.standard_normal((500, 2)), rng.random(500)
    y = np.abs(x[:, 0]) + 0.2 * rng.standard_normal(500)
    network, _ = fit_network(x, y, weights, rng)
    mechanism = fit_mechanism(x, y, weights, network)
    residual = y - evaluate(x, mechanism.parameters)
    assert mechanism.noise.variances[0] == pytest.approx(np.average(residual**2, weights=weights))


def test_mixed_noise_is_worth_it_and_makes_the_function_robust():
    """One row in ten is far too high: least squares follows them, the mixture does not."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2000, 1))
    truth = np.abs(x[:, 0])
    y = truth + 0.1 * rng.standard_normal(2000)
    outlier = rng.random(2000) < 0.1
    y[outlier] += 5.0 + rng.standard_normal(outlier.sum())
    network, _ = fit_network(x, y, np.ones(2000), rng)
    plain = fit_mechanism(x, y, np.ones(2000), network, iterations=10)
    mixed = fit_mechanism(x, y, np.ones(2000), network, n_components=3, iterations=10, rounds=6)
    assert mixed.noise.weights.size == 3
    assert mixed.log_density(x, y).sum() > plain.log_density(x, y).sum() + 500.0

    def spread(mechanism):
        return np.std(evaluate(x, mechanism.parameters) - truth)

    assert spread(mixed) < 0.03
    assert spread(plain) > 2.0 * spread(mixed)


def test_parameters_are_those_of_network_and_noise():
    noise = Noise(np.full(3, 1 / 3), np.zeros(3), np.ones(3))
    assert NetworkMechanism(np.zeros(12), noise).n_parameters == 12 + 7


def test_noise_is_fitted_as_in_the_textbook(two_widths):
    """Six rounds of EM from a given mixture, written with matrices."""
    residual, weights = two_widths, np.random.default_rng(0).random(two_widths.size)
    start = Noise(np.array([0.5, 0.3, 0.2]), np.array([-0.1, 0.0, 0.3]), np.array([0.02, 0.5, 2.0]))
    p, mean, variance = start.weights, start.means, start.variances
    for _ in range(6):
        density = p * np.exp(-0.5 * (residual[:, None] - mean) ** 2 / variance) / np.sqrt(variance)
        share = weights[:, None] * density / density.sum(axis=1, keepdims=True)
        count = share.sum(axis=0)
        p, mean = count / count.sum(), share.T @ residual / count
        variance = (share * (residual[:, None] - mean) ** 2).sum(axis=0) / count
    found = fit_noise(residual, weights, 3, start)
    np.testing.assert_allclose(found.weights, p)
    np.testing.assert_allclose(found.means, mean, atol=1e-12)
    np.testing.assert_allclose(found.variances, variance)
    assert start.means[0] == -0.1  # the start is not touched
