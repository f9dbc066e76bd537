"""Rows drawn from a fitted model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from latentdo import LatentInterventionDAG

NAMES = ["Raf", "Mek", "Erk", "Akt"]


def _exact_mean(est, regime, do, equations):
    """Mean of the fitted linear model, solved rather than sampled, in the user's units."""
    model, preprocessor = est.result_.model, est.result_.preprocessor
    matrix, intercept, _ = equations(model, regime)
    for j, name in enumerate(est.result_.columns):
        if name in do:
            intercept[j], matrix[j] = preprocessor.forward_column(name, do[name])[0], 0.0
    z = np.linalg.solve(np.eye(len(matrix)) - matrix, intercept)
    return preprocessor.inverse(z[None])[0]


@pytest.mark.parametrize("regime", [0, 1, 3])
@pytest.mark.parametrize("do", [{}, {"Mek": 60.0}, {"Raf": 9.0, "Akt": 1001.0}])
def test_samples_have_the_exact_mean(fitted, regime, do, equations):
    rows = fitted.sample(40_000, regime=regime, do=do, random_state=1)
    error = (rows.mean() - _exact_mean(fitted, regime, do, equations)).abs()
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
