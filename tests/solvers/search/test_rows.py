"""Learning from weighted rows: against moments where both can say something, and where moments cannot."""

from __future__ import annotations

import pickle
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
from latentdo.solvers.search.fit_memory import FitMemory
from latentdo.solvers.search.learner import MomentLearner
from latentdo.solvers.search.parent_sets import ScoreTables
from latentdo.solvers.search.rows import RowLearner
from latentdo.solvers.search.set_scores import SetScores
from latentdo.solvers.search.splits import Split
from latentdo.solvers.search.turned_edges import turn_edges_while_better


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


@pytest.mark.parametrize("family", [AnyNoise, AdditiveMechanism])
def test_few_fits_find_the_graph_that_fits_of_all_parent_sets_find(skewed, family):
    """From a graph whose edges are all the wrong way round, so that the first fits say little of the right sets."""
    problem, responsibilities, adjacency, _ = skewed
    problem = replace(problem, learner=RowLearner.of(family, problem.z))
    learner = problem.learner
    statistics = learner.statistics(problem, responsibilities)
    tables = learner.tables(problem, statistics, np.ascontiguousarray(adjacency.T))
    few = len(statistics.fits)
    scores = [SetScores(learner, problem, statistics, j, None) for j in range(4)]

    def fit(j, own, required):
        assert required == 0
        return np.array([scores[j].fit(own[(mask >> np.arange(3) & 1) == 1]) for mask in range(8)])

    exact = ScoreTables.build(tables.candidates, problem.constraints, fit)
    best, value = exact.best(adjacency)
    np.testing.assert_array_equal(tables.best(adjacency)[0], best)
    assert tables.score_of(best) == pytest.approx(value, abs=1e-9)
    assert few < len(statistics.fits) == 32


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


@pytest.fixture(scope="module")
def hidden(make_problem):
    """Two regimes of a root with heavy tails, taken for one; a third regime, told apart by another variable.

    The problem, who is who, and the state in which the third regime seems to be an exception in both.
    """
    rng = np.random.default_rng(0)
    who = np.repeat([0, 1, 2], [900, 700, 400])
    root = rng.laplace(size=2000) + np.where(who == 1, 5.0, 0.0)
    other = rng.laplace(size=2000) + np.where(who == 2, 12.0, 0.0)
    problem = make_problem(np.column_stack([root, other]))
    problem = replace(problem, learner=RowLearner.of(AnyNoise, problem.z))
    joined = np.eye(2)[(who == 2).astype(int)]
    state = em.refine(problem, joined, np.zeros((2, 2), dtype=np.int8))
    return problem, who, state


def test_an_exception_that_is_the_rule_is_seen(hidden):
    problem, who, state = hidden
    few = int(state.responsibilities.sum(axis=0).argmin())
    np.testing.assert_array_equal(state.targets[few], [1, 1])  # the root, though nobody hit it there
    births = regime_moves.propose_exceptions(problem, state)
    birth = births[0]
    assert (birth.variable, birth.joined) == (0, (few,))
    leaving = np.zeros(problem.n_rows)
    leaving[birth.rows] = birth.share
    assert leaving[who == 1].mean() > 0.9
    assert leaving[who == 0].mean() < 0.1
    assert leaving[who == 2].mean() < 0.02
    np.testing.assert_array_equal(birth.hit(state.targets)[[few, -1]], [[0, 1], [1, 0]])


def test_an_intervention_that_hides_in_the_noise_is_born(hidden):
    problem, who, state = hidden
    found = regime_moves.improve(problem, state)
    assert found.n_regimes == 3
    assert found.targets.sum() == 2
    assert (
        adjusted_rand_score(who, found.responsibilities.argmax(axis=1)) > 0.83
    )  # with the true densities 0.86


def test_an_edge_is_turned_together_with_the_targets_that_held_it(make_problem, one_hot):
    """An intervention on the effect; with the edge the wrong way round it seems to have hit the cause as well."""
    rng = np.random.default_rng(2)
    who = np.repeat([0, 1], [900, 300])
    cause = rng.laplace(size=1200)
    effect = np.where(who == 0, 1.5 * cause, 6.0) + rng.laplace(size=1200)
    problem = make_problem(np.column_stack([cause, effect]))
    problem = replace(problem, learner=RowLearner.of(AnyNoise, problem.z))
    wrong = np.array([[0, 0], [1, 0]], dtype=np.int8)
    state = em.refine(problem, one_hot(who), wrong)
    np.testing.assert_array_equal(state.targets, [[0, 0], [1, 1]])
    found = turn_edges_while_better(problem, state)
    np.testing.assert_array_equal(found.adjacency, wrong.T)
    np.testing.assert_array_equal(found.targets, [[0, 0], [0, 1]])
    assert found.evidence > state.evidence
    known = replace(problem, constraints=make_problem(problem.z, forbidden=[("a", "b")]).constraints)
    assert turn_edges_while_better(known, state) is state


def test_an_edge_is_turned_that_hides_one_of_two_targets(make_problem, one_hot):
    """Cause and effect are both hit, and the effect is drawn as ever: turned round, it seems not to be hit."""
    rng = np.random.default_rng(3)
    who = np.repeat([0, 1], [900, 300])
    cause = rng.laplace(size=1200)
    effect = 1.5 * cause + rng.laplace(size=1200)
    cause[who == 1] += 8.0
    problem = make_problem(np.column_stack([cause, effect]))
    problem = replace(problem, learner=RowLearner.of(AnyNoise, problem.z))
    wrong = np.array([[0, 0], [1, 0]], dtype=np.int8)
    state = em.refine(problem, one_hot(who), wrong)
    np.testing.assert_array_equal(state.targets, [[0, 0], [1, 0]])
    found = turn_edges_while_better(problem, state)
    np.testing.assert_array_equal(found.adjacency, wrong.T)
    np.testing.assert_array_equal(found.targets, [[0, 0], [1, 1]])
    assert found.evidence > state.evidence


def test_a_handful_of_rows_must_pay_the_full_price(make_problem, one_hot):
    """Nine rows from the tails of three variables, and sixty that were really moved."""
    rng = np.random.default_rng(1)
    z = rng.standard_normal((2000, 3))
    moved = np.arange(2000) < 60
    z[moved] += 4.0
    problem = make_problem(z)
    problem = replace(problem, min_rows=5, learner=RowLearner.of(AnyNoise, problem.z))
    extreme = np.argsort(-np.abs(z).sum(axis=1) + 100.0 * moved)[:9]
    who = moved.astype(int)
    who[extreme] = 2
    targets = np.array([[0, 0, 0], [1, 1, 1], [1, 1, 1]], dtype=np.int8)
    state = em.refine(problem, one_hot(who), np.zeros((3, 3), dtype=np.int8), iterations=1, targets=targets)
    assert state.n_regimes == 3
    found = fewer_regimes.drop_doubtful(problem, state)
    assert found.n_regimes == 2
    assert adjusted_rand_score(moved, found.responsibilities.argmax(axis=1)) > 0.95
    assert fewer_regimes.drop_doubtful(problem, found) is found


def test_a_mechanism_is_fitted_again_only_when_rows_have_come_or_gone(skewed):
    problem, responsibilities, adjacency, targets = skewed
    problem = replace(problem, learner=RowLearner.of(AnyNoise, problem.z))
    before = em.refine(problem, responsibilities, adjacency, targets=targets, iterations=1).model
    learner = problem.learner

    def again(assignment):
        statistics = learner.statistics(problem, assignment, before, settled=True)
        return learner.fit(problem, statistics, adjacency, targets)

    same = again(responsibilities)
    assert all(a is b for a, b in zip(same.reference, before.reference, strict=True))
    moved = responsibilities.copy()
    moved[np.flatnonzero(moved[:, 0])[:40]] = np.roll(np.eye(3)[0], 1)  # to the second regime
    other = again(moved)
    hit = targets[1] == 1
    kept = np.array([a is b for a, b in zip(other.reference, before.reference, strict=True)])
    np.testing.assert_array_equal(kept, ~hit)  # where both follow the same mechanism nothing has changed


def test_what_is_remembered_of_fits_does_not_travel():
    memory = FitMemory()
    assert isinstance(pickle.loads(pickle.dumps(memory)), FitMemory)


def test_rows_that_were_split_before_are_not_split_again():
    memory, made = FitMemory(), []

    def split():
        made.append(Split(float(len(made)), np.zeros(3)))
        return made[-1]

    some, others, place = np.full(1000, 1.0), np.full(1000, 0.5), (0, (1, 2))
    assert memory.split(split, place, some).gain == 0.0
    assert memory.split(split, place, others).gain == 1.0
    assert memory.split(split, place, some + 1e-6).gain == 0.0
    assert memory.split(split, (1, ()), some).gain == 2.0
    assert len(made) == 3


def test_glances_are_for_the_same_assignment_of_rows_and_no_other(one_hot):
    memory = FitMemory()
    responsibilities = one_hot(np.arange(90) % 3 % 2)
    seen = memory.glances(responsibilities)
    assert memory.glances(responsibilities[:, ::-1].copy()) is seen
    moved = responsibilities.copy()
    moved[0] = 0.5
    assert memory.glances(moved) is not seen


def test_edges_that_are_certain_cost_no_scores(skewed):
    """Tables with certain edges are parts of those without them."""
    problem, responsibilities, adjacency, targets = skewed
    certain = adjacency == 1
    held = replace(problem, constraints=problem.constraints.holding(certain))
    tables = []
    for one in (problem, held):
        statistics = one.learner.statistics(one, responsibilities)
        tables.append(one.learner.tables(one, statistics, adjacency, targets))
    assert np.isfinite(tables[1].scores).sum() < np.isfinite(tables[0].scores).sum() / 2
    assert all(np.array_equal(tables[1].core_of(j), np.flatnonzero(certain[:, j])) for j in range(4))
    best, score = tables[1].best(adjacency)
    assert np.array_equal(best, adjacency)
    assert score == pytest.approx(tables[0].score_of(adjacency), abs=0.5)
