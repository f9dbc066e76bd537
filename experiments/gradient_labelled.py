"""The gradient solver with the true regimes: Table 1 of the paper, columns "known" and "unknown".

``python -m experiments.gradient_labelled`` prints the table of docs/results.md; ``--densities linear`` and ``--seeds``
choose rows and graphs. Cells are stored as they finish, cheapest rows first, so that it can be stopped at any time.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any

import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from experiments import runner
from latentdo import LatentInterventionDAG, metrics, simulate

MECHANISMS = {"linear": "linear", "nonlinear": "nonlinear", "flow": "nonadditive"}
"""Mechanism of the simulator for every family of densities."""

PUBLISHED = {  # intervention, density, edges a node: (unknown, known)
    ("stochastic", "linear", 1): (3.4, 0.5),
    ("stochastic", "nonlinear", 1): (10.3, 7.0),
    ("stochastic", "flow", 1): (8.0, 6.6),
    ("stochastic", "linear", 4): (24.1, 15.6),
    ("stochastic", "nonlinear", 4): (30.3, 27.7),
    ("stochastic", "flow", 4): (35.5, 31.5),
    ("imperfect", "linear", 1): (6.2, 4.7),
    ("imperfect", "nonlinear", 1): (8.9, 7.8),
    ("imperfect", "flow", 1): (9.1, 7.9),
    ("imperfect", "linear", 4): (29.7, 17.7),
    ("imperfect", "nonlinear", 4): (32.6, 32.8),
    ("imperfect", "flow", 4): (30.2, 25.8),
}
COST = {"linear": 0, "nonlinear": 1, "flow": 2}


def cell(
    variant: str, density: str, intervention: str, edges_per_node: float, seed: int, n_samples: int
) -> Mapping[str, Any]:
    """Fit one simulated table whose regimes are given, and whose targets are too if ``variant`` is "known"."""
    n_variables = 10 if n_samples > 1000 else 3
    data = simulate(
        n_variables, edges_per_node, MECHANISMS[density], intervention, n_samples, "paper", random_state=seed
    )
    kind = "imperfect" if intervention == "imperfect" else "perfect"
    model = LatentInterventionDAG(density=density, intervention=kind, solver="gradient")
    given = {"targets": data.targets} if variant == "known" else {}
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data.X, regimes=data.regimes, **given)
    found = model.targets_.to_numpy()
    return {
        "hamming": metrics.hamming_distance(data.adjacency, model.adjacency_),
        "shd": metrics.shd(data.adjacency, model.adjacency_),
        "wrong_targets": int((found != data.targets.to_numpy()).sum()),
        "status": model.result_.status,
        "processor_seconds": round(time.process_time() - began, 1),
    }


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """One line a row and column of the paper's table."""
    keys = ["intervention", "density", "edges_per_node", "variant"]
    groups = frame.groupby(keys, sort=False)
    out = groups[["hamming", "wrong_targets", "processor_seconds"]].agg(runner.mean_and_error).reset_index()
    out.insert(4, "graphs", groups.size().to_numpy())
    out.insert(
        5, "paper", [PUBLISHED[tuple(row[:3])][int(row[3] == "known")] for row in out[keys].to_numpy()]
    )
    distances = groups["hamming"].agg(lambda values: " ".join(str(int(v)) for v in values))
    out.insert(7, "distances", distances.to_numpy())
    return out


def main() -> None:
    options = runner.arguments(
        __doc__,
        densities="linear,nonlinear,flow",
        interventions="stochastic,imperfect",
        variants="unknown,known",
    )
    rows = [
        (intervention, density, edges, variant)
        for intervention, density, edges in PUBLISHED
        for variant in options.variants.split(",")
        if density in options.densities.split(",") and intervention in options.interventions.split(",")
    ]
    rows.sort(key=lambda row: (COST[row[1]], row[0] == "imperfect"))
    if options.smoke:
        rows = rows[:1]
    cells = [
        {
            "variant": variant,
            "density": density,
            "intervention": intervention,
            "edges_per_node": edges,
            "seed": seed,
            "n_samples": 300 if options.smoke else 10_000,
        }
        for intervention, density, edges, variant in rows
        for seed in (
            [1000]
            if options.smoke
            else runner.seeds_of(options.seeds, range(10 if density == "linear" else 3))
        )
    ]
    frame = runner.run("gradient_labelled", cells, cell, n_jobs=options.n_jobs, store=options.store)
    print(f"\n{runner.machine()}; 10 variables, 10 000 rows; seeds 0-9 (linear) and 0-2, or --seeds")
    print(table(frame).to_string(index=False))


if __name__ == "__main__":
    main()
