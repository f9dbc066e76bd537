"""Rows of the field benchmark are what their names say, and its yardsticks measure."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from experiments import field, light_tunnel
from latentdo import LatentInterventionDAG, simulate
from latentdo.datasets.light_tunnel import LightTunnel


@pytest.mark.parametrize("row", field.ROWS)
def test_every_row_can_be_drawn(row):
    data = simulate(preset="field", random_state=1000, **{**field.ROWS[row], "n_samples": 600})
    assert np.isfinite(data.bayes_responsibilities()).all()
    assert (data.n_regimes == 1) == row.startswith("quiet")


def test_the_true_state_is_what_a_right_fit_reaches():
    data = simulate(preset="field", n_variables=4, separation=5.0, random_state=1000)
    model = LatentInterventionDAG("linear").fit(data.X)
    assert np.array_equal(model.adjacency_, data.adjacency)
    assert field.true_state_evidence(data, model.result_) == pytest.approx(model.result_.evidence, abs=2.0)
    networks = replace(model.result_, density="nonlinear")
    assert field.true_state_evidence(data, networks) is None


def test_the_summary_has_a_line_for_each_row_and_density():
    cells = [
        {"row": "soft", "density": density, "told": told, "shd": 1, "regimes_right": True, "ari": 0.5}
        | {"ari_true": 0.6, "targets_wrong": 2, "sure": 4, "sure_right": 3, "processor_seconds": 1.0}
        | {"evidence": -10.0, "evidence_true": -12.0}
        for density, told in (("auto", "nothing"), ("auto", "regimes"), ("linear", "clusters"))
    ]
    first, second = field.summary(pd.DataFrame(cells)).rows
    assert first == ("soft", "auto", "1", "1", "1", "", "1/1", "0.50", "0.60", "2", "3/4", "0/1", "1")
    assert second[:6] == ("soft", "linear", "1", "", "", "1")


def test_an_experiment_has_its_regime_only_if_both_agree_on_most_rows():
    class Fit:
        regimes_ = np.array([0, 0, 1, 1, 2, 2, 2, 0])
        targets_ = pd.DataFrame([[0, 0], [1, 0], [0, 1]], columns=["a", "b"], index=["reference", 7, 8])

    gained = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 5.0]])

    rows = pd.DataFrame({"a": np.arange(8.0), "b": np.arange(8.0)})
    labels = ["reference", "reference", "first", "first", "second", "second", "second", "second"]
    names = ["reference", "first", "second"]
    targets = pd.DataFrame([[0, 0], [1, 0], [1, 0]], columns=["a", "b"], index=names)
    truth = LightTunnel(rows, pd.Series(labels), targets, pd.DataFrame())
    assert light_tunnel.interventions(truth, Fit(), gained) == {
        "interventions": 2,
        "own_regime": 2,
        "target_first": 1,
        "targets_exact": 1,
    }
