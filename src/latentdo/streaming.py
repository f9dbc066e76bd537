"""Tables larger than memory: where their rows are, and one look at all of them.

A source is a Parquet file or a folder of them, a Dask table, or a sequence of tables; it becomes a list of parts, each
a small object that reads its rows when called, here or on a worker.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from latentdo.data import Dataset, validate_rows
from latentdo.data.table import check_finite, check_names, check_varying, listed
from latentdo.transforms import Preprocessor

__all__ = ["Stream", "open_stream", "parts_of"]

Array = NDArray[np.float64]
Reader = Callable[[], Any]
"""Returns some rows as a table."""


@dataclass(frozen=True, eq=False)
class Stream:
    """All rows of a source, ready to be read again and again.

    Parameters
    ----------
    sample : Dataset
        Rows drawn from all of them without replacement, with the preprocessor of all.
    parts : tuple of callables
        Each reads some rows, standardised.
    n_rows : int
        Number of rows.
    content_hash : str
        Hexadecimal SHA-256 of names and values, part by part.
    """

    sample: Dataset
    parts: tuple[Callable[[], Array], ...]
    n_rows: int
    content_hash: str


@dataclass(frozen=True, eq=False)
class _Look:
    """What one look at some rows keeps of them."""

    count: int
    mean: Array
    squares: Array
    low: Array
    high: Array
    keys: Array
    rows: Array
    digest: str

    def joined(self, other: _Look, n_sample: int) -> _Look:
        """Both together; means and sums of squares are merged without cancellation (Chan et al., 1983)."""
        count = self.count + other.count
        step = other.mean - self.mean
        keys, rows = np.concatenate([self.keys, other.keys]), np.vstack([self.rows, other.rows])
        kept = np.argsort(keys, kind="stable")[:n_sample]
        return _Look(
            count,
            self.mean + step * other.count / count,
            self.squares + other.squares + step**2 * (self.count / count) * other.count,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            keys[kept],
            rows[kept],
            hashlib.sha256(f"{self.digest}{other.digest}".encode()).hexdigest(),
        )


def parts_of(source: Any, columns: Sequence[str] | None = None) -> tuple[tuple[Reader, ...], tuple[str, ...]]:
    """Readers of the parts of a source, and the names of its variables.

    Parameters
    ----------
    source : path, Dask table, or sequence of tables
        A Parquet file (or several, or a folder of them) is read by row groups.
    columns : sequence of str, optional
        Use only these variables.

    Raises
    ------
    ValueError, TypeError
        If there are no rows, or it is none of these; the message names the remedy.
    """
    readers: list[Reader]
    if hasattr(source, "to_delayed") and hasattr(source, "columns"):
        names = [str(name) for name in source.columns]
        readers = [part.compute for part in source.to_delayed()]
    elif isinstance(source, str | Path):
        readers, names = _row_groups(_files(Path(source)), columns)
    elif (
        isinstance(source, Sequence) and len(source) and all(isinstance(part, str | Path) for part in source)
    ):
        readers, names = _row_groups([Path(part) for part in source], columns)
    elif isinstance(source, Sequence) and len(source) and all(hasattr(part, "columns") for part in source):
        names = [str(name) for name in source[0].columns]
        readers = [partial(_same, part) for part in source]
    else:
        raise TypeError(
            f"Cannot stream from {type(source).__name__}: pass the path of a Parquet file or of a folder of them, a "
            "Dask table, or a list of tables; what fits into memory goes to fit."
        )
    wanted = names if columns is None else [str(name) for name in columns]
    absent = [name for name in wanted if name not in names]
    if absent:
        raise ValueError(f"There is no column {listed(absent)}; the columns are {listed(names)}.")
    check_names(wanted)
    if not readers:
        raise ValueError("There are no rows.")
    chosen = [partial(_choose, reader, tuple(wanted)) for reader in readers]
    return tuple(chosen), tuple(wanted)


def open_stream(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    transform: str = "none",
    n_sample: int = 20_000,
    random_state: int = 0,
    n_jobs: int = 1,
) -> Stream:
    """Look at every row once: check them, learn the scaling, and draw a sample.

    Parameters
    ----------
    source, columns
        See :func:`parts_of`.
    transform : {"none", "log", "log1p"}
        Applied to every column; "rank-gaussian" would need all rows at once.
    n_sample : int
        Size of the sample. Which rows are drawn depends on the seed and on how the rows are parted, not on ``n_jobs``.
    random_state : int
        Seed of the sample.
    n_jobs : int
        Parts that are read at a time.

    Examples
    --------
    >>> import pandas as pd
    >>> first, second = pd.DataFrame({"a": [1.0, 2.0]}), pd.DataFrame({"a": [3.0, 6.0]})
    >>> stream = open_stream([first, second])
    >>> stream.n_rows, stream.sample.preprocessor.mean
    (4, array([3.]))
    """
    if transform == "rank-gaussian":
        raise ValueError(
            'transform="rank-gaussian" needs all rows in memory; stream with transform="log1p", "log" or "none".'
        )
    readers, names = parts_of(source, columns)
    d = len(names)
    raw = Preprocessor(transform, names, np.zeros(d), np.ones(d))  # type: ignore[arg-type]  # checked in fit below
    jobs = (
        delayed(_look)(reader, raw, number, n_sample, random_state) for number, reader in enumerate(readers)
    )
    total: _Look | None = None
    for look in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
        if look is not None:
            total = look if total is None else total.joined(look, n_sample)
    if total is None or total.count < 2:
        raise ValueError("There are fewer than two rows.")
    extremes = np.vstack([total.low, total.high])
    check_varying(extremes, names)
    Preprocessor.fit(extremes, transform, names)  # refuses what float64 cannot hold
    mean, scale = total.mean, np.sqrt(total.squares / total.count)
    preprocessor = Preprocessor(transform, names, mean, scale)  # type: ignore[arg-type]
    order = np.argsort(total.keys[:n_sample], kind="stable")
    parts = tuple(partial(_standardised, reader, preprocessor) for reader in readers)
    sample = Dataset(total.rows[order], names, preprocessor)
    return Stream(sample, parts, total.count, total.digest)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(path.rglob("*.parquet"))
        if not found:
            raise ValueError(f"{str(path)!r} holds no .parquet files.")
        return found
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}; check the name and the current folder.")
    if path.suffix not in (".parquet", ".pq"):
        raise ValueError(
            f"Only Parquet files are streamed, and {path.name!r} is none; convert it, for example with polars."
        )
    return [path]


def _row_groups(paths: Sequence[Path], columns: Sequence[str] | None) -> tuple[list[Reader], list[str]]:
    parquet = _parquet()
    readers: list[Reader] = []
    names: list[str] = []
    for path in paths:
        try:
            with parquet.ParquetFile(path) as file:
                own, groups = list(file.schema_arrow.names), file.num_row_groups
        except Exception as error:  # whatever pyarrow raises for a damaged file
            raise ValueError(
                f"{path.name} cannot be read as parquet ({type(error).__name__}: {error})."
            ) from error
        if names and own != names:
            raise ValueError(f"{path.name} has other columns than {paths[0].name}; stream files of one kind.")
        names = own
        wanted = None if columns is None else [name for name in columns if name in own]
        readers += [partial(_read_group, str(path), number, wanted) for number in range(groups)]
    return readers, names


def _parquet() -> Any:
    try:
        return importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError('Streaming needs pyarrow; install it with: pip install "latentdo[io]"') from error


def _read_group(path: str, number: int, columns: list[str] | None) -> Any:
    with _parquet().ParquetFile(path) as file:
        return file.read_row_group(number, columns=columns).to_pandas()


def _same(part: Any) -> Any:
    return part


def _choose(reader: Reader, names: tuple[str, ...]) -> Array:
    """The wanted columns of a part as numbers; NaN passes, to be refused with its place."""
    table = reader()
    table = table[[name for name in table.columns if str(name) in names]]
    return validate_rows(table, names) if len(table) else np.empty((0, len(names)))


def _standardised(reader: Callable[[], Array], preprocessor: Preprocessor) -> Array:
    return preprocessor.forward(reader())


def _look(
    reader: Callable[[], Array], raw: Preprocessor, number: int, n_sample: int, seed: int
) -> _Look | None:
    """One part: its sums, and the rows with the smallest random keys."""
    try:
        values = reader()
        transformed = raw.forward(values)
    except ValueError as error:
        raise ValueError(f"Part {number} (counted from 0): {error}") from error
    if not len(values):
        return None
    check_finite(transformed, raw.columns)
    keys = np.random.default_rng([seed, number]).random(len(values))
    kept = np.argsort(keys, kind="stable")[:n_sample]
    mean = transformed.mean(axis=0)
    with np.errstate(over="ignore"):  # what is too large is refused by name once all rows are seen
        squares = ((transformed - mean) ** 2).sum(axis=0)
    return _Look(
        len(values),
        mean,
        squares,
        values.min(axis=0),
        values.max(axis=0),
        keys[kept],
        values[kept],
        hashlib.sha256(np.ascontiguousarray(values, dtype="<f8").tobytes()).hexdigest(),
    )
