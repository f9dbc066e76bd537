"""Tables in and out: names, predictions, densities of new rows, saving."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone

from latentdo import LatentInterventionDAG, simulate
from latentdo.metrics import adjusted_rand_index

NAMES = ["Raf", "Mek", "Erk", "Akt"]


def test_names_are_kept(fitted):
    for square in (fitted.adjacency_, fitted.edge_probabilities_, fitted.ancestor_probabilities_):
        assert list(square.columns) == list(square.index) == NAMES
    for wide in (fitted.targets_, fitted.target_probabilities_, fitted.sample(3)):
        assert list(wide.columns) == NAMES
    assert list(fitted.feature_names_in_) == NAMES
    assert fitted.n_features_in_ == 4


def test_polars_and_arrays_give_the_same_fit(fitted, table):
    polars = pytest.importorskip("polars")
    from_polars = LatentInterventionDAG().fit(polars.from_pandas(table))
    pd.testing.assert_frame_equal(from_polars.adjacency_, fitted.adjacency_)
    assert list(from_polars.feature_names_in_) == NAMES
    assert from_polars.evidence_ == fitted.evidence_
    np.testing.assert_array_equal(from_polars.predict(polars.from_pandas(table)), fitted.predict(table))
    from_array = LatentInterventionDAG().fit(table.to_numpy())
    assert list(from_array.adjacency_.columns) == ["X1", "X2", "X3", "X4"]
    np.testing.assert_array_equal(from_array.adjacency_, fitted.adjacency_)
    assert from_array.evidence_ == fitted.evidence_


def test_columns_are_matched_by_name_on_new_rows(fitted, table):
    shuffled = table[["Akt", "Erk", "Raf", "Mek"]]
    np.testing.assert_array_equal(fitted.predict_proba(shuffled), fitted.predict_proba(table))
    with pytest.raises(ValueError, match="Raf"):
        fitted.predict(table.drop(columns="Raf"))


def test_predict_agrees_with_the_fit_on_its_own_rows(fitted, table):
    assert (fitted.predict(table) == fitted.regimes_).mean() > 0.995
    probability = fitted.predict_proba(table)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(probability.argmax(axis=1), fitted.predict(table))
    np.testing.assert_allclose(probability, fitted.responsibilities_, atol=0.02)


def test_predict_on_rows_never_seen(fitted, data):
    """Fresh rows from the true regimes are told apart."""
    parts = [scm.sample_array(50, np.random.default_rng(k)) for k, scm in enumerate(data.regime_scms)]
    rows = (np.concatenate(parts) - data.mean.to_numpy()) / data.scale.to_numpy()
    rows = pd.DataFrame(rows * [1.0, 50.0, 0.01, 3.0] + [10.0, 0.0, -5.0, 1e3], columns=NAMES)
    assert adjusted_rand_index(np.repeat(np.arange(5), 50), fitted.predict(rows)) > 0.95


def test_score_is_the_mean_of_score_samples_and_the_likelihood_of_the_fit(fitted, table):
    assert fitted.score(table) == pytest.approx(fitted.score_samples(table).mean())
    jacobian = fitted.result_.preprocessor.log_jacobian(table.to_numpy()).sum()
    total = fitted.score_samples(table).sum() - jacobian
    assert total == pytest.approx(fitted.result_.evidence_terms["log_likelihood"], abs=1.0)
    assert sum(fitted.result_.evidence_terms.values()) == pytest.approx(fitted.evidence_)


@pytest.mark.parametrize("transform", ["none", "log"])
def test_score_agrees_with_scipy_in_the_users_units(transform):
    """With all edges, one regime is the Gaussian with the sample's own moments."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 3)) * [0.2, 1.0, 0.5] + [1.0, 0.0, 3.0]
    x = np.exp(y) if transform == "log" else 40.0 * y
    everything = [("X1", "X2"), ("X1", "X3"), ("X2", "X3")]
    est = LatentInterventionDAG(max_regimes=1, transform=transform, required=everything).fit(x)
    inner = np.log(x) if transform == "log" else x
    expected = multivariate_normal(inner.mean(axis=0), np.cov(inner, rowvar=False, ddof=0)).logpdf(inner)
    if transform == "log":
        expected = expected - np.log(x).sum(axis=1)
    np.testing.assert_allclose(est.score_samples(x), expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("transform", ["none", "log"])
def test_density_integrates_to_one(transform):
    data = simulate(preset="paper-pairs", separation=3.0, random_state=4)
    x = data.X.to_numpy() * [0.3, 0.5] + [1.0, 2.0]
    x = np.exp(x) if transform == "log" else x
    est = LatentInterventionDAG(transform=transform, max_regimes=3).fit(x)
    low, high = x.min(axis=0), x.max(axis=0)
    edges = [np.geomspace(a / 3, 3 * b, 701) if transform == "log" else np.linspace(a - 1, b + 1, 701)
             for a, b in zip(low, high, strict=True)]  # fmt: skip
    middle = [(e[1:] + e[:-1]) / 2 for e in edges]
    width = [np.diff(e) for e in edges]
    grid = np.stack(np.meshgrid(*middle, indexing="ij"), axis=-1).reshape(-1, 2)
    cells = np.outer(*width).ravel()
    assert np.exp(est.score_samples(grid)) @ cells == pytest.approx(1.0, abs=0.01)


def test_more_likely_rows_score_higher(fitted, table):
    assert fitted.score(table) > fitted.score(table + table.std() * 2)


def test_save_and_load(tmp_path, fitted, table):
    path = tmp_path / "model.safetensors"
    fitted.save(path)
    again = LatentInterventionDAG.load(path)
    np.testing.assert_array_equal(again.predict_proba(table), fitted.predict_proba(table))
    np.testing.assert_array_equal(again.score_samples(table), fitted.score_samples(table))
    for name in (
        "adjacency_",
        "edge_probabilities_",
        "targets_",
        "target_probabilities_",
        "ambiguous_edges_",
    ):
        pd.testing.assert_frame_equal(getattr(again, name), getattr(fitted, name))
    assert again.evidence_ == fitted.evidence_
    assert again.regime_names_ == fitted.regime_names_
    assert again.get_params() == fitted.get_params()
    assert list(again.feature_names_in_) == NAMES
    clone(again).fit(table)
