"""Accuracy and time of the linear search in wide tables: ``python -m benchmarks.width [d ...]``.

10 000 rows, eleven regimes of one target each, one edge a variable, nothing known. So few interventions leave most
directions open, whatever the method: *essential* counts only what the data can show, the distance between the two
interventional essential graphs. All figures are processor seconds of one thread; set ``OMP_NUM_THREADS=1``.
"""

from __future__ import annotations

import resource
import sys
import time
import warnings

from latentdo import LatentInterventionDAG, metrics, simulate
from latentdo.data import DataWarning

SIZES = (20, 50, 100, 200, 500)


def one(d: int, seed: int = 0) -> dict[str, float]:
    """One fit in a table of ``d`` variables."""
    data = simulate(n_variables=d, edges_per_node=1, n_samples=10_000, n_regimes=11, random_state=seed)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # of scales, which grow along long paths
        est = LatentInterventionDAG(max_regimes=15, n_init=1).fit(data.X)
    seconds = time.process_time() - began
    skeleton = metrics.skeleton_scores(data.adjacency, est.adjacency_)
    return {
        "d": d,
        "edges": int(data.adjacency.to_numpy().sum()),
        "seconds": round(seconds, 1),
        "MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "skeleton F1": round(skeleton.f1, 3),
        "SHD": metrics.shd(data.adjacency, est.adjacency_),
        "essential": metrics.essential_graph_distance(data.adjacency, est.adjacency_, data.targets),
        "ARI": round(metrics.adjusted_rand_index(data.regimes, est.regimes_), 3),
        "regimes": est.n_regimes_,
    }


def main(sizes: tuple[int, ...] = SIZES) -> None:
    LatentInterventionDAG(max_regimes=3, n_init=1).fit(
        simulate(13, 1, n_samples=500, random_state=0).X
    )  # compile
    for number, d in enumerate(sizes):
        row = one(d)
        if number == 0:
            print("  ".join(f"{name:>11}" for name in row))
        print("  ".join(f"{value:>11}" for value in row.values()), flush=True)


if __name__ == "__main__":
    main(tuple(int(word) for word in sys.argv[1:]) or SIZES)
