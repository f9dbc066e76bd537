"""Sums over DAGs against enumeration, also where scores differ by thousands of nats."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.special import logsumexp

from latentdo.graphs import all_dags, is_dag, reachability
from latentdo.graphs.constraints import Constraints
from latentdo.solvers.search import posterior
from latentdo.solvers.search.parent_sets import ScoreTables, all_candidates
from latentdo.solvers.search.posterior import graph_posterior


def _tables(rng, d, scale, constraints=None):
    constraints = constraints or Constraints.build([f"v{j}" for j in range(d)])
    candidates = all_candidates(constraints)

    def score(j, own, required):
        masks = np.arange(1 << own.size)
        return np.where((masks & required) == required, scale * rng.normal(size=len(masks)), -np.inf)

    return ScoreTables.build(candidates, constraints, score)


def _enumerated(tables, temperature=1.0):
    """All DAGs with their probabilities."""
    dags = np.array(list(all_dags(tables.n_variables)))
    scores = np.array([tables.score_of(dag.astype(np.int8)) for dag in dags]) / temperature
    return dags, np.exp(scores - logsumexp(scores))


def _start(d):
    return np.zeros((d, d), dtype=np.int8)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 3000.0])
def test_exact_edges_agree_with_enumeration(d, scale):
    for seed in range(10 if d < 4 else 4):
        tables = _tables(np.random.default_rng(seed), d, scale)
        dags, probability = _enumerated(tables)
        found = graph_posterior(tables, _start(d), n_samples=10)
        assert found.exact
        np.testing.assert_allclose(found.edges, np.tensordot(probability, dags, axes=1), atol=1e-10)


def test_near_ties_survive_huge_scores():
    """Two equivalent orientations, thousands of nats above everything else: half each, not 0, 1 or NaN."""
    d = 3
    tables = _tables(np.random.default_rng(0), d, 1.0)
    for j in range(d):
        tables.scores[j] -= 5000.0
        tables.scores[j, 0] = -4000.0
    place = {(i, j): a for j in range(d) for a, i in enumerate(tables.candidates[j])}
    tables.scores[1, 1 << place[0, 1]] = -100.0
    tables.scores[0, 1 << place[1, 0]] = -100.0 + np.log(3.0)
    edges = graph_posterior(tables, _start(d), n_samples=10).edges
    expected = np.zeros((d, d))
    expected[0, 1], expected[1, 0] = 0.25, 0.75
    np.testing.assert_allclose(edges, expected, atol=1e-10)


@pytest.mark.parametrize("scale", [1.0, 500.0])
def test_forbidden_and_required_edges_have_probability_zero_and_one(scale):
    constraints = Constraints.build(list("abcd"), forbidden=[("a", "b"), ("c", "d")], required=[("b", "c")])
    tables = _tables(np.random.default_rng(1), 4, scale, constraints)
    dags, probability = _enumerated(tables)
    edges = graph_posterior(tables, constraints.required.astype(np.int8), n_samples=10).edges
    np.testing.assert_allclose(edges, np.tensordot(probability, dags, axes=1), atol=1e-10)
    assert edges[0, 1] == edges[2, 3] == 0.0
    assert edges[1, 2] == pytest.approx(1.0)


def test_temperature_divides_scores():
    tables = _tables(np.random.default_rng(2), 3, 5.0)
    dags, probability = _enumerated(tables, temperature=4.0)
    edges = graph_posterior(tables, _start(3), temperature=4.0, n_samples=10).edges
    np.testing.assert_allclose(edges, np.tensordot(probability, dags, axes=1), atol=1e-10)


def test_sampled_dags_have_the_right_frequencies():
    tables = _tables(np.random.default_rng(3), 3, 1.5)
    dags, probability = _enumerated(tables)
    _, sampled = posterior._exact(tables.full(), 20_000, seed=0)
    assert all(is_dag(dag) for dag in np.unique(sampled, axis=0))
    codes = (1 << np.arange(9)).astype(int)
    counts = np.bincount(sampled.reshape(-1, 9) @ codes, minlength=512)
    frequency = counts[dags.reshape(-1, 9) @ codes] / len(sampled)
    assert frequency.sum() == pytest.approx(1.0)
    assert np.abs(frequency - probability).max() < 5 * np.sqrt(0.25 / len(sampled))


def test_ancestors_are_paths_in_the_sampled_dags():
    tables = _tables(np.random.default_rng(4), 4, 1.5)
    dags, probability = _enumerated(tables)
    reach = np.array([reachability(dag) for dag in dags], dtype=float)
    reach[:, np.arange(4), np.arange(4)] = 0.0
    found = graph_posterior(tables, _start(4), n_samples=5000, seed=1)
    np.testing.assert_allclose(found.ancestors, np.tensordot(probability, reach, axes=1), atol=0.035)
    assert (found.ancestors >= found.edges - 0.035).all()


@pytest.mark.parametrize("d", [5, 8])
@pytest.mark.parametrize("scale", [0.1, 10.0, 2000.0])
def test_probabilities_are_probabilities(d, scale):
    tables = _tables(np.random.default_rng(5), d, scale)
    found = graph_posterior(tables, _start(d), n_samples=50)
    for values in (found.edges, found.ancestors):
        assert np.isfinite(values).all()
        assert values.min() >= 0.0
        assert values.max() <= 1.0
        assert np.diag(values).max() == 0.0
        assert (values + values.T).max() <= 1.0 + 1e-9


def _order_weighted_truth(tables):
    """Edge probabilities under a uniform prior over orders: each DAG counts once for every order it fits."""
    dags, probability = _enumerated(tables)
    d = tables.n_variables
    fits = np.zeros(len(dags))
    for order in permutations(range(d)):
        rank = np.argsort(order)
        fits += [all(rank[i] < rank[j] for i, j in np.argwhere(dag)) for dag in dags]
    weight = probability * fits
    return np.tensordot(weight / weight.sum(), dags, axes=1)


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_order_sampling_agrees_with_its_documented_prior(monkeypatch, scale):
    monkeypatch.setattr(posterior, "LAYER_LIMIT", 0)
    tables = _tables(np.random.default_rng(6), 4, scale)
    found = graph_posterior(tables, _start(4), n_samples=6000, seed=0)
    assert not found.exact
    np.testing.assert_allclose(found.edges, _order_weighted_truth(tables), atol=0.04)
    assert (found.edges + found.edges.T).max() <= 1.0 + 1e-9


def test_order_sampling_respects_constraints(monkeypatch):
    monkeypatch.setattr(posterior, "LAYER_LIMIT", 0)
    constraints = Constraints.build(list("abcd"), forbidden=[("a", "b")], required=[("d", "c")])
    tables = _tables(np.random.default_rng(7), 4, 1.0, constraints)
    found = graph_posterior(tables, constraints.required.astype(np.int8), n_samples=300)
    assert found.edges[0, 1] == 0.0
    assert found.edges[3, 2] == 1.0


def test_same_seed_same_samples():
    tables = _tables(np.random.default_rng(8), 4, 1.0)
    one, two = (graph_posterior(tables, _start(4), n_samples=200, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.ancestors, two.ancestors)
    other = graph_posterior(tables, _start(4), n_samples=200, seed=4)
    assert (other.ancestors != one.ancestors).any()
