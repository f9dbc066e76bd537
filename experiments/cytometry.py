"""Table 2 of the paper: flow cytometry (Sachs et al. 2005), six models of ours beside peers, three reference graphs.

``python -m experiments.cytometry`` fits perfect and imperfect linear, nonlinear and flow models without labels, and,
with ``--variants latent,unknown,known``, with the conditions and with their published targets. ``--methods all`` adds
the peers of ``make baselines``. The data are those of DCDI: the logarithms of 5846 cells under six conditions. Columns
of data and graph are matched by name, and the graphs are acyclic, unlike in the script published with the paper.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments import runner
from experiments.baselines.interface import Problem
from experiments.baselines.registry import SLOW, methods_for
from experiments.baselines.solve import Outcome, solve
from experiments.comparison import installed
from latentdo import LatentInterventionDAG, load_sachs, metrics

GRAPHS = ("17", "18", "20")
MODELS = [
    (intervention, density)
    for density in ("linear", "nonlinear", "flow")
    for intervention in ("perfect", "imperfect")
]


def against_graphs(found: pd.DataFrame) -> dict[str, Any]:
    """Distances to every reference graph; the number of its edges is the last part of a column's name."""
    out: dict[str, Any] = {"edges": int(found.to_numpy().sum())}
    for graph in GRAPHS:
        true = load_sachs("dcdi", graph).adjacency
        counts = metrics.edge_counts(true, found)
        out |= {f"hamming_{graph}": counts.hamming, f"shd_{graph}": metrics.shd(true, found)}
        out |= {f"{name}_{graph}": value for name, value in counts.as_dict().items()}
        out |= {f"f1_{graph}": round(counts.f1, 3)}
    return out


def cell(
    method: str, intervention: str, density: str, variant: str, n_samples: int, limit: float
) -> Mapping[str, Any]:
    """One model of ours (method "latentdo"), the empty graph, or one peer."""
    data = load_sachs("dcdi")
    rows = np.arange(len(data.X))
    if n_samples < len(rows):
        rows = np.random.default_rng(0).permutation(len(rows))[:n_samples]
    X, regimes = data.X.iloc[rows], data.regimes.iloc[rows]
    names = list(X.columns)
    if method == "empty graph":
        return {"status": "ok", **against_graphs(pd.DataFrame(0, names, names))}
    if method != "latentdo":
        outcome = _peer(method, X, regimes, data.targets, limit)
        known = {} if outcome.graph is None else against_graphs(pd.DataFrame(outcome.graph, names, names))
        used = {
            name: getattr(outcome, name) for name in ("message", "processor_seconds", "memory_mb", "versions")
        }
        return {"status": outcome.status, **known, **used}
    model = LatentInterventionDAG(density, intervention, observational=data.observational)
    given: dict[str, Any] = {} if variant == "latent" else {"regimes": regimes}
    if variant == "known":
        given["targets"] = data.targets
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # all 16 regimes are used up, as docs/results.md says
        model.fit(X, **given)
    return {
        "status": "ok",
        **against_graphs(model.adjacency_),
        "ari": metrics.adjusted_rand_index(regimes, model.regimes_),
        "regimes": model.n_regimes_,
        "fit_seconds": round(model.result_.seconds, 1),
    }


def _peer(
    method: str, X: pd.DataFrame, regimes: pd.Series[Any], targets: pd.DataFrame, limit: float
) -> Outcome:
    codes = targets.index.get_indexer(regimes)
    scaled = (X - X.mean()) / X.std()  # as in the simulations
    problem = Problem(scaled.to_numpy(), codes, targets.to_numpy(), codes == 0, len(targets))
    return solve(method, problem, seconds=limit)


def main() -> None:
    options = runner.arguments(__doc__, variants="latent", methods="", limit=180.0)
    chosen = [name for name in methods_for("paper") if name not in SLOW] if options.methods == "all" else []
    chosen = chosen or [name for name in options.methods.split(",") if name]
    runs = [("empty graph", "", "", "")]
    runs += [("latentdo", *model, variant) for variant in options.variants.split(",") for model in MODELS]
    runs += [(name, "", "", "") for name in installed(chosen)]
    if options.smoke:
        runs = [*runs[:2], ("linear-search-targets", "", "", "")]
    names = ("method", "intervention", "density", "variant")
    limits = {"n_samples": 400 if options.smoke else 5846, "limit": options.limit}
    cells = [{**dict(zip(names, run, strict=True)), **limits} for run in runs]
    frame = runner.run(
        "cytometry", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh
    )
    columns = ["edges", "hamming_17", "shd_17", "tp_17", "fn_17", "fp_17", "rev_17", "f1_17", "seconds"]
    print(f"\n{runner.machine()}; 17-edge graph; the store has the other two")
    print(frame[[*names, *columns]].to_string(index=False))


if __name__ == "__main__":
    main()
