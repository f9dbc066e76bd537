"""A family defined at run time, by the code of the page "Your own family": the package does all it can do with it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from latentdo import BootstrapDAG, LatentInterventionDAG, simulate
from latentdo.choices import DENSITY
from latentdo.metrics import adjusted_rand_index
from latentdo.persistence import ResultFileError
from latentdo.report import render_report

PAGE = Path(__file__).parents[2] / "docs/own-family.md"


@pytest.fixture(scope="module")
def own():
    """The class, registered; forgotten afterwards."""
    before = DENSITY.choices
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[0]
    names = {"__name__": "__page__"}  # a module that no worker can import
    exec(code, names)
    yield names["Laplace"]
    DENSITY.choices = before


@pytest.fixture(scope="module")
def data():
    return simulate(
        preset="field", n_variables=3, n_samples=500, n_regimes=2, noise="laplace", random_state=0
    )


@pytest.fixture(scope="module")
def est(own, data):
    return LatentInterventionDAG(density=own.family, max_regimes=4, n_init=1).fit(data.X)


def test_the_page_is_short():
    code = "".join(re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))
    assert len([line for line in code.splitlines() if line.strip()]) <= 42


def test_it_is_fitted_by_the_search(own, data, est):
    lines = LatentInterventionDAG(density="linear", max_regimes=4, n_init=1).fit(data.X)
    assert est.result_.density == "laplace"
    assert all(type(one) is own for one in est.result_.model.reference)
    assert ((est.adjacency_ + est.adjacency_.T) == (data.adjacency + data.adjacency.T)).to_numpy().all()
    assert adjusted_rand_index(data.regimes, est.regimes_) > 0.5
    assert est.evidence_ > lines.evidence_


def test_draws_follow_the_density(own):
    mechanism = own(np.array([0.5, -1.0, 0.3]), n_inputs=1)
    x = np.full((50_000, 1), 2.0)
    drawn = mechanism.draw(x, np.random.default_rng(0))
    at = np.linspace(-8.0, 6.0, 20_001)
    density = np.exp(mechanism.log_density(np.full((at.size, 1), 2.0), at))
    assert np.trapezoid(density, at) == pytest.approx(1.0, abs=1e-4)
    assert drawn.mean() == pytest.approx(np.trapezoid(at * density, at), abs=0.01)
    again = own.fit(x[:, :0], drawn, np.ones(50_000))
    assert again.parameters == pytest.approx([-1.5, 0.3], abs=0.01)


def test_it_is_saved_loaded_and_simulated_from(data, est, tmp_path):
    est.save(tmp_path / "m")
    loaded = LatentInterventionDAG.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(data.X), est.predict_proba(data.X))
    np.testing.assert_array_equal(loaded.sample(20, random_state=1), est.sample(20, random_state=1))
    rows = est.sample(5000, random_state=0)
    np.testing.assert_allclose(rows.median(), data.X[est.regimes_ == 0].median(), atol=0.2 * rows.std().max())


def test_a_process_that_does_not_know_it_says_so(own, est, tmp_path, monkeypatch):
    est.save(tmp_path / "m")
    monkeypatch.setattr(DENSITY, "choices", [one for one in DENSITY.choices if one.family is not own])
    with pytest.raises(ResultFileError, match=r"laplace.*register_family"):
        LatentInterventionDAG.load(tmp_path / "m")


def test_it_is_reported_and_asked(data, est):
    assert "laplace" in render_report(est.result_, data.X)
    assert np.isfinite(est.effect(data.X.columns[0])["change"]).all()


def test_workers_get_it_with_the_estimator(own, data):
    template = LatentInterventionDAG(density=own.family, max_regimes=1)
    boot = BootstrapDAG(template, n_resamples=2, n_jobs=2).fit(data.X.iloc[:200])
    assert boot.failures_ == []
    assert len(boot.resamples_) == 2
