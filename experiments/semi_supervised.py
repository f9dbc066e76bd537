"""Semi-supervised curves (the paper's appendix G): distance against the share of rows whose regime is known.

``python -m experiments.semi_supervised`` runs the paper's two settings (linear, one edge a node) and a third in which
labels have more to say: overlapping regimes (``dcdi`` data, shifts of one standard deviation).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments import runner
from experiments.outcome import outcome
from latentdo import LatentInterventionDAG, metrics, simulate

SETTINGS = {
    "stochastic": {"preset": "paper", "intervention": "stochastic"},
    "imperfect": {"preset": "paper", "intervention": "imperfect"},
    "overlapping": {"preset": "dcdi", "intervention": "stochastic", "separation": 1.0},
}


def cell(setting: str, fraction: float, seed: int, n_variables: int, n_samples: int) -> Mapping[str, Any]:
    """Fit one table with a random share of its labels; assignments are judged on the rows without."""
    data = simulate(n_variables, 1, n_samples=n_samples, random_state=seed, **SETTINGS[setting])
    shown = np.random.default_rng(seed).random(len(data.regimes)) < fraction
    regimes = np.where(shown, data.regimes, -1)
    kind = "imperfect" if setting == "imperfect" else "perfect"
    model = LatentInterventionDAG("linear", kind, max_regimes=data.n_regimes + 5)
    model.fit(data.X, regimes=regimes if shown.any() else None)
    hidden = float("nan")
    if not shown.all():
        hidden = metrics.adjusted_rand_index(data.regimes[~shown], model.regimes_[~shown])
    return {**outcome(data, model), "ari_unlabelled": hidden}


def main() -> None:
    options = runner.arguments(__doc__, settings=",".join(SETTINGS), fractions="0,0.2,0.4,0.6,0.8,1")
    seeds = [1000] if options.smoke else runner.seeds_of(options.seeds, range(10))
    cells = [
        {
            "setting": setting,
            "fraction": float(fraction),
            "seed": seed,
            "n_variables": 4 if options.smoke else 10,
            "n_samples": 600 if options.smoke else 10_000,
        }
        for seed in seeds
        for setting in options.settings.split(",")[: 1 if options.smoke else None]
        for fraction in (["0.4", "1"] if options.smoke else options.fractions.split(","))
    ]
    frame = runner.run(
        "semi_supervised", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh
    )
    print(f"\n{runner.machine()}; seeds {seeds[0]} to {seeds[-1]}")
    columns = ["hamming", "ari_unlabelled", "regimes", "fit_seconds"]
    print(frame.groupby(["setting", "fraction"], sort=False)[columns].agg(runner.mean_and_error).to_string())


if __name__ == "__main__":
    main()
