"""Distances of graphs: definitions by brute force, metric axioms, alignment by name, the paper's printed numbers."""

import dataclasses
import itertools
import math
import sys

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentdo import graphs, metrics

NAMES = ["Raf", "Mek", "Plcg", "PIP2", "PIP3", "Erk", "Akt", "PKA", "PKC", "P38", "Jnk"]
EFFECTS = {
    "Erk": ["Akt"],
    "Mek": ["Erk"],
    "PIP2": ["PKC"],
    "PIP3": ["Akt", "PIP2", "Plcg"],
    "PKA": ["Akt", "Erk", "Jnk", "Mek", "P38", "Raf"],
    "PKC": ["Jnk", "Mek", "P38", "PKA", "Raf"],
    "Plcg": ["PIP2", "PKC"],
    "Raf": ["Mek"],
}
SACHS_20 = [(cause, effect) for cause, effects in EFFECTS.items() for effect in effects]
SACHS_18 = [edge for edge in SACHS_20 if edge not in {("PKC", "PKA"), ("Erk", "Akt")}]
SACHS_17 = [
    edge
    for edge in SACHS_20
    if edge not in {("PIP2", "PKC"), ("PIP3", "Akt"), ("PIP3", "Plcg"), ("Plcg", "PKC")}
] + [("Plcg", "PIP3")]


def frame(edges, names):
    return pd.DataFrame(graphs.from_edges(edges, names), index=names, columns=names)


@st.composite
def graph_tuples(draw, number, max_variables=5):
    """Several directed graphs (cycles allowed, loops not) on the same variables."""
    d = draw(st.integers(1, max_variables))
    found = []
    for _ in range(number):
        bits = draw(st.lists(st.booleans(), min_size=d * d, max_size=d * d))
        matrix = np.array(bits, dtype=int).reshape(d, d)
        np.fill_diagonal(matrix, 0)
        found.append(matrix)
    return found


def random_dags(d, number, seed):
    rng = np.random.default_rng(seed)
    return [graphs.random_dag(d, edges_per_node=1.3, rng=rng) for _ in range(number)]


GRAPH_METRICS = [
    metrics.hamming_distance,
    metrics.shd,
    metrics.edge_counts,
    metrics.edge_scores,
    metrics.skeleton_scores,
    metrics.sid,
    metrics.parent_aid,
    metrics.ancestor_aid,
    metrics.essential_graph_distance,
    metrics.compare_graphs,
]


class TestDistances:
    @pytest.mark.parametrize("distance", [metrics.hamming_distance, metrics.shd])
    @given(graph_tuples(3))
    def test_metric_axioms(self, distance, three):
        a, b, c = three
        assert distance(a, a) == 0
        assert (distance(a, b) == 0) == np.array_equal(a, b)
        assert distance(a, b) == distance(b, a)
        assert distance(a, c) <= distance(a, b) + distance(b, c)

    @given(graph_tuples(2))
    def test_counts_by_definition(self, two):
        true, found = two
        d = len(true)
        tp = fn = fp = rev = pairs = skeleton_tp = skeleton_fn = skeleton_fp = 0
        for i, j in itertools.permutations(range(d), 2):
            tp += true[i, j] == 1 and found[i, j] == 1
            fn += true[i, j] == 1 and found[i, j] == 0
            fp += true[i, j] == 0 and found[i, j] == 1
            rev += (true[i, j], true[j, i], found[i, j], found[j, i]) == (1, 0, 0, 1)
            if i < j:
                pairs += (true[i, j], true[j, i]) != (found[i, j], found[j, i])
                connected, seen = true[i, j] or true[j, i], found[i, j] or found[j, i]
                skeleton_tp += bool(connected and seen)
                skeleton_fn += bool(connected and not seen)
                skeleton_fp += bool(seen and not connected)
        counts = metrics.edge_counts(true, found)
        assert counts == metrics.EdgeCounts(tp=tp, fn=fn, fp=fp, rev=rev)
        assert metrics.hamming_distance(true, found) == counts.hamming == fn + fp
        assert metrics.shd(true, found) == pairs
        assert metrics.edge_scores(true, found) == metrics.Scores(tp=tp, fn=fn, fp=fp)
        assert metrics.skeleton_scores(true, found) == metrics.Scores(skeleton_tp, skeleton_fn, skeleton_fp)

    def test_reversal_counts_two_and_one(self):
        forward, backward, nothing = [[0, 1], [0, 0]], [[0, 0], [1, 0]], [[0, 0], [0, 0]]
        assert [metrics.hamming_distance(forward, g) for g in (forward, nothing, backward)] == [0, 1, 2]
        assert [metrics.shd(forward, g) for g in (forward, nothing, backward)] == [0, 1, 1]

    @pytest.mark.parametrize(
        ("hamming", "tp", "fn", "fp", "rev", "f1"),
        [
            (33, 7, 11, 22, 3, 0.30),
            (19, 7, 11, 8, 0, 0.42),
            (30, 9, 9, 21, 1, 0.38),
            (23, 8, 10, 13, 3, 0.41),
            (24, 11, 7, 17, 1, 0.48),
            (23, 7, 11, 12, 2, 0.38),
        ],
    )
    def test_rule_reproduces_the_papers_own_rows_of_table_2(self, hamming, tp, fn, fp, rev, f1):
        counts = metrics.EdgeCounts(tp=tp, fn=fn, fp=fp, rev=rev)
        assert tp + fn == 18  # the edges of its graph
        assert counts.hamming == hamming
        assert counts.f1 == pytest.approx(f1, abs=0.0051)

    @pytest.mark.parametrize(
        ("shd", "tp", "missing", "extra", "rev"),
        [(35, 12, 1, 30, 4), (18, 4, 6, 5, 7), (36, 6, 2, 25, 9), (33, 6, 2, 22, 9)],
    )
    def test_missing_and_extra_are_the_convention_of_its_other_rows(self, shd, tp, missing, extra, rev):
        counts = metrics.EdgeCounts(tp=tp, fn=missing + rev, fp=extra + rev, rev=rev)
        assert (counts.missing, counts.extra) == (missing, extra)
        assert counts.tp + counts.fn == 17
        assert counts.missing + counts.extra + counts.rev == counts.hamming - counts.rev == shd

    @pytest.mark.parametrize("seed", range(5))
    def test_shd_of_dags_is_hamming_less_reversals(self, seed):
        true, found = random_dags(7, 2, seed)
        counts = metrics.edge_counts(true, found)
        assert metrics.shd(true, found) == counts.missing + counts.extra + counts.rev

    def test_cytometry_reference_graphs(self):
        """Known differences of the three graphs, in three column orders."""
        rng = np.random.default_rng(0)
        g20 = frame(SACHS_20, NAMES)
        g18 = frame(SACHS_18, list(rng.permutation(NAMES)))
        g17 = frame(SACHS_17, list(rng.permutation(NAMES)))
        empty = pd.DataFrame(0, index=NAMES, columns=NAMES)
        assert [metrics.shd(g, empty) for g in (g20, g18, g17)] == [20, 18, 17]
        assert metrics.hamming_distance(g20, g18) == 2
        assert metrics.edge_counts(g20, g17) == metrics.EdgeCounts(tp=16, fn=4, fp=1, rev=1)
        assert (metrics.hamming_distance(g20, g17), metrics.shd(g20, g17)) == (5, 4)


class TestScores:
    def test_empty_cases(self):
        nothing, edge = np.zeros((2, 2)), [[0, 1], [0, 0]]
        for scores in (metrics.edge_scores, metrics.skeleton_scores):
            assert scores(nothing, nothing).as_dict() == {"precision": 1, "recall": 1, "f1": 1}
            assert scores(edge, nothing).as_dict() == {"precision": 0, "recall": 0, "f1": 0}
            assert scores(nothing, edge).as_dict() == {"precision": 0, "recall": 0, "f1": 0}

    @given(st.integers(1, 50), st.integers(0, 50), st.integers(0, 50))
    def test_f1_is_the_harmonic_mean(self, tp, fn, fp):
        scores = metrics.Scores(tp=tp, fn=fn, fp=fp)
        assert (scores.precision, scores.recall) == (tp / (tp + fp), tp / (tp + fn))
        assert scores.f1 == pytest.approx(2 / (1 / scores.precision + 1 / scores.recall))

    def test_frozen(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            metrics.edge_counts([[0]], [[0]]).tp = 3


class TestInputs:
    @pytest.mark.parametrize("metric", GRAPH_METRICS)
    def test_frames_are_aligned_by_name(self, metric):
        """Rows and columns in any order, together or apart, give what matrices in one order give."""
        true, found = random_dags(6, 2, seed=1)
        names = list("abcdef")
        true_frame = pd.DataFrame(true, index=names, columns=names)
        found_frame = pd.DataFrame(found, index=names, columns=names)
        plain = metric(true, found)
        assert metric(true, found[::-1, ::-1]) != plain  # order matters for arrays: the test can fail
        for rows, columns in (("fedcba", "fedcba"), ("bdface", "cabfed")):
            assert metric(true_frame, found_frame.loc[list(rows), list(columns)]) == plain
            assert metric(true_frame.loc[list(rows), list(columns)], found_frame) == plain
        assert metric(true_frame, found) == plain

    @pytest.mark.parametrize("metric", GRAPH_METRICS)
    @pytest.mark.parametrize("seed", range(3))
    def test_order_of_variables_does_not_matter(self, metric, seed):
        true, found = random_dags(6, 2, seed)
        p = np.random.default_rng(seed).permutation(6)
        assert metric(true[np.ix_(p, p)], found[np.ix_(p, p)]) == metric(true, found)

    @pytest.mark.parametrize("metric", GRAPH_METRICS)
    @pytest.mark.parametrize(
        ("true", "found", "message"),
        [
            (np.zeros((2, 3)), np.zeros((2, 2)), "the true graph must be a square"),
            (np.zeros((2, 2)), np.zeros((2, 3)), "the found graph must be a square"),
            (np.zeros((2, 2)), np.zeros((3, 3)), "2 variables, the found one 3"),
            (np.zeros((2, 2)), np.full((2, 2), 0.5), "the found graph must hold only 0 and 1"),
            (np.full((2, 2), np.nan), np.zeros((2, 2)), "nan"),
            (np.eye(2), np.zeros((2, 2)), "the true graph a variable causes itself: 0"),
            (
                frame([], ["a", "b"]),
                frame([], ["a", "c"]),
                "only in the found graph: c; only in the true graph: b",
            ),
            (frame([], ["a", "b"]), frame([], ["a", "b", "c"]), "only in the found graph: c"),
            (
                frame([], ["a", "b"]),
                pd.DataFrame(0, ["a", "x"], ["a", "b"]),
                "only in the rows of the found graph: x",
            ),
            (frame([], ["a", "b"]), pd.DataFrame(0, ["a", "b"], ["a", "a"]), "repeated names in .*: a"),
        ],
    )
    def test_refuses(self, metric, true, found, message):
        with pytest.raises(ValueError, match=message):
            metric(true, found)


def is_valid_adjustment(true, i, j, chosen):
    """Whether adjusting for a set gives the effect of i on j: the adjustment criterion of Shpitser et al."""
    graph = nx.from_numpy_array(true, create_using=nx.DiGraph)
    below = nx.descendants(graph, i)
    on_causal_path = {k for k in below if k == j or j in nx.descendants(graph, k)} if j in below else set()
    forbidden = set().union(*({k} | nx.descendants(graph, k) for k in on_causal_path))
    if forbidden & chosen:
        return False
    graph.remove_edges_from([(i, k) for k in on_causal_path])
    return nx.is_d_separator(graph, {i}, {j}, chosen)


def mistakes(true, found, kind):
    """SID and ancestor distance from their definitions."""
    true_paths, found_paths = graphs.reachability(true), graphs.reachability(found)
    total = 0
    for i, j in itertools.permutations(range(len(true)), 2):
        chosen = set(np.flatnonzero((found if kind == "sid" else found_paths)[:, i]).tolist())
        claims_none = j in chosen if kind == "sid" else not found_paths[i, j]
        total += bool(true_paths[i, j]) if claims_none else not is_valid_adjustment(true, i, j, chosen)
    return total


class TestAdjustment:
    def test_all_pairs_of_dags_on_three_variables(self):
        pytest.importorskip("gadjid")
        dags = list(graphs.all_dags(3))
        for true, found in itertools.product(dags, dags):
            expected = mistakes(true, found, "sid")
            assert metrics.sid(true, found) == metrics.parent_aid(true, found) == expected
            assert metrics.ancestor_aid(true, found) == mistakes(true, found, "ancestor")

    @pytest.mark.parametrize("seed", range(20))
    def test_larger_dags(self, seed):
        pytest.importorskip("gadjid")
        true, found = random_dags(6, 2, seed)
        assert metrics.sid(true, found) == metrics.parent_aid(true, found) == mistakes(true, found, "sid")
        assert metrics.ancestor_aid(true, found) == mistakes(true, found, "ancestor")
        assert metrics.sid(true, found, normalized=True) == pytest.approx(mistakes(true, found, "sid") / 30)
        complete = np.zeros((6, 6), dtype=int)
        order = graphs.topological_order(true)
        complete[np.ix_(order, order)] = np.triu(np.ones((6, 6)), k=1)
        assert metrics.sid(true, complete) == 0

    def test_one_variable(self):
        pytest.importorskip("gadjid")
        assert metrics.sid([[0]], [[0]]) == metrics.ancestor_aid([[0]], [[0]]) == 0

    @pytest.mark.parametrize("metric", [metrics.sid, metrics.parent_aid, metrics.ancestor_aid])
    def test_cycles_are_refused_by_name_before_gadjid_panics(self, metric):
        cyclic = frame([("a", "b"), ("b", "a")], ["a", "b"])
        with pytest.raises(ValueError, match="found graph has the cycle a -> b -> a"):
            metric(frame([("a", "b")], ["a", "b"]), cyclic)
        with pytest.raises(ValueError, match="true graph has the cycle a -> b -> a"):
            metric(cyclic, frame([("a", "b")], ["a", "b"]))

    @pytest.mark.parametrize("metric", [metrics.sid, metrics.parent_aid, metrics.ancestor_aid])
    def test_missing_extra_says_what_to_install(self, metric, monkeypatch):
        monkeypatch.setitem(sys.modules, "gadjid", None)
        with pytest.raises(ImportError, match=r"pip install latentdo\[metrics\]"):
            metric([[0, 1], [0, 0]], [[0, 1], [0, 0]])
        row = metrics.compare_graphs([[0, 1], [0, 0]], [[0, 1], [0, 0]])
        assert math.isnan(row["sid"])
        assert row["essential_graph_distance"] == 0


class TestEssentialGraphs:
    def test_zero_if_and_only_if_equivalent(self):
        dags = list(graphs.all_dags(3))
        targets = [[0, 0, 0], [0, 1, 0]]
        for true, found in itertools.product(dags, dags):
            same_skeleton = np.array_equal(true | true.T, found | found.T)
            colliders = [
                {
                    k
                    for k in range(3)
                    if g[:, k].sum() == 2 and not (g | g.T)[np.ix_(g[:, k] > 0, g[:, k] > 0)].any()
                }
                for g in (true, found)
            ]
            equivalent = same_skeleton and colliders[0] == colliders[1]
            assert (metrics.essential_graph_distance(true, found) == 0) == equivalent
            at_target = np.array_equal(true[1], found[1]) and np.array_equal(true[:, 1], found[:, 1])
            told_apart = not (equivalent and at_target)
            assert (metrics.essential_graph_distance(true, found, targets) > 0) == told_apart

    def test_every_variable_targeted_gives_the_shd(self):
        true, found = random_dags(6, 2, seed=2)
        targets = np.vstack([np.zeros(6), np.eye(6)])
        assert metrics.essential_graph_distance(true, found, targets) == metrics.shd(true, found) > 0

    def test_targets_are_aligned_by_name(self):
        chain, fork = (
            frame([("a", "b"), ("b", "c")], list("abc")),
            frame([("b", "a"), ("b", "c")], list("cba")),
        )
        targets = pd.DataFrame([[0, 0, 0], [0, 1, 0]], columns=["b", "c", "a"])  # hits c: says b -> c
        assert metrics.essential_graph_distance(chain, fork, targets) == 0
        hits_a = targets.rename(columns={"a": "c", "c": "a"})
        assert metrics.essential_graph_distance(chain, fork, hits_a) > 0

    def test_without_observational_rows_it_matters_whether_interventions_are_perfect(self):
        forward, backward, targets = [[0, 1], [0, 0]], [[0, 0], [1, 0]], np.eye(2)
        assert metrics.essential_graph_distance(forward, backward, targets) == 0
        assert metrics.essential_graph_distance(forward, backward, targets, intervention="perfect") == 1


class TestCompareGraphs:
    def test_agrees_with_each_metric(self):
        pytest.importorskip("gadjid")
        true, found = random_dags(6, 2, seed=4)
        targets = np.vstack([np.zeros(6), np.eye(6)[:2]])
        row = metrics.compare_graphs(true, found, targets)
        assert row["true_edges"] == true.sum()
        assert row["found_edges"] == found.sum()
        assert row["hamming"] == metrics.hamming_distance(true, found)
        assert row["shd"] == metrics.shd(true, found)
        assert row["f1"] == metrics.edge_scores(true, found).f1
        assert row["skeleton_recall"] == metrics.skeleton_scores(true, found).recall
        assert row["essential_graph_distance"] == metrics.essential_graph_distance(true, found, targets)
        assert (row["sid"], row["ancestor_aid"]) == (
            metrics.sid(true, found),
            metrics.ancestor_aid(true, found),
        )
        assert [row[key] for key in ("tp", "fn", "fp", "rev")] == [
            *metrics.edge_counts(true, found).as_dict().values()
        ]

    def test_cyclic_graphs_keep_the_columns(self):
        row = metrics.compare_graphs([[0, 1], [1, 0]], [[0, 1], [0, 0]])
        assert row.keys() == metrics.compare_graphs([[0]], [[0]]).keys()
        assert (row["hamming"], row["shd"]) == (1, 1)
        assert math.isnan(row["sid"])
        assert math.isnan(row["essential_graph_distance"])
