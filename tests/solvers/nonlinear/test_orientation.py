"""Edges the other way round."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo.graphs import is_dag
from latentdo.solvers.nonlinear.learner import with_networks
from latentdo.solvers.nonlinear.orientation import doubtful_edges, reverse
from latentdo.solvers.search.em import refine
from latentdo.solvers.search.local_scores import FREE


@pytest.fixture(scope="module")
def fit(make_problem, planted, one_hot):
    """A state with the planted regimes and any graph."""

    def build(adjacency, targets=None, responsibilities=None, **options):
        problem = with_networks(make_problem(planted.x, **options))
        responsibilities = one_hot(planted.regimes) if responsibilities is None else responsibilities
        targets = planted.targets if targets is None else targets
        state = refine(problem, responsibilities, adjacency, targets=targets, iterations=3)
        return problem, state

    return build


def _reverse(problem, state, i, j):
    return reverse(problem, state, i, j, np.random.default_rng(0))


def test_a_wrong_edge_is_turned(fit, planted):
    wrong = np.array([[0, 1, 1], [0, 0, 0], [0, 1, 0]], dtype=np.int8)  # c -> b instead of b -> c
    problem, state = fit(wrong)
    turned, parents = _reverse(problem, state, 2, 1)
    np.testing.assert_array_equal(turned.adjacency, planted.adjacency)
    np.testing.assert_array_equal(turned.targets, planted.targets)
    assert turned.evidence > state.evidence + 50.0
    assert parents[2].parents == (0, 1)
    assert parents[1].parents == (0,)


def test_a_right_edge_is_better_as_it_is(fit, planted):
    problem, state = fit(planted.adjacency)
    turned, _ = _reverse(problem, state, 1, 2)
    assert is_dag(turned.adjacency)
    assert turned.evidence < state.evidence


def test_no_cycles(fit, planted):
    problem, state = fit(planted.adjacency)
    assert _reverse(problem, state, 0, 2) is None, "a -> b -> c -> a"


@pytest.mark.parametrize("options", [{"required": [("b", "c")]}, {"forbidden": [("c", "b")]}])
def test_constraints_are_not_turned(fit, planted, options):
    problem, state = fit(planted.adjacency, **options)
    assert _reverse(problem, state, 1, 2) is None


def test_the_most_doubtful_edge_is_the_wrong_one(fit):
    wrong = np.array([[0, 1, 1], [0, 0, 0], [0, 1, 0]], dtype=np.int8)  # c -> b instead of b -> c
    problem, state = fit(wrong)
    edges = doubtful_edges(problem, state)
    assert edges[0] == (2, 1)
    assert all(wrong[edge] for edge in edges)


def test_edges_that_must_not_be_turned_are_not_doubted(fit):
    wrong = np.array([[0, 1, 1], [0, 0, 0], [0, 1, 0]], dtype=np.int8)
    problem, state = fit(wrong, required=[("c", "b")])
    assert (2, 1) not in doubtful_edges(problem, state)


def test_targets_stay_zeros_and_ones_where_a_component_has_no_rows(fit, planted):
    """A label that no row carries, and a variable that loses all of its inputs."""
    codes = np.full((5, 3), FREE)
    targets = np.vstack([planted.targets, np.zeros(3)]).astype(np.int8)
    wrong = np.array([[0, 0, 0], [1, 0, 0], [0, 0, 0]], dtype=np.int8)
    problem, state = fit(wrong, targets, np.eye(5)[planted.regimes], labels=planted.regimes, known=codes)
    turned, _ = _reverse(problem, state, 1, 0)
    assert set(np.unique(turned.targets)) <= {0, 1}
