"""Time and memory of a fit against the number of variables, with and without labels.

``python -m experiments.scaling`` (linear, stochastic, one edge a node, one intervention a variable). Every size runs in
the same process from small to large, so that the peak of one is not the floor of the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments import runner
from experiments.outcome import given, outcome
from latentdo import LatentInterventionDAG, simulate


def cell(n_variables: int, variant: str, seed: int, n_samples: int) -> Mapping[str, Any]:
    """Fit one table, told the largest number of regimes."""
    data = simulate(n_variables, 1, n_samples=n_samples, random_state=seed)
    before = runner.peak_memory_mb()
    model = LatentInterventionDAG("linear", "perfect", max_regimes=data.n_regimes)
    if variant == "observational":
        model.set_params(max_regimes=1)
    return {**outcome(data, model.fit(data.X, **given(data, variant))), "memory_before_mb": before}


def main() -> None:
    options = runner.arguments(__doc__, sizes="5,10,15,20,30,40", variants="latent,unknown", n_samples=10_000)
    seeds = [1000] if options.smoke else runner.seeds_of(options.seeds, range(3))
    cells = [
        {
            "n_variables": int(size),
            "variant": variant,
            "seed": seed,
            "n_samples": 600 if options.smoke else options.n_samples,
        }
        for size in (["3", "5"] if options.smoke else options.sizes.split(","))
        for variant in options.variants.split(",")
        for seed in seeds
    ]
    frame = runner.run("scaling", cells, cell, n_jobs=1, store=options.store, fresh=options.fresh)
    print(f"\n{runner.machine()}; seeds {seeds[0]} to {seeds[-1]}; one process")
    columns = ["hamming", "fit_seconds", "memory_mb", "memory_before_mb"]
    print(
        frame.groupby(["n_variables", "variant"], sort=False)[columns].agg(runner.mean_and_error).to_string()
    )


if __name__ == "__main__":
    main()
