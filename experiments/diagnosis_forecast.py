"""Does ``diagnose()`` forecast the errors that a fit really has? Small linear tables without labels, with known truth.

``python -m experiments.diagnosis_forecast`` fits tables, diagnoses each fit without the truth, and compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments import runner
from latentdo import LatentInterventionDAG, metrics, simulate

SETTINGS = ((4.0, 300), (4.0, 1000), (2.0, 300), (2.0, 1000))
"""Separation of the regimes in standard deviations, and rows."""


def cell(separation: float, n_samples: int, n_repeats: int, seed: int) -> Mapping[str, Any]:
    """Fit and diagnose one table; ``actual`` columns need the truth, the others do not."""
    data = simulate(5, 1, n_samples=n_samples, preset="dcdi", separation=separation, random_state=seed)
    estimator = LatentInterventionDAG(max_regimes=8, n_init=2).fit(data.X)
    diagnosis = estimator.diagnose(n_repeats)
    return {
        "actual_hamming": metrics.hamming_distance(data.adjacency, estimator.adjacency_),
        "hamming": diagnosis.expected_error["hamming"],
        "actual_ari": metrics.adjusted_rand_index(data.regimes, estimator.regimes_),
        "ceiling": diagnosis.ceiling,
        "reached": diagnosis.reached,
        "true_regimes": data.n_regimes,
        "regimes": estimator.n_regimes_,
        "close_pairs": len(diagnosis.close_regimes),
        "edges": len(diagnosis.edges),
        "lost_edges": len(diagnosis.lost_edges),
    }


def main() -> None:
    options = runner.arguments(__doc__)
    cells = [
        {"separation": separation, "n_samples": n, "n_repeats": 1 if options.smoke else 3, "seed": seed}
        for separation, n in (SETTINGS[:1] if options.smoke else SETTINGS)
        for seed in ([1000] if options.smoke else runner.seeds_of(options.seeds, range(1000, 1020)))
    ]
    frame = runner.run(
        "diagnosis_forecast", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh
    )
    print(f"\n{runner.machine()}; {len(frame)} cells")
    columns = ["actual_hamming", "hamming", "actual_ari", "reached", "ceiling", "true_regimes", "regimes"]
    columns += ["close_pairs", "edges", "lost_edges"]
    grouped = frame.groupby(["separation", "n_samples"])
    print(grouped[columns].mean().round(2).T.to_string())
    print("\nstandard errors")
    print(grouped[["actual_hamming", "hamming", "actual_ari", "reached"]].sem().round(2).T.to_string())


if __name__ == "__main__":
    main()
