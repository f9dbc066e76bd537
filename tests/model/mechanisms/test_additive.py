"""Smooth curves: the basis, and when it is used."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo.model.mechanisms import LinearMechanism, Noise
from latentdo.model.mechanisms.additive import AdditiveMechanism
from latentdo.model.mechanisms.splines import FUNCTIONS


@pytest.mark.parametrize("skewed", [False, True])
def test_lines_stay_lines_and_curves_become_curves(skewed):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2000, 2))
    noise = (rng.gamma(2.0, size=2000) - 2.0) / np.sqrt(2.0) if skewed else rng.standard_normal(2000)
    line = AdditiveMechanism.fit(x, x @ [1.0, 0.5] + noise, np.ones(2000))
    assert isinstance(line, LinearMechanism)
    signal = np.tanh(2.0 * x[:, 0]) + 0.5 * x[:, 1]
    curve = AdditiveMechanism.fit(x, signal + 0.5 * noise, np.ones(2000))
    assert isinstance(curve, AdditiveMechanism)
    assert np.std(curve.mean(x) - signal) < 0.08
    assert curve.n_parameters < 30  # knots are not fitted, and not charged


def test_few_different_values_make_no_curve():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2, (500, 1)).astype(float)
    found = AdditiveMechanism.fit(x, x[:, 0] + rng.standard_normal(500), np.ones(500))
    assert isinstance(found, LinearMechanism)


def _parameters(level=3.0, knots=None, coefficients=None):
    knots = np.arange(FUNCTIONS + 1.0) if knots is None else knots
    return np.concatenate([[level], knots, np.ones(FUNCTIONS + 1) if coefficients is None else coefficients])


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        (np.zeros(0), "cannot have 0 parameters"),
        (_parameters()[:-1], "cannot have"),
        (_parameters(level=0.0), "number of functions"),
        (_parameters(level=2.5), "number of functions"),
        (_parameters(level=FUNCTIONS + 1.0), "number of functions"),
        (_parameters(knots=np.zeros(FUNCTIONS + 1)), "knots"),
        (_parameters(coefficients=np.full(FUNCTIONS + 1, 1e60)), "coefficient"),
        (_parameters(coefficients=np.full(FUNCTIONS + 1, np.nan)), "coefficient"),
    ],
)
def test_forged_parameters_are_refused(parameters, problem):
    AdditiveMechanism.check(_parameters(), 1)
    with pytest.raises(ValueError, match=problem):
        AdditiveMechanism.check(parameters, 1)


def test_every_parent_bends_as_much_as_it_must():
    rng = np.random.default_rng(4)
    x = rng.standard_normal((3000, 3))
    y = x[:, 0] + np.sin(2.0 * x[:, 1]) + x[:, 2] ** 2 + rng.standard_normal(3000)
    found = AdditiveMechanism.fit(x, y, np.ones(3000))
    assert found.levels[0] == 1
    assert found.levels[1] > found.levels[2] > 1
    assert found.n_parameters == 1 + found.levels.sum() + found.noise.n_parameters


def test_a_fit_that_only_follows_the_rows_keeps_what_was_chosen():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((2000, 2))
    y = np.tanh(2.0 * x[:, 0]) + 0.5 * x[:, 1] + 0.3 * rng.standard_normal(2000)
    fits = AdditiveMechanism.given(AdditiveMechanism.prepare(x), np.arange(2))
    found = fits.fit(x, y, np.ones(2000))
    again = fits.refit(x[:1000], y[:1000], np.ones(1000), found)
    np.testing.assert_array_equal(again.levels, found.levels)
    np.testing.assert_allclose(again.mean(x), found.mean(x), atol=0.15)
    fewer = AdditiveMechanism.given(AdditiveMechanism.prepare(x), np.array([0]))
    assert fewer.refit(x[:, :1], y, np.ones(2000), found).levels.size == 1


def test_an_intervention_moves_the_curve_without_paying_for_it_again():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((2000, 1))
    reference = AdditiveMechanism.fit(
        x, np.tanh(3.0 * x[:, 0]) + 0.3 * rng.standard_normal(2000), np.ones(2000)
    )
    x = x[:400]
    y = 1.0 + np.tanh(3.0 * x[:, 0]) + 0.3 * rng.standard_normal(400)
    own = AdditiveMechanism.intervene(x, y, np.ones(400), reference, imperfect=True)
    assert isinstance(own, AdditiveMechanism)
    assert own.n_parameters == 2
    assert own.noise.mean == pytest.approx(1.0 + reference.noise.mean, abs=0.06)
    assert isinstance(Noise.from_array(own.noise.to_array()), Noise)
