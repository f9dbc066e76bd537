"""Rows that remember: noise, cycles, incidents; batches that differ; and what is said of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from latentdo import LatentInterventionDAG, plots, simulate
from latentdo.metrics import adjusted_rand_index
from latentdo.outputs import write_outputs
from latentdo.report import render_report
from latentdo.scm import simulate_service

LINES = {"density": "linear", "noise": "gaussian", "n_init": 2}


@pytest.fixture(scope="module")
def service():
    return simulate_service(
        n_metrics=5, n_minutes=3000, n_incidents=6, n_causes=2, random_state=1000, size=6.0, noise="gaussian"
    )


@pytest.fixture(scope="module")
def fitted(service):
    return LatentInterventionDAG(**LINES).fit(service.X, time=service.time)


def test_incidents_are_found_with_their_causes(service, fitted):
    assert fitted.n_regimes_ == 3
    assert adjusted_rand_index(service.regimes, fitted.regimes_) > 0.95
    found = fitted.segments_
    assert len(found) == len(service.incidents)
    for one, true in zip(found.itertuples(), service.incidents.itertuples(), strict=True):
        assert abs(one.start - true.start) <= pd.Timedelta(minutes=1)
        assert abs(one.end - true.end) <= pd.Timedelta(minutes=1)
        assert one.targets.startswith(f"{true.cause} (")
        assert one.probability > 0.99
    effects = service.adjacency.loc[service.incidents["cause"].iloc[0]]
    assert set(effects.index[effects == 1]) <= set(found["followed"].iloc[0].split(", "))


def test_the_past_is_that_of_the_variable_and_of_its_causes(fitted):
    table = fitted.lagged_adjacency_
    assert list(table.index.names) == ["lag", "cause"]
    np.testing.assert_array_equal(np.diag(table.loc[1]), 1)
    beyond = table.loc[1].to_numpy() - np.eye(5, dtype=int) - fitted.adjacency_.to_numpy()
    assert (beyond == 1).sum() <= 2
    assert (beyond == -1).sum() <= 2


def test_without_an_incident_there_is_one_regime():
    for noise in ("gaussian", "student"):
        quiet = simulate_service(
            n_metrics=5, n_minutes=3000, n_incidents=0, n_causes=1, random_state=1001, noise=noise
        )
        est = LatentInterventionDAG().fit(quiet.X, time=quiet.time)
        assert est.n_regimes_ == 1
        assert est.segments_.empty


def test_lags_can_be_ruled_out(service):
    est = LatentInterventionDAG(**LINES, lags=0, seasonality=None, max_regimes=3).fit(
        service.X, time=service.time
    )
    assert est.result_.background.is_empty
    assert not est.lagged_adjacency_.to_numpy().any()


@pytest.mark.parametrize(
    "given",
    [{"lags": 3}, {"lags": "two"}, {"lags": True}, {"seasonality": "fortnight"}, {"seasonality": -1.0}],
)
def test_bad_arguments_are_named(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        LatentInterventionDAG(**given).fit(np.random.default_rng(0).standard_normal((50, 2)))


def test_new_rows_are_seen_as_the_fitted_ones(service, fitted, tmp_path):
    np.testing.assert_allclose(
        fitted.predict_proba(service.X, time=service.time), fitted.responsibilities_, atol=1e-6
    )
    fitted.save(tmp_path / "model.safetensors")
    again = LatentInterventionDAG.load(tmp_path / "model.safetensors")
    pd.testing.assert_frame_equal(again.segments_, fitted.segments_, check_dtype=False)
    pd.testing.assert_frame_equal(again.lagged_adjacency_, fitted.lagged_adjacency_)
    half = service.X.iloc[1500:]
    np.testing.assert_allclose(
        again.score_samples(half, time=half.index), fitted.score_samples(half, time=half.index)
    )
    # what the past says is worth a lot, and a density is one of the rows, not of what is new in them
    assert fitted.score(half, time=half.index) > fitted.score(half) + 1.0


def test_explain_says_what_was_expected_of_that_minute(service, fitted):
    begin = service.X.index.get_loc(service.incidents["start"].iloc[0])
    rows = service.X.iloc[begin - 5 : begin + 70]
    table = fitted.explain(rows, time=rows.index)
    last = table[table["row"] == rows.index[10]].set_index("variable")
    cause = service.incidents["cause"].iloc[0]
    assert last["target"].astype(bool)[cause]
    assert last.loc[service.X.columns, "log_ratio"].idxmax() == cause
    effects = service.adjacency.loc[cause]
    assert last["downstream"].astype(bool)[effects.index[effects == 1]].all()
    assert last["log_ratio"].sum() > 10.0  # the log odds, neighbours included
    assert not last.loc[cause, "expected_low"] <= last.loc[cause, "value"] <= last.loc[cause, "expected_high"]


def test_files_report_and_pictures(service, fitted, tmp_path):
    folder = write_outputs(fitted.result_, tmp_path / "out", X=service.X)
    segments = pd.read_csv(folder / "segments.csv", parse_dates=["start", "end"])
    assert len(segments) == len(fitted.segments_)
    assert (folder / "lagged_adjacency.csv").is_file()
    assert "time" in pd.read_csv(folder / "regimes.csv").columns
    page = render_report(fitted.result_, service.X)
    assert 'id="time-title"' in page
    assert "changed as a consequence" in page
    axes = plots.timeline(fitted)
    assert len(axes.lines) == len(segments)
    with pytest.raises(ValueError, match="time="):
        plots.timeline(LatentInterventionDAG(**LINES, max_regimes=1).fit(service.X))


def test_regimes_rank_their_targets(service, fitted):
    result = fitted.result_
    for k in range(1, fitted.n_regimes_):
        ranked = result.ranked_targets(k)
        assert (np.diff(result.explained[k, ranked]) <= 0.0).all()
        assert not set(ranked) & set(result.followers(k))


@pytest.fixture(scope="module")
def plates():
    data = simulate(n_variables=4, n_samples=1500, preset="dcdi", separation=4.0, random_state=1000)
    rng = np.random.default_rng(0)
    plate = rng.integers(0, 5, len(data.X))
    level, scale = 6.0 * rng.standard_normal((5, 4)), np.exp(0.5 * rng.standard_normal((5, 4)))
    return data, data.X * scale[plate] + level[plate], np.array([f"plate {p}" for p in plate])


def test_batches_are_neither_regimes_nor_causes(plates):
    data, X, plate = plates
    clean = LatentInterventionDAG(**LINES).fit(data.X)
    est = LatentInterventionDAG(**LINES).fit(X, batch=plate)
    assert adjusted_rand_index(clean.regimes_, est.regimes_) > 0.85
    assert est.n_regimes_ == clean.n_regimes_
    np.testing.assert_array_equal(est.adjacency_, clean.adjacency_)
    np.testing.assert_array_equal(est.predict(X, batch=plate), est.regimes_)
    assert "batch" in est.result_.regime_table().columns
    with pytest.raises(ValueError, match="batch"):
        est.predict(X)


def test_a_regime_that_only_one_batch_has_is_said(plates):
    data, X, plate = plates
    keep = (data.regimes != 1) | (plate == "plate 2")
    labels = data.regimes[keep]
    est = LatentInterventionDAG(**LINES).fit(X[keep], batch=plate[keep], regimes=labels)
    assert any("Regime 1" in said and "plate 2" in said for said in est.result_.warnings)
    assert not any("Regime 2" in said for said in est.result_.warnings)


def test_rows_without_a_batch_are_named():
    with pytest.raises(ValueError, match=r"batch.*row 3"):
        LatentInterventionDAG().fit(
            np.random.default_rng(0).standard_normal((5, 2)), batch=["a", "a", "b", None, "b"]
        )
