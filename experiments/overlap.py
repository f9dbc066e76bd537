"""Overlapping regimes: distance and assignments against the separation of the interventions.

``python -m experiments.overlap`` compares, on ``dcdi`` data, the latent fit with a Gaussian mixture followed by the
search with those clusters as labels, with the search given the true regimes, and with the observational fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.mixture import GaussianMixture

from experiments import runner
from latentdo import LatentInterventionDAG, metrics, simulate


def cell(n_variables: int, separation: float, seed: int, n_samples: int) -> Mapping[str, Any]:
    """Fit one table four ways."""
    data = simulate(
        n_variables, 1, n_samples=n_samples, preset="dcdi", separation=separation, random_state=seed
    )

    def fit(max_regimes: int, regimes: Any = None) -> LatentInterventionDAG:
        model = LatentInterventionDAG(density="linear", intervention="perfect", max_regimes=max_regimes)
        return model.set_params(observational=None).fit(data.X, regimes=regimes)

    latent = fit(data.n_regimes + 5)
    clusters = GaussianMixture(data.n_regimes, n_init=4, random_state=0).fit_predict(data.X)
    ceiling = data.bayes_responsibilities().argmax(axis=1)
    outcome: dict[str, Any] = {
        "latent": metrics.hamming_distance(data.adjacency, latent.adjacency_),
        "two_step": metrics.hamming_distance(
            data.adjacency, fit(data.n_regimes + 1, clusters + 1).adjacency_
        ),
        "oracle": metrics.hamming_distance(
            data.adjacency, fit(data.n_regimes + 1, data.regimes + 1).adjacency_
        ),
        "observational": metrics.hamming_distance(data.adjacency, fit(1).adjacency_),
    }
    return outcome | {
        "ari": metrics.adjusted_rand_index(data.regimes, latent.regimes_),
        "ari_two_step": metrics.adjusted_rand_index(data.regimes, clusters),
        "ari_ceiling": metrics.adjusted_rand_index(data.regimes, ceiling),
        "regimes": latent.n_regimes_,
        "fit_seconds": latent.result_.seconds,
    }


def main() -> None:
    options = runner.arguments(__doc__, n_variables=10, separations="0.5,1,2,3,4,6,8")
    seeds = [1000] if options.smoke else runner.seeds_of(options.seeds, range(10))
    cells = [
        {
            "n_variables": 4 if options.smoke else options.n_variables,
            "separation": separation,
            "seed": seed,
            "n_samples": 2000 if options.smoke else 1000 * options.n_variables,
        }
        for separation in ((2.0, 3.0) if options.smoke else map(float, options.separations.split(",")))
        for seed in seeds
    ]
    frame = runner.run(
        "overlap", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh
    )
    columns = ["latent", "two_step", "oracle", "observational", "ari", "ari_two_step", "ari_ceiling"]
    print(f"\n{runner.machine()}; seeds {seeds[0]} to {seeds[-1]}, d={cells[0]['n_variables']}")
    print(frame.groupby("separation")[[*columns, "fit_seconds"]].agg(runner.mean_and_error).to_string())


if __name__ == "__main__":
    main()
