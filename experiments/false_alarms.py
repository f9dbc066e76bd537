"""False alarms: how often hidden interventions are "found" in data that have none.

``python -m experiments.false_alarms`` fits observational linear data with Gaussian, heavy-tailed and skewed noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments import runner
from latentdo import LatentInterventionDAG, metrics
from latentdo.graphs import random_dag
from latentdo.scm import SCM, Gamma, Gaussian, Linear, StudentT

NOISES = {
    "gaussian": lambda scale: Gaussian(0.0, scale),
    "t20": lambda scale: StudentT(20.0, scale=scale),
    "skewed": lambda scale: Gamma(4.0, scale=scale / 2.0),
}


def cell(noise: str, seed: int, n_samples: int, n_variables: int) -> Mapping[str, Any]:
    """Fit one observational table as if interventions might hide in it."""
    rng = np.random.default_rng(seed)
    adjacency = random_dag(n_variables, edges_per_node=1, rng=rng)
    names = [f"X{j + 1}" for j in range(n_variables)]
    parts = {}
    for j, name in enumerate(names):
        weights = {
            names[i]: rng.choice([-1.0, 1.0]) * rng.uniform(0.25, 1.0)
            for i in np.flatnonzero(adjacency[:, j])
        }
        parts[name] = (Linear(weights), NOISES[noise](np.sqrt(rng.uniform(1.0, 2.0))))
    rows = SCM(parts).sample(n_samples, seed)
    model = LatentInterventionDAG(density="linear").fit(rows)
    return {
        "regimes": model.n_regimes_,
        "hamming": metrics.hamming_distance(adjacency, model.adjacency_.to_numpy()),
        "fit_seconds": model.result_.seconds,
    }


def main() -> None:
    options = runner.arguments(__doc__)
    seeds = [1000] if options.smoke else runner.seeds_of(options.seeds, range(34))
    size = {"n_samples": 1000, "n_variables": 4} if options.smoke else {"n_samples": 5000, "n_variables": 10}
    cells = [{"noise": noise, "seed": seed, **size} for noise in NOISES for seed in seeds]
    frame = runner.run(
        "false_alarms", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh
    )
    quiet = (
        frame.assign(quiet=frame["regimes"] == 1).groupby("noise", sort=False)["quiet"].agg(["sum", "size"])
    )
    print(f"\n{runner.machine()}; runs without a false alarm:")
    print(quiet.to_string())
    print(f"all: {int(quiet['sum'].sum())} of {int(quiet['size'].sum())}")


if __name__ == "__main__":
    main()
