"""Smooth curves: the basis, and when it is used."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline

from latentdo.model.mechanisms import LinearMechanism, Noise
from latentdo.model.mechanisms.additive import LEVELS, AdditiveMechanism, expand


@given(level=st.sampled_from(LEVELS), seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_the_basis_spans_every_natural_cubic_spline_on_its_knots(level, seed):
    rng = np.random.default_rng(seed)
    knots = np.sort(rng.normal(size=level + 1)) + 0.1 * np.arange(level + 1)
    spline = CubicSpline(knots, rng.normal(size=level + 1), bc_type="natural")
    inside = np.linspace(knots[0], knots[-1], 200)
    design = np.column_stack([np.ones(200), expand(inside[:, None], knots[None])])
    coefficients, *_ = np.linalg.lstsq(design, spline(inside), rcond=None)
    np.testing.assert_allclose(
        design @ coefficients, spline(inside), atol=1e-6 * np.ptp(spline(inside)) + 1e-7
    )


def test_curves_go_on_as_lines_beyond_the_outermost_knots():
    knots = np.array([[-1.0, -0.3, 0.4, 1.0]])
    far = expand(np.array([[2.0], [3.0], [4.0], [-2.0], [-3.0], [-4.0]]), knots)
    np.testing.assert_allclose(far[1] - far[0], far[2] - far[1])
    np.testing.assert_allclose(far[4] - far[3], far[5] - far[4])


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


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        (np.zeros(0), "cannot have 0 parameters"),
        (np.array([4.0, *np.arange(5.0), 0.0, *np.ones(4)]), "cannot have"),
        (np.array([3.0, *np.arange(4.0), 0.0, 1.0]), "cannot have 7 parameters"),
        (np.array([3.0, 0.0, 2.0, 1.0, 3.0, 0.0, 1.0, 1.0, 1.0]), "knots"),
        (np.array([3.0, 0.0, 1.0, 2.0, 3.0, 1e60, 1.0, 1.0, 1.0]), "coefficient"),
        (np.array([3.0, 0.0, 1.0, 2.0, np.nan, 0.0, 1.0, 1.0, 1.0]), "coefficient"),
    ],
)
def test_forged_parameters_are_refused(parameters, problem):
    with pytest.raises(ValueError, match=problem):
        AdditiveMechanism.check(parameters, 1)


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
