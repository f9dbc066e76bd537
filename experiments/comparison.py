"""Peers on the data of Table 1: the same tables as ours, so that differences are paired over graphs.

``python -m experiments.comparison --seeds 0:3`` runs every method that is not slow; ``--methods dcdi,sdcd`` chooses.
Each is told what it assumes (``experiments/baselines/registry.py``), no more. A method that fails or needs more than
``--limit`` seconds of one core leaves a row that says so. Run ``make baselines`` first: methods without an environment
are named and skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments import runner
from experiments.baselines.interface import Problem
from experiments.baselines.registry import METHODS, SLOW, methods_for
from experiments.baselines.solve import Outcome, favourable, interpreter, solve
from experiments.paper import Row, rows
from latentdo import metrics, simulate


def score(truth: pd.DataFrame, outcome: Outcome) -> dict[str, Any]:
    """Distances, as found and with undirected edges turned the right way, and what the process used."""
    true = truth.to_numpy()
    found = outcome.graph
    known = found is not None
    return {
        "status": outcome.status,
        "hamming": metrics.hamming_distance(true, found) if known else np.nan,
        "hamming_favourable": metrics.hamming_distance(true, favourable(true, found)) if known else np.nan,
        "shd": metrics.shd(true, found) if known else np.nan,
        "true_edges": int(true.sum()),
        "edges": int(found.sum()) if known else np.nan,
        "undirected": int((found & found.T).sum()) // 2 if known else np.nan,
        "fit_seconds": outcome.fit_seconds,
        "processor_seconds": outcome.processor_seconds,
        "memory_mb": outcome.memory_mb,
        "versions": outcome.versions,
        "message": outcome.message,
    }


def cell(
    intervention: str,
    mechanism: str,
    edges_per_node: int,
    method: str,
    seed: int,
    n_samples: int,
    limit: float,
) -> Mapping[str, Any]:
    """One method on one table."""
    row = Row(intervention, mechanism, edges_per_node)
    n_variables = 10 if n_samples > 1000 else 4
    data = simulate(n_variables, edges_per_node, mechanism, intervention, n_samples, random_state=seed)
    problem = Problem(
        X=data.X.to_numpy(),
        regimes=np.asarray(data.regimes),
        targets=data.targets.to_numpy(),
        observational=np.asarray(data.regimes) == 0,
        n_regimes=data.n_regimes,
        density=row.density,
        intervention=row.kind,
    )
    return score(data.adjacency, solve(method, problem, seconds=limit))


def installed(methods: list[str]) -> list[str]:
    """Drop methods whose environment was not made, and say so."""
    missing = [name for name in methods if not interpreter(METHODS[name].environment).exists()]
    if missing:
        print(f"skipped, because `make baselines` was not run: {', '.join(missing)}")
    return [name for name in methods if name not in missing]


def main() -> None:
    options = runner.arguments(
        __doc__,
        methods=",".join(name for name in methods_for("paper") if name not in SLOW),
        mechanisms="linear,nonlinear,nonadditive",
        interventions="stochastic,imperfect",
        edges="1,4",
        limit=180.0,
    )
    methods = ["linear-search", "gmm-search"] if options.smoke else installed(options.methods.split(","))
    seeds = [1000] if options.smoke else runner.seeds_of(options.seeds, range(10))
    chosen = rows(options.mechanisms, options.interventions, options.edges)
    cells = [
        {
            **row._asdict(),
            "method": method,
            "seed": seed,
            "n_samples": 600 if options.smoke else 10_000,
            "limit": options.limit,
        }
        for seed in seeds
        for row in (chosen[:1] if options.smoke else chosen)
        for method in methods
    ]
    frame = runner.run(
        "comparison", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh
    )
    print(f"\n{runner.machine()}; seeds {seeds[0]} to {seeds[-1]}")
    print(pd.crosstab(frame["method"], frame["status"]).to_string())
    keys = ["mechanism", "intervention", "edges_per_node"]
    print(frame.pivot_table("hamming", "method", keys, aggfunc="mean").round(1).to_string())


if __name__ == "__main__":
    main()
