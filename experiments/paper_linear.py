"""The published algorithm on the published linear data: Table 1, stochastic interventions, e = 1, all four columns.

``python -m experiments.paper_linear`` prints Hamming distances beside the paper's. As in the paper, xi and gamma are
chosen for every graph by the log-density of held-out rows, from ``--edge-log-odds`` and ``--target-log-odds``; cells
are stored as they finish, so the grid can grow. ``--fractions 0,0.2,0.4,0.6,0.8,1`` runs the semi-supervised curve of
appendix G instead (its own values are ``--edge-log-odds=-0.1 --target-log-odds=-0.01``).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from experiments import runner
from latentdo import metrics, simulate
from latentdo.data import Dataset
from latentdo.solvers.gradient import GradientConfiguration, solve

PUBLISHED = {"latent": (5.9, 6.2), "unknown": (3.4, 3.2), "known": (0.5, 1.3), "observational": (10.3, 7.8)}
"""Mean and standard deviation over ten graphs."""

TINY = {"first_steps": 20, "steps": 5, "max_subproblems": 3, "embedding_size": 8, "width": 8}


def cell(
    solver: str,
    variant: str,
    fraction: float,
    edge_log_odds: float,
    target_log_odds: float,
    seed: int,
    n_samples: int,
) -> Mapping[str, Any]:
    """One fit; ``fraction`` is the share of rows whose regime is shown to a semi-supervised one."""
    tiny = n_samples < 1000
    data = simulate(4 if tiny else 10, 1, n_samples=n_samples, random_state=seed)
    known: dict[str, Any] = {}
    if variant in ("unknown", "known"):
        known["regimes"] = data.regimes
    if variant == "known":
        known["targets"] = data.targets
    if variant == "semi-supervised":
        shown = np.random.default_rng(seed).random(len(data.regimes)) < fraction
        known["regimes"] = [int(k) if yes else None for k, yes in zip(data.regimes, shown, strict=True)]
    options: dict[str, Any] = {"max_regimes": 1 if variant == "observational" else 12}
    if tiny:
        options |= TINY
    if solver == "paper":
        options |= {"edge_log_odds": edge_log_odds, "target_log_odds": target_log_odds}
        configuration = GradientConfiguration.paper(**options)
    else:
        configuration = GradientConfiguration(**options)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)  # the tiny table is meant
        result = solve(Dataset.from_table(data.X, **known), configuration)
    return {
        "hamming": metrics.hamming_distance(data.adjacency, result.adjacency),
        "edges": int(result.model.topology.adjacency.sum()),
        "ari": metrics.adjusted_rand_index(data.regimes, result.regimes),
        "held_out": result.evidence_terms["held_out"],
        "status": result.status,
        "processor_seconds": round(time.process_time() - began, 1),
    }


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """One line a column of the paper's table; of the grid, the best held-out log-density counts."""
    best = frame.loc[
        frame.groupby(["solver", "variant", "fraction", "seed"], sort=False)["held_out"].idxmax()
    ]
    groups = best.groupby(["solver", "variant", "fraction"], sort=False)
    out = groups[["hamming", "edges", "ari", "processor_seconds"]].agg(runner.mean_and_error)
    out.insert(0, "graphs", groups.size())
    out.insert(2, "distances", groups["hamming"].agg(lambda values: " ".join(str(int(v)) for v in values)))
    out = out.reset_index()
    published = [PUBLISHED.get(variant, (np.nan, np.nan)) for variant in out["variant"]]
    out["paper"] = [f"{mean:.1f} ± {deviation / np.sqrt(10):.1f}" for mean, deviation in published]
    return out


def main() -> None:
    options = runner.arguments(
        __doc__,
        variants="known,unknown,observational,latent",
        solver="paper",
        edge_log_odds="-0.1,-0.01",
        target_log_odds="-0.1",
        fractions="",
    )
    runs = [(variant, 0.0) for variant in options.variants.split(",")]
    if options.fractions:
        runs = [("semi-supervised", float(fraction)) for fraction in options.fractions.split(",")]
    cells = [
        {
            "solver": options.solver,
            "variant": variant,
            "fraction": fraction,
            "edge_log_odds": float(xi),
            "target_log_odds": float(gamma),
            "seed": seed,
            "n_samples": 300 if options.smoke else 10_000,
        }
        for seed in ([1000] if options.smoke else runner.seeds_of(options.seeds, range(10)))
        for variant, fraction in runs
        for xi in options.edge_log_odds.split(",")[: 1 if options.smoke else None]
        for gamma in options.target_log_odds.split(",")
    ]
    frame = runner.run("paper_linear", cells, cell, n_jobs=options.n_jobs, store=options.store)
    print(f"\n{runner.machine()}; 10 variables, 10 000 rows, {frame['seed'].nunique()} graphs")
    print(table(frame).to_string(index=False))


if __name__ == "__main__":
    main()
