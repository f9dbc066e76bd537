"""From minorities to regimes."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo.model.mechanisms.network import evaluate
from latentdo.solvers.nonlinear.regimes import find_minority, first_regimes, predecessors
from latentdo.solvers.nonlinear.rough_scores import rough_graph
from latentdo.solvers.search.local_scores import FREE, REFERENCE, TARGET


def _minority(planted):
    """Nearly sure, and right."""
    return np.where(planted.targets[planted.regimes] == 1, 1.0 - 1e-4, 1e-4)


def _set_of(responsibilities, targets):
    """Targets of every row, by its most likely component."""
    return targets[responsibilities.argmax(axis=1)]


def test_minorities_become_regimes(make_problem, planted):
    responsibilities, targets = first_regimes(make_problem(planted.x), _minority(planted))
    np.testing.assert_allclose(responsibilities.sum(axis=1), 1.0)
    assert len(targets) == 4
    np.testing.assert_array_equal(_set_of(responsibilities, targets), planted.targets[planted.regimes])


def test_minorities_that_coincide_become_one_regime(make_problem, planted):
    minority = _minority(planted)
    minority[:, 2] = minority[:, 1]
    responsibilities, targets = first_regimes(make_problem(planted.x), minority)
    both = planted.regimes == 2
    np.testing.assert_array_equal(
        _set_of(responsibilities, targets)[both], np.tile([0, 1, 1], (both.sum(), 1))
    )


def test_a_minority_found_the_wrong_way_round_is_turned(make_problem, planted):
    minority = _minority(planted)
    right = first_regimes(make_problem(planted.x), minority)
    minority[:, 0] = 1.0 - minority[:, 0]
    turned = first_regimes(make_problem(planted.x), minority)
    for expected, found in zip(right, turned, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_labels_for_all_rows_are_the_regimes(make_problem, planted):
    codes = np.full((4, 3), FREE)
    codes[0] = REFERENCE
    problem = make_problem(planted.x, labels=planted.regimes, known=codes)
    minority = _minority(planted)
    minority[:, 0] = 1.0 - minority[:, 0]
    responsibilities, targets = first_regimes(problem, minority)
    np.testing.assert_array_equal(responsibilities, np.eye(4)[planted.regimes])
    np.testing.assert_array_equal(targets, planted.targets)


def test_known_targets_hold_whatever_was_found(make_problem, planted):
    codes = np.where(planted.targets[:, ::-1] == 1, TARGET, REFERENCE)
    codes[1, 0] = FREE
    problem = make_problem(planted.x, labels=planted.regimes, known=codes)
    _, targets = first_regimes(problem, _minority(planted))
    expected = planted.targets[:, ::-1].copy()
    expected[1, 0] = 1  # free, and its rows are in the minority
    np.testing.assert_array_equal(targets, expected)


def test_some_labels_claim_their_clusters_and_the_others_stay_free(make_problem, planted):
    """Only rows of regimes 0 and 1 are labelled, a third of them."""
    labels = np.where((planted.regimes < 2) & (np.arange(len(planted.x)) % 3 == 0), planted.regimes, -1)
    codes = np.array([[REFERENCE] * 3, [FREE] * 3])
    problem = make_problem(planted.x, labels=labels, known=codes)
    responsibilities, targets = first_regimes(problem, _minority(planted))
    np.testing.assert_array_equal(targets[:2], planted.targets[:2])
    known = labels >= 0
    np.testing.assert_array_equal(responsibilities[known], np.eye(len(targets))[labels[known]])
    np.testing.assert_array_equal(_set_of(responsibilities, targets), planted.targets[planted.regimes])


@pytest.fixture(scope="module")
def rough(make_problem, planted):
    problem = make_problem(planted.x)
    return problem, rough_graph(problem, seed=0)


def test_predecessors_come_before(make_problem, rough):
    problem, graph = rough
    inputs = predecessors(graph, problem)
    place = np.argsort(graph.order)
    assert sum(map(len, inputs)) == 3
    assert all(place[i] < place[j] for j in range(3) for i in inputs[j])
    assert all(list(own) == sorted(own) for own in inputs)


@pytest.mark.parametrize("n_components", [1, 3])
@pytest.mark.parametrize("j", [1, 2])
def test_the_minority_is_found_in_all_rows(planted, rough, j, n_components):
    problem, graph = rough
    inputs = predecessors(graph, problem)[j]
    second, mechanism = find_minority(
        problem, j, inputs, graph.rows, graph.minority[:, j], n_components, np.random.default_rng(0)
    )
    assert second.shape == (problem.n_rows,)
    hit = planted.regimes == j + 1
    assert ((second > 0.5) == hit).mean() > 0.97
    x = np.ascontiguousarray(problem.z[~hit][:, inputs])
    residual = problem.z[~hit, j] - evaluate(x, mechanism.parameters)
    scale = planted.x[:, j].std()
    assert np.median(np.abs(residual)) * scale < 1.2 * 0.1 * 0.6745, "as narrow as the noise that was planted"


def test_rows_of_a_label_are_in_the_minority_together(make_problem, planted):
    codes = np.full((4, 3), FREE)
    codes[0] = REFERENCE
    codes[3, 2] = TARGET
    labels = np.where(np.arange(len(planted.x)) % 2 == 0, planted.regimes, -1)
    problem = make_problem(planted.x, labels=labels, known=codes)
    graph = rough_graph(problem, seed=0)
    second, _ = find_minority(
        problem, 2, [0, 1], graph.rows, graph.minority[:, 2], 1, np.random.default_rng(0)
    )
    for g in range(4):
        np.testing.assert_array_equal(second[labels == g], float(g == 3))
    assert ((second > 0.5) == (planted.regimes == 3)).mean() > 0.97
