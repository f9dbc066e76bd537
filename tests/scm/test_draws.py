"""What `simulate` draws: the numbers of the presets, and the statistics of the rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from latentdo.scm import (
    MLP,
    PRESETS,
    Atomic,
    Gaussian,
    Imperfect,
    Laplace,
    Linear,
    NonadditiveMLP,
    Preset,
    Stochastic,
    simulate,
)


@pytest.mark.parametrize("intervention", ["stochastic", "atomic", "imperfect"])
@pytest.mark.parametrize("preset", ["paper", "dcdi"])
def test_rows_have_the_exact_moments_of_their_regime(preset, intervention):
    data = simulate(5, 1.5, "linear", intervention, 30000, preset, 4, targets_per_regime=(1, 2))
    for regime in range(data.n_regimes):
        rows = data.X[data.regimes == regime].to_numpy()
        mean, covariance = (moment.to_numpy() for moment in data.moments(regime))
        error = np.sqrt(np.diag(covariance) / len(rows))
        assert (np.abs(rows.mean(axis=0) - mean) <= 5 * error + 1e-9).all()
        products = (rows - mean)[:, :, None] * (rows - mean)[:, None, :]
        error = products.std(axis=0) / np.sqrt(len(rows))
        assert (np.abs(products.mean(axis=0) - covariance) <= 5 * error + 1e-9).all()
    assert not np.allclose(data.moments(0)[0], data.moments(1)[0])


@pytest.mark.parametrize("noise", ["student", "uniform", "laplace", "exponential", "gamma"])
def test_noise_families_change_the_shape_but_not_the_moments(noise):
    data = simulate(4, 1, n_samples=30000, preset="paper-hetero", noise=noise, standardize=False)
    gaussian = simulate(4, 1, n_samples=30000, preset="paper-hetero", standardize=False)
    for regime in (0, 3):
        np.testing.assert_allclose(data.moments(regime)[1], gaussian.moments(regime)[1])
    root = data.scm.order[0]
    values = data.X.loc[data.regimes == 0, root] / np.sqrt(data.scm[root].noise.variance)
    assert values.var() == pytest.approx(1.0, rel=0.1)
    assert stats.kstest(values, "norm").pvalue < 1e-3
    assert data.regime_scms[1].interventions["X1"].noise == gaussian.regime_scms[1].interventions["X1"].noise


@pytest.mark.parametrize("mechanism", ["linear", "nonlinear", "nonadditive"])
@pytest.mark.parametrize("intervention", ["stochastic", "imperfect"])
def test_perfect_interventions_make_a_variable_independent_of_its_parents(mechanism, intervention):
    data = simulate(
        6, 2.5, mechanism, intervention, 21000, "dcdi", 1
    )  # the complete graph: others are parents
    threshold, dependent = 4.5 / np.sqrt(3000), 0
    for regime in range(1, 7):
        target = f"X{regime}"
        rows = data.X[data.regimes == regime]
        for parent in np.array(data.X.columns)[data.adjacency[target] == 1]:
            linear = abs(stats.spearmanr(rows[parent], rows[target]).statistic)
            scatter = abs(
                stats.spearmanr(rows[parent], (rows[target] - rows[target].median()) ** 2).statistic
            )
            dependent += max(linear, scatter) > threshold
    assert (dependent == 0) if intervention == "stochastic" else (dependent >= 8)


@pytest.mark.parametrize("intervention", ["stochastic", "atomic", "imperfect"])
def test_non_targets_keep_their_mechanism_and_targets_do_not(intervention):
    data = simulate(5, 2, "linear", intervention, 24000, "dcdi", 2, standardize=False, targets_per_regime=2)
    for regime in range(data.n_regimes):
        rows = data.X[data.regimes == regime]
        for name in data.X.columns:
            weights = data.scm[name].mechanism.weights
            residual = rows[name] - sum(weight * rows[parent] for parent, weight in weights.items())
            noise = data.scm[name].noise
            keeps = stats.kstest(residual, stats.norm(noise.mean, np.sqrt(noise.variance)).cdf).pvalue > 1e-4
            if weights:  # and the parents explain no more than the true weights say
                parents = rows[list(weights)].to_numpy()
                design = np.column_stack([parents[:, parents.std(axis=0) > 0], np.ones(len(rows))])
                change, *_ = np.linalg.lstsq(design, residual, rcond=None)
                error = np.sqrt(noise.variance * np.diag(np.linalg.inv(design.T @ design)))
                keeps &= (np.abs(change) < 4.5 * error).all()
            assert keeps == (data.targets.loc[regime, name] == 0)


def models(n=60, n_samples=60, **arguments):
    return [simulate(n_samples=n_samples, random_state=seed, **arguments) for seed in range(n)]


def weights_of(data):
    return [weight for name in data.scm.names for weight in data.scm[name].mechanism.weights.values()]


def interventions_of(data):
    return [scm.interventions[name] for scm in data.regime_scms for name in scm.targets]


@pytest.mark.parametrize("intervention", ["stochastic", "imperfect", "atomic"])
def test_paper_numbers(intervention):
    drawn = models(n_variables=10, edges_per_node=2, intervention=intervention)
    weights = np.concatenate([weights_of(data) for data in drawn])
    assert stats.kstest(weights, stats.norm(0, np.sqrt(2.0)).cdf).pvalue > 1e-3
    assert {data.scm[name].noise for data in drawn for name in data.scm.names} == {
        Gaussian(0.0, np.sqrt(0.015))
    }
    interventions = [one for data in drawn for one in interventions_of(data)]
    if intervention == "atomic":
        assert {type(one) for one in interventions} == {Atomic}
        shifts = np.array([one.value for one in interventions])
    else:
        assert {type(one) for one in interventions} == {
            Stochastic if intervention == "stochastic" else Imperfect
        }
        np.testing.assert_allclose([one.noise.variance for one in interventions], 0.1)
        shifts = np.array([one.noise.mean for one in interventions])
    assert stats.kstest(np.abs(shifts), stats.uniform(1.2, 1.0).cdf).pvalue > 1e-3
    assert stats.binomtest(int((shifts > 0).sum()), len(shifts)).pvalue > 1e-3
    if intervention == "imperfect":
        new = [weight for one in interventions for weight in one.mechanism.weights.values()]
        assert stats.kstest(new, stats.norm(0, np.sqrt(2.0)).cdf).pvalue > 1e-3
        assert not set(new) & set(weights)


def test_paper_pairs():
    drawn = models(300, preset="paper-pairs", n_samples=3)
    kinds = [tuple(data.adjacency.to_numpy().ravel()) for data in drawn]
    counts = [kinds.count(kind) for kind in ((0, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0))]
    assert sum(counts) == 300
    assert stats.chisquare(counts).pvalue > 1e-3
    data = simulate(preset="paper-pairs")
    np.testing.assert_array_equal(np.bincount(data.regimes), [333] * 3)


def test_paper_hetero_differs_only_in_its_noise():
    drawn = models(preset="paper-hetero")
    variances = [data.scm[name].noise.variance for data in drawn for name in data.scm.names]
    assert stats.kstest(variances, stats.uniform(0.005, 0.045).cdf).pvalue > 1e-3
    plain = simulate(random_state=0, n_samples=60)
    assert weights_of(drawn[0]) == weights_of(plain)
    assert interventions_of(drawn[0]) == interventions_of(plain)


def test_released_numbers():
    drawn = models(preset="released", edges_per_node=2)
    weights = np.abs(np.concatenate([weights_of(data) for data in drawn]))
    assert stats.kstest(weights, stats.uniform(0.25, 1.0).cdf).pvalue > 1e-3
    noises = [one.noise for data in drawn for one in interventions_of(data)]
    plain = [data.scm[name].noise for data in drawn for name in data.scm.names]
    np.testing.assert_allclose([noise.variance for noise in plain + noises], 0.04)
    assert stats.kstest([abs(noise.mean) for noise in noises], stats.uniform(4.0, 4.0).cdf).pvalue > 1e-3


def test_dcdi_numbers():
    drawn = models(preset="dcdi", edges_per_node=2)
    weights = np.concatenate([weights_of(data) for data in drawn])
    assert stats.kstest(np.abs(weights), stats.uniform(0.25, 0.75).cdf).pvalue > 1e-3
    assert stats.binomtest(int((weights > 0).sum()), len(weights)).pvalue > 1e-3
    variances = [data.scm[name].noise.variance for data in drawn for name in data.scm.names]
    assert stats.kstest(variances, stats.uniform(1.0, 1.0).cdf).pvalue > 1e-3
    assert {one.noise for data in drawn for one in interventions_of(data)} == {Gaussian(2.0), Gaussian(-2.0)}


def test_separation_is_measured_in_standard_deviations_of_the_intervened_noise():
    wide = simulate(preset="dcdi", separation=4, n_samples=60)
    assert {one.noise for one in interventions_of(wide)} == {Gaussian(4.0), Gaussian(-4.0)}
    sizes = np.array([
        abs(one.noise.mean) / np.sqrt(one.noise.variance)
        for data in models(separation=3.0)
        for one in interventions_of(data)
    ])  # fmt: skip
    # The range keeps its shape: its midpoint 1.7 moves to 3 standard deviations.
    assert stats.kstest(sizes * 1.7 / 3.0, stats.uniform(1.2, 1.0).cdf).pvalue > 1e-3
    natural = 1.7 / np.sqrt(0.1)
    np.testing.assert_allclose(simulate(separation=natural, n_samples=60).X, simulate(n_samples=60).X)
    atomic = simulate(preset="dcdi", intervention="atomic", separation=3, n_samples=60)
    assert {abs(one.value) for one in interventions_of(atomic)} == {3.0}


def test_nonlinear_models_are_networks_with_five_units():
    data = simulate(8, 2, "nonlinear", n_samples=90)
    for name in data.scm.names:
        mechanism = data.scm[name].mechanism
        if data.adjacency[name].sum():
            assert isinstance(mechanism, MLP)
            assert mechanism.hidden_weights.shape == (data.adjacency[name].sum(), 5)
        else:  # a root is its noise
            assert mechanism == Linear()


def test_nonadditive_models_have_the_noise_inside_also_at_the_roots():
    data = simulate(8, 2, "nonadditive", n_samples=90)
    for name in data.scm.names:
        mechanism = data.scm[name].mechanism
        assert isinstance(mechanism, NonadditiveMLP)
        assert mechanism.hidden_weights.shape == (data.adjacency[name].sum() + 1, 5)


@pytest.mark.parametrize("mechanism", ["nonlinear", "nonadditive"])
def test_imperfect_interventions_on_networks_keep_the_hidden_layer(mechanism):
    data = simulate(6, 2, mechanism, "imperfect", 140)
    assert data.adjacency.to_numpy().any()
    for scm in data.regime_scms[1:]:
        (name,) = scm.targets
        before, after = data.scm[name].mechanism, scm[name].mechanism
        assert abs(scm[name].noise.mean) >= 1.2
        if before.parents or mechanism == "nonadditive":
            np.testing.assert_array_equal(before.hidden_weights, after.hidden_weights)
            assert before.output_bias == after.output_bias
            assert (before.output_weights != after.output_weights).all()


def test_an_argument_that_is_given_wins_over_the_preset():
    data = simulate(n_variables=3, n_samples=400, preset="paper-pairs")
    assert data.X.shape == (400, 3)
    assert simulate(preset="paper-pairs", edge_probability=0).adjacency.to_numpy().sum() == 0
    assert simulate(4, 1.5, preset="paper-pairs").adjacency.to_numpy().sum() == 6


def test_a_preset_of_ones_own():
    mine = replace(PRESETS["paper"], noise_variance=(0.5, 0.5), n_variables=3, n_hidden=7)
    data = simulate(preset=mine, n_samples=40, mechanism="nonadditive")
    assert data.scm["X1"].noise.variance == pytest.approx(0.5)
    assert data.scm["X1"].mechanism.hidden_bias.shape == (7,)
    with pytest.raises(ValueError, match="Preset: shift must be a range"):
        replace(PRESETS["paper"], shift=(2.0, 1.0))
    with pytest.raises(ValueError, match="intervention_variance must be positive"):
        replace(PRESETS["paper"], intervention_variance=0.0)
    with pytest.raises(ValueError, match="exactly one of edges_per_node and edge_probability"):
        replace(PRESETS["paper"], edge_probability=0.5)
    assert isinstance(mine, Preset)


def test_the_number_of_rows_does_not_change_the_model():
    small, large = simulate(n_samples=110), simulate(n_samples=2200)
    np.testing.assert_array_equal(small.adjacency, large.adjacency)
    assert weights_of(small) == weights_of(large)
    assert interventions_of(small) == interventions_of(large)


def test_the_kind_of_intervention_does_not_change_the_observational_rows():
    tables = [
        simulate(5, intervention=kind, n_samples=600, standardize=False, shuffle=False, targets_per_regime=2)
        for kind in ("stochastic", "atomic", "imperfect")
    ]
    for other in tables[1:]:
        pd.testing.assert_frame_equal(tables[0].X[:100], other.X[:100], check_exact=True)
    shifts = [one.noise.mean for one in interventions_of(tables[0])]
    assert shifts == [one.value for one in interventions_of(tables[1])]
    assert shifts == [one.noise.mean for one in interventions_of(tables[2])]


def test_noise_of_the_model_is_the_named_family():
    assert all(
        isinstance(simulate(noise="laplace", n_samples=60).scm[f"X{j}"].noise, Laplace) for j in (1, 5)
    )
