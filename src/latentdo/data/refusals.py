"""What is wrong with a table, as an error that says of which columns, and how to go on without correcting it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
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


def find_problems(look: Callable[[frozenset[str], Mapping[str, Any]], object]) -> list[ColumnError]:
    """Everything that is wrong with a table, not only what is found first.

    Parameters
    ----------
    look : callable
        Checks the table without some columns, as if some arguments had been given; raises :class:`ColumnError`.
    """
    problems: list[ColumnError] = []
    without: frozenset[str] = frozenset()
    given: dict[str, Any] = {}
    while True:
        try:
            look(without, given)
        except ColumnError as error:
            new = {name: value for name, value in error.remedy.items() if name not in ("drop", *given)}
            if not new and without.issuperset(error.columns):
                return problems
            problems.append(error)
            without = without if new else without | set(error.columns)
            given |= new
        except ValueError:  # not of some columns, so that nothing more can be found out
            return problems
        else:
            return problems


def all_problems(what: str, problems: Sequence[ColumnError], leave_out: str, join: str) -> str:
    """One message for everything that is wrong with a table, and the arguments that mend whatever arguments can mend.

    ``leave_out`` says how to leave columns out, with ``{names}`` in their place; ``join`` stands between arguments.
    """
    drop = [name for problem in problems for name in problem.remedy.get("drop", ())]
    others = {name: value for problem in problems for name, value in problem.remedy.items() if name != "drop"}
    arguments = [leave_out.format(names=drop)] * bool(drop)
    arguments += [f'{name}="{v}"' if isinstance(v, str) else f"{name}={v}" for name, v in others.items()]
    by_hand = any(not problem.remedy for problem in problems)
    which = "Everything that need not be corrected by hand is fixed" if by_hand else "All of this is fixed"
    lines = [f"{what} cannot be used as it is:", *(f"- {problem}" for problem in problems)]
    if arguments:
        lines.append(f"{which} at once by {join.join(arguments)}")
    if drop:  # what is left out may be what tells rows apart, which only the user knows
        lines[-1] = (
            f"If you need none of the columns that this leaves out: {lines[-1][0].lower()}{lines[-1][1:]}"
        )
    return "\n".join(lines)


def in_words(remedy: str, names: Sequence[str]) -> str:
    """Fill in a remedy: the names of columns for ``{names}``, and "it" or "them" for ``{them}``.

    Examples
    --------
    >>> in_words("pass drop={names} to leave {them} out", ["a"])
    "pass drop=['a'] to leave it out"
    """
    return remedy.format(names=list(names), them="it" if len(names) == 1 else "them")


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
            f"that data could show; {in_words(remedy, constant)}.",
            constant,
        )
