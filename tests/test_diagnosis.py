"""Diagnosis against tables whose limits are known: clear ones, regimes on top of each other, edges of noise."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import ClassVar

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from latentdo import LatentInterventionDAG, simulate
from latentdo.model.mechanisms import Mechanism
from latentdo.outputs import json_text, write_outputs
from latentdo.report import render_report


@pytest.fixture(scope="module")
def data():
    return simulate(n_variables=3, edges_per_node=1, n_samples=500, random_state=1)


@pytest.fixture(scope="module")
def fitted(data):
    return LatentInterventionDAG(max_regimes=6, n_init=2).fit(data.X)


@pytest.fixture(scope="module")
def clear(fitted):
    return fitted.diagnose(random_state=0)


def _chain(n, rng):
    a = rng.normal(size=n)
    b = a + rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "c": rng.normal(size=n) - b})


def _three_conditions(gap):
    """Conditions "low" and "high" both set c; they differ by ``gap`` standard deviations."""
    rng = np.random.default_rng(4)
    X = _chain(450, rng)
    labels = np.repeat(["none", "low", "high"], 150)
    X.loc[labels == "low", "c"] = rng.normal(10.0, 1.0, 150)
    X.loc[labels == "high", "c"] = rng.normal(10.0 + gap, 1.0, 150)
    return X, labels


@pytest.fixture(scope="module")
def alike():
    X, labels = _three_conditions(0.3)
    return LatentInterventionDAG(observational="none", intervention="perfect").fit(X, regimes=labels)


def test_a_clear_table_has_a_high_ceiling_and_loses_nothing(fitted, data, clear):
    assert fitted.adjacency_.equals(data.adjacency.astype(np.int64))
    assert clear.ceiling > 0.97
    assert clear.reached > 0.95
    assert clear.expected_error == {"missing": 0.0, "extra": 0.0, "reversed": 0.0, "hamming": 0.0}
    assert clear.lost_edges.empty
    assert clear.close_regimes.empty
    assert len(clear.edges) == int(data.adjacency.to_numpy().sum())
    assert (clear.regimes["recognised"] > 0.98).all()
    assert (clear.regimes["refound"] > 0.9).all()
    assert clear.n_rows == clear.n_fitted_rows == 500
    assert len(clear.repeats) == 3
    assert "None of the fitted graph." in str(clear)


def test_regimes_on_top_of_each_other_are_named(alike):
    diagnosis = alike.diagnose(2)
    assert [set(pair) for pair in diagnosis.close_regimes[["first", "second"]].to_numpy()] == [
        {"low", "high"}
    ]
    assert "low and high" in str(diagnosis).replace("high and low", "low and high")
    assert diagnosis.ceiling < 0.8
    assert diagnosis.regimes.loc["none", "recognised"] > 0.98
    assert diagnosis.lost_edges.empty


@pytest.mark.parametrize("gap", [1.0, 2.5])
def test_confusion_is_that_of_the_exact_bayes_rule(gap):
    X, labels = _three_conditions(gap)
    est = LatentInterventionDAG(observational="none", intervention="perfect").fit(X, regimes=labels)
    diagnosis = est.diagnose(1)
    model, c = est.result_.model, list(est.result_.columns).index("c")
    (low, sd_low), (high, sd_high) = (
        (coefficients[0], variance**0.5)
        for coefficients, variance in (
            model.mechanism(c, est.regime_names_.index(k)).linear_form for k in ("low", "high")
        )
    )
    at = np.linspace(low - 6 * sd_low, high + 6 * sd_high, 20_001)
    densities = norm.pdf(at, low, sd_low), norm.pdf(at, high, sd_high)
    step, wins = at[1] - at[0], densities[1] > densities[0]
    exact = max((densities[0] * wins).sum() * step, (densities[1] * ~wins).sum() * step)
    pair = diagnosis.pairs.iloc[0]
    assert {pair["first"], pair["second"]} == {"low", "high"}
    assert pair["confused"] == pytest.approx(exact, abs=0.04)


def test_an_edge_of_noise_is_lost():
    X = _chain(300, np.random.default_rng(7)).assign(c=np.random.default_rng(8).normal(size=300))
    est = LatentInterventionDAG(max_regimes=1, required=[("b", "c")]).fit(X)
    est.set_params(required=None)  # the refits have to find it by themselves
    diagnosis = est.diagnose(4)
    assert ("b", "c") in list(zip(diagnosis.lost_edges["cause"], diagnosis.lost_edges["effect"], strict=True))
    assert diagnosis.expected_error["missing"] >= 0.5
    assert "b -> c" in diagnosis.sentences()["Edges that data of this size cannot show"][0]
    assert "one regime" in diagnosis.sentences()["Assignment ceiling"][0]
    assert diagnosis.ceiling == diagnosis.reached == 1.0
    assert diagnosis.pairs.empty


def test_directions_that_no_data_can_tell_are_open():
    X = _chain(300, np.random.default_rng(1))
    diagnosis = LatentInterventionDAG(max_regimes=1).fit(X).diagnose(2)
    assert diagnosis.edges["open"].all()
    assert "Direction open" in str(diagnosis)


def test_the_shares_of_an_edge_sum_to_one_and_agree_with_the_counts(alike):
    diagnosis = alike.diagnose(3, max_rows=40, random_state=1)
    shares = diagnosis.edges[["found", "reversed", "missing"]]
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    error = diagnosis.expected_error
    assert shares["missing"].sum() == pytest.approx(error["missing"])
    assert shares["reversed"].sum() == pytest.approx(error["reversed"])
    assert diagnosis.extra_edges["found"].sum() == pytest.approx(error["extra"])
    assert error["hamming"] == pytest.approx(error["missing"] + error["extra"] + 2 * error["reversed"])
    assert diagnosis.n_rows == 40
    assert "of 450" in str(diagnosis)


def test_the_same_seed_gives_the_same_whatever_the_jobs(fitted, clear):
    with joblib.parallel_backend("threading"):
        again = fitted.diagnose(random_state=0, n_jobs=2)
    assert again.to_dict() == clear.to_dict()
    pd.testing.assert_frame_equal(fitted.diagnose(1, random_state=0).repeats, clear.repeats.head(1))
    assert fitted.diagnose(1, random_state=5).to_dict() != fitted.diagnose(1, random_state=0).to_dict()


class _Delegate(Mechanism):
    """A family that offers the interface and nothing else."""

    family: ClassVar[str] = "delegate"
    n_parameters = 2

    def __init__(self, mechanism):
        self.mechanism = mechanism

    def log_density(self, x, y):
        return self.mechanism.log_density(x, y)

    def draw(self, x, rng):
        return self.mechanism.draw(x, rng)

    @classmethod
    def pack(cls, mechanisms):
        return {}

    @classmethod
    def unpack(cls, arrays, parents):
        raise NotImplementedError


def test_any_family_of_densities_will_do(data, clear):
    est = LatentInterventionDAG(max_regimes=6, n_init=2).fit(data.X)
    model = est.result_.model
    unknown = replace(
        model,
        reference=tuple(_Delegate(one) for one in model.reference),
        own={key: _Delegate(one) for key, one in model.own.items()},
    )
    est._adopt(replace(est.result_, model=unknown))
    assert est.diagnose(random_state=0).to_dict() == clear.to_dict()


@pytest.mark.parametrize("transform", ["log", "rank-gaussian"])
def test_refits_see_the_units_of_the_user(transform):
    X, labels = _three_conditions(8.0)
    est = LatentInterventionDAG(observational="none", transform=transform).fit(
        np.exp(X / 4.0), regimes=labels
    )
    diagnosis = est.diagnose(1)
    assert diagnosis.failures == ()
    assert diagnosis.reached == pytest.approx(diagnosis.ceiling, abs=0.05)
    # ranks close the gaps between conditions, so Gaussians on that scale overlap where the rows do not
    assert (diagnosis.ceiling > 0.9) == (transform == "log")


def test_refits_are_told_what_the_fit_was_told(monkeypatch, tmp_path):
    X, labels = _three_conditions(8.0)
    known = [None if i % 3 == 0 else label for i, label in enumerate(labels)]
    targets = {"low": "c", "high": ["c"]}
    some, every, both = (LatentInterventionDAG(observational="none") for _ in range(3))
    some.fit(X, regimes=known)
    every.fit(X, regimes=labels)
    both.fit(X, regimes=labels, targets=targets)
    told = []
    plain = LatentInterventionDAG.fit

    def listen(self, X, **arguments):
        told.append(arguments)
        return plain(self, X, **arguments)

    monkeypatch.setattr(LatentInterventionDAG, "fit", listen)
    assert all(est.diagnose(1).labelled for est in (some, every, both))
    assert list(told[0]["regimes"]) == known
    assert list(told[1]["regimes"]) == list(labels)
    assert "targets" not in told[1]
    assert told[2]["targets"] == {"low": ["c"], "high": ["c"]}

    for est in (some, both):
        est.save(tmp_path / "model.safetensors")
        loaded = LatentInterventionDAG.load(tmp_path / "model.safetensors")
        if est is some:
            with pytest.raises(ValueError, match="300 of 450 rows had labels"):
                loaded.diagnose(1)
        else:
            assert loaded.diagnose(1).to_dict() == both.diagnose(1).to_dict()
    assert told[3]["targets"] == told[2]["targets"]


def test_progress_failures_and_wrong_arguments(fitted, monkeypatch):
    steps = []
    fitted.diagnose(1, max_rows=200, progress=steps.append)
    assert [step["step"] for step in steps] == ["refit 1 of 1"]
    for arguments in ({"n_repeats": 0}, {"n_repeats": True}, {"max_rows": 1.5}):
        with pytest.raises(ValueError, match="whole number"):
            fitted.diagnose(**arguments)
    with pytest.raises(NotFittedError):
        LatentInterventionDAG().diagnose()
    plain = LatentInterventionDAG.fit
    calls = []

    def fail_once(self, X, **arguments):
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("no luck")
        return plain(self, X, **arguments)

    monkeypatch.setattr(LatentInterventionDAG, "fit", fail_once)
    with pytest.warns(ConvergenceWarning, match="1 of 2 simulated tables"):
        partly = fitted.diagnose(2, max_rows=200)
    assert partly.failures == ("no luck",)
    assert "no luck" in str(partly)
    assert len(partly.repeats) == 1
    calls.clear()
    with pytest.raises(
        ValueError, match="none of 1 simulated tables could be fitted; the last reason: no luck"
    ):
        fitted.diagnose(1)


def test_report_and_folder_show_it(fitted, data, clear, tmp_path):
    html = render_report(fitted.result_, diagnosis=clear)
    assert "What these data can and cannot show" in html
    assert "<strong>Assignment ceiling:</strong>" in html
    folder = write_outputs(fitted.result_, tmp_path / "r", X=data.X, diagnosis=clear)
    stored = json.loads((folder / "result.json").read_text("utf-8"))["diagnosis"]
    assert stored == json.loads(json_text(clear.to_dict()))
    assert stored["ceiling"] == pytest.approx(clear.ceiling)
    assert "Assignment ceiling" in (folder / "report.html").read_text("utf-8")
