"""Starts: rows sum to one, labels are honoured, and the residual start finds regimes without clustering."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from latentdo.model.mechanisms.any_noise import AnyNoise
from latentdo.scm import simulate
from latentdo.solvers.search import fewer_regimes, regime_moves, starts
from latentdo.solvers.search.em import refine
from latentdo.solvers.search.local_scores import FREE
from latentdo.solvers.search.rows import RowLearner


@pytest.fixture(scope="module")
def data():
    return simulate(n_variables=4, edges_per_node=1, n_samples=1000, random_state=21)


@pytest.fixture(scope="module")
def labelled(make_problem, data):
    """Regimes 0, 1 and 2 have a few labelled rows; 3 and 4 have none."""
    rng = np.random.default_rng(0)
    labels = np.where((rng.random(len(data.X)) < 0.2) & (data.regimes < 3), data.regimes, -1)
    return make_problem(data.X, labels=labels, known=np.full((3, 4), FREE))


@pytest.mark.parametrize("name", ["mixture", "k-means"])
def test_clusterings_are_distributions_over_components(make_problem, labelled, data, name):
    for problem in (make_problem(data.X, max_regimes=6), labelled):
        found = starts.clustering(problem, name, seed=0)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-9)
        assert found.min() >= 0.0
        assert found.shape[1] >= problem.n_labelled
        known = problem.labels >= 0
        np.testing.assert_array_equal(found[known].argmax(axis=1), problem.labels[known])


def test_few_rows_get_few_clusters(make_problem):
    problem = make_problem(np.random.default_rng(0).normal(size=(50, 2)), max_regimes=16)
    assert starts.clustering(problem, "mixture", 0).shape[1] == 2


def test_clusters_go_to_the_label_of_their_labelled_rows(labelled, data):
    joined = starts.with_labels(
        labelled, np.eye(5)[(data.regimes + 2) % 5]
    )  # the truth, numbered differently
    assert joined.shape[1] == 5
    np.testing.assert_array_equal(
        joined[:, :3].argmax(axis=1)[data.regimes < 3], data.regimes[data.regimes < 3]
    )
    assert adjusted_rand_score(data.regimes, joined.argmax(axis=1)) == pytest.approx(1.0)


def test_labels_alone_assign_most_other_rows(labelled, data):
    found = starts.from_labels(labelled)
    assert found.shape[1] == 3
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-9)
    seen = data.regimes < 3
    assert (found.argmax(axis=1) == data.regimes)[seen].mean() > 0.9


def test_very_few_labels_leave_the_rest_open(make_problem, data):
    labels = np.full(len(data.X), -1)
    labels[:6] = [0, 1, 0, 1, 0, 0]
    problem = make_problem(data.X, labels=labels, known=np.full((2, 4), FREE))
    found = starts.from_labels(problem)
    np.testing.assert_allclose(found[6:], np.tile([2 / 3, 1 / 3], (len(data.X) - 6, 1)))
    np.testing.assert_array_equal(found[:6].argmax(axis=1), labels[:6])


@pytest.mark.parametrize("seed", range(3))
def test_residual_start_is_near_the_truth(make_problem, seed):
    data = simulate(n_variables=6, edges_per_node=1, n_samples=2500, random_state=600 + seed)
    state = starts.residual(make_problem(data.X), seed=0)
    np.testing.assert_allclose(state.responsibilities.sum(axis=1), 1.0, atol=1e-9)
    assert adjusted_rand_score(data.regimes, state.responsibilities.argmax(axis=1)) > 0.7
    assert np.abs(state.adjacency - data.adjacency.to_numpy()).sum() <= 3


def test_residual_start_keeps_labels(labelled):
    state = starts.residual(labelled, seed=0)
    known = labelled.labels >= 0
    np.testing.assert_array_equal(state.responsibilities[known].argmax(axis=1), labelled.labels[known])


def test_residual_start_respects_constraints(make_problem, data):
    i, j = np.argwhere(data.adjacency.to_numpy())[0]
    names = "abcd"
    problem = make_problem(data.X, forbidden=[(names[i], names[j])], required=[(names[j], names[i])])
    adjacency = starts.residual(problem, seed=0).adjacency
    assert adjacency[i, j] == 0
    assert adjacency[j, i] == 1


@pytest.fixture(scope="module")
def roots(make_problem):
    """Four causes without parents and skewed noise, three of which are hit, each in rows of its own."""
    rng = np.random.default_rng(5)
    regimes = rng.choice(4, size=2000, p=[0.55, 0.15, 0.15, 0.15])
    z = rng.gamma(2.0, size=(2000, 4))
    for k in (1, 2, 3):
        z[regimes == k, k] += 4.0
    problem = make_problem(z, max_regimes=8)
    return replace(problem, learner=RowLearner.of(AnyNoise, problem.z)), regimes


def test_interventions_that_hide_in_the_shape_of_noise_are_found_together(roots):
    problem, regimes = roots
    nobody = np.zeros((4, 4), dtype=np.int8)
    single = refine(problem, np.ones((2000, 1)), nobody)
    born = regime_moves.improve(problem, single, same_graph=True)
    found = starts.minorities(problem, single)
    np.testing.assert_allclose(found.responsibilities.sum(axis=1), 1.0, atol=1e-9)
    together = fewer_regimes.drop_while_better(problem, found)
    assert together.evidence > born.evidence > single.evidence
    truth = refine(problem, np.eye(4)[regimes], nobody)
    right, possible = (
        adjusted_rand_score(regimes, one.responsibilities.argmax(axis=1)) for one in (together, truth)
    )
    assert right > 0.95 * possible


def test_only_as_many_minorities_as_there_may_be_regimes(roots):
    problem, _ = roots
    problem = replace(problem, max_regimes=3)
    single = refine(problem, np.ones((2000, 1)), np.zeros((4, 4), dtype=np.int8))
    assert starts.minorities(problem, single).n_regimes <= 3


def test_of_two_regimes_the_larger_is_the_reference_unless_rows_say_otherwise(make_problem):
    rng = np.random.default_rng(0)
    few = np.arange(1200) < 300
    cause = rng.normal(size=1200)
    graph, resp = np.array([[0, 1], [0, 0]], dtype=np.int8), np.eye(2)[few.astype(int)]
    smaller = np.array([[0, 1], [0, 0]], dtype=np.int8)  # the larger regime is the one with a target

    def found(effect, imperfect):
        problem = make_problem(np.column_stack([cause, effect]), imperfect=imperfect)
        problem = replace(problem, learner=RowLearner.of(AnyNoise, problem.z))
        state = refine(problem, resp, graph, targets=smaller)
        return fewer_regimes.larger_reference(problem, state).targets.tolist()

    noise = rng.laplace(size=1200)
    assert found(cause + noise + np.where(few, 8.0, 0.0), imperfect=True) == [[0, 0], [0, 1]]
    # Only in the smaller regime the variable depends on its cause.
    assert found(np.where(few, 3.0 * cause, 8.0) + noise, imperfect=False) == smaller.tolist()
