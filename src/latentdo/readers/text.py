"""CSV and the like: the one place that reads them.

pandas papers over much (repeated names, rows of unequal length), cuts cells at a NUL character, and its default parser
ends the process at exponents such as 1e257301222821. Hence a first pass finds what is wrong, and pandas reads what is
right, with every digit.
"""

from __future__ import annotations

import csv
import lzma
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final

import pandas as pd

from latentdo.data.refusals import check_names
from latentdo.messages import shown
from latentdo.readers.files import check_file, open_text
from latentdo.readers.numbers import long_integers

# pandas >= 3.1 reads every digit by itself and has deprecated the argument; before, the default was off by one bit
_PANDAS = tuple(int(part) for part in pd.__version__.split(".")[:2])
_EXACT_FLOATS: Final[dict[str, Any]] = {"float_precision": "round_trip"} if _PANDAS < (3, 1) else {}

_MISSING_NUMBER: Final = (
    "", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-NaN", "-nan", "<NA>", "NULL", "null", "None",
)  # fmt: skip

_LONGEST_LINE: Final = (
    2**26
)  # characters, for a million columns; a file without line ends must not fill the memory

Header = Callable[[Path, list[str]], list[str]]


def plain_names(path: Path, first: list[str]) -> list[str]:
    """The first row as names; columns without one are called as pandas does."""
    names = [name or f"Unnamed: {j}" for j, name in enumerate(first)]
    check_names(names, path.name)
    return names


def read_csv(
    path: Path,
    *,
    separator: str = ",",
    decimal: str = ".",
    encoding: str = "utf-8",
    header: Header | None = plain_names,
    text: Collection[str | int] = (),
    missing: Mapping[str, Sequence[str]] | None = None,
    na_values: Sequence[str] = (),
    n_rows: int | None = None,
) -> pd.DataFrame:
    """Read a text file of rows, compressed or not, or refuse it with file, row and column.

    Parameters
    ----------
    path : Path
        The file; the ending says whether it is compressed.
    separator, decimal, encoding : str
        How it is written.
    header : callable, optional
        Makes names of the first row; None if the first row holds values, and columns are ``X1 .. Xd``.
    text : collection of str or int
        Columns, by name or place, whose cells stay the text they are.
    missing : mapping from str to sequence of str, optional
        What stands for a missing cell in a column, if not the usual words for a missing number.
    na_values : sequence of str
        Words that also stand for a missing cell, in all columns but those of text.
    n_rows : int, optional
        Look at no more rows than these.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it cannot be read as it is.
    """
    names, n_found = _scan(path, separator, encoding, header, n_rows)
    verbatim = [name for j, name in enumerate(names) if name in text or j in text]
    markers: dict[Any, Any] = {
        name: [*(missing or {}).get(name, _MISSING_NUMBER), *na_values] for name in names
    }
    markers |= {name: [] for name in verbatim}
    with _explained(path, encoding), open_text(path, _with_mark(encoding)) as stream:
        frame: pd.DataFrame = pd.read_csv(
            stream,
            sep=separator,
            decimal=decimal,
            header=None if header is None else 0,
            names=names,
            index_col=False,
            dtype=dict.fromkeys(verbatim, str),
            na_values=markers,
            keep_default_na=False,
            low_memory=False,
            nrows=n_rows,
            **_EXACT_FLOATS,
        )
    if len(frame) != n_found:
        raise ValueError(
            f"{path.name} cannot be read: two ways of counting find {n_found} and {len(frame)} rows; look for lines of "
            "blanks, and for quotes in the middle of a cell."
        )
    for name in names:
        if name not in verbatim and frame[name].dtype == object:
            frame[name] = long_integers(frame[name], decimal)
    return frame


def csv_rows(path: Path, separator: str = ",", encoding: str = "utf-8") -> Iterator[tuple[int, list[str]]]:
    """Rows of a text file that are not empty, each with the number of its last line.

    Raises
    ------
    ValueError
        If this is not text, or a cell holds a NUL character; the message names file, row and column.
    """
    if len(separator) != 1:
        raise ValueError(f"separator={separator!r} must be a single character.")
    check_file(path)
    with _explained(path, encoding), open_text(path, _with_mark(encoding)) as stream:
        lines = _Lines(path, stream)
        names: list[str] | None = None
        count = 0
        for row in (reader := csv.reader(lines, delimiter=separator)):
            if lines.has_nul:
                _refuse_nul(path, row, count - 1, reader.line_num, names)
            if row:
                names = row if names is None else names
                count += 1
                yield reader.line_num, row


def _scan(
    path: Path, separator: str, encoding: str, header: Header | None, n_rows: int | None
) -> tuple[list[str], int]:
    """Names, and the number of rows; refuse repeated names, rows of unequal length, and tables without rows."""
    rows = csv_rows(path, separator, encoding)
    _, first = next(rows, (0, None))
    if first is None:
        raise ValueError(f"{path.name} is empty.")
    names = [f"X{j + 1}" for j in range(len(first))] if header is None else header(path, first)
    n_found = int(header is None)
    for line, row in islice(rows, None if n_rows is None else n_rows - n_found):
        if len(row) != len(first):
            raise ValueError(
                f"{path.name}, line {line}: {len(row)} fields, but the first row has {len(first)}. Correct the line, "
                f"or pass the right separator= (now {separator!r})."
            )
        n_found += 1
    if n_found == 0:
        raise ValueError(f"{path.name} has names but no rows below them.")
    return names, n_found


class _Lines:
    """Lines of a stream, none of them endless, and whether one of them held a NUL character."""

    def __init__(self, path: Path, stream: IO[str]) -> None:
        self.has_nul = False
        self._path = path
        self._stream = stream

    def __iter__(self) -> Iterator[str]:
        number = 0
        while line := self._stream.readline(_LONGEST_LINE):
            number += 1
            if len(line) == _LONGEST_LINE:
                raise ValueError(
                    f"{self._path.name}, line {number} has more than {_LONGEST_LINE} characters; is this a table?"
                )
            self.has_nul = self.has_nul or "\0" in line
            yield line


def _refuse_nul(path: Path, row: list[str], number: int, line: int, names: list[str] | None) -> None:
    place = next((j for j, cell in enumerate(row) if "\0" in cell), 0)
    where = f"line {line}, the name of column {place + 1}"
    if names is not None:
        name = names[place] if place < len(names) else str(place + 1)
        where = f"row {number} (counted from 0; line {line}), column {shown(name)},"
    raise ValueError(
        f"{path.name}: {where} holds a NUL character. The file is damaged, or written in another encoding: pass it, "
        'for example encoding="utf-16".'
    )


@contextmanager
def _explained(path: Path, encoding: str) -> Iterator[None]:
    """Errors of those who decode, unpack and parse, with the name of the file."""
    try:
        yield
    except UnicodeError as error:
        raise ValueError(
            f'{path.name} is not {encoding} text ({error}); pass its encoding, for example encoding="latin-1".'
        ) from error
    except LookupError as error:
        raise ValueError(f"{path.name} cannot be read: encoding={encoding!r} is unknown.") from error
    except (pd.errors.ParserError, csv.Error, EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{path.name} cannot be read: {error}.") from error


def _with_mark(encoding: str) -> str:
    """UTF-8 with or without the mark that some programs put first."""
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding
