"""Units of a network: as many as evidence pays for, against functions whose number of units is known."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo.model.mechanisms import NetworkMechanism
from latentdo.model.mechanisms.family import evidence
from latentdo.model.mechanisms.network import evaluate, n_units, without_unit
from latentdo.solvers.nonlinear.levenberg import fit_network
from latentdo.solvers.nonlinear.mechanism import fit_mechanism
from latentdo.solvers.nonlinear.units import fewest_units

N = 2000
FUNCTIONS = {
    "line": (lambda x: 0.7 * x[:, 0] - x[:, 1], 0),
    "absolute value": (lambda x: np.abs(x[:, 0]), 1),
    "two kinks": (lambda x: np.abs(x[:, 0]) + np.maximum(x[:, 1] - 0.5, 0.0), 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_unit_is_left_to_spare(name):
    function, needed = FUNCTIONS[name]
    rng = np.random.default_rng(7)
    x, weights = rng.standard_normal((N, 2)), np.ones(N)
    y = function(x) + 0.1 * rng.standard_normal(N)
    network, _ = fit_network(x, y, weights, rng)
    full = fit_mechanism(x, y, weights, network)
    found = fewest_units(x, y, weights, full)
    assert n_units(found.parameters, 2) == needed
    assert evidence(found, x, y, weights) > evidence(full, x, y, weights)
    assert found.noise.variance == pytest.approx(0.01, rel=0.1)


def test_a_unit_has_one_parameter_less_than_numbers():
    """Its weight may as well multiply what is inside: the function, and so the evidence, stays the same."""
    rng = np.random.default_rng(1)
    x, parameters = rng.standard_normal((50, 2)), rng.standard_normal(1 + 2 + 3 * 4)
    scaled = parameters.copy()
    scaled[3] /= 5.0
    scaled[4:7] *= 5.0
    np.testing.assert_allclose(evaluate(x, scaled), evaluate(x, parameters))
    noise = fit_mechanism(x, rng.standard_normal(50), np.ones(50), parameters).noise
    found = NetworkMechanism.of(parameters, noise, 2)
    assert found.n_parameters == parameters.size - 3 + noise.n_parameters


def test_a_unit_that_is_cut_off_leaves_the_others():
    rng = np.random.default_rng(2)
    x, parameters = rng.standard_normal((20, 3)), rng.standard_normal(1 + 3 + 2 * 5)
    first, second = (without_unit(parameters, 3, unit) for unit in (0, 1))
    line = evaluate(x, parameters[:4])
    np.testing.assert_allclose(evaluate(x, first) + evaluate(x, second), evaluate(x, parameters) + line)
