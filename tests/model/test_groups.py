"""Rows that share their regime: the E-step against brute force, and which rows are taken."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp

from latentdo.model.assignment import IMPOSSIBLE, SEPARATE, Groups, Prior, assign
from latentdo.model.penalties import Penalties

NUMBERS = st.floats(-50.0, 50.0)
SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@st.composite
def grouped(draw, numbers=NUMBERS):
    """Log-densities, weights and groups of any sizes, their rows anywhere; some groups have a label."""
    sizes, k = draw(SIZES), draw(st.integers(1, 4))
    members = np.array(draw(st.permutations(np.repeat(np.arange(len(sizes)), sizes).tolist())))
    density = draw(arrays(np.float64, (members.size, k), elements=numbers))
    weights = draw(arrays(np.float64, k, elements=st.sampled_from([0.1, 0.5, 1.0])))
    labels = draw(arrays(np.int64, len(sizes), elements=st.integers(-1, k - 1)))
    return density, weights / weights.sum(), members, labels[members]


def _brute_force(density, weights, members, labels):
    """Posterior of every row's regime and the log-likelihood, summed over all joint assignments of all groups."""
    n_groups, k = members.max() + 1, len(weights)
    terms, regimes = [], []
    for joint in itertools.product(range(k), repeat=n_groups):
        at = np.array(joint)[members]
        if ((labels >= 0) & (labels != at)).any():
            continue
        terms.append(density[np.arange(len(at)), at].sum() + np.log(weights)[list(joint)].sum())
        regimes.append(at)
    total = logsumexp(terms)
    posterior = np.zeros_like(density)
    for term, at in zip(terms, regimes, strict=True):
        posterior[np.arange(len(at)), at] += np.exp(term - total)
    return posterior, total


@settings(deadline=None)  # the first call compiles
@given(grouped())
def test_the_posterior_of_grouped_rows_is_that_of_brute_force(problem):
    density, weights, members, labels = problem
    posterior, total = _brute_force(density, weights, members, labels)
    found = Groups(members).assign(density.copy(), Prior(weights), labels)
    np.testing.assert_allclose(found.responsibilities, posterior, atol=1e-9)
    assert found.log_likelihood.sum() == pytest.approx(total, rel=1e-9, abs=1e-9)
    for group in range(
        members.max() + 1
    ):  # everybody carries the group's posterior, and an equal part of the rest
        rows = members == group
        assert (found.responsibilities[rows] == found.responsibilities[rows][0]).all()
        assert (found.log_likelihood[rows] == found.log_likelihood[rows][0]).all()


@settings(deadline=None)
@given(grouped(st.floats(allow_nan=True, allow_infinity=True)))
def test_groups_of_one_row_are_no_groups_in_every_digit(problem):
    density, weights, members, _ = problem
    labels = np.where(np.arange(members.size) % 3 == 0, 0, -1)
    alone = assign(density.copy(), weights, labels)
    found = Groups(np.arange(members.size)).assign(density.copy(), Prior(weights), labels)
    np.testing.assert_array_equal(found.responsibilities, alone.responsibilities)
    np.testing.assert_array_equal(found.log_likelihood, alone.log_likelihood)
    assert Groups.of(np.arange(members.size)[::-1].copy()) is SEPARATE
    assert Groups.of(None) is SEPARATE


@settings(deadline=None)
@given(grouped(), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_the_names_of_groups_do_not_matter(problem, random):
    density, weights, members, labels = problem
    order = np.array(random.sample(range(members.size), members.size))
    found = Groups(members).assign(density.copy(), Prior(weights), labels)
    other = Groups.of(7 - 3 * members[order])
    again = other.assign(density[order].copy(), Prior(weights), labels[order])
    np.testing.assert_allclose(again.responsibilities, found.responsibilities[order], atol=1e-9)
    np.testing.assert_allclose(again.log_likelihood, found.log_likelihood[order], rtol=1e-9, atol=1e-9)


def test_a_row_that_no_regime_explains_leaves_the_others_of_its_group_to_decide():
    density = np.array([[-np.inf, -np.inf], [-1.0, -5.0], [np.nan, -np.inf]])
    found = Groups(np.array([0, 0, 0])).assign(density, Prior(np.array([0.5, 0.5])))
    np.testing.assert_allclose(found.responsibilities[0, 0], 1.0 / (1.0 + np.exp(-4.0)))
    expected = np.logaddexp(-1.0, -5.0) + np.log(0.5) + 2 * IMPOSSIBLE
    assert found.log_likelihood.sum() == pytest.approx(expected)
    lost = Groups(np.array([0, 0])).assign(np.full((2, 2), -np.inf), Prior(np.array([0.3, 0.7])))
    np.testing.assert_array_equal(lost.responsibilities, [[0.3, 0.7]] * 2)
    assert lost.log_likelihood.sum() == 2 * IMPOSSIBLE


def test_totals_count_groups_once_and_means_are_of_groups():
    groups = Groups(np.array([0, 1, 0, 0]))
    alike = np.array([0.25, 1.0, 0.25, 0.25])
    assert groups.total(alike) == pytest.approx(1.25)
    values = np.array([[1.0, 0.0], [5.0, 1.0], [2.0, 0.0], [6.0, 3.0]])
    np.testing.assert_allclose(groups.means(values), [[3.0, 1.0], [5.0, 1.0]])
    np.testing.assert_allclose(groups.sums(values[:, 0]), [9.0, 5.0])
    np.testing.assert_array_equal(groups.spread(np.array(["a", "b"])), ["a", "b", "a", "a"])
    assert groups.number(4) == 2


@given(st.lists(st.integers(1, 60), min_size=2, max_size=40), st.integers(4, 400), st.integers(0, 99))
def test_whole_groups_are_taken_and_only_very_large_ones_are_cut(sizes, limit, seed):
    rng = np.random.default_rng(seed)
    groups = Groups(rng.permutation(np.repeat(np.arange(len(sizes)), sizes)))
    n = groups.members.size
    for rows in (groups.thin(np.arange(n), limit), groups.draw(n, limit, rng)):
        assert (np.diff(rows) > 0).all()
        taken = np.bincount(groups.members[rows], minlength=len(sizes))
        cut = (taken > 0) & (taken < groups.sizes)
        assert (taken[cut] >= np.sqrt(limit)).all()
        if n <= limit:
            assert rows.size == n
        else:
            assert 0 < rows.size <= max(2 * limit, *sizes)


def test_few_large_groups_all_stay():
    groups = Groups(np.repeat(np.arange(30), 1000))
    rows = groups.draw(30_000, 6000, np.random.default_rng(0))
    assert np.unique(groups.members[rows]).size == 30
    assert rows.size == 6000


def test_weights_cost_by_groups_and_mechanisms_by_rows(linear):
    model = linear
    penalties = Penalties.build(model.topology.n_variables, None, None)
    counts = 200.0 * model.topology.weights
    by_rows = penalties.cost(model, 200.0)
    by_groups = penalties.cost(model, 10.0, counts)
    n_weights = np.count_nonzero(model.topology.weights) - 1
    assert by_rows - by_groups == pytest.approx(0.5 * n_weights * np.log(200.0 / 10.0))


def test_rows_that_do_not_belong_together_are_the_same_in_another_process():
    assert pickle.loads(pickle.dumps(SEPARATE)) is SEPARATE
    groups = pickle.loads(pickle.dumps(Groups(np.array([0, 0, 1]))))
    np.testing.assert_array_equal(groups.members, [0, 0, 1])
