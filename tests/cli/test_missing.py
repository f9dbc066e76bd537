"""Missing cells on the command line: refused with the remedy, summed out, and shown."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from latentdo import LatentInterventionDAG

LINES = ("--density", "linear", "--noise", "gaussian", "--max-regimes", "1")


@pytest.fixture(scope="module")
def gaps(small, tmp_path_factory):
    """The small table with holes."""
    path = tmp_path_factory.mktemp("gaps") / "gaps.csv"
    X = pd.read_csv(small)
    X.mask(np.random.default_rng(0).random(X.shape) < 0.1).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def results(gaps, tmp_path_factory):
    from latentdo.cli import main

    folder = tmp_path_factory.mktemp("gaps") / "results"
    (folder.parent / "c.toml").write_text('missing = "model"')
    arguments = ["fit", gaps, "--out", folder, *LINES, "--config", folder.parent / "c.toml"]
    assert main([str(argument) for argument in arguments]) == 0
    return folder


def test_the_remedy_is_in_flags(run, gaps, tmp_path):
    code, _, err = run("fit", gaps, "--out", tmp_path / "r", *LINES)
    assert code == 1
    assert "--missing model" in err
    assert "--missing drop" in err


def test_every_row_is_in_the_results_and_the_report_says_how_many_cells_are_not(gaps, results):
    cells = int(pd.read_csv(gaps).isna().sum().sum())
    assert len(pd.read_csv(results / "regimes.csv")) == len(pd.read_csv(gaps))
    assert json.loads((results / "result.json").read_text())["configuration"]["missing_cells"] == cells
    page = (results / "report.html").read_text("utf-8")
    assert f"{cells} cells" in page
    assert "missing at random" in page


def test_the_report_is_written_again_with_the_table(run, gaps, results, tmp_path):
    out = tmp_path / "again.html"
    code, _, err = run("report", results, "--data", gaps, "--out", out)
    assert code == 0, err
    drawn = re.findall(r'd="M[^"]*"', out.read_text("utf-8"))
    assert not any("nan" in path for path in drawn)


def test_new_rows_may_lack_cells(run, gaps, results, tmp_path):
    out = tmp_path / "regimes.csv"
    code, _, err = run("predict", results, gaps, "--out", out, "--missing", "model")
    assert code == 0, err
    X = pd.read_csv(gaps)
    estimator = LatentInterventionDAG.load(results / "model.safetensors")
    np.testing.assert_allclose(pd.read_csv(out)["log_likelihood"], estimator.score_samples(X))


def test_a_stream_says_what_it_cannot_do(run, gaps, tmp_path):
    pd.read_csv(gaps).to_parquet(tmp_path / "gaps.parquet")
    code, _, err = run(
        "fit", tmp_path / "gaps.parquet", "--stream", "--out", tmp_path / "r", "--missing", "model"
    )
    assert code == 1
    assert "--missing drop" in err


def test_an_ugly_table_runs_from_end_to_end(run, tmp_path):
    """Text, 0/1, counts and numbers, cells missing in all of them."""
    rng = np.random.default_rng(0)
    dose = rng.normal(size=200)
    X = pd.DataFrame(
        {
            "tissue": np.array(["liver", "lung", "skin"])[
                np.digitize(dose + rng.normal(size=200), [-1.0, 1.0])
            ],
            "failed": rng.integers(0, 2, 200),
            "clicks": rng.poisson(np.exp(1.0 + 0.5 * dose)),
            "dose": dose,
        }
    )
    path, folder = tmp_path / "ugly.csv", tmp_path / "r"
    X.mask(rng.random(X.shape) < 0.1).to_csv(path, index=False)
    code, _, err = run(
        "fit", path, "--out", folder, "--missing", "model", "--density", "linear", "--max-regimes", "1"
    )
    assert code == 0, err
    assert len(pd.read_csv(folder / "regimes.csv")) == 200
    for command in (
        ("predict", folder, path, "--out", tmp_path / "p.csv", "--missing", "model"),
        ("report", folder, "--data", path, "--out", tmp_path / "again.html"),
        (
            "explain",
            folder,
            "--data",
            path,
            "--rows",
            str(pd.read_csv(path).notna().all(axis=1).idxmax()),
            "--missing",
            "model",
        ),
    ):
        code, _, err = run(*command)
        assert code == 0, err
        assert "invalid value" not in err
    assert np.isfinite(pd.read_csv(tmp_path / "p.csv")["log_likelihood"]).all()
    assert not re.search(r'd="M[^"]*nan', (tmp_path / "again.html").read_text("utf-8"))
