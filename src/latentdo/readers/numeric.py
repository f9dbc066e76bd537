"""From a frame of any columns to one of numbers and levels; or all that keeps it from being one, in one message."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latentdo.data.missing import check_seen
from latentdo.data.refusals import ColumnError, check_finite, check_infinite, check_varying
from latentdo.data.remarks import warn_about_labels, warn_about_shape
from latentdo.data.table import Columns, Missing, read_columns
from latentdo.messages import listed
from latentdo.readers.numbers import explain_number, explain_odd_cells

if TYPE_CHECKING:
    from latentdo.readers.table import ReadingOptions

_LABEL_REMEDY: Final = "pass regime_column={name}"


def numbers_and_levels(
    path: Path, frame: pd.DataFrame, options: ReadingOptions, *, is_text: bool, has_labels: bool
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
    problems: list[ColumnError] = []
    missing: Missing = options.missing
    label_remedy = None if has_labels else _LABEL_REMEDY
    while True:
        try:
            _check_named(frame, options)
            if is_text:
                _check_written(frame, options)
            said = {name: kind for name, kind in (options.kinds or {}).items() if name in frame.columns}
            columns = read_columns(
                frame,
                None,
                said,
                text_remedy="pass drop={names} to leave them out",
                label_remedy=label_remedy,
            )
            values, kept = _complete(columns, missing)
            if options.to_fit:
                check_varying(values, columns.names, remedy="pass drop={names} to leave these columns out")
            break
        except ColumnError as error:  # go on without these columns, to find out what else is wrong
            problems.append(error)
            if "missing" in error.remedy:
                missing = error.remedy["missing"]
            else:
                frame = frame.drop(columns=list(error.columns))
            if not len(frame.columns):
                raise _all_problems(path, problems) from error
        except ValueError as error:
            raise ValueError(f"{path.name}: {error}") from error
    if problems:
        raise _all_problems(path, problems) from problems[0]
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


def _all_problems(path: Path, problems: Sequence[ColumnError]) -> ValueError:
    """One error for all that is wrong with a table, and the arguments that mend whatever arguments can mend."""
    if len(problems) == 1:
        return ValueError(f"{path.name}: {problems[0]}")
    drop = [name for problem in problems for name in problem.remedy.get("drop", ())]
    others = {name: value for problem in problems for name, value in problem.remedy.items() if name != "drop"}
    arguments = [f"drop={drop}"] * bool(drop) + [f'{name}="{value}"' for name, value in others.items()]
    by_hand = sum(not problem.remedy for problem in problems)
    which = "Everything that need not be corrected by hand is fixed" if by_hand else "All of this is fixed"
    mend = f"\n{which} at once by {', '.join(arguments)}" if arguments else ""
    listing = "".join(f"\n- {problem}" for problem in problems)
    return ValueError(f"{path.name} cannot be used as it is:{listing}{mend}")


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
    for name in text:
        if (why := explain_odd_cells(frame[name], options.decimal)) is not None:
            raise ColumnError(f"In column {name!r} {why}.", [name], {})


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
