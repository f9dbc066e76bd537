"""Metrics: definitions by brute force, metric axioms, alignment by name, the paper's printed numbers."""

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


class TestRegimes:
    def test_matching_is_the_best_of_all(self):
        rng = np.random.default_rng(0)
        for _ in range(20):
            true, found = rng.integers(0, 4, 60), rng.integers(0, 4, 60)
            best = max(
                sum(int(((true == k) & (found == p[k])).sum()) for k in range(4))
                for p in itertools.permutations(range(4))
            )
            assert sum(rows for *_, rows in metrics.match_regimes(true, found).pairs) == best

    def test_greedy_would_be_wrong(self):
        true = ["a"] * 9 + ["b"] * 4
        found = [0] * 5 + [1] * 4 + [0] * 4  # a shares 5 with 0, but 4 + 4 is more than 5 + 0
        matching = metrics.match_regimes(true, found)
        assert matching.true_to_found == {"a": 1, "b": 0}
        assert matching.found_to_true == {1: "a", 0: "b"}

    def test_unmatched_and_unknown(self):
        matching = metrics.match_regimes(["x", "y", None, "z", "y"], [0, 0, 3, -1, 0])
        assert matching.pairs == (("y", 0, 2),)
        assert matching.unmatched_true == ("x", "z")
        assert matching.unmatched_found == (3,)  # it has rows, but none whose truth is known
        assert "true without a match: x, z" in str(matching)

    def test_labels_keep_their_type(self):
        matching = metrics.match_regimes([1, "one", (2, 3)], pd.Series([np.nan, 1.0, 0.0]))
        assert matching.true_to_found == {"one": 1, (2, 3): 0}
        assert matching.unmatched_true == (1,)

    @given(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30),
        st.permutations(range(4)),
    )
    def test_names_of_regimes_do_not_matter(self, rows, renaming):
        true, found = (np.array(column) for column in zip(*rows, strict=True))
        renamed = np.array(renaming)[found]
        assert metrics.adjusted_rand_index(true, renamed) == pytest.approx(
            metrics.adjusted_rand_index(true, found)
        )
        assert metrics.normalized_mutual_information(true, renamed) == pytest.approx(
            metrics.normalized_mutual_information(true, found)
        )
        overlap = [sum(n for *_, n in metrics.match_regimes(true, f).pairs) for f in (found, renamed)]
        assert overlap[0] == overlap[1]

    def test_agreement_by_hand(self):
        true, found = ["a", "a", "b", "b"], [0, 0, 0, 1]
        # pairs: together in both 1, in truth 2, in found 3, of 6; expected 1, maximum 2.5
        assert metrics.adjusted_rand_index(true, found) == pytest.approx(0)
        entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
        shared = (
            0.5 * math.log(0.5 / (0.5 * 0.75)) + 0.25 * math.log(0.25 / (0.5 * 0.75)) + 0.25 * math.log(2)
        )
        expected = shared / ((entropy + math.log(2)) / 2)
        assert metrics.normalized_mutual_information(true, found) == pytest.approx(expected)

    @pytest.mark.parametrize(
        "agreement", [metrics.adjusted_rand_index, metrics.normalized_mutual_information]
    )
    def test_unknown_truth_is_left_out_and_abstaining_is_not_rewarded(self, agreement):
        assert agreement([0, 0, 1, 1, -1, None], [5, 5, 6, 6, 5, 6]) == pytest.approx(1)
        assert agreement([0, 0, 1, 1], [5, -1, 6, -1]) < 0.8

    @pytest.mark.parametrize("metric", [metrics.match_regimes, metrics.adjusted_rand_index])
    def test_refuses(self, metric):
        with pytest.raises(ValueError, match="2 rows, but found_regimes 3"):
            metric([0, 1], [0, 1, 2])
        with pytest.raises(ValueError, match="one label a row"):
            metric(np.zeros((2, 2)), [0, 1])

    def test_nothing_known(self):
        with pytest.raises(ValueError, match="unknown in every row"):
            metrics.adjusted_rand_index([None, -1], [0, 1])


class TestTargets:
    true_regimes = np.repeat([0, 1, 2], 4)
    true_targets = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 1]])

    def test_relabelled_is_perfect(self):
        for order in itertools.permutations(range(3)):
            found_regimes = np.array(order)[self.true_regimes]
            found_targets = np.empty_like(self.true_targets)
            found_targets[list(order)] = self.true_targets
            scores = metrics.target_scores(self.true_targets, found_targets, self.true_regimes, found_regimes)
            assert scores == metrics.Scores(tp=3, fn=0, fp=0)

    def test_without_matching_it_would_be_wrong(self):
        swapped = np.array([0, 2, 1])[self.true_regimes]
        scores = metrics.target_scores(self.true_targets, self.true_targets, self.true_regimes, swapped)
        assert scores == metrics.Scores(tp=0, fn=3, fp=3)

    def test_unmatched_regimes_count(self):
        merged = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0])  # regime 2 is scattered over the other two
        found = metrics.target_scores(self.true_targets, [[0, 0, 0], [1, 0, 0]], self.true_regimes, merged)
        assert found == metrics.Scores(tp=1, fn=2, fp=0)  # the two targets of regime 2 are missed
        split = np.array([0, 0, 0, 0, 1, 1, 1, 3, 2, 2, 2, 2])
        targets = [[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 0, 1]]
        found = metrics.target_scores(self.true_targets, targets, self.true_regimes, split)
        assert found == metrics.Scores(tp=3, fn=0, fp=2)  # both targets of the superfluous regime are false
        assert found.precision == 0.6

    def test_regimes_without_rows_count(self):
        targets = np.vstack([self.true_targets, [1, 1, 1]])
        scores = metrics.target_scores(self.true_targets, targets, self.true_regimes, self.true_regimes)
        assert scores == metrics.Scores(tp=3, fn=0, fp=3)

    def test_frames_are_aligned_by_name_and_looked_up_by_label(self):
        labels = np.array(["none", "drug", "heat"])[self.true_regimes]
        true = pd.DataFrame(self.true_targets, index=["none", "drug", "heat"], columns=list("abc"))
        found = pd.DataFrame(self.true_targets, columns=list("abc"))
        perfect = metrics.Scores(tp=3, fn=0, fp=0)
        assert metrics.target_scores(true, found[list("cab")], labels, self.true_regimes) == perfect
        assert (
            metrics.target_scores(true.loc[["heat", "none", "drug"]], found, labels, self.true_regimes)
            == perfect
        )
        assert metrics.target_scores(true, found.to_numpy(), labels, self.true_regimes) == perfect
        # labels that are not in the index are row numbers, as for a fitted estimator with named regimes
        assert metrics.target_scores(true, found, self.true_regimes, self.true_regimes) == perfect

    def test_dicts_from_label_to_names(self):
        labels = np.array(["none", "drug", "heat"])[self.true_regimes]
        true = {"drug": "aa", "heat": ["b", "c"]}
        found = pd.DataFrame(self.true_targets, columns=["aa", "b", "c"])
        assert metrics.target_scores(true, found, labels, self.true_regimes) == metrics.Scores(
            tp=3, fn=0, fp=0
        )
        other = {1: ["aa", "b"], 2: ["b"]}
        assert metrics.target_scores(true, other, labels, self.true_regimes) == metrics.Scores(
            tp=2, fn=1, fp=1
        )
        assert metrics.target_scores(other, true, self.true_regimes, labels) == metrics.Scores(
            tp=2, fn=1, fp=1
        )

    @pytest.mark.parametrize(
        ("true", "found", "message"),
        [
            (np.eye(3), np.eye(3)[:2], "found_targets has no row for these regimes: 2"),
            (np.eye(3), np.zeros((3, 2)), "3 variables, but found_targets 2"),
            (np.eye(3), np.full((3, 3), 0.5), "found_targets must be a matrix of 0 and 1"),
            (np.full((3, 3), np.nan), np.eye(3), "true_targets must be a matrix of 0 and 1"),
            (np.eye(3), {1: ["a"]}, "need names"),
            (pd.DataFrame(np.eye(3), columns=list("abc")), {1: ["z"]}, "unknown targets: z"),
            (
                pd.DataFrame(np.eye(3), columns=list("abc")),
                pd.DataFrame(np.eye(3), columns=list("abd")),
                "only in the columns of found_targets: d; only in those of true_targets: c",
            ),
            (
                np.eye(3),
                pd.DataFrame(np.eye(3), index=[1, 2, 3]),
                "found_targets has no row for these regimes: 0",
            ),
            (np.eye(3), pd.DataFrame(np.eye(3), index=[0, 1, 1]), "two rows"),
        ],
    )
    def test_refuses(self, true, found, message):
        with pytest.raises(ValueError, match=message):
            metrics.target_scores(true, found, self.true_regimes, self.true_regimes)


PROBABILITY_METRICS = [
    metrics.brier_skill,
    metrics.log_score_skill,
    metrics.expected_calibration_error,
    lambda true, p: metrics.reliability(true, p).as_dict(),
]


class TestProbabilities:
    def test_skills_by_hand(self):
        outcomes, values = [1, 0, 0, 0], [0.7, 0.1, 0.1, 0.1]
        assert metrics.brier_skill(outcomes, values) == pytest.approx(1 - 0.12 / 0.75)
        base = -(math.log(0.25) + 3 * math.log(0.75))
        assert metrics.log_score_skill(outcomes, values) == pytest.approx(
            1 + (math.log(0.7) + 3 * math.log(0.9)) / base
        )

    @pytest.mark.parametrize("skill", [metrics.brier_skill, metrics.log_score_skill])
    @given(st.lists(st.booleans(), min_size=2, max_size=20), st.floats(0.01, 0.99))
    def test_no_constant_beats_the_base_rate_and_the_truth_is_perfect(self, skill, outcomes, constant):
        outcomes = np.array(outcomes, dtype=int)
        if outcomes.min() == outcomes.max():
            assert skill(outcomes, np.full(len(outcomes), constant)) == -math.inf
            assert math.isnan(skill(outcomes, outcomes))
            return
        assert skill(outcomes, np.full(len(outcomes), outcomes.mean())) == pytest.approx(0, abs=1e-12)
        assert skill(outcomes, np.full(len(outcomes), constant)) <= 1e-12
        assert skill(outcomes, outcomes) == 1

    def test_references(self):
        outcomes, values, hard = [1, 0, 1, 0], [0.8, 0.2, 0.4, 0.2], [1, 0, 0, 0]
        assert metrics.brier_skill(outcomes, values, reference=hard) == pytest.approx(1 - 0.48 / 1)
        assert metrics.brier_skill(outcomes, values, reference=0.1) == pytest.approx(1 - 0.48 / 1.64)
        assert (
            metrics.log_score_skill(outcomes, values, reference=hard) == 1
        )  # a wrong certainty is infinitely bad
        assert metrics.log_score_skill(outcomes, hard) == -math.inf
        assert math.isfinite(metrics.log_score_skill(outcomes, hard, clip=1e-3))
        expected = 1 - metrics.log_score_skill(outcomes, np.clip(hard, 0.1, 0.9))
        assert 1 - metrics.log_score_skill(outcomes, hard, clip=0.1) == pytest.approx(expected)

    @pytest.mark.parametrize("metric", PROBABILITY_METRICS)
    def test_graphs_are_aligned_and_their_diagonal_left_out(self, metric):
        rng = np.random.default_rng(0)
        true = random_dags(5, 1, seed=1)[0]
        values = rng.random((5, 5))
        names = list("abcde")
        off = ~np.eye(5, dtype=bool)
        expected = metric(true[off], values[off])
        assert metric(true, values) == expected
        assert metric(true, values[::-1, ::-1]) != expected
        true_frame, frame_of_values = (pd.DataFrame(m, index=names, columns=names) for m in (true, values))
        shuffled = frame_of_values.loc[list("ebcad"), list("badce")]
        assert metric(true_frame, shuffled) == pytest.approx(expected)
        flat = pd.Series(values[off])
        assert metric(pd.Series(true[off]), flat.sample(frac=1, random_state=0)) == pytest.approx(expected)

    @pytest.mark.parametrize("metric", PROBABILITY_METRICS)
    @pytest.mark.parametrize(
        ("true", "values", "message"),
        [
            ([0, 1], [0.5, 1.2], "between 0 and 1, but one is 1.2"),
            ([0, 1], [0.5, np.nan], "nan"),
            ([0, 0.5], [0.5, 0.5], "only 0 and 1"),
            ([0, 1], [0.5], "equal length"),
            ([], [], "no forecasts"),
            (np.zeros((2, 3)), np.zeros((2, 3)), "square"),
            (np.zeros((2, 2)), np.zeros((3, 3)), "2 variables, the found one 3"),
            (frame([], ["a", "b"]), frame([], ["a", "c"]), "only in the found graph: c"),
            (pd.Series([0, 1]), pd.Series([0.1, 0.2], index=[1, 2]), "names differ"),
        ],
    )
    def test_refuses(self, metric, true, values, message):
        with pytest.raises(ValueError, match=message):
            metric(true, values)


class TestReliability:
    def test_by_hand(self):
        values = [0.0, 0.05, 0.10, 0.20, 0.30, 0.60, 0.94, 0.95, 1.0]
        outcomes = [1, 1, 0, 0, 1, 1, 1, 0, 0]
        table = metrics.reliability(outcomes, values, bins=3)
        assert table.edges == pytest.approx((0.05, 0.35, 0.65, 0.95))
        assert table.counts == (3, 1, 1)  # what is at or beyond the limits does not count
        assert table.forecast == pytest.approx((0.2, 0.6, 0.94))
        assert table.observed == pytest.approx((1 / 3, 1, 1))
        expected = (3 * abs(0.2 - 1 / 3) + 0.4 + 0.06) / 5
        assert table.expected_calibration_error == pytest.approx(expected)
        assert metrics.expected_calibration_error(outcomes, values, bins=3) == pytest.approx(expected)
        assert table.to_frame()["count"].tolist() == [3, 1, 1]
        assert "5 forecasts, expected calibration error" in str(table)

    def test_whole_range_includes_certainties(self):
        assert metrics.reliability([0, 1], [0.0, 1.0], low=0, high=1, bins=4).counts == (1, 0, 0, 1)

    def test_calibrated_forecasts_have_a_small_error_and_overconfident_ones_a_large_one(self):
        rng = np.random.default_rng(0)
        honest = rng.random(20000)
        outcomes = (rng.random(20000) < honest).astype(int)
        assert metrics.expected_calibration_error(outcomes, honest) < 0.02
        boastful = 1 / (1 + ((1 - honest) / honest) ** 3)
        assert metrics.expected_calibration_error(outcomes, boastful) > 0.1

    def test_empty(self):
        table = metrics.reliability([0, 1], [0.0, 1.0])
        assert sum(table.counts) == 0
        assert math.isnan(table.expected_calibration_error)

    @pytest.mark.parametrize(
        "arguments", [{"low": 0.5, "high": 0.5}, {"low": -0.1}, {"high": 1.1}, {"bins": 0}]
    )
    def test_refuses(self, arguments):
        with pytest.raises(ValueError, match="low"):
            metrics.reliability([0, 1], [0.2, 0.3], **arguments)
