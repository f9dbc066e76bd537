"""Interventions unlike the paper's: several targets a regime, atomic ones, unequal regimes, no observational rows.

``python -m experiments.settings`` runs a row for each, on linear and nonlinear data, without labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments import runner
from experiments.nonlinear_latent import DENSITIES
from experiments.outcome import given, outcome
from latentdo import LatentInterventionDAG, simulate

SETTINGS = ("as in the paper", "one to three targets", "atomic", "unequal regimes", "none observational")
"""What differs from the paper's generator."""


def arguments_of(setting: str, n_variables: int) -> dict[str, Any]:
    """Arguments of ``simulate`` for a setting."""
    if setting == "one to three targets":
        return {"targets_per_regime": (1, 3), "n_regimes": 2 * n_variables + 1}
    if setting == "unequal regimes":  # the observational one 40 %, then down to 2 %
        shares = np.geomspace(0.12, 0.02, n_variables)
        return {"regime_weights": [0.4, *(0.6 * shares / shares.sum())]}
    if setting == "none observational":
        return {"observational": False}
    return {}


def cell(
    setting: str, mechanism: str, edges_per_node: int, variant: str, seed: int, n_samples: int
) -> Mapping[str, Any]:
    """Fit one table; without labels five more regimes are allowed than there are, at least 16."""
    n_variables = 10 if n_samples > 1000 else 4
    intervention = "atomic" if setting == "atomic" else "stochastic"
    data = simulate(
        n_variables,
        edges_per_node,
        mechanism,
        intervention,
        n_samples,
        random_state=seed,
        **arguments_of(setting, n_variables),
    )
    density = DENSITIES.get(mechanism, mechanism)
    model = LatentInterventionDAG(density, max_regimes=max(16, data.n_regimes + 5))
    return outcome(data, model.fit(data.X, **given(data, variant)))


def main() -> None:
    options = runner.arguments(__doc__, mechanisms="linear,nonlinear", variants="latent")
    seeds = [1000] if options.smoke else runner.seeds_of(options.seeds, range(3))
    cells = [
        {
            "setting": setting,
            "mechanism": mechanism,
            "edges_per_node": edges,
            "variant": variant,
            "seed": seed,
            "n_samples": 600 if options.smoke else 10_000,
        }
        for seed in seeds
        for variant in options.variants.split(",")
        for mechanism in (["linear"] if options.smoke else options.mechanisms.split(","))
        for edges in (1, 4)[: 1 if options.smoke else None]
        for setting in SETTINGS
    ]
    frame = runner.run(
        "settings", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh
    )
    print(f"\n{runner.machine()}; seeds {seeds[0]} to {seeds[-1]}; 10 variables, 10 000 rows")
    keys = ["variant", "mechanism", "edges_per_node", "setting"]
    columns = ["hamming", "true_edges", "ari", "target_f1", "regimes", "fit_seconds"]
    print(frame.groupby(keys, sort=False)[columns].agg(runner.mean_and_error).to_string())


if __name__ == "__main__":
    main()
