"""The E-step against scipy, for any densities, weights and labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp, softmax

from latentdo.model.assignment import IMPOSSIBLE, assign

SHAPES = st.tuples(st.integers(1, 6), st.integers(1, 5))
NUMBERS = st.floats(-1e5, 1e5)


@st.composite
def problems(draw, numbers=NUMBERS):
    """Log-densities, weights (some of them zero, never all), and labels of regimes that have weight."""
    n, k = draw(SHAPES)
    density = draw(arrays(np.float64, (n, k), elements=numbers))
    weights = draw(arrays(np.float64, k, elements=st.sampled_from([0.0, 1e-6, 0.5, 1.0])))
    weights[draw(st.integers(0, k - 1))] = 1.0
    positive = np.flatnonzero(weights)
    labels = draw(arrays(np.int64, n, elements=st.sampled_from([-1, *positive.tolist()])))
    return density, weights / weights.sum(), labels


def _joint(density, weights):
    with np.errstate(divide="ignore"):
        return density + np.log(weights)


@settings(deadline=None)  # the first call compiles
@given(problems())
def test_responsibilities_are_a_softmax_and_the_likelihood_a_logsumexp(problem):
    density, weights, _ = problem
    joint = _joint(density, weights)
    found = assign(density.copy(), weights)
    np.testing.assert_allclose(found.responsibilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(found.responsibilities, softmax(joint, axis=1), rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(found.log_likelihood, logsumexp(joint, axis=1), rtol=1e-12, atol=1e-12)
    assert (found.responsibilities[:, weights == 0.0] == 0.0).all()


@settings(deadline=None)  # the first call compiles
@given(problems())
def test_labels_are_certain_and_the_others_do_not_notice(problem):
    density, weights, labels = problem
    found, free = assign(density.copy(), weights, labels), assign(density.copy(), weights)
    known = np.flatnonzero(labels >= 0)
    np.testing.assert_array_equal(found.responsibilities[known], np.eye(len(weights))[labels[known]])
    np.testing.assert_allclose(
        found.log_likelihood[known], _joint(density, weights)[known, labels[known]], rtol=1e-12
    )
    rest = labels < 0
    np.testing.assert_array_equal(found.responsibilities[rest], free.responsibilities[rest])
    np.testing.assert_array_equal(found.log_likelihood[rest], free.log_likelihood[rest])


@settings(deadline=None)  # the first call compiles
@given(problems(), NUMBERS)
def test_a_constant_per_row_moves_the_likelihood_alone(problem, constant):
    density, weights, labels = problem
    found, moved = (assign(density + shift, weights, labels) for shift in (0.0, constant))
    np.testing.assert_allclose(moved.responsibilities, found.responsibilities, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(moved.log_likelihood, found.log_likelihood + constant, rtol=1e-9, atol=1e-6)


@settings(deadline=None)  # the first call compiles
@given(problems(st.sampled_from([-np.inf, np.nan, -1e300, -1.0, 0.0])))
def test_rows_far_out_stay_harmless(problem):
    """Whatever overflows, rows sum to one and likelihoods are numbers."""
    density, weights, labels = problem
    found = assign(density.copy(), weights, labels)
    np.testing.assert_allclose(found.responsibilities.sum(axis=1), 1.0)
    assert np.isfinite(found.responsibilities).all()
    assert np.isfinite(found.log_likelihood).all()
    known = np.flatnonzero(labels >= 0)
    np.testing.assert_array_equal(found.responsibilities[known], np.eye(len(weights))[labels[known]])
    assert (found.log_likelihood[known] >= IMPOSSIBLE).all()


@settings(deadline=None)  # the first call compiles
@given(st.integers(1, 5), st.sampled_from([-np.inf, np.nan]))
def test_a_row_that_nothing_explains_says_nothing(k, value):
    weights = np.arange(1.0, k + 1)
    weights /= weights.sum()
    found = assign(np.full((2, k), value), weights, np.array([-1, k - 1]))
    np.testing.assert_array_equal(found.responsibilities[0], weights)
    np.testing.assert_array_equal(found.responsibilities[1], np.eye(k)[-1])
    np.testing.assert_array_equal(found.log_likelihood, IMPOSSIBLE)


def test_a_regime_that_cannot_be_evaluated_explains_nothing():
    found = assign(np.array([[np.nan, -1.0, -np.inf]]), np.full(3, 1 / 3))
    np.testing.assert_array_equal(found.responsibilities, [[0.0, 1.0, 0.0]])
    assert found.log_likelihood[0] == pytest.approx(-1.0 - np.log(3.0))


def test_the_responsibilities_take_the_place_of_the_densities():
    density = np.zeros((3, 2))
    assert assign(density, np.full(2, 0.5)).responsibilities is density
