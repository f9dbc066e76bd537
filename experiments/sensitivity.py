"""How much the answer depends on what a user can turn: priors, the largest number of regimes, starts.

``python -m experiments.sensitivity`` changes one argument at a time, on linear data without labels from development
seeds (1000 up), because seeds 0 to 9 are not for looking at what helps.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from experiments import runner
from experiments.outcome import outcome
from latentdo import LatentInterventionDAG, simulate

ARGUMENTS: dict[str, tuple[float, ...]] = {
    "edge_prior": (-10.0, -5.0, -2.0, 0.0, 2.0),
    "target_prior": (-20.0, -10.0, -5.0, -2.0, 0.0),
    "max_regimes": (8, 11, 12, 16, 24),
    "n_init": (1, 2, 4),
    "random_state": (0, 1, 2),
}
"""Values beside the defaults; with eight regimes allowed, three of the eleven cannot be found."""


def cell(argument: str, value: float, edges_per_node: int, seed: int, n_samples: int) -> Mapping[str, Any]:
    """One fit with one argument changed ("default" changes none)."""
    data = simulate(10 if n_samples > 1000 else 4, edges_per_node, n_samples=n_samples, random_state=seed)
    model = LatentInterventionDAG("linear", "perfect")
    if argument != "default":
        model.set_params(**{argument: value})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a limit that is too small is meant
        model.fit(data.X)
    return outcome(data, model)


def main() -> None:
    options = runner.arguments(__doc__)
    seeds = [1000] if options.smoke else runner.seeds_of(options.seeds, range(1000, 1002))
    settings = [("default", 0.0)] + [(name, value) for name, values in ARGUMENTS.items() for value in values]
    cells = [
        {
            "argument": argument,
            "value": value,
            "edges_per_node": edges,
            "seed": seed,
            "n_samples": 600 if options.smoke else 10_000,
        }
        for seed in seeds
        for argument, value in (settings[:2] if options.smoke else settings)
        for edges in ((1,) if options.smoke else (1, 4))
    ]
    frame = runner.run(
        "sensitivity", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh
    )
    print(f"\n{runner.machine()}; seeds {seeds[0]} to {seeds[-1]}")
    keys = ["argument", "value", "edges_per_node"]
    print(
        frame.groupby(keys, sort=False)[["hamming", "ari", "regimes"]].agg(runner.mean_and_error).to_string()
    )


if __name__ == "__main__":
    main()
