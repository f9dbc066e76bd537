"""From any table to a float64 matrix with names, and the refusals on the way."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from latentdo.data.tensors import without_gradient
from latentdo.messages import listed, shown
from latentdo.notices import warn

Array = NDArray[np.float64]
Missing = Literal["error", "drop"]

_SHOWN = 8  # at most so many names in one message
_SCALE_RATIO = 1e6
_FEWEST_ROW_NUMBERS = 10  # a few measurements may rise in steps of one by chance
_BLOCK = 512  # columns compared with all others at once
COPY = 1e-4
"""Columns whose correlation is nearer to one than this are copies, maybe with an error: of one per cent it is 5e-5."""

_LABEL_NAMES = frozenset(
    {"batch", "cluster", "cohort", "condition", "drug", "environment", "experiment", "genotype", "group",
     "intervention", "label", "perturbation", "regime", "sgrna", "strain", "target", "treatment"}
)  # fmt: skip
_EXACT = 2.0**53  # larger integers are not exact in float64


class DataWarning(UserWarning):
    """The data can be used, but something about them deserves a look."""


def table_to_array(
    X: Any,
    columns: Sequence[str] | None = None,
    text_remedy: str = "drop them",
    label_remedy: str | None = "drop it from X and pass it as regimes= to fit",
) -> tuple[Array, tuple[str, ...]]:
    """Turn any table into a new float64 matrix and its names, refusing what is not a number.

    Parameters
    ----------
    X : table or array-like [n, d]
        A pandas, polars or pyarrow table, an array, or nested lists. NaN and infinity pass.
    columns : sequence of str, optional
        For a table, the columns to use, in this order; for an array, the names to give.
    text_remedy : str
        What the message about columns that are not numeric advises first.
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
    wanted = list(table) if columns is None else [str(c) for c in columns]
    check_names(wanted)
    absent = [name for name in wanted if name not in table]
    if absent:
        raise ValueError(f"X has no column {listed(absent)}; its columns are {listed(table)}.")
    return _matrix(table, wanted, len(X), text_remedy, label_remedy), tuple(wanted)


def validate_rows(X: Any, columns: Sequence[str], *, estimator: str = "LatentInterventionDAG") -> Array:
    """Check new rows against the variables of a fitted model.

    Parameters
    ----------
    X : table or array-like [n, d]
        A table is aligned by name, whatever the order of its columns; an array must have the fitted order.
    columns : sequence of str
        Names of the variables seen in ``fit``.
    estimator : str
        Name for the message.

    Returns
    -------
    ndarray [n, d] of float64
        Finite values in the order of ``columns``.

    Raises
    ------
    ValueError
        If columns are missing or unexpected, or values are not finite.

    Examples
    --------
    >>> import pandas as pd
    >>> validate_rows(pd.DataFrame({"b": [1.0], "a": [2.0]}), columns=["a", "b"])
    array([[2., 1.]])
    """
    mismatch = f"X has {{found}} features, but {estimator} is expecting {{d}} features as input."
    values = aligned_array(X, columns, mismatch)
    check_finite(values, columns, remedy="remove these rows or fill them in")
    return values


def aligned_array(X: Any, columns: Sequence[str], mismatch: str, who: str = "X") -> Array:
    """Turn a table with exactly these columns, in any order, or an array in this order, into numbers.

    ``mismatch`` is the message for an array with another number of columns, ``who`` the name of the table.
    """
    table = _columns_of(X)
    if table is None:
        values = _array(X)
        if values.shape[1] != len(columns):
            raise ValueError(mismatch.format(found=values.shape[1], d=len(columns)))
        return values
    absent = [name for name in columns if name not in table]
    extra = [name for name in table if name not in columns]
    if absent or extra:
        parts = [f"missing {listed(absent)}"] * bool(absent) + [f"unexpected {listed(extra)}"] * bool(extra)
        raise ValueError(
            f"The columns of {who} do not match the variables: {'; '.join(parts)}. Pass exactly "
            f"{listed(columns)}, in any order, or an array without names in this order."
        )
    return _matrix(table, list(columns), len(X))


def check_names(names: Sequence[str], where: str = "") -> None:
    """Refuse names that occur twice; ``where`` is the file they come from."""
    seen: set[str] = set()
    twice = {name: None for name in names if name in seen or seen.add(name)}  # type: ignore[func-returns-value]
    if twice:
        raise ValueError(
            f"{where and where + ': '}Duplicate column names: {listed(twice)}; rename or drop them, names must be "
            "unique."
        )


def check_labels(column: Iterable[Any], name: str, where: str) -> None:
    """Refuse lists and the like as labels; ``where`` is the file they come from."""
    for row, entry in enumerate(column):
        if not isinstance(entry, Hashable):
            raise ValueError(
                f"{where}: column {name!r} cannot hold a label of each row: row {row} (counted from 0) is "
                f"{shown(entry)}, neither text nor a number."
            )


def check_finite(
    values: Array,
    names: Sequence[str],
    remedy: str = 'pass missing="drop" to leave out these rows, or fill them in',
    row_index: NDArray[np.int64] | None = None,
) -> None:
    """Refuse NaN and infinity, naming the first cell and the count in each column.

    ``row_index`` are the numbers of rows in the user's table, if some were left out before.
    """
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    row, j = (int(i) for i in np.argwhere(bad)[0])
    kind = "NaN" if np.isnan(values[row, j]) else "inf"
    counts = [f"{names[int(i)]!r} {int(bad[:, i].sum())}" for i in np.flatnonzero(bad.any(axis=0))]
    more = f", ... ({len(counts)} columns in all)" if len(counts) > _SHOWN else ""
    shown = row if row_index is None else int(row_index[row])
    raise ValueError(
        f"Input X contains NaN or infinity: the first is {kind} in row {shown} (counted from 0), column "
        f"{names[j]!r}. Such cells by column: {', '.join(counts[:_SHOWN])}{more}. To go on, {remedy}."
    )


def check_varying(values: Array, names: Sequence[str], remedy: str = "drop these columns") -> None:
    """Refuse columns that never change, by name."""
    if len(values) == 1:
        raise ValueError(
            "There is only one row, and nothing can be learnt from one; check the separator and the file."
        )
    constant = [names[int(j)] for j in np.flatnonzero(values.min(axis=0) == values.max(axis=0))]
    if constant:
        raise ValueError(
            f"Constant columns: {listed(constant)}. A variable that never changes has no causes or effects "
            f"that data could show; {remedy}."
        )


def warn_about_shape(n: int, spread: Array, names: Sequence[str], stacklevel: int = 2) -> None:
    """Warn of too few rows, and of columns whose standard deviations hint at a wrong unit."""
    d = len(names)
    if n <= d:
        message = f"There are only {n} rows for {d} variables; a graph found in so few rows means little."
        warn(message, DataWarning, stacklevel=stacklevel + 1)
    varying = np.flatnonzero(spread > 0.0)
    if varying.size == 0:
        return
    low, high = (int(varying[pick(spread[varying])]) for pick in (np.argmin, np.argmax))
    if spread[high] > _SCALE_RATIO * spread[low]:
        message = (
            f"Columns differ hugely in scale: the standard deviation of {names[high]!r} is "
            f"{spread[high]:.3g}, that of {names[low]!r} is {spread[low]:.3g}. Each column is standardised, "
            "so this does no harm if the units are right; check them."
        )
        warn(message, DataWarning, stacklevel=stacklevel + 1)


def warn_about_copies(z: Array, names: Sequence[str], stacklevel: int = 2) -> None:
    """Warn of columns that are linear copies of each other, or nearly: no data can tell which of them causes anything.

    ``z`` are standardised columns, ``[n, d]``.
    """
    if len(z) < 3:
        return
    copies: list[tuple[int, int]] = []
    for first in range(0, z.shape[1], _BLOCK):  # all pairs at once would fill gigabytes in wide tables
        correlation = np.abs(z[:, first : first + _BLOCK].T @ z[:, first:]) / len(z)
        found = np.argwhere(np.triu(correlation > 1.0 - COPY, 1)) + first
        copies += [(int(i), int(j)) for i, j in found]
    if copies:
        pairs = "; ".join(f"{names[i]!r} and {names[j]!r}" for i, j in copies[:_SHOWN])
        message = (
            f"Columns that are copies of each other up to scale, or nearly: {pairs}. Causes and effects of such a pair "
            "cannot be told apart; drop one of each."
        )
        warn(message, DataWarning, stacklevel=stacklevel + 1)


def warn_about_repeats(values: Array, stacklevel: int = 2) -> None:
    """Warn of rows that occur more than once: they count as independent evidence, which copies are not.

    ``values`` are rows in the user's units, ``[n, d]``. A single variable, or whole numbers, repeat by nature.
    """
    n, d = values.shape
    if n < 3 or d < 2 or not (values % 1.0).any(axis=0).all():
        return
    # Equal rows have equal hashes (zeros lose their sign); unequal ones differ but for one in 2**64 pairs.
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)
    multipliers = np.random.default_rng(0).integers(1, 2**63, d, dtype=np.uint64) * np.uint64(2) + np.uint64(
        1
    )
    mixed = (bits ^ (bits >> np.uint64(29))) * multipliers
    hashes = (mixed ^ (mixed >> np.uint64(32))).sum(axis=1, dtype=np.uint64)
    copies = n - len(np.unique(hashes))
    if copies:
        message = (
            f"{copies} of {n} rows repeat an earlier row exactly. If they were copied by mistake, for instance when "
            "files were joined, remove them (pandas: X.drop_duplicates()): copies make all results look too sure."
        )
        warn(message, DataWarning, stacklevel=stacklevel + 1)


def looks_like_labels(name: str, column: pd.Series[Any]) -> bool:
    """Whether a column seems to hold the condition of each row: by its name, or because its entries recur.

    Examples
    --------
    >>> import pandas as pd
    >>> looks_like_labels("x", pd.Series(["drug", "none"] * 10)), looks_like_labels("x", pd.Series(["a", "b", "c"]))
    (True, False)
    """
    try:
        distinct = column.nunique()
    except TypeError:  # lists and other things without a hash
        return False
    return 2 <= distinct <= (max(0.5 * len(column), 3) if _is_label_name(name) else 0.2 * len(column))


def _is_label_name(name: str) -> bool:
    return name.strip().lower().removesuffix("s") in _LABEL_NAMES


def warn_about_labels(values: Array, names: Sequence[str], remedy: str, stacklevel: int = 2) -> None:
    """Warn of row numbers, and of whole numbers under a name like "condition": neither is a variable of a graph."""
    for j, name in enumerate(names):
        column = values[:, j]
        if len(column) >= _FEWEST_ROW_NUMBERS and (np.diff(column) == 1.0).all():
            message = (
                f"Column {name!r} is used as a variable, but counts the rows: drop=[{name!r}] leaves it out."
            )
            warn(message, DataWarning, stacklevel=stacklevel + 1)
        if _is_label_name(name) and not (column % 1.0).any() and looks_like_labels(name, pd.Series(column)):
            message = (
                f"Column {name!r} is used as a variable, but looks like the condition of each row. If it is, "
                f"{remedy.format(name=repr(name))}."
            )
            warn(message, DataWarning, stacklevel=stacklevel + 1)


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
            f"Row {where} (counted from 0) of X is an integer beyond the largest number there is (1.8e308); correct "
            "it, or use another unit."
        ) from error
    if array.dtype.kind in "iu":
        _warn_if_rounded(values, "X")
    return values


def _matrix(
    table: dict[str, pd.Series[Any]],
    names: list[str],
    n: int,
    text_remedy: str = "drop them",
    label_remedy: str | None = None,
) -> Array:
    """Stack numeric columns; refuse the others, all at once and by name."""
    for name in names:
        if pd.api.types.is_complex_dtype(table[name].dtype):
            raise ValueError(f"Complex data not supported: column {name!r}; pass real and imaginary parts.")
    text = [name for name in names if not _is_numeric(table[name])]
    if text:
        message = _text_message(table[text[0]], text, text_remedy)
        labels = [name for name in text if label_remedy and looks_like_labels(name, table[name])]
        if label_remedy and labels:
            advice = label_remedy.format(name=repr(labels[0]))
            message += f" If {labels[0]!r} says under which condition each row was measured, {advice}."
        raise ValueError(message)
    values = np.empty((n, len(names)))
    for j, name in enumerate(names):
        column = table[name]
        values[:, j] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if pd.api.types.is_integer_dtype(column.dtype):
            _warn_if_rounded(values[:, j], f"column {name!r}")
    check_array(values, ensure_all_finite=False)
    return values


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
    return (
        f"{start} (row {row}, counted from 0, of {names[0]!r} is {shown(entries.iloc[row])}); {remedy}, correct "
        "the entries, or encode categories as 0/1 columns, for example with pandas.get_dummies."
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
