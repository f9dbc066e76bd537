"""The small network against its formula."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo.model.mechanisms.network import evaluate, hidden, n_units, with_input, without_input

SHAPES = [(1, 1), (1, 8), (3, 0), (3, 2), (4, 8)]


def _draw(n_inputs, units, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((50, n_inputs)), rng.standard_normal(1 + n_inputs + units * (n_inputs + 2))


@pytest.mark.parametrize(("n_inputs", "units"), SHAPES)
def test_evaluate_is_the_formula(n_inputs, units):
    x, parameters = _draw(n_inputs, units)
    expected = parameters[0] + x @ parameters[1 : 1 + n_inputs]
    for h in range(units):
        outer, offset, *direction = parameters[1 + n_inputs + h * (n_inputs + 2) :][: n_inputs + 2]
        expected = expected + outer * np.maximum(0.0, offset + x @ np.array(direction))
    np.testing.assert_allclose(evaluate(x, parameters), expected, rtol=1e-12, atol=1e-12)
    assert n_units(parameters, n_inputs) == units


@pytest.mark.parametrize(("n_inputs", "units"), SHAPES)
def test_the_hidden_units_and_the_linear_part_make_the_network(n_inputs, units):
    x, parameters = _draw(n_inputs, units)
    activations = hidden(x, parameters)
    assert activations.shape == (50, units)
    assert (activations >= 0.0).all()
    outer = parameters[1 + n_inputs :].reshape(units, n_inputs + 2)[:, 0]
    again = parameters[0] + x @ parameters[1 : 1 + n_inputs] + activations @ outer
    np.testing.assert_allclose(again, evaluate(x, parameters), rtol=1e-12, atol=1e-12)


def test_without_inputs_it_is_a_constant():
    np.testing.assert_array_equal(evaluate(np.empty((3, 0)), np.array([2.5])), [2.5, 2.5, 2.5])
    assert n_units(np.array([2.5]), 0) == 0


@pytest.mark.parametrize(("n_inputs", "units"), SHAPES)
def test_a_new_input_is_ignored(n_inputs, units):
    x, parameters = _draw(n_inputs, units)
    for place in range(n_inputs + 1):
        wider = with_input(parameters, n_inputs, place)
        noise = np.random.default_rng(1).standard_normal(50)
        more = np.ascontiguousarray(np.insert(x, place, noise, axis=1))
        np.testing.assert_allclose(evaluate(more, wider), evaluate(x, parameters), rtol=1e-12, atol=1e-12)
        assert n_units(wider, n_inputs + 1) == units


@pytest.mark.parametrize(("n_inputs", "units"), [(3, 0), (3, 2), (4, 8)])
def test_cutting_an_input_sets_it_to_zero(n_inputs, units):
    x, parameters = _draw(n_inputs, units)
    for place in range(n_inputs):
        silent = x.copy()
        silent[:, place] = 0.0
        fewer = np.ascontiguousarray(np.delete(x, place, axis=1))
        smaller = without_input(parameters, n_inputs, place)
        np.testing.assert_allclose(evaluate(fewer, smaller), evaluate(silent, parameters), atol=1e-12)


def test_cutting_what_was_added_gives_the_same_parameters():
    _, parameters = _draw(3, 2)
    for place in range(4):
        np.testing.assert_array_equal(without_input(with_input(parameters, 3, place), 4, place), parameters)


def test_cutting_the_only_input_leaves_a_constant_of_its_own():
    _, parameters = _draw(1, 2)
    alone = without_input(parameters, 1, 0)
    np.testing.assert_array_equal(alone, parameters[:1])
    alone[0] += 1.0
    assert alone[0] != parameters[0]
    np.testing.assert_array_equal(with_input(parameters[:1], 0, 0), [parameters[0], 0.0])
