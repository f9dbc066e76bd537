"""Table 1 of the paper with ``auto``: 12 kinds of data, four columns, the empty graph and an oracle.

``python -m experiments.table1 --mechanisms linear`` runs the linear rows on seeds 0 to 9. Density and intervention
match the row, as in the paper; every other argument is at its default. ``oracle`` is the floor: our search given the
true regimes, the true targets *and* the true order of the variables, so that only absent and spurious edges are left
to get wrong. The latent cells of nonlinear rows are in the store of ``experiments.nonlinear_latent``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import networkx as nx
import pandas as pd

from experiments import runner
from experiments.outcome import given, outcome
from experiments.paper import VARIANTS, Row, published, rows
from latentdo import LatentInterventionDAG, simulate

COLUMNS = (*VARIANTS, "oracle")


def cell(
    intervention: str, mechanism: str, edges_per_node: int, variant: str, seed: int, n_samples: int
) -> Mapping[str, Any]:
    """Fit one table, told what the column says."""
    row = Row(intervention, mechanism, edges_per_node)
    n_variables = 10 if n_samples > 1000 else 4
    data = simulate(n_variables, edges_per_node, mechanism, intervention, n_samples, random_state=seed)
    model = LatentInterventionDAG(density=row.density, intervention=row.kind)
    if variant == "observational":
        model.set_params(max_regimes=1)
    if variant == "oracle":
        truth = nx.from_pandas_adjacency(data.adjacency, create_using=nx.DiGraph)
        model.set_params(tiers=[[name] for name in nx.topological_sort(truth)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # one regime for a mixture is meant
        model.fit(data.X, **given(data, variant))
    return outcome(data, model)


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """One line a row of the paper's table and column: ours beside the paper's."""
    keys = ["intervention", "mechanism", "edges_per_node", "variant"]
    groups = frame.groupby(keys, sort=False)
    out = groups[["hamming", "ari", "fit_seconds"]].agg(runner.mean_and_error)
    out.insert(0, "graphs", groups.size())
    out.insert(2, "empty", groups["true_edges"].mean())
    out = out.reset_index()
    out["paper"] = [
        published(Row(*line[:3]), line[3]) if line[3] in VARIANTS else float("nan")
        for line in out[keys].to_numpy()
    ]
    return out


def main() -> None:
    options = runner.arguments(__doc__, mechanisms="linear,nonlinear,nonadditive", variants=",".join(COLUMNS))
    seeds = [1000] if options.smoke else runner.seeds_of(options.seeds, range(10))
    chosen = rows(options.mechanisms)
    cells = [
        {**row._asdict(), "variant": variant, "seed": seed, "n_samples": 600 if options.smoke else 10_000}
        for seed in seeds
        for row in (chosen[:1] if options.smoke else chosen)
        for variant in options.variants.split(",")
        if row.mechanism == "linear" or variant != "latent"
    ]
    frame = runner.run("table1", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh)
    print(f"\n{runner.machine()}; seeds {seeds[0]} to {seeds[-1]}")
    print(table(frame).to_string(index=False))


if __name__ == "__main__":
    main()
