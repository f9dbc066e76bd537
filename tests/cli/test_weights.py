"""``--weight-column``."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

LINES = ("--density", "linear", "--noise", "gaussian", "--n-init", 1)


@pytest.fixture
def table(tmp_path, run):
    arguments = ("--n-variables", 3, "--n-samples", 300, "--random-state", 1002)
    assert run("simulate", "--out", tmp_path / "s", *arguments)[0] == 0
    path = tmp_path / "s" / "data.csv"
    frame = pd.read_csv(path)
    rng = np.random.default_rng(0)
    frame.assign(times=rng.choice([0.0, 0.5, 1.5], len(frame))).to_csv(path, index=False)
    return path


def test_weights_from_the_table_to_the_files(table, tmp_path, run):
    out = tmp_path / "r"
    code, _, _ = run("fit", table, "--weight-column", "times", *LINES, "--out", out)
    assert code == 0
    weights = pd.read_csv(table)["times"]
    content = json.loads((out / "result.json").read_text("utf-8"))
    assert content["variables"] == ["X1", "X2", "X3"]
    assert content["configuration"]["weight"] == weights.sum()
    rows = pd.read_csv(out / "regimes.csv")
    kept = np.flatnonzero(weights)
    np.testing.assert_array_equal(rows["row"], kept)
    np.testing.assert_array_equal(rows["weight"], weights[kept])
    assert f"{len(kept)} rows, which count for {weights.sum():g}," in (out / "report.html").read_text("utf-8")


def test_bad_weights_are_named_as_on_the_command_line(table, tmp_path, run):
    frame = pd.read_csv(table)
    frame.loc[5, "times"] = -1.0
    frame.to_csv(table, index=False)
    code, _, err = run("fit", table, "--weight-column", "times", *LINES, "--out", tmp_path / "r")
    assert code != 0
    assert "--weight-column is -1 in row 5" in err
    code, _, err = run(
        "fit", table, "--weight-column", "times", "--solver", "gradient", "--out", tmp_path / "r"
    )
    assert code != 0
    frame.assign(times=2.0).to_csv(table, index=False)
    code, _, err = run(
        "fit", table, "--weight-column", "times", "--solver", "gradient", "--out", tmp_path / "r"
    )
    assert code != 0
    assert "--weight-column is not available with --solver gradient" in err


def test_rows_that_are_streamed_have_no_weights(table, tmp_path, run):
    pd.read_csv(table).to_parquet(table.with_suffix(".parquet"))
    arguments = ("--stream", "--weight-column", "times", "--out", tmp_path / "r")
    code, _, err = run("fit", table.with_suffix(".parquet"), *arguments)
    assert code != 0
    assert "--weight-column is not for --stream" in err
