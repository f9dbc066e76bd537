"""Ten million rows of 20 variables, streamed: ``python -m benchmarks.streaming [rows] [n_jobs]``.

Writes a Parquet file of 100 000 rows a row group into a temporary folder (1.6 GB for ten million), then fits it in a
process of its own and prints time and peak memory.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from latentdo import LatentInterventionDAG, metrics, simulate

GROUP = 100_000


def write(path: Path, n_rows: int) -> None:
    """Rows of one simulated model with eleven regimes, each row group with its own randomness."""
    data = simulate(n_variables=20, edges_per_node=1, n_samples=1000, n_regimes=11, random_state=0)
    names = list(data.X.columns)
    # The benchmark of the paper standardises the table: the same affine map for every row group.
    raw = np.vstack(
        [scm.sample_array(20_000, np.random.default_rng(k)) for k, scm in enumerate(data.regime_scms)]
    )
    mean, spread = raw.mean(axis=0), raw.std(axis=0)
    schema = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(path, schema, compression="none") as writer:
        for group in range(n_rows // GROUP):
            rng = np.random.default_rng([1, group])
            counts = rng.multinomial(GROUP, np.full(11, 1 / 11))
            rows = np.vstack(
                [scm.sample_array(n, rng) for scm, n in zip(data.regime_scms, counts, strict=True)]
            )
            rows = (rows[rng.permutation(GROUP)] - mean) / spread
            writer.write_table(
                pa.table(dict(zip(names, rows.T, strict=True)), schema=schema), row_group_size=GROUP
            )


def fit(path: Path, n_jobs: int) -> None:
    """Fit and report; run in a process of its own, so that the peak is that of the fit."""
    truth = simulate(n_variables=20, edges_per_node=1, n_samples=1000, n_regimes=11, random_state=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    began = time.perf_counter()

    def show(entry: dict[str, object]) -> None:
        print(
            f"  {time.perf_counter() - began:7.1f} s  {entry['step']}  evidence {entry['evidence']:.1f}",
            flush=True,
        )

    est = LatentInterventionDAG(max_regimes=15, n_init=1, n_jobs=n_jobs).fit_stream(path, progress=show)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    distance = metrics.essential_graph_distance(truth.adjacency, est.adjacency_, truth.targets)
    rows = est.result_.configuration["streamed_rows"]
    print(
        f"{rows:,} rows x 20, n_jobs {n_jobs}: {seconds:.0f} s, peak {peak} MiB ({before} before the fit), "
        f"{est.n_regimes_} regimes, essential distance {distance}, {len(est.history_)} steps"
    )


def main(n_rows: int = 10_000_000, n_jobs: int = 1) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, n_rows)
        print(f"{path.stat().st_size / 2**20:.0f} MiB of Parquet", flush=True)
        child = multiprocessing.get_context("spawn").Process(target=fit, args=(path, n_jobs))
        child.start()
        child.join()


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
