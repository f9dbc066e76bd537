"""Noise that follows the signal: the scale, its fit, and what a file may say of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentdo.model.mechanisms.growth import NO_GROWTH, check_growth, likeliest_growth, log_scales, n_rises


def test_the_scale_is_straight_between_its_values_and_constant_beyond():
    growth = np.array([[-1.0, 0.0, 2.0], [0.0, 0.5, 0.9]])
    signal = np.array([-3.0, -1.0, -0.5, 0.0, 1.0, 2.0, 5.0])
    np.testing.assert_allclose(log_scales(signal, growth), np.interp(signal, *growth))
    assert n_rises(growth) == 2
    assert n_rises(np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 1.0]])) == 1
    np.testing.assert_array_equal(log_scales(signal, NO_GROWTH), 0.0)


@given(slope=st.floats(-1.0, 1.0), seed=st.integers(0, 200))
@settings(max_examples=20, deadline=None)
def test_a_straight_growth_is_found_again(slope, seed):
    rng = np.random.default_rng(seed)
    signal = rng.standard_normal(4000)
    residual = np.exp(slope * signal) * rng.standard_normal(4000)
    growth, gain = likeliest_growth(residual, signal, np.ones(4000))
    inside = np.linspace(-1.5, 1.5, 20)
    found = log_scales(inside, growth)
    np.testing.assert_allclose(found - found.mean(), slope * inside, atol=0.2)
    assert gain >= 0.0
    if abs(slope) > 0.3:
        exact = -slope * signal.sum() - 2000 * np.log(np.mean(np.exp(-2 * slope * signal) * residual**2))
        assert gain > exact + 2000 * np.log(np.mean(residual**2)) - 15.0


def test_a_scale_that_is_wide_at_both_ends_is_not_followed():
    rng = np.random.default_rng(1)
    signal = rng.standard_normal(4000)
    residual = np.exp(0.5 * np.abs(signal)) * rng.standard_normal(4000)
    growth, _ = likeliest_growth(residual, signal, np.ones(4000))
    rises = np.diff(growth[1])
    assert (rises >= 0.0).all() or (rises <= 0.0).all()


def test_a_signal_of_few_values_and_parents_that_determine_a_variable_have_no_growth():
    rng = np.random.default_rng(2)
    growth, gain = likeliest_growth(rng.standard_normal(100), np.repeat([0.0, 1.0], 50), np.ones(100))
    assert growth.shape == (2, 0)
    assert gain == 0.0
    growth, _ = likeliest_growth(np.zeros(100), rng.standard_normal(100), np.ones(100))
    assert growth.shape == (2, 0)


@pytest.mark.parametrize(
    "flat", [[0.0], [0.0, np.nan], [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1e5], [0.0, 0.0, 0.0, 1.0]]
)
def test_forged_growth_is_refused(flat):
    with pytest.raises(ValueError, match="growth"):
        check_growth(np.array(flat))


def test_growth_from_its_numbers():
    growth = np.array([[-1.0, 0.0, 2.0], [0.0, 0.5, 0.9]])
    np.testing.assert_array_equal(check_growth(growth.ravel()), growth)
    assert check_growth(np.empty(0)).shape == (2, 0)
