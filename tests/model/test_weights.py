"""Rows that count more or less often than once: the E-step against repeated rows, and against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp

from latentdo.model.assignment import IMPOSSIBLE, SEPARATE, Groups, Prior, Weighted
from latentdo.model.series import Series

NUMBERS = st.floats(-50.0, 50.0)


@st.composite
def rows(draw):
    """Log-densities, shares of regimes, how often rows count, and groups."""
    n, k = draw(st.integers(1, 7)), draw(st.integers(1, 3))
    density = draw(arrays(np.float64, (n, k), elements=NUMBERS))
    shares = draw(arrays(np.float64, k, elements=st.sampled_from([0.1, 0.5, 1.0])))
    counts = draw(arrays(np.int64, n, elements=st.integers(1, 3)))
    groups = draw(arrays(np.int64, n, elements=st.integers(0, 2)))
    return density, shares / shares.sum(), counts, groups


@settings(deadline=None)  # the first call compiles
@given(rows())
def test_a_row_of_weight_two_is_the_row_twice(problem):
    density, shares, counts, groups = problem
    again = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts  # the first copy of every row
    weights, prior = counts.astype(float), Prior(shares)
    members = np.unique(groups, return_inverse=True)[1]
    time = 3.0 * np.arange(len(counts))
    pairs = {
        "on their own": (Weighted(weights), SEPARATE),
        "in groups": (Groups(members, weights=weights), Groups(members[again])),
        "in order": (Series.by_time(time, groups, 4, weights), Series.by_time(time[again], groups[again], 4)),
    }
    for name, (weighted, repeated) in pairs.items():
        prior = Prior(shares, 5.0 if name == "in order" else 0.0)
        found, other = (
            weighted.assign(density.copy(), prior),
            repeated.assign(density[again].copy(), prior),
        )
        np.testing.assert_allclose(found.responsibilities, other.responsibilities[first], atol=1e-9)
        assert found.log_likelihood.sum() == pytest.approx(other.log_likelihood.sum(), rel=1e-9, abs=1e-9)
        carried = found.responsibilities
        np.testing.assert_allclose(
            weighted.counted(carried).sum(axis=0), repeated.counted(carried[again]).sum(axis=0)
        )
        if name == "in order":  # stretches are cut by rows, not by what they count
            continue
        np.testing.assert_allclose(
            weighted.prior(carried).weights, repeated.prior(carried[again]).weights, atol=1e-12
        )
        np.testing.assert_allclose(weighted.total(carried), repeated.total(carried[again]))
        assert weighted.number(len(counts)) == repeated.number(len(again))
        if name == "in groups":
            np.testing.assert_allclose(weighted.means(density), repeated.means(density[again]), atol=1e-9)
            np.testing.assert_allclose(weighted.sums(density), repeated.sums(density[again]), atol=1e-9)


def test_weights_need_not_be_whole_numbers():
    density = np.log([[0.2, 0.4], [0.3, 0.1], [0.5, 0.5]])
    weights, shares = np.array([0.5, 1.5, 2.0]), np.array([0.7, 0.3])
    alone = logsumexp(density + np.log(shares), axis=1)
    assert Weighted(weights).assign(density.copy(), Prior(shares)).log_likelihood.sum() == pytest.approx(
        weights @ alone
    )
    together = logsumexp(weights @ density + np.log(shares))
    members = np.zeros(3, dtype=np.int64)
    found = Groups(members, weights=weights).assign(density.copy(), Prior(shares))
    assert found.log_likelihood.sum() == pytest.approx(together)


def test_weights_go_with_their_rows():
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    some = np.array([3, 1])
    for units in (
        Weighted(weights),
        Groups.of(np.array([0, 0, 1, 1]), weights),
        Series.by_time(np.arange(4.0), None, 2, weights),
    ):
        np.testing.assert_array_equal(units.take(some).repeats(), [4.0, 2.0])
        np.testing.assert_array_equal(units.pooled.counted(np.ones((4, 1)))[:, 0], weights)
    assert Groups.of(None) is SEPARATE
    assert SEPARATE.repeats().size == 0


def test_a_group_of_one_row_that_counts_twice_is_a_group():
    density, shares = np.log([[0.2, 0.4]]), np.array([0.5, 0.5])
    units = Groups.of(np.array([0]), np.array([2.0]))
    assert units.number(1) == 1
    found = units.assign(density.copy(), Prior(shares)).log_likelihood.sum()
    assert found == pytest.approx(np.log(0.5 * 0.2**2 + 0.5 * 0.4**2))


def test_rows_that_no_regime_explains_count_as_often():
    density = np.array([[-np.inf, -np.inf], [0.0, -1.0]])
    units = Groups(np.zeros(2, dtype=np.int64), weights=np.array([3.0, 1.0]))
    found = units.assign(density.copy(), Prior(np.array([0.5, 0.5])))
    expected = 3.0 * IMPOSSIBLE + logsumexp(np.array([0.0, -1.0]) + np.log(0.5))
    assert found.log_likelihood.sum() == pytest.approx(expected)
