import json

import numpy as np
import pandas as pd
import pytest

from latentdo import LatentInterventionDAG

QUICK = ("--density", "linear", "--max-regimes", 5, "--n-init", 1)


@pytest.fixture
def results(run, small, tmp_path):
    assert run("fit", small, "--out", tmp_path / "r", *QUICK)[0] == 0
    return tmp_path / "r"


def test_effects_in_the_users_units(run, results):
    code, out, err = run("effect", results, "X1", "--do", 0, 1, "--json")
    assert code == 0, err
    rows = {row["effect"]: row for row in json.loads(out)["effects"]}
    assert set(rows) == {"X2", "X3"}
    assert all(row["low"] <= row["change"] <= row["high"] for row in rows.values())
    code, out, _ = run("effect", results, "X1", "--on", "X2", "--regime", "1")
    assert code == 0
    assert "given the graph" in out
    assert "X3" not in out


def test_a_bootstrap_gives_the_intervals_of_its_resamples(run, small, tmp_path):
    assert run("bootstrap", small, "--out", tmp_path / "b", "--n-resamples", 2, *QUICK)[0] == 0
    code, out, err = run("effect", tmp_path / "b", "X1", "--shift", 1)
    assert code == 0, err
    assert "over 2 resamples" in out


def test_where_there_is_no_interval_the_table_says_what_to_do(run, small, tmp_path):
    known = ("--density", "nonlinear", "--max-regimes", 1, "--n-init", 1)
    assert run("fit", small, "--out", tmp_path / "r", *known)[0] == 0
    code, out, err = run("effect", tmp_path / "r", "X1", "--shift", 1)
    assert code == 0, err
    assert "no interval: use bootstrap" in out
    assert "nan" not in out.lower()
    code, out, _ = run("effect", tmp_path / "r", "X1", "--shift", 1, "--json")
    assert {row["interval"] for row in json.loads(out)["effects"]} == {"no interval: use bootstrap"}


def test_what_speaks_against_a_fit(run, results, small):
    code, out, err = run("falsify", results, "--data", small, "--no-refits", "--json")
    assert code == 0, err
    checks = {one["check"]: one for one in json.loads(out)["checks"]}
    assert {"hidden causes", "dependent rows", "broad regimes"} <= set(checks)
    code, out, err = run("falsify", results, "--data", small)
    assert code == 0, err
    assert "regimes in halves" in out
    assert out.count("failed") == sum(line.strip().endswith("failed") for line in out.splitlines())


def test_reasons_row_by_row(run, results, small):
    code, out, err = run("explain", results, "--data", small, "--rows", 0, 250)
    assert code == 0, err
    assert out.count("log ratio") == 2
    code, out, _ = run("explain", results, "--data", small, "--rows", 0, "--against", 1, "--json")
    assert code == 0
    assert {line["variable"] for line in json.loads(out)["rows"]} >= {"X1", "X2", "X3"}


def test_a_complete_row_is_explained_whatever_others_lack(run, results, small, tmp_path):
    rows = pd.read_csv(small)
    rows.loc[7, "X1"] = np.nan
    rows.to_csv(tmp_path / "holes.csv", index=False)
    code, out, err = run("explain", results, "--data", tmp_path / "holes.csv", "--rows", 0, "--json")
    assert code == 0, err
    _, whole, _ = run("explain", results, "--data", small, "--rows", 0, "--json")
    ratios = [[line["log_ratio"] for line in json.loads(said)["rows"]] for said in (out, whole)]
    assert ratios[0] == pytest.approx(ratios[1])
    code, _, err = run("explain", results, "--data", tmp_path / "holes.csv", "--rows", 7)
    assert code == 1
    assert "row 7 (counted from 0), column 'X1'" in err


def test_one_row_can_be_asked_about(run, results, small, tmp_path):
    pd.read_csv(small).head(1).to_csv(tmp_path / "one.csv", index=False)
    code, _, err = run("predict", results, tmp_path / "one.csv", "--out", tmp_path / "p.csv")
    assert code == 0, err
    assert len(pd.read_csv(tmp_path / "p.csv")) == 1


def test_regimes_of_rows_that_were_not_fitted(run, results, small, tmp_path):
    rows = pd.read_csv(small).assign(name=[f"cell {k}" for k in range(300)], other="text").iloc[::-3]
    rows.to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "regimes.csv"
    code, said, err = run(
        "predict", results, tmp_path / "new.csv", "--out", out, "--id-column", "name", "--json"
    )
    assert code == 0, err
    table = pd.read_csv(out)
    estimator = LatentInterventionDAG.load(results / "model.safetensors")
    shares = estimator.predict_proba(rows[["X1", "X2", "X3"]])
    assert list(table["row"]) == list(rows["name"])
    np.testing.assert_array_equal(table["regime"], shares.argmax(axis=1))
    np.testing.assert_allclose(table.filter(like="probability of"), shares, atol=1e-12)
    np.testing.assert_allclose(table["log_likelihood"], estimator.score_samples(rows[["X1", "X2", "X3"]]))
    assert sum(line["rows"] for line in json.loads(said)["regimes"]) == 100
    code, said, err = run("predict", results, tmp_path / "new.csv", "--out", out)
    assert (code, said) == (1, "")
    assert "already exists" in err
    for model in (results, results / "model.safetensors"):
        assert run("predict", small, "--model", model, "--out", out, "--overwrite")[0] == 0
    assert len(pd.read_csv(out)) == 300


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["effect", "{r}", "Y"], "'Y' is not a variable; they are X1, X2, X3"),
        (["effect", "{r}", "X1", "--regime", "nine"], "no regime 'nine'; they are 0, 1"),
        (["effect", "{r}", "X1", "--do", "0", "1", "--shift", "2"], "both given"),
        (["effect", "{small}", "X1"], "is a file, not a folder of results"),
        (["explain", "{r}", "--data", "{small}", "--rows", "99999"], "has no row 99999; rows are 0 to"),
        (["explain", "{r}", "--data", "{small}", "--rows", "1", "--against", "nine"], "no regime 'nine'"),
        (["predict", "{small}", "--out", "{r}.csv"], "--model"),
        (["predict", "{r}", "{r}/regimes.csv", "--out", "{r}.csv"], "X1"),
    ],
)
def test_wrong_questions_lead_back(run, results, small, arguments, message):
    code, out, err = run(*(argument.format(r=results, small=small) for argument in arguments))
    assert (code, out) == (1, "")
    assert message in err
