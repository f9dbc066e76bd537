"""Heavy-tailed noise from end to end: found, explained, saved, reported, and asked for on the command line."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo import LatentInterventionDAG, simulate
from latentdo.cli import main
from latentdo.metrics import adjusted_rand_index
from latentdo.model.mechanisms.student import StudentMechanism
from latentdo.report import render_report
from latentdo.report.content import regimes
from latentdo.report.mechanisms import mechanisms


@pytest.fixture(scope="module")
def data():
    return simulate(
        preset="field", n_variables=4, n_samples=800, n_regimes=4, noise="student", random_state=2
    )


@pytest.fixture(scope="module")
def est(data):
    return LatentInterventionDAG(density="student", max_regimes=6, n_init=1).fit(data.X)


def test_tails_are_not_taken_for_regimes(data, est):
    lines = LatentInterventionDAG(density="linear", noise="gaussian", max_regimes=6, n_init=1).fit(data.X)
    assert (est.adjacency_.to_numpy() == data.adjacency.to_numpy()).all()
    assert est.n_regimes_ == len(data.targets) < lines.n_regimes_
    assert adjusted_rand_index(data.regimes, est.regimes_) > 0.8
    assert est.evidence_ > lines.evidence_ + 50.0, "what is scored is the same"


def test_evidence_is_the_likelihood_less_the_costs_of_all_solvers(data, est):
    result = est.result_
    z = result.preprocessor.forward(data.X.to_numpy())
    log_likelihood = result.model.score_samples(z).sum()
    assert result.evidence_terms["log_likelihood"] == pytest.approx(log_likelihood)
    assert result.evidence == pytest.approx(sum(result.evidence_terms.values()))


def test_the_same_model_comes_back_from_a_file(data, est, tmp_path):
    est.save(tmp_path / "m")
    loaded = LatentInterventionDAG.load(tmp_path / "m")
    assert loaded.result_.density == "student"
    assert all(isinstance(one, StudentMechanism) for one in loaded.result_.model.reference)
    np.testing.assert_array_equal(loaded.predict(data.X), est.predict(data.X))
    np.testing.assert_array_equal(loaded.score_samples(data.X), est.score_samples(data.X))
    np.testing.assert_array_equal(loaded.sample(50, random_state=1), est.sample(50, random_state=1))


def test_draws_have_the_spread_of_the_rows(data, est):
    """Quartiles, since tails this heavy make variances wander."""
    drawn = est.sample(20_000, random_state=0)
    rows = data.X[est.regimes_ == 0]
    np.testing.assert_allclose(
        drawn.quantile(0.75) - drawn.quantile(0.25), rows.quantile(0.75) - rows.quantile(0.25), rtol=0.15
    )


def test_the_report_shows_its_equations(est):
    found = mechanisms(est.result_, regimes(est.result_))
    for one, mechanism in zip(found, est.result_.model.reference, strict=True):
        assert (one.equation is not None) == (mechanism.linear_form is not None)
    assert any(one.equation for one in found)
    assert "student" in render_report(est.result_)


def test_the_command_line_takes_it(data, tmp_path, capsys):
    data.X.iloc[:200, :2].to_csv(tmp_path / "table.csv", index=False)
    options = ["--density", "student", "--max-regimes", "2", "--out", str(tmp_path / "out")]
    assert main(["fit", str(tmp_path / "table.csv"), *options]) == 0, capsys.readouterr()
    assert LatentInterventionDAG.load(tmp_path / "out" / "model.safetensors").result_.density == "student"


def test_labels_are_used(data):
    labelled = LatentInterventionDAG(density="student").fit(data.X.iloc[:, :3], regimes=data.regimes)
    assert (labelled.regimes_ == data.regimes).all()
    assert all(isinstance(one, StudentMechanism) for one in labelled.result_.model.reference)
