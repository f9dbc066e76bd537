"""Agreement of regimes and recovery of targets: relabelling, unknown rows, alignment by name."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentdo import metrics


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
        with pytest.raises(ValueError, match="one label per row"):
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
