"""Rounded values, limits and zeros make no regimes, whoever fits them, and are said to be there."""

import warnings

import numpy as np
import pytest

from latentdo import LatentInterventionDAG, simulate
from latentdo.data import Dataset, DataWarning


def quiet(violation):
    """A table without interventions."""
    options = {"n_variables": 3, "n_samples": 800, "n_regimes": 1, "noise": "laplace"}
    return simulate(preset="field", violation=violation, random_state=1001, **options)


def fit(X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return LatentInterventionDAG(**({"density": "linear", "n_init": 1} | options)).fit(X)


@pytest.mark.parametrize("violation", ["rounding", "detection-limit", "zeros"])
@pytest.mark.parametrize("noise", ["auto", "gaussian"])
def test_no_interventions_are_invented(violation, noise):
    assert fit(quiet(violation).X, noise=noise).n_regimes_ == 1


@pytest.mark.parametrize("violation", ["rounding", "zeros"])
def test_fits_are_reproducible_and_say_what_they_saw(violation):
    data = quiet(violation)
    first, again = (fit(data.X, noise="gaussian", random_state=3) for _ in range(2))
    assert first.evidence_ == again.evidence_
    np.testing.assert_array_equal(first.edge_probabilities_, again.edge_probabilities_)
    said = " ".join(first.result_.warnings)
    assert all(name in said for name in data.X.columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        given = Dataset.from_table(data.X)
    assert first.result_.data_hash == given.content_hash(), "provenance is that of the table as it was given"


@pytest.mark.parametrize("violation", ["rounding", "detection-limit", "zeros"])
def test_interventions_are_found_all_the_same(violation):
    options = {"n_variables": 4, "n_samples": 1000, "n_regimes": 2, "separation": 4.0}
    data = simulate(preset="field", violation=violation, random_state=1004, **options)
    est = fit(data.X, noise="gaussian")
    assert est.n_regimes_ == 2
    np.testing.assert_array_equal(est.targets_.to_numpy(), data.targets.to_numpy())


def test_zeros_of_new_rows_say_nothing(tmp_path):
    options = {"n_variables": 4, "n_samples": 1000, "n_regimes": 2, "separation": 4.0}
    data = simulate(preset="field", violation="zeros", random_state=1004, **options)
    est = fit(data.X, noise="gaussian")
    assert (est.predict(data.X) == est.regimes_).mean() > 0.9
    nothing = est.predict_proba(data.X.iloc[:1] * 0.0)
    np.testing.assert_allclose(nothing, est.regime_weights_[None])
    est.save(tmp_path / "model")
    again = LatentInterventionDAG.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(data.X), est.predict_proba(data.X))


def test_values_that_interventions_set_are_found_as_before():
    data = simulate(n_variables=3, edges_per_node=1, n_samples=1200, intervention="atomic", random_state=1)
    est = LatentInterventionDAG(density="linear", noise="gaussian").fit(data.X)
    assert est.n_regimes_ == data.n_regimes
    assert not any("share" in said for said in est.result_.warnings)


def test_zeros_that_a_labelled_intervention_set_are_its_target():
    rng = np.random.default_rng(0)
    a = rng.normal(5.0, 1.0, 900)
    knocked_out = np.arange(900) >= 600
    a[knocked_out] = 0.0
    X = np.column_stack([a, a + rng.normal(size=900)])
    est = LatentInterventionDAG(density="linear", noise="gaussian").fit(X, regimes=knocked_out.astype(int))
    assert est.targets_.to_numpy().tolist() == [[0, 0], [1, 0]]
