"""Second-order fits: derivatives, descent, and the noise floor."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo.model.mechanisms.network import evaluate
from latentdo.solvers.nonlinear.levenberg import Effort, _linearise, descend, fit_network, random_start
from latentdo.solvers.settings import UNITS


def _network(rng, n_inputs, units):
    return rng.standard_normal(1 + n_inputs + units * (n_inputs + 2))


@pytest.mark.parametrize(("n_inputs", "units"), [(1, 3), (2, 0), (3, 5)])
def test_the_jacobian_against_finite_differences(n_inputs, units):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((40, n_inputs)), rng.standard_normal(40)
    root = rng.uniform(0.1, 2.0, 40)
    parameters = _network(rng, n_inputs, units)
    jacobian, residual = np.full((40, parameters.size), np.nan), np.full(40, np.nan)
    _linearise(x, y, root, parameters, jacobian, residual)
    np.testing.assert_allclose(residual, root * (y - evaluate(x, parameters)), atol=1e-12)
    step = 1e-6
    for a in range(parameters.size):
        nudge = np.zeros(parameters.size)
        nudge[a] = step
        slope = root * (evaluate(x, parameters + nudge) - evaluate(x, parameters - nudge)) / (2 * step)
        np.testing.assert_allclose(jacobian[:, a], slope, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_descent_never_raises_the_loss(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((200, 3)), rng.standard_normal(200) * 10.0 ** rng.integers(-3, 4)
    weights = rng.random(200)
    parameters = _network(rng, 3, 6)
    losses = [float(weights @ (y - evaluate(x, parameters)) ** 2)]
    for _ in range(15):
        parameters, loss = descend(x, y, weights, parameters, 1)
        assert loss == pytest.approx(float(weights @ (y - evaluate(x, parameters)) ** 2), rel=1e-9)
        losses.append(loss)
    assert (np.diff(losses) <= 1e-12 * losses[0]).all()
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("seed", range(4))
def test_a_planted_network_is_fitted_to_the_noise(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((1500, 2))
    signal = evaluate(x, _network(rng, 2, 4))
    noise = 0.05 * signal.std() * rng.standard_normal(1500)
    _, loss = fit_network(x, signal + noise, np.ones(1500), rng)
    assert loss < 1.1 * noise @ noise


def test_rows_without_weight_are_ignored():
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((300, 2)), rng.standard_normal(300)
    weights = np.where(np.arange(300) < 200, rng.uniform(0.5, 1.0, 300), 0.0)
    start = _network(rng, 2, 4)
    wild = y.copy()
    wild[200:] = 1e9
    parameters, loss = descend(x, wild, weights, start, 10)
    alone, alone_loss = descend(x[:200], y[:200], weights[:200], start, 10)
    np.testing.assert_array_equal(parameters, alone)
    assert loss == alone_loss


def test_whole_weights_are_repeated_rows():
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((100, 2)), rng.standard_normal(100)
    counts = rng.integers(1, 4, 100)
    start = _network(rng, 2, 2)
    _, weighted = descend(x, y, counts.astype(float), start, 3)
    repeated = np.repeat(x, counts, axis=0), np.repeat(y, counts)
    _, loss = descend(*repeated, np.ones(counts.sum()), start, 3)
    assert weighted == pytest.approx(loss, rel=1e-3)  # the ridge counts rows


def test_without_inputs_the_answer_is_the_weighted_mean():
    rng = np.random.default_rng(3)
    y, weights = rng.standard_normal(50), rng.random(50)
    mean = np.average(y, weights=weights)
    for parameters, loss in (
        descend(np.empty((50, 0)), y, weights, np.empty(0), 5),
        fit_network(np.empty((50, 0)), y, weights, rng),
    ):
        np.testing.assert_allclose(parameters, [mean])
        assert loss == pytest.approx(weights @ (y - mean) ** 2)
    np.testing.assert_allclose(random_start(np.empty((50, 0)), y, weights, rng), [mean])


def test_a_linear_function_is_solved_at_the_start():
    rng = np.random.default_rng(4)
    x, weights = rng.standard_normal((400, 3)), rng.uniform(0.1, 1.0, 400)
    y = 2.0 + x @ [1.0, -3.0, 0.5]
    start = random_start(x, y, weights, rng)
    assert start.size == 1 + 3 + UNITS * 5
    np.testing.assert_allclose(evaluate(x, start), y, atol=1e-3)


def test_dead_and_collinear_inputs_do_no_harm():
    rng = np.random.default_rng(5)
    a = rng.standard_normal(300)
    x = np.column_stack([a, 2.0 * a, np.zeros(300)])
    y = np.abs(a) + 0.01 * rng.standard_normal(300)
    parameters, loss = fit_network(x, y, np.ones(300), rng)
    assert np.isfinite(parameters).all()
    assert loss / 300 < 4e-4


def test_a_good_start_is_never_lost():
    rng = np.random.default_rng(6)
    x = rng.standard_normal((800, 3))
    truth = _network(rng, 3, UNITS)
    noise = 0.01 * rng.standard_normal(800)
    y = evaluate(x, truth) + noise
    _, loss = fit_network(x, y, np.ones(800), rng, Effort(starts=0), start=truth)
    assert loss <= noise @ noise


def test_the_same_generator_gives_the_same_fit():
    rng = np.random.default_rng(7)
    x, y = rng.standard_normal((200, 2)), rng.standard_normal(200)
    first, second = (fit_network(x, y, np.ones(200), np.random.default_rng(0))[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)
