"""Parquet and Feather."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pandas as pd

from latentdo.data.optional import need
from latentdo.data.refusals import check_names
from latentdo.readers.files import check_file, check_unpacked

ARROW: Final = (".parquet", ".pq", ".feather")
"""Endings of the names."""

_BYTES_PER_NUMBER: Final = 8


def read_arrow(path: Path) -> pd.DataFrame:
    """A whole Parquet or Feather file.

    Raises
    ------
    ImportError
        If pyarrow is not installed.
    ValueError
        If the file is damaged, unpacks to more than it may, or names repeat; the message names the file.
    """
    check_file(path)
    if path.suffix.lower() == ".feather":
        feather = need("pyarrow.feather", "pyarrow", "io", "Reading .feather files")
        with _explained(path):
            table = feather.read_table(str(path), memory_map=False)
    else:
        with open_parquet(path) as file:
            check_unpacked(path, file.metadata.num_rows * file.metadata.num_columns * _BYTES_PER_NUMBER)
            with _explained(path):
                table = file.read()
    return _to_frame(path, table)


def read_group(path: Path, number: int, columns: list[str]) -> pd.DataFrame:
    """Some columns of one row group of a Parquet file."""
    with open_parquet(path) as file:
        n_rows = file.metadata.row_group(number).num_rows
        check_unpacked(path, n_rows * len(columns) * _BYTES_PER_NUMBER)
        with _explained(path):
            table = file.read_row_group(number, columns=columns)
    return _to_frame(path, table)


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """A Parquet file of which nothing but the description has been read."""
    check_file(path)
    parquet = need("pyarrow.parquet", "pyarrow", "io", "Reading .parquet files")
    with _explained(path):
        file = parquet.ParquetFile(path)
    with file:
        yield file


def _to_frame(path: Path, table: Any) -> pd.DataFrame:
    check_names([str(name) for name in table.column_names], path.name)
    with _explained(path):
        frame: pd.DataFrame = table.to_pandas()
    return frame


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # whatever pyarrow raises for a damaged file, KeyError included
        kind = path.suffix.lower().removeprefix(".")
        raise ValueError(
            f"{path.name} cannot be read as {kind} ({type(error).__name__}: {error})."
        ) from error
