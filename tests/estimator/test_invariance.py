"""Reproducible, and indifferent to what does not matter."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config

from latentdo import LatentInterventionDAG
from latentdo.metrics import adjusted_rand_index

NAMES = ["Raf", "Mek", "Erk", "Akt"]


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
def test_any_source_of_randomness(table, data, random_state, assert_recovered):
    assert_recovered(LatentInterventionDAG(random_state=random_state).fit(table), data)


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


def test_parallel_starts_find_the_same(table, data, assert_recovered):
    with parallel_config(backend="threading"):
        est = LatentInterventionDAG(n_jobs=2, n_init=2).fit(table)
    assert_recovered(est, data)
