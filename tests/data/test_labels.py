"""Regimes and targets: every accepted form means the same, every refusal names place and remedy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from latentdo.data import REFERENCE_LABEL, Dataset, DataWarning

VALUES = np.random.default_rng(0).normal(size=(12, 3))
FRAME = pd.DataFrame(VALUES, columns=["a", "b", "c"])


def labelled(regimes: Any, **arguments: Any) -> Dataset:
    return Dataset.from_table(FRAME, regimes=regimes, **arguments)


@pytest.mark.parametrize(
    "regimes",
    [
        [0, 1, 2, -1] * 3,
        np.array([0, 1, 2, -1] * 3),
        [0.0, 1.0, 2.0, np.nan] * 3,
        [0, 1, 2, None] * 3,
        [np.int64(0), np.int32(1), 2.0, pd.NA] * 3,
        pd.Series([0, 1, 2, None] * 3),
        pd.Series([0, 1, 2, None] * 3, dtype="Int64"),
        pd.Categorical([0, 1, 2, None] * 3),
        pd.Series(pd.Categorical([0, 1, 2, None] * 3)),
    ],
    ids=lambda r: type(r).__name__,
)
def test_every_form_of_labels_means_the_same(regimes: Any) -> None:
    data = labelled(regimes)
    np.testing.assert_array_equal(data.regimes, [0, 1, 2, -1] * 3)
    assert data.regime_labels == (0, 1, 2)
    assert data.n_regimes == 3


def test_labels_of_polars_and_pyarrow() -> None:
    for series in (
        pytest.importorskip("polars").Series(["u", "v", None] * 4),
        pytest.importorskip("pyarrow").array(["u", "v", None] * 4),
        pytest.importorskip("pyarrow").chunked_array([["u", "v", None] * 2] * 2),
    ):
        data = labelled(series, observational="v")
        assert data.regime_labels == ("v", "u")
        np.testing.assert_array_equal(data.regimes, [1, 0, -1] * 4)


@pytest.mark.parametrize(
    ("regimes", "observational", "labels"),
    [
        (["u", "ctrl", "w"] * 4, "ctrl", ("ctrl", "u", "w")),
        (["b", "a"] * 6, None, (REFERENCE_LABEL, "a", "b")),
        ([1, 2] * 6, 0, (0, 1, 2)),  # the default may be absent: regime 0 then has no rows
        ([0, 1] * 6, None, (REFERENCE_LABEL, 0, 1)),
        ([7, 3] * 6, 7, (7, 3)),
        ([True, False] * 6, 0, (False, True)),
        ([("x", 1), ("x", 2)] * 6, ("x", 2), (("x", 2), ("x", 1))),
        (["a", 1] * 6, "a", ("a", 1)),
        (["a", 1, 2] * 4, 2, (2, 1, "a")),
        ([-1] * 12, 0, (0,)),
        ([None] * 12, None, (REFERENCE_LABEL,)),
    ],
)
def test_order_of_labels(regimes: Any, observational: Any, labels: tuple[Any, ...]) -> None:
    data = labelled(regimes, observational=observational)
    assert data.regime_labels == labels
    assert data.regimes is not None
    for code, label in zip(data.regimes, regimes, strict=True):
        assert (code == -1 and label in (-1, None)) or data.regime_labels[code] == label


BAD_REGIMES: list[tuple[str, Any, dict[str, Any], type[Exception], str]] = [
    ("too short", [0, 1], {}, ValueError, r"2 entries, but X has 12 rows"),
    ("matrix", np.zeros((12, 1)), {}, ValueError, r"1D, one label per row; got shape \(12, 1\)"),
    ("table", pd.DataFrame({"r": [0] * 12}), {}, ValueError, r"1D"),
    ("word", "abcdefghijkl", {}, TypeError, r"got str"),
    ("number", 3, {}, TypeError, r"got int"),
    ("unhashable", [[0]] * 12, {}, TypeError, r"hashable"),
    ("absent label", ["u", "v"] * 6, {"observational": "ctrl"}, ValueError, r"labels are 'u', 'v'.*None"),
    ("text zero", ["0", "1"] * 6, {}, ValueError, r"observational=0 is a int.*'0', a str.*observational='0'"),
    ("other order", pd.Series([0, 1] * 6, index=range(11, -1, -1)), {}, ValueError, r"another order.*loc"),
]


@pytest.mark.parametrize(
    ("regimes", "arguments", "error", "message"),
    [b[1:] for b in BAD_REGIMES],
    ids=[b[0] for b in BAD_REGIMES],
)
def test_bad_regimes_are_refused(
    regimes: Any, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        labelled(regimes, **arguments)


@pytest.mark.parametrize(
    "targets",
    [
        [[0, 0, 0], [1, 0, 0], [0, 1, 1]],
        np.array([[0, 0, 0], [1, 0, 0], [0, 1, 1]], dtype=bool),
        {1: "a", 2: ["b", "c"]},
        {0: [], 1.0: ("a",), 2: pd.Index(["c", "b"])},
        pd.DataFrame([[0, 0, 0], [0, 0, 1], [1, 1, 0]], columns=["c", "b", "a"]),
        pd.DataFrame([[1, 1, 0], [0, 0, 1]], columns=["c", "b", "a"], index=[2, 1]),
    ],
    ids=["list", "bool", "dict", "dict with all", "table", "table by label"],
)
def test_every_form_of_targets_means_the_same(targets: Any) -> None:
    data = labelled([0, 1, 2] * 4, targets=targets)
    assert data.targets is not None
    assert data.targets.dtype == np.int8
    np.testing.assert_array_equal(data.targets, [[0, 0, 0], [1, 0, 0], [0, 1, 1]])


def test_targets_without_observational_rows() -> None:
    matrix = [[0, 0, 0], [1, 0, 0], [0, 1, 1]]
    for observational, first in ((0, 0), (None, REFERENCE_LABEL)):
        for targets in (matrix, pd.DataFrame(matrix, columns=list("abc")), {1: "a", 2: ["b", "c"]}):
            data = labelled([1, 2] * 6, targets=targets, observational=observational)
            assert data.regime_labels == (first, 1, 2)
            np.testing.assert_array_equal(data.targets, matrix)
    data = labelled([0, 1] * 6, targets={0: "a", 1: "b"}, observational=None)
    np.testing.assert_array_equal(data.targets, [[0, 0, 0], [1, 0, 0], [0, 1, 0]])


def test_targets_by_text_label_and_regimes_that_no_row_has() -> None:
    targets = {"u": "a", "v": None, "new": ["c"]}
    data = labelled(["ctrl", "u", "v", None] * 3, targets=targets, observational="ctrl")
    assert data.regime_labels == ("ctrl", "new", "u", "v")
    np.testing.assert_array_equal(data.targets, [[0, 0, 0], [0, 0, 1], [1, 0, 0], [0, 0, 0]])
    with pytest.warns(DataWarning, match="'new', which no row"):  # no row is unknown: probably a mistake
        labelled(["ctrl", "u", "v"] * 4, targets=targets, observational="ctrl")
    longer = labelled([0, 1, -1] * 4, targets=[[0, 0, 0], [1, 0, 0], [0, 0, 1]])
    assert longer.regime_labels == (0, 1, 2)


BAD_TARGETS: list[tuple[str, Any, Any, str]] = [
    (
        "unknown name",
        [0, 1] * 6,
        {1: ["a", "q"]},
        r"targets of 1 names 'q', but the variables are 'a', 'b', 'c'",
    ),
    ("label left out", [0, 1, 2] * 4, {1: "a"}, r"does not mention 2"),
    ("row 0 hit", [0, 1] * 6, [[1, 0, 0], [0, 1, 0]], r"observational regime 0 changed 'a'; row 0"),
    ("reference hit", [0, 1] * 6, {0: "b", 1: "a"}, r"observational regime 0 changed 'b'"),
    ("two", [0, 1] * 6, [[0, 0, 0], [0, 2, 0]], r"only 0 and 1, but row 1 .*column 'b' is 2"),
    ("narrow", [0, 1] * 6, [[0, 0], [0, 1]], r"2 columns, but there are 3 variables"),
    ("too few rows", [0, 1, 2] * 4, [[0, 0, 0], [0, 1, 0]], r"2 rows needs integer labels 0 .. 1.*dict"),
    ("matrix, text labels", ["u", "v"] * 6, [[0, 0, 0], [0, 1, 0]], r"dict from label to variable names"),
    (
        "other names",
        [0, 1] * 6,
        pd.DataFrame(np.zeros((2, 3)), columns=list("abq")),
        r"missing 'c'; unexpected 'q'",
    ),
    ("label twice", [0, 1] * 6, pd.DataFrame(np.zeros((2, 3)), list("xx"), list("abc")), r"same label twice"),
    ("NaN", [0, 1] * 6, [[0, 0, 0], [0, np.nan, 0]], r"only 0 and 1, but row 1"),
]


@pytest.mark.parametrize(
    ("regimes", "targets", "message"), [b[1:] for b in BAD_TARGETS], ids=[b[0] for b in BAD_TARGETS]
)
def test_bad_targets_are_refused(regimes: Any, targets: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        labelled(regimes, targets=targets)


CONDITIONS = ["control", "c", "a", "b"] * 3


@pytest.mark.parametrize(
    ("regimes", "targets", "message"),
    [
        (CONDITIONS, {"a": "a"}, r"^targets does not mention 'b', 'c', which occur in regimes; add them"),
        (CONDITIONS, {"a": "a", "b": []}, r"^targets does not mention 'c', which occurs in regimes; add it"),
        (
            CONDITIONS,
            {"drug": "a"},
            r"^targets mentions 'drug', which no row of regimes has; the labels are 'a', 'b', 'c'\. targets does not",
        ),
        (
            ["control", "drug", "salt"] * 4,
            {"Drugs": "a"},
            r"^targets mentions 'Drugs'.*did you mean 'drug' by 'Drugs'",
        ),
        (["control", 1, 2] * 4, {"1": "a", "2": "b"}, r"^targets mentions '1', '2'.*did you mean 1 by '1'"),
        (
            CONDITIONS,
            {"a": ["cc"]},
            r"^targets of 'a' names 'cc'.*'a', 'b', 'c'; did you mean 'c' by 'cc'\?$",
        ),
        (
            CONDITIONS,
            {"a": ["height"]},
            r"^targets of 'a' names 'height', but the variables are 'a', 'b', 'c'\.$",
        ),
    ],
)
def test_a_wrong_name_in_targets_comes_before_what_is_left_out(
    regimes: list[Any], targets: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        labelled(regimes, targets=targets, observational="control")


def many(**rows: int) -> list[str]:
    return [label for label, n in rows.items() for _ in range(n)]


@pytest.mark.parametrize(
    ("regimes", "message"),
    [
        (many(contrl=1, control=11), r"^label 'contrl' has 1 row; did you mean 'control'\?$"),
        (many(Control=2, control=10), r"^label 'Control' has 2 rows; did you mean 'control'\?$"),
        (["drug b "] + ["drug_b"] * 11, r"^label 'drug b ' has 1 row; did you mean 'drug_b'\?$"),
    ],
)
def test_a_rare_label_that_looks_misspelt_is_pointed_out(regimes: list[str], message: str) -> None:
    with pytest.warns(DataWarning, match=message):
        labelled(regimes, observational=None)


@pytest.mark.parametrize(
    "regimes",
    [
        many(dose1=2, dose10=10),  # numbers differ on purpose
        many(drug_a=2, drug_b=10),  # and so do words
        many(salt=2, control=10),
        many(contrl=6, control=6),
        many(contrl=4, control=4, salt=4),
        [1] * 2 + [11] * 10,
        [None] * 11 + ["control"],
    ],
)
def test_other_rare_labels_are_left_alone(regimes: list[Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = labelled(regimes, observational=None)
    assert {label for label in regimes if label is not None} <= set(dataset.regime_labels)


def test_a_column_of_conditions_is_recognised() -> None:
    frame = pd.DataFrame(
        {"a": np.arange(20.0), "who knows": ["x", "y"] * 10, "note": [str(i) * 2 + "?" for i in range(20)]}
    )
    with pytest.raises(ValueError, match=r"If 'condition' says under which condition .* pass it as regimes="):
        Dataset.from_table(frame.rename(columns={"who knows": "condition"}))
    with pytest.raises(ValueError, match="Non-numeric columns: 'note'") as caught:
        Dataset.from_table(frame.drop(columns="who knows"))
    assert "condition" not in str(caught.value)


def test_labels_without_an_observational_one_get_a_hint() -> None:
    with pytest.warns(DataWarning, match="'WT' looks like it: pass observational='WT'"):
        labelled(["drug", "WT"] * 6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labelled([0, 1] * 6)
        labelled([1, -1] * 6)
        labelled([1, 2] * 6, observational=None)
