"""`simulate`: what a benchmark data set is made of, its seeds, and what it refuses."""

import hashlib
import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentdo.graphs import is_dag
from latentdo.scm import (
    PRESETS,
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


def test_a_simulation_survives_pickling():
    data = simulate(4, mechanism="nonlinear", n_samples=100)
    copy = pickle.loads(pickle.dumps(data))
    assert digest(copy) == digest(data)
    pd.testing.assert_frame_equal(copy.scm.sample(5, 0), data.scm.sample(5, 0), check_exact=True)


@settings(max_examples=60)
@given(
    d=st.integers(1, 7),
    mechanism=st.sampled_from(["linear", "nonlinear", "nonadditive"]),
    intervention=st.sampled_from(["stochastic", "atomic", "imperfect"]),
    preset=st.sampled_from(sorted(name for name, one in PRESETS.items() if one.signal_to_noise is None)),
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
        ({"group_size": 0}, "group_size=0 must be an integer of at least 1"),
    ],
)
def test_nonsense_is_refused_with_a_remedy(arguments, words):
    with pytest.raises(ValueError, match=words):
        simulate(**arguments)


def test_rows_of_a_group_share_their_regime():
    data = simulate(n_variables=3, n_samples=400, random_state=5, group_size=15)
    sizes = np.bincount(data.groups)
    for group in range(sizes.size):
        assert np.unique(data.regimes[data.groups == group]).size == 1
    assert sorted(sizes.tolist()) == sorted([15, 15, 15, 15, 15, 15, 10] * 4)
    assert data.groups[0] == 0  # numbered by the rows, not by the regimes
    first = np.unique(data.groups, return_index=True)[1]
    assert (np.diff(first) > 0).all()
    single = simulate(n_variables=3, n_samples=400, random_state=5)
    pd.testing.assert_frame_equal(single.X, data.X)
    np.testing.assert_array_equal(single.groups, np.arange(400))


def test_groups_respond_as_a_whole():
    data = simulate(n_variables=3, n_samples=800, random_state=6, group_size=10, penetrance=0.5)
    for group in np.unique(data.groups):
        assert np.unique(data.regimes[data.groups == group]).size == 1
    assert 0.3 < data.responded[data.assigned > 0].mean() < 0.7


def test_the_best_assignment_of_groups():
    data = simulate(
        n_variables=3, n_samples=400, preset="dcdi", separation=1.0, random_state=7, group_size=10
    )
    posterior = data.bayes_responsibilities(groups=data.groups)
    rows = data.groups == data.groups[0]
    joint = data.log_density()[rows].sum(axis=0) + np.log(data.regime_weights)
    np.testing.assert_allclose(posterior[0], np.exp(joint - np.logaddexp.reduce(joint)))
    right = [(p.argmax(axis=1) == data.regimes).mean() for p in (data.bayes_responsibilities(), posterior)]
    assert right[1] > right[0] + 0.2


def test_the_named_remedy_for_too_few_rows_works():
    assert len(simulate(n_samples=11).X) == 11
    with pytest.raises(ValueError, match="ask for at least 20"):
        simulate(1, n_samples=10, regime_weights=[0.95, 0.05])
    assert len(simulate(1, n_samples=20, regime_weights=[0.95, 0.05]).X) == 20


def test_small_graphs_need_no_density():
    # One edge a node is impossible below three variables; nobody asked for it, so it is no error.
    assert simulate(1, n_samples=20).adjacency.to_numpy().sum() == 0
    assert simulate(2, n_samples=30).adjacency.to_numpy().sum() == 1
