"""Moves with networks: wrong targets are corrected, splits are merged, merges are split; the evidence only rises."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo.metrics import adjusted_rand_index
from latentdo.solvers.nonlinear.learner import NetworkLearner, with_networks
from latentdo.solvers.nonlinear.mending import improve, refit_networks, simplify
from latentdo.solvers.nonlinear.misfits import is_common
from latentdo.solvers.search import fewer_regimes, regime_moves
from latentdo.solvers.search.em import refine
from latentdo.solvers.search.local_scores import FREE, REFERENCE, TARGET


@pytest.fixture(scope="module")
def truth(make_problem, planted, one_hot):
    problem = make_problem(planted.x)
    state = refine(
        with_networks(problem), one_hot(planted.regimes), planted.adjacency, targets=planted.targets
    )
    return problem, state


def _with(problem, state, targets=None, responsibilities=None, iterations=1):
    """The state with other targets or rows."""
    return refine(
        with_networks(problem),
        state.responsibilities if responsibilities is None else responsibilities,
        state.adjacency,
        targets=state.targets if targets is None else targets,
        model=state.model,
        iterations=iterations,
    )


def _retarget(problem, state):
    return problem.learner.retarget(problem, state)


def _split(state, k, share):
    moved = state.responsibilities[:, k] * share
    split = np.column_stack([state.responsibilities, moved])
    split[:, k] -= moved
    return split


def test_targets_gain_where_they_are(truth, planted):
    problem, state = truth
    gains = with_networks(problem).learner.target_gains(problem, state)
    np.testing.assert_array_equal(gains > 0.0, planted.targets == 1)
    assert (np.abs(gains) > 2.0).all()


@pytest.mark.parametrize("wrong", [(2, 0), (1, 1), (3, 1)])
def test_a_false_target_is_dropped(truth, planted, wrong):
    problem, state = truth
    targets = planted.targets.copy()
    targets[wrong] = 1
    worse = _with(problem, state, targets)
    assert worse.evidence < state.evidence
    better = _retarget(with_networks(problem), worse)
    np.testing.assert_array_equal(better.targets, planted.targets)
    assert better.evidence > worse.evidence


def test_a_missing_target_is_added(make_problem, truth, planted, one_hot):
    _, state = truth
    codes = np.full((4, 3), FREE)
    problem = make_problem(planted.x, labels=planted.regimes, known=codes)
    targets = planted.targets.copy()
    targets[3, 2] = 0
    worse = _with(problem, state, targets, one_hot(planted.regimes))
    better = _retarget(with_networks(problem), worse)
    assert better.targets[3, 2] == 1
    assert better.evidence > worse.evidence + 100.0


def test_known_targets_are_never_touched(make_problem, truth, planted, one_hot):
    _, state = truth
    codes = np.full((4, 3), REFERENCE)
    codes[1:] = np.where(planted.targets[1:, ::-1] == 1, TARGET, REFERENCE)  # false, but the user said so
    problem = make_problem(planted.x, labels=planted.regimes, known=codes)
    targets = (codes == TARGET).astype(np.int8)
    start = _with(problem, state, targets, one_hot(planted.regimes))
    np.testing.assert_array_equal(improve(with_networks(problem), start).targets, targets)


def _follows(state, j):
    return (state.targets[:, j] == 0).any()


def test_somebody_follows_every_reference_mechanism(make_problem, planted, one_hot, truth, monkeypatch):
    """Even if every regime would like a mechanism of its own."""
    _, state = truth
    problem = make_problem(planted.x, labels=planted.regimes, known=np.full((4, 3), FREE))
    start = _with(problem, state, None, one_hot(planted.regimes))
    monkeypatch.setattr(
        NetworkLearner, "target_gains", lambda _, __, state: np.full(state.targets.shape, 10.0)
    )
    after = _retarget(with_networks(problem), start)
    assert all(_follows(after, j) for j in range(3))


def test_a_swap_tried_in_parts_leaves_nobody_out(make_problem, one_hot, monkeypatch):
    """Regime 0 should take a target and regime 1 lose it: one after the other, in the wrong order, both have it."""
    rng = np.random.default_rng(0)
    regimes = np.arange(400) % 2
    a = rng.standard_normal(400)
    b = np.where(regimes == 1, 5.0, 0.0) + rng.standard_normal(400)  # a is a parent that explains nothing
    problem = make_problem(np.column_stack([a, b]), labels=regimes, known=np.full((2, 2), FREE))
    adjacency = np.array([[0, 1], [0, 0]], np.int8)
    start = refine(
        with_networks(problem), one_hot(regimes), adjacency, targets=np.array([[0, 0], [0, 1]], np.int8)
    )
    gains = np.array([[-5.0, 50.0], [-5.0, -1.0]])
    monkeypatch.setattr(NetworkLearner, "target_gains", lambda *_: gains)
    after = _retarget(with_networks(problem), start)
    assert all(_follows(after, j) for j in range(2))


def test_a_known_target_of_all_regimes_is_allowed(make_problem, planted, one_hot, truth):
    _, state = truth
    codes = np.full((4, 3), FREE)
    codes[:, 1] = TARGET
    problem = make_problem(planted.x, labels=planted.regimes, known=codes)
    targets = planted.targets.copy()
    targets[:, 1] = 1
    after = improve(with_networks(problem), _with(problem, state, targets, one_hot(planted.regimes)))
    assert (after.targets[:, 1] == 1).all()
    assert _follows(after, 0)
    assert _follows(after, 2)


@pytest.mark.parametrize("k", range(4))
def test_a_split_regime_is_merged(truth, planted, k):
    problem, state = truth
    share = (np.random.default_rng(99).random(problem.n_rows) < 0.5).astype(float)
    targets = np.vstack([state.targets, state.targets[k]])
    double = _with(problem, state, targets, _split(state, k, share))
    assert double.n_regimes == 5
    merged = fewer_regimes.merge_while_better(with_networks(problem), double)
    assert merged.n_regimes == 4
    assert merged.evidence >= state.evidence - 1.0
    assert adjusted_rand_index(planted.regimes, merged.responsibilities.argmax(axis=1)) > 0.97


def test_different_regimes_are_not_merged(truth):
    problem, state = truth
    assert fewer_regimes.merge_while_better(with_networks(problem), state) is state


def test_there_are_never_more_than_max_regimes(make_problem, truth, planted):
    _, state = truth
    problem = make_problem(planted.x, max_regimes=2)
    assert fewer_regimes.merge_while_better(with_networks(problem), state).n_regimes == 2
    assert improve(with_networks(problem), _with(problem, state)).n_regimes <= 2


def test_labelled_components_are_never_merged(make_problem, truth, planted):
    """Two labels for what is one regime."""
    _, state = truth
    labels = np.where(planted.regimes == 0, np.arange(len(planted.x)) % 2, -1)
    problem = make_problem(planted.x, labels=labels, known=np.full((2, 3), FREE))
    rows = np.eye(5)[np.where(planted.regimes == 0, labels, planted.regimes + 1)]
    targets = np.vstack([np.zeros((1, 3)), planted.targets]).astype(np.int8)
    after = improve(with_networks(problem), _with(problem, state, targets, rows))
    known = labels >= 0
    np.testing.assert_array_equal(after.responsibilities[known].argmax(axis=1), labels[known])
    assert after.n_regimes == 5


@pytest.mark.xfail(
    strict=False,
    reason="births are refused where a reference network was bent towards the hidden rows (lab book, 7)",
)
@pytest.mark.parametrize("gone", [1, 2, 3])
def test_a_hidden_regime_is_born(truth, planted, gone):
    """Its rows were given to the reference."""
    problem, state = truth
    rows = state.responsibilities.copy()
    rows[:, 0] += rows[:, gone]
    fewer = _with(
        problem, state, np.delete(state.targets, gone, axis=0), np.delete(rows, gone, axis=1), iterations=3
    )
    better = improve(with_networks(problem), fewer)
    assert better.n_regimes == 4
    assert better.evidence > state.evidence - 5.0
    assert adjusted_rand_index(planted.regimes, better.responsibilities.argmax(axis=1)) > 0.95


def test_nothing_is_born_where_everything_is_labelled(make_problem, truth, planted, one_hot):
    _, state = truth
    labels = np.where(planted.regimes == 3, 0, planted.regimes)
    problem = make_problem(planted.x, labels=labels, known=np.full((3, 3), FREE))
    after = improve(with_networks(problem), _with(problem, state, planted.targets[:3], one_hot(labels)))
    assert after.n_regimes == 3


@pytest.mark.parametrize("seed", range(3))
def test_moves_never_lower_the_evidence(make_problem, make_planted, seed):
    planted = make_planted(n=600, seed=seed)
    problem = make_problem(planted.x, imperfect=bool(seed % 2))
    rng = np.random.default_rng(seed)
    start = rng.dirichlet(np.full(3 + seed, 0.3), problem.n_rows)
    targets = (rng.random((3 + seed, 3)) < 0.4).astype(np.int8)
    targets[0] = 0
    state = refine(with_networks(problem), start, planted.adjacency, targets=targets, iterations=3)
    problem = with_networks(problem)
    for move in (refit_networks, simplify, _retarget, regime_moves.settle, improve):
        after = move(problem, state)
        assert after.evidence >= state.evidence
        np.testing.assert_allclose(after.responsibilities.sum(axis=1), 1.0, atol=1e-9)


def test_improving_the_optimum_changes_little(truth, planted):
    problem, state = truth
    after = improve(with_networks(problem), state)
    assert after.n_regimes == 4
    np.testing.assert_array_equal(after.targets, planted.targets)
    assert after.evidence >= state.evidence


def test_effects_of_a_target_are_not_made_targets_where_noise_is_flexible(make_problem, planted, one_hot):
    """Regime 1 moves ``a``, and so ``b`` and ``c``: a wider noise there is not an intervention on them."""
    rng = np.random.default_rng(0)
    wider = planted.x.copy()
    wider[planted.regimes == 1, 2] += 2.0 * rng.standard_normal((planted.regimes == 1).sum())
    problem = make_problem(wider)
    rows = one_hot(planted.regimes)
    state = refine(with_networks(problem), rows, planted.adjacency, targets=planted.targets, iterations=1)
    assert _retarget(with_networks(problem), state).targets[1, 2] == 1
    np.testing.assert_array_equal(
        _retarget(with_networks(problem, flexible=True), state).targets, planted.targets
    )


def test_rows_that_leave_a_mechanism_everywhere_are_no_regime(make_problem, one_hot):
    """A third of the rows has an atom in ``b``: in all regimes, or in the first one alone."""
    rng = np.random.default_rng(0)
    regimes = np.arange(900) % 3
    atom = np.arange(900) % 7 == 0
    a, b = rng.standard_normal(900) + 9.0 * (regimes == 1), rng.standard_normal(900) + 9.0 * (regimes == 2)
    targets = np.array([[0, 0], [1, 0], [0, 1]], np.int8)
    for place, common in ((atom, True), (atom & (regimes == 0), False)):
        values = np.where(place, 0.5, b)
        problem = with_networks(make_problem(np.column_stack([a, values])))
        state = refine(problem, one_hot(regimes), np.zeros((2, 2), np.int8), targets=targets, iterations=1)
        rows = np.flatnonzero(regimes == 0)
        assert is_common(problem, state, 0, 1, rows, place[rows].astype(float)) == common
        # A regime that has a mechanism of its own may always come apart.
        rows = np.flatnonzero(regimes == 2)
        assert not is_common(problem, state, 2, 1, rows, atom[rows].astype(float))


@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 3), (1, 3)])
def test_two_regimes_found_as_one_come_apart(truth, planted, first, second):
    """One component with the targets of both: each half follows the reference in what only the other changes."""
    problem, state = truth
    responsibilities = state.responsibilities.copy()
    responsibilities[:, first] += responsibilities[:, second]
    targets = planted.targets.copy()
    targets[first] |= targets[second]
    joined = _with(
        problem, state, np.delete(targets, second, 0), np.delete(responsibilities, second, 1), iterations=4
    )
    assert joined.evidence < state.evidence
    apart = improve(with_networks(problem), joined)
    assert adjusted_rand_index(planted.regimes, apart.responsibilities.argmax(axis=1)) > 0.95
    assert {tuple(row) for row in apart.targets} == {tuple(row) for row in planted.targets}


def test_hidden_rows_stand_out_against_the_other_components(make_problem, one_hot):
    """Half of component 0 has another ``b``: narrower than usual, and just where ``b`` often is."""
    rng = np.random.default_rng(0)
    regimes = np.repeat([0, 1, 2, 3], 500)
    a = rng.standard_normal(2000) + 8.0 * (regimes == 2)
    b = 2.0 * rng.standard_normal(2000)
    c = rng.standard_normal(2000) + 8.0 * (regimes == 3)
    b[regimes == 1] = 0.5 + 0.1 * rng.standard_normal(500)
    problem = make_problem(np.column_stack([a, b, c]))
    targets = np.array([[0, 0, 0], [1, 0, 0], [0, 0, 1]], dtype=np.int8)
    state = refine(
        with_networks(problem, 3),
        one_hot(np.maximum(regimes - 1, 0)),
        np.zeros((3, 3), np.int8),
        targets=targets,
    )
    better = regime_moves.improve(with_networks(problem, 3, flexible=True), state, same_graph=True)
    assert better.n_regimes == 4
    np.testing.assert_array_equal(better.targets[3], [0, 1, 0])
    assert adjusted_rand_index(regimes, better.responsibilities.argmax(axis=1)) > 0.85
