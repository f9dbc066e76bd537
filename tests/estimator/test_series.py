"""``time=`` and ``series=``: neighbours that tend to share their regime."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from latentdo import BootstrapDAG, LatentInterventionDAG, TunedDAG, simulate
from latentdo.data import Dataset
from latentdo.data.together import encode_time
from latentdo.metrics import adjusted_rand_index
from latentdo.model.assignment import Prior
from latentdo.model.series import Series

LINES = {"density": "linear", "noise": "gaussian", "n_init": 2}


@pytest.fixture(scope="module")
def sticky():
    """Shifts of one standard deviation, visits of 40 rows on average."""
    return simulate(
        n_variables=4, n_samples=2500, preset="dcdi", separation=1.0, random_state=1000, mean_duration=40
    )


@pytest.fixture(scope="module")
def fitted(sticky):
    return LatentInterventionDAG(**LINES).fit(sticky.X, time=np.arange(len(sticky.X)))


def _ceiling(data, mean):
    """What somebody who knows the model reaches."""
    units = Series.by_time(np.arange(float(len(data.X))), None, 10)
    prior = Prior(data.regime_weights, -1.0 / np.log1p(-1.0 / mean))
    best = units.assign(data.log_density(), prior).responsibilities.argmax(axis=1)
    return adjusted_rand_index(data.regimes, best)


def test_neighbours_show_what_single_rows_do_not(sticky, fitted):
    assert adjusted_rand_index(sticky.regimes, fitted.regimes_) > _ceiling(sticky, 40) - 0.05
    assert adjusted_rand_index(sticky.regimes, fitted.predict(sticky.X)) < 0.3
    np.testing.assert_array_equal(fitted.adjacency_, sticky.adjacency)
    assert fitted.n_regimes_ == sticky.n_regimes
    assert fitted.duration_ == pytest.approx(40.0, rel=0.35)


def test_the_order_of_rows_does_not_matter(sticky, fitted):
    order = np.random.default_rng(0).permutation(len(sticky.X))
    again = LatentInterventionDAG(**LINES).fit(sticky.X.iloc[order], time=order)
    assert adjusted_rand_index(fitted.regimes_[order], again.regimes_) > 0.99
    assert again.duration_ == pytest.approx(fitted.duration_, rel=0.02)
    np.testing.assert_array_equal(again.adjacency_, fitted.adjacency_)


def test_the_unit_of_time_does_not_matter(sticky, fitted):
    stamps = pd.Timestamp("2024-02-28 23:00", tz="UTC") + pd.to_timedelta(
        np.arange(len(sticky.X)), unit="min"
    )
    again = LatentInterventionDAG(**LINES).fit(sticky.X, time=stamps)
    np.testing.assert_allclose(again.responsibilities_, fitted.responsibilities_, atol=1e-5)
    assert again.duration_ == pytest.approx(60.0 * fitted.duration_, rel=1e-3)  # seconds


def test_predictions_and_scores_by_time(sticky, fitted):
    time = np.arange(len(sticky.X))
    np.testing.assert_allclose(fitted.predict_proba(sticky.X, time=time), fitted.responsibilities_, atol=1e-6)
    np.testing.assert_array_equal(fitted.predict(sticky.X, time=time), fitted.regimes_)
    assert fitted.score(sticky.X, time=time) > fitted.score(sticky.X) + 0.05
    samples = fitted.score_samples(sticky.X, time=time)
    # a row given those before: the first rows alone have the same density
    np.testing.assert_allclose(samples[:50], fitted.score_samples(sticky.X[:50], time=time[:50]))


def test_several_series_are_independent(sticky):
    series = np.repeat(["a", "b"], [1250, 1250])
    est = LatentInterventionDAG(**LINES).fit(sticky.X, series=series)
    assert est.result_.configuration["series"] == 2
    first = est.predict_proba(sticky.X[:1250], series=series[:1250])
    np.testing.assert_allclose(first, est.responsibilities_[:1250], atol=1e-6)


def test_labels_hold_and_help_their_neighbours(sticky):
    labels = np.full(len(sticky.X), -1)
    labels[::25] = sticky.regimes[::25]
    est = LatentInterventionDAG(**LINES).fit(sticky.X, regimes=labels, time=np.arange(len(labels)))
    np.testing.assert_array_equal(est.regimes_[::25], sticky.regimes[::25])
    assert adjusted_rand_index(sticky.regimes, est.regimes_) > 0.9


def test_rows_without_intervention_have_one_regime():
    data = simulate(n_variables=3, n_samples=1500, preset="dcdi", n_regimes=1, random_state=1000)
    assert LatentInterventionDAG(**LINES).fit(data.X, time=np.arange(1500)).n_regimes_ == 1


def test_saved_and_loaded(sticky, fitted, tmp_path):
    fitted.save(tmp_path / "model.safetensors")
    loaded = LatentInterventionDAG.load(tmp_path / "model.safetensors")
    assert loaded.duration_ == fitted.duration_
    time = np.arange(len(sticky.X))
    np.testing.assert_array_equal(loaded.predict(sticky.X, time=time), fitted.predict(sticky.X, time=time))
    assert loaded.result_.summary()["duration"] == fitted.duration_


def test_more_rows_than_are_searched(sticky, monkeypatch):
    from latentdo.solvers.search import solve

    monkeypatch.setattr(solve, "LINEAR_SEARCH_ROWS", 1200)
    monkeypatch.setattr(solve, "ROWS_PER_REGIME", 1)
    est = LatentInterventionDAG(**LINES).fit(sticky.X, time=np.arange(len(sticky.X)))
    assert any(entry["step"] == "all rows" for entry in est.history_)
    assert adjusted_rand_index(sticky.regimes, est.regimes_) > _ceiling(sticky, 40) - 0.08
    assert est.duration_ == pytest.approx(40.0, rel=0.35)


@pytest.mark.parametrize(
    ("known", "error", "words"),
    [
        ({"time": "minute"}, TypeError, "time .*one time per row"),
        ({"time": [1, 2]}, ValueError, r"time .*2500.*\(2,\)"),
        ({"time": [None, *range(2499)]}, ValueError, r"time .*row 0 .*leave out"),
        ({"time": ["soon"] * 2500}, ValueError, r"time .*row 0 .*'soon'.*2500 rows"),
        ({"series": [0, 1]}, ValueError, "series has 2 entries"),
        ({"time": range(2500), "groups": range(2500)}, ValueError, "groups .*time.*choose one"),
    ],
)
def test_what_is_no_time_is_refused_by_row(sticky, known, error, words):
    with pytest.raises(error, match=words):
        LatentInterventionDAG(**LINES).fit(sticky.X, **known)


def test_what_takes_series_apart_refuses_them(sticky, fitted):
    with pytest.raises(ValueError, match=r"time= .*solver='search'"):
        LatentInterventionDAG(solver="gradient").fit(sticky.X, time=range(2500))


def test_series_are_simulated_to_see_what_they_can_show(sticky, fitted):
    found = fitted.diagnose(1, max_rows=1500)
    assert found.repeats["regimes"].iloc[0] > 1
    assert found.repeats["ceiling"].iloc[0] > 0.5  # single rows would reach 0.1
    assert found.n_rows == 1500


def test_stretches_of_time_are_drawn_and_held_out(sticky):
    data = Dataset.from_table(sticky.X, time=np.arange(len(sticky.X)))
    train, test = data.split(0.75, 0)
    assert train.n_rows + test.n_rows == len(sticky.X)
    jumps = (np.diff(np.sort(test.time)) > 1.0).sum()
    assert jumps < 15  # not as many as rows
    boot = BootstrapDAG(LatentInterventionDAG(**LINES), 2, resample="bootstrap").fit(
        sticky.X, time=np.arange(len(sticky.X))
    )
    assert len(boot.resamples_) == 2
    assert (boot.edge_support_.to_numpy() * sticky.adjacency.to_numpy()).sum() >= 1.0


def test_trials_hold_out_stretches_of_time(sticky):
    pytest.importorskip("optuna")
    time = np.arange(len(sticky.X))
    tuned = TunedDAG(LatentInterventionDAG(**LINES), n_trials=1, space={"max_regimes": [6]}).fit(
        sticky.X, time=time
    )
    assert tuned.best_estimator_.duration_ > 5.0
    assert tuned.score(sticky.X, time=time) > tuned.score(sticky.X)


def test_a_background_that_moved_is_no_reason_to_search_from_nothing():
    data = simulate(n_variables=3, n_samples=800, preset="dcdi", separation=4.0, random_state=1000)
    batch = np.arange(len(data.X)) % 3
    X = data.X * np.array([1.0, 2.0, 0.5])[batch, None] + np.array([0.0, 5.0, -4.0])[batch, None]
    est = LatentInterventionDAG(density="linear", noise="any", n_init=1).fit(X, batch=batch)
    steps = [entry["step"] for entry in est.history_]
    assert "again" in steps
    assert sum("residual" in step for step in steps) == 1
    assert any(one["model"] == "one regime" for one in est.result_.comparison)
    assert (est.adjacency_.to_numpy() == data.adjacency.to_numpy()).all()


@pytest.mark.parametrize("written", ["%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d %b %Y"])
def test_day_and_month_are_told_apart_by_all_rows(written):
    days = pd.date_range("2021-01-01", periods=60)
    times, are_dates = encode_time(days.strftime(written).to_numpy(), np.arange(60), 60)
    assert are_dates
    np.testing.assert_array_equal(np.diff(times), 86400.0)


def test_dates_that_may_be_read_either_way_are_refused():
    for days in (["01/01/2021", "03/04/2021"], ["03/04/2021", "13/04/2021", "04/13/2021"]):
        with pytest.raises(ValueError, match=r"'03/04/2021' may have the day .*year-month-day"):
            encode_time(days, np.arange(len(days)), len(days))
