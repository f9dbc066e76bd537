"""How long it takes to read a table from CSV and from Parquet: ``python -m benchmarks.reading``."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from latentdo import read_table


def main(n_rows: int = 300_000, n_variables: int = 20) -> None:
    """Print seconds of processor time and sizes of files."""
    values = np.random.default_rng(0).normal(size=(n_rows, n_variables))
    table = pd.DataFrame(values, columns=[f"X{j + 1}" for j in range(n_variables)])
    print(f"{n_rows} rows of {n_variables} variables")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table.to_csv(folder / "table.csv", index=False)
        table.to_parquet(folder / "table.parquet")
        for path in sorted(folder.iterdir()):
            began = time.process_time()
            read_table(path)
            seconds, size = time.process_time() - began, path.stat().st_size / 2**20
            print(f"{path.suffix[1:]:<8} {seconds:5.1f} s {size:6.0f} MiB")


if __name__ == "__main__":
    main()
