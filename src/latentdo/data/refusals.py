"""What is wrong with a table, as an error that says of which columns, and how to go on without correcting it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from latentdo.messages import listed, shown

Array = NDArray[np.float64]

_SHOWN: Final = 8  # at most so many names in one message
_FEW_ROWS_LOST: Final = 0.9  # with so large a share of complete rows, leaving out the others assumes less


class ColumnError(ValueError):
    """A refusal of some columns.

    A reader can continue without these columns and collect everything else that is wrong before it reports.

    Parameters
    ----------
    message : str
        What is wrong, where, and what to do.
    columns : iterable of str
        Of which columns.
    remedy : mapping, optional
        Arguments of :func:`latentdo.read_table` that let the table pass as it is: ``drop`` of the columns by default,
        and nothing where cells have to be corrected by hand.
    """

    def __init__(self, message: str, columns: Iterable[str], remedy: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.columns = tuple(columns)
        self.remedy: dict[str, Any] = {"drop": list(self.columns)} if remedy is None else dict(remedy)


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
    remedy: str | None = None,
    row_index: NDArray[np.int64] | None = None,
) -> None:
    """Refuse NaN and infinity, naming the first cell and the count in each column.

    ``row_index`` are the numbers of rows in the user's table, if some were left out before.
    """
    if remedy is None:
        others = (
            "correct them"
            if np.isinf(values).any()
            else 'missing="model" to keep them and sum these cells out'
        )
        remedy = f'pass missing="drop" to leave out these rows, or {others}'
    _refuse(~np.isfinite(values), values, names, "NaN or infinity", remedy, row_index)


def check_infinite(values: Array, names: Sequence[str], row_index: NDArray[np.int64] | None = None) -> None:
    """The same of infinity alone, where NaN stands for a missing cell."""
    remedy = "correct these cells, or leave them empty (NaN) if their values are unknown"
    _refuse(np.isinf(values), values, names, "infinity", remedy, row_index)


def _refuse(
    bad: NDArray[np.bool_],
    values: Array,
    names: Sequence[str],
    what: str,
    remedy: str,
    row_index: NDArray[np.int64] | None,
) -> None:
    if not bad.any():
        return
    row, j = (int(i) for i in np.argwhere(bad)[0])
    kind = "NaN" if np.isnan(values[row, j]) else "inf"
    counts = [f"{names[int(i)]!r} {int(bad[:, i].sum())}" for i in np.flatnonzero(bad.any(axis=0))]
    more = f", ... ({len(counts)} columns in all)" if len(counts) > _SHOWN else ""
    shown = row if row_index is None else int(row_index[row])
    complete = float((~bad).all(axis=1).mean())
    keep = complete < _FEW_ROWS_LOST and not np.isinf(values).any()
    raise ColumnError(
        f"Input X contains {what}: the first is {kind} in row {shown} (counted from 0), column "
        f"{names[j]!r}. Such cells by column: {', '.join(counts[:_SHOWN])}{more}. To go on, {remedy}.",
        [names[int(i)] for i in np.flatnonzero(bad.any(axis=0))],
        {"missing": "model" if keep else "drop"} if complete else {},
    )


def check_varying(values: Array, names: Sequence[str], remedy: str = "drop these columns") -> None:
    """Refuse columns that never change, by name."""
    if len(values) == 1:
        raise ValueError(
            "There is only one row, from which nothing can be learnt; check the separator and the file."
        )
    constant = [names[int(j)] for j in np.flatnonzero(np.fmin.reduce(values) == np.fmax.reduce(values))]
    if constant:
        raise ColumnError(
            f"Constant columns: {listed(constant)}. A variable that never changes has no causes or effects "
            f"that data could show; {remedy.format(names=constant)}.",
            constant,
        )
