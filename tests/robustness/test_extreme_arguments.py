"""Arguments and tables at the edge of what Python can hold: a result, or one sentence that names the argument."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

from latentdo import LatentInterventionDAG
from latentdo.estimator.arguments import LARGEST_LOG_ODDS

HUGE = 10**400
ABSURD = 10**5000  # Python refuses to write it


def table(n: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    x[:, 1] += 2.0 * x[:, 0]
    return pd.DataFrame(x, columns=["a", "b"])


def fit(X=None, *, regimes=None, targets=None, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        est = LatentInterventionDAG(**({"max_regimes": 2, "n_init": 1} | arguments))
        return est.fit(table() if X is None else X, regimes=regimes, targets=targets)


NUMBERS = (
    "learning_rate",
    "concentration",
    "edge_prior",
    "target_prior",
    "max_regimes",
    "n_init",
    "n_jobs",
    "max_parents",
    "random_state",
)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(
    "value",
    [
        1e30,
        1e308,
        -1e308,
        math.nan,
        math.inf,
        -math.inf,
        HUGE,
        -HUGE,
        ABSURD,
        "many",
        np.float32(1e30),
        b"1",
        [[]],
    ],
    ids=lambda value: "absurd" if value is ABSURD else str(value)[:12],
)
def test_numbers_beyond_their_range_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=name) as refused:
        fit(solver="gradient", **{name: value})
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("name", [*NUMBERS, "device", "checkpoint"])
def test_truth_values_are_no_numbers(name):
    if name == "edge_prior":
        pytest.skip("numpy reads a truth value as 0 or 1")
    with pytest.raises(ValueError, match=name):
        fit(solver="gradient", **{name: True})


@pytest.mark.parametrize("name", ["edge_prior", "target_prior"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_log_odds_at_their_bound_give_finite_results(name, sign):
    est = fit(**{name: np.float64(sign * LARGEST_LOG_ODDS)})
    assert math.isfinite(est.evidence_)
    assert np.isfinite(est.edge_probabilities_.to_numpy()).all()
    if name == "edge_prior":
        assert est.adjacency_.to_numpy().sum() == (1 if sign > 0 else 0)


@pytest.mark.parametrize("device", ["", "cuda", "cuda:99", "meta", "nosuch", "cpu:-1", "xla", "a\0b"])
def test_devices_that_are_not_there_are_refused_by_name(device):
    with pytest.raises(ValueError, match="device"):
        fit(solver="gradient", device=device)


@pytest.mark.parametrize("device", ["", "nosuch", "cpu:-1"])
def test_solvers_that_use_no_device_refuse_names_of_none(device):
    with pytest.raises(ValueError, match=r"device=.*'cpu' or 'cuda'"):
        fit(solver="search", device=device)


def test_a_diverging_fit_is_an_error_with_a_remedy(monkeypatch):
    from latentdo.solvers.gradient.loop import Trainer

    monkeypatch.setattr(Trainer, "_is_broken", lambda *_: True)
    with pytest.raises(ValueError, match="smaller learning_rate"):
        fit(solver="gradient")


def test_a_solver_that_returns_nan_is_not_believed(monkeypatch):
    from dataclasses import replace

    from latentdo.estimator import latent

    solve = latent.solve

    def broken(*given):
        found = solve(*given)
        return found._replace(result=replace(found.result, evidence=math.nan))

    monkeypatch.setattr(latent, "solve", broken)
    with pytest.raises(ValueError, match="evidence"):
        fit()


def test_tensors_give_what_arrays_give():
    X = table().to_numpy()
    plain = fit(X)
    for tensor in (torch.tensor(X), torch.tensor(X, requires_grad=True)):
        assert fit(tensor).evidence_ == plain.evidence_
        np.testing.assert_array_equal(plain.predict_proba(tensor), plain.predict_proba(X))
    labels = [0, 1] * 40
    known = fit(X, regimes=labels)
    for tensor in (torch.tensor(labels), torch.tensor(labels, dtype=torch.float32, requires_grad=True)):
        assert fit(X, regimes=tensor).regime_names_ == known.regime_names_
    assert fit(torch.tensor(X, dtype=torch.bfloat16)).n_features_in_ == 2


def test_masked_labels_are_unknown():
    labels = np.ma.array([0, 1] * 40, mask=[False] * 78 + [True] * 2)
    assert fit(regimes=labels).result_.configuration["labelled_rows"] == 78


OBJECTS = {
    "integers of 400 digits": [[HUGE, 1.0], [2.0, 3.0], [4.0, 5.0]],
    "integers of 5000 digits": [[ABSURD, 1.0], [2.0, 3.0], [4.0, 5.0]],
    "an object array": np.array([[HUGE, 1], [2, 3], [4, 5]], dtype=object),
    "an object column": pd.DataFrame({"a": pd.Series([HUGE, 1, 2], dtype=object), "b": [1.0, 2.0, 4.0]}),
    "a column of absurd integers": pd.DataFrame(
        {"a": pd.Series([ABSURD, 1, 2], dtype=object), "b": [1.0, 2.0, 4.0]}
    ),
    "a sparse matrix": scipy.sparse.csr_matrix(np.eye(3)),
    "a sparse tensor": torch.eye(3).to_sparse(),
    "a tensor without numbers": torch.empty(3, 2, device="meta"),
    "complex numbers": np.ones((3, 2)) * 1j,
    "a complex tensor": torch.ones(3, 2) * 1j,
    "a matrix": np.matrix(np.eye(3)),
    "a structured array": np.zeros(3, dtype=[("a", float), ("b", float)]),
    "functions": [[len, len], [len, len]],
    "a set": {1.0, 2.0},
}


@pytest.mark.parametrize("X", OBJECTS.values(), ids=OBJECTS.keys())
def test_odd_tables_get_one_sentence(X):
    with pytest.raises((ValueError, TypeError)) as refused:
        fit(X)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("value", [HUGE, ABSURD], ids=["huge", "absurd"])
def test_labels_of_hundreds_of_digits_are_refused_by_name(value):
    with pytest.raises(ValueError, match=r"regimes.*as text"):
        fit(regimes=[0, value] * 40)


@pytest.mark.parametrize(
    "targets",
    [[[HUGE, 0], [0, 1]], torch.eye(2).to_sparse(), scipy.sparse.eye(2)],
    ids=["huge", "tensor", "sparse"],
)
def test_odd_targets_get_one_sentence(targets):
    with pytest.raises((ValueError, TypeError)):
        fit(regimes=[0, 1] * 40, targets=targets)
