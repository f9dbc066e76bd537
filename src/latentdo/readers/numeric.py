"""From a frame of any columns to one of numbers and levels; or all that keeps it from being one, in one message."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latentdo.data.missing import check_seen, warn_about_rows_left_out
from latentdo.data.refusals import (
    ColumnError,
    all_problems,
    check_finite,
    check_infinite,
    check_varying,
    find_problems,
)
from latentdo.data.remarks import warn_about_labels, warn_about_shape
from latentdo.data.table import Columns, Missing, read_columns
from latentdo.messages import listed
from latentdo.readers.numbers import explain_number, explain_odd_cells, read_again

if TYPE_CHECKING:
    from latentdo.readers.table import ReadingOptions

_LABEL_REMEDY: Final = "pass regime_column={name}"


def numbers_and_levels(
    path: Path,
    frame: pd.DataFrame,
    options: ReadingOptions,
    problems: Sequence[ColumnError] = (),
    *,
    is_text: bool,
    has_labels: bool,
) -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """Refuse what is neither a finite, varying number nor a level: all of it at once, and what would mend it.

    Parameters
    ----------
    path : Path
        The file, for messages.
    frame : DataFrame [n, d]
        Its variables.
    options : ReadingOptions
        How to read.
    problems : sequence of ColumnError
        What is known to be wrong already.
    is_text : bool
        Whether numbers were read from text.
    has_labels : bool
        Whether the conditions of rows are known, so that no column need be suspected of holding them.

    Returns
    -------
    X : DataFrame [m, d]
    kept : ndarray [m]
        Which rows these are.
    """
    label_remedy = None if has_labels else _LABEL_REMEDY

    def look(
        without: frozenset[str] = frozenset(), given: Mapping[str, Any] = MappingProxyType({})
    ) -> tuple[Columns, NDArray[np.float64], NDArray[np.intp]]:
        """Check the table without some columns, and as if some arguments had been given."""
        read = replace(options, **given)
        rest = frame[[name for name in frame.columns if name not in without]]
        _check_named(rest, read)
        if is_text:
            rest = read_again(rest, read.decimal, read.na_values) if given else rest
            _check_written(rest, read)
        said = {name: kind for name, kind in (read.kinds or {}).items() if name in rest.columns}
        text_remedy = "pass drop={names} to leave {them} out"
        columns = read_columns(rest, None, said, text_remedy=text_remedy, label_remedy=label_remedy)
        values, kept = _complete(columns, read.missing)
        if options.to_fit:
            check_varying(values, columns.names, remedy="pass drop={names} to leave {them} out")
        return columns, values, kept

    try:
        if problems:
            raise problems[0]
        columns, values, kept = look()
    except ColumnError as error:
        problems = [*problems, *find_problems(look)]
        if len(problems) == 1:
            raise ValueError(f"{path.name}: {problems[0]}") from error
        raise ValueError(all_problems(path.name, problems, "drop={names}", ", ")) from error
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from error
    warn_about_rows_left_out(len(frame) - kept.size, len(frame), stacklevel=4)
    names, coded = columns.names, columns.coded
    if options.to_fit:
        if not has_labels:
            warn_about_labels(values, names, _LABEL_REMEDY, stacklevel=4)
        spread = np.where(np.isin(names, list(coded)), 0.0, np.nanstd(values, axis=0))
        warn_about_shape(len(values), spread, names, stacklevel=4)
    X = pd.DataFrame(values, index=frame.index[kept], columns=pd.Index(names))
    for name, kind in coded.items():
        X[name] = (
            frame[name].iloc[kept] if kind.levels == ("False", "True") else kind.decode(X[name].to_numpy())
        )
    return X, kept


def _check_named(frame: pd.DataFrame, options: ReadingOptions) -> None:
    """Refuse columns without a name, unless they were asked for."""
    nameless = [name for name in frame.columns if re.fullmatch(r"Unnamed: \d+|__index_level_\d+__", name)]
    if nameless and options.columns is None:
        raise ColumnError(
            f"there is a column without a name ({listed(nameless)}), probably row numbers written by pandas' to_csv; "
            f"pass drop={nameless} to leave it out, or give it a name.",
            nameless,
        )


def _check_written(frame: pd.DataFrame, options: ReadingOptions) -> None:
    """Say which cell keeps a column of a text file from being numbers, if it looks like one."""
    text = [
        name for name in frame.columns if name not in (options.kinds or {}) and frame[name].dtype == object
    ]
    wrong = {name: why for name in text if (why := explain_number(frame[name], options.decimal)) is not None}
    if wrong:
        why = next(iter(wrong.values()))
        other = "," if options.decimal == "." else "."
        remedy = {"decimal": other} if f'pass decimal="{other}"' in why else {}
        raise ColumnError(f"Non-numeric columns: {listed(wrong)} ({why}).", wrong, remedy)
    odd = {name: found for name in text if (found := explain_odd_cells(frame[name], options.decimal))}
    for name, (why, mark) in odd.items():
        if mark is None:
            raise ColumnError(f"In column {name!r} {why}.", [name], {})
    if odd:
        marks = sorted({str(mark) for _, mark in odd.values()})
        sentences = " ".join(f"In column {name!r} {why}." for name, (why, _) in odd.items())
        words = [*options.na_values, *marks]
        message = f"{sentences} If {listed(marks)} means that a value is missing, pass na_values={words}."
        raise ColumnError(message, odd, {"na_values": words})


def _complete(columns: Columns, missing: Missing) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """The rows to use, and which they are; refuses missing and infinite cells unless asked to take them."""
    values, names = columns.values, columns.names
    kept = np.arange(len(values))
    if missing == "drop":
        kept = np.flatnonzero(np.isfinite(values).all(axis=1))
        values = values[kept]
        if kept.size == 0:
            raise ValueError(
                'Every row has a missing value; keep them with missing="model", or drop the columns with the most '
                "of them."
            )
    if missing == "model":
        check_infinite(values, names)
        check_seen(values, names)
    else:
        check_finite(values, names)
    return values, kept
