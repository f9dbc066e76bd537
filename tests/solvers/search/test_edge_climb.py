"""Climbing edge by edge: against all graphs of four variables, with scores that are rough until they are fitted."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from latentdo.graphs import is_dag
from latentdo.graphs.constraints import Constraints
from latentdo.solvers.search.edge_climb import climb_edges

D, SLACK = 4, 2.0


class Known:
    """Scores of one variable from a table; rough ones are up to the slack too low, and fits are counted."""

    def __init__(self, table, short):
        self.table, self.short, self.fits = table, short, set()

    def fit(self, parents):
        self.fits.add(tuple(parents.tolist()))
        return self.table[tuple(parents.tolist())]

    def rough(self, parents):
        return self.table[tuple(parents.tolist())] - self.short[tuple(parents.tolist())]

    def slack(self, parents):
        return SLACK


def make_scores(rng):
    """A score per variable and parent set: single parents add up, with something of each set's own."""
    scores = []
    for j in range(D):
        others = [i for i in range(D) if i != j]
        sets = [one for size in range(D) for one in combinations(others, size)]
        single = dict(zip(others, rng.normal(0.0, 20.0, D - 1), strict=True))
        table = {one: sum(single[i] for i in one) + rng.normal(0.0, 3.0) for one in sets}
        scores.append(Known(table, {one: rng.uniform(0.0, SLACK) for one in sets}))
    return scores


@pytest.mark.parametrize("seed", range(20))
def test_no_single_edge_makes_the_graph_better(seed):
    scores = make_scores(np.random.default_rng(seed))
    names = tuple("abcd")

    def total(graph):
        return sum(scores[j].table[tuple(np.flatnonzero(graph[:, j]).tolist())] for j in range(D))

    found = climb_edges(np.zeros((D, D), dtype=np.int8), Constraints.build(names), scores, 1e-6)
    assert is_dag(found)
    for i, j in np.argwhere(~np.eye(D, dtype=bool)).tolist():
        changed = found.copy()
        changed[i, j] ^= 1
        if found[j, i]:
            changed[j, i] = 0  # turned
        if is_dag(changed):
            assert total(changed) < total(found) + 1e-6


def test_hopeless_sets_are_not_fitted():
    scores = make_scores(np.random.default_rng(0))
    climb_edges(np.zeros((D, D), dtype=np.int8), Constraints.build(tuple("abcd")), scores, 1e-6)
    none = ()
    for one in scores:
        costly = {(i,) for i in range(D) if (i,) in one.table and one.table[i,] < one.table[none] - SLACK}
        assert not costly & one.fits
