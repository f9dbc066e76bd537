"""Twenty variables: the linear rows of Table 1 at twice the size, and regimes with several targets.

``python -m experiments.larger`` runs both. Several targets a regime (one to three, drawn) are harder than the paper's
one: nothing tells the search how many there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments import runner
from experiments.outcome import given, outcome
from latentdo import LatentInterventionDAG, simulate


def cell(
    n_variables: int,
    intervention: str,
    edges_per_node: int,
    max_targets: int,
    variant: str,
    seed: int,
    n_samples: int,
) -> Mapping[str, Any]:
    """Fit one table; without labels five more regimes are allowed than there are."""
    data = simulate(
        n_variables,
        edges_per_node,
        "linear",
        intervention,
        n_samples,
        random_state=seed,
        targets_per_regime=(1, max_targets),
    )
    kind = "imperfect" if intervention == "imperfect" else "perfect"
    model = LatentInterventionDAG("linear", kind, max_regimes=data.n_regimes + 5)
    return outcome(data, model.fit(data.X, **given(data, variant)))


def main() -> None:
    options = runner.arguments(__doc__, variants="latent,unknown,known")
    seeds = [1000] if options.smoke else runner.seeds_of(options.seeds, range(3))
    settings = [(5, 2)] if options.smoke else [(10, 3), (20, 1)]
    cells = [
        {
            "n_variables": n_variables,
            "intervention": intervention,
            "edges_per_node": edges,
            "max_targets": max_targets,
            "variant": variant,
            "seed": seed,
            "n_samples": 600 if options.smoke else 1000 * n_variables,
        }
        for seed in seeds
        for n_variables, max_targets in settings
        for intervention in ("stochastic", "imperfect")[: 1 if options.smoke else None]
        for edges in (1, 4)[: 1 if options.smoke else None]
        for variant in options.variants.split(",")
    ]
    frame = runner.run("larger", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh)
    print(f"\n{runner.machine()}; seeds {seeds[0]} to {seeds[-1]}")
    keys = ["n_variables", "max_targets", "intervention", "edges_per_node", "variant"]
    columns = ["hamming", "true_edges", "ari", "target_f1", "fit_seconds", "memory_mb"]
    print(frame.groupby(keys, sort=False)[columns].agg(runner.mean_and_error).to_string())


if __name__ == "__main__":
    main()
