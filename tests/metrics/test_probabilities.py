"""Quality of probabilities: skills by hand, calibration, refusals."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentdo import graphs, metrics

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
        true = graphs.random_dag(5, edges_per_node=1.3, rng=np.random.default_rng(1))
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
            (
                pd.DataFrame(0, list("ab"), list("ab")),
                pd.DataFrame(0, list("ac"), list("ac")),
                "only in the found graph: c",
            ),
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
