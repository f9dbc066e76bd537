"""Inputs that break programs: each gets a finite result, or an error that names the remedy.

The table is also in ``docs/robustness.md``; :func:`test_the_documentation_lists_every_case` keeps the two together.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from latentdo import LatentInterventionDAG
from latentdo.graphs import is_dag

DOCUMENT = Path(__file__).parents[2] / "docs" / "robustness.md"


@dataclass(frozen=True)
class Nasty:
    """One row of the table: what goes in, and what must come out."""

    name: str
    table: Callable[[], Any]
    fit: Callable[[], Mapping[str, Any]] = dict
    model: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None  # a regular expression with the remedy; None: a finite result
    warning: str | None = None


def good(n: int = 240, d: int = 3, seed: int = 0) -> pd.DataFrame:
    """A chain with one hidden intervention, as a starting point to be spoilt."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    for j in range(1, d):
        x[:, j] += 1.5 * x[:, j - 1]
    x[: n // 3, d - 1] = 6.0 + rng.normal(size=n // 3)
    return pd.DataFrame(x, columns=[f"v{j}" for j in range(d)])


def changed(**columns: Any) -> pd.DataFrame:
    return good().assign(**columns)


def with_cells(value: Any, rows: Any = (5,), column: str = "v1") -> pd.DataFrame:
    table = good().astype(object) if isinstance(value, str) else good()
    table.loc[list(rows), column] = value
    return table


def noise(n: int = 240, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=n)


def labels(n: int = 240) -> np.ndarray:
    return np.where(np.arange(n) < n // 3, 1, 0)


CASES = (
    # shapes
    Nasty("no rows", lambda: good().iloc[:0], error="0 sample"),
    Nasty("no columns", lambda: good()[[]], error="0 feature"),
    Nasty("one row", lambda: good().iloc[:1], error="minimum of 2"),
    Nasty("two rows", lambda: good().iloc[:2], warning="only 2 rows"),
    Nasty("three rows", lambda: good().iloc[:3], warning="only 3 rows"),
    Nasty("one column", lambda: good()[["v0"]]),
    Nasty("one column, two rows", lambda: good()[["v0"]].iloc[:2]),
    Nasty(
        "fewer rows than variables",
        lambda: pd.DataFrame(np.random.default_rng(0).normal(size=(10, 14))),
        warning="only 10 rows",
    ),
    Nasty("a single number", lambda: 3.0, error="2D array"),
    Nasty("a flat list", lambda: [1.0, 2.0, 3.0], error="2D array"),
    Nasty("three dimensions", lambda: np.zeros((4, 3, 2)), error="dim 3"),
    Nasty("ragged lists", lambda: [[1.0, 2.0], [3.0]], error="inhomogeneous|same length"),
    Nasty("None", lambda: None, error="None"),
    Nasty("text instead of a table", lambda: "data.csv", error="read_table|2D array"),
    Nasty("sparse matrix", lambda: scipy.sparse.csr_matrix(np.eye(5)), error="toarray|dense"),
    Nasty(
        "10 000 columns",
        lambda: np.random.default_rng(0).normal(size=(20, 10_000)),
        error="10000 variables.*choose",
    ),
    # values
    Nasty("constant column", lambda: changed(v1=1.0), error="Constant columns: 'v1'.*drop"),
    Nasty("all columns constant", lambda: good() * 0.0, error="drop these columns"),
    Nasty("nearly constant column", lambda: changed(v1=1.0 + 1e-15 * noise())),
    Nasty("constant but for one row", lambda: changed(v1=np.eye(240)[0])),
    Nasty("duplicated column", lambda: changed(w=lambda t: t["v1"]), warning="copies of each other"),
    Nasty("negated column", lambda: changed(w=lambda t: -3.0 * t["v1"]), warning="copies of each other"),
    Nasty("collinear columns", lambda: changed(w=lambda t: t["v0"] + t["v1"])),
    Nasty(
        "every row twice",
        lambda: pd.concat([good(), good()], ignore_index=True),
        warning="repeat an earlier row",
    ),
    Nasty(
        "one row repeated",
        lambda: pd.concat([good().iloc[[0]]] * 50 + [good()], ignore_index=True),
        warning="repeat",
    ),
    Nasty("one NaN", lambda: with_cells(np.nan), error="row 5.*'v1'.*missing=\"drop\""),
    Nasty("one infinity", lambda: with_cells(np.inf), error='inf in row 5.*missing="drop"'),
    Nasty("NaN left out on request", lambda: with_cells(np.nan), model={"missing": "drop"}),
    Nasty(
        "NaN summed out",
        lambda: with_cells(np.nan, rows=range(0, 240, 7)),
        model={"missing": "model"},
        warning="35 cells",
    ),
    Nasty(
        "a row of NaN summed out",
        lambda: good().mask(np.arange(240)[:, None] == [5, 5, 5]),
        model={"missing": "model"},
        warning="without any value",
    ),
    Nasty(
        "a column of NaN summed out",
        lambda: changed(v1=np.nan),
        model={"missing": "model"},
        error="'v1'.*drop",
    ),
    Nasty(
        "infinity where NaN is summed out",
        lambda: with_cells(np.inf),
        model={"missing": "model"},
        error="inf in row 5.*'v1'.*correct",
    ),
    Nasty("a column of NaN", lambda: changed(v1=np.nan), error="'v1' 240"),
    Nasty(
        "a column of NaN, rows left out",
        lambda: changed(v1=np.nan),
        model={"missing": "drop"},
        error="drop the columns",
    ),
    Nasty("values of 1e300", lambda: good() * 1e300, error="another unit"),
    Nasty("one cell of 1e300", lambda: with_cells(1e300), error="another unit"),
    Nasty("values of 1e149", lambda: good() * 1e148),
    Nasty("one cell of 1e140", lambda: with_cells(1e140)),
    Nasty("one cell of 1e12", lambda: with_cells(1e12)),
    Nasty("denormal numbers", lambda: changed(v1=5e-324 * np.arange(240)), error="another unit"),
    Nasty("values of 1e-140", lambda: good() * 1e-140),
    Nasty("a large offset", lambda: good() + 1e9),
    Nasty("an offset that leaves four digits", lambda: good() + 1e12),
    Nasty("an offset beyond precision", lambda: good() * 1e-6 + 1e12, error="drop these columns"),
    Nasty("scales 20 orders apart", lambda: good() * [1e-10, 1.0, 1e10], warning="differ hugely"),
    Nasty("minus zero", lambda: changed(v1=np.where(labels() == 1, -0.0, noise()))),
    Nasty("heavy tails", lambda: pd.DataFrame(np.random.default_rng(0).standard_cauchy((240, 3)))),
    Nasty("outliers", lambda: with_cells(500.0, rows=(1, 40, 77))),
    Nasty("two values a column", lambda: (good() > 0).astype(float)),
    Nasty("counts with many zeros", lambda: pd.DataFrame(np.random.default_rng(0).poisson(0.1, (240, 3)))),
    Nasty("sorted rows", lambda: pd.DataFrame(np.sort(good().to_numpy(), axis=0))),
    Nasty(
        "a straight line",
        lambda: pd.DataFrame({"a": np.arange(240.0), "b": 2.0 * np.arange(240.0)}),
        warning="copies",
    ),
    Nasty(
        "two points only",
        lambda: pd.DataFrame(np.repeat([[0.0, 1.5], [1.0, 0.5]], 50, axis=0)),
        warning="copies",
    ),
    Nasty("log of negative numbers", good, model={"transform": "log"}, error="log1p|rank-gaussian"),
    Nasty("ranks of two values", lambda: (good() > 0).astype(float), model={"transform": "rank-gaussian"}),
    # types and names
    Nasty("integers as text", lambda: good().round().astype(int).astype(str), error="astype\\(float\\)"),
    Nasty("text in a column", lambda: with_cells("high"), error="row 5.*'high'.*categorical"),
    Nasty("mixed dtypes", lambda: good().astype({"v0": "float32", "v1": "int64"}).assign(w=good()["v0"] > 0)),
    Nasty("half precision", lambda: good().astype("float16")),
    Nasty(
        "nullable integers with NA",
        lambda: changed(v1=pd.array([1, None, *range(238)], dtype="Int64")),
        error='missing="drop"',
    ),
    Nasty("complex numbers", lambda: good() + 1j, error="real and imaginary"),
    Nasty("dates", lambda: changed(v1=pd.date_range("2020-01-01", periods=240)), error="'v1'.*drop it"),
    Nasty("categories", lambda: changed(v1=pd.Categorical(np.where(labels(), "a", "b")))),
    Nasty("objects that are numbers", lambda: good().astype(object)),
    Nasty("integers beyond 2**53", lambda: changed(v1=np.arange(240) + 2**60), warning="2\\*\\*53"),
    Nasty("masked array", lambda: np.ma.masked_greater(good().to_numpy(), 8.0), error='missing="drop"'),
    Nasty(
        "duplicate names", lambda: good().set_axis(["a", "b", "a"], axis=1), error="Duplicate.*'a'.*rename"
    ),
    Nasty(
        "names that become equal", lambda: good().set_axis([1, "1", "b"], axis=1), error="Duplicate.*rename"
    ),
    Nasty("unicode names", lambda: good().set_axis(["αβγ", "温度", "🧬"], axis=1)),
    Nasty("empty, blank and very long names", lambda: good().set_axis(["", " ", "x" * 10_000], axis=1)),
    Nasty(
        "names with markup and control characters",
        lambda: good().set_axis(["<script>alert(1)</script>", "a\x00\n", "\ud800"], axis=1),
    ),
    Nasty(
        "two levels of names",
        lambda: good().set_axis(pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]), axis=1),
    ),
    Nasty("a repeated row index", lambda: good().set_axis([0] * 240, axis=0)),
    # labels and targets
    Nasty("labels of another length", good, fit=lambda: {"regimes": [0, 1]}, error="240"),
    Nasty("all rows one label", good, fit=lambda: {"regimes": np.zeros(240, dtype=int)}),
    Nasty(
        "all rows one intervention",
        good,
        fit=lambda: {"regimes": ["drug"] * 240},
        model={"observational": None},
    ),
    Nasty("all labels unknown", good, fit=lambda: {"regimes": [None] * 240}),
    Nasty("a label with one row", good, fit=lambda: {"regimes": np.eye(240, dtype=int)[0]}),
    Nasty(
        "a label for every row",
        lambda: good(24),
        fit=lambda: {"regimes": np.arange(24)},
        model={"max_regimes": 24},
    ),
    Nasty(
        "more labels than regimes allowed",
        good,
        fit=lambda: {"regimes": np.arange(240) % 9},
        error="raise max_regimes",
    ),
    Nasty("labels of mixed types", good, fit=lambda: {"regimes": [0, "drug", 2.5, None] * 60}),
    Nasty(
        "labels that are lists",
        good,
        fit=lambda: {"regimes": [[0]] * 240},
        error="hashable|one label|dimension",
    ),
    Nasty(
        "an observational label that never occurs",
        good,
        fit=lambda: {"regimes": labels()},
        model={"observational": "control"},
        error="control",
    ),
    Nasty("targets without labels", good, fit=lambda: {"targets": {"drug": "v2"}}, error="pass regimes="),
    Nasty(
        "targets of a wrong shape",
        good,
        fit=lambda: {"regimes": labels(), "targets": np.zeros((2, 7))},
        error="shape|columns",
    ),
    Nasty(
        "targets of another variable",
        good,
        fit=lambda: {"regimes": labels(), "targets": {1: ["nobody"]}},
        error="'nobody'",
    ),
    Nasty(
        "targets of a label without rows",
        good,
        fit=lambda: {"regimes": labels(), "targets": {1: ["v2"], 2: ["v0"]}},
    ),
    Nasty("targets that miss a label", good, fit=lambda: {"regimes": labels(), "targets": {}}, error="1"),
    Nasty(
        "targets that are not 0 or 1",
        good,
        fit=lambda: {"regimes": labels(), "targets": np.array([[0, 0, 0], [0.5, 0, 0]])},
        error="0 (and|or) 1|0/1",
    ),
    Nasty(
        "targets in the reference",
        good,
        fit=lambda: {"regimes": labels(), "targets": np.ones((2, 3))},
        error="row 0|observational|reference",
    ),
    Nasty(
        "every variable a target",
        good,
        fit=lambda: {"regimes": labels(), "targets": np.array([[0, 0, 0], [1, 1, 1]])},
    ),
    # arguments
    Nasty("more regimes than rows", lambda: good(12), model={"max_regimes": 500}),
    Nasty("zero regimes", good, model={"max_regimes": 0}, error="max_regimes=0"),
    Nasty("half a regime", good, model={"max_regimes": 2.5}, error="whole number"),
    Nasty("an unknown density", good, model={"density": "cubic"}, error="use one of"),
    Nasty("a prior of NaN", good, model={"edge_prior": math.nan}, error="use 0"),
    Nasty("a prior of the wrong shape", good, model={"edge_prior": np.zeros((2, 2))}, error="\\[3, 3\\]"),
    Nasty("a prior of infinity", good, model={"edge_prior": math.inf}, error="finite|required"),
    Nasty("a prior of text", good, model={"edge_prior": "strong"}, error="edge_prior"),
    Nasty("a target prior of NaN", good, model={"target_prior": math.nan}, error="target_prior"),
    Nasty("huge priors", good, model={"edge_prior": -1e308, "target_prior": -1e308}, error="target_prior"),
    Nasty(
        "an edge both required and forbidden",
        good,
        model={"required": [("v0", "v1")], "forbidden": [("v0", "v1")]},
        error="ruled out",
    ),
    Nasty("required edges in a cycle", good, model={"required": [("v0", "v1"), ("v1", "v0")]}, error="cycle"),
    Nasty("all edges forbidden", good, model={"tiers": [["v0", "v1", "v2"]], "max_parents": 0}),
    Nasty(
        "a required edge between copies",
        lambda: changed(v1=lambda t: t["v0"]),
        model={"required": [("v0", "v1")]},
        warning="copies",
    ),
    Nasty("max_parents below zero", good, model={"max_parents": -1}, error="max_parents"),
    Nasty("max_parents of text", good, model={"max_parents": "two"}, error="max_parents"),
    Nasty("constraints with unknown names", good, model={"tiers": [["v0"], ["v9"]]}, error="'v9'"),
    Nasty("a random state of text", good, model={"random_state": "seed"}, error="seed"),
    Nasty("a random state below zero", good, model={"random_state": -5}, error="random_state|between 0"),
    Nasty("zero starts", good, model={"n_init": 0}, error="n_init=0"),
    Nasty("n_jobs of text", good, model={"n_jobs": "many"}, error="n_jobs"),
    Nasty("an unknown device", good, model={"device": "abacus", "solver": "gradient"}, error="abacus"),
)

SMALL = {"max_regimes": 4, "n_init": 1, "random_state": 0}


def check_numbers(value: Any, where: str) -> None:
    """No NaN and no infinity in anything that a fit returns, however deeply it is nested."""
    if isinstance(value, pd.DataFrame | pd.Series):
        value = value.to_numpy()
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.tolist()
    if isinstance(value, np.ndarray):
        assert value.dtype.kind not in "fc" or np.isfinite(value).all(), where
    elif isinstance(value, float):
        assert math.isfinite(value), where
    elif isinstance(value, Mapping):
        for key, item in value.items():
            check_numbers(item, f"{where}[{key!r}]")
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            check_numbers(item, f"{where}[{i}]")


def check_fit(est: LatentInterventionDAG, X: Any, folder: Path) -> None:
    """All that is returned is finite and consistent, and survives saving."""
    for name in vars(est):
        if name.endswith("_"):
            check_numbers(getattr(est, name), name)
    for name in ("responsibilities", "evidence", "evidence_terms", "history", "comparison"):
        check_numbers(getattr(est.result_, name), name)
    for name, array in est.result_.model.to_arrays().items():
        check_numbers(array, f"model {name}")
    assert is_dag(est.adjacency_.to_numpy())
    np.testing.assert_allclose(est.responsibilities_.sum(axis=1), 1.0)
    np.testing.assert_allclose(est.regime_weights_.sum(), 1.0)
    probabilities = (est.responsibilities_, est.edge_probabilities_, est.target_probabilities_)
    assert all((np.asarray(p) >= 0.0).all() and (np.asarray(p) <= 1.0).all() for p in probabilities)
    path = folder / "model.safetensors"
    est.save(path)
    again = LatentInterventionDAG.load(path)
    if est.get_params()["missing"] == "drop":
        X = pd.DataFrame(X).dropna()
    for own in (est, again):
        check_numbers(own.predict_proba(X), "predict_proba")
        check_numbers(own.score_samples(X), "score_samples")
        check_numbers(own.sample(5), "sample")
    assert again.evidence_ == est.evidence_


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_nasty_input(case, tmp_path):
    est = LatentInterventionDAG(**(SMALL | case.model))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if case.error is not None:
            with pytest.raises((ValueError, TypeError), match=f"(?s){case.error}"):
                est.fit(case.table(), **case.fit())
            return
        X = case.table()
        est.fit(X, **case.fit())
        check_fit(est, X, tmp_path)
    said = [str(warning.message) for warning in caught]
    assert case.warning is None or any(pd.Series(said).str.contains(case.warning)), said
    own = [w for w in caught if "latentdo" in w.filename and issubclass(w.category, RuntimeWarning)]
    assert not own, [f"{w.filename}:{w.lineno} {w.message}" for w in own]


VALUES = (
    "two rows",
    "three rows",
    "one column",
    "one column, two rows",
    "fewer rows than variables",
    "nearly constant column",
    "constant but for one row",
    "duplicated column",
    "collinear columns",
    "one cell of 1e140",
    "values of 1e-140",
    "heavy tails",
    "two values a column",
    "two points only",
    "all rows one label",
    "a label with one row",
    "every variable a target",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize(
    "solver", [{"solver": "gradient"}, {"density": "nonlinear"}], ids=["gradient", "nonlinear"]
)
def test_other_solvers_return_finite_numbers_too(name, solver, tmp_path):
    (case,) = (case for case in CASES if case.name == name)
    X = case.table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kinds = {str(name): "continuous" for name in X.columns}  # they know no others
        estimator = LatentInterventionDAG(**(SMALL | case.model | solver), kinds=kinds)
        check_fit(estimator.fit(X, **case.fit()), X, tmp_path)


def test_there_are_enough_cases():
    assert len({case.name for case in CASES}) == len(CASES) >= 60


def test_the_documentation_lists_every_case():
    page = DOCUMENT.read_text("utf-8")
    assert [case.name for case in CASES if f"\n| {case.name} | " not in page] == []
