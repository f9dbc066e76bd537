"""What the trust experiment counts: alarms, checks that name a violation, and promises kept."""

import numpy as np
import pandas as pd
import pytest

from experiments import trust


def _cell(table, failed, *, truth, plain, shown):
    truth, plain, shown = (np.array(values) for values in (truth, plain, shown))
    return {
        "table": table,
        "preset": "field",
        "size": "five",
        "density": "auto",
        "failed": failed,
        "fit_processor": 1.0,
        **trust._promises("plain", truth, plain),
        **trust._promises("shown", truth, shown),
    }


@pytest.fixture
def frame():
    truth, sure = [1, 0, 0, 1], [0.95, 0.01, 0.01, 0.99]
    return pd.DataFrame(
        [
            _cell("linear-gaussian", "none", truth=truth, plain=sure, shown=sure),
            _cell("linear-gaussian", "skew", truth=truth, plain=sure, shown=[0.95, 0.0, 0.0, 0.6]),
            _cell("common-factor", "broad regimes", truth=truth, plain=[0.99] * 4, shown=[0.6] * 4),
            _cell("common-factor", "shared values", truth=truth, plain=[0.99] * 4, shown=[0.99] * 4),
            _cell("zeros", "shared values", truth=truth, plain=sure, shown=sure),
        ]
    )


def test_totals_count_alarms_names_and_promises(frame):
    found = dict(trust.totals(frame).rows)
    assert found["clean tables"] == "2"
    assert found["clean tables in which a check fails, by check"] == "skew 1"
    assert found["right arrows above 0.9 on clean tables: shown, of plain"] == "3 of 4"
    assert found["common-factor: named by its own check; arrows in doubt by any"] == "0 of 2; 1 of 2"
    assert found["zeros: named by its own check; arrows in doubt by any"] == "1 of 1; 0 of 1"
    assert found["of the clean tables in doubt, the fit has a wrong arrow above 0.9"] == "0 of 1"
    assert found["arrows above 0.9 on violated tables that are right, plain"] == "6 of 10"
    assert found["arrows above 0.9 on violated tables that are right, shown"] == "4 of 6"
    assert found["violated tables that show a wrong arrow above 0.9"] == "1 of 3"
    assert found["of these, no check puts any arrow in doubt"] == "1"
    # Five pairs of 0.6, three of them arrows; what is above 0.9 or below 0.05 does not count.
    assert trust.calibration_error(frame, "shown") == pytest.approx(0.0)
    assert np.isclose(trust.calibration_error(frame.iloc[:1], "plain"), 0.0)


def test_the_summary_has_a_line_for_each_kind_of_table(frame):
    clean, factor, zeros = trust.summary(frame).rows
    assert clean[:6] == ("linear-gaussian, field 1500 x 5, auto", "2", "skew 1", "4 of 4", "3 of 3", "0")
    assert factor[2:6] == ("broad regimes 1, shared values 1", "4 of 8", "2 of 4", "1")
    assert float(zeros[6]) > 0.9 > 0.0 > float(factor[6])


def test_pairs_in_doubt_are_apart(frame):
    (row,) = [one for one in trust.reliability(frame).rows if one[0] == "0.9 to 1"]
    assert row[1] == "0.75 of 8 (0.98)"
    assert trust.totals(pd.DataFrame()).rows == []
