"""Tables: every accepted form means the same, every refusal names place and remedy."""

from __future__ import annotations

import datetime
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from latentdo.data import Dataset, DataWarning, table_to_array, validate_rows

VALUES = np.random.default_rng(0).normal(size=(12, 3))
FRAME = pd.DataFrame(VALUES, columns=["a", "b", "c"])


def with_cell(row: int, column: str, value: float) -> pd.DataFrame:
    out = FRAME.copy()
    out.loc[row, column] = value
    return out


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
    ("text", FRAME.assign(t=["x"] * 12), ValueError, r"'t'.*row 0.*'x'.*kinds=\{'t': 'categorical'\}"),
    ("one word", FRAME.assign(t=["1"] * 5 + ["oops"] * 7), ValueError, r"row 5, .*'t' is 'oops'"),
    ("numbers as text", FRAME.assign(t=["1", "2"] * 6), ValueError, r"X\['t'\]\.astype\(float\)"),
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
        ({"transform": "log"}, r"row 1 .*column 'a'|row 0 .*column"),
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
    with pytest.raises(ValueError, match=r"row 2 .*column 'b'"):  # counted in the user's table
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


def test_a_copy_of_a_column_is_named():
    x = np.random.default_rng(0).normal(size=(50, 2))
    table = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": 3.0 - 2.0 * x[:, 0]})
    with pytest.warns(DataWarning, match="'a' and 'c'"):
        Dataset.from_table(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Dataset.from_table(table[["a", "b"]])


@pytest.mark.parametrize("digits", [400, 5000])
def test_integers_beyond_float64_are_refused_by_place(digits):
    large = 10**digits
    with pytest.raises(ValueError, match=r"Row 1, column 0.*unit"):
        table_to_array([[1, 2], [large, 3]])
    with pytest.raises(ValueError, match=rf"row 1, .*'a' is an integer of about {digits} digits"):
        table_to_array(pd.DataFrame({"a": [1, large], "b": [1, 2]}, dtype=object))


def test_text_beyond_float64_is_not_told_to_be_converted():
    with pytest.raises(ValueError, match=r"row 1, .*'a' is '1e400'") as caught:
        table_to_array(pd.DataFrame({"a": ["1", "1e400"]}))
    assert "astype" not in str(caught.value)


def test_columns_of_lists_are_named():
    with pytest.raises(ValueError, match=r"'a' \(row 0"):
        table_to_array(pd.DataFrame({"a": [[1], [2], [3]], "b": [1, 2, 3]}))


def test_everything_wrong_with_a_table_is_said_at_once():
    ugly = FRAME.assign(id=[f"s{row}" for row in range(len(FRAME))], when="2026-01-01", unit=7.0)
    ugly.iloc[1, 0] = np.nan
    with pytest.raises(ValueError, match="cannot be used as it is") as caught:
        Dataset.from_table(ugly)
    message = str(caught.value)
    for words in ("'id'", "'when'", "Constant columns: 'unit'", "NaN in row 1", 'missing="'):
        assert words in message
    with pytest.raises(ValueError, match=r"^Input X contains NaN"):
        Dataset.from_table(ugly[FRAME.columns])


def test_rows_left_out_are_counted():
    holes = FRAME.copy()
    holes.iloc[1, 0] = np.nan
    with pytest.warns(DataWarning, match=f"left out.*1 of {len(FRAME)}"):
        Dataset.from_table(holes, missing="drop")
