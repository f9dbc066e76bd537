"""Simulated truth, and a fit compared with it."""

import json

import numpy as np
import pandas as pd
import pytest

from latentdo.outputs import write_outputs


def test_simulate_then_evaluate_the_truth(run, tmp_path, make_result):
    arguments = ["simulate", "--out", tmp_path / "s", "--n-variables", "4", "--n-samples", "300"]
    assert run(*arguments)[0] == 0
    names = sorted(path.name for path in (tmp_path / "s").iterdir())
    assert names == ["adjacency.csv", "data.csv", "regimes.csv", "simulation.json", "targets.csv"]
    assert json.loads((tmp_path / "s" / "simulation.json").read_text())["arguments"]["n_variables"] == 4
    assert run(*arguments)[0] == 1
    first = (tmp_path / "s" / "data.csv").read_bytes()
    assert run(*arguments, "--overwrite")[0] == 0
    assert (tmp_path / "s" / "data.csv").read_bytes() == first

    write_outputs(make_result(n_variables=4, n_samples=300).result, tmp_path / "r")
    code, out, _ = run("evaluate", tmp_path / "r", "--truth", tmp_path / "s", "--json")
    assert code == 0
    scores = json.loads(out)
    assert scores["graph"]["shd"] == 0
    assert scores["empty graph"]["shd"] == scores["graph"]["true_edges"] > 0
    assert scores["regimes"]["adjusted_rand_index"] > 0.9
    assert scores["targets"]["f1"] == 1.0
    assert run("evaluate", tmp_path / "r", "--truth", tmp_path / "s")[0] == 0


def test_simulate_a_table_like_those_of_a_laboratory(run, tmp_path):
    field = ["simulate", "--out", tmp_path / "s", "--preset", "field", "--n-samples", "600"]
    kinds = [
        "--mechanism",
        "smooth",
        "--intervention",
        "soft",
        "--noise",
        "gamma",
        "--noise-scale",
        "growing",
    ]
    assert run(*field, *kinds, "--penetrance", "0.6", "--violation", "zeros")[0] == 0
    regimes = pd.read_csv(tmp_path / "s" / "regimes.csv")
    idle = regimes[regimes["regime"] != regimes["assigned"]]
    assert (idle["regime"] == 0).all()
    assert 0.3 < len(idle) / (regimes["assigned"] > 0).sum() < 0.5
    assert (pd.read_csv(tmp_path / "s" / "data.csv") == 0).mean().between(0.1, 0.3).all()
    code, _, err = run(*field, "--overwrite", "--penetrance", "2")
    assert code == 1
    assert "--penetrance 2" in err


def test_names_that_look_like_numbers_or_nothing_stay_names(run, tmp_path, make_result):
    case = make_result(n_samples=60, columns=["1", "2.0", "NA", "01", "None"])
    write_outputs(case.result, tmp_path / "r")
    write_outputs(case.result, tmp_path / "truth")
    code, out, err = run("evaluate", tmp_path / "r", "--truth", tmp_path / "truth", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["graph"]["shd"] == 0


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("regimes.csv", "row,group\n0,1\n", "lacks the column regime"),
        ("regimes.csv", "row,regime\n99999,1\n", "no row number in common"),
        ("adjacency.csv", "cause,X1\nX1,yes\n", "must hold numbers"),
        ("adjacency.csv", "cause,Y1\nY1,0\n", "names differ"),
    ],
)
def test_a_truth_that_does_not_fit_is_named(run, tmp_path, make_result, name, content, message):
    write_outputs(make_result(n_samples=60).result, tmp_path / "r")
    (tmp_path / "truth").mkdir()
    (tmp_path / "truth" / name).write_text(content)
    code, _, err = run("evaluate", tmp_path / "r", "--truth", tmp_path / "truth")
    assert code == 1
    assert message in err


def test_an_empty_truth_is_refused(run, tmp_path, make_result):
    write_outputs(make_result(n_samples=60).result, tmp_path / "r")
    code, _, err = run("evaluate", tmp_path / "r", "--truth", tmp_path)
    assert code == 1
    assert "neither adjacency.csv nor regimes.csv" in err


def test_simulated_columns_say_their_kinds(run, tmp_path):
    arguments = ["simulate", "--out", tmp_path / "s", "--preset", "screen", "--n-samples", "300"]
    assert run(*arguments)[0] == 0
    about = json.loads((tmp_path / "s" / "simulation.json").read_text())
    assert about["kinds"]["X1"] == "count"
    assert about["kinds"]["X4"] == "continuous"
    data = pd.read_csv(tmp_path / "s" / "data.csv")
    assert np.log(data["exposure"]).std() == pytest.approx(0.5, rel=0.2)
    assert "exposure" not in pd.read_csv(tmp_path / "s" / "adjacency.csv", index_col=0)
    assert data["X1"].dtype.kind == "i"
