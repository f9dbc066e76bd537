"""How much faster a bootstrap is with more Dask workers: ``python -m benchmarks.cluster [workers ...]``.

The workers are processes of this machine with one thread each, so more workers than processors show nothing. Wall time;
on a busy machine the ratio is a lower bound.
"""

from __future__ import annotations

import os
import sys
import time

from distributed import LocalCluster

from latentdo import BootstrapDAG, LatentInterventionDAG, simulate
from latentdo.cluster import compute_on

RESAMPLES = 16


def seconds(n_workers: int) -> float:
    """Wall time of the resamples, workers warm."""
    data = simulate(n_variables=8, n_samples=4000, random_state=0)
    base = LatentInterventionDAG(max_regimes=10, n_init=1)
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as workers,
        compute_on(workers.scheduler_address),
    ):
        boot = BootstrapDAG(base, n_resamples=n_workers, warm_start=True, n_jobs=-1).fit(
            data.X
        )  # import, compile
        began = time.perf_counter()
        boot.set_params(n_resamples=n_workers + RESAMPLES).fit(data.X)
        return time.perf_counter() - began


def main(counts: tuple[int, ...] = (1, 2)) -> None:
    first = None
    for n_workers in counts:
        took = seconds(n_workers)
        first = took if first is None else first
        load = os.getloadavg()[0]
        print(
            f"{n_workers} workers: {RESAMPLES} resamples in {took:6.1f} s, {first / took:.2f} x, load {load:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main(tuple(int(word) for word in sys.argv[1:]) or (1, 2))
