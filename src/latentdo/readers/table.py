"""Read a table of numbers from a file, or say exactly why not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args, overload

import pandas as pd

from latentdo.data.refusals import ColumnError, check_labels, check_names
from latentdo.data.table import Missing
from latentdo.data.weights import encode_weights
from latentdo.messages import listed, shown
from latentdo.readers.arrow import ARROW, read_arrow
from latentdo.readers.cells import read_h5ad
from latentdo.readers.files import PACKED, check_file
from latentdo.readers.numeric import numbers_and_levels
from latentdo.readers.text import read_csv

SEPARATORS: Final = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
"""What separates fields, by the ending of a text file's name."""

_SUPPORTED = "csv, tsv, tab, txt (also .gz, .bz2, .xz), parquet, feather, h5ad"

# In a column of labels fewer words stand for a missing one, since "None" may well be a label.
_MISSING_LABEL = ("", "NA", "NaN", "nan", "<NA>")


@overload
def read_table(
    path: str | Path,
    regime_column: None = None,
    *,
    group_column: None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    missing: Missing = "error",
    layer: str | None = None,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool = True,
    na_values: Sequence[str] = (),
) -> pd.DataFrame: ...
@overload
def read_table(
    path: str | Path,
    regime_column: str,
    *,
    group_column: None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    missing: Missing = "error",
    layer: str | None = None,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool = True,
    na_values: Sequence[str] = (),
) -> tuple[pd.DataFrame, pd.Series[Any]]: ...
@overload
def read_table(
    path: str | Path,
    regime_column: None = None,
    *,
    group_column: str,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    missing: Missing = "error",
    layer: str | None = None,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool = True,
    na_values: Sequence[str] = (),
) -> tuple[pd.DataFrame, pd.Series[Any]]: ...
@overload
def read_table(
    path: str | Path,
    regime_column: str,
    *,
    group_column: str,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    missing: Missing = "error",
    layer: str | None = None,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool = True,
    na_values: Sequence[str] = (),
) -> tuple[pd.DataFrame, pd.Series[Any], pd.Series[Any]]: ...
def read_table(
    path: str | Path,
    regime_column: str | None = None,
    *,
    group_column: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    missing: Missing = "error",
    layer: str | None = None,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool = True,
    na_values: Sequence[str] = (),
) -> pd.DataFrame | tuple[pd.DataFrame, pd.Series[Any]] | tuple[pd.DataFrame, pd.Series[Any], pd.Series[Any]]:
    r"""Read variables, and on request regime labels and groups of rows, from a file.

    Without ``regime_column`` and ``group_column`` the result is the table ``X``; with one of them, or both, it is
    ``X, regimes``, ``X, groups`` or ``X, regimes, groups``. Every other column that is not dropped is a variable and
    must be numeric, finite and not constant.
    Nothing is dropped, filled or converted unless asked for.

    Parameters
    ----------
    path : str or Path
        CSV (``.csv``), tab-separated (``.tsv``, ``.tab``, ``.txt``), either also compressed (``.gz``,
        ``.bz2``, ``.xz``); Parquet and Feather (``pip install "latentdo[io]"``); AnnData ``.h5ad``
        (``pip install "latentdo[bio]"``), where genes are the variables.
    regime_column : str, optional
        Column with the condition of each row (for ``.h5ad``, a column of ``obs``). It is no variable. Empty
        entries, ``NA`` and ``NaN`` mean unknown.
    group_column : str, optional
        Column that says which rows belong together and share their regime, such as a plate or an animal. It is no
        variable. Empty entries, ``NA`` and ``NaN``: a row on its own.
    columns : sequence of str, optional
        Use only these variables, in this order.
    drop : sequence of str, optional
        Use all variables but these.
    missing : {"error", "drop", "model"}
        ``"drop"`` leaves out rows with NaN or infinite values; the index of the result keeps the row numbers.
        ``"model"`` keeps rows with NaN, for an estimator with ``missing="model"``.
    layer : str, optional
        Layer of an ``.h5ad`` file to use instead of its ``X``.
    separator : str, optional
        Field separator of a text file, where the ending of its name does not tell.
    decimal : str
        Decimal sign of a text file.
    encoding : str
        Encoding of a text file.
    header : bool
        Whether the first row of a text file holds names; if not, the variables are ``X1 .. Xd``.
    na_values : sequence of str
        Words of a text file that mean that a value is missing, besides an empty cell, ``NA``, ``NaN`` and ``null``.

    Returns
    -------
    X : pandas.DataFrame [n, d] of float64
        Columns of text whose entries recur are categories.
    regimes : pandas.Series [n]
        Only with ``regime_column``; same index as ``X``.
    groups : pandas.Series [n]
        Only with ``group_column``; same index as ``X``.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ImportError
        If the format needs an extra; the message names it.
    ValueError
        If the file cannot be used as it is; the message names row, column and remedy.

    Warns
    -----
    DataWarning
        If there are no more rows than variables, or columns differ in scale by more than 1e6.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cells.csv"
    >>> _ = path.write_text("Raf,Mek,drug\n1.5,2,none\n0.5,3,u0126\n1.0,1,\n")
    >>> X, regimes = read_table(path, regime_column="drug")
    >>> X
       Raf  Mek
    0  1.5  2.0
    1  0.5  3.0
    2  1.0  1.0
    >>> read_table(path, drop=["drug"]).columns.to_list()
    ['Raf', 'Mek']
    """
    options = ReadingOptions(columns, drop, missing, layer, separator, decimal, encoding, header, na_values)
    X, found = read_labelled(path, {"regimes": regime_column, "groups": group_column}, options)
    if not found:
        return X
    labels = list(found.values())
    return (X, labels[0]) if len(labels) == 1 else (X, labels[0], labels[1])


@dataclass(frozen=True)
class ReadingOptions:
    """How :func:`read_table` reads: its arguments."""

    columns: Sequence[str] | None = None
    drop: Sequence[str] | None = None
    missing: Missing = "error"
    layer: str | None = None
    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    header: bool = True
    na_values: Sequence[str] = ()
    kinds: Mapping[str, str] | None = None
    to_fit: bool = True
    """Whether a model is to be learnt from the rows: rows that are only asked about may be few, and all alike."""

    def check(self, path: Path) -> str:
        """Refuse what cannot be; returns the format of the file."""
        if self.missing not in get_args(Missing):
            raise ValueError(f'missing={self.missing!r} is unknown; use "error", "drop" or "model".')
        for name, value in (("columns", self.columns), ("drop", self.drop), ("na_values", self.na_values)):
            if isinstance(value, str):
                raise TypeError(f"{name} must be a list; write {name}=[{value!r}].")
        kind = kind_of(path)
        if self.layer is not None and kind != ".h5ad":
            raise ValueError(f"layer={self.layer!r} is for .h5ad files; {path.name} has no layers.")
        return kind


def read_labelled(
    path: str | Path, labels: Mapping[str, str | None], options: ReadingOptions | None = None
) -> tuple[pd.DataFrame, dict[str, pd.Series[Any]]]:
    """Read variables, and columns that say something about rows and are no variables; see :func:`read_table`.

    Parameters
    ----------
    path : str or Path
        The file.
    labels : mapping from str to str
        What columns say, and their names in the file; None for what no column says. Rows whose ``sample_weight`` is 0
        are left out.
    options : ReadingOptions, optional
        How to read.

    Returns
    -------
    X : pandas.DataFrame [n, d] of float64
    found : dict from str to pandas.Series [n]
        The columns that were asked for, by what they say; same index as ``X``.
    """
    path, options = Path(path), options or ReadingOptions()
    kind = options.check(path)
    asked = {what: name for what, name in labels.items() if name is not None}
    if twice := next((name for name in asked.values() if list(asked.values()).count(name) > 1), None):
        raise ValueError(
            f"Column {twice!r} cannot hold both {' and '.join(w for w, n in asked.items() if n == twice)}; name two "
            "columns, or leave out group_column: rows of a condition share their regime anyway."
        )
    names = list(asked.values())
    problems: list[ColumnError] = []
    choose = partial(_chosen, path, columns=options.columns, drop=options.drop)
    if kind == ".h5ad":
        frame, columns = read_h5ad(path, names, options.layer, choose)
    else:
        if kind in ARROW:
            frame = read_arrow(path)
        else:
            frame, problems = _read_text(path, options, options.separator or SEPARATORS[kind], names)
        frame.columns = pd.Index([str(name) for name in frame.columns])
        check_names(list(frame.columns), path.name)
        columns = [_take_labels(path, frame, name) for name in names]
        frame = frame[choose(list(frame.columns), names)]
    X, kept = numbers_and_levels(
        path, frame, options, problems, is_text=kind in SEPARATORS, has_labels="regimes" in asked
    )
    if (
        "sample_weight" in asked
    ):  # tables that are written have the rows of the fit, which leaves out the others
        column = columns[list(asked).index("sample_weight")]
        counts = encode_weights(column, len(column))[kept] > 0.0
        X, kept = X[counts], kept[counts]
    taken = (column.iloc[kept].rename(name) for column, name in zip(columns, names, strict=True))
    return X, dict(zip(asked, taken, strict=True))


def kind_of(path: Path) -> str:
    """Format by the ending of the name, without that of a compressed file; refuses what cannot be read."""
    check_file(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in PACKED
    suffix = (suffixes[:-1] if packed else suffixes)[-1:]
    kind = suffix[0] if suffix else ""
    if kind not in SEPARATORS and (packed or kind not in (*ARROW, ".h5ad")):
        raise ValueError(
            f"Cannot tell the format of {path.name!r} by its ending {kind!r}; supported are {_SUPPORTED}. "
            "Export the table as CSV, or load it yourself and pass the DataFrame."
        )
    if path.stat().st_size == 0:
        raise ValueError(f"{path.name} is empty.")
    return kind


def _read_text(
    path: Path, options: ReadingOptions, separator: str, labels: Sequence[str]
) -> tuple[pd.DataFrame, list[ColumnError]]:
    """Read a text file; if it has another separator, with that one, so that the rest can be looked at too."""
    read = partial(
        read_csv,
        path,
        decimal=options.decimal,
        encoding=options.encoding,
        missing=dict.fromkeys(labels, _MISSING_LABEL) or None,
        na_values=options.na_values,
    )
    header = partial(_header_names, separator=separator) if options.header else None
    try:
        return read(separator=separator, header=header), []
    except ColumnError as error:
        other = error.remedy["separator"]
        try:
            return read(separator=other, header=partial(_header_names, separator=other)), [error]
        except ValueError:
            raise ValueError(str(error)) from error


def _header_names(path: Path, first: list[str], *, separator: str) -> list[str]:
    """Check the names in the first row; columns without a name are called as pandas does."""
    if len(first) == 1:
        other = next((mark for mark in ";\t,|" if mark != separator and mark in first[0]), None)
        if other is not None:
            raise ColumnError(
                f"{path.name} has a single column {shown(first[0])}; if fields are separated by {other!r}, pass "
                f"separator={other!r}.",
                (),
                {"separator": other},
            )
    names = [name.strip() or f"Unnamed: {j}" for j, name in enumerate(first)]
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        numbers = []
    if numbers and (
        len(set(numbers)) < len(numbers) or not all(name.lstrip("-").isdigit() for name in names)
    ):
        raise ValueError(
            f"The first row of {path.name} holds numbers ({', '.join(first[:4])}, ...), not names; pass "
            "header=False if there is no row of names."
        )
    check_names(names, path.name)
    return names


def _take_labels(path: Path, frame: pd.DataFrame, name: str) -> pd.Series[Any]:
    if name in frame.columns:
        check_labels(frame[name], name, path.name)
        return frame[name]
    if name in frame.index.names:
        return pd.Series(frame.index.get_level_values(name), index=frame.index)
    raise ValueError(f"{path.name} has no column {name!r}; its columns are {listed(frame.columns)}.")


def names_among(words: Iterable[str], known: Collection[str]) -> list[str]:
    """The names that words stand for: ``"a,b"`` are two, where no column is called so.

    Examples
    --------
    >>> names_among(["a,b", "c, d", "e,f"], ["a", "b", "c, d"])
    ['a', 'b', 'c, d', 'e,f']
    """
    found: list[str] = []
    for word in words:
        parts = [part.strip() for part in str(word).split(",")]
        found += parts if word not in known and all(part in known for part in parts) else [word]
    return found


def _chosen(
    path: Path,
    names: list[str],
    labels: Sequence[str] = (),
    *,
    columns: Sequence[str] | None,
    drop: Sequence[str] | None,
) -> list[str]:
    """Names of the variables, after selection."""
    columns = None if columns is None else names_among(columns, names)
    drop = names_among(drop or (), names)
    absent = [name for name in [*(columns or ()), *drop] if name not in names]
    if absent:
        raise ValueError(f"{path.name} has no column {listed(absent)}; its columns are {listed(names)}.")
    if columns is not None:
        check_names(list(columns))
    left_out = [*drop, *labels]
    if both := [name for name in columns or () if name in left_out]:
        raise ValueError(f"{listed(both)} cannot be a variable and left out at once.")
    out = [n for n in (names if columns is None else columns) if n not in left_out]
    if not out:
        raise ValueError(f"No variables are left of {path.name}; its columns are {listed(names)}.")
    return out
