"""Births and merges: what was wrongly joined comes apart, what was wrongly split comes together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from latentdo.scm import simulate
from latentdo.solvers.search import em, fewer_regimes, regime_moves
from latentdo.solvers.search.local_scores import FREE
from latentdo.solvers.search.moments import Moments
from latentdo.solvers.search.parameters import choose_all_targets


@pytest.fixture(scope="module")
def data():
    return simulate(n_variables=4, edges_per_node=1, n_samples=1200, random_state=11)


@pytest.fixture(scope="module")
def truth(make_problem, one_hot, data):
    problem = make_problem(data.X)
    return problem, em.relearn(problem, one_hot(data.regimes))


def _agreement(state, data):
    return adjusted_rand_score(data.regimes, state.responsibilities.argmax(axis=1))


def _merged(responsibilities, first, second):
    joined = responsibilities.copy()
    joined[:, first] += joined[:, second]
    return np.delete(joined, second, axis=1)


@pytest.mark.parametrize("pair", [(0, 1), (1, 3), (2, 4)])
def test_a_merged_pair_is_split_again(truth, data, pair):
    problem, best = truth
    merged = em.refine(problem, _merged(best.responsibilities, *pair), best.adjacency)
    assert merged.evidence < best.evidence
    births = regime_moves.propose_births(problem, merged)
    assert births
    assert births[0].gain == max(birth.gain for birth in births)
    state = regime_moves.improve(problem, merged)
    assert state.n_regimes == 5
    assert state.evidence >= best.evidence - 1.0
    assert _agreement(state, data) > 0.97


@pytest.mark.parametrize("regime", [0, 2])
def test_a_split_regime_is_merged(truth, data, regime):
    problem, best = truth
    rng = np.random.default_rng(0)
    share = rng.random(problem.n_rows) < 0.5
    moved = best.responsibilities[:, regime] * share
    split = np.column_stack([best.responsibilities, moved])
    split[:, regime] -= moved
    state = em.refine(problem, split, best.adjacency, iterations=2)
    assert state.n_regimes == 6
    change, a, b, _ = fewer_regimes.propose_merges(problem, state)[0]
    assert change > 0
    assert {a, b} == {regime, 5}
    state = fewer_regimes.merge_while_better(problem, state)
    assert state.n_regimes == 5
    assert state.evidence >= best.evidence - 1.0
    assert _agreement(state, data) > 0.97


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tails", [False, True])
def test_improve_never_loses_evidence(make_problem, seed, tails):
    data = simulate(n_variables=3, edges_per_node=1, n_samples=500, preset="dcdi", random_state=seed)
    problem = make_problem(data.X, imperfect=bool(seed % 2))
    rng = np.random.default_rng(seed)
    state = em.relearn(problem, rng.dirichlet(np.full(3 + seed, 0.2), problem.n_rows), rounds=2)
    better = regime_moves.improve(problem, state, tails=tails)
    assert better.evidence >= state.evidence - 1e-6
    np.testing.assert_allclose(better.responsibilities.sum(axis=1), 1.0, atol=1e-9)


def test_improving_the_optimum_changes_nothing(truth, data):
    problem, best = truth
    state = regime_moves.improve(problem, best)
    assert state.evidence >= best.evidence
    assert state.n_regimes == 5
    np.testing.assert_array_equal(state.adjacency, data.adjacency)


def test_a_birth_moves_rows_and_loses_none(truth):
    problem, best = truth
    rows = np.arange(0, problem.n_rows, 3)
    birth = regime_moves.Birth(1.0, 0, 1, rows, np.full(rows.size, 0.25))
    split = birth.apply(best.responsibilities)
    np.testing.assert_allclose(split[:, [0, -1]].sum(axis=1), best.responsibilities[:, 0])
    np.testing.assert_allclose(split[rows, -1], 0.25 * best.responsibilities[rows, 0])
    np.testing.assert_allclose(split.sum(axis=1), 1.0)
    np.testing.assert_allclose(_merged(split, 0, split.shape[1] - 1), best.responsibilities)


def test_a_birth_may_take_rows_of_several_regimes(truth):
    problem, best = truth
    rows, share = np.arange(0, problem.n_rows, 2), 0.5
    birth = regime_moves.Birth(1.0, 0, 1, rows, np.full(rows.size, share), others=(2, 3))
    split = birth.apply(best.responsibilities)
    np.testing.assert_allclose(
        split[rows, -1], share * best.responsibilities[np.ix_(rows, [0, 2, 3])].sum(axis=1)
    )
    np.testing.assert_allclose(split[:, 1], best.responsibilities[:, 1])
    np.testing.assert_allclose(split.sum(axis=1), 1.0)
    targets = np.array([[0, 0, 0], [1, 1, 1], [1, 0, 1], [1, 0, 0]], np.int8)
    np.testing.assert_array_equal(birth.hit(targets)[-1], [0, 1, 0])  # what all of them had, and the variable


def test_a_regime_that_nobody_misses_is_dropped(truth):
    """A copy of a regime is gone without a trace; the regimes that are there stay."""
    problem, best = truth
    k = best.n_regimes - 1
    doubled = np.column_stack([best.responsibilities, 0.5 * best.responsibilities[:, k]])
    doubled[:, k] *= 0.5
    state = em.refine(problem, doubled, best.adjacency, iterations=1)
    assert state.n_regimes == best.n_regimes + 1
    dropped = fewer_regimes.drop_while_better(problem, state)
    assert dropped.n_regimes == best.n_regimes
    assert dropped.evidence > state.evidence
    assert fewer_regimes.drop_while_better(problem, best).n_regimes == best.n_regimes


def test_a_birth_says_who_is_hit():
    """Those who leave; those who stay no longer, if they follow the reference mechanism."""
    targets = np.array([[0, 0], [1, 1]], np.int8)
    rows, share = np.arange(3), np.ones(3)
    birth = regime_moves.Birth(1.0, 1, 0, rows, share)
    np.testing.assert_array_equal(birth.hit(targets), [[0, 0], [0, 1], [1, 1]])
    apart = regime_moves.Birth(1.0, 1, 0, rows, share, reference_stays=False)
    np.testing.assert_array_equal(apart.hit(targets), [[0, 0], [1, 1], [1, 1]])
    from_reference = regime_moves.Birth(1.0, 0, 1, rows, share)
    np.testing.assert_array_equal(from_reference.hit(targets), [[0, 0], [1, 1], [0, 1]])


def _bound(problem, responsibilities, adjacency):
    """Variational bound less costs, from its definition."""
    moments = Moments.of(problem.design, responsibilities)
    counts = responsibilities.sum(axis=0)
    _, scores = choose_all_targets(problem, moments, adjacency)
    entropy = -np.sum(responsibilities * np.log(np.maximum(responsibilities, 1e-300)))
    weights = counts @ np.log(counts / counts.sum()) - 0.5 * (len(counts) - 1) * np.log(counts.sum())
    return scores.sum() + weights + entropy


def test_merges_are_judged_by_the_exact_change_of_the_bound(make_problem, one_hot):
    data = simulate(n_variables=3, edges_per_node=1, n_samples=600, preset="dcdi", random_state=3)
    problem = make_problem(data.X)
    state = em.refine(problem, one_hot(data.regimes), data.adjacency.to_numpy().astype(np.int8))
    before = _bound(problem, state.responsibilities, state.adjacency)
    merges = fewer_regimes.propose_merges(problem, state)
    assert len(merges) == state.n_regimes * (state.n_regimes - 1) / 2
    assert [change for change, *_ in merges] == sorted((change for change, *_ in merges), reverse=True)
    for change, a, b, _ in merges:
        after = _bound(problem, _merged(state.responsibilities, a, b), state.adjacency)
        assert change == pytest.approx(after - before, abs=1e-3)


def test_max_regimes_is_a_limit(make_problem, one_hot, data):
    problem = make_problem(data.X, max_regimes=3)
    state = em.relearn(problem, one_hot(data.regimes))
    assert regime_moves.improve(problem, state).n_regimes <= 3


def test_labelled_components_are_never_merged(make_problem, one_hot, data):
    """Labels 0 and 1 are made up: both are parts of the same regime."""
    labels = np.full(len(data.regimes), -1)
    observational = np.flatnonzero(data.regimes == 0)
    labels[observational[::2]] = 0
    labels[observational[1::2]] = 1
    problem = make_problem(data.X, labels=labels, known=np.full((2, 4), FREE))
    start = np.zeros((len(labels), 6))
    start[:, 2:] = np.eye(4)[np.maximum(data.regimes - 1, 0)]
    state = em.relearn(problem, problem.clamp(start))
    assert all(one.second >= 2 for one in fewer_regimes.propose_merges(problem, state))
    state = regime_moves.improve(problem, state)
    known = labels >= 0
    np.testing.assert_array_equal(state.responsibilities[known].argmax(axis=1), labels[known])


def test_nothing_moves_where_everything_is_labelled(make_problem, one_hot, data):
    problem = make_problem(data.X, labels=data.regimes, known=np.full((5, 4), FREE))
    state = em.relearn(problem, one_hot(data.regimes))
    assert regime_moves.improve(problem, state) is state
    assert regime_moves.propose_births(problem, state) == []


def test_halves_of_a_regime_are_joined_by_fits_from_nothing(truth):
    """The state is as good as before it was cut in two, and a state that needs its regimes keeps them."""
    problem, best = truth
    k = best.n_regimes - 1
    rows = np.arange(problem.n_rows) % 2 == 0
    halves = np.column_stack([best.responsibilities, np.where(rows, best.responsibilities[:, k], 0.0)])
    halves[rows, k] = 0.0
    cut = em.refine(problem, halves, best.adjacency, iterations=1)
    joined = regime_moves.merge_and_split_while_better(problem, cut)
    assert joined.n_regimes == best.n_regimes
    assert joined.evidence == pytest.approx(best.evidence, abs=1.0)
    assert regime_moves.merge_and_split_while_better(problem, best).n_regimes == best.n_regimes


def _doubled(state, problem, variable):
    """Every regime in two, by whether a variable is high, which is then a target of the second."""
    high = (problem.z[:, variable] > np.median(problem.z[:, variable]))[:, None]
    rows = np.column_stack([state.responsibilities * ~high, state.responsibilities * high])
    hit = state.targets.copy()
    hit[:, variable] = 1
    return em.refine(
        problem, rows, state.adjacency, iterations=1, targets=np.vstack([state.targets, hit]).astype(np.int8)
    )


def test_regimes_that_one_variable_tells_apart_are_one_without_it(truth, data):
    problem, best = truth
    j = 1
    doubled = _doubled(best, problem, j)
    assert doubled.n_regimes > best.n_regimes
    hits = doubled.targets.sum(axis=0)
    assert hits[j] == hits.max() > np.delete(hits, j).max()  # so it comes first
    without = next(regime_moves._variables_forgotten(problem, doubled))
    assert without.n_regimes == len(np.unique(np.delete(doubled.targets, j, axis=1), axis=0))
    mended = regime_moves.merge_and_split_while_better(problem, doubled)
    assert mended.evidence > doubled.evidence
    assert mended.evidence == pytest.approx(best.evidence, abs=1.0)
    assert _agreement(mended, data) > 0.97


def test_labelled_regimes_stay_apart_when_a_variable_is_forgotten(make_problem, one_hot, data):
    labels = np.where(data.regimes < 2, data.regimes, -1)
    problem = make_problem(data.X, labels=labels, known=np.full((2, 4), FREE))
    state = em.relearn(problem, problem.clamp(one_hot(data.regimes)))
    forgotten = list(regime_moves._variables_forgotten(problem, _doubled(state, problem, 0)))
    assert forgotten
    for one in forgotten:
        assert one.n_regimes >= 2
        np.testing.assert_array_equal(one.responsibilities[labels >= 0].argmax(axis=1), labels[labels >= 0])


def test_a_state_is_like_itself_with_regimes_in_another_order_and_a_few_rows_moved(truth):
    problem, best = truth
    order = np.arange(best.n_regimes)[::-1]
    other = em.weigh(problem, best.model.keep(order))
    assert best.is_like(other, 0.01)
    moved = best.responsibilities.copy()
    moved[:10] = np.roll(moved[:10], 1, axis=1)
    assert replace(best, responsibilities=moved).is_like(other, 0.01)
    moved[:100] = np.roll(moved[:100], 2, axis=1)
    assert not replace(best, responsibilities=moved).is_like(other, 0.01)
    topology = replace(best.model.topology, targets=1 - best.targets)
    assert not replace(best, model=replace(best.model, topology=topology)).is_like(other, 0.01)
    assert not best.is_like(em.weigh(problem, best.model.keep(order[1:])), 0.01)


def test_moves_that_lead_back_end_there(truth, monkeypatch):
    problem, best = truth
    monkeypatch.setattr(
        regime_moves, "propose_births", lambda *_: pytest.fail("it has been looked at already")
    )
    assert regime_moves.improve(problem, best, unlike=best).is_like(best, 0.01)
