"""Rows in order of time: forward-backward, the likeliest path and the prior against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp

from latentdo.model.assignment import IMPOSSIBLE, Prior, assign
from latentdo.model.series import Series

GAPS = st.sampled_from([0.0, 0.3, 1.0, 5.0])


@st.composite
def chains(draw):
    """A few rows of one or two series, in any order, with log-densities, a prior and some labels."""
    n, k = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    times = np.cumsum(draw(arrays(np.float64, n, elements=GAPS)))
    series = np.sort(draw(arrays(np.int64, n, elements=st.integers(0, 1))))
    density = draw(arrays(np.float64, (n, k), elements=st.floats(-20.0, 20.0)))
    weights = draw(arrays(np.float64, k, elements=st.sampled_from([0.2, 0.5, 1.0])))
    prior = Prior(weights / weights.sum(), draw(st.sampled_from([0.0, 0.5, 2.0, 50.0])))
    labels = draw(arrays(np.int64, n, elements=st.sampled_from([-1, -1, -1, 0])))
    return times, series, density, prior, labels


def _brute_force(times, series, density, prior, labels):
    """Posterior, log-likelihood and the log-probability of every sequence of regimes."""
    terms = {}
    n, k = density.shape
    for regimes in itertools.product(range(k), repeat=n):
        term = 0.0
        for t, regime in enumerate(regimes):
            first = t == 0 or series[t] != series[t - 1]
            gap = np.inf if first else times[t] - times[t - 1]
            stay = np.exp(-gap / prior.duration) if prior.duration else 0.0
            with np.errstate(divide="ignore"):
                term += np.log(
                    stay * (regime == regimes[t - 1]) * (not first) + (1 - stay) * prior.weights[regime]
                )
            term += density[t, regime] if labels[t] in (-1, regime) else -np.inf
        terms[regimes] = term
    total = logsumexp(list(terms.values()))
    posterior = np.zeros((n, k))
    for regimes, term in terms.items():
        posterior[np.arange(n), regimes] += np.exp(term - total)
    return posterior, total, terms


@settings(deadline=None)  # the first call compiles
@given(chains(), st.randoms(use_true_random=False))
def test_forward_backward_is_brute_force_in_whatever_order_rows_come(chain, random):
    times, series, density, prior, labels = chain
    posterior, total, _ = _brute_force(*chain)
    if not np.isfinite(total):
        return  # labels that no sequence of regimes has, at one and the same time
    order = np.array(random.sample(range(times.size), times.size))
    if np.unique(np.column_stack([times, series]), axis=0).shape[0] < times.size:
        order = np.arange(times.size)  # rows of the same time stay in their order
    found = Series.by_time(times[order], series[order], 2).assign(density[order], prior, labels[order])
    np.testing.assert_allclose(found.responsibilities, posterior[order], atol=1e-9)
    assert found.log_likelihood.sum() == pytest.approx(total, rel=1e-9, abs=1e-9)


@settings(deadline=None)
@given(chains())
def test_the_likeliest_path_is_that_of_brute_force(chain):
    times, series, density, prior, labels = chain
    _, total, terms = _brute_force(*chain)
    if not np.isfinite(total):
        return
    path = Series.by_time(times, series, 2).path(density, prior, labels)
    assert terms[tuple(path.tolist())] == pytest.approx(max(terms.values()), abs=1e-9)


def test_without_duration_rows_are_independent():
    rng = np.random.default_rng(0)
    density, weights = rng.normal(size=(40, 3)), np.array([0.2, 0.5, 0.3])
    alone = assign(density.copy(), weights)
    found = Series.by_time(np.arange(40.0), None, 5).assign(density.copy(), Prior(weights))
    np.testing.assert_allclose(found.responsibilities, alone.responsibilities)
    np.testing.assert_allclose(found.log_likelihood, alone.log_likelihood)


def _drawn(n, duration, rng, k=3, shift=1.5):
    weights = np.array([0.5, 0.3, 0.2])[:k]
    gaps = rng.exponential(1.0, n)
    regimes = np.empty(n, dtype=np.int64)
    regimes[0] = 0
    for t in range(1, n):
        stays = rng.random() < np.exp(-gaps[t] / duration)
        regimes[t] = regimes[t - 1] if stays else rng.choice(k, p=weights)
    values = rng.normal(size=n) + shift * regimes
    return np.cumsum(gaps), regimes, -0.5 * (values[:, None] - shift * np.arange(k)) ** 2, weights


def test_settling_never_lowers_the_likelihood_and_finds_the_duration():
    rng = np.random.default_rng(1)
    times, regimes, density, weights = _drawn(6000, 20.0, rng)
    series = Series.by_time(times, None, 10)
    prior, before = Prior(np.full(3, 1 / 3), 1.0), -np.inf
    for _ in range(20):
        value = series.assign(density.copy(), prior).log_likelihood.sum()
        assert value >= before - 1e-6
        before, prior = value, series.settle(density, prior, None)
    assert prior.duration == pytest.approx(20.0, rel=0.15)
    np.testing.assert_allclose(prior.weights, weights, atol=0.08)
    guess = series.prior(np.eye(3)[regimes])
    assert guess.duration == pytest.approx(20.0, rel=0.3)


def test_rows_may_be_left_out():
    """Two steps of the chain are one of a longer gap: the duration stays what it is."""
    rng = np.random.default_rng(2)
    times, _, density, _ = _drawn(8000, 30.0, rng)
    rows = np.flatnonzero(rng.random(8000) < 0.4)
    series = Series.by_time(times, None, 10)
    durations = []
    for units, part in ((series, density), (series.take(rows), density[rows])):
        prior = units.prior(np.eye(3)[part.argmax(axis=1)])
        for _ in range(15):
            prior = units.settle(part, prior, None)
        durations.append(prior.duration)
    assert durations[1] == pytest.approx(durations[0], rel=0.2)


def test_irregular_and_regular_gaps_alike():
    series = Series.by_time(np.arange(1000.0) * 60.0, None, 10)
    renewed = np.full(1000, 0.05)
    assert series._duration(renewed) == pytest.approx(-60.0 / np.log(0.95))
    irregular = Series.by_time(np.cumsum(np.random.default_rng(3).exponential(1.0, 3000)), None, 10)
    assert len(irregular._bins[2]) <= 256
    chance = -np.expm1(-np.where(np.isfinite(irregular.gaps), irregular.gaps, 0.0) / 7.0)
    assert irregular._duration(chance) == pytest.approx(7.0, rel=0.02)


def test_stretches_are_of_neighbours_and_end_with_a_series_or_a_pause():
    times = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 500.0, 501.0, 0.0, 1.0])
    series = np.array([0, 0, 0, 0, 0, 0, 0, 1, 1])
    order = np.random.default_rng(0).permutation(9)
    units = Series.by_time(times[order], series[order], 3)
    members = np.empty(9, dtype=np.int64)
    members[order] = units.members
    np.testing.assert_array_equal(members, [0, 0, 0, 1, 1, 2, 2, 3, 3])


def test_rows_that_nothing_explains_say_nothing():
    density = np.array([[0.0, -9.0], [-np.inf, -np.inf], [np.nan, np.nan], [0.0, -9.0]])
    found = Series.by_time(np.arange(4.0), None, 2).assign(density, Prior(np.array([0.5, 0.5]), 100.0))
    assert (found.responsibilities[:, 0] > 0.99).all()
    assert found.log_likelihood[1] == pytest.approx(IMPOSSIBLE)


def test_labels_that_contradict_the_chain_cut_it():
    units = Series.by_time(np.zeros(2), None, 2)  # at the same time, so of the same regime
    found = units.assign(np.zeros((2, 2)), Prior(np.array([0.5, 0.5]), 1.0), np.array([0, 1]))
    np.testing.assert_array_equal(found.responsibilities, np.eye(2))
    assert np.isfinite(found.log_likelihood).all()
