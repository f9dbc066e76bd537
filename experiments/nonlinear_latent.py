"""Nonlinear and non-Gaussian data, without labels and with the true regimes: the table of docs/results.md.

``python -m experiments.nonlinear_latent --seeds 0:10`` fits every row of the paper's Table 1 that is not linear, with
matching density and intervention, ``max_regimes=16`` and every other argument at its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from experiments import runner
from latentdo import LatentInterventionDAG, metrics, simulate

DENSITIES = {"nonlinear": "nonlinear", "nonadditive": "flow"}
"""Density that matches a mechanism."""

ROWS = [
    (intervention, mechanism, edges_per_node)
    for intervention in ("stochastic", "imperfect")
    for edges_per_node in (1, 4)
    for mechanism in DENSITIES
]


def cell(
    preset: str,
    intervention: str,
    mechanism: str,
    edges_per_node: float,
    variant: str,
    seed: int,
    n_samples: int,
) -> Mapping[str, Any]:
    """Fit one simulated table, with its regimes given if the variant is "unknown" (targets)."""
    data = simulate(10, edges_per_node, mechanism, intervention, n_samples, preset, random_state=seed)
    kind = "imperfect" if intervention == "imperfect" else "perfect"
    model = LatentInterventionDAG(density=DENSITIES[mechanism], intervention=kind)
    model.fit(data.X, regimes=data.regimes if variant == "unknown" else None)
    targets = metrics.target_scores(data.targets, model.targets_, data.regimes, model.regimes_)
    ceiling = float("nan")  # noise that goes through a network has no density in closed form
    if mechanism == "nonlinear":
        best = data.bayes_responsibilities().argmax(axis=1)
        ceiling = metrics.adjusted_rand_index(data.regimes, best)
    return {
        "hamming": metrics.hamming_distance(data.adjacency, model.adjacency_),
        "shd": metrics.shd(data.adjacency, model.adjacency_),
        "true_edges": int(data.adjacency.to_numpy().sum()),
        "ari": metrics.adjusted_rand_index(data.regimes, model.regimes_),
        "ari_ceiling": ceiling,
        "target_f1": targets.f1,
        "regimes": model.n_regimes_,
        "regime_error": abs(model.n_regimes_ - data.n_regimes),
        "fit_seconds": model.result_.seconds,
    }


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """One line a setting: means and standard errors."""
    groups = frame.groupby(["variant", "preset", "intervention", "mechanism", "edges_per_node"], sort=False)
    columns = [
        "hamming",
        "shd",
        "true_edges",
        "ari",
        "ari_ceiling",
        "target_f1",
        "regime_error",
        "fit_seconds",
    ]
    out = groups[columns].agg(runner.mean_and_error)
    out.insert(0, "graphs", groups.size())
    return out.reset_index()


def main() -> None:
    options = runner.arguments(
        __doc__, presets="paper", mechanisms="nonlinear,nonadditive", variants="latent,unknown"
    )
    seeds = [1000] if options.smoke else runner.seeds_of(options.seeds, [*range(10)])
    cells = [
        {
            "preset": preset,
            "intervention": intervention,
            "mechanism": mechanism,
            "edges_per_node": edges,
            "variant": variant,
            "seed": seed,
            "n_samples": 600 if options.smoke else 10_000,
        }
        for seed in seeds
        for variant in (["latent"] if options.smoke else options.variants.split(","))
        for preset in options.presets.split(",")
        for intervention, mechanism, edges in (ROWS[:1] if options.smoke else ROWS)
        if mechanism in options.mechanisms.split(",")
    ]
    frame = runner.run(
        "nonlinear_latent", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh
    )
    print(f"\n{runner.machine()}; seeds {options.seeds or '0:10'}; 10 variables, 10 000 rows")
    print(table(frame).to_string(index=False))


if __name__ == "__main__":
    main()
