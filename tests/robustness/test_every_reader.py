"""Every reader of the package against the same nasty files: a result, or one sentence with the name of the file."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import latentdo
from latentdo import BootstrapDAG, LatentInterventionDAG, read_knowledge, read_table
from latentdo.cli import app
from latentdo.cli.tables import read_labels, read_matrix, read_targets, read_trials
from latentdo.readers import read_arrow, read_csv, read_toml
from latentdo.readers.cells import read_cells
from latentdo.streaming import labels_of, open_stream

GOOD = b"a,b\n1,2\n3,5\n4,4\n"
DEEP = 5000

NASTY: dict[str, bytes] = {
    "empty": b"",
    "blank": b"\n \n\n",
    "a NUL": b"\0",
    "NULs": b"\0" * 5000,
    "NUL in a cell": b"a,b\n1,2\n3\x005,5\n4,4\n",
    "NUL in a name": b"a\0,b\n1,2\n3,5\n",
    "NUL in quotes": b'a,b\n1,"2\n\0"\n3,5\n',
    "all bytes": bytes(range(256)),
    "mark and nothing": b"\xef\xbb\xbf",
    "UTF-16": GOOD.decode().encode("utf-16"),
    "Latin-1": "a,b\n1,é\n".encode("latin-1"),
    "lone surrogate": b"a,b\n1,\xed\xa0\x80\n",
    "exponent that ends pandas": b"a,b\n1,1e257301222821\n2,3\n",
    "exponent in labels": b"row,regime\n1e257301222821,1e257301222821\n1,2\n",
    "exponent in a list": b"cause,effect,knowledge\na,b,1e257301222821\n",
    "exponent in trials": b"trial,held_out,seconds,within_one_error,chosen,edges,targets,regimes\n"
    b"1e257301222821,1,1,True,True,1,1,1\n",
    "text in trials": b"trial,held_out,seconds,within_one_error,chosen,edges,targets,regimes\nx,y,z,u,v,w,a,b\n",
    "beyond float64": b"a,b\n1,1e400\n2,3\n",
    "400 digits": b"a,b\n1," + b"9" * 400 + b"\n2,3\n",
    "5000 digits": b"a,b\n1," + b"9" * DEEP + b"\n2,3\n",
    "decimal commas": b'a,b\n"1,5",2\n"3,5",5\n',
    "long cell": b"a,b\n1," + b"x" * 200_000 + b"\n",
    "open quote": b'a,b\n1,"2\n3,4\n',
    "quote inside": b'a,b\n1"2,3\n4,5\n',
    "ragged": b"a,b\n1,2,3\n4\n",
    "names only": b"a,b\n",
    "duplicate names": b"a,a\n1,2\n3,4\n",
    "duplicate rows": b"row,regime\n1,u\n1,v\n",
    "edge given twice": b"cause,effect,knowledge\na,b,1\na,b,2\n",
    "lines end with CR": b"a,b\r1,2\r3,5\r",
    "form feeds": b"a,b\n1\x0c,2\n\x1c3,5\n",
    "TOML that is too deep": b"forbidden = " + b"[" * DEEP,
    "TOML with long keys": b"a." * DEEP + b"a = 1",
    "TOML with long digits": b"max_parents = " + b"9" * DEEP,
    "TOML with a long hexadecimal": b"max_parents = 0x" + b"f" * DEEP,
    "TOML with a date": b"max_parents = 1979-05-27",
    "TOML of wrong forms": b'forbidden = "a b"\n[edge_prior]\n"a -> b" = nan',
    "TOML of triples": b'required = [["a", "b", "c"], ["d"]]',
    "deep JSON": b"[" * 100_000,
    "JSON": json.dumps({"a": [1, None]}).encode(),
    "pickle": pickle.dumps({"a": 1}),
    "Parquet in name": b"PAR1" + b"\0" * 60 + b"PAR1",
    "Feather in name": b"ARROW1\0\0" + b"\xff" * 60 + b"ARROW1",
    "HDF5 in name": b"\x89HDF\r\n\x1a\n" + b"\0" * 600,
    "safetensors in name": (2**40).to_bytes(8, "little") + b"{}",
    "gzip": gzip.compress(GOOD, mtime=0),
    "gzip that is cut": gzip.compress(GOOD * 99, mtime=0)[:-9],
    "gzip with a wrong sum": gzip.compress(GOOD, mtime=0)[:-8] + b"\0" * 8,
    "bzip2 that is cut": bz2.compress(GOOD * 99)[:-9],
    "xz that is cut": lzma.compress(GOOD * 99)[:-9],
    "gzip of a NUL": gzip.compress(b"a,b\n1,2\n3,\x005\n", mtime=0),
}


def configuration(path: Path) -> Any:
    return app.parse_args(
        ["fit", "x.csv", "--out", "r", "--config", str(path)], exit_on_error=False, print_error=False
    )


def columns_in_the_app(path: Path) -> Any:
    tables = pytest.importorskip("latentdo.app.tables", exc_type=ImportError)
    return tables._columns(path, None, ".", "utf-8")


READERS: dict[str, tuple[Callable[[Path], Any], tuple[str, ...]]] = {
    "read_table": (
        read_table,
        ("csv", "tsv", "csv.gz", "csv.bz2", "csv.xz", "parquet", "pq", "feather", "h5ad", "xlsx", ""),
    ),
    "read_table with labels": (lambda path: read_table(path, "b"), ("csv", "txt.gz", "parquet", "h5ad")),
    "read_table without names": (lambda path: read_table(path, header=False), ("csv",)),
    "read_csv": (read_csv, ("csv", "csv.gz")),
    "read_arrow": (read_arrow, ("parquet", "feather")),
    "read_cells": (read_cells, ("h5ad",)),
    "read_toml": (read_toml, ("toml",)),
    "read_knowledge": (lambda path: read_knowledge(path, ["a", "b"]), ("toml", "csv", "txt")),
    "--config": (configuration, ("toml",)),
    "adjacency.csv": (read_matrix, ("csv",)),
    "regimes.csv": (read_labels, ("csv",)),
    "--targets": (lambda path: read_targets(path, {"1": 1}), ("csv",)),
    "trials.csv": (read_trials, ("csv",)),
    "--stream": (open_stream, ("parquet", "csv")),
    "--stream with labels": (lambda path: labels_of(path, "b"), ("parquet",)),
    "the app": (columns_in_the_app, ("csv", "csv.gz", "parquet", "feather", "h5ad")),
    "a saved model": (LatentInterventionDAG.load, ("safetensors",)),
    "a saved bootstrap": (BootstrapDAG.load, ("safetensors",)),
}


def read_or_refuse(reader: Callable[[Path], Any], path: Path) -> bool:
    """Whether it was read; whatever is raised must be one of two errors, and name the file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            reader(path)
        except (ValueError, OSError) as error:
            message = str(error)
        else:
            return True
    assert path.name in message
    return False


@pytest.mark.parametrize("name", READERS)
def test_every_reader_reads_or_refuses_every_nasty_file(name, tmp_path):
    reader, endings = READERS[name]
    for ending in endings:
        for number, content in enumerate(NASTY.values()):
            path = tmp_path / f"n{number}.{ending}".rstrip(".")
            path.write_bytes(content)
            read_or_refuse(reader, path)
            if ending.endswith("gz"):
                path.write_bytes(gzip.compress(content, mtime=0))
                read_or_refuse(reader, path)


@pytest.mark.parametrize("name", READERS)
def test_what_is_not_a_file_is_refused_by_every_reader(name, tmp_path):
    reader, endings = READERS[name]
    ending = endings[0]
    pipe, loop, dangling, folder = (
        tmp_path / f"{kind}.{ending}" for kind in ("pipe", "loop", "dangling", "d")
    )
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    dangling.symlink_to(tmp_path / "nothing")
    folder.mkdir()
    long = tmp_path / f"{'x' * 400}.{ending}"
    inside = pipe / f"in.{ending}"
    for path in (pipe, loop, dangling, folder, long, inside, tmp_path / f"nowhere.{ending}"):
        assert not read_or_refuse(reader, path)


def test_the_guards_are_the_only_readers_of_the_package():
    """A new call of pandas' or Python's own parsers would bring back what the guards keep out."""
    root = Path(latentdo.__file__).parent
    parsers = (
        "pd.read_",
        "csv.reader(",
        "csv.DictReader(",
        "loadtxt(",
        "genfromtxt(",
        "tomllib.load",
        "read_h5ad(",
    )
    found = {
        str(file.relative_to(root))
        for file in root.rglob("*.py")
        if any(parser in file.read_text("utf-8") for parser in parsers)
    }
    # values.py takes a single line of a flag apart, which is not a file; cells.py and table.py: AnnData's own;
    # timeline.py shows what the app itself has just written
    assert found == {
        os.path.join("readers", "text.py"),
        os.path.join("readers", "toml.py"),
        os.path.join("readers", "cells.py"),
        os.path.join("readers", "table.py"),
        os.path.join("cli", "values.py"),
        os.path.join("app", "timeline.py"),
    }


def test_columns_that_are_not_numbers_are_named(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import datetime

    from pyarrow import feather, parquet

    columns = {
        "lists": pa.array([[1.0, 2.0]] * 4),
        "empty lists": pa.array([[]] * 4, type=pa.list_(pa.float64())),
        "structures": pa.array([{"x": 1}] * 4),
        "nested": pa.array([[{"x": [1]}]] * 4),
        "maps": pa.array([[("k", 1)]] * 4, type=pa.map_(pa.string(), pa.int64())),
        "dates": pa.array([datetime.date(2020, 1, 1)] * 4),
        "durations": pa.array([datetime.timedelta(1)] * 4),
        "bytes": pa.array([b"1", b"2"] * 2),
        "categories": pa.array(["u", "v"] * 2).dictionary_encode(),
    }
    for name, column in columns.items():
        table = pa.table({"a": pa.array(np.arange(4.0)), name: column})
        parquet.write_table(table, tmp_path / "t.parquet")
        readers: list[Callable[[], Any]] = [lambda: open_stream(tmp_path / "t.parquet")]
        if name != "categories":  # which a table in memory may have
            readers.append(lambda: read_table(tmp_path / "t.parquet"))
        if name not in ("maps", "categories"):
            feather.write_feather(table, tmp_path / "t.feather")
            readers.append(lambda: read_table(tmp_path / "t.feather"))
        if name in ("lists", "structures", "nested"):
            readers += [
                lambda name=name: read_table(tmp_path / "t.parquet", name),
                lambda name=name: labels_of(tmp_path / "t.parquet", name),
            ]
        for read in readers:
            with pytest.raises(ValueError, match=rf"t\.(parquet|feather).*'{name}'"):
                read()
        assert list(read_table(tmp_path / "t.parquet", drop=[name])) == ["a"]
    decimals = pa.table({"a": pa.array([1.5, 2.5]).cast(pa.decimal128(4, 2)), "b": pa.array([1.0, 2.0])})
    parquet.write_table(decimals, tmp_path / "t.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert read_table(tmp_path / "t.parquet")["a"].to_list() == [1.5, 2.5]
    parquet.write_table(pa.Table.from_arrays([columns["lists"]] * 2, ["a", "a"]), tmp_path / "t.parquet")
    for read in (read_table, open_stream):
        with pytest.raises(ValueError, match=r"t\.parquet.*Duplicate.*'a'"):
            read(tmp_path / "t.parquet")


def test_a_parquet_file_that_unpacks_beyond_the_limit_is_refused_unread(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    path = tmp_path / "zeros.parquet"
    pd.DataFrame({"a": np.zeros(200_000), "b": np.zeros(200_000)}).to_parquet(path)
    monkeypatch.setenv("LATENTDO_MAX_UNPACKED_GB", "0.001")
    for read in (read_table, open_stream):
        with pytest.raises(ValueError, match=r"zeros\.parquet.*LATENTDO_MAX_UNPACKED_GB"):
            read(path)
