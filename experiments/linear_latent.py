"""Linear data without labels: Hamming distance, regimes found and assignments, on the paper's benchmark.

``python -m experiments.linear_latent --seeds 0:10,100:130`` prints the table of docs/results.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from experiments import runner
from latentdo import LatentInterventionDAG, metrics, simulate

ROWS = [
    (preset, intervention, edges_per_node)
    for preset in ("paper", "paper-hetero")
    for intervention in ("stochastic", "imperfect", "atomic")
    for edges_per_node in (1, 4)
    if preset == "paper" or intervention != "atomic"
]


def cell(
    preset: str, intervention: str, edges_per_node: float, max_regimes: int, seed: int, n_samples: int
) -> Mapping[str, Any]:
    """Fit one simulated table without labels."""
    data = simulate(10, edges_per_node, "linear", intervention, n_samples, preset, random_state=seed)
    kind = "imperfect" if intervention == "imperfect" else "perfect"
    model = LatentInterventionDAG(density="linear", intervention=kind, max_regimes=max_regimes).fit(data.X)
    targets = metrics.target_scores(data.targets, model.targets_, data.regimes, model.regimes_)
    ceiling = data.bayes_responsibilities().argmax(axis=1)
    return {
        "hamming": metrics.hamming_distance(data.adjacency, model.adjacency_),
        "shd": metrics.shd(data.adjacency, model.adjacency_),
        "ari": metrics.adjusted_rand_index(data.regimes, model.regimes_),
        "ari_ceiling": metrics.adjusted_rand_index(data.regimes, ceiling),
        "target_f1": targets.f1,
        "regimes": model.n_regimes_,
        "regime_error": abs(model.n_regimes_ - data.n_regimes),
        "fit_seconds": model.result_.seconds,
    }


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """One line a setting: means and standard errors."""
    groups = frame.groupby(["preset", "intervention", "edges_per_node", "max_regimes"], sort=False)
    columns = ["hamming", "shd", "ari", "ari_ceiling", "target_f1", "regime_error", "fit_seconds"]
    out = groups[columns].agg(runner.mean_and_error)
    out.insert(0, "graphs", groups.size())
    return out.reset_index()


def main() -> None:
    options = runner.arguments(
        __doc__, presets="paper,paper-hetero", interventions="stochastic,imperfect,atomic"
    )
    seeds = [1000] if options.smoke else runner.seeds_of(options.seeds, [*range(10), *range(100, 130)])
    cells = [
        {
            "preset": preset,
            "intervention": intervention,
            "edges_per_node": edges,
            "max_regimes": max_regimes,
            "seed": seed,
            "n_samples": 2000 if options.smoke else 10_000,
        }
        for preset, intervention, edges in (ROWS[:2] if options.smoke else ROWS)
        if preset in options.presets.split(",") and intervention in options.interventions.split(",")
        for max_regimes in (11, 16)
        for seed in seeds
        if max_regimes == 16 or preset == "paper"
    ]
    frame = runner.run(
        "linear_latent", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh
    )
    print(f"\n{runner.machine()}; seeds {options.seeds or '0:10,100:130'}; 10 variables, 10 000 rows")
    print(table(frame).to_string(index=False))


if __name__ == "__main__":
    main()
