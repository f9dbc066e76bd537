"""Numbers that can be trusted: reported figures follow from the saved model, and from nothing accidental."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentdo import LatentInterventionDAG, metrics, simulate
from latentdo.data import Dataset, DataWarning
from latentdo.model.penalties import Penalties
from latentdo.persistence import load_arrays
from latentdo.solvers.search.solve import SearchConfiguration, solve

FEW = settings(max_examples=4)


@pytest.fixture(scope="module")
def data():
    """Regimes that no method could confuse."""
    return simulate(n_variables=4, n_samples=1000, n_regimes=4, separation=8.0, random_state=3)


def fitted(X, **known):
    return LatentInterventionDAG(max_regimes=6, n_init=2, random_state=0).fit(X, **known)


@pytest.fixture(scope="module")
def reference(data):
    return fitted(data.X)


def recomputed_evidence(result, X, labels=None):
    """The evidence by its definition (the table in ``penalties.py``), from the parameters in a saved model."""
    model = result.model
    z = result.preprocessor.forward(X.to_numpy())
    joint = model.log_joint(z)
    rows = np.logaddexp.reduce(joint, axis=1)
    if labels is not None:
        known = np.flatnonzero(labels >= 0)
        rows[known] = joint[known, labels[known]]
    n, d = z.shape
    counts = model.topology.weights * n
    adjacency, targets = model.topology.adjacency, model.topology.targets
    penalties = Penalties.build(d, None, None)
    cost = 0.5 * (np.count_nonzero(counts > 0) - 1) * np.log(n) - penalties.edge_prior[adjacency == 1].sum()
    for j in range(d):
        cost += 0.5 * (adjacency[:, j].sum() + 2) * np.log(counts[targets[:, j] == 0].sum())
    for (k, _), own in model.own.items():
        n_parameters = 2 + np.count_nonzero(own.linear_form.coefficients[1:])
        cost += 0.5 * n_parameters * np.log(counts[k]) - penalties.target_prior
    return float(rows.sum() - cost)


@pytest.mark.parametrize("supervision", ["none", "some", "all", "targets"])
def test_evidence_follows_from_the_saved_model(tmp_path, data, supervision):
    labels = np.array(data.regimes)
    if supervision == "some":
        labels = np.where(np.arange(len(labels)) % 3 == 0, labels, -1)
    known = {} if supervision == "none" else {"regimes": labels}
    if supervision == "targets":
        known["targets"] = data.targets
    est = fitted(data.X, **known)
    est.save(tmp_path / "model.safetensors")
    again = LatentInterventionDAG.load(tmp_path / "model.safetensors")
    codes = None if supervision == "none" else labels
    assert recomputed_evidence(again.result_, data.X, codes) == pytest.approx(est.evidence_, abs=1e-6)
    if supervision == "none":
        np.testing.assert_allclose(again.predict_proba(data.X), est.responsibilities_, atol=1e-12)
    terms = est.result_.evidence_terms
    assert sum(terms.values()) == pytest.approx(est.evidence_, abs=1e-9)


def test_evidence_of_a_subsampled_search_is_that_of_all_rows():
    drawn = simulate(n_variables=4, n_samples=4000, n_regimes=4, separation=8.0, random_state=4)
    result = solve(
        Dataset.from_table(drawn.X), SearchConfiguration(max_regimes=6, n_init=1, search_rows=1000)
    )
    assert result.history[-1]["step"] == "all rows"
    assert recomputed_evidence(result, drawn.X) == pytest.approx(result.evidence, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("labelled", [False, True], ids=["latent", "labelled"])
@pytest.mark.parametrize(
    "options",
    [
        {"density": "nonlinear"},
        {"density": "flow"},
        {"solver": "gradient"},
        {"solver": "gradient", "density": "nonlinear"},
    ],
    ids=lambda options: "-".join(options.values()),
)
def test_likelihoods_of_other_solvers_follow_from_the_saved_model(tmp_path, options, labelled):
    drawn = simulate(n_variables=3, n_samples=400, n_regimes=3, mechanism="nonlinear", random_state=1)
    known = {"regimes": drawn.regimes} if labelled else {}
    est = LatentInterventionDAG(max_regimes=4, n_init=1, **options).fit(drawn.X, **known)
    est.save(tmp_path / "model.safetensors")
    result = LatentInterventionDAG.load(tmp_path / "model.safetensors").result_
    joint = result.model.log_joint(result.preprocessor.forward(drawn.X.to_numpy()))
    rows = joint[np.arange(len(joint)), est.regimes_] if labelled else np.logaddexp.reduce(joint, axis=1)
    assert est.result_.evidence_terms["log_likelihood"] == pytest.approx(float(rows.sum()), abs=1e-3)


def without_clock(value):
    """JSON without the readings of the clock."""
    if isinstance(value, dict):
        return {key: without_clock(item) for key, item in value.items() if key != "seconds"}
    return [without_clock(item) for item in value] if isinstance(value, list) else value


def test_same_seed_same_bytes(tmp_path, data):
    """In two processes with different hash seeds: same tables, and the same model but for the time it took."""
    data.X.to_csv(tmp_path / "data.csv", index=False)
    for run in ("1", "2"):
        command = [sys.executable, "-m", "latentdo", "fit", "data.csv", "--out", run, "--max-regimes", "6"]
        environment = {**os.environ, "PYTHONHASHSEED": run}
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    for name in ("adjacency", "edge_probabilities", "targets", "regimes"):
        first, second = ((tmp_path / run / f"{name}.csv").read_bytes() for run in "12")
        assert first == second
    assert len({(tmp_path / run / "graph.graphml").read_bytes() for run in "12"}) == 1
    (state, arrays), (other_state, other_arrays) = (
        load_arrays(tmp_path / run / "model.safetensors", "latentdo") for run in "12"
    )
    assert without_clock(state) == without_clock(other_state)
    assert {k: v.tobytes() for k, v in arrays.items()} == {k: v.tobytes() for k, v in other_arrays.items()}


def test_the_number_of_processes_does_not_change_the_result(data, reference):
    parallel = LatentInterventionDAG(max_regimes=6, n_init=2, n_jobs=2).fit(data.X)
    assert parallel.evidence_ == reference.evidence_
    np.testing.assert_array_equal(parallel.responsibilities_, reference.responsibilities_)
    assert [entry["step"] for entry in parallel.history_] == [entry["step"] for entry in reference.history_]


def same_findings(est, reference, rows=None, columns=None):
    """Same graph, same partition of the rows, same targets for the regimes that share rows."""
    names = list(reference.adjacency_.columns)
    columns = dict(zip(names, names, strict=True)) if columns is None else columns
    own = [columns[name] for name in names]
    pd.testing.assert_frame_equal(
        est.adjacency_.loc[own, own].set_axis(names, axis=0).set_axis(names, axis=1), reference.adjacency_
    )
    old = reference.regimes_ if rows is None else reference.regimes_[rows]
    assert metrics.adjusted_rand_index(old, est.regimes_) > 0.995
    for k in np.unique(old):
        match = np.bincount(est.regimes_[old == k]).argmax()
        np.testing.assert_array_equal(est.targets_.iloc[match][own], reference.targets_.iloc[k])


@FEW
@given(order=st.permutations(range(4)))
def test_the_order_of_columns_does_not_matter(data, reference, order):
    est = fitted(data.X.iloc[:, list(order)])
    same_findings(est, reference)
    assert est.evidence_ == pytest.approx(reference.evidence_, abs=0.5)


@FEW
@given(seed=st.integers(0, 1000))
def test_the_order_of_rows_does_not_matter(data, reference, seed):
    rows = np.random.default_rng(seed).permutation(len(data.X))
    est = fitted(data.X.iloc[rows])
    same_findings(est, reference, rows)
    assert est.evidence_ == pytest.approx(reference.evidence_, abs=0.5)


@FEW
@given(
    powers=st.lists(st.floats(-6.0, 6.0), min_size=4, max_size=4),
    signs=st.lists(st.sampled_from([-1.0, 1.0]), min_size=4, max_size=4),
    shift=st.floats(-10.0, 10.0),
)
def test_units_do_not_matter(data, reference, powers, signs, shift):
    scale = np.array(signs) * 10.0 ** np.array(powers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # of such scales
        est = fitted((data.X + shift) * scale)
    same_findings(est, reference)
    assert est.evidence_ == pytest.approx(reference.evidence_, abs=0.5)


@FEW
@given(names=st.permutations(["control", "a", "b", "zz"]))
def test_the_names_of_labels_do_not_matter(data, names):
    plain = fitted(data.X, regimes=data.regimes)
    labels = np.array(names)[data.regimes]
    named = LatentInterventionDAG(max_regimes=6, observational=names[0]).fit(data.X, regimes=labels)
    pd.testing.assert_frame_equal(named.adjacency_, plain.adjacency_)
    for k, name in enumerate(names):
        own = list(named.regime_names_).index(name)
        np.testing.assert_array_equal(named.targets_.iloc[own], plain.targets_.iloc[k])
    assert named.evidence_ == pytest.approx(plain.evidence_, abs=1e-6)


@pytest.mark.parametrize("edges_per_node", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_single_precision_tables_give_the_same_findings(edges_per_node):
    drawn = simulate(n_variables=6, n_samples=3000, edges_per_node=edges_per_node, random_state=5)
    double, single = (fitted(drawn.X.astype(kind)) for kind in ("float64", "float32"))
    same_findings(single, double)
    assert single.evidence_ == pytest.approx(double.evidence_, rel=1e-4)
