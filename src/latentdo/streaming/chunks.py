"""Where the rows of a large table are: Parquet files, Dask partitions or tables, each read when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from latentdo.data import Missing, table_to_array
from latentdo.data.labels import encode, encode_regimes
from latentdo.data.refusals import check_finite, check_labels, check_names
from latentdo.messages import listed
from latentdo.readers import check_file
from latentdo.readers.arrow import open_parquet, read_group

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Reader = Callable[[list[str]], Any]
"""Returns some rows as a table with, at least, the given columns."""


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
    regimes, groups : str, optional
        The columns of labels, and of groups.
    missing : {"error", "drop"}
        What to do about rows with NaN or infinite values.
    """

    reader: Reader
    place: str
    names: tuple[str, ...]
    regimes: str | None = None
    groups: str | None = None
    missing: Missing = "error"

    def read(self) -> Rows:
        """The rows; what cannot be used is refused with its place."""
        wanted = [*self.names, *(name for name in (self.regimes, self.groups) if name is not None)]
        try:
            return self._checked(self.reader(wanted), wanted)
        except (ValueError, TypeError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{self.place}: {error}") from error

    def labels(self) -> list[Hashable]:
        """Distinct labels, without reading anything else."""
        assert self.regimes is not None
        column = self.reader([self.regimes])[self.regimes]
        check_labels(column, self.regimes, self.place)
        return encode_regimes(column, np.arange(len(column)), len(column))[1]

    def _checked(self, table: Any, wanted: Sequence[str]) -> Rows:
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
            values, _ = table_to_array(variables, self.names, "leave {them} out with columns=", remedy)
        kept = np.arange(n)
        if self.missing == "drop":
            kept = np.flatnonzero(np.isfinite(values).all(axis=1))
            values = values[kept]
        check_finite(
            values, self.names, remedy='pass missing="drop" to leave out these rows, or fill them in'
        )

        def named(what: str, column: str | None) -> Named:
            nothing = np.full(len(kept), -1)
            return (
                Named(nothing, [])
                if column is None
                else Named(*encode(table[held[column]], what, kept, n, None))
            )

        return Rows(values, kept, named("regimes", self.regimes), named("groups", self.groups), n)


@dataclass(frozen=True, eq=False)
class Named:
    """What a column calls every row: places among the distinct names ``seen``, -1 where it says nothing."""

    codes: Codes
    seen: list[Hashable]

    def by(self, numbers: Mapping[Hashable, int]) -> Codes:
        """The same by another numbering."""
        return np.array([*(numbers[name] for name in self.seen), -1], dtype=np.int64)[self.codes]

    def take(self, rows: Codes) -> Named:
        """The names of some rows."""
        return Named(self.codes[rows], self.seen)

    def joined(self, other: Named) -> Named:
        """The names of these rows and then of others."""
        numbers = {name: code for code, name in enumerate(dict.fromkeys([*self.seen, *other.seen]))}
        return Named(np.concatenate([self.codes, other.by(numbers)]), list(numbers))


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a part that are used, their places among those that were read, their labels and groups."""

    values: Array
    places: Codes
    regimes: Named
    groups: Named
    n_read: int

    def take(self, rows: Codes) -> Rows:
        """Some of the rows."""
        return Rows(
            self.values[rows], self.places[rows], self.regimes.take(rows), self.groups.take(rows), self.n_read
        )

    def joined(self, other: Rows) -> Rows:
        """These rows and then others, whose places count on from those that were read here."""
        return Rows(
            np.vstack([self.values, other.values]),
            np.concatenate([self.places, other.places + self.n_read]),
            self.regimes.joined(other.regimes),
            self.groups.joined(other.groups),
            self.n_read + other.n_read,
        )


def parts_of(
    source: Any,
    columns: Sequence[str] | None = None,
    regimes: str | None = None,
    groups: str | None = None,
    missing: Missing = "error",
) -> tuple[tuple[Part, ...], tuple[str, ...]]:
    """Parts of a source, and the names of its variables.

    Parameters
    ----------
    source : path, Dask table, or sequence of tables
        A Parquet file (or several, or a folder of them) is read by row groups.
    columns : sequence of str, optional
        Use only these variables.
    regimes, groups : str, optional
        Names of the columns of labels and of groups, which are no variables.
    missing : {"error", "drop"}
        What to do about rows with NaN or infinite values.

    Raises
    ------
    ValueError, TypeError
        If there are no rows, or it is none of these; the message names the remedy.
    """
    known = {"regimes": regimes, "groups": groups}
    for what, column in known.items():
        if column is not None and not isinstance(column, str):
            raise TypeError(
                f"{what} must be the name of a column of the stream, got {type(column).__name__}: write the labels "
                "into the table, or pass rows that fit into memory to fit."
            )
    if regimes is not None and regimes == groups:
        raise ValueError(f"{regimes!r} cannot hold the labels and the groups; name two columns.")
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
            "Dask table, or a list of tables; a table that fits into memory belongs in fit."
        )
    others = {column: what for what, column in known.items() if column is not None}
    wanted = [name for name in names if name not in others]
    if columns is not None:
        wanted = [str(name) for name in columns]
    absent = [name for name in [*wanted, *others] if name not in names]
    if absent:
        raise ValueError(f"There is no column {listed(absent)}; the columns are {listed(names)}.")
    twice = [name for name in wanted if name in others]
    if twice:
        holds = "labels" if others[twice[0]] == "regimes" else "groups"
        raise ValueError(
            f"{twice[0]!r} holds the {holds}, so it cannot be a variable too; drop it from columns=."
        )
    check_names(wanted)
    if not readers:
        raise ValueError("There are no rows.")
    parts = tuple(Part(reader, place, tuple(wanted), regimes, groups, missing) for place, reader in readers)
    return parts, tuple(wanted)


def labels_of(source: Any, regimes: str, n_jobs: int = 1) -> list[Hashable]:
    """Distinct labels of a column of a source, in the order in which they occur; no other column is read."""
    parts, _ = parts_of(source, regimes=regimes)
    found = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(part.labels)() for part in parts)
    return list(dict.fromkeys(label for labels in found for label in labels))


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(file for file in path.rglob("*.parquet") if not file.is_dir())
        if not found:
            raise ValueError(f"{str(path)!r} holds no .parquet files.")
        return found
    check_file(path)
    if path.suffix not in (".parquet", ".pq"):
        raise ValueError(
            f"Only Parquet files are streamed, and {path.name!r} is not one; convert it, for example with polars."
        )
    return [path]


def _row_groups(paths: Sequence[Path]) -> tuple[list[tuple[str, Reader]], list[str]]:
    readers: list[tuple[str, Reader]] = []
    names: list[str] = []
    for path in paths:
        with open_parquet(path) as file:
            own, groups = list(file.schema_arrow.names), file.num_row_groups
        check_names(own, path.name)
        if names and set(own) != set(names):
            raise ValueError(f"{path.name} has other columns than {paths[0].name}; stream files of one kind.")
        names = names or own
        readers += [
            (f"{path.name}, row group {i} (counted from 0)", partial(read_group, path, i))
            for i in range(groups)
        ]
    return readers, names


def _same(part: Any, _: list[str]) -> Any:
    return part


def _compute(part: Any, _: list[str]) -> Any:
    """A Dask partition where it is asked for: a worker that asked the cluster for it would wait for itself."""
    return part.compute(scheduler="synchronous")
