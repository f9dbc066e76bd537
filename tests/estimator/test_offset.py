"""Counts in proportion to a known size of their rows: against closed forms, and wherever rows are asked about."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import nbinom, poisson

from latentdo import BootstrapDAG, LatentInterventionDAG, TunedDAG
from latentdo.data import Kind
from latentdo.model.mechanisms.exposed import ExposedCount
from latentdo.model.mechanisms.inputs import Expanded, Inputs
from latentdo.model.mechanisms.response import RIDGE

N = 500


def table(seed=1000, n=N):
    """a -> y -> w, counts in proportion to a size, and causes by their rates; a third of w is set."""
    rng = np.random.default_rng(seed)
    size = 1000.0 * np.exp(rng.normal(0.0, 0.7, n))
    regimes = (rng.random(n) < 0.3).astype(np.int64)
    a = rng.normal(size=n)
    y = rng.poisson(size / 1000.0 * np.exp(1.0 + 0.6 * a))
    rate = np.exp(0.5 + 0.8 * np.log1p(y / (size / 1000.0)))
    w = rng.poisson(size / 1000.0 * np.where(regimes == 1, 30.0, rate))
    return pd.DataFrame({"a": a, "y": y, "w": w}), size, regimes


@pytest.fixture(scope="module")
def fitted():
    X, size, _ = table()
    return LatentInterventionDAG(density="linear").fit(X, offset=size)


def test_a_poisson_rate_is_the_sum_of_counts_over_the_sum_of_sizes():
    rng = np.random.default_rng(0)
    size, weights = np.exp(rng.normal(size=300)), rng.uniform(0.5, 2.0, 300)
    y = rng.poisson(4.0 * size).astype(np.float64)
    offset = np.log(size)[:, None]
    found = ExposedCount.fit(offset, y, weights)
    rate = (weights @ y) / (weights @ size)
    # The weak prior pulls by RIDGE log(rate) of some 1200 counts.
    assert found.coefficients[0, 0] == pytest.approx(
        np.log(rate), abs=2.0 * RIDGE * np.log(rate) / (weights @ y)
    )
    assert found.dispersion == 0.0
    mean = np.exp(found.coefficients[0, 0]) * size
    np.testing.assert_allclose(found.log_density(offset, y), poisson.logpmf(y, mean), atol=1e-9)


@pytest.mark.parametrize("dispersion", [0.0, 0.4])
def test_an_offset_is_a_coefficient_of_one(dispersion):
    """Twice the size is twice the mean, also of what an intervention left, and of dispersed counts."""
    x = np.column_stack([np.linspace(-1.0, 1.0, 9), np.full(9, np.log(2.0))])
    y = np.arange(9.0)
    for coefficients in ([[0.5, 0.8]], [[0.5]]):
        law = ExposedCount(np.array(coefficients), np.array([dispersion, 0.0]))
        mean = 2.0 * np.exp(0.5 + (0.8 * x[:, 0] if len(coefficients[0]) > 1 else 0.0))
        expected = nbinom(1.0 / 0.4, 1.0 / (1.0 + 0.4 * mean)) if dispersion else poisson(mean)
        np.testing.assert_allclose(law.log_density(x, y), expected.logpmf(y), atol=1e-9)
        np.testing.assert_allclose(law.mean(x), mean)


def test_counts_cause_by_their_rates():
    inputs = Inputs.of([Kind("count")], np.array([[3.0], [8.0], [1.0]]), np.log([1.0, 2.0, 0.5]))
    columns = inputs.expand(np.array([[4.0], [8.0]]), np.log([1.0, 2.0]))
    np.testing.assert_allclose(columns[0], columns[1])
    again = inputs.contract(columns, [Kind("count")], np.log([1.0, 2.0]))
    np.testing.assert_allclose(again[:, 0], [4.0, 8.0])
    mechanism = Expanded(inputs, ExposedCount(np.array([[0.1, 0.7]]), np.array([0.2, 0.1])), exposed=True)
    (other,) = Expanded.unpack(Expanded.pack([mechanism]), [np.array([0])])
    x, y = np.array([[4.0, 0.0], [8.0, 0.7]]), np.array([2.0, 5.0])
    np.testing.assert_array_equal(mechanism.log_density(x, y), other.log_density(x, y))
    below = mechanism.below(np.repeat(x, 500, axis=0), np.repeat(y, 500), np.random.default_rng(0))
    assert ((below > 0.0) & (below < 1.0)).all()


def test_the_graph_is_that_of_rates(fitted):
    """Without the offset every count is a sign of the size, and so of all others."""
    X, size, regimes = table()
    assert fitted.adjacency_.to_numpy().tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert fitted.targets_.to_numpy().tolist() == [[0, 0, 0], [0, 0, 1]]
    assert (fitted.regimes_ == regimes).mean() > 0.9
    assert fitted.evidence_ > LatentInterventionDAG(density="linear").fit(X).evidence_ + 100.0
    np.testing.assert_allclose(fitted.predict_proba(X, offset=size), fitted.responsibilities_)


def test_only_ratios_of_sizes_matter():
    X, size, regimes = table(n=300)
    one, scaled = (
        LatentInterventionDAG(density="linear").fit(X, regimes=regimes, offset=by * size) for by in (1.0, 7.0)
    )
    assert scaled.evidence_ == pytest.approx(one.evidence_, abs=1e-6)
    assert scaled.score(X, offset=7.0 * size) == pytest.approx(one.score(X, offset=size), abs=1e-9)


def test_samples_are_in_proportion_to_the_size(fitted):
    typical, large = fitted.sample(4000), fitted.sample(4000, offset=10.0 * np.exp(np.log(table()[1]).mean()))
    assert large["y"].mean() / typical["y"].mean() == pytest.approx(10.0, rel=0.05)
    assert large["w"].mean() / typical["w"].mean() == pytest.approx(10.0, rel=0.15)
    assert list(typical.columns) == ["a", "y", "w"]


def test_what_is_asked_of_rows_needs_their_sizes(fitted, tmp_path):
    X, size, _ = table(seed=1001, n=30)
    explained = fitted.explain(X, rows=[3], offset=size)
    assert np.isfinite(explained["log_ratio"]).all()
    assert fitted.effect("a", "w").loc["w", "ratio"] > 1.0
    fitted.save(tmp_path / "m")
    again = LatentInterventionDAG.load(tmp_path / "m")
    np.testing.assert_array_equal(again.score_samples(X, offset=size), fitted.score_samples(X, offset=size))
    np.testing.assert_array_equal(again.result_.where.offset, table()[1])
    assert "offset" in again.result_.regime_table()
    with pytest.raises(ValueError, match=r"pass offset= .*typical"):
        again.predict(X)
    with pytest.raises(ValueError, match=r"offset is 0 in row 3 .*above 0"):
        fitted.predict(X, offset=np.where(np.arange(30) == 3, 0.0, size))
    with pytest.raises(ValueError, match="one entry per row"):
        fitted.predict(X, offset=size[:5])


def test_bad_offsets_are_refused():
    X, size, _ = table(n=60)
    with pytest.raises(ValueError, match=r"no column is a count.*kinds="):
        LatentInterventionDAG().fit(pd.DataFrame({"a": X["a"], "b": X["a"] ** 2}), offset=size)
    plain = LatentInterventionDAG(density="linear", max_regimes=1).fit(X)
    with pytest.raises(ValueError, match="fitted without one"):
        plain.predict(X, offset=size)
    with pytest.raises(ValueError, match="fitted without one"):
        plain.sample(offset=2.0)


def test_labels_holes_resamples_trials_and_refits_keep_the_sizes():
    X, size, regimes = table(n=300)
    model = LatentInterventionDAG(density="linear", missing="model", max_regimes=2)
    some = pd.Series(regimes).astype(object).mask(np.arange(300) % 3 == 0)
    known = model.fit(X, regimes=some, offset=size)
    assert (known.regimes_ == regimes).mean() > 0.9
    assert known.diagnose(1).repeats["hamming"].iloc[0] <= 2
    holes = X.mask(np.random.default_rng(0).random(X.shape) < 0.1)
    with pytest.warns(UserWarning, match="missing"):
        found = model.fit(holes, offset=size)
    assert found.adjacency_.loc["y", "w"] == 1
    one = LatentInterventionDAG(density="linear", max_regimes=1)
    assert len(BootstrapDAG(one, n_resamples=2).fit(X, offset=size).resamples_) == 2
    tuned = TunedDAG(one, n_trials=1, space={"edge_prior": (-1.0, 0.0)}).fit(X, offset=size)
    assert tuned.best_estimator_.result_.where.offset is not None
