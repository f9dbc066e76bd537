"""Directions of networks' edges: sums over graphs in both orders, where an edge was tried the other way round."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo.solvers.nonlinear.learner import with_networks
from latentdo.solvers.nonlinear.order import NetworkStanding
from latentdo.solvers.nonlinear.parents import ParentSet
from latentdo.solvers.nonlinear.solve import edge_odds
from latentdo.solvers.search.posterior import graph_posterior

GRAPH = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]], dtype=np.int8)


def probabilities(make_problem, planted, **options):
    """Of a graph with one edge, a -> b, which elimination is sure of."""
    kept = {1: {0: 1.0 - 1e-9}}
    parents = tuple(ParentSet(tuple(np.flatnonzero(GRAPH[:, j])), None, kept.get(j, {})) for j in range(3))
    standing = NetworkStanding(state=None, labels=np.empty(0, np.int64), looks=1, parents=parents, **options)
    problem = with_networks(make_problem(planted.x), odds=edge_odds(standing, GRAPH))
    return graph_posterior(problem.learner.tables(problem, None, GRAPH), GRAPH, seed=0).edges


def test_an_edge_that_was_not_tried_the_other_way_round_is_certain(make_problem, planted):
    found = probabilities(make_problem, planted)
    assert found[0, 1] == pytest.approx(1.0, abs=1e-6)
    assert found[1, 0] == 0.0


@pytest.mark.parametrize("loss", [0.5, 3.0, 10.0])
def test_the_odds_of_a_direction_are_what_turning_it_costs(make_problem, planted, loss):
    found = probabilities(make_problem, planted, turned={(0, 1): loss})
    assert np.log(found[0, 1] / found[1, 0]) == pytest.approx(loss, abs=1e-3)
    assert found[0, 1] + found[1, 0] == pytest.approx(1.0, abs=1e-6)


def test_a_direction_that_the_search_kept_is_not_the_less_probable_one(make_problem, planted):
    found = probabilities(make_problem, planted, turned={(0, 1): -30.0})
    assert found[0, 1] == pytest.approx(found[1, 0])
