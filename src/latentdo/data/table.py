"""From any table to a float64 matrix with names, and the refusals on the way."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from latentdo.data.kinds import MOST_LEVELS, Kind, kind_name, levels_of, read_kinds, too_many
from latentdo.data.refusals import ColumnError, check_finite, check_infinite, check_names, in_words
from latentdo.data.remarks import DataWarning, is_label_name, looks_like_labels
from latentdo.data.tensors import without_gradient
from latentdo.messages import listed, shown
from latentdo.notices import warn

Array = NDArray[np.float64]
Missing = Literal["error", "drop", "model"]

_EXACT = 2.0**53  # larger integers are not exact in float64
LABEL_REMEDY = "drop it from X and pass it as regimes= to fit"


class Columns(NamedTuple):
    """A table as numbers ``[n, d]``, its names, what the user says of columns, and what codes among them stand for."""

    values: Array
    names: tuple[str, ...]
    given: Mapping[str, str | Kind]
    coded: Mapping[str, Kind]


def read_columns(
    X: Any,
    columns: Sequence[str] | None = None,
    kinds: Any = None,
    text_remedy: str = "drop {them}",
    label_remedy: str | None = LABEL_REMEDY,
    without: Collection[str] = (),
) -> Columns:
    """As :func:`table_to_array`, but text and categories become codes of their levels where they are levels.

    ``kinds`` is what the user says of columns: a dict from their names, or None. ``without`` are columns to leave out.
    """
    table = _columns_of(X)
    if table is None:
        values, names = table_to_array(X, columns)
        kept = [j for j, name in enumerate(names) if name not in without]
        values = values[:, kept] if without else values
        return Columns(values, tuple(names[j] for j in kept), read_kinds(kinds, names), {})
    wanted = _wanted(table, columns)
    given = read_kinds(kinds, wanted)
    wanted = [name for name in wanted if name not in without]
    table = {name: table[name] for name in wanted}
    coded = _code_levels(table, given, text_remedy, label_remedy)
    return Columns(_matrix(table, wanted, len(X), text_remedy, label_remedy), tuple(wanted), given, coded)


def table_to_array(
    X: Any,
    columns: Sequence[str] | None = None,
    text_remedy: str = "drop {them}",
    label_remedy: str | None = LABEL_REMEDY,
) -> tuple[Array, tuple[str, ...]]:
    """Turn any table into a new float64 matrix and its names, refusing what is not a number.

    Parameters
    ----------
    X : table or array-like [n, d]
        A pandas, polars or pyarrow table, an array, or nested lists. NaN and infinity pass.
    columns : sequence of str, optional
        For a table, the columns to use, in this order; for an array, the names to give.
    text_remedy : str
        What the message about columns that are not numeric advises first; ``{names}`` stands for their names, and
        ``{them}`` for "it" or "them".
    label_remedy : str
        What it advises for a column that looks like the conditions of the rows; ``{name}`` stands for the column.
        None if there is no such column, because the conditions are known already.

    Returns
    -------
    values : ndarray [n, d] of float64, C-contiguous
    names : tuple of str
        Names of the table as text, or ``X1 .. Xd``.

    Raises
    ------
    ValueError
        For names that repeat or are absent, columns that are not numeric, and empty tables.
    TypeError
        For sparse matrices and lazy tables.

    Examples
    --------
    >>> table_to_array([[1, 2], [3, 4]])
    (array([[1., 2.],
           [3., 4.]]), ('X1', 'X2'))
    """
    table = _columns_of(X)
    if table is None:
        values = _array(X)
        names = (
            [f"X{j + 1}" for j in range(values.shape[1])] if columns is None else [str(c) for c in columns]
        )
        check_names(names)
        if len(names) != values.shape[1]:
            raise ValueError(f"columns holds {len(names)} names, but X has {values.shape[1]} columns.")
        return values, tuple(names)
    wanted = _wanted(table, columns)
    return _matrix(table, wanted, len(X), text_remedy, label_remedy), tuple(wanted)


def _wanted(table: Mapping[str, Any], columns: Sequence[str] | None) -> list[str]:
    """Names of the columns to use."""
    wanted = list(table) if columns is None else [str(c) for c in columns]
    check_names(wanted)
    absent = [name for name in wanted if name not in table]
    if absent:
        raise ValueError(f"X has no column {listed(absent)}; its columns are {listed(table)}.")
    return wanted


def validate_rows(
    X: Any,
    columns: Sequence[str],
    kinds: Sequence[Kind] = (),
    *,
    estimator: str = "LatentInterventionDAG",
    missing: Missing = "error",
) -> Array:
    """Check new rows against the variables of a fitted model.

    Parameters
    ----------
    X : table or array-like [n, d]
        A table is aligned by name, whatever the order of its columns; an array must have the fitted order.
    columns : sequence of str
        Names of the variables seen in ``fit``.
    kinds : sequence of Kind
        What these are, if not all continuous; levels may be called by their names or, in an array, by their codes.
    estimator : str
        Name for the message.
    missing : {"error", "drop", "model"}
        Only "model" lets missing cells pass: new rows are not dropped, since every one of them wants an answer.

    Returns
    -------
    ndarray [n, d] of float64
        Finite values in the order of ``columns``, or NaN.

    Raises
    ------
    ValueError
        If columns are missing or unexpected, values are not finite, or a level was not there in ``fit``.

    Examples
    --------
    >>> import pandas as pd
    >>> validate_rows(pd.DataFrame({"b": [1.0], "a": [2.0]}), columns=["a", "b"])
    array([[2., 1.]])
    """
    mismatch = f"X has {{found}} features, but {estimator} is expecting {{d}} features as input."
    values = aligned_array(X, columns, mismatch, kinds=kinds)
    if missing == "model":
        check_infinite(values, columns)
    else:
        remedy = 'remove these rows, fill them in, or sum missing cells out with set_params(missing="model")'
        check_finite(values, columns, remedy=remedy)
    return values


def aligned_array(
    X: Any, columns: Sequence[str], mismatch: str, who: str = "X", kinds: Sequence[Kind] = ()
) -> Array:
    """Turn a table with exactly these columns, in any order, or an array in this order, into numbers.

    ``mismatch`` is the message for an array with another number of columns, ``who`` the name of the table.
    """
    table = _columns_of(X)
    if table is None:
        values = _array(X)
        if values.shape[1] != len(columns):
            raise ValueError(mismatch.format(found=values.shape[1], d=len(columns)))
        for j, kind in enumerate(kinds):
            if kind.is_discrete:
                values[:, j] = kind.encode(pd.Series(values[:, j]), columns[j])
        return values
    absent = [name for name in columns if name not in table]
    extra = [name for name in table if name not in columns]
    if absent or extra:
        parts = [f"missing {listed(absent)}"] * bool(absent) + [f"unexpected {listed(extra)}"] * bool(extra)
        raise ValueError(
            f"The columns of {who} do not match the variables: {'; '.join(parts)}. Pass exactly "
            f"{listed(columns)}, in any order, or an array without names in this order."
        )
    for name, kind in zip(columns, kinds, strict=False):
        if kind.levels or (kind.is_discrete and _is_numeric(table[name])):
            table[name] = pd.Series(kind.encode(table[name], name))
    return _matrix(table, list(columns), len(X))


def _columns_of(X: Any) -> dict[str, pd.Series[Any]] | None:
    """Columns of a table by name; None if X is not a table."""
    if isinstance(X, pd.DataFrame):
        columns = [(str(name), X.iloc[:, j]) for j, name in enumerate(X.columns)]
    else:
        if type(X).__name__ == "LazyFrame":
            raise TypeError("X is a lazy table; call .collect() on it first.")
        table = nw.from_native(X, eager_only=True, pass_through=True)
        if not isinstance(table, nw.DataFrame):
            return None
        columns = [(str(name), _as_series(table[name])) for name in table.columns]
    check_names([name for name, _ in columns])
    return dict(columns)


def _as_series(column: nw.Series[Any]) -> pd.Series[Any]:
    """Bring a polars or pyarrow column to pandas, with NaN for null."""
    if column.dtype.is_integer() and column.null_count() == 0:
        return pd.Series(column.to_numpy(), name=column.name)
    if column.dtype == nw.Boolean or column.dtype.is_numeric():
        numbers = np.asarray(column.cast(nw.Float64).to_numpy(), dtype=np.float64)
        return pd.Series(numbers, name=column.name)
    return pd.Series(column.to_list(), dtype=object, name=column.name)


def _array(X: Any) -> Array:
    """Convert an array-like with scikit-learn's rules and messages."""
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(
            np.ma.asarray(X, dtype=np.float64), np.nan
        )  # np.asarray would bring the masked values back
    try:
        array = check_array(without_gradient(X), dtype="numeric", ensure_all_finite=False)
        values = np.array(array, dtype=np.float64, order="C")
    except OverflowError as error:
        cells = np.ndenumerate(np.asarray(X, dtype=object))
        where = next(", column ".join(map(str, place)) for place, cell in cells if not _reads_as_number(cell))
        raise ValueError(
            f"Row {where} (counted from 0) of X is an integer beyond the largest number that can be stored (1.8e308); "
            "correct it, or use another unit."
        ) from error
    if array.dtype.kind in "iu":
        _warn_if_rounded(values, "X")
    return values


def _matrix(
    table: dict[str, pd.Series[Any]],
    names: list[str],
    n: int,
    text_remedy: str = "drop {them}",
    label_remedy: str | None = None,
) -> Array:
    """Stack numeric columns; refuse the others, all at once and by name."""
    for name in names:
        if pd.api.types.is_complex_dtype(table[name].dtype):
            message = f"Complex data not supported: column {name!r}; pass real and imaginary parts."
            raise ColumnError(message, [name])
    text = [name for name in names if not _is_numeric(table[name])]
    if text:
        message = _text_message(table[text[0]], text, in_words(text_remedy, text))
        labels = [name for name in text if label_remedy and looks_like_labels(name, table[name])]
        if label_remedy and labels:
            advice = label_remedy.format(name=repr(labels[0]))
            message += f" If {labels[0]!r} says under which condition each row was measured, {advice}."
        if dates := [name for name in text if _looks_like_dates(table[name])]:
            message += f" If {dates[0]!r} says when each row was measured, keep it apart and pass it as time= to fit."
        raise ColumnError(message, text)
    values = np.empty((n, len(names)))
    for j, name in enumerate(names):
        column = table[name]
        values[:, j] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if pd.api.types.is_integer_dtype(column.dtype):
            _warn_if_rounded(values[:, j], f"column {name!r}")
    check_array(values, ensure_all_finite=False)
    return values


def _code_levels(
    table: dict[str, pd.Series[Any]],
    given: Mapping[str, str | Kind],
    text_remedy: str,
    label_remedy: str | None,
) -> dict[str, Kind]:
    """Put codes in the place of levels, in the table; what they stand for.

    Text that could be a mistake (some of it reads as numbers), the names of rows (it hardly recurs) or their conditions
    (by the name of the column) is left alone, unless the user says what it is.
    """
    coded = {}
    for name, column in table.items():
        said = given.get(name)
        is_category = isinstance(column.dtype, pd.CategoricalDtype)
        if isinstance(said, Kind) and said.levels:
            kind: Kind | None = said
            codes = said.encode(column, name)
        elif kind_name(said) in ("continuous", "count"):
            continue
        elif pd.api.types.is_bool_dtype(column.dtype):
            kind, codes = levels_of(column.astype(object))
        elif said is None and not is_category and not _is_numeric(column) and _looks_like_dates(column):
            continue  # a date that recurs is no level
        elif (is_category or not _is_numeric(column)) and _has_levels(
            column, sure=is_category or said is not None
        ):
            if said is None and label_remedy and is_label_name(name):
                advice = label_remedy.format(name=repr(name))
                raise ColumnError(
                    f"Non-numeric columns: {name!r} (row 0, counted from 0, is {shown(column.iloc[0])}). If {name!r} "
                    f"says under which condition each row was measured, {advice}; if only in which batch (a plate, a "
                    f"site), keep it apart and pass it as batch= to fit; if it is a variable, say "
                    f"kinds={{{name!r}: 'categorical'}}; otherwise {in_words(text_remedy, [name])}.",
                    [name],
                )
            kind, codes = levels_of(column)
            number = column.nunique()
            if kind is None and number > MOST_LEVELS:
                raise ColumnError(too_many(name, number), [name])
        else:
            continue
        if kind is not None:
            table[name], coded[name] = pd.Series(codes), kind
    return coded


def _has_levels(column: pd.Series[Any], *, sure: bool) -> bool:
    """Whether the entries of a column are levels; if that is not ``sure``, text that recurs and is no number."""
    entries = column.to_numpy(dtype=object)
    entries = entries[~pd.isna(entries)]
    if sure:
        return all(isinstance(entry, Hashable) for entry in entries)
    is_text = all(isinstance(entry, str) and not _reads_as_number(entry) for entry in entries)
    return is_text and 1 < len(set(entries)) <= 0.5 * len(entries)


def _is_numeric(column: pd.Series[Any]) -> bool:
    if column.dtype == object:
        return _first_text(column) is None
    return pd.api.types.is_numeric_dtype(column.dtype)  # includes bool


def _first_text(column: pd.Series[Any]) -> int | None:
    """Position of the first entry of an object column that is neither a real number nor missing."""
    for i, value in enumerate(column.to_numpy(dtype=object)):
        if value is None or value is pd.NA:
            continue
        if isinstance(value, str | bytes | np.ndarray):
            return i
        try:
            float(value)
        except (TypeError, ValueError, OverflowError):  # an integer of 400 digits
            return i
    return None


def _looks_like_dates(column: pd.Series[Any]) -> bool:
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return True
    entries = column.dropna().head(20)
    if not len(entries) or not all(isinstance(entry, str) for entry in entries):
        return False
    return bool(pd.to_datetime(entries, errors="coerce", format="mixed").notna().all())


def _text_message(first: pd.Series[Any], names: list[str], remedy: str) -> str:
    """Say what is not a number, and whether it only needs conversion or is really something else."""
    entries = first.astype(object)
    row = next((i for i, entry in enumerate(entries) if not _reads_as_number(entry)), None)
    start = f"Non-numeric columns: {listed(names)}"
    if row is None:
        name = names[0]
        return (
            f"{start}. The numbers in {name!r} are stored in another form, such as text or categories: "
            f"convert with X[{name!r}] = X[{name!r}].astype(float), or {remedy}."
        )
    where = f"{start} (row {row}, counted from 0, of {names[0]!r} is {shown(entries.iloc[row])})"
    if all(isinstance(entry, str) for entry in entries) and entries.is_unique:
        return (
            f"{where}. The entries of {names[0]!r} all differ: if they name the rows, make it the index, "
            f"X.set_index({names[0]!r}); otherwise {remedy}."
        )
    return (
        f"{where}; {remedy}, correct the entries, or, if they are levels of a category, say "
        f"kinds={{{names[0]!r}: 'categorical'}}."
    )


def _reads_as_number(entry: Any) -> bool:
    """Whether an entry is a number, missing, or text that Python reads as a number.

    pandas.to_numeric would be the natural choice, but ends the process at exponents such as 1e257301222821.
    """
    if entry is None or entry is pd.NA:
        return True
    try:
        number = float(entry)
    except (TypeError, ValueError, OverflowError):
        return False
    too_large = np.isinf(number) and isinstance(entry, str) and "inf" not in entry.lower()
    return not (too_large or isinstance(entry, pd.Timestamp | pd.Timedelta | np.ndarray | bytes))


def _warn_if_rounded(values: Array, where: str) -> None:
    if values.size and np.abs(values).max() > _EXACT:
        warn(f"Integers beyond 2**53 in {where} may not be exact in float64.", DataWarning, stacklevel=5)
