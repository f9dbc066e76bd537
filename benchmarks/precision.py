"""The same tables in float32 and float64: ``python -m benchmarks.precision [seeds]``.

The paper's linear benchmark (10 variables, 10 000 rows, eleven regimes, nothing known). Tables in single precision lose
digits before the fit, which computes in float64 whatever it is given; the question is whether that changes findings.
*Between* compares the two fits with each other, SHD and ARI each with the truth.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from latentdo import LatentInterventionDAG, metrics, simulate

SETTINGS = (("stochastic", 1), ("stochastic", 4), ("atomic", 1), ("imperfect", 1))


def one(intervention: str, edges_per_node: int, seed: int) -> Mapping[str, object]:
    """Both fits to one table."""
    data = simulate(
        n_variables=10,
        edges_per_node=edges_per_node,
        intervention=intervention,
        n_samples=10_000,
        random_state=seed,
    )
    single, double = (
        LatentInterventionDAG(density="linear").fit(data.X.astype(kind)) for kind in ("float32", "float64")
    )
    return {
        "intervention": intervention,
        "edges": edges_per_node,
        "seed": seed,
        "SHD 32": metrics.shd(data.adjacency, single.adjacency_),
        "SHD 64": metrics.shd(data.adjacency, double.adjacency_),
        "SHD between": metrics.shd(double.adjacency_, single.adjacency_),
        "ARI 32": round(metrics.adjusted_rand_index(data.regimes, single.regimes_), 3),
        "ARI 64": round(metrics.adjusted_rand_index(data.regimes, double.regimes_), 3),
        "ARI between": round(metrics.adjusted_rand_index(double.regimes_, single.regimes_), 4),
        "regimes": f"{single.n_regimes_}/{double.n_regimes_}",
        "evidence": f"{single.evidence_ / double.evidence_ - 1.0:.1e}",
    }


def main(n_seeds: int = 3) -> None:
    for setting in SETTINGS:
        for seed in range(n_seeds):
            row = one(*setting, seed)
            if (setting, seed) == (SETTINGS[0], 0):
                print("  ".join(f"{name:>12}" for name in row))
            print("  ".join(f"{value!s:>12}" for value in row.values()), flush=True)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
