"""LatentInterventionDAG from outside: what a user can ask of it, and what it must refuse."""

from __future__ import annotations

import json
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from latentdo import LatentInterventionDAG, simulate
from latentdo.data import DataWarning
from latentdo.equivalence import essential_graph
from latentdo.graphs import is_dag
from latentdo.metrics import adjusted_rand_index, match_regimes

NAMES = ["Raf", "Mek", "Erk", "Akt"]


@pytest.fixture(scope="module")
def data():
    """Four variables, five regimes, paper preset: well separated."""
    return simulate(n_variables=4, edges_per_node=1, n_samples=1000, random_state=3)


@pytest.fixture(scope="module")
def table(data):
    """The same rows in odd units under real names."""
    return data.X.set_axis(NAMES, axis=1) * [1.0, 50.0, 0.01, 3.0] + [10.0, 0.0, -5.0, 1e3]


@pytest.fixture(scope="module")
def fitted(table):
    return LatentInterventionDAG().fit(table)


def _assert_recovered(est, data, *, agreement=0.97):
    np.testing.assert_array_equal(est.adjacency_.to_numpy(), data.adjacency.to_numpy())
    assert adjusted_rand_index(data.regimes, est.regimes_) > agreement
    matching = match_regimes(data.regimes, est.regimes_)
    for found, true in matching.found_to_true.items():
        np.testing.assert_array_equal(est.targets_.to_numpy()[found], data.targets.to_numpy()[true])


def _assert_sound(est, n, d):
    """What holds for every fit, whatever the data."""
    assert is_dag(est.adjacency_)
    assert (
        est.adjacency_.shape == est.edge_probabilities_.shape == est.ancestor_probabilities_.shape == (d, d)
    )
    assert not est.targets_.to_numpy()[0].any()
    assert est.targets_.shape == est.target_probabilities_.shape == (est.n_regimes_, d)
    assert est.responsibilities_.shape == (n, est.n_regimes_)
    np.testing.assert_allclose(est.responsibilities_.sum(axis=1), 1.0, atol=1e-9)
    np.testing.assert_array_equal(est.regimes_, est.responsibilities_.argmax(axis=1))
    assert est.regime_weights_.sum() == pytest.approx(1.0)
    assert est.has_observational_ == (est.regime_weights_[0] > 0)
    assert len(est.regime_names_) == len(set(est.regime_names_)) == est.n_regimes_
    edges = est.edge_probabilities_.to_numpy()
    assert edges.min() >= 0.0
    assert (edges + edges.T).max() <= 1.0 + 1e-9
    for values in (est.ancestor_probabilities_, est.target_probabilities_):
        assert values.to_numpy().min() >= 0.0
        assert values.to_numpy().max() <= 1.0
    assert np.isfinite(est.evidence_)
    assert est.converged_
    assert est.history_


# scikit-learn's own conventions; no check is expected to fail.


@parametrize_with_checks([LatentInterventionDAG(n_init=1)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_parameters_round_trip_through_get_set_and_clone():
    est = LatentInterventionDAG(
        max_regimes=5, transform="log", forbidden=[("a", "b")], edge_prior=-1.0, tiers=[["a"], ["b"]]
    )
    parameters = est.get_params()
    assert parameters["transform"] == "log"
    assert parameters["forbidden"] == [("a", "b")]
    assert clone(est).get_params() == parameters
    assert LatentInterventionDAG(**parameters).get_params() == parameters
    assert est.set_params(transform="none", n_init=2).get_params() == parameters | {
        "transform": "none",
        "n_init": 2,
    }
    assert "max_regimes=5" in repr(est)
    with pytest.raises(ValueError, match="regime_count"):
        est.set_params(regime_count=3)


def test_constructor_stores_arguments_untouched():
    prior = np.zeros((2, 2))
    wishes = [("a", "b")]
    parameters = LatentInterventionDAG(edge_prior=prior, required=wishes, n_init="four").get_params()
    assert parameters["edge_prior"] is prior
    assert parameters["required"] is wishes
    assert parameters["n_init"] == "four"


def test_pickle_round_trip(fitted, table):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(table), fitted.predict_proba(table))
    pd.testing.assert_frame_equal(again.adjacency_, fitted.adjacency_)
    assert again.get_params() == fitted.get_params()


def test_works_as_the_last_step_of_a_pipeline(data, fitted, table):
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), LatentInterventionDAG())
    pipeline.fit(table)
    np.testing.assert_array_equal(pipeline[-1].adjacency_, data.adjacency)
    np.testing.assert_array_equal(pipeline.predict(table), fitted.predict(table))
    assert np.isfinite(pipeline.score(table))


def test_fit_ignores_y_says_so_and_returns_self(table):
    est = LatentInterventionDAG(max_regimes=1)
    with pytest.warns(DataWarning, match="regimes="):
        assert est.fit(table, np.arange(len(table))) is est
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        est.fit(table, None)


def test_what_the_user_should_know_is_warned_of_and_kept_in_the_result(table, data):
    with pytest.warns(UserWarning, match="device='cuda' is not used") as caught:
        est = LatentInterventionDAG(density="linear", max_regimes=4, n_init=1, device="cuda").fit(
            pd.concat([table, table.head(5)])
        )
    assert {warning.filename for warning in caught} == {__file__}
    notes = " ".join(est.result_.warnings)
    assert "cuda" in notes
    assert "5 of 1005 rows repeat" in notes
    assert "filled all of max_regimes=4 regimes" in notes
    with pytest.warns(UserWarning, match="All of max_regimes=5 regimes are in use"):
        LatentInterventionDAG(max_regimes=5, n_init=1).fit(table)
    names = np.array(["ctrl", "d1", "d2", "d3", "d4"], dtype=object)[data.regimes]
    with pytest.warns(DataWarning, match="pass observational='ctrl'"):
        est = LatentInterventionDAG(max_regimes=6).fit(table, regimes=names)
    assert not any("max_regimes" in note for note in est.result_.warnings)


def test_an_edge_less_probable_than_its_reverse_is_named(table, monkeypatch):
    """The best graph and the average over all graphs may disagree; the result says where."""
    from latentdo.estimator import latent

    true_solve = latent.solve

    def solve(dataset, request, progress):
        result = true_solve(dataset, request, progress)
        i, j = np.argwhere(result.model.topology.adjacency)[0]
        edges = result.edge_probabilities.copy()
        edges[i, j], edges[j, i] = 0.47, 0.53
        return replace(result, edge_probabilities=edges)

    monkeypatch.setattr(latent, "solve", solve)
    est = LatentInterventionDAG(max_regimes=1).fit(table)
    contested = est.result_.contested_edges()
    assert contested[["forward", "backward"]].to_numpy().tolist() == [[0.47, 0.53]]
    assert "47%, reversed 53%" in est.result_.warnings[-1]
    (pair,) = est.ambiguous_edges_.loc[
        est.ambiguous_edges_[["forward", "backward"]].min(axis=1) == 0.47
    ].index
    chosen = est.ambiguous_edges_.loc[pair, "graph"]
    assert est.ambiguous_edges_.loc[pair, chosen] == 0.47


@pytest.mark.parametrize("size", [1e40, 1e200, 1e300])
def test_rows_far_out_have_a_regime_and_a_density(fitted, table, size):
    rows = table.head(2).copy()
    rows.iloc[0] = [size, -size, size, size]
    rows.iloc[1, 2] = size
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(fitted.predict_proba(rows).sum(axis=1), 1.0)
        assert (fitted.score_samples(rows) < fitted.score_samples(table).min()).all()


# Tables in and out.


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


# The variants of one model.


def test_latent(fitted, data):
    _assert_sound(fitted, 1000, 4)
    _assert_recovered(fitted, data)
    assert fitted.n_regimes_ == 5
    assert fitted.has_observational_
    np.testing.assert_allclose(fitted.regime_weights_, 0.2, atol=0.02)


@pytest.mark.parametrize("intervention", ["stochastic", "imperfect", "atomic"])
def test_latent_kinds_of_intervention(intervention):
    data = simulate(
        n_variables=4, edges_per_node=1, n_samples=1500, intervention=intervention, random_state=1003
    )
    est = LatentInterventionDAG(intervention="imperfect" if intervention == "imperfect" else "perfect").fit(
        data.X
    )
    _assert_sound(est, len(data.X), 4)
    _assert_recovered(est, data, agreement=0.95)


def test_unknown_targets(data, table):
    names = np.array(["control", "d1", "d2", "d3", "d4"], dtype=object)[data.regimes]
    est = LatentInterventionDAG(observational="control").fit(table, regimes=names)
    _assert_sound(est, 1000, 4)
    np.testing.assert_array_equal(est.adjacency_, data.adjacency)
    assert est.regime_names_ == ("control", "d1", "d2", "d3", "d4")
    assert list(est.targets_.index) == list(est.regime_names_)
    np.testing.assert_array_equal(est.targets_, data.targets)
    np.testing.assert_array_equal(est.regimes_, data.regimes)


def test_known_targets(data, table):
    targets = {
        k: [NAMES[j] for j in np.flatnonzero(row)] for k, row in enumerate(data.targets.to_numpy()) if k
    }
    est = LatentInterventionDAG().fit(table, regimes=data.regimes, targets=targets)
    _assert_sound(est, 1000, 4)
    np.testing.assert_array_equal(est.adjacency_, data.adjacency)
    np.testing.assert_array_equal(est.targets_, data.targets)
    np.testing.assert_array_equal(est.target_probabilities_, data.targets)


def test_wrong_known_targets_are_kept(data, table):
    targets = {1: ["Akt", "Raf"], 2: [], 3: ["Erk"], 4: ["Mek"]}
    est = LatentInterventionDAG().fit(table, regimes=data.regimes, targets=targets)
    expected = [[0, 0, 0, 0], [1, 0, 0, 1], [0, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0]]
    np.testing.assert_array_equal(est.targets_, expected)


@pytest.mark.parametrize("unknown", [-1, None, np.nan])
def test_semi_supervised(data, table, unknown):
    """A third of the labels known; regimes 3 and 4 never labelled, so they have to be found."""
    rng = np.random.default_rng(0)
    shown = (rng.random(1000) < 0.33) & (data.regimes < 3)
    labels = np.where(shown, data.regimes.astype(object), unknown)
    est = LatentInterventionDAG().fit(table, regimes=labels)
    _assert_sound(est, 1000, 4)
    _assert_recovered(est, data)
    assert est.regime_names_[:3] == (0, 1, 2)
    assert est.n_regimes_ == 5
    np.testing.assert_array_equal(est.regimes_[shown], data.regimes[shown])
    np.testing.assert_array_equal(est.targets_.to_numpy()[:3], data.targets.to_numpy()[:3])


def test_semi_supervised_with_known_targets(data, table):
    """Targets of a regime that no row is labelled with: its rows are found by what it did."""
    rng = np.random.default_rng(1)
    labels = np.where((rng.random(1000) < 0.33) & (data.regimes < 4), data.regimes, -1)
    est = LatentInterventionDAG().fit(table, regimes=labels, targets=data.targets.set_axis(NAMES, axis=1))
    _assert_sound(est, 1000, 4)
    np.testing.assert_array_equal(est.adjacency_, data.adjacency)
    np.testing.assert_array_equal(est.targets_.to_numpy()[:5], data.targets)
    assert adjusted_rand_index(data.regimes, est.regimes_) > 0.97


def test_unlabelled_observational_rows_become_regime_zero(data, table):
    """Only interventions were ever labelled."""
    rng = np.random.default_rng(2)
    labels = np.where((rng.random(1000) < 0.33) & (data.regimes > 0), data.regimes, -1)
    est = LatentInterventionDAG().fit(table, regimes=labels)
    _assert_sound(est, 1000, 4)
    _assert_recovered(est, data)
    assert est.has_observational_
    assert est.regime_weights_[0] == pytest.approx(0.2, abs=0.03)
    assert (est.regimes_[data.regimes == 0] == 0).mean() > 0.95


def test_labels_that_say_nothing_are_no_labels(fitted, table):
    est = LatentInterventionDAG().fit(table, regimes=np.full(1000, -1))
    np.testing.assert_array_equal(est.regimes_, fitted.regimes_)
    assert est.evidence_ == fitted.evidence_
    assert est.has_observational_


def test_targets_of_a_regime_without_rows_are_harmless(data, table):
    kept = data.regimes < 4
    targets = data.targets.set_axis(NAMES, axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        est = LatentInterventionDAG().fit(table[kept], regimes=data.regimes[kept], targets=targets)
    without = LatentInterventionDAG().fit(table[kept], regimes=data.regimes[kept], targets=targets.iloc[:4])
    np.testing.assert_array_equal(est.adjacency_, without.adjacency_)
    np.testing.assert_allclose(est.edge_probabilities_, without.edge_probabilities_, atol=1e-6)
    assert est.adjacency_.to_numpy().any()


@pytest.mark.parametrize("seed", range(3))
def test_observational(seed):
    """One regime: the graph is found as far as observational data can tell."""
    data = simulate(
        n_variables=5, edges_per_node=1, n_regimes=1, n_samples=3000, preset="dcdi", random_state=seed
    )
    est = LatentInterventionDAG(max_regimes=1).fit(data.X)
    _assert_sound(est, 3000, 5)
    assert est.n_regimes_ == 1
    assert est.regime_names_ == (0,)
    nothing = np.zeros((1, 5), dtype=int)
    np.testing.assert_array_equal(
        essential_graph(est.adjacency_.to_numpy(), nothing),
        essential_graph(data.adjacency.to_numpy(), nothing),
    )


def test_no_observational_rows(data):
    kept = data.regimes > 0
    for labels in (None, data.regimes[kept]):
        est = LatentInterventionDAG(observational=None).fit(data.X[kept], regimes=labels)
        _assert_sound(est, int(kept.sum()), 4)
        assert not est.has_observational_
        assert est.n_regimes_ == 5
        assert est.regime_weights_[0] == 0.0
        assert est.responsibilities_[:, 0].max() == 0.0
        assert (est.targets_.to_numpy()[1:].sum(axis=1) == 1).all()
        assert np.isfinite(est.sample(10).to_numpy()).all(), "the reference can still be sampled"


# Asking a fitted model.


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


def _exact_mean(est, regime, do):
    """Mean of the fitted linear model, solved rather than sampled, in the user's units."""
    model, preprocessor = est.result_.model, est.result_.preprocessor
    d = len(est.result_.columns)
    matrix, intercept = np.zeros((d, d)), np.zeros(d)
    for j, name in enumerate(est.result_.columns):
        if name in do:
            intercept[j] = preprocessor.forward_column(name, do[name])[0]
        else:
            coefficients, _ = model.mechanism(j, regime)
            intercept[j], matrix[j] = coefficients[0], coefficients[1:]
    z = np.linalg.solve(np.eye(d) - matrix, intercept)
    return preprocessor.inverse(z[None])[0]


@pytest.mark.parametrize("regime", [0, 1, 3])
@pytest.mark.parametrize("do", [{}, {"Mek": 60.0}, {"Raf": 9.0, "Akt": 1001.0}])
def test_samples_have_the_exact_mean(fitted, regime, do):
    rows = fitted.sample(40_000, regime=regime, do=do, random_state=1)
    error = (rows.mean() - _exact_mean(fitted, regime, do)).abs()
    assert (error <= 5 * rows.std() / np.sqrt(40_000) + 1e-9).all()
    for name, value in do.items():
        np.testing.assert_allclose(rows[name], value, rtol=1e-12)


def test_samples_resemble_the_rows_of_their_regime(fitted, table):
    for k in range(5):
        rows, drawn = table[fitted.regimes_ == k], fitted.sample(5000, regime=k)
        np.testing.assert_allclose(drawn.mean(), rows.mean(), atol=0.25 * table.std().max())
        assert ((drawn.mean() - rows.mean()).abs() < 0.1 * table.std()).all()
        assert (fitted.predict(drawn) == k).mean() > 0.95


def test_do_cuts_the_causes_of_what_it_sets(fitted, data):
    """Effects change, causes and everything unrelated do not."""
    reach = np.linalg.matrix_power(np.eye(4) + data.adjacency.to_numpy(), 4) > 0
    for j, name in enumerate(NAMES):
        low, high = (fitted.sample(2000, do={name: value}, random_state=0) for value in (-20.0, 20.0))
        for i, other in enumerate(NAMES):
            if i == j:
                continue
            same = np.allclose(low[other], high[other])
            assert same != bool(reach[j, i]), (name, other)


def test_sampling_by_name_and_index(data, table):
    names = np.array(["control", "d1", "d2", "d3", "d4"], dtype=object)[data.regimes]
    est = LatentInterventionDAG(observational="control").fit(table, regimes=names)
    pd.testing.assert_frame_equal(est.sample(5, regime="d2"), est.sample(5, regime=2))
    pd.testing.assert_frame_equal(est.sample(5), est.sample(5, regime="control"))
    assert not est.sample(5, regime="d2").equals(est.sample(5, regime="d3"))
    with pytest.raises(ValueError, match=r"regime 'd9' does not exist.*control, d1"):
        est.sample(5, regime="d9")
    with pytest.raises(ValueError, match="regime 7"):
        est.sample(5, regime=7)
    with pytest.raises(ValueError, match="regime -1"):
        est.sample(5, regime=-1)


def test_sampling_is_reproducible_and_refuses_nonsense(fitted):
    pd.testing.assert_frame_equal(fitted.sample(5, random_state=3), fitted.sample(5, random_state=3))
    assert not fitted.sample(5, random_state=3).equals(fitted.sample(5, random_state=4))
    with pytest.raises(ValueError, match=r"'PKA'.*Raf, Mek, Erk, Akt"):
        fitted.sample(5, do={"PKA": 1.0})
    with pytest.raises(ValueError, match="n=0"):
        fitted.sample(0)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "score", "score_samples"])
def test_asking_before_fitting(method, table):
    with pytest.raises(NotFittedError):
        getattr(LatentInterventionDAG(), method)(table)
    with pytest.raises(NotFittedError):
        LatentInterventionDAG().sample(1)
    with pytest.raises(NotFittedError):
        LatentInterventionDAG().save("nowhere")


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


# Reproducible, and indifferent to what does not matter.


def test_same_seed_same_result(fitted, table):
    again = LatentInterventionDAG().fit(table)
    assert again.responsibilities_.tobytes() == fitted.responsibilities_.tobytes()
    assert again.edge_probabilities_.to_numpy().tobytes() == fitted.edge_probabilities_.to_numpy().tobytes()
    assert again.evidence_ == fitted.evidence_
    for one, two in zip(
        again.result_.model.to_arrays().values(), fitted.result_.model.to_arrays().values(), strict=True
    ):
        assert one.tobytes() == two.tobytes()


def test_global_randomness_is_left_alone(table):
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    LatentInterventionDAG(n_init=1).fit(table)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("random_state", [7, None, np.random.RandomState(1)])
def test_any_source_of_randomness(table, data, random_state):
    _assert_recovered(LatentInterventionDAG(random_state=random_state).fit(table), data)


def test_order_of_columns_does_not_matter(fitted, table):
    order = ["Erk", "Akt", "Raf", "Mek"]
    est = LatentInterventionDAG().fit(table[order])
    pd.testing.assert_frame_equal(est.adjacency_.loc[NAMES, NAMES], fitted.adjacency_)
    pd.testing.assert_frame_equal(
        est.edge_probabilities_.loc[NAMES, NAMES], fitted.edge_probabilities_, atol=0.02
    )
    assert adjusted_rand_index(est.regimes_, fitted.regimes_) > 0.99
    assert est.evidence_ == pytest.approx(fitted.evidence_, abs=1.0)


def test_order_of_rows_does_not_matter(fitted, table):
    order = np.random.default_rng(0).permutation(1000)
    est = LatentInterventionDAG().fit(table.iloc[order])
    pd.testing.assert_frame_equal(est.adjacency_, fitted.adjacency_)
    assert adjusted_rand_index(est.regimes_, fitted.regimes_[order]) > 0.99
    assert est.evidence_ == pytest.approx(fitted.evidence_, abs=1.0)


def test_units_do_not_matter(fitted, table):
    scale = np.array([1e-3, 7.0, -2.0, 100.0])
    est = LatentInterventionDAG().fit(table * scale + 5.0)
    pd.testing.assert_frame_equal(est.adjacency_, fitted.adjacency_)
    assert adjusted_rand_index(est.regimes_, fitted.regimes_) > 0.99
    assert est.evidence_ == pytest.approx(fitted.evidence_, abs=1.0)
    assert est.score(table * scale + 5.0) == pytest.approx(
        fitted.score(table) - np.log(np.abs(scale)).sum(), abs=0.01
    )


def test_parallel_starts_find_the_same(table, data):
    with parallel_config(backend="threading"):
        est = LatentInterventionDAG(n_jobs=2, n_init=2).fit(table)
    _assert_recovered(est, data)


def test_progress_and_verbose(table, capsys):
    steps = []
    est = LatentInterventionDAG(n_init=1).fit(table, progress=steps.append)
    assert capsys.readouterr().out == ""
    assert [dict(step) for step in steps] == est.history_
    assert all(np.isfinite(step["evidence"]) and step["seconds"] >= 0 for step in steps)
    LatentInterventionDAG(n_init=1, verbose=True, max_regimes=1).fit(table)
    assert "evidence" in capsys.readouterr().out


# What the user knows about the graph.


def test_prior_knowledge_is_respected(table, data):
    cause, effect = (NAMES[int(i)] for i in np.argwhere(data.adjacency.to_numpy())[0])
    reversed_ = LatentInterventionDAG(forbidden=[(cause, effect)], required=[(effect, cause)]).fit(table)
    assert reversed_.adjacency_.loc[cause, effect] == 0
    assert reversed_.adjacency_.loc[effect, cause] == 1
    assert reversed_.edge_probabilities_.loc[cause, effect] == 0.0
    assert reversed_.edge_probabilities_.loc[effect, cause] == pytest.approx(1.0)
    assert is_dag(reversed_.adjacency_)
    empty = LatentInterventionDAG(max_parents=0).fit(table)
    assert not empty.adjacency_.to_numpy().any()
    tiers = LatentInterventionDAG(tiers=[[effect], [cause]]).fit(table)
    assert tiers.adjacency_.loc[cause, effect] == 0


def test_edge_prior_moves_edges(table):
    none = LatentInterventionDAG(max_regimes=1, edge_prior=-1e5).fit(table)
    assert not none.adjacency_.to_numpy().any()
    assert none.edge_probabilities_.to_numpy().max() < 1e-6
    every = LatentInterventionDAG(max_regimes=1, edge_prior=1e5).fit(table)
    assert every.adjacency_.to_numpy().sum() == 6
    prior = np.zeros((4, 4))
    prior[2, 0] = 1e5
    one = LatentInterventionDAG(max_regimes=1, edge_prior=prior).fit(table)
    assert one.adjacency_.iloc[2, 0] == 1


# Refusals.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"density": "spline"}, "density='spline'.*'linear'"),
        ({"intervention": "soft"}, "intervention='soft'.*'imperfect'"),
        ({"solver": "magic"}, "solver='magic'"),
        ({"max_regimes": 0}, "max_regimes=0"),
        ({"max_regimes": 2.5}, "max_regimes=2.5"),
        ({"max_regimes": True}, "max_regimes=True"),
        ({"n_init": 0}, "n_init=0"),
        ({"n_init": "4"}, "n_init='4'"),
        ({"transform": "cube"}, "cube"),
        ({"missing": "ignore"}, "missing='ignore'"),
        ({"edge_prior": np.zeros((2, 3))}, r"edge_prior has shape \(2, 3\).*\[4, 4\]"),
        ({"edge_prior": np.nan}, "edge_prior contains NaN"),
        ({"forbidden": [("Raf", "PKA")]}, "forbidden names 'PKA'"),
        ({"required": [("Raf", "Mek"), ("Mek", "Raf")]}, "cycle"),
        ({"required": [("Raf", "Mek")], "forbidden": [("Raf", "Mek")]}, "Raf -> Mek is ruled out"),
        ({"tiers": [["Raf"], ["PKA"]]}, "'PKA'"),
        ({"max_parents": -1}, "max_parents=-1"),
        ({"random_state": "lucky"}, "lucky"),
    ],
)
def test_bad_arguments_are_named(table, arguments, message):
    with pytest.raises(ValueError, match=message):
        LatentInterventionDAG(**arguments).fit(table)


def test_bad_data_are_named(data, table):
    holes = table.copy()
    holes.iloc[3, 1] = np.nan
    with pytest.raises(ValueError, match="Mek"):
        LatentInterventionDAG().fit(holes)
    dropped = LatentInterventionDAG(max_regimes=1, missing="drop").fit(holes)
    assert len(dropped.regimes_) == 999
    with pytest.raises(ValueError, match="Akt"):
        LatentInterventionDAG().fit(table.assign(Akt=1.0))
    with pytest.raises(ValueError, match="1000 rows"):
        LatentInterventionDAG().fit(table, regimes=[0, 1])
    with pytest.raises(ValueError, match="targets were given without regimes"):
        LatentInterventionDAG().fit(table, targets={1: ["Raf"]})
    with pytest.raises(ValueError, match=r"5 labels.*max_regimes=3"):
        LatentInterventionDAG(max_regimes=3).fit(table, regimes=data.regimes)
    with pytest.raises(ValueError, match="control"):
        LatentInterventionDAG(observational="control").fit(table, regimes=data.regimes)


def test_one_variable(data):
    """Nothing to find but the regimes."""
    est = LatentInterventionDAG(n_init=1).fit(np.random.default_rng(0).normal(size=(200, 1)))
    _assert_sound(est, 200, 1)


def test_few_and_repeated_rows():
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        _assert_sound(LatentInterventionDAG(n_init=1).fit(rng.normal(size=(4, 3))), 4, 3)
        _assert_sound(
            LatentInterventionDAG(n_init=1).fit(np.repeat(rng.normal(size=(5, 2)), 40, axis=0)), 200, 2
        )
        x = rng.normal(size=(200, 1))
        _assert_sound(
            LatentInterventionDAG(n_init=1).fit(np.column_stack([x, 2 * x, rng.normal(size=200)])), 200, 3
        )


def test_interrupt_keeps_the_best_state_so_far(table):
    steps = []

    def stop_at_the_second_step(entry):
        steps.append(entry)
        if len(steps) == 2:
            raise KeyboardInterrupt

    try:
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            est = LatentInterventionDAG().fit(table, progress=stop_at_the_second_step)
    except KeyboardInterrupt:  # would end the whole test session
        pytest.fail("the interrupt was not caught although a state had been reported")
    assert not est.converged_
    assert est.result_.status == "interrupted"
    assert est.evidence_ >= steps[0]["evidence"] - 1e-3  # one more step of EM, whose costs move a little
    assert is_dag(est.adjacency_)


def test_configuration_in_the_result_is_plain_data(table):
    est = LatentInterventionDAG(
        max_regimes=1,
        edge_prior=np.zeros((4, 4)),
        random_state=np.random.RandomState(0),
        max_parents=np.int64(3),
    ).fit(table)
    summary = json.loads(json.dumps(est.result_.summary()))
    assert summary["configuration"]["max_parents"] == 3
    assert summary["configuration"]["edge_prior"] == np.zeros((4, 4)).tolist()
