"""``--group-column``, from the command line to the files."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from latentdo import simulate


@pytest.fixture(scope="module")
def drawn():
    return simulate(
        n_variables=3, n_samples=600, preset="dcdi", separation=1.5, random_state=1000, group_size=12
    )


@pytest.fixture
def table(drawn, tmp_path):
    path = tmp_path / "plates.csv"
    names = [f"plate {g}" for g in drawn.groups]
    names[0] = ""  # a row on its own
    drawn.X.assign(plate=names).to_csv(path, index=False)
    return path


LINES = ("--density", "linear", "--noise", "gaussian", "--n-init", 1)


def test_groups_from_the_flag_the_file_and_the_environment(drawn, table, tmp_path, run, monkeypatch):
    code, out, _ = run("fit", table, "--out", tmp_path / "r", "--group-column", "plate", *LINES)
    assert code == 0
    n_groups = np.unique(drawn.groups).size + 1
    assert f"{n_groups} groups" in out
    regimes = pd.read_csv(tmp_path / "r" / "regimes.csv")
    assert list(regimes.columns) == ["row", "group", "regime", "probability"]
    assert regimes["group"].isna().tolist() == [True] + [False] * (len(regimes) - 1)
    assert regimes.groupby("group")["regime"].nunique().max() == 1
    content = json.loads((tmp_path / "r" / "result.json").read_text("utf-8"))
    assert content["groups"] == n_groups
    assert content["variables"] == ["X1", "X2", "X3"]
    page = (tmp_path / "r" / "report.html").read_text("utf-8")
    assert f"in {n_groups} groups" in page
    (tmp_path / "settings.toml").write_text('group_column = "plate"\n', "utf-8")
    settings = ("--config", tmp_path / "settings.toml")
    assert run("fit", table, "--out", tmp_path / "file", *settings, *LINES)[0] == 0
    monkeypatch.setenv("LATENTDO_GROUP_COLUMN", "plate")
    assert run("fit", table, "--out", tmp_path / "environment", *LINES)[0] == 0
    for other in ("file", "environment"):
        pd.testing.assert_frame_equal(regimes, pd.read_csv(tmp_path / other / "regimes.csv"))


def test_a_report_written_again_still_knows_the_groups(table, tmp_path, run):
    run("fit", table, "--out", tmp_path / "r", "--group-column", "plate", *LINES)
    assert run("report", tmp_path / "r")[0] == 0
    assert "share of groups" in (tmp_path / "r" / "report.html").read_text("utf-8")


def test_explaining_a_row_asks_its_whole_group(table, tmp_path, run):
    run("fit", table, "--out", tmp_path / "r", "--group-column", "plate", *LINES)
    arguments = ("explain", tmp_path / "r", "--data", table, "--rows", 0, 5, "--json")
    code, out, _ = run(*arguments, "--group-column", "plate", "--drop", "plate")
    assert code == 0
    lines = pd.DataFrame(json.loads(out)["rows"])
    assert set(lines["row"]) == {0, 5}
    regimes = pd.read_csv(tmp_path / "r" / "regimes.csv")
    said = lines.drop_duplicates("row").set_index("row")["probability"]
    np.testing.assert_allclose(said[5], regimes["probability"][5], atol=1e-6)
    others = lines[lines["variable"] == "(other rows of the group)"]
    assert others["row"].tolist() == [5]  # the other row is on its own


@pytest.mark.parametrize("command", ["bootstrap", "tune"])
def test_resamples_and_trials_take_groups(table, tmp_path, run, command):
    if command == "tune":
        pytest.importorskip("optuna", reason="the tune extra is not installed")
    count = "--n-resamples" if command == "bootstrap" else "--n-trials"
    code, _, _ = run(command, table, "--out", tmp_path / "r", "--group-column", "plate", count, 1, *LINES)
    assert code == 0
    assert "group" in pd.read_csv(tmp_path / "r" / "regimes.csv").columns


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--group-column", "animal"), ("'animal'", "'plate'")),
        (("--group-column", "plate", "--solver", "gradient"), ("--group-column", "--solver search")),
        (("--group-column", "plate", "--regime-column", "plate"), ("'plate'", "--group-column")),
    ],
)
def test_what_groups_cannot_be_is_said_in_flags(table, tmp_path, run, arguments, words):
    code, _, err = run("fit", table, "--out", tmp_path / "r", *arguments)
    assert code == 1
    assert all(word in err for word in words)


def test_conflicting_labels_name_the_group(drawn, table, tmp_path, run):
    labels = ["drug" if i % 2 else "control" for i in range(len(drawn.X))]
    pd.read_csv(table).assign(condition=labels).to_csv(table, index=False)
    arguments = ("--group-column", "plate", "--regime-column", "condition")
    code, _, err = run("fit", table, "--out", tmp_path / "r", *arguments)
    assert code == 1
    assert "'plate " in err
    assert "row " in err


def test_simulated_groups_can_be_fitted(tmp_path, run):
    arguments = ("--n-variables", 3, "--n-samples", 200, "--group-size", 10)
    code, out, _ = run("simulate", "--out", tmp_path / "s", *arguments)
    assert code == 0
    assert "--group-column group" in out
    data, truth = (pd.read_csv(tmp_path / "s" / name) for name in ("data.csv", "regimes.csv"))
    assert data["group"].tolist() == truth["group"].tolist()
    assert truth.groupby("group")["regime"].nunique().max() == 1
