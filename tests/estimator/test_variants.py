"""Nothing, something or everything known of regimes and targets: the variants of one model."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from latentdo import LatentInterventionDAG, simulate
from latentdo.data import DataWarning
from latentdo.graphs.equivalence import essential_graph
from latentdo.metrics import adjusted_rand_index

NAMES = ["Raf", "Mek", "Erk", "Akt"]


def test_latent(fitted, data, assert_sound, assert_recovered):
    assert_sound(fitted, 1000, 4)
    assert_recovered(fitted, data)
    assert fitted.n_regimes_ == 5
    assert fitted.has_observational_
    np.testing.assert_allclose(fitted.regime_weights_, 0.2, atol=0.02)


@pytest.mark.parametrize("intervention", ["stochastic", "imperfect", "atomic"])
def test_latent_kinds_of_intervention(intervention, assert_sound, assert_recovered):
    data = simulate(
        n_variables=4, edges_per_node=1, n_samples=1500, intervention=intervention, random_state=1003
    )
    est = LatentInterventionDAG(intervention="imperfect" if intervention == "imperfect" else "perfect").fit(
        data.X
    )
    assert_sound(est, len(data.X), 4)
    assert_recovered(est, data, agreement=0.95)


def test_unknown_targets(data, table, assert_sound):
    names = np.array(["control", "d1", "d2", "d3", "d4"], dtype=object)[data.regimes]
    est = LatentInterventionDAG(observational="control").fit(table, regimes=names)
    assert_sound(est, 1000, 4)
    np.testing.assert_array_equal(est.adjacency_, data.adjacency)
    assert est.regime_names_ == ("control", "d1", "d2", "d3", "d4")
    assert list(est.targets_.index) == list(est.regime_names_)
    np.testing.assert_array_equal(est.targets_, data.targets)
    np.testing.assert_array_equal(est.regimes_, data.regimes)


def test_known_targets(data, table, assert_sound):
    targets = {
        k: [NAMES[j] for j in np.flatnonzero(row)] for k, row in enumerate(data.targets.to_numpy()) if k
    }
    est = LatentInterventionDAG().fit(table, regimes=data.regimes, targets=targets)
    assert_sound(est, 1000, 4)
    np.testing.assert_array_equal(est.adjacency_, data.adjacency)
    np.testing.assert_array_equal(est.targets_, data.targets)
    np.testing.assert_array_equal(est.target_probabilities_, data.targets)


def test_wrong_known_targets_are_kept(data, table):
    targets = {1: ["Akt", "Raf"], 2: [], 3: ["Erk"], 4: ["Mek"]}
    est = LatentInterventionDAG().fit(table, regimes=data.regimes, targets=targets)
    expected = [[0, 0, 0, 0], [1, 0, 0, 1], [0, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0]]
    np.testing.assert_array_equal(est.targets_, expected)


@pytest.mark.parametrize("unknown", [-1, None, np.nan])
def test_semi_supervised(data, table, unknown, assert_sound, assert_recovered):
    """A third of the labels known; regimes 3 and 4 never labelled, so they have to be found."""
    rng = np.random.default_rng(0)
    shown = (rng.random(1000) < 0.33) & (data.regimes < 3)
    labels = np.where(shown, data.regimes.astype(object), unknown)
    est = LatentInterventionDAG().fit(table, regimes=labels)
    assert_sound(est, 1000, 4)
    assert_recovered(est, data)
    assert est.regime_names_[:3] == (0, 1, 2)
    assert est.n_regimes_ == 5
    np.testing.assert_array_equal(est.regimes_[shown], data.regimes[shown])
    np.testing.assert_array_equal(est.targets_.to_numpy()[:3], data.targets.to_numpy()[:3])


def test_semi_supervised_with_known_targets(data, table, assert_sound):
    """Targets of a regime that no row is labelled with: its rows are found by what it did."""
    rng = np.random.default_rng(1)
    labels = np.where((rng.random(1000) < 0.33) & (data.regimes < 4), data.regimes, -1)
    est = LatentInterventionDAG().fit(table, regimes=labels, targets=data.targets.set_axis(NAMES, axis=1))
    assert_sound(est, 1000, 4)
    np.testing.assert_array_equal(est.adjacency_, data.adjacency)
    np.testing.assert_array_equal(est.targets_.to_numpy()[:5], data.targets)
    assert adjusted_rand_index(data.regimes, est.regimes_) > 0.97


def test_unlabelled_observational_rows_become_regime_zero(data, table, assert_sound, assert_recovered):
    """Only interventions were ever labelled."""
    rng = np.random.default_rng(2)
    labels = np.where((rng.random(1000) < 0.33) & (data.regimes > 0), data.regimes, -1)
    est = LatentInterventionDAG().fit(table, regimes=labels)
    assert_sound(est, 1000, 4)
    assert_recovered(est, data)
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
def test_observational(seed, assert_sound):
    """One regime: the graph is found as far as observational data can tell."""
    data = simulate(
        n_variables=5, edges_per_node=1, n_regimes=1, n_samples=3000, preset="dcdi", random_state=seed
    )
    est = LatentInterventionDAG(max_regimes=1).fit(data.X)
    assert_sound(est, 3000, 5)
    assert est.n_regimes_ == 1
    assert est.regime_names_ == (0,)
    nothing = np.zeros((1, 5), dtype=int)
    np.testing.assert_array_equal(
        essential_graph(est.adjacency_.to_numpy(), nothing),
        essential_graph(data.adjacency.to_numpy(), nothing),
    )


def test_no_observational_rows(data, assert_sound):
    kept = data.regimes > 0
    for labels in (None, data.regimes[kept]):
        est = LatentInterventionDAG(observational=None).fit(data.X[kept], regimes=labels)
        assert_sound(est, int(kept.sum()), 4)
        assert not est.has_observational_
        assert est.n_regimes_ == 5
        assert est.regime_weights_[0] == 0.0
        assert est.responsibilities_[:, 0].max() == 0.0
        assert (est.targets_.to_numpy()[1:].sum(axis=1) == 1).all()
        assert np.isfinite(est.sample(10).to_numpy()).all(), "the reference can still be sampled"
