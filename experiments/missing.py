"""Tables with holes: a tenth of the cells missing, summed out by the model, or their rows left out.

``python -m experiments.missing --rows dcdi,linear-laplace --seeds 1000:1010`` fits every table three ways with
defaults and nothing known: complete, with ``missing="model"`` and with ``missing="drop"``. ``--patterns mcar,mar``
chooses why cells are missing: each by chance alone; or, in every second column, the more often the larger the column
before it is, which rows that are left out are then not like the others in. Seeds from 1000 up are for development.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from experiments import runner
from experiments.field import ROWS as FIELD
from experiments.field import SMALL, SURE
from experiments.tables import Table
from latentdo import LatentInterventionDAG, metrics, simulate
from latentdo.scm import Simulation

SHARE: Final = 0.1
"""Share of the cells that are missing."""

ROWS: Final = ("dcdi", "linear-laplace", "smooth-gaussian", "quiet-linear-laplace", "mixed")
PATTERNS: Final = ("mcar", "mar")
NONE: Final = "none"
WAYS: Final = ("complete", "model", "drop")


def table(row: str, seed: int, *, small: bool) -> Simulation:
    """One table: lines with Gaussian noise of the DCDI benchmark, columns of every kind, or a row of realistic ones."""
    if row == "dcdi":
        size: dict[str, Any] = (
            {"n_variables": 4, "n_samples": 600} if small else {"n_variables": 10, "n_samples": 5000}
        )
        return simulate(preset="dcdi", edges_per_node=1, mechanism="linear", random_state=seed, **size)
    if row == "mixed":
        return simulate(preset="mixed", random_state=seed, **({"n_samples": 600} if small else {}))
    return simulate(preset="field", random_state=seed, **FIELD[row] | (SMALL if small else {}))


def with_holes(X: pd.DataFrame, pattern: str, seed: int) -> pd.DataFrame:
    """The same table without some of its cells."""
    rng = np.random.default_rng([seed, 7])
    n, d = X.shape
    chance = np.full((n, d), SHARE)
    if pattern == "mar":
        rank = X.rank().to_numpy() / n
        chance[:, ::2] = 0.0
        chance[:, 1::2] = 2.0 * SHARE * 2.0 * rank[:, 0 : d - 1 : 2]
    return X.mask(rng.random((n, d)) < chance)


def cell(row: str, pattern: str, way: str, seed: int, small: bool) -> Mapping[str, Any]:
    """Fit one table one way; regimes are those of all rows, whichever were fitted."""
    data = table(row, seed, small=small)
    X = data.X if way == "complete" else with_holes(data.X, pattern, seed)
    model = LatentInterventionDAG(missing="error" if way == "complete" else way)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    seconds = time.process_time() - began
    regimes = model.set_params(missing="model").predict(X)
    targets = metrics.target_scores(data.targets.to_numpy(), model.targets_.to_numpy(), data.regimes, regimes)
    sure = np.asarray(model.edge_probabilities_) > SURE
    return {
        "hamming": metrics.hamming_distance(data.adjacency, model.adjacency_),
        "shd": metrics.shd(data.adjacency, model.adjacency_),
        "rows_used": len(model.regimes_),
        "regimes": model.n_regimes_,
        "regimes_right": np.unique(regimes).size == np.unique(data.regimes).size,
        "ari": metrics.adjusted_rand_index(data.regimes, regimes),
        "targets_wrong": targets.fn + targets.fp,
        "sure": int(sure.sum()),
        "sure_right": int(data.adjacency.to_numpy()[sure].sum()),
        "dependent": any("depends on other columns" in said for said in model.result_.warnings),
        "by_regime": any("missing more often in some regimes" in said for said in model.result_.warnings),
        "processor_seconds": round(seconds, 1),
    }


def summary(frame: pd.DataFrame) -> Table:
    """One line per row, pattern and way."""
    header = ("row", "missing", "way", "tables", "rows", "distance", "number right", "ARI", "targets wrong")
    result = Table(
        "missing", "A tenth of the cells missing; means over seeds.", (*header, "sure edges right", "seconds")
    )
    for (row, pattern, way), part in frame.groupby(["row", "pattern", "way"], sort=False):
        result.rows.append(
            (
                row,
                pattern,
                way,
                f"{len(part)}",
                f"{part['rows_used'].mean():.0f}",
                runner.mean_and_error(part["hamming"]) if len(part) > 1 else f"{part['hamming'].mean():.0f}",
                f"{part['regimes_right'].astype(bool).sum()}/{len(part)}",
                f"{part['ari'].mean():.2f}",
                f"{part['targets_wrong'].mean():.1f}",
                f"{part['sure_right'].sum()}/{part['sure'].sum()}",
                f"{part['processor_seconds'].mean():.0f}",
            )
        )
    return result


def main() -> None:
    options = runner.arguments(__doc__, rows=",".join(ROWS), patterns=",".join(PATTERNS), ways=",".join(WAYS))
    seeds = [1000] if options.smoke else runner.seeds_of(options.seeds, range(1000, 1003))
    rows = ["dcdi"] if options.smoke else options.rows.split(",")
    if unknown := sorted(set(rows) - set(ROWS)):
        raise SystemExit(f"--rows {unknown[0]}: there are {', '.join(ROWS)}")
    cells = [
        {"row": row, "pattern": pattern, "way": way, "seed": seed, "small": options.smoke}
        for row in rows
        for seed in seeds
        for way in options.ways.split(",")
        for pattern in (
            [NONE] if way == "complete" else options.patterns.split(",")[: 1 if options.smoke else None]
        )
    ]
    frame = runner.run(
        "missing", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh
    )
    print(f"\n{runner.machine()}; seeds {seeds[0]} to {seeds[-1]}\n\n{summary(frame).markdown()}")


if __name__ == "__main__":
    main()
