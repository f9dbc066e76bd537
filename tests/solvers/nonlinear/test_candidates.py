"""Parents that were not among the candidates."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo.solvers.nonlinear.candidates import promising_parents
from latentdo.solvers.nonlinear.learner import with_networks
from latentdo.solvers.search.em import refine


@pytest.fixture
def fit(make_problem, planted, one_hot):
    def build(adjacency, **options):
        problem = with_networks(make_problem(planted.x, **options))
        graph = np.array(adjacency, dtype=np.int8)
        return problem, refine(
            problem, one_hot(planted.regimes), graph, targets=planted.targets, iterations=3
        )

    return build


def look(problem, state, j):
    return promising_parents(problem, state, j, np.random.default_rng(0))


def test_a_missing_parent_is_noticed(fit):
    problem, state = fit([[0, 1, 0], [0, 0, 1], [0, 0, 0]])  # a -> c is missing
    assert look(problem, state, 2) == [0]


def test_where_nothing_is_missing_nothing_is_promised(fit, planted):
    problem, state = fit(planted.adjacency)
    assert [look(problem, state, j) for j in range(3)] == [[], [], []]


def test_effects_and_forbidden_edges_are_no_candidates(fit):
    problem, state = fit([[0, 0, 0], [0, 0, 1], [0, 0, 0]])
    assert 2 not in look(problem, state, 1)  # b -> c already
    problem, state = fit([[0, 0, 0], [0, 0, 1], [0, 0, 0]], forbidden=[("a", "c")])
    assert look(problem, state, 2) == []


def test_a_variable_that_every_regime_targets_shows_no_parents(make_problem, planted, one_hot):
    problem = with_networks(make_problem(planted.x))
    targets = planted.targets.copy()
    targets[:, 2] = 1
    graph = np.zeros((3, 3), dtype=np.int8)
    state = refine(problem, one_hot(planted.regimes), graph, targets=targets, iterations=1)
    assert look(problem, state, 2) == []
