"""The search solver's time, as a ratio to scikit-learn's GaussianMixture in the same run, and how it grows.

``python -m benchmarks.search_speed`` takes a few minutes; ``--wide`` adds 50 and 100 variables (up to half an hour).
Set ``OMP_NUM_THREADS=1``: all figures are processor seconds of one thread.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

import numpy as np
from sklearn.mixture import GaussianMixture

from latentdo import LatentInterventionDAG, metrics, simulate


def seconds(job: Callable[[], object]) -> float:
    """Processor time: it does not depend on what else the machine is doing (one thread is used)."""
    began = time.process_time()
    job()
    return time.process_time() - began


def peak_mebibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def against_gaussian_mixture() -> None:
    print("d=10, n=10000, 11 regimes, n_init=4 (goal: 3 x GaussianMixture + 2 s)")
    for intervention in ("stochastic", "imperfect"):
        for edges in (1, 4):
            data = simulate(10, edges, "linear", intervention, random_state=1000)
            kind = "imperfect" if intervention == "imperfect" else "perfect"
            model = LatentInterventionDAG(density="linear", intervention=kind, max_regimes=11)
            rival = GaussianMixture(11, n_init=4, random_state=0)
            model.fit(data.X)  # compile
            ours, theirs = (
                seconds(lambda m=model, x=data.X: m.fit(x)),
                seconds(lambda r=rival, x=data.X: r.fit(x)),
            )
            goal = 3 * theirs + 2
            print(
                f"  {intervention:<11} e={edges}  {ours:6.2f} s  mixture {theirs:5.2f} s  of goal {ours / goal:5.2f}"
            )


def against_rows() -> None:
    print("rows, d=10, e=1 (goal: a million rows in 60 s and 2 GiB)")
    for n in (10_000, 100_000, 1_000_000):
        data = simulate(10, 1, n_samples=n, random_state=1000)
        table = data.X.to_numpy()
        model = LatentInterventionDAG(density="linear", intervention="perfect")
        took = seconds(lambda m=model, x=table: m.fit(x))
        distance = metrics.hamming_distance(data.adjacency.to_numpy(), model.adjacency_.to_numpy())
        print(f"  n={n:>9,}  {took:6.1f} s  peak {peak_mebibytes():6.0f} MiB  Hamming {distance}")


def against_variables(sizes: tuple[tuple[int, int], ...]) -> None:
    print("variables, e=2, one intervention each")
    for d, n in sizes:
        data = simulate(d, 2, n_samples=n, random_state=1000)
        model = LatentInterventionDAG(density="linear", intervention="perfect", max_regimes=d + 1, n_init=1)
        took = seconds(lambda m=model, x=data.X: m.fit(x))
        distance = metrics.hamming_distance(data.adjacency, model.adjacency_)
        ari = metrics.adjusted_rand_index(data.regimes, model.regimes_)
        print(
            f"  d={d:>3} n={n:>7,}  {took:7.1f} s  Hamming {distance} ({distance / d:.2f} a node)  "
            f"ARI {ari:.3f}  regimes {model.n_regimes_}",
            flush=True,
        )


def main(*, wide: bool = False) -> None:
    np.set_printoptions(precision=3)
    against_gaussian_mixture()
    against_rows()
    against_variables(((20, 20_000), (50, 50_000), (100, 100_000)) if wide else ((20, 20_000),))


if __name__ == "__main__":
    main(wide="--wide" in sys.argv)
