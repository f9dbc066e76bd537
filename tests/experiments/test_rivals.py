"""Rivals outside the benchmark: every row can be drawn, hides what it should, and losses are named."""

import numpy as np
import pandas as pd
import pytest
from experiments.baselines.registry import METHODS, methods_for

from experiments import report, rivals


@pytest.mark.parametrize("row", [row for row in rivals.ROWS if row != "incidents"])
def test_a_row_is_drawn_with_all_that_its_methods_are_told(row):
    problem, truth = rivals.question(row, 1000)
    assert problem.X.shape[1] == len(truth)
    np.testing.assert_allclose(problem.X.std(axis=0, ddof=1), 1)
    if row == "switches":
        assert problem.regimes is None
    for name in methods_for(rivals.ROWS[row]):
        if row != "switches":
            assert all(getattr(problem, secret) is not None for secret in METHODS[name].given)


def test_a_switched_variable_is_a_mixture_and_others_are_not():
    table = rivals.switches(3, n_samples=20_000, n_switches=2)
    truth = table.adjacency.to_numpy()
    assert not np.linalg.matrix_power(truth, len(truth)).any(), "acyclic"
    X, straight = table.X.to_numpy(), []
    for j in range(len(truth)):
        known = np.column_stack([np.ones(len(X)), X[:, truth[:, j] == 1]])
        rest = X[:, j] - known @ np.linalg.lstsq(known, X[:, j], rcond=None)[0]
        straight.append(abs(rest.std() - 1) < 0.05)
    assert sum(straight) == len(truth) - 2


def test_small_tables_have_the_sizes_that_cmm_was_published_with():
    for row in (*rivals.SMALL, "switches"):
        n, d = rivals.question(row, 1000)[0].X.shape
        assert 100 <= n <= 1000
        assert 4 <= d <= 8


@pytest.fixture
def frame():
    """CMM is closer than ours on one row by a wide margin, BOSS only if its undirected edge is turned; PC stopped."""
    cells = [
        ("latentdo", 0, "ok", 4.0, 4.0),
        ("latentdo", 1, "ok", 6.0, 6.0),
        ("cmm", 0, "ok", 1.0, 1.0),
        ("cmm", 1, "ok", 2.0, 2.0),
        ("boss", 0, "ok", 5.0, 3.0),
        ("pc", 0, "time-out", np.nan, np.nan),
    ]
    names = ("method", "seed", "status", "hamming", "hamming_favourable")
    frame = pd.DataFrame([dict(zip(names, cell, strict=True)) for cell in cells])
    return frame.assign(row="switches", true_edges=8, processor_seconds=2.0, key=[f"k{i}" for i in range(6)])


def test_a_table_has_ours_first_and_says_who_stopped(frame):
    rows = rivals.summary(frame, "small").rows
    assert rows[0][:3] == ("**latentdo**", "nothing", "**5.0 (2)**")
    entries = {row[0]: row[2] for row in rows}
    assert entries["CMM"] == "1.5 (2)"
    assert entries["BOSS, all rows"] == "5.0 / 3.0 (1)"
    assert entries["PC, all rows"] == "stop"
    assert entries["empty graph"] == "8.0"


def test_losses_are_named_and_paired_over_tables(frame, tmp_path):
    frame.to_csv(tmp_path / "rivals.csv", index=False)
    (line,) = report.rival_losses(tmp_path)
    assert "CMM (told nothing) 1.5 against our 5.0 on 2 tables" in line
    assert "BOSS, all rows (told nothing) 3.0 against our 4.0 on 1 table if undirected" in line
    assert "PC" not in line
    assert report.rival_losses(tmp_path / "empty") == []
