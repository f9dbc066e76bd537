"""Which rows belong together: groups, series, times and batches, whatever the user's form, as numbers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latentdo.data.circumstances import Circumstances
from latentdo.data.labels import encode, is_reordered
from latentdo.data.offset import encode_offset
from latentdo.data.tensors import without_gradient


def encode_groups(
    groups: Any, rows: NDArray[np.int64], n_rows: int, index: pd.Index[Any] | None = None
) -> tuple[NDArray[np.int64], list[Hashable]]:
    """Give numbers to groups of rows, those with a label first; -1, None and NaN are rows on their own.

    Parameters and return values are those of :func:`.encode_regimes`, except that every row has a code: rows on their
    own have those after the last label.

    Examples
    --------
    >>> import numpy as np
    >>> encode_groups(["plate 1", None, "plate 2", "plate 1", None], np.arange(5), 5)
    (array([0, 2, 1, 0, 3]), ['plate 1', 'plate 2'])
    """
    return _encode_alone(groups, "groups", rows, n_rows, index)


def encode_series(
    series: Any, rows: NDArray[np.int64], n_rows: int, index: pd.Index[Any] | None = None
) -> tuple[NDArray[np.int64], list[Hashable]]:
    """Give numbers to series of rows; -1, None and NaN are rows on their own, as for :func:`encode_groups`."""
    return _encode_alone(series, "series", rows, n_rows, index)


def encode_batches(
    batch: Any, rows: NDArray[np.int64], n_rows: int, index: pd.Index[Any] | None = None
) -> tuple[NDArray[np.int64], list[Hashable]]:
    """Give numbers to batches of rows; every row has to have one."""
    codes, labels = encode(batch, "batch", rows, n_rows, index)
    if (codes < 0).any():
        at = int(np.flatnonzero(codes < 0)[0])
        raise ValueError(
            f"batch has no label in row {rows[at]} (counted from 0; {int((codes < 0).sum())} rows in all); "
            "name the batch of every row, or leave out rows without one."
        )
    return codes, labels


def read_circumstances(
    rows: NDArray[np.int64],
    n_rows: int,
    index: pd.Index[Any] | None = None,
    *,
    time: Any = None,
    series: Any = None,
    batch: Any = None,
    weights: NDArray[np.float64] | None = None,
    offset: Any = None,
) -> Circumstances:
    """When and where rows were measured, whatever the user's form; with ``series`` alone, rows are in order.

    ``weights`` say how much each of the ``n_rows`` counts; all once is nothing to say.
    """
    where = Circumstances()
    if time is not None:
        values, dated = encode_time(time, rows, n_rows, index)
        where = replace(where, time=values, dated=dated)
    if series is not None:
        codes, names = encode_series(series, rows, n_rows, index)
        times = np.arange(float(rows.size)) if time is None else where.time
        where = replace(where, time=times, series=codes, series_names=tuple(names), counted=time is None)
    if batch is not None:
        codes, names = encode_batches(batch, rows, n_rows, index)
        where = replace(where, batch=codes, batch_names=tuple(names))
    if weights is not None and (weights[rows] != 1.0).any():
        where = replace(where, weight=weights[rows])
    if offset is not None:
        where = replace(where, offset=encode_offset(offset, rows, n_rows, index))
    return where


def _encode_alone(
    given: Any, name: str, rows: NDArray[np.int64], n_rows: int, index: pd.Index[Any] | None
) -> tuple[NDArray[np.int64], list[Hashable]]:
    """Numbers of labels, and further ones for rows without."""
    codes, labels = encode(given, name, rows, n_rows, index)
    alone = codes < 0
    codes[alone] = len(labels) + np.arange(alone.sum())
    return codes, labels


def encode_time(
    time: Any, rows: NDArray[np.int64], n_rows: int, index: pd.Index[Any] | None = None
) -> tuple[NDArray[np.float64], bool]:
    """Times of rows as numbers; of dates and timestamps, seconds since 1970 (UTC); and whether they are dates.

    Parameters
    ----------
    time : sequence of n_rows numbers, dates or timestamps
        In any order. Text is read as dates.
    rows, n_rows, index
        See :func:`.encode_regimes`.

    Raises
    ------
    ValueError
        If a time is missing or cannot be read, naming the row.

    Examples
    --------
    >>> import numpy as np
    >>> encode_time(["1970-01-01 00:01", "1970-01-01 00:00"], np.arange(2), 2)
    (array([60.,  0.]), True)
    """
    given = without_gradient(time, "time")
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__len__"):
        raise TypeError(f"time must be a sequence with one time per row, got {type(given).__name__}.")
    shape = tuple(getattr(given, "shape", (len(given),)))
    if shape != (n_rows,):
        raise ValueError(f"time must be 1D with one entry per row ({n_rows}); got shape {shape}.")
    if index is not None and isinstance(given, pd.Series) and is_reordered(given.index, index):
        raise ValueError(
            "time has the index of X in another order; pass time.loc[X.index], or time.to_numpy() if its order is "
            "right."
        )
    listing = given.to_pylist() if hasattr(given, "to_pylist") else given
    column = pd.Series(listing if isinstance(listing, pd.Series) else list(listing)).reset_index(drop=True)[
        rows
    ]
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        dates = _dates(column)
        _check_times(column, dates.isna().to_numpy(), rows)
        since = dates - pd.Timestamp(0, tz="UTC")
        return np.asarray(since / pd.Timedelta(seconds=1), dtype=np.float64), True
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    _check_times(column, ~np.isfinite(values), rows)
    return values, False


def _dates(column: pd.Series[Any]) -> pd.Series[Any]:
    """Dates and timestamps, missing where an entry is neither; day and month are told apart by all rows together.

    Raises
    ------
    ValueError
        If no row tells them apart, or rows contradict each other.
    """
    dates = pd.to_datetime(column, errors="coerce", utc=True, format="mixed")
    text = column.astype(str)
    numbers = text.str.extract(r"^\s*(\d{1,2})[/.-](\d{1,2})[/.-]\d{2}").astype(float)
    year_last = numbers[0].notna()
    if not year_last.any():
        return dates
    months = 12
    first, second = (numbers[year_last] > months).any()
    differ = (numbers[0] != numbers[1]) & year_last
    if first == second and differ.any():
        example = column[differ].iloc[0]
        raise ValueError(
            f"time {example!r} may have the day or the month first, and the rows "
            f"{'contradict each other' if first else 'do not tell which'}; write dates as year-month-day (pandas: "
            "pd.to_datetime(dates, format=...))."
        )
    read = pd.to_datetime(column[year_last], errors="coerce", utc=True, format="mixed", dayfirst=bool(first))
    return dates.where(~year_last, read)


def _check_times(column: pd.Series[Any], wrong: NDArray[np.bool_], rows: NDArray[np.int64]) -> None:
    """Refuse rows whose time is unknown."""
    if wrong.any():
        place = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"time in row {rows[place]} (counted from 0) is {column.iloc[place]!r}, which is not a time "
            f"({int(wrong.sum())} rows in all); pass numbers, dates or timestamps, and leave out rows without one."
        )


def label_groups(
    regimes: NDArray[np.int64],
    groups: NDArray[np.int64],
    rows: NDArray[np.int64],
    seen: Sequence[Hashable],
    labels: Sequence[Hashable],
) -> NDArray[np.int64]:
    """Labels of rows, where a row with a label labels its whole group.

    Parameters
    ----------
    regimes, groups : ndarray [n] of int64
        Label of every row, -1 where unknown, and its group.
    rows : ndarray [n] of int64
        Positions of the rows in the user's table.
    seen, labels : sequence
        What the user calls the labels, and the groups.

    Raises
    ------
    ValueError
        If two rows of a group have different labels, naming group and rows.
    """
    known = np.flatnonzero(regimes >= 0)
    first = np.full(int(groups.max()) + 1, -1)
    first[groups[known[::-1]]] = known[::-1]  # the first row with a label, whoever comes later
    wrong = known[regimes[known] != regimes[first[groups[known]]]]
    if wrong.size:
        late = int(wrong[0])
        early = int(first[groups[late]])
        raise ValueError(
            f"group {labels[groups[late]]!r} has different labels in regimes: row {rows[early]} is "
            f"{seen[regimes[early]]!r}, row {rows[late]} is {seen[regimes[late]]!r} (rows counted from 0). Rows of a "
            "group share one regime: correct the labels, or split the group."
        )
    leader = first[groups]
    return np.where(leader >= 0, regimes[leader], -1)
