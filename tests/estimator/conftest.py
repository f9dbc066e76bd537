"""One data set and one fit that the tests of the estimator share, and what holds for fits."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo import LatentInterventionDAG, simulate
from latentdo.graphs import is_dag
from latentdo.metrics import adjusted_rand_index, match_regimes

NAMES = ["Raf", "Mek", "Erk", "Akt"]


@pytest.fixture(scope="session")
def data():
    """Four variables, five regimes, paper preset: well separated."""
    return simulate(n_variables=4, edges_per_node=1, n_samples=1000, random_state=3)


@pytest.fixture(scope="session")
def table(data):
    """The same rows in odd units under real names."""
    return data.X.set_axis(NAMES, axis=1) * [1.0, 50.0, 0.01, 3.0] + [10.0, 0.0, -5.0, 1e3]


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def assert_recovered():
    return _assert_recovered


@pytest.fixture(scope="session")
def assert_sound():
    return _assert_sound
