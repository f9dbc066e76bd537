"""The search with rows that share their regime: what depends on rows being independent, and must not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from latentdo.metrics import adjusted_rand_index
from latentdo.model.assignment import SEPARATE, Groups
from latentdo.model.mechanisms.additive import AdditiveMechanism
from latentdo.scm import simulate
from latentdo.solvers.search import fewer_regimes, regime_moves, starts
from latentdo.solvers.search.em import refine, weigh
from latentdo.solvers.search.intervened_rows import knowing, two_mechanisms
from latentdo.solvers.search.row_splits import split_by_family
from latentdo.solvers.search.rows import RowLearner
from latentdo.solvers.search.splits import split_by_lines


@pytest.fixture(scope="module")
def weak():
    """Shifts of one standard deviation, which single rows do not show; groups of 20 rows do."""
    return simulate(
        n_variables=3, n_samples=1600, preset="dcdi", separation=1.0, random_state=1000, group_size=20
    )


@pytest.fixture
def problem(weak, make_problem):
    return replace(make_problem(weak.X), units=Groups.of(weak.groups))


def _true_state(problem, weak, one_hot):
    return refine(problem, one_hot(weak.regimes), weak.adjacency.to_numpy().astype(np.int8))


def test_evidence_is_that_of_a_mixture_of_groups(problem, weak, one_hot):
    state = _true_state(problem, weak, one_hot)
    density = state.model.log_density(problem.z)
    weights = state.model.topology.weights
    joint = [density[weak.groups == g].sum(axis=0) + np.log(weights) for g in range(weak.groups.max() + 1)]
    assert state.loglik == pytest.approx(logsumexp(joint, axis=1).sum())
    assert problem.n_units == len(joint)
    again = weigh(problem, state.model)
    assert again.evidence == pytest.approx(state.evidence)


def test_weights_are_shares_of_groups_of_whatever_size(weak, make_problem, one_hot):
    """A few large groups and many small ones: the weight of a regime does not depend on the rows of its groups."""
    rng = np.random.default_rng(0)
    regimes = np.repeat([0, 1], [10, 30])
    sizes = np.where(regimes == 0, 60, 20)
    groups = np.repeat(np.arange(40), sizes)
    x = rng.normal(size=(groups.size, 2)) + 6.0 * regimes[groups, None] * [0.0, 1.0]
    problem = replace(make_problem(x), units=Groups.of(groups))
    state = refine(problem, one_hot(regimes[groups]), np.zeros((2, 2), dtype=np.int8))
    np.testing.assert_allclose(state.model.topology.weights, [0.25, 0.75], atol=1e-6)
    np.testing.assert_allclose(problem.counts(state.responsibilities), [600.0, 600.0], atol=1e-3)
    parameters = [mechanism.n_parameters for mechanism in state.model.reference]
    shared = [1200.0, 600.0]  # rows, not groups
    cost = 0.5 * np.log(40.0) + sum(0.5 * p * np.log(n) for p, n in zip(parameters, shared, strict=True))
    ((_, own),) = state.model.own.items()
    cost += 0.5 * own.n_parameters * np.log(600.0) - problem.penalties.target_prior
    assert state.cost == pytest.approx(cost, rel=1e-6)


def test_two_mechanisms_of_groups_against_the_formula():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(30), 8)
    leaves = groups < 10
    values = rng.normal(size=240) + 0.9 * leaves
    rows = np.column_stack([np.ones(240), values])
    base = -0.5 * (np.log(2 * np.pi) + values**2)
    share = np.where(groups < 15, 0.8, 0.1)
    second = share.copy()
    known = knowing(log_density=base, groups=groups)
    value = two_mechanisms(rows, 0, 1, known, np.ones(240), second, 1, 0.0, 0.0)
    mean = np.average(values, weights=share)
    variance = np.average((values - mean) ** 2, weights=share)
    other = -0.5 * (np.log(2 * np.pi * variance) + (values - mean) ** 2 / variance)
    pooled = np.array([[base[groups == g].sum(), other[groups == g].sum()] for g in range(30)])
    part = (share / 8).sum() / 30
    joint = pooled + np.log([1.0 - part, part])
    assert value == pytest.approx(logsumexp(joint, axis=1).sum())
    np.testing.assert_allclose(second, expit(joint[:, 1] - joint[:, 0])[groups])
    two_mechanisms(rows, 0, 1, known, np.ones(240), second, 100, 1e-9, 0.0)
    assert (
        (second > 0.5) == leaves
    ).mean() > 0.9  # single rows, 0.9 standard deviations apart, cannot be told apart


@pytest.mark.parametrize("by_family", [False, True])
def test_a_split_moves_whole_groups(problem, weak, one_hot, by_family):
    everyone = np.ones((problem.n_rows, 1))
    state = refine(problem, everyone, weak.adjacency.to_numpy().astype(np.int8))
    rows = np.arange(problem.n_rows)
    target = int(weak.targets.to_numpy()[1].argmax())
    if by_family:
        split = split_by_family(problem, state, target, rows, RowLearner(AdditiveMechanism))
    else:
        split = split_by_lines(problem, state, 0, target, rows)
    assert split is not None
    assert split.gain > 0.0
    np.testing.assert_allclose(split.share, problem.units.spread(problem.units.means(split.share)), atol=1e-9)
    hit = weak.targets.to_numpy()[weak.regimes, target] == 1
    assert adjusted_rand_index(hit, split.share > 0.5) > 0.8


def test_births_from_one_regime_find_them_all(problem, weak):
    everyone = np.ones((problem.n_rows, 1))
    start = refine(problem, everyone, weak.adjacency.to_numpy().astype(np.int8))
    found = regime_moves.improve(problem, start)
    assert found.n_regimes == weak.n_regimes
    assert adjusted_rand_index(weak.regimes, found.responsibilities.argmax(axis=1)) > 0.9


def test_the_change_by_a_merge_counts_groups_once(problem, weak, one_hot):
    """Merging two halves of a regime that were assigned at random must bring the whole entropy of the choice back."""
    rng = np.random.default_rng(2)
    half = rng.random(weak.groups.max() + 1)[weak.groups]
    split = np.column_stack([half, 1.0 - half])
    state = refine(problem, np.ones((problem.n_rows, 1)), weak.adjacency.to_numpy().astype(np.int8))
    two = replace(
        state, responsibilities=split, model=state.model.keep(np.array([0, 0])).with_weights(np.full(2, 0.5))
    )
    (merge,) = fewer_regimes.propose_merges(problem, two)
    n, once = problem.n_units, problem.units.total
    counts = once(split)
    entropy = -once(split * np.log(split)).sum()
    weights = -(counts * np.log(counts / n)).sum()
    assert merge.change == pytest.approx(0.5 * np.log(n) + weights - entropy, abs=1e-6)


@pytest.mark.parametrize("name", ["mixture", "k-means"])
def test_clusterings_keep_groups_together(problem, name):
    found = starts.clustering(problem, name, 0)
    np.testing.assert_allclose(found, problem.units.spread(problem.units.means(found)))


def test_the_residual_start_sees_weak_shifts(problem, weak):
    state = starts.residual(problem, 0)
    assert adjusted_rand_index(weak.regimes, state.responsibilities.argmax(axis=1)) > 0.7


def test_groups_are_kept_where_rows_are_taken(problem):
    rows = problem.units.draw(problem.n_rows, 400, np.random.default_rng(0))
    some = problem.take(rows)
    assert some.n_units == 20
    assert some.take(np.flatnonzero(some.units.numbers() == 3)).n_units == 1
    one_each = np.unique(problem.units.numbers(), return_index=True)[1]
    assert problem.take(one_each).units is SEPARATE
