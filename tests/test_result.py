"""FitResult: tables, ambiguous edges, exports, and the honest answer where data cannot tell."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace
from itertools import combinations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentdo import LatentInterventionDAG
from latentdo.checks import Check, doubted
from latentdo.graphs.equivalence import essential_graph
from latentdo.model.fitted import Topology


@pytest.fixture(scope="module")
def result(make_result):
    return make_result(
        columns=["Raf", "Mek", "Erk", "PKA", "PKC"], regime_names=("none", "a", "b", "c", "d", ("e", 1))
    ).result


def test_tables_carry_names(result):
    names = ["Raf", "Mek", "Erk", "PKA", "PKC"]
    for square in (result.adjacency, result.edge_table(), result.ancestor_table()):
        assert list(square.index) == list(square.columns) == names
    for wide in (result.targets, result.target_table()):
        assert list(wide.columns) == names
        assert list(wide.index) == list(result.regime_names)
    topology = result.model.topology
    np.testing.assert_array_equal(result.adjacency, topology.adjacency)
    np.testing.assert_array_equal(result.targets, topology.targets)
    np.testing.assert_array_equal(result.edge_table(), result.edge_probabilities)
    np.testing.assert_array_equal(result.target_table(), result.target_probabilities)
    assert result.n_regimes == 6


def test_regime_table_has_one_row_a_row(result):
    table = result.regime_table()
    assert list(table.columns) == ["row", "regime", "probability"]
    np.testing.assert_array_equal(table["row"], np.arange(len(result.responsibilities)))
    np.testing.assert_allclose(table["probability"], result.responsibilities.max(axis=1))
    assert [result.regime_names.index(name) for name in table["regime"]] == result.regimes.tolist()
    np.testing.assert_array_equal(result.regimes, result.responsibilities.argmax(axis=1))


def test_tables_are_copies(result):
    before = result.adjacency.copy()
    table = result.adjacency
    table.iloc[:, :] = 1
    pd.testing.assert_frame_equal(result.adjacency, before)
    with pytest.raises(FrozenInstanceError):
        result.evidence = 0.0


def test_has_observational_follows_the_weight(result):
    assert result.has_observational
    topology = result.model.topology
    weights = topology.weights.copy()
    weights[0] = 0.0
    without = replace(result, model=replace(result.model, topology=replace(topology, weights=weights)))
    assert not without.has_observational


def _with_edges(result, probabilities, *, same_graph=False):
    """The same result with other probabilities, and the graph of the edges that are likelier than not, or the same."""
    edges = np.zeros((5, 5))
    for (i, j), value in probabilities.items():
        edges[i, j] = value
    if same_graph:
        return replace(result, edge_probabilities=edges)
    topology = replace(result.model.topology, adjacency=(edges > 0.5).astype(np.int8))
    return replace(result, edge_probabilities=edges, model=replace(result.model, topology=topology))


def test_ambiguous_edges_are_the_uncertain_pairs_least_certain_first(result):
    """All five variables are targeted in this result, so only probabilities can make a pair ambiguous."""
    unsure = _with_edges(
        result,
        {(0, 1): 0.5, (1, 0): 0.5, (0, 2): 0.93, (1, 2): 0.34, (2, 1): 0.33, (3, 4): 0.96, (2, 4): 0.04},
    )
    table = unsure.ambiguous_edges()
    assert list(zip(table["source"], table["target"], strict=True)) == [
        ("Mek", "Erk"),
        ("Raf", "Mek"),
        ("Raf", "Erk"),
    ]
    first = table.iloc[0]
    assert (first["forward"], first["backward"]) == (0.34, 0.33)
    assert first["absent"] == pytest.approx(0.33)
    np.testing.assert_allclose(table[["forward", "backward", "absent"]].sum(axis=1), 1.0)
    assert not table["undirected"].any()
    assert len(unsure.ambiguous_edges(low=0.4)) == 2


def test_nothing_ambiguous_is_an_empty_table(result):
    table = _with_edges(result, {}).ambiguous_edges()
    assert table.empty
    assert list(table.columns) == ["source", "target", "forward", "backward", "absent", "undirected", "graph"]


def test_edges_that_no_intervention_orients_are_open_unless_their_probabilities_tell(result):
    topology = result.model.topology
    adjacency = np.zeros((5, 5), dtype=np.int8)
    adjacency[0, 1] = 1
    lone = replace(topology, adjacency=adjacency, targets=np.zeros((1, 5), dtype=np.int8), weights=np.ones(1))
    plain = replace(result, model=replace(result.model, topology=lone))
    table = _with_edges(plain, {(0, 1): 0.5, (1, 0): 0.5}, same_graph=True).ambiguous_edges()
    assert list(zip(table["source"], table["target"], strict=True)) == [("Raf", "Mek")]
    assert table["undirected"].all()
    assert _with_edges(plain, {(0, 1): 0.99}).ambiguous_edges().empty


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_graph_probabilities_and_what_is_open_never_contradict_one_another(result, data):
    d, rng = 5, np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    order = rng.permutation(d)
    adjacency = np.triu(rng.random((d, d)) < 0.5, 1)[np.ix_(order, order)].astype(np.int8)
    targets = np.vstack([np.zeros(d), rng.random((2, d)) < 0.2]).astype(np.int8)
    shares = rng.dirichlet(np.full(3, rng.choice([0.02, 0.3, 2.0])), (d, d))
    upper = np.triu(np.ones((d, d)), 1)
    probability = upper * shares[:, :, 0] + (upper * shares[:, :, 1]).T
    topology = Topology(adjacency, targets, np.full(3, 1 / 3))
    some = replace(result, edge_probabilities=probability, model=replace(result.model, topology=topology))
    pair = tuple(rng.choice(some.columns, 2, replace=False).tolist())
    checks = [
        Check("hidden causes", 0.3, 1e-5, bool(rng.integers(2)), "Residuals.", (pair,)),
        Check("dependent rows", 0.3, 1e-5, rng.random() < 0.2, "Neighbours."),
    ]
    edges, ancestors = doubted(some, checks)
    some = replace(some, edge_probabilities=edges, ancestor_probabilities=ancestors)
    assert (ancestors >= edges).all()
    connected, direction = some.adjacency_probability_table(), some.direction_probability_table()
    essential, table = essential_graph(adjacency, targets), some.ambiguous_edges()
    listed = {
        frozenset(pair): row for *pair, row in zip(table.source, table.target, table.undirected, strict=True)
    }
    for i, j in combinations(range(d), 2):
        first, second = some.columns[i], some.columns[j]
        cause, effect = (second, first) if adjacency[j, i] else (first, second)
        joined = adjacency[i, j] or adjacency[j, i]
        undirected = bool(essential[i, j] and essential[j, i])
        pair = frozenset((first, second))
        assert connected.loc[first, second] <= 1.0 + 1e-12
        if pair not in listed:  # what the graph says is sure, direction and all
            assert (connected if joined else 1.0 - connected).loc[first, second] >= 0.95 - 1e-9
            assert not joined or some.edge_table().loc[cause, effect] >= 0.95
            assert not undirected or direction.loc[cause, effect] >= 0.95
        elif listed[pair]:  # both directions fit equally well: none of them is sure
            assert undirected
            assert some.edge_table().loc[[first, second], [first, second]].to_numpy().max() < 0.95
    contested = some.contested_edges()
    assert {frozenset(pair) for pair in zip(contested.cause, contested.effect, strict=True)} <= set(listed)


def test_regimes_without_weight_orient_nothing(result):
    topology = result.model.topology
    adjacency = np.zeros((5, 5), dtype=np.int8)
    adjacency[0, 1] = 1
    targets = np.array([[0, 0, 0, 0, 0], [0, 1, 0, 0, 0]], dtype=np.int8)
    for weights, undirected in (([1.0, 0.0], True), ([0.5, 0.5], False)):
        changed = replace(topology, adjacency=adjacency, targets=targets, weights=np.array(weights))
        table = _with_edges(
            replace(result, model=replace(result.model, topology=changed)),
            {(0, 1): 0.5, (1, 0): 0.5},
            same_graph=True,
        ).ambiguous_edges()
        assert table["undirected"].tolist() == [undirected]


def test_networkx_graph_has_names_and_probabilities(result):
    graph = result.to_networkx()
    assert isinstance(graph, nx.DiGraph)
    assert list(graph.nodes) == list(result.columns)
    assert nx.is_directed_acyclic_graph(graph)
    expected = {
        (result.columns[i], result.columns[j]): result.edge_probabilities[i, j]
        for i, j in np.argwhere(result.model.topology.adjacency)
    }
    assert {(a, b): data["probability"] for a, b, data in graph.edges(data=True)} == expected


def test_summary_is_json(result):
    summary = json.loads(json.dumps(result.summary()))
    assert summary["variables"] == list(result.columns)
    assert {(edge["from"], edge["to"]) for edge in summary["edges"]} == set(result.to_networkx().edges)
    assert [regime["name"] for regime in summary["regimes"]][:2] == ["none", "a"]
    assert sum(regime["weight"] for regime in summary["regimes"]) == pytest.approx(1.0)
    for k, regime in enumerate(summary["regimes"]):
        assert regime["targets"] == [
            name for name, hit in zip(result.columns, result.model.topology.targets[k], strict=True) if hit
        ]
    assert summary["evidence"] == result.evidence
    assert summary["status"] == "converged"


def test_summary_survives_labels_that_json_cannot_hold(result):
    odd = replace(
        result, regime_names=(0, frozenset({"x"}), pd.Timestamp("2024-01-01"), np.int64(3), 4.5, None)
    )
    names = [regime["name"] for regime in json.loads(json.dumps(odd.summary()))["regimes"]]
    assert names[0] == 0
    assert "2024" in names[2]


def test_with_names(result):
    other = result.with_names(("v", "w", "x", "y", "z"))
    assert list(other.adjacency.columns) == ["v", "w", "x", "y", "z"]
    np.testing.assert_array_equal(other.adjacency, result.adjacency)


# A fit's own honesty.


def test_a_pair_without_informative_interventions_stays_ambiguous():
    rng = np.random.default_rng(0)
    x = rng.normal(size=800)
    pair = pd.DataFrame({"cause": x, "effect": x + rng.normal(size=800)})
    for est in (LatentInterventionDAG(max_regimes=1).fit(pair), LatentInterventionDAG(n_init=1).fit(pair)):
        forward = est.edge_probabilities_.loc["cause", "effect"]
        backward = est.edge_probabilities_.loc["effect", "cause"]
        assert forward == pytest.approx(backward, abs=0.01)
        assert forward + backward > 0.95  # a hidden cause of both is not excluded
        assert list(est.ambiguous_edges_["source"]) == ["cause"]
        assert est.ambiguous_edges_["undirected"].all()


def test_an_intervention_on_the_effect_resolves_it():
    rng = np.random.default_rng(2)
    x = rng.normal(size=800)
    y = x + 0.5 * rng.normal(size=800)
    y[500:] = 3.0 + 0.5 * rng.normal(size=300)
    est = LatentInterventionDAG().fit(
        pd.DataFrame({"cause": x, "effect": y}), regimes=np.repeat([0, 1], [500, 300])
    )
    assert est.model_edge_probabilities_.loc["cause", "effect"] > 0.99
    assert est.edge_probabilities_.loc["cause", "effect"] > 0.9
    assert est.ambiguous_edges_.empty
    np.testing.assert_array_equal(est.targets_, [[0, 0], [0, 1]])
    assert est.target_probabilities_.iloc[1, 1] > 0.99
