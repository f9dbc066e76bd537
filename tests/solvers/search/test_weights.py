"""The search with rows that count more or less often than once: the same as with repeated rows, step by step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from latentdo.model.assignment import SEPARATE, Groups, Weighted
from latentdo.model.mechanisms.additive import AdditiveMechanism
from latentdo.model.mechanisms.any_noise import AnyNoise
from latentdo.scm import simulate
from latentdo.solvers.search import fewer_regimes, starts
from latentdo.solvers.search.em import refine, search_graph, weigh
from latentdo.solvers.search.intervened_rows import knowing, minority_table, two_mechanisms
from latentdo.solvers.search.learner import MomentLearner
from latentdo.solvers.search.rows import RowLearner
from latentdo.solvers.search.single_regime import fit_null

LEARNERS = {
    "lines": lambda z: MomentLearner(),
    "any noise": lambda z: RowLearner.of(AnyNoise, z),
    "curves": lambda z: RowLearner.of(AdditiveMechanism, z),
}


@pytest.fixture(scope="module")
def table():
    return simulate(n_variables=3, edges_per_node=1, n_samples=400, n_regimes=3, random_state=1002)


@pytest.fixture(scope="module")
def counts(table):
    return np.random.default_rng(0).integers(1, 4, len(table.X))


@pytest.fixture
def pair(table, counts, make_problem):
    """The same problem with weighted and with repeated rows, and the places of the latter."""
    problem, again = make_problem(table.X), np.repeat(np.arange(len(counts)), counts)
    return replace(problem, units=Weighted(counts.astype(float))), problem.take(again), again


@pytest.mark.parametrize("name", LEARNERS)
def test_evidence_of_a_state_is_that_of_repeated_rows(pair, table, one_hot, name):
    weighted, repeated, again = pair
    # Curves are those of the same places.
    learner = LEARNERS[name](weighted.z)
    weighted = replace(weighted, learner=learner)
    design = learner.design[again] if name != "lines" else None
    repeated = replace(repeated, learner=learner if design is None else replace(learner, design=design))
    adjacency, known = table.adjacency.to_numpy().astype(np.int8), one_hot(table.regimes)
    state = refine(weighted, known, adjacency, iterations=3)
    other = refine(repeated, known[again], adjacency, iterations=3)
    assert state.evidence == pytest.approx(other.evidence, rel=1e-6)
    assert state.cost == pytest.approx(other.cost, rel=1e-6)
    np.testing.assert_array_equal(state.targets, other.targets)
    np.testing.assert_allclose(state.model.topology.weights, other.model.topology.weights, atol=1e-6)
    # One model, weighed twice: to the last digits.
    assert weigh(weighted, state.model).evidence == pytest.approx(
        weigh(repeated, state.model).evidence, rel=1e-12
    )


def test_evidence_of_groups_is_that_of_repeated_rows(table, counts, make_problem, one_hot):
    groups = np.arange(len(counts)) // 4
    problem, again = make_problem(table.X), np.repeat(np.arange(len(counts)), counts)
    repeated = replace(problem.take(again), units=Groups.of(groups[again]))
    weighted = replace(problem, units=Groups.of(groups, counts.astype(float)))
    adjacency, known = table.adjacency.to_numpy().astype(np.int8), one_hot(table.regimes[4 * groups])
    state = refine(weighted, known, adjacency, iterations=2)
    other = refine(repeated, known[again], adjacency, iterations=2)
    assert state.evidence == pytest.approx(other.evidence, rel=1e-9)
    np.testing.assert_allclose(state.responsibilities[again], other.responsibilities, atol=1e-9)
    merges = [fewer_regimes.propose_merges(*one) for one in ((weighted, state), (repeated, other))]
    np.testing.assert_allclose([m.change for m in merges[0]], [m.change for m in merges[1]], rtol=1e-6)


def test_graph_and_one_regime_are_those_of_repeated_rows(pair, table, one_hot):
    weighted, repeated, again = pair
    known = one_hot(table.regimes)
    graph = search_graph(weighted, known)
    np.testing.assert_array_equal(graph, search_graph(repeated, known[again]))
    assert fit_null(weighted, graph).evidence == pytest.approx(fit_null(repeated, graph).evidence, rel=1e-6)


@pytest.mark.parametrize("grouped", [False, True])
def test_two_mechanisms_of_weighted_rows_are_those_of_repeated_rows(grouped):
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(30), 8)
    rows = np.column_stack([np.ones(240), rng.normal(size=240) + 2.0 * (groups < 10)])
    counts = rng.integers(1, 4, 240)
    again = np.repeat(np.arange(240), counts)
    second = (groups < 12).astype(float)
    other = second[again]
    known = [{"groups": groups}, {"groups": groups[again]}] if grouped else [{}, {}]
    value = two_mechanisms(
        rows, 1, 1, knowing(**known[0], repeats=counts.astype(float)), np.ones(240), second, 30, 1e-9, 0.0
    )
    expected = two_mechanisms(
        rows[again], 1, 1, knowing(**known[1]), np.ones(again.size), other, 30, 1e-9, 0.0
    )
    assert value == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(second[again], other, atol=1e-6)


def test_scores_of_parents_beside_a_minority_are_those_of_repeated_rows(table, counts):
    z = (table.X.to_numpy() - table.X.to_numpy().mean(axis=0)) / table.X.to_numpy().std(axis=0)
    again = np.repeat(np.arange(len(z)), counts)
    tails = starts._tails(z[:, 2], SEPARATE)
    fixed = (2, np.array([0, 1]), False, 0, 2, np.zeros((3, 3)))
    alone, once = np.empty(0, dtype=np.int64), np.empty(0)
    found, _ = minority_table(z, *fixed, tails, 30, alone, counts.astype(float))
    other, _ = minority_table(np.ascontiguousarray(z[again]), *fixed, tails[again], 30, alone, once)
    np.testing.assert_allclose(found, other, rtol=1e-4)


def test_few_rows_of_large_weight_are_many(make_problem):
    """What is too few is a question of what rows count."""
    x = np.random.default_rng(3).normal(size=(40, 2))
    light, heavy = (replace(make_problem(x), units=Weighted(np.full(40, w))) for w in (0.1, 10.0))
    assert light.n_counted == pytest.approx(4.0)
    assert heavy.n_units == pytest.approx(400.0)
    np.testing.assert_allclose(heavy.counts(np.ones((40, 1))), [400.0])
    assert weigh(heavy, refine(heavy, np.ones((40, 1)), np.zeros((2, 2), dtype=np.int8)).model).cost > 0.0
