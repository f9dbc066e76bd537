"""Reading the stored cells: ours and peers' on the same tables, in one shape."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from experiments import runner
from experiments.paper import TABLE_1, Row

ROW = list(Row._fields)
FULL_SIZE = 10_000
DEVELOPMENT = 1000
"""Seeds from here up are for choosing, never for tables of results."""


def read(name: str, folder: Path | None = None) -> pd.DataFrame:
    """All stored cells of an experiment, the newest of each configuration; empty if it was not run."""
    path = (folder or runner.RESULTS) / f"{name}.csv"
    if not path.exists():
        return pd.DataFrame()
    return pd.read_csv(path, dtype={"key": str}).drop_duplicates("key", keep="last")


def ours(folder: Path | None = None) -> pd.DataFrame:
    """Our cells of Table 1; columns of `Row`, ``variant``, ``seed``, ``hamming`` and more."""
    parts = [read("table1", folder), read("nonlinear_latent", folder)]
    frame = pd.concat([part for part in parts if len(part)])
    frame = frame[(frame["n_samples"] == FULL_SIZE) & (frame.get("preset", "paper") != "paper-hetero")]
    return frame.drop_duplicates([*ROW, "variant", "seed"], keep="last")


def peers(folder: Path | None = None) -> pd.DataFrame:
    """Cells of other methods; ``hamming_favourable`` counts undirected edges as turned the right way."""
    frame = read("comparison", folder)
    if frame.empty:
        return pd.DataFrame(
            columns=[*ROW, "method", "seed", "hamming", "hamming_favourable", "status", "message"]
        )
    frame = frame[frame["n_samples"] == FULL_SIZE]
    # A cell that was run again with a longer limit counts with its best status.
    better = frame.assign(done=frame["status"] == "ok").sort_values(["done", "limit"], kind="stable")
    return better.drop_duplicates([*ROW, "method", "seed"], keep="last").drop(columns="done")


def of_row(frame: pd.DataFrame, row: Row) -> pd.DataFrame:
    """Cells of one kind of data."""
    chosen = pd.Series(True, frame.index)
    for name, value in row._asdict().items():
        chosen &= frame[name] == value
    return frame[chosen]


def distances(frame: pd.DataFrame, column: str = "hamming") -> pd.Series:
    """Hamming distance by seed, of cells that have one."""
    return frame.dropna(subset=column).set_index("seed")[column].sort_index()


ROWS = list(TABLE_1)
