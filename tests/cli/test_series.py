"""``--time-column`` and ``--series-column``."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from latentdo.cli import main


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def table(tmp_path, capsys):
    arguments = ("--n-variables", 3, "--n-samples", 600, "--mean-duration", 30)
    code, out, _ = run(capsys, "simulate", "--out", tmp_path / "s", *arguments)
    assert code == 0
    assert "--time-column time" in out
    return tmp_path / "s" / "data.csv"


def test_a_series_from_the_table_to_the_report(table, tmp_path, capsys):
    stamps = pd.date_range("2024-01-01", periods=600, freq="min").astype(str)
    data = pd.read_csv(table).assign(time=stamps, machine=["a"] * 300 + ["b"] * 300)
    data.to_csv(table, index=False)
    columns = ("--time-column", "time", "--series-column", "machine")
    lines = ("--density", "linear", "--noise", "gaussian", "--n-init", 1, "--out", tmp_path / "r")
    code, out, _ = run(capsys, "fit", table, *columns, *lines)
    assert code == 0
    assert "units of time" in out
    content = json.loads((tmp_path / "r" / "result.json").read_text("utf-8"))
    assert content["variables"] == ["X1", "X2", "X3"]
    assert content["configuration"]["series"] == 2
    assert 300.0 < content["duration"] < 6000.0  # about half an hour, in seconds
    assert "in order of time" in (tmp_path / "r" / "report.html").read_text("utf-8")


@pytest.mark.parametrize("command", ["bootstrap", "tune"])
def test_commands_that_draw_rows_refuse_series(table, tmp_path, capsys, command):
    code, _, err = run(capsys, command, table, "--out", tmp_path / "r", "--time-column", "time")
    assert code == 1
    assert "--time-column" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--time-column", "hour"), "'hour'"),
        (("--time-column", "time", "--stream"), "--stream"),
        (("--time-column", "time", "--solver", "gradient"), "--solver search"),
        (("--time-column", "time", "--group-column", "time"), "time"),
    ],
)
def test_what_time_cannot_be_is_said(table, tmp_path, capsys, arguments, words):
    code, _, err = run(capsys, "fit", table, "--out", tmp_path / "r", *arguments)
    assert code == 1
    assert words in err
