"""Read a table of numbers from a file, or say exactly why not."""

from __future__ import annotations

import bz2
import csv
import gzip
import importlib
import lzma
import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Final, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latentdo.data.table import (
    Missing,
    check_finite,
    check_names,
    check_varying,
    listed,
    table_to_array,
    warn_about_labels,
    warn_about_shape,
)

__all__ = ["EXACT_FLOATS", "read_table"]

# pandas >= 3.1 reads every digit by itself and has deprecated the argument; before, the default was off by one bit
_PANDAS = tuple(int(part) for part in pd.__version__.split(".")[:2])
EXACT_FLOATS: Final[dict[str, Any]] = {"float_precision": "round_trip"} if _PANDAS < (3, 1) else {}
"""Arguments of :func:`pandas.read_csv` that make it read numbers exactly as written."""

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
_OPENERS: dict[str, Callable[..., IO[Any]]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_ARROW = (".parquet", ".pq", ".feather")
_SUPPORTED = "csv, tsv, tab, txt (also .gz, .bz2, .xz), parquet, feather, h5ad"

# Text that stands for a missing number; in the column of labels fewer do, since "None" may well be a label.
_MISSING_NUMBER = [
    "",
    "NA",
    "N/A",
    "n/a",
    "#N/A",
    "NaN",
    "nan",
    "-NaN",
    "-nan",
    "<NA>",
    "NULL",
    "null",
    "None",
]
_MISSING_LABEL = ["", "NA", "NaN", "nan", "<NA>"]


_LABEL_REMEDY = "pass regime_column={name}"


@overload
def read_table(
    path: str | Path,
    regime_column: None = None,
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    missing: Missing = "error",
    layer: str | None = None,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool = True,
) -> pd.DataFrame: ...
@overload
def read_table(
    path: str | Path,
    regime_column: str,
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    missing: Missing = "error",
    layer: str | None = None,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool = True,
) -> tuple[pd.DataFrame, pd.Series[Any]]: ...
def read_table(
    path: str | Path,
    regime_column: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    missing: Missing = "error",
    layer: str | None = None,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool = True,
) -> pd.DataFrame | tuple[pd.DataFrame, pd.Series[Any]]:
    r"""Read variables, and on request regime labels, from a file.

    Without ``regime_column`` the result is the table ``X``; with it, the pair ``X, regimes``. Every column
    that is neither the regime column nor dropped is a variable and must be numeric, finite and not constant.
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
    columns : sequence of str, optional
        Use only these variables, in this order.
    drop : sequence of str, optional
        Use all variables but these.
    missing : {"error", "drop"}
        ``"drop"`` leaves out rows with NaN or infinite values; the index of the result keeps the row numbers.
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

    Returns
    -------
    X : pandas.DataFrame [n, d] of float64
    regimes : pandas.Series [n]
        Only with ``regime_column``; same index as ``X``.

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
    path = Path(path)
    if missing not in ("error", "drop"):
        raise ValueError(f'missing={missing!r} is unknown; use "error" or "drop".')
    for name, value in (("columns", columns), ("drop", drop)):
        if isinstance(value, str):
            raise TypeError(f"{name} must be a list of names; write {name}=[{value!r}].")
    suffix, opener = _kind(path)
    if layer is not None and suffix != ".h5ad":
        raise ValueError(f"layer={layer!r} is for .h5ad files; {path.name} has no layers.")
    if suffix == ".h5ad":
        frame, labels = _read_h5ad(path, regime_column, layer, columns, drop)
    else:
        if suffix in _ARROW:
            frame = _read_arrow(path, suffix)
        else:
            frame = _read_text(
                path, opener, separator or _SEPARATORS[suffix], decimal, encoding, header, regime_column
            )
        labels = _take_labels(path, frame, regime_column)
        frame = frame[_chosen(path, list(frame.columns), regime_column, columns, drop)]
    X, kept = _numeric(path, frame, missing, decimal, has_labels=labels is not None)
    if labels is None:
        return X
    return X, labels.iloc[kept].rename(regime_column)


def _kind(path: Path) -> tuple[str, Callable[..., IO[Any]]]:
    """Format by the ending of the name, and how to open the file."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    opener: Callable[..., IO[Any]] = open
    if suffixes and suffixes[-1] in _OPENERS:
        opener = _OPENERS[suffixes.pop()]
    suffix = suffixes[-1] if suffixes else ""
    text = suffix in _SEPARATORS
    if not text and (opener is not open or suffix not in (*_ARROW, ".h5ad")):
        raise ValueError(
            f"Cannot tell the format of {path.name!r} by its ending {suffix!r}; supported are {_SUPPORTED}. "
            "Export the table as CSV, or load it yourself and pass the DataFrame."
        )
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}; check the name and the current folder.")
    if not path.is_file():
        raise ValueError(f"{str(path)!r} is a folder, not a file.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path.name} is empty.")
    return suffix, opener


def _read_text(
    path: Path,
    opener: Callable[..., IO[Any]],
    separator: str,
    decimal: str,
    encoding: str,
    header: bool,
    regime_column: str | None,
) -> pd.DataFrame:
    """Read CSV and the like, after a first pass that finds what pandas would paper over."""
    encoding = "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding
    try:
        with opener(path, "rt", encoding=encoding, newline="") as stream:
            names = _scan(path, stream, separator, header)
        markers = {name: _MISSING_LABEL if name == regime_column else _MISSING_NUMBER for name in names}
        with opener(path, "rt", encoding=encoding, newline="") as stream:
            frame: pd.DataFrame = pd.read_csv(
                stream,
                sep=separator,
                decimal=decimal,
                header=0 if header else None,
                names=names,
                index_col=False,
                na_values=markers,
                keep_default_na=False,
                low_memory=False,
                **EXACT_FLOATS,
            )
            return frame
    except UnicodeError as error:
        raise ValueError(
            f"{path.name} is not {encoding} text ({error}); pass its encoding, for example "
            'encoding="latin-1".'
        ) from error
    except (pd.errors.ParserError, csv.Error, EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{path.name} cannot be read: {error}.") from error


def _scan(path: Path, stream: IO[str], separator: str, header: bool) -> list[str]:
    """Names from the first row; refuse repeated names, rows of unequal length, and tables without rows."""
    if len(separator) != 1:
        raise ValueError(f"separator={separator!r} must be a single character.")
    reader = csv.reader(stream, delimiter=separator)
    first = next((row for row in reader if row), None)
    if first is None:
        raise ValueError(f"{path.name} is empty.")
    names = _header_names(path, first, separator) if header else [f"X{j + 1}" for j in range(len(first))]
    n_rows = 0 if header else 1
    for row in reader:
        if row and len(row) != len(first):
            raise ValueError(
                f"{path.name}, line {reader.line_num}: {len(row)} fields, but the first row has "
                f"{len(first)}. Correct the line, or pass the right separator= (now {separator!r})."
            )
        n_rows += bool(row)
    if n_rows == 0:
        raise ValueError(f"{path.name} has names but no rows below them.")
    return names


def _header_names(path: Path, first: list[str], separator: str) -> list[str]:
    """Check the names in the first row; columns without a name are called as pandas does."""
    if len(first) == 1:
        other = next((mark for mark in ";\t,|" if mark != separator and mark in first[0]), None)
        if other is not None:
            raise ValueError(
                f"{path.name} has a single column {first[0]!r}; if fields are separated by {other!r}, pass "
                f"separator={other!r}."
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


def _read_arrow(path: Path, suffix: str) -> pd.DataFrame:
    _need("pyarrow", "io", f"{suffix} files")
    try:
        return pd.read_feather(path) if suffix == ".feather" else pd.read_parquet(path)
    except Exception as error:  # whatever pyarrow and pandas raise for a damaged file, KeyError included
        raise ValueError(
            f"{path.name} cannot be read as {suffix[1:]} ({type(error).__name__}: {error})."
        ) from error


def _read_h5ad(
    path: Path,
    regime_column: str | None,
    layer: str | None,
    columns: Sequence[str] | None,
    drop: Sequence[str] | None,
) -> tuple[pd.DataFrame, pd.Series[Any] | None]:
    """Read cells x genes; the chosen genes only are made dense."""
    anndata = _need("anndata", "bio", ".h5ad files")
    try:
        cells = anndata.read_h5ad(path)
    except Exception as error:  # whatever h5py and anndata raise for a damaged file
        raise ValueError(f"{path.name} cannot be read as h5ad: {error}") from error
    if layer is not None and layer not in cells.layers:
        raise ValueError(
            f"{path.name} has no layer {layer!r}; its layers are {listed(cells.layers) or 'none'}."
        )
    matrix = cells.X if layer is None else cells.layers[layer]
    if matrix is None:
        raise ValueError(f"{path.name} has no X; name one of its layers: {listed(cells.layers) or 'none'}.")
    labels = None
    if regime_column is not None:
        if regime_column not in cells.obs:
            raise ValueError(
                f"{path.name} has no obs column {regime_column!r}; they are {listed(cells.obs) or 'none'}."
            )
        labels = cells.obs[regime_column].astype(object)
    genes = [str(name) for name in cells.var_names]
    check_names(genes, path.name)
    chosen = _chosen(path, genes, None, columns, drop)
    position = {name: j for j, name in enumerate(genes)}
    part = matrix[:, [position[name] for name in chosen]]
    dense = part.toarray() if hasattr(part, "toarray") else np.asarray(part)
    if not cells.obs_names.is_unique:
        raise ValueError(
            f"{path.name} has duplicate obs names; make them unique with obs_names_make_unique()."
        )
    return pd.DataFrame(dense, index=cells.obs_names, columns=chosen), labels


def _need(package: str, extra: str, purpose: str) -> Any:
    """Import an optional package, or name the extra that brings it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(
            f'Reading {purpose} needs {package}; install it with: pip install "latentdo[{extra}]"'
        ) from error


def _take_labels(path: Path, frame: pd.DataFrame, regime_column: str | None) -> pd.Series[Any] | None:
    frame.columns = pd.Index([str(name) for name in frame.columns])
    check_names(list(frame.columns), path.name)
    if regime_column is None:
        return None
    if regime_column in frame.columns:
        return frame[regime_column]
    if regime_column in frame.index.names:
        return pd.Series(frame.index.get_level_values(regime_column), index=frame.index)
    raise ValueError(f"{path.name} has no column {regime_column!r}; its columns are {listed(frame.columns)}.")


def _chosen(
    path: Path,
    names: list[str],
    regime_column: str | None,
    columns: Sequence[str] | None,
    drop: Sequence[str] | None,
) -> list[str]:
    """Names of the variables, after selection."""
    absent = [name for name in [*(columns or ()), *(drop or ())] if name not in names]
    if absent:
        raise ValueError(f"{path.name} has no column {listed(absent)}; its columns are {listed(names)}.")
    if columns is not None:
        check_names(list(columns))
    both = [name for name in columns or () if name in (drop or ())]
    if both or (columns is not None and regime_column in columns):
        raise ValueError(f"{listed(both or [regime_column])} cannot be a variable and left out at once.")
    out = [n for n in (names if columns is None else columns) if n != regime_column and n not in (drop or ())]
    nameless = [name for name in out if re.fullmatch(r"Unnamed: \d+|__index_level_\d+__", name)]
    if nameless and columns is None:
        raise ValueError(
            f"{path.name} has a column without a name ({listed(nameless)}), probably row numbers written by "
            f"pandas' to_csv; pass drop={nameless} to leave it out, or give it a name."
        )
    if not out:
        raise ValueError(f"No variables are left of {path.name}; its columns are {listed(names)}.")
    return out


def _numeric(
    path: Path, frame: pd.DataFrame, missing: Missing, decimal: str, *, has_labels: bool
) -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """Refuse what is not a finite, varying number, with the remedies of :func:`read_table`."""
    try:
        values, names = table_to_array(
            frame,
            text_remedy="pass drop=[...] to leave them out",
            label_remedy=None if has_labels else _LABEL_REMEDY,
        )
        kept = np.arange(len(values))
        if missing == "drop":
            kept = np.flatnonzero(np.isfinite(values).all(axis=1))
            values = values[kept]
            if kept.size == 0:
                raise ValueError("Every row has a missing value; drop the columns with the most of them.")
        check_finite(values, names)
        check_varying(values, names, remedy="pass drop=[...] to leave these columns out")
    except ValueError as error:
        comma = decimal == "." and re.search(r" is '-?\d+,\d+'", str(error))
        hint = ' If the comma is the decimal sign, pass decimal=",".' if comma else ""
        raise ValueError(f"{path.name}: {error}{hint}") from error
    if not has_labels:
        warn_about_labels(values, names, _LABEL_REMEDY, stacklevel=3)
    warn_about_shape(len(values), values.std(axis=0), names, stacklevel=3)
    return pd.DataFrame(values, index=frame.index[kept], columns=pd.Index(names)), kept
