"""Learning from weighted rows: against moments where both can say something, and where moments cannot."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from latentdo.graphs import is_dag
from latentdo.model.mechanisms.additive import AdditiveMechanism
from latentdo.model.mechanisms.any_noise import AnyNoise
from latentdo.scm import simulate
from latentdo.solvers.search import em, fewer_regimes, regime_moves
from latentdo.solvers.search.learner import MomentLearner
from latentdo.solvers.search.rows import RowLearner


@pytest.fixture(scope="module")
def learner():
    return RowLearner(AnyNoise)


@pytest.fixture(scope="module")
def skewed(make_problem, one_hot):
    """Four variables, three regimes, skewed noise; the problem, the true assignment, graph and targets."""
    data = simulate(
        n_variables=4,
        n_samples=1500,
        preset="field",
        noise="gamma",
        n_regimes=3,
        separation=3.0,
        random_state=1,
    )
    problem = replace(make_problem(data.X, imperfect=True), learner=RowLearner(AnyNoise))
    return (
        problem,
        one_hot(data.regimes),
        data.adjacency.to_numpy().astype(np.int8),
        data.targets.to_numpy().astype(np.int8),
    )


def test_with_gaussian_noise_and_perfect_interventions_scores_are_those_of_moments(
    make_problem, one_hot, chain, learner
):
    """The same likelihood, the same costs, by quite different ways."""
    problem = make_problem(chain.X)
    responsibilities = one_hot(chain.regimes)
    adjacency = chain.adjacency.to_numpy().astype(np.int8)
    by_moments = MomentLearner()
    moments = by_moments.statistics(problem, responsibilities)
    rows = learner.statistics(problem, responsibilities)
    expected, scores = by_moments.choose_targets(problem, moments, adjacency)
    targets, found = learner.choose_targets(problem, rows, adjacency)
    np.testing.assert_array_equal(targets, expected)
    np.testing.assert_allclose(found, scores, rtol=1e-9)
    assert em.weigh(problem, learner.fit(problem, rows, adjacency, targets)).evidence == pytest.approx(
        em.weigh(problem, by_moments.fit(problem, moments, adjacency, targets)).evidence, rel=1e-9
    )


def test_scores_add_up_to_the_evidence_of_labelled_rows(skewed):
    problem, responsibilities, adjacency, _ = skewed
    labels = responsibilities.argmax(axis=1)
    known = np.full((3, 4), -1, dtype=np.int8)
    labelled = replace(problem, labels=labels, known=known)
    statistics = labelled.learner.statistics(labelled, responsibilities)
    targets, scores = labelled.learner.choose_targets(labelled, statistics, adjacency)
    state = em.weigh(labelled, labelled.learner.fit(labelled, statistics, adjacency, targets))
    counts = np.bincount(labels)
    weights = counts @ np.log(counts / counts.sum()) - 0.5 * 2 * np.log(len(labels))
    assert state.evidence == pytest.approx(scores.sum() + weights, abs=1e-6)


def test_true_targets_are_chosen_from_a_true_assignment(skewed):
    problem, responsibilities, adjacency, targets = skewed
    statistics = problem.learner.statistics(problem, responsibilities)
    found, _ = problem.learner.choose_targets(problem, statistics, adjacency)
    np.testing.assert_array_equal(found, targets)
    probabilities = problem.learner.target_probabilities(problem, statistics, adjacency, found)
    assert (probabilities[targets == 1] > 0.99).all()
    assert (probabilities[targets == 0] < 0.5).all()


def test_the_graph_is_the_best_of_all(skewed):
    problem, responsibilities, adjacency, _ = skewed
    learner = problem.learner
    statistics = learner.statistics(problem, responsibilities)
    found = learner.best_graph(problem, statistics, np.zeros_like(adjacency), thorough=True)
    tables = learner.tables(problem, statistics, found)
    places = [(i, j) for i in range(4) for j in range(4) if i != j]
    best = -np.inf
    for edges in product((0, 1), repeat=len(places)):
        graph = np.zeros((4, 4), dtype=np.int8)
        for (i, j), edge in zip(places, edges, strict=True):
            graph[i, j] = edge
        if is_dag(graph):
            best = max(best, tables.score_of(graph))
    assert tables.score_of(found) == pytest.approx(best, abs=1e-9)
    np.testing.assert_array_equal(found, adjacency)


def test_climbing_keeps_to_what_is_known_of_the_graph(make_problem, chain):
    rows = chain.X.to_numpy()
    problem = replace(
        make_problem(rows, forbidden=[("a", "b")], required=[("a", "c")], max_parents=1),
        learner=RowLearner(AnyNoise),
    )
    start = problem.constraints.required.astype(np.int8)
    found = em.search_graph(problem, np.ones((len(rows), 1)), start)
    assert found[0, 2] == 1
    assert found[0, 1] == 0
    assert found.sum(axis=0).max() <= 1


def test_what_noise_of_any_shape_absorbed_is_split_off_again(skewed):
    problem, responsibilities, adjacency, targets = skewed
    everyone = em.refine(problem, np.ones((problem.n_rows, 1)), adjacency, iterations=1)
    state = regime_moves.improve(problem, everyone, same_graph=True)
    state = fewer_regimes.drop_while_better(problem, state)
    state = fewer_regimes.fit_afresh(problem, state)
    state = fewer_regimes.drop_targets_while_better(problem, state)
    truth = em.refine(problem, responsibilities, adjacency)
    assert state.evidence > truth.evidence - 10.0  # a Gaussian more or fewer in a shape is worth that much
    assert (
        adjusted_rand_score(truth.responsibilities.argmax(axis=1), state.responsibilities.argmax(axis=1))
        > 0.8
    )
    assert state.targets.sum() == targets.sum()


def test_copies_of_a_regime_are_worth_merging_and_others_are_not(skewed):
    problem, responsibilities, adjacency, _ = skewed
    half = np.random.default_rng(0).random(problem.n_rows) < 0.5
    split = np.column_stack([responsibilities, responsibilities[:, 1] * half])
    split[:, 1] *= ~half
    state = em.refine(problem, split, adjacency, iterations=1)
    statistics = problem.learner.statistics(problem, state.responsibilities, state.model)
    pairs = [(1, 3), (1, 2), (0, 2)]
    found = problem.learner.merge_changes(problem, statistics, state.model, pairs)
    same, *different = (change for change, _ in found)
    np.testing.assert_array_equal(found[0][1], state.targets[1])
    assert same > max(different)
    assert max(different) < 0.0


def test_a_superfluous_regime_is_dropped_and_a_needed_one_is_not(skewed):
    problem, responsibilities, adjacency, _ = skewed
    truth = em.refine(problem, responsibilities, adjacency)
    third = np.random.default_rng(0).random(problem.n_rows) < 0.33
    split = np.column_stack([truth.responsibilities * ~third[:, None], third])
    state = fewer_regimes.drop_while_better(problem, em.refine(problem, split, adjacency, iterations=1))
    assert state.n_regimes == 3
    state = em.refine(problem, state.responsibilities, adjacency)  # shapes from scratch
    assert state.evidence == pytest.approx(truth.evidence, abs=6.0)  # shapes have local optima


def test_curves_are_learnt_where_lines_would_turn_an_edge(make_problem):
    rng = np.random.default_rng(3)
    a = rng.uniform(-2.0, 2.0, 800)
    b = np.tanh(2.0 * a) + 0.2 * rng.standard_normal(800)
    problem = replace(make_problem(np.column_stack([a, b])), learner=RowLearner(AdditiveMechanism))
    state = em.relearn(problem, np.ones((800, 1)))
    np.testing.assert_array_equal(state.adjacency, [[0, 1], [0, 0]])
    assert isinstance(state.model.reference[1], AdditiveMechanism)


def test_a_mechanism_that_nobody_shares_rules_its_parents_out(make_problem, one_hot, chain, learner):
    """Every regime is known to target the first variable: nothing can be said of its causes."""
    regimes = chain.regimes
    known = np.full((regimes.max() + 1, 3), -1, dtype=np.int8)
    known[:, 0] = 1
    problem = make_problem(chain.X, labels=regimes, known=known)
    statistics = learner.statistics(problem, one_hot(regimes))
    targets, scores = learner.choose_targets(problem, statistics, np.zeros((3, 3), dtype=np.int8))
    assert targets[:, 0].all()
    assert scores[0] == -np.inf
    assert np.isfinite(scores[1:]).all()
