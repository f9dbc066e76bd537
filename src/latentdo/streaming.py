"""Tables larger than memory: where their rows are, and one look at all of them.

A source is a Parquet file or a folder of them, a Dask table, or a sequence of tables; it becomes a list of parts, each
a small object that reads its rows when called, here or on a worker. With several ranks every one reads its share of the
parts, and they exchange what they have seen.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from latentdo.data import Dataset, Missing, table_to_array
from latentdo.data.labels import encode_regimes, encode_targets, order_labels
from latentdo.data.table import (
    check_finite,
    check_names,
    check_varying,
    listed,
    warn_about_copies,
    warn_about_shape,
)
from latentdo.ranks import Ranks
from latentdo.transforms import Preprocessor

__all__ = ["Part", "Stream", "labels_of", "open_stream", "parts_of"]

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Reader = Callable[[list[str]], Any]
"""Returns some rows as a table with, at least, the given columns."""

FEW = 50
"""So many rows of every label are in the sample, if there are so many: rare labels would be lost otherwise."""


@dataclass(frozen=True, eq=False)
class Stream:
    """All rows of a source, ready to be read again and again.

    Parameters
    ----------
    sample : Dataset
        Rows drawn from all of them without replacement, with the preprocessor of all; ``row_index`` counts through all.
    parts : tuple of callables
        Each reads some rows, standardised, and the index of their regimes, -1 where unknown. With several ranks these
        are the parts of this one.
    n_rows : int
        Number of rows that are used, on all ranks.
    content_hash : str
        Hexadecimal SHA-256 of names and values, part by part.
    """

    sample: Dataset
    parts: tuple[Callable[[], tuple[Array, Codes]], ...]
    n_rows: int
    content_hash: str


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows of a source, not read yet.

    Parameters
    ----------
    reader : callable
        Reads them.
    place : str
        Where they are, for messages.
    names : tuple of str
        The variables.
    regimes : str, optional
        The column of labels.
    missing : {"error", "drop"}
        What to do about rows with NaN or infinite values.
    """

    reader: Reader
    place: str
    names: tuple[str, ...]
    regimes: str | None = None
    missing: Missing = "error"

    def read(self) -> _Rows:
        """The rows; what cannot be used is refused with its place."""
        wanted = [*self.names, *([] if self.regimes is None else [self.regimes])]
        try:
            return self._checked(self.reader(wanted), wanted)
        except (ValueError, TypeError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{self.place}: {error}") from error

    def labels(self) -> list[Hashable]:
        """Distinct labels, without reading anything else."""
        assert self.regimes is not None
        column = self.reader([self.regimes])[self.regimes]
        return encode_regimes(column, np.arange(len(column)), len(column))[1]

    def _checked(self, table: Any, wanted: Sequence[str]) -> _Rows:
        held = {str(name): name for name in table.columns}
        absent = [name for name in wanted if name not in held]
        if absent:
            raise ValueError(
                f"Columns are missing {listed(absent)}; every part must hold {listed(wanted)}. Stream tables of one "
                "kind."
            )
        n = len(table)
        values = np.empty((0, len(self.names)))
        if n:
            remedy = None if self.regimes is not None else "pass regimes={name}"
            variables = table[[held[name] for name in self.names]]
            values, _ = table_to_array(variables, self.names, "leave them out with columns=", remedy)
        kept = np.arange(n)
        if self.missing == "drop":
            kept = np.flatnonzero(np.isfinite(values).all(axis=1))
            values = values[kept]
        check_finite(values, self.names)
        if self.regimes is None:
            return _Rows(values, kept, np.full(len(kept), -1), [], n)
        codes, seen = encode_regimes(table[held[self.regimes]], kept, n)
        return _Rows(values, kept, codes, seen, n)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of a part that are used, their places among those that were read, and their labels."""

    values: Array
    places: Codes
    codes: Codes
    seen: list[Hashable]
    n_read: int

    def coded(self, labels: Mapping[Hashable, int]) -> Codes:
        """The labels by another numbering."""
        return np.array([*(labels[label] for label in self.seen), -1], dtype=np.int64)[self.codes]


@dataclass(frozen=True, eq=False)
class _Look:
    """What one look at some rows keeps of them: sums, and the rows that a sample of all may hold."""

    count: int
    mean: Array
    squares: Array
    low: Array
    high: Array
    keys: Array
    drawn: _Rows
    digests: tuple[str, ...]

    def joined(self, other: _Look, n_sample: int) -> _Look:
        """Both together; means and sums of squares are merged without cancellation (Chan et al., 1983)."""
        count = self.count + other.count
        share = other.count / max(count, 1)
        step = other.mean - self.mean
        one, two = self.drawn, other.drawn
        labels = {label: code for code, label in enumerate(dict.fromkeys([*one.seen, *two.seen]))}
        rows = _Rows(
            np.vstack([one.values, two.values]),
            np.concatenate([one.places, two.places + one.n_read]),
            np.concatenate([one.codes, two.coded(labels)]),
            list(labels),
            one.n_read + two.n_read,
        )
        keys, drawn = _draw(np.concatenate([self.keys, other.keys]), rows, n_sample)
        return _Look(
            count,
            self.mean + step * share,
            self.squares + other.squares + step**2 * share * self.count,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            keys,
            drawn,
            self.digests + other.digests,
        )


def parts_of(
    source: Any,
    columns: Sequence[str] | None = None,
    regimes: str | None = None,
    missing: Missing = "error",
) -> tuple[tuple[Part, ...], tuple[str, ...]]:
    """Parts of a source, and the names of its variables.

    Parameters
    ----------
    source : path, Dask table, or sequence of tables
        A Parquet file (or several, or a folder of them) is read by row groups.
    columns : sequence of str, optional
        Use only these variables.
    regimes : str, optional
        Name of the column of labels, which is no variable.
    missing : {"error", "drop"}
        What to do about rows with NaN or infinite values.

    Raises
    ------
    ValueError, TypeError
        If there are no rows, or it is none of these; the message names the remedy.
    """
    if regimes is not None and not isinstance(regimes, str):
        raise TypeError(
            f"regimes must be the name of a column of the stream, got {type(regimes).__name__}: write the labels into "
            "the table, or pass rows that fit into memory to fit."
        )
    readers: list[tuple[str, Reader]]
    if hasattr(source, "to_delayed") and hasattr(source, "columns"):
        names = [str(name) for name in source.columns]
        partitions = enumerate(source.to_delayed())
        readers = [(f"Partition {i} (counted from 0)", partial(_compute, part)) for i, part in partitions]
    elif isinstance(source, str | Path):
        readers, names = _row_groups(_files(Path(source)))
    elif (
        isinstance(source, Sequence) and len(source) and all(isinstance(part, str | Path) for part in source)
    ):
        readers, names = _row_groups([file for part in source for file in _files(Path(part))])
    elif isinstance(source, Sequence) and len(source) and all(hasattr(part, "columns") for part in source):
        names = [str(name) for name in source[0].columns]
        readers = [(f"Part {i} (counted from 0)", partial(_same, part)) for i, part in enumerate(source)]
    else:
        raise TypeError(
            f"Cannot stream from {type(source).__name__}: pass the path of a Parquet file or of a folder of them, a "
            "Dask table, or a list of tables; what fits into memory goes to fit."
        )
    wanted = (
        [name for name in names if name != regimes] if columns is None else [str(name) for name in columns]
    )
    absent = [name for name in [*wanted, *([] if regimes is None else [regimes])] if name not in names]
    if absent:
        raise ValueError(f"There is no column {listed(absent)}; the columns are {listed(names)}.")
    if regimes in wanted:
        raise ValueError(
            f"{regimes!r} holds the labels, so it cannot be a variable too; drop it from columns=."
        )
    check_names(wanted)
    if not readers:
        raise ValueError("There are no rows.")
    parts = tuple(Part(reader, place, tuple(wanted), regimes, missing) for place, reader in readers)
    return parts, tuple(wanted)


def labels_of(source: Any, regimes: str, n_jobs: int = 1) -> list[Hashable]:
    """Distinct labels of a column of a source, in the order in which they occur; no other column is read."""
    parts, _ = parts_of(source, regimes=regimes)
    found = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(part.labels)() for part in parts)
    return list(dict.fromkeys(label for labels in found for label in labels))


def open_stream(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    regimes: str | None = None,
    targets: Any = None,
    observational: Hashable = 0,
    transform: str = "none",
    missing: Missing = "error",
    n_sample: int = 20_000,
    random_state: int = 0,
    n_jobs: int = 1,
    ranks: Ranks | None = None,
) -> Stream:
    """Look at every row once: check them, learn the scaling, and draw a sample.

    Parameters
    ----------
    source, columns, regimes, missing
        See :func:`parts_of`.
    targets, observational
        As for :meth:`latentdo.data.Dataset.from_table`.
    transform : {"none", "log", "log1p"}
        Applied to every column; "rank-gaussian" would need all rows at once.
    n_sample : int
        Size of the sample. Which rows are drawn depends on the seed and on how the rows are parted, not on ``n_jobs``
        or ``ranks``.
    random_state : int
        Seed of the sample.
    n_jobs : int
        Parts that are read at a time.
    ranks : Ranks, optional
        Processes that open the same source; each reads its share of the parts.

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
    if targets is not None and regimes is None:
        raise ValueError("targets were given without regimes; pass regimes= too, the name of a column.")
    ranks = Ranks() if ranks is None else ranks
    parts, names = parts_of(source, columns, regimes, missing)
    total = _look_at_all(parts, names, transform, n_sample, random_state, n_jobs, ranks)
    if total is None or total.count < 2:
        raise ValueError("There are fewer than two rows.")
    extremes = np.vstack([total.low, total.high])
    check_varying(extremes, names)
    Preprocessor.fit(extremes, transform, names)  # refuses what float64 cannot hold
    mean, scale = total.mean, np.sqrt(total.squares / total.count)
    preprocessor = Preprocessor(transform, names, mean, scale)  # type: ignore[arg-type]
    _, drawn = _draw(total.keys, total.drawn, n_sample, exactly=True)
    rows = (drawn.values, names, preprocessor)
    dropped = drawn.n_read - total.count
    index: dict[Hashable, int] = {}
    if regimes is None:
        sample = Dataset(*rows, row_index=drawn.places, n_dropped=dropped)
    else:
        labels = order_labels(drawn.seen, targets, observational, has_unknown=bool((drawn.codes < 0).any()))
        matrix = None if targets is None else encode_targets(targets, labels, drawn.seen, names)
        index = {label: k for k, label in enumerate(labels)}
        sample = Dataset(*rows, drawn.coded(index), labels, matrix, drawn.places, dropped)
    warn_about_shape(total.count, scale, names)
    spread = sample.z.std(axis=0)  # not one: the scaling is that of all rows
    varying = np.flatnonzero(spread)
    standard = (sample.z - sample.z.mean(axis=0))[:, varying] / spread[varying]
    warn_about_copies(standard, [names[j] for j in varying])
    own = parts[ranks.share(len(parts))]
    digest = hashlib.sha256("".join((repr(names), *total.digests)).encode()).hexdigest()
    return Stream(
        sample, tuple(partial(_standardised, part, preprocessor, index) for part in own), total.count, digest
    )


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


def _row_groups(paths: Sequence[Path]) -> tuple[list[tuple[str, Reader]], list[str]]:
    parquet = _parquet()
    readers: list[tuple[str, Reader]] = []
    names: list[str] = []
    for path in paths:
        try:
            with parquet.ParquetFile(path) as file:
                own, groups = list(file.schema_arrow.names), file.num_row_groups
        except Exception as error:  # whatever pyarrow raises for a damaged file
            raise ValueError(
                f"{path.name} cannot be read as parquet ({type(error).__name__}: {error})."
            ) from error
        if names and set(own) != set(names):
            raise ValueError(f"{path.name} has other columns than {paths[0].name}; stream files of one kind.")
        names = names or own
        readers += [
            (f"{path.name}, row group {i} (counted from 0)", partial(_read_group, str(path), i))
            for i in range(groups)
        ]
    return readers, names


def _parquet() -> Any:
    try:
        return importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError('Streaming needs pyarrow; install it with: pip install "latentdo[io]"') from error


def _read_group(path: str, number: int, columns: list[str]) -> Any:
    with _parquet().ParquetFile(path) as file:
        return file.read_row_group(number, columns=columns).to_pandas()


def _same(part: Any, _: list[str]) -> Any:
    return part


def _compute(part: Any, _: list[str]) -> Any:
    """A Dask partition where it is asked for: a worker that asked the cluster for it would wait for itself."""
    return part.compute(scheduler="synchronous")


def _standardised(
    part: Part, preprocessor: Preprocessor, index: Mapping[Hashable, int]
) -> tuple[Array, Codes]:
    rows = part.read()
    return preprocessor.forward(rows.values), rows.coded(index)


def _look_at_all(
    parts: Sequence[Part],
    names: tuple[str, ...],
    transform: str,
    n_sample: int,
    seed: int,
    n_jobs: int,
    ranks: Ranks,
) -> _Look | None:
    """The looks of all parts and ranks together."""
    raw = Preprocessor(transform, names, np.zeros(len(names)), np.ones(len(names)))  # type: ignore[arg-type]  # checked in fit
    own = range(len(parts))[ranks.share(len(parts))]
    jobs = (delayed(_look)(parts[number], raw, number, n_sample, seed) for number in own)
    total: _Look | None = None
    for look in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
        total = look if total is None else total.joined(look, n_sample)
    seen = [look for look in ranks.gather(total) if look is not None]
    total = seen[0] if seen else None
    for look in seen[1:]:
        assert total is not None
        total = total.joined(look, n_sample)
    return total


def _look(part: Part, raw: Preprocessor, number: int, n_sample: int, seed: int) -> _Look:
    """One part: its sums, and the rows with the smallest random keys."""
    rows = part.read()
    try:
        transformed = raw.forward(rows.values)
        check_finite(transformed, raw.columns)
    except ValueError as error:
        raise ValueError(f"{part.place}: {error}") from error
    n, values = len(rows.values), rows.values
    mean = transformed.sum(axis=0) / max(n, 1)  # a part may be empty
    with np.errstate(over="ignore"):  # what is too large is refused by name once all rows are seen
        squares = ((transformed - mean) ** 2).sum(axis=0)
    digest = hashlib.sha256(np.ascontiguousarray(values, dtype="<f8").tobytes()).hexdigest()
    keys, drawn = _draw(np.random.default_rng([seed, number]).random(n), rows, n_sample)
    low, high = values.min(axis=0, initial=np.inf), values.max(axis=0, initial=-np.inf)
    return _Look(n, mean, squares, low, high, keys, drawn, (digest,))


def _draw(keys: Array, rows: _Rows, n_sample: int, *, exactly: bool = False) -> tuple[Array, _Rows]:
    """A few rows of every label, then those with the smallest keys; not ``exactly``: all that may be among them.

    What is drawn from parts, joined and drawn again is what would be drawn from all at once.
    """
    order = np.argsort(keys, kind="stable")
    first = np.zeros(len(keys), dtype=bool)
    for code in np.unique(rows.codes):
        first[order[rows.codes[order] == code][:FEW]] = True
    chosen = np.lexsort((keys, ~first))[: n_sample + (0 if exactly else int(first.sum()))]
    chosen = chosen[np.argsort(keys[chosen], kind="stable")]
    return keys[chosen], _Rows(
        rows.values[chosen], rows.places[chosen], rows.codes[chosen], rows.seen, rows.n_read
    )
