"""`simulate`: what a benchmark data set is made of, by structure and by statistics."""

import hashlib
import os
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from latentdo.graphs import is_dag
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


def digest(data):
    return (
        data.X.to_numpy().tobytes(),
        data.regimes.tobytes(),
        data.targets.to_numpy().tobytes(),
        data.adjacency.to_numpy().tobytes(),
    )


def raw(data):
    """Rows in the units of the model."""
    return data.X * data.scale + data.mean


# -- shape and labels ------------------------------------------------------------------------------


def test_the_default_is_the_papers_main_benchmark():
    data = simulate()
    assert data.X.shape == (9999, 10)  # 11 times floor(10000 / 11)
    assert list(data.X.columns) == [f"X{j}" for j in range(1, 11)]
    assert data.regimes.dtype.kind == "i"
    np.testing.assert_array_equal(np.bincount(data.regimes), [909] * 11)
    np.testing.assert_array_equal(data.targets, np.vstack([np.zeros(10), np.eye(10)]))
    assert list(data.targets.columns) == list(data.adjacency.columns) == list(data.X.columns)
    assert data.scm.is_linear
    assert data.n_regimes == len(data.regime_scms) == 11
    assert data.regime_scms[0] is data.scm
    np.testing.assert_array_equal(data.scm.adjacency, data.adjacency)


def test_positional_order_is_fixed():
    data = simulate(4, 1, "nonlinear", "imperfect", 500, "dcdi", 3)
    named = simulate(
        n_variables=4,
        edges_per_node=1,
        mechanism="nonlinear",
        intervention="imperfect",
        n_samples=500,
        preset="dcdi",
        random_state=3,
    )
    assert digest(data) == digest(named)


def test_columns_are_standardised_over_all_rows_and_can_be_turned_back():
    data = simulate(n_samples=2000, random_state=2)
    np.testing.assert_allclose(data.X.mean(), 0.0, atol=1e-10)
    np.testing.assert_allclose(data.X.std(ddof=0), 1.0)
    plain = simulate(n_samples=2000, random_state=2, standardize=False)
    np.testing.assert_allclose(raw(data), plain.X, rtol=1e-10, atol=1e-12)
    assert (plain.mean == 0).all()
    assert (plain.scale == 1).all()


def test_rows_are_shuffled_together_with_their_labels():
    data, sorted_data = simulate(n_samples=1100), simulate(n_samples=1100, shuffle=False)
    assert (np.diff(sorted_data.regimes) >= 0).all()
    assert (np.diff(data.regimes) < 0).any()
    pairs = {(*row, regime) for row, regime in zip(data.X.to_numpy().round(8), data.regimes, strict=True)}
    expected = zip(sorted_data.X.to_numpy().round(8), sorted_data.regimes, strict=True)
    assert pairs == {(*row, regime) for row, regime in expected}


def test_no_two_rows_share_their_noise():
    data = simulate(3, edge_probability=0.0, n_samples=4000, standardize=False)
    for name in data.X.columns:
        assert data.X[name].is_unique


def test_unequal_regimes():
    weights = [4, 1, 2, 0, 1]
    data = simulate(4, n_samples=800, regime_weights=weights)
    np.testing.assert_array_equal(np.bincount(data.regimes, minlength=5), [400, 100, 200, 0, 100])
    np.testing.assert_allclose(data.regime_weights, np.array(weights) / 8)
    assert data.targets.shape == (5, 4)


def test_sizes_are_floors_but_exact_shares_do_not_fall_below():
    data = simulate(1, n_samples=100, regime_weights=[0.29, 0.71])  # 100 * 0.29 is 28.999999999999996
    np.testing.assert_array_equal(np.bincount(data.regimes), [29, 71])
    np.testing.assert_array_equal(np.bincount(simulate(2, n_samples=11).regimes), [3, 3, 3])


def test_no_observational_rows():
    data = simulate(5, n_samples=503, observational=False)
    np.testing.assert_array_equal(np.bincount(data.regimes, minlength=6), [0] + [100] * 5)
    assert data.targets.shape == (6, 5)
    assert data.targets.loc[0].sum() == 0
    assert data.regime_scms[0].targets == ()


def test_observational_rows_only():
    data = simulate(5, n_samples=100, n_regimes=1)
    assert (data.regimes == 0).all()
    assert len(data.X) == 100
    assert data.targets.shape == (1, 5)


def test_several_targets_a_regime():
    data = simulate(8, n_samples=900, targets_per_regime=3)
    assert (data.targets.loc[1:].sum(axis=1) == 3).all()
    assert (np.diag(data.targets.loc[1:]) == 1).all()  # intervention k hits variable k, and others
    drawn = simulate(8, n_samples=4100, n_regimes=41, targets_per_regime=(1, 4)).targets.loc[1:].sum(axis=1)
    assert set(drawn) == {1, 2, 3, 4}


def test_targets_take_turns_where_the_number_of_regimes_is_given():
    few = simulate(10, n_samples=600, n_regimes=5).targets
    assert (few.sum() <= 1).all()
    assert few.sum().sum() == 4
    many = simulate(4, n_samples=1100, n_regimes=11).targets
    assert sorted(many.sum()) == [2, 2, 3, 3]
    assert not np.array_equal(many.loc[1:4], np.eye(4))  # in random order


def test_targets_are_what_the_models_of_the_regimes_changed():
    data = simulate(7, n_samples=800, targets_per_regime=(1, 3), intervention="imperfect")
    for regime, scm in enumerate(data.regime_scms):
        changed = [name for name in scm.names if scm[name] is not data.scm[name]]
        assert list(scm.targets) == changed == [name for name in scm.names if data.targets.loc[regime, name]]


@pytest.mark.parametrize("graph", ["erdos-renyi", "scale-free"])
def test_density_of_edges(graph):
    def edges(seed):
        return simulate(10, 2, n_samples=50, random_state=seed, graph=graph).adjacency.to_numpy().sum()

    counts = [edges(seed) for seed in range(60)]
    assert np.mean(counts) == pytest.approx(20, abs=1.5)
    assert simulate(6, edge_probability=1.0, n_samples=70).adjacency.to_numpy().sum() == 15
    assert simulate(6, edge_probability=0.0, n_samples=70).adjacency.to_numpy().sum() == 0


# -- statistics of the rows ------------------------------------------------------------------------


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


# -- what is drawn ---------------------------------------------------------------------------------


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


# -- seeds -----------------------------------------------------------------------------------------


def test_seeds_reproduce_bit_by_bit_also_in_another_process():
    here = simulate(6, 2, "nonlinear", "imperfect", 350, random_state=11, targets_per_regime=(1, 3))
    program = (
        "import hashlib; from latentdo.scm import simulate\n"
        "data = simulate(6, 2, 'nonlinear', 'imperfect', 350, random_state=11, targets_per_regime=(1, 3))\n"
        "print(hashlib.sha256(data.X.to_numpy().tobytes() + data.regimes.tobytes()).hexdigest())"
    )
    expected = hashlib.sha256(here.X.to_numpy().tobytes() + here.regimes.tobytes()).hexdigest()
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == expected


def test_generators_and_seeds():
    assert digest(simulate(4, random_state=5)) == digest(simulate(4, random_state=np.random.default_rng(5)))
    assert digest(simulate(4, random_state=5)) != digest(simulate(4, random_state=6))
    rng = np.random.default_rng(5)
    assert digest(simulate(4, random_state=rng)) != digest(simulate(4, random_state=rng))
    assert digest(simulate(4, random_state=None)) != digest(simulate(4, random_state=None))


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


def test_a_simulation_survives_pickling():
    data = simulate(4, mechanism="nonlinear", n_samples=100)
    copy = pickle.loads(pickle.dumps(data))
    assert digest(copy) == digest(data)
    pd.testing.assert_frame_equal(copy.scm.sample(5, 0), data.scm.sample(5, 0), check_exact=True)


# -- properties and refusals -----------------------------------------------------------------------


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    d=st.integers(1, 7),
    mechanism=st.sampled_from(["linear", "nonlinear", "nonadditive"]),
    intervention=st.sampled_from(["stochastic", "atomic", "imperfect"]),
    preset=st.sampled_from(sorted(PRESETS)),
    graph=st.sampled_from(["erdos-renyi", "scale-free"]),
    n_regimes=st.one_of(st.none(), st.integers(2, 9)),
    n_targets=st.integers(1, 3),
    observational=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_every_combination_is_consistent(
    d, mechanism, intervention, preset, graph, n_regimes, n_targets, observational, seed
):
    arguments = {
        "n_variables": d,
        "mechanism": mechanism,
        "intervention": intervention,
        "preset": preset,
        "graph": graph,
        "n_regimes": n_regimes,
        "targets_per_regime": (1, min(n_targets, d)),
        "observational": observational,
        "n_samples": 137,
        "random_state": seed,
    }
    data = simulate(**arguments)
    k = d + 1 if n_regimes is None else n_regimes
    assert data.targets.shape == (k, d)
    assert data.targets.loc[0].sum() == 0
    assert data.targets.loc[1:].sum(axis=1).between(1, min(n_targets, d)).all()
    assert is_dag(data.adjacency.to_numpy())
    sizes = np.bincount(data.regimes, minlength=k)
    assert sizes[0] == (137 // k if observational else 0)
    assert (sizes[1:] == 137 // (k if observational else k - 1)).all()
    assert len(data.X) == len(data.regimes) == sizes.sum()
    assert np.isfinite(data.X.to_numpy()).all()
    np.testing.assert_allclose(data.X.mean(), 0.0, atol=1e-9)
    for scm in data.regime_scms:
        assert (scm.adjacency.to_numpy() <= data.adjacency.to_numpy()).all()
    assert digest(simulate(**arguments)) == digest(data)


def test_constant_columns_are_centred_and_not_blown_up():
    data = simulate(1, intervention="atomic", observational=False, n_samples=50)
    assert (data.X == 0).all(axis=None)
    assert data.scale["X1"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n_variables": 0}, "n_variables=0 must be an integer of at least 1"),
        ({"n_variables": 3.0}, "n_variables=3.0 must be an integer"),
        ({"n_samples": 1e4}, "n_samples=10000.0 must be an integer"),
        ({"n_samples": 10}, "n_samples=10 leaves regime 0 without rows; ask for at least 11"),
        ({"mechanism": "quadratic"}, "mechanism='quadratic' is unknown: choose one of linear, nonlinear"),
        ({"intervention": "perfect"}, "intervention='perfect' is unknown"),
        ({"graph": "tree"}, "graph='tree' is unknown"),
        ({"noise": "pink"}, "noise='pink' is unknown"),
        ({"preset": "papers"}, "preset='papers' is unknown: choose one of paper, paper-pairs"),
        (
            {"n_variables": 5, "edges_per_node": 3},
            "edges_per_node=3 is impossible: with n_variables=5 .* and 2,",
        ),
        ({"edges_per_node": -1}, "edges_per_node=-1 is impossible"),
        ({"edges_per_node": "1"}, "edges_per_node='1' must be a finite number"),
        ({"edge_probability": 1.5}, "edge_probability=1.5 must lie between 0 and 1"),
        ({"edge_probability": np.nan}, "edge_probability=nan must be a finite number"),
        ({"edges_per_node": 1, "edge_probability": 0.5}, "edges_per_node or edge_probability, not both"),
        ({"targets_per_regime": 0}, "targets_per_regime=0 must be an integer of at least 1"),
        ({"targets_per_regime": 11}, "targets_per_regime=11 must not exceed the 10 variables"),
        ({"targets_per_regime": (3, 2)}, "low must not exceed high"),
        ({"targets_per_regime": (1, 2, 3)}, r"one number or a pair \(low, high\)"),
        ({"n_regimes": 0}, "n_regimes=0 must be an integer of at least 1"),
        ({"n_regimes": 1, "observational": False}, "no regime would have rows"),
        ({"regime_weights": [1, 1]}, "n_regimes=11 entries"),
        ({"n_regimes": 2, "regime_weights": [1, -1]}, "finite and not negative"),
        ({"n_regimes": 2, "regime_weights": [0, 0]}, "no regime would have rows"),
        ({"n_regimes": 2, "regime_weights": [1, 1], "observational": False}, "contradicts regime_weights"),
        ({"separation": -2}, "separation=-2 is a number of standard deviations, at least 0"),
        ({"separation": np.inf}, "separation=inf must be a finite number"),
        ({"random_state": -1}, "random_state=-1 is not usable"),
    ],
)
def test_nonsense_is_refused_with_a_remedy(arguments, words):
    with pytest.raises(ValueError, match=words):
        simulate(**arguments)


def test_the_named_remedy_for_too_few_rows_works():
    assert len(simulate(n_samples=11).X) == 11
    with pytest.raises(ValueError, match="ask for at least 20"):
        simulate(1, n_samples=10, regime_weights=[0.95, 0.05])
    assert len(simulate(1, n_samples=20, regime_weights=[0.95, 0.05]).X) == 20


def test_small_graphs_need_no_density():
    # One edge a node is impossible below three variables; nobody asked for it, so it is no error.
    assert simulate(1, n_samples=20).adjacency.to_numpy().sum() == 0
    assert simulate(2, n_samples=30).adjacency.to_numpy().sum() == 1


def test_noise_of_the_model_is_the_named_family():
    assert all(
        isinstance(simulate(noise="laplace", n_samples=60).scm[f"X{j}"].noise, Laplace) for j in (1, 5)
    )
