"""The data set: every accepted form means the same, every refusal names place and remedy."""

from __future__ import annotations

import datetime
import pickle
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from latentdo.data import REFERENCE_LABEL, Dataset, DataWarning, table_to_array, validate_rows

VALUES = np.random.default_rng(0).normal(size=(12, 3))
FRAME = pd.DataFrame(VALUES, columns=["a", "b", "c"])


def with_cell(row: int, column: str, value: float) -> pd.DataFrame:
    out = FRAME.copy()
    out.loc[row, column] = value
    return out


# ------------------------------------------------------------------------------------------------ tables


def _polars(frame: pd.DataFrame) -> Any:
    return pytest.importorskip("polars").DataFrame(frame.to_dict("list"))


def _pyarrow(frame: pd.DataFrame) -> Any:
    return pytest.importorskip("pyarrow").table(frame.to_dict("list"))


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: FRAME, id="pandas"),
        pytest.param(lambda: FRAME.astype("Float64"), id="pandas nullable"),
        pytest.param(lambda: FRAME.astype(object), id="pandas object"),
        pytest.param(lambda: FRAME.set_index(pd.Index(range(50, 62))), id="pandas with index"),
        pytest.param(lambda: _polars(FRAME), id="polars"),
        pytest.param(lambda: _pyarrow(FRAME), id="pyarrow"),
    ],
)
def test_every_table_gives_the_same_data(make: Any) -> None:
    data = Dataset.from_table(make())
    np.testing.assert_array_equal(data.x, VALUES)
    assert data.columns == ("a", "b", "c")
    assert data.x.flags.c_contiguous
    assert data.x.dtype == np.float64


@pytest.mark.parametrize(
    "make", [np.asarray, np.asfortranarray, np.ndarray.tolist, lambda v: v.astype(object)]
)
def test_arrays_get_names(make: Any) -> None:
    data = Dataset.from_table(make(VALUES))
    np.testing.assert_array_equal(data.x, VALUES)
    assert data.columns == ("X1", "X2", "X3")
    assert Dataset.from_table(VALUES, columns=["u", "v", "w"]).columns == ("u", "v", "w")


def test_numbers_as_column_names_become_text_and_columns_select() -> None:
    assert Dataset.from_table(pd.DataFrame(VALUES)).columns == ("0", "1", "2")
    data = Dataset.from_table(FRAME, columns=["c", "a"])
    assert data.columns == ("c", "a")
    np.testing.assert_array_equal(data.x, VALUES[:, [2, 0]])


def test_booleans_integers_and_decimals_are_numbers() -> None:
    frame = pd.DataFrame(
        {
            "flag": [True, False, True],
            "count": [1, 2, 5],
            "price": [Decimal("1.5"), Decimal(2), Decimal(3)],
            "single": np.array([1, 2, 4], dtype=np.float32),
        }
    )
    with pytest.warns(DataWarning, match="only 3 rows for 4 variables"):
        data = Dataset.from_table(frame)
    np.testing.assert_array_equal(data.x[0], [1.0, 1.0, 1.5, 1.0])


def test_the_users_array_is_neither_aliased_nor_changed() -> None:
    mine = VALUES.copy()
    data = Dataset.from_table(mine)
    mine[0, 0] = 99.0
    assert data.x[0, 0] == VALUES[0, 0]
    assert mine.flags.writeable
    for array in (data.x, data.z, data.row_index):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        data.columns = ("q",)  # type: ignore[misc]


BAD_TABLES: list[tuple[str, Any, type[Exception], str]] = [
    ("NaN", with_cell(4, "b", np.nan), ValueError, r"NaN.*row 4 .*column 'b'.*'b' 1.*missing=\"drop\""),
    ("infinity", with_cell(7, "c", -np.inf), ValueError, r"inf in row 7 .*column 'c'"),
    ("NaN in an array", with_cell(4, "b", np.nan).to_numpy(), ValueError, r"NaN.*row 4 .*column 'X2'"),
    ("masked", np.ma.masked_less(VALUES, VALUES.max() - 1e-9), ValueError, r"NaN in row 0"),
    ("constant", FRAME.assign(k=3.0), ValueError, r"Constant columns: 'k'.*drop"),
    ("text", FRAME.assign(t=["x"] * 12), ValueError, r"'t'.*row 0.*'x'.*get_dummies"),
    ("one word", FRAME.assign(t=["1"] * 5 + ["oops"] * 7), ValueError, r"row 5, .*'t' is 'oops'"),
    ("numbers as text", FRAME.assign(t=["1", "2"] * 6), ValueError, r"X\['t'\]\.astype\(float\)"),
    ("categories", FRAME.assign(t=pd.Categorical(["x", "y"] * 6)), ValueError, r"Non-numeric columns: 't'"),
    ("dates", FRAME.assign(t=pd.Timestamp("2020-01-01")), ValueError, r"Non-numeric columns: 't'"),
    ("dates as objects", FRAME.assign(t=[datetime.date(2020, 1, 1)] * 12), ValueError, r"Non-numeric"),
    ("complex column", FRAME.assign(t=1j), ValueError, r"Complex data not supported.*'t'"),
    ("complex array", VALUES * 1j, ValueError, r"Complex data not supported"),
    ("duplicate names", FRAME.set_axis(["a", "b", "a"], axis=1), ValueError, r"Duplicate column names: 'a'"),
    (
        "clash after text",
        pd.DataFrame(VALUES, columns=[1, "1", 2]),
        ValueError,
        r"Duplicate column names: '1'",
    ),
    ("vector", VALUES[:, 0], ValueError, r"1D array"),
    ("series", FRAME["a"], ValueError, r"2-dimensional container"),
    ("cube", VALUES[None], ValueError, r"dim 3"),
    ("one row", VALUES[:1], ValueError, r"1 sample\(s\)"),
    ("no rows", VALUES[:0], ValueError, r"0 sample\(s\)"),
    ("no rows, table", FRAME.iloc[:0], ValueError, r"0 sample\(s\)"),
    ("no columns", np.zeros((12, 0)), ValueError, r"0 feature\(s\) \(shape=\(12, 0\)\)"),
    ("no columns, table", FRAME[[]], ValueError, r"0 feature\(s\) \(shape=\(12, 0\)\)"),
    ("words", np.array([["x", "y"], ["z", "w"]]), ValueError, r"numeric"),
    ("sparse", scipy.sparse.csr_matrix(VALUES), TypeError, r"[Ss]parse"),
    ("huge", VALUES * 1e200, ValueError, r"'X1' are too large"),
]


@pytest.mark.parametrize(
    ("X", "error", "message"), [b[1:] for b in BAD_TABLES], ids=[b[0] for b in BAD_TABLES]
)
def test_bad_tables_are_refused_by_name(X: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Dataset.from_table(X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": ["a", "q"]}, r"no column 'q'; its columns are 'a', 'b', 'c'"),
        ({"columns": ["a", "a"]}, "Duplicate"),
        ({"columns": []}, r"0 feature\(s\)"),
        ({"missing": "fill"}, "missing='fill'"),
        ({"transform": "sqrt"}, "transform='sqrt'"),
        ({"transform": "log"}, r"row 1, column 'a'|row 0, column"),
        ({"targets": {"x": "a"}}, "without regimes"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Dataset.from_table(FRAME, **arguments)
    with pytest.raises(ValueError, match="2 names, but X has 3 columns"):
        Dataset.from_table(VALUES, columns=["u", "v"])


def test_lazy_tables_are_told_to_collect() -> None:
    with pytest.raises(TypeError, match="collect"):
        Dataset.from_table(_polars(FRAME).lazy())


def test_missing_values_of_every_library_are_found() -> None:
    holes = with_cell(4, "b", np.nan)
    polars = pytest.importorskip("polars")
    null = polars.DataFrame({name: [None if pd.isna(v) else v for v in holes[name]] for name in holes})
    for X in (holes, holes.astype("Float64"), holes.astype(object), null, null.to_arrow()):
        with pytest.raises(ValueError, match=r"row 4 .*column 'b'"):
            Dataset.from_table(X)


def test_dropping_rows_keeps_track_of_them() -> None:
    holes = with_cell(4, "b", np.nan)
    holes.loc[9, "a"] = np.inf
    labels = list("uvuvuvuvuwuv")
    data = Dataset.from_table(holes, regimes=labels, observational="u", missing="drop")
    assert data.row_index.tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 10, 11]
    assert data.n_dropped == 2
    assert data.regime_labels == ("u", "v")  # the only row of "w" was dropped
    np.testing.assert_array_equal(data.regimes, [0, 1, 0, 1, 1, 0, 1, 0, 0, 1])
    np.testing.assert_array_equal(data.x, holes.to_numpy()[data.row_index])
    with pytest.raises(ValueError, match=r"Only 0 of 12 rows \(samples\)"):
        Dataset.from_table(FRAME.assign(a=np.nan), missing="drop")
    low = FRAME.abs()
    low.loc[0, "a"], low.loc[2, "b"] = np.nan, -5.0
    with pytest.raises(ValueError, match="row 2, column 'b'"):  # counted in the user's table
        Dataset.from_table(low, missing="drop", transform="log")


def test_constant_columns_on_request() -> None:
    data = Dataset.from_table(FRAME.assign(k=3.0), allow_constant=True)
    np.testing.assert_array_equal(data.z[:, 3], 0.0)


def test_warnings_about_scale_and_rounding_name_the_columns() -> None:
    with pytest.warns(DataWarning, match=r"scale: .*'big' is .*'a'|scale: .*'big'"):
        Dataset.from_table(FRAME.assign(big=VALUES[::-1, 0] * 1e8))
    with pytest.warns(DataWarning, match=r"Integers beyond 2\*\*53 in column 'n'"):
        Dataset.from_table(pd.DataFrame({"n": [2**60 + 1, 2**61, 2**62], "m": np.array([1, 2, 3]) * 2**50}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Dataset.from_table(FRAME.assign(big=VALUES[::-1, 0] * 1e5))


def test_z_is_standardised_and_transform_is_recorded() -> None:
    data = Dataset.from_table(FRAME.abs(), transform="log")
    assert data.preprocessor.transform == "log"
    np.testing.assert_allclose(data.z.mean(axis=0), 0.0, atol=1e-12)
    expected = np.log(np.abs(VALUES))
    np.testing.assert_allclose(data.z, (expected - expected.mean(0)) / expected.std(0))
    assert data.z is data.z


# ----------------------------------------------------------------------------------------------- regimes


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
    ("matrix", np.zeros((12, 1)), {}, ValueError, r"1D, one label a row; got shape \(12, 1\)"),
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


# ----------------------------------------------------------------------------------------------- targets


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
    ("two", [0, 1] * 6, [[0, 0, 0], [0, 2, 0]], r"only 0 and 1, but row 1, column 'b' is 2"),
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


# ------------------------------------------------------------------------------- splitting, hashing, rows


@settings(max_examples=40, deadline=None, derandomize=True)
@given(n=st.integers(2, 60), fraction=st.floats(0.01, 0.99), seed=st.integers(0, 5))
def test_split_is_a_partition_of_the_right_size(n: int, fraction: float, seed: int) -> None:
    x = np.arange(2.0 * n).reshape(n, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        data = Dataset.from_table(x, regimes=np.arange(n) % 3)
    first, second = data.split(fraction, seed)
    assert first.n_rows == min(max(round(fraction * n), 1), n - 1)
    assert sorted([*first.row_index, *second.row_index]) == list(range(n))
    for part in (first, second):
        np.testing.assert_array_equal(part.x, x[part.row_index])
        np.testing.assert_array_equal(part.regimes, part.row_index % 3)
        assert (np.diff(part.row_index) > 0).all()
        assert part.preprocessor is data.preprocessor


def test_split_spreads_regimes_and_depends_only_on_the_seed() -> None:
    x = np.random.default_rng(0).normal(size=(1000, 2))
    data = Dataset.from_table(x, regimes=np.repeat([0, 1, 2], [900, 90, 10]))
    first, second = data.split(0.8, 3)
    assert np.bincount(second.regimes).tolist() == [180, 18, 2]
    again, _ = data.split(0.8, np.random.RandomState(3))
    np.testing.assert_array_equal(first.row_index, again.row_index)
    other, _ = data.split(0.8, np.random.default_rng(3))
    assert not np.array_equal(first.row_index, other.row_index)
    for bad in (0.0, 1.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="strictly between"):
            data.split(bad)
    with pytest.raises(ValueError, match="Cannot split 1"):
        data.take([0]).split(0.5)


def test_take_allows_repeats_and_pickle_keeps_everything() -> None:
    data = labelled([0, 1, 2] * 4, targets={1: "a", 2: "b"})
    part = data.take([3, 3, 0])
    assert part.row_index.tolist() == [3, 3, 0]
    np.testing.assert_array_equal(part.z, data.z[[3, 3, 0]])
    again = pickle.loads(pickle.dumps(data))
    np.testing.assert_array_equal(again.z, data.z)
    assert again.regime_labels == data.regime_labels


def test_content_hash_sees_values_and_names_only() -> None:
    base = Dataset.from_table(FRAME).content_hash()
    assert (
        base == Dataset.from_table(_polars(FRAME), regimes=[0] * 12, transform="rank-gaussian").content_hash()
    )
    fixed = Dataset.from_table([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]).content_hash()
    assert (
        fixed == "d388229b1f63a8ab24f11ebabd89ee9d85bcf7eb52ff6d23ee8e48dc3e6930b8"
    )  # provenance: must not change between versions
    assert base != Dataset.from_table(FRAME.rename(columns={"a": "q"})).content_hash()
    assert base != Dataset.from_table(with_cell(0, "a", np.nextafter(VALUES[0, 0], 9))).content_hash()
    assert base != Dataset.from_table(FRAME.iloc[::-1]).content_hash()


def test_parts_that_do_not_fit_together_are_refused() -> None:
    data = Dataset.from_table(FRAME)
    parts = {"x": data.x, "columns": data.columns, "preprocessor": data.preprocessor}
    two = {"regimes": np.zeros(12, int), "regime_labels": (0, 1)}
    for wrong, message in (
        ({"columns": ("a", "b")}, "2 names"),
        ({"row_index": np.arange(3)}, "3 rows"),
        ({"regimes": np.zeros(3, int), "regime_labels": (0,)}, "one entry a row"),
        ({"regimes": np.full(12, 2), "regime_labels": (0, 1)}, "must lie in -1 .. 1"),
        ({**two, "targets": np.ones((2, 3), np.int8)}, "row 0 zero"),
        ({**two, "targets": np.zeros((3, 3), np.int8)}, r"shape \(2, 3\)"),
    ):
        with pytest.raises(ValueError, match=message):
            Dataset(**{**parts, **wrong})  # type: ignore[arg-type]


def test_new_rows_are_aligned_by_name() -> None:
    columns = ("a", "b", "c")
    np.testing.assert_array_equal(validate_rows(FRAME[["c", "a", "b"]], columns), VALUES)
    np.testing.assert_array_equal(validate_rows(_polars(FRAME[["c", "a", "b"]]), columns), VALUES)
    np.testing.assert_array_equal(validate_rows(VALUES[:1], columns), VALUES[:1])
    for bad, message in (
        (FRAME[["a", "b"]], "missing 'c'"),
        (FRAME.assign(q=1.0), "unexpected 'q'"),
        (FRAME.rename(columns={"c": "q"}), "missing 'c'; unexpected 'q'"),
        (VALUES[:, :2], "X has 2 features, but Thing is expecting 3 features as input"),
        (with_cell(2, "b", np.nan), "NaN in row 2 .*column 'b'"),
        (VALUES[:0], "0 sample"),
        (VALUES[0], "1D array"),
    ):
        with pytest.raises(ValueError, match=message):
            validate_rows(bad, columns, estimator="Thing")


def test_table_to_array_returns_its_own_memory() -> None:
    values, names = table_to_array(VALUES)
    assert not np.shares_memory(values, VALUES)
    assert names == ("X1", "X2", "X3")


def test_long_lists_are_shortened() -> None:
    wide = pd.DataFrame(np.ones((5, 20)))
    with pytest.raises(ValueError, match=r"'7', \.\.\. \(20 in all\)"):
        Dataset.from_table(wide)
    with pytest.raises(ValueError, match=r"\.\.\. \(20 columns in all\)"):
        Dataset.from_table(wide * np.nan)


def test_repeated_rows_are_counted() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 2))
    with pytest.warns(DataWarning, match="3 of 53 rows repeat an earlier row exactly"):
        Dataset.from_table(np.vstack([rows, rows[:3]]))
    for natural in (np.vstack([rows, rows[:3, ::-1]]), rng.integers(0, 3, (50, 2)), rows[:, :1].round(1)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Dataset.from_table(natural)


def test_a_column_of_conditions_is_recognised() -> None:
    frame = pd.DataFrame(
        {"a": np.arange(20.0), "who knows": ["x", "y"] * 10, "note": [str(i) * 2 + "?" for i in range(20)]}
    )
    with pytest.raises(ValueError, match=r"If 'who knows' says under which condition .* pass it as regimes="):
        Dataset.from_table(frame)
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


def test_a_copy_of_a_column_is_named():
    x = np.random.default_rng(0).normal(size=(50, 2))
    table = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": 3.0 - 2.0 * x[:, 0]})
    with pytest.warns(DataWarning, match="'a' and 'c'"):
        Dataset.from_table(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Dataset.from_table(table[["a", "b"]])
