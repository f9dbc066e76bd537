"""Measures of acyclicity in whole fits: trace of the exponential, log-determinant (DAGMA), spectral radius (SDCD).

``python -m experiments.gradient_acyclicity`` fits linear data with true regimes and unknown targets by one start of the
gradient solver, once as training leaves the graph (``polish`` false) and once with the search that follows. The
measure is not an argument of the estimator, so this is the one experiment that reaches below the public interface.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any

import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from experiments import runner
from latentdo import metrics, simulate
from latentdo.data import Dataset
from latentdo.solvers.gradient import GradientConfiguration, solve
from latentdo.solvers.gradient.acyclicity import MEASURES


def cell(measure: str, edges_per_node: float, polish: bool, seed: int, n_samples: int) -> Mapping[str, Any]:
    """One fit under one measure."""
    data = simulate(10 if n_samples > 1000 else 3, edges_per_node, n_samples=n_samples, random_state=seed)
    tiny: dict[str, Any] = {} if n_samples > 1000 else {"first_steps": 20, "max_subproblems": 3}
    configuration = GradientConfiguration(acyclicity=measure, prune=polish, **tiny)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = solve(Dataset.from_table(data.X, regimes=data.regimes), configuration)
    return {
        "hamming": metrics.hamming_distance(data.adjacency, result.adjacency),
        "steps": int(result.history[-1]["step"]),
        "evidence": result.evidence,
        "status": result.status,
        "processor_seconds": round(time.process_time() - began, 2),
    }


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """One line a measure, density of edges and stage."""
    groups = frame.groupby(["edges_per_node", "polish", "measure"], sort=False)
    out = groups[["hamming", "steps", "processor_seconds"]].agg(runner.mean_and_error)
    out.insert(0, "graphs", groups.size())
    out["acyclic"] = groups["status"].agg(lambda values: f"{(values == 'converged').sum()}")
    return out.reset_index()


def main() -> None:
    options = runner.arguments(__doc__)
    seeds = [1000] if options.smoke else runner.seeds_of(options.seeds, range(1100, 1105))
    cells = [
        {
            "measure": measure,
            "edges_per_node": edges,
            "polish": polish,
            "seed": seed,
            "n_samples": 300 if options.smoke else 10_000,
        }
        for edges in ((1,) if options.smoke else (1, 4))
        for polish in (False, True)
        for measure in MEASURES
        for seed in seeds
    ]
    frame = runner.run(
        "gradient_acyclicity", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh
    )
    print(f"\n{runner.machine()}; 10 variables, 10 000 rows, seeds {options.seeds or '1100:1105'}")
    print(table(frame).to_string(index=False))


if __name__ == "__main__":
    main()
