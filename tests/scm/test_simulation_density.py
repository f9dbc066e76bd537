"""The true log-densities and the best possible assignment of rows to regimes."""

import numpy as np
import pytest
from scipy import integrate, stats

from latentdo.scm import ATOM_STD, simulate


def hits(data):
    return float((data.bayes_responsibilities().argmax(axis=1) == data.regimes).mean())


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("intervention", ["stochastic", "imperfect"])
def test_linear_gaussian_densities_are_multivariate_normal_in_the_units_of_the_rows(
    intervention, standardize
):
    data = simulate(
        5, 1.5, intervention=intervention, n_samples=300, targets_per_regime=(1, 3), standardize=standardize
    )
    density = data.log_density()
    assert density.shape == (300, 6)
    for regime in range(6):
        mean, covariance = data.moments(regime)
        expected = stats.multivariate_normal(mean, covariance).logpdf(data.X)
        np.testing.assert_allclose(density[:, regime], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "uniform", "exponential"])
def test_nonlinear_densities_integrate_to_one_in_every_regime(noise):
    data = simulate(2, mechanism="nonlinear", preset="dcdi", noise=noise, edge_probability=1.0, n_samples=300)
    grid = np.linspace(-14.0, 14.0, 1401)
    first, second = np.meshgrid(grid, grid, indexing="ij")
    density = np.exp(data.log_density(np.column_stack([first.ravel(), second.ravel()])))
    for regime in range(3):
        inner = integrate.trapezoid(density[:, regime].reshape(first.shape), grid, axis=1)
        assert integrate.trapezoid(inner, grid) == pytest.approx(1.0, abs=0.02)


def test_shared_terms_give_the_same_as_every_model_by_itself():
    data = simulate(6, 2, "nonlinear", "imperfect", 140, noise="uniform", targets_per_regime=2)
    values = data.X * data.scale + data.mean
    expected = np.column_stack([scm.log_density(values) for scm in data.regime_scms])
    density = data.log_density()
    assert np.isneginf(density).any()  # bounded noise: some rows are impossible in some regimes
    assert not np.isnan(density).any()
    np.testing.assert_allclose(density, expected + np.log(data.scale).sum())
    assert np.isfinite(density[np.arange(len(values)), data.regimes]).mean() > 0.99


def test_responsibilities_are_calibrated_where_regimes_overlap():
    data = simulate(preset="dcdi", n_samples=22000, random_state=1)
    posterior = data.bayes_responsibilities()
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)
    right = posterior[np.arange(len(posterior)), data.regimes]
    # Under the true posterior, the expected probability of the true regime is the sum of squares.
    gap = right - (posterior**2).sum(axis=1)
    assert abs(gap.mean()) < 4 * gap.std() / np.sqrt(len(gap))
    assert 0.2 < hits(data) < 0.8
    # ... and regime by regime the posterior mass is the number of rows.
    indicator = data.regimes[:, None] == np.arange(11)
    error = (posterior - indicator).std(axis=0) / np.sqrt(len(posterior))
    assert (np.abs((posterior - indicator).mean(axis=0)) < 4.5 * error).all()


def test_difficulty_follows_separation():
    accuracy = [hits(simulate(preset="dcdi", separation=separation)) for separation in (0, 2, 4, 8)]
    assert (np.diff(accuracy) > 0.05).all()
    assert accuracy[-1] > 0.99


@pytest.mark.parametrize(("mechanism", "least"), [("linear", 0.98), ("nonlinear", 0.9)])
def test_the_papers_regimes_can_nearly_be_told_apart(mechanism, least):
    assert np.mean([hits(simulate(mechanism=mechanism, random_state=seed)) for seed in range(3)]) > least


def test_weights_of_the_regimes_count():
    data = simulate(1, n_samples=4000, preset="dcdi", separation=0, regime_weights=[9, 1])
    plain = simulate(1, n_samples=4000, preset="dcdi", separation=0, regime_weights=[1, 1])
    ratio = data.log_density()[:, 0] - data.log_density()[:, 1]
    posterior = data.bayes_responsibilities()
    np.testing.assert_allclose(np.log(posterior[:, 0] / posterior[:, 1]), ratio + np.log(9))
    assert plain.bayes_responsibilities()[:, 0].mean() == pytest.approx(0.5, abs=0.02)


def test_regimes_without_rows_get_no_responsibility():
    data = simulate(4, n_samples=400, observational=False)
    assert (data.bayes_responsibilities()[:, 0] == 0).all()


def test_atomic_regimes_are_recognised_and_use_the_documented_width():
    data = simulate(intervention="atomic", n_samples=1100, standardize=False)
    assert hits(data) == 1.0
    row = data.X[data.regimes == 3].iloc[[0]]
    own = data.log_density(row)[0, 3]
    others = data.scm.log_density_terms(row)[0]
    assert own == pytest.approx(np.delete(others, 2).sum() + stats.norm.logpdf(0.0, scale=ATOM_STD))
    # Rounding in the change of units does not matter: the width is far above it.
    data = simulate(10, 4, intervention="atomic", n_samples=1100, standardize=False)
    scaled = simulate(10, 4, intervention="atomic", n_samples=1100)
    assert not np.array_equal(scaled.X * scaled.scale + scaled.mean, data.X)
    assert hits(scaled) == 1.0
    rows = np.arange(1100)
    np.testing.assert_allclose(
        scaled.log_density()[rows, scaled.regimes] - np.log(scaled.scale).sum(),
        data.log_density()[rows, data.regimes],
        atol=1e-6,
    )


def test_other_rows_may_be_given_in_any_column_order():
    data = simulate(4, n_samples=200)
    fresh = (data.regime_scms[2].sample(50, 0) - data.mean) / data.scale
    np.testing.assert_array_equal(data.log_density(fresh), data.log_density(fresh[["X3", "X1", "X4", "X2"]]))
    assert (data.bayes_responsibilities(fresh).argmax(axis=1) == 2).mean() > 0.9


def test_impossible_rows_get_the_weights():
    data = simulate(2, n_samples=40, noise="uniform", regime_weights=[2, 1, 1], edge_probability=0)
    posterior = data.bayes_responsibilities(np.array([[1e6, 1e6]]))
    np.testing.assert_allclose(posterior, [[0.5, 0.25, 0.25]])


def test_nonadditive_noise_has_no_density_and_says_so():
    data = simulate(3, mechanism="nonadditive", n_samples=100)
    with pytest.raises(NotImplementedError, match=r"variable 'X1'.*additive mechanism"):
        data.log_density()
    with pytest.raises(ValueError, match="exact moments need linear mechanisms"):
        data.moments(1)
    with pytest.raises(ValueError, match="regime 9 does not exist"):
        data.moments(9)
