"""BootstrapDAG: counts against an oracle, matching of regimes, going on where it stopped, saving."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from latentdo import BootstrapDAG, LatentInterventionDAG, simulate
from latentdo.bootstrap import consensus_dag, match_regimes
from latentdo.bootstrap.summary import summarise
from latentdo.cli import main
from latentdo.graphs import is_dag
from latentdo.persistence import ResultFileError


@pytest.fixture(scope="module")
def data():
    return simulate(n_variables=3, n_samples=300, random_state=1)


@pytest.fixture(scope="module")
def one_regime():
    """Fits of one regime take milliseconds."""
    return LatentInterventionDAG(max_regimes=1)


@pytest.fixture(scope="module")
def boot(data, one_regime):
    return BootstrapDAG(one_regime, n_resamples=8, resample="bootstrap").fit(data.X)


def _same(one, other):
    for name in ("edge_support_", "path_support_", "target_support_", "regime_stability_", "edges_"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name))


def test_support_is_what_the_resamples_say(boot, data):
    graphs = np.array([r.adjacency for r in boot.resamples_])
    assert len(graphs) == 8
    assert all(is_dag(graph) for graph in graphs)
    np.testing.assert_allclose(boot.edge_support_, graphs.mean(axis=0))
    assert list(boot.edge_support_.columns) == list(data.X.columns)
    either = (graphs + graphs.transpose(0, 2, 1)).sum(axis=0)
    for i, j in np.argwhere(~np.eye(3, dtype=bool)):
        expected = graphs[:, i, j].sum() / either[i, j] if either[i, j] else np.nan
        np.testing.assert_equal(boot.direction_support_.iloc[i, j], expected)
    assert (boot.path_support_.to_numpy() >= boot.edge_support_.to_numpy()).all()
    assert is_dag(boot.adjacency_)
    assert boot.n_regimes_.to_dict() == {1: 8}
    assert boot.regime_stability_["stability"].tolist() == [1.0]


def test_a_resample_is_the_fit_to_its_rows(boot, data):
    """Independent of the class: draw the rows of number 3 again and fit them."""
    rng = np.random.default_rng([0, 3])
    rows = np.sort(rng.choice(300, 300, replace=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        est = LatentInterventionDAG(max_regimes=1).fit(data.X.iloc[rows])
    np.testing.assert_array_equal(boot.resamples_[3].adjacency, est.adjacency_)
    assert boot.resamples_[3].evidence == pytest.approx(est.evidence_)


def test_table_of_edges(boot):
    edges = boot.edges_
    assert edges["support"].is_monotonic_decreasing
    best = boot.estimator_.adjacency_.to_numpy()
    assert edges["best_graph"].sum() == best.sum()
    assert edges["consensus"].sum() == boot.adjacency_.to_numpy().sum()
    first = edges.iloc[0]
    assert first["probability"] == boot.estimator_.edge_probabilities_.loc[first["cause"], first["effect"]]


def test_the_consensus_has_no_edge_that_all_rows_speak_against(boot):
    result = boot.estimator_.result_
    first, second = np.argwhere(boot.adjacency_.to_numpy() == 1)[:2]
    doubted = result.edge_probabilities.copy()
    doubted[tuple(first)], doubted[tuple(second)] = 0.009, 0.011
    again = summarise(replace(result, edge_probabilities=doubted), boot.resamples_, boot.threshold)
    assert again.adjacency.to_numpy()[tuple(first)] == 0
    assert again.adjacency.to_numpy()[tuple(second)] == 1
    assert again.edge_support.equals(boot.edge_support_)


@given(arrays(np.float64, (5, 5), elements=st.floats(0.0, 1.0)), st.floats(0.0, 0.9))
def test_the_consensus_is_a_dag_of_supported_edges(support, threshold):
    dag = consensus_dag(support, threshold)
    assert is_dag(dag)
    assert (support[dag == 1] > threshold).all()
    for i, j in np.argwhere((support > threshold) & (dag == 0)):  # only what closes a cycle is left out
        extended = dag.copy()
        extended[i, j] = 1
        assert not is_dag(extended)


def test_regimes_are_found_again_under_other_numbers(case):
    result = case.result
    k = result.n_regimes
    order = np.array([0, *np.roll(np.arange(1, k), 1)])  # regime 0 stays the reference
    topology = result.model.topology
    shuffled = replace(
        result,
        model=replace(
            result.model,
            topology=replace(topology, targets=topology.targets[order], weights=topology.weights[order]),
        ),
        responsibilities=result.responsibilities[:, order],
    )
    match, overlap = match_regimes(result, shuffled, shuffled.responsibilities)
    np.testing.assert_array_equal(order[match], np.arange(k))
    np.testing.assert_allclose(overlap, 1.0)


def test_regimes_that_vanish_have_no_match(case):
    result = case.result
    topology = result.model.topology
    kept = replace(
        result.model,
        topology=replace(topology, targets=topology.targets[:2], weights=np.array([0.5, 0.5])),
    )
    fewer = replace(result, model=kept)
    responsibilities = np.zeros((len(result.responsibilities), 2))
    responsibilities[:, 0] = 1.0
    hit = result.regimes == 1
    responsibilities[hit] = [0.0, 1.0]
    match, overlap = match_regimes(result, fewer, responsibilities)
    assert match[:2].tolist() == [0, 1]
    assert (match[2:] == -1).all()
    assert (overlap[2:] == 0.0).all()
    soft = np.minimum(result.responsibilities[:, 1], responsibilities[:, 1]).sum()
    hard = np.maximum(result.responsibilities[:, 1], responsibilities[:, 1]).sum()
    assert overlap[1] == pytest.approx(soft / hard)


def test_hidden_regimes_and_targets_return():
    """Half of the rows, the default: repeats of a bootstrap would look like regimes of their own."""
    data = simulate(n_variables=3, n_samples=800, random_state=1)
    boot = BootstrapDAG(LatentInterventionDAG(max_regimes=6, n_init=1), n_resamples=2).fit(data.X)
    assert boot.n_regimes_.to_dict() == {4: 2}
    assert (boot.regime_stability_["stability"] > 0.9).all()
    np.testing.assert_array_equal(boot.target_support_, boot.estimator_.targets_)
    assert list(boot.target_support_.index) == list(boot.estimator_.regime_names_)


def test_labels_are_matched_by_name_and_never_lost(data):
    names = np.array(["ctrl", "a", "b", "rare"], dtype=object)[np.minimum(data.regimes, 2)]
    names[:2] = "rare"
    est = LatentInterventionDAG(observational="ctrl", max_regimes=4)
    boot = BootstrapDAG(est, n_resamples=4, resample="half").fit(data.X, regimes=names)
    assert list(boot.regime_stability_.index) == ["ctrl", "a", "b", "rare"]
    assert boot.n_regimes_.to_dict() == {4: 4}
    np.testing.assert_allclose(boot.regime_stability_["stability"], 1.0)  # nothing about them is guessed


def test_the_same_whatever_the_order_of_calls(boot, data, one_regime):
    part = BootstrapDAG(one_regime, n_resamples=3, resample="bootstrap", warm_start=True).fit(data.X)
    first = part.resamples_[:3]
    seen = []
    part.set_params(n_resamples=8).fit(data.X, progress=seen.append)
    assert part.resamples_[:3] == first
    assert len(seen) == 5
    _same(part, boot)
    cold = clone(part).set_params(warm_start=False, n_resamples=2).fit(data.X)
    assert len(cold.resamples_) == 2
    with pytest.raises(ValueError, match="made with other rows; pass warm_start=False"):
        part.fit(data.X + 1.0)


def test_parallel_gives_the_same(boot, data, one_regime):
    from joblib import parallel_config

    with parallel_config(backend="threading"):
        _same(BootstrapDAG(one_regime, n_resamples=8, resample="bootstrap", n_jobs=2).fit(data.X), boot)


def test_goes_on_from_a_checkpoint(boot, data, one_regime, tmp_path):
    path = tmp_path / "boot.safetensors"
    given = {"resample": "bootstrap", "checkpoint": path, "checkpoint_seconds": 0.0}
    boot_a = BootstrapDAG(one_regime, n_resamples=3, **given).fit(data.X)
    seen = []
    boot_b = clone(boot_a).set_params(n_resamples=8).fit(data.X, progress=seen.append)
    assert [entry["step"] for entry in seen] == [f"resample {b} of 8" for b in range(4, 9)]
    _same(boot_b, boot)
    with pytest.raises(ValueError, match="made with other estimator; give another checkpoint"):
        clone(boot_a).set_params(estimator=LatentInterventionDAG(max_regimes=2)).fit(data.X)


def test_save_and_load(boot, data, tmp_path):
    path = tmp_path / "boot.safetensors"
    boot.save(path)
    again = BootstrapDAG.load(path)
    _same(again, boot)
    assert again.n_regimes_.to_dict() == boot.n_regimes_.to_dict()
    np.testing.assert_array_equal(again.estimator_.predict(data.X), boot.estimator_.predict(data.X))
    again.set_params(n_resamples=9, warm_start=True).fit(data.X)
    assert [r.number for r in again.resamples_] == list(range(9))
    damaged = bytearray(path.read_bytes())
    damaged[-3] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(ResultFileError, match="checksum"):
        BootstrapDAG.load(path)
    boot.estimator_.save(path)
    with pytest.raises(ResultFileError, match=r"BootstrapDAG\.save"):
        BootstrapDAG.load(path)
    with pytest.raises(NotFittedError):
        BootstrapDAG().save(path)


def test_an_interrupt_keeps_what_is_there(data, one_regime):
    def stop(entry):
        if entry["step"].startswith("resample 2"):
            raise KeyboardInterrupt

    try:
        with pytest.warns(ConvergenceWarning, match="interrupted after 2 of 5 resamples"):
            boot = BootstrapDAG(one_regime, n_resamples=5).fit(data.X, progress=stop)
    except KeyboardInterrupt:  # would end the whole test session
        pytest.fail("the interrupt was not caught although resamples were there")
    assert len(boot.resamples_) == 2


def test_resamples_that_cannot_be_fitted_are_counted(one_regime):
    """A column that varies in one row only is constant in about half of the resamples."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=40), np.arange(40) == 7]).astype(float)
    with pytest.warns(ConvergenceWarning, match="could not be fitted"):
        boot = BootstrapDAG(one_regime, n_resamples=12).fit(X)
    assert 0 < len(boot.failures_) < 12
    assert len(boot.resamples_) + len(boot.failures_) == 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"n_resamples": 0}, "n_resamples=0"), ({"resample": "third"}, "'third'"), ({"threshold": 1.5}, "threshold=1.5")],
)  # fmt: skip
def test_bad_arguments_are_named(data, arguments, message):
    with pytest.raises(ValueError, match=message):
        BootstrapDAG(**arguments).fit(data.X)


def test_on_the_command_line(data, tmp_path, capsys):
    table = tmp_path / "data.csv"
    data.X.to_csv(table, index=False)
    arguments = ["bootstrap", str(table), "--out", str(tmp_path / "r"), "--max-regimes", "1"]
    arguments += ["--checkpoint", str(tmp_path / "b.safetensors")]
    assert main([*arguments, "--n-resamples", "3"]) == 0
    out, _ = capsys.readouterr()
    assert "3 resamples" in out
    assert "Consensus graph" in out
    assert "1 in 3 of 3 resamples" in out
    assert main([*arguments, "--n-resamples", "4", "--overwrite", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["bootstrap"]["resamples"] == 4
    support = pd.read_csv(tmp_path / "r" / "edge_support.csv", index_col="cause")
    assert (support * 4 % 1 == 0).all(axis=None)
    assert main([*arguments, "--n-resamples", "0", "--overwrite"]) == 1
    assert "--n-resamples 0 must be" in capsys.readouterr().err


def test_effects_have_intervals_that_take_the_graph_as_uncertain(tmp_path):
    data = simulate(n_variables=3, edges_per_node=1, n_samples=300, random_state=1)
    boot = BootstrapDAG(LatentInterventionDAG(max_regimes=5, n_init=1), 4).fit(data.X)
    cause = data.adjacency.index[data.adjacency.sum(axis=1).to_numpy().argmax()]
    table = boot.effect(cause, shift=1.0)
    assert (table["low"] <= table["high"]).all()
    assert (table["resamples"] == 4).all()
    strong = table[table["support"] == 1.0]
    assert len(strong)
    assert (np.sign(strong["low"]) == np.sign(strong["change"])).all()
    nothing = table[table["support"] == 0.0]
    assert (nothing[["low", "high"]] == 0.0).all(axis=None)
    boot.save(tmp_path / "b.safetensors")
    pd.testing.assert_frame_equal(
        BootstrapDAG.load(tmp_path / "b.safetensors").effect(cause, shift=1.0), table
    )
    with pytest.raises(ValueError, match="'Y' is not a variable"):
        boot.effect("Y")
    with pytest.raises(ValueError, match="regime 'none' does not exist"):
        boot.effect(cause, regime="none")


def test_effects_of_networks_have_intervals_too():
    rng = np.random.default_rng(0)
    dose = rng.normal(size=240)
    X = pd.DataFrame({"dose": dose, "answer": np.tanh(2 * dose) + 0.1 * rng.normal(size=240)})
    template = LatentInterventionDAG(
        density="nonlinear", max_regimes=1, n_init=1, required=[("dose", "answer")]
    )
    boot = BootstrapDAG(template, 3).fit(X)
    row = boot.effect("dose", on="answer", do=(0.0, 1.0)).loc["answer"]
    assert row["low"] <= row["high"]
    assert row["low"] - 0.1 < np.tanh(2.0) < row["high"] + 0.1
    assert row["interval"] == f"90 % over {len(boot.resamples_)} resamples"
    single = boot.estimator_.effect("dose", on="answer", do=(0.0, 1.0))
    assert single.loc["answer", "interval"] == "no interval: use bootstrap"
    assert "low" not in single
