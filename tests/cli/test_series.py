"""``--time-column`` and ``--series-column``."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from latentdo.scm import simulate_service


@pytest.fixture
def table(tmp_path, run):
    arguments = ("--n-variables", 3, "--n-samples", 600, "--mean-duration", 30)
    code, out, _ = run("simulate", "--out", tmp_path / "s", *arguments)
    assert code == 0
    assert "--time-column time" in out
    return tmp_path / "s" / "data.csv"


def test_a_series_from_the_table_to_the_report(table, tmp_path, run):
    stamps = pd.date_range("2024-01-01", periods=600, freq="min").astype(str)
    data = pd.read_csv(table).assign(time=stamps, machine=["a"] * 300 + ["b"] * 300)
    data.to_csv(table, index=False)
    columns = ("--time-column", "time", "--series-column", "machine")
    lines = ("--density", "linear", "--noise", "gaussian", "--n-init", 1, "--out", tmp_path / "r")
    code, out, _ = run("fit", table, *columns, *lines)
    assert code == 0
    assert "units of time" in out
    content = json.loads((tmp_path / "r" / "result.json").read_text("utf-8"))
    assert content["variables"] == ["X1", "X2", "X3"]
    assert content["configuration"]["series"] == 2
    assert 300.0 < content["duration"] < 6000.0  # about half an hour, in seconds
    assert "in order of time" in (tmp_path / "r" / "report.html").read_text("utf-8")


def test_stretches_of_time_are_drawn_whole(table, tmp_path, run):
    lines = ("--density", "linear", "--noise", "gaussian", "--n-init", 1, "--out", tmp_path / "r", "--json")
    code, out, _ = run("bootstrap", table, "--time-column", "time", "--n-resamples", 2, *lines)
    assert code == 0
    assert json.loads(out)["bootstrap"]["resamples"] == 2


@pytest.fixture
def metrics(tmp_path):
    """Minutes of a service whose measurements come in two batches, with names of rows."""
    service = simulate_service(
        n_metrics=3, n_minutes=1500, n_incidents=4, n_causes=1, random_state=1000, size=8.0, noise="gaussian"
    )
    frame = service.X.reset_index()
    frame["agent"] = np.where(np.arange(1500) < 700, "old", "new")
    frame.loc[frame["agent"] == "new", service.X.columns] *= 3.0
    frame["key"] = [f"minute-{i}" for i in range(1500)]
    path = tmp_path / "metrics.csv"
    frame.to_csv(path, index=False)
    return service, path


def test_incidents_from_a_file_to_segments(metrics, tmp_path, run):
    service, path = metrics
    columns = ("--time-column", "time", "--batch-column", "agent", "--id-column", "key")
    lines = ("--density", "linear", "--noise", "gaussian", "--n-init", 1, "--out", tmp_path / "r")
    code, out, err = run("fit", path, *columns, *lines)
    assert code == 0, err
    assert "Segments: 4" in out
    segments = pd.read_csv(tmp_path / "r" / "segments.csv", parse_dates=["start", "end"])
    for one, true in zip(segments.itertuples(), service.incidents.itertuples(), strict=True):
        assert abs(one.start - true.start) <= pd.Timedelta(minutes=2)
        assert one.targets.startswith(true.cause)
    regimes = pd.read_csv(tmp_path / "r" / "regimes.csv")
    assert regimes["row"].iloc[3] == "minute-3"
    assert set(regimes.columns) >= {"time", "batch"}
    begin = int(np.flatnonzero(service.regimes)[5])
    known = ("--time-column", "time", "--batch-column", "agent", "--id-column", "key")
    code, out, err = run(
        "explain", tmp_path / "r", "--data", path, "--rows", f"minute-{begin}", *known, "--json"
    )
    assert code == 0, err
    first = json.loads(out)["rows"][0]
    assert first["variable"] == service.incidents["cause"].iloc[0]
    assert first["target"]


def test_names_of_rows_have_to_differ(metrics, tmp_path, run):
    _, path = metrics
    code, _, err = run("fit", path, "--id-column", "agent", "--out", tmp_path / "r", "--drop", "time", "key")
    assert code == 1
    assert "'old'" in err
    assert "--id-column" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--time-column", "hour"), "'hour'"),
        (("--time-column", "time", "--stream"), "--stream"),
        (("--time-column", "time", "--solver", "gradient"), "--solver search"),
        (("--time-column", "time", "--group-column", "time"), "time"),
    ],
)
def test_what_time_cannot_be_is_said(table, tmp_path, run, arguments, words):
    code, _, err = run("fit", table, "--out", tmp_path / "r", *arguments)
    assert code == 1
    assert words in err
