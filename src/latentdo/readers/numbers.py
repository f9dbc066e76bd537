"""Numbers in text that pandas leaves as text: read where they are numbers after all, explained where they are not."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final

import pandas as pd

from latentdo.messages import shown

_LARGEST: Final = "1.8e308"
_NUMBER: Final = r"\s*[+-]?(\d+({0}\d*)?|{0}\d+)([eE][+-]?\d+)?\s*"
_INFINITY: Final = re.compile(r"\s*[+-]?(inf|infinity)\s*", re.IGNORECASE)
_GROUPED: Final = re.compile(r"\s*[+-]?\d{1,3}([.,]\d{3})+\s*")
_MARKS: Final = re.compile(r"(?<=\d)[.,_' ](?=\d)")
_DATE: Final = re.compile(r"\s*\d{1,4}([./-])\d{1,2}\1\d{1,4}(\s.*)?")
_LIMIT: Final = re.compile(r"\s*([<>≤≥]=?|below|above|under|over)\s*[+-]?\d", re.IGNORECASE)
_FEW: Final = 0.1
"""Share of the entries that may be something else in a column of numbers; beyond, the column is no such."""
_FEW_MARKS: Final = 0.5
"""The same where all of them are one word, such as a dash: no column of levels has one level and many numbers."""


def long_integers(column: pd.Series[Any], decimal: str) -> pd.Series[Any]:
    """The same column, as numbers if only an integer beyond 64 bits has kept pandas from reading it."""
    if not all(_is_missing(cell) or _is_plain(cell, decimal) for cell in column):
        return column
    values = [math.nan if _is_missing(cell) else _as_float(cell, decimal) for cell in column]
    if any(math.isinf(v) and not _INFINITY.fullmatch(cell) for v, cell in zip(values, column, strict=True)):
        return column  # explain_number says why
    return pd.Series(values, index=column.index, name=column.name)


def explain_number(column: pd.Series[Any], decimal: str) -> str | None:
    """Why a column of a text file that looks like numbers is none: its first odd cell, and the remedy.

    None if that cell does not look like a number at all.
    """
    for row, cell in enumerate(column):
        if not isinstance(cell, str):
            continue
        where = f"row {row} (counted from 0) of {column.name!r} is {shown(cell)}"
        if _is_plain(cell, decimal):
            if _INFINITY.fullmatch(cell) or math.isfinite(_as_float(cell, decimal)):
                continue
            return (
                f"{where}, beyond the largest storable number ({_LARGEST}): correct it, or use another unit"
            )
        other = "," if decimal == "." else "."
        if _is_plain(cell, other):
            groups = (
                f"; if it only groups digits, write {_MARKS.sub('', cell)}"
                if _GROUPED.fullmatch(cell)
                else ""
            )
            return f'{where}: if {other!r} is the decimal sign, pass decimal="{other}"{groups}'
        if _DATE.fullmatch(cell):
            return None
        if _is_plain(_MARKS.sub("", cell), decimal):
            return f"{where}: write numbers without marks between their digits, and with {decimal!r} as decimal sign"
        try:
            float(cell)  # takes digits of other scripts too
        except ValueError:
            return None
        return f"{where}: write it with the digits 0 to 9"
    return None


def read_again(frame: pd.DataFrame, decimal: str, na_values: Sequence[str]) -> pd.DataFrame:
    """The same table, its text read with another decimal sign, or other words for a missing value."""
    read = frame.copy(deep=False)
    for name in read.select_dtypes(object).columns:
        column = read[name]
        read[name] = long_integers(column.where(~column.isin(list(na_values)), math.nan), decimal)
    return read


def explain_odd_cells(column: pd.Series[Any], decimal: str) -> tuple[str, str | None] | None:
    """What keeps a column from being numbers if only a few of its cells do: the first of them, and the remedy.

    With it comes the word that seems to stand for a missing value, if all these cells hold the same one. None if cells
    that are no numbers are no exceptions.
    """
    there = [(row, cell) for row, cell in enumerate(column) if not _is_missing(cell)]
    odd = [(row, cell) for row, cell in there if not _is_plain(cell, decimal)]
    mark = _common_mark([cell for _, cell in odd])
    if not odd or len(odd) > (_FEW if mark is None else _FEW_MARKS) * len(there):
        return None
    row, cell = odd[0]
    count = f"{len(odd)} of {len(there)} entries {'is not a number' if len(odd) == 1 else 'are not numbers'}"
    advice = "correct it, or leave the cell empty"
    if isinstance(cell, str) and _LIMIT.match(cell):
        advice = "write the limit itself, which the fit then recognises, or leave the cell empty"
    return f"{count}. Row {row} (counted from 0) is {shown(cell)}: {advice}", mark


def _common_mark(odd: Sequence[Any]) -> str | None:
    """The one word in all these cells, if it may stand for a missing value: it recurs, or is no word at all."""
    if not odd or not isinstance(odd[0], str) or set(odd) != {odd[0]} or _LIMIT.match(odd[0]):
        return None
    return odd[0] if len(odd) > 1 or not any(sign.isalnum() for sign in odd[0]) else None


def _is_missing(cell: Any) -> bool:
    return isinstance(cell, float) and math.isnan(cell)


def _is_plain(cell: Any, decimal: str) -> bool:
    if not isinstance(cell, str):
        return False
    written = re.fullmatch(_NUMBER.format(re.escape(decimal)), cell, re.ASCII)
    return bool(written or _INFINITY.fullmatch(cell))


def _as_float(cell: str, decimal: str) -> float:
    return float(cell.replace(decimal, "."))
