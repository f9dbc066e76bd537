"""Snapshots of a service: exact moments, and the demo's promise that the truth is found."""

import warnings

import numpy as np
import pytest

from latentdo import LatentInterventionDAG, metrics
from latentdo.scm import INCIDENTS, simulate_snapshots


def test_rows_follow_the_models_of_their_regimes():
    data = simulate_snapshots(40_000, random_state=3)
    for k, world in enumerate(data.regime_scms):
        rows = data.X[data.regimes == k]
        error = np.sqrt(np.diag(world.covariance()) / len(rows))
        np.testing.assert_array_less(np.abs(rows.mean() - world.mean()) / error, 5.0)
    assert [data.targets.columns[row.to_numpy() == 1][0] for _, row in data.targets.iloc[1:].iterrows()] == [
        *INCIDENTS.values()
    ]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_quick_fit_finds_arrows_and_incidents(seed):
    data = simulate_snapshots(random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # what the demo promises to be clean
        est = LatentInterventionDAG("linear", noise="gaussian").fit(data.X)
    assert metrics.shd(data.adjacency, est.adjacency_) == 0
    hit = {frozenset(est.targets_.columns[row == 1]) for row in est.targets_.to_numpy()[1:]}
    assert hit == {frozenset([target]) for target in INCIDENTS.values()}
