"""``latentdo bench``: how fast, and how right, on this machine."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from latentdo.cli.application import app
from latentdo.cli.console import print_json, print_table, say
from latentdo.cli.options import ConfigFile, EstimatorOptions, Flag
from latentdo.cli.panel import progress

Sizes = Annotated[list[int], Parameter(consume_multiple=True, negative="", json_list=False)]


@app.command
def bench(
    *,
    n_variables: Sizes = [5, 10],  # noqa: B006  (never changed; cyclopts shows it in the help)
    n_samples: Sizes = [1000, 5000],  # noqa: B006
    edges_per_node: float = 1.0,
    mechanism: Literal["linear", "nonlinear", "nonadditive"] = "linear",
    intervention_kind: Literal["stochastic", "atomic", "imperfect"] = "stochastic",
    n_repeats: int = 1,
    json: Flag = False,
    config: ConfigFile = None,  # noqa: ARG001  (read by latentdo.cli.sources)
    model: EstimatorOptions = EstimatorOptions(),  # noqa: B008
) -> None:
    """Simulate tables, fit them without labels, and compare with the truth: seconds, errors, regimes.

    The graphs are drawn as in the paper's benchmark. Compiling happens before the clock starts.

    Parameters
    ----------
    n_variables
        Numbers of variables to try.
    n_samples
        Numbers of rows to try.
    edges_per_node
        Expected edges per variable.
    mechanism
        How causes act; fits use --density, which is linear unless said otherwise.
    intervention_kind
        What an intervention does to its target.
    n_repeats
        Simulated tables a size, with seeds from --random-state on.
    json
        Print one record a fit as JSON on standard output.
    """
    from latentdo import metrics
    from latentdo.estimator import LatentInterventionDAG
    from latentdo.scm import simulate

    arguments = model.given()
    first = int(arguments.get("random_state", 0))
    sizes = [(d, n, first + b) for d in n_variables for n in n_samples for b in range(n_repeats)]
    if not sizes:
        raise ValueError("n_variables, n_samples and n_repeats must leave something to do.")
    LatentInterventionDAG(**arguments).fit(simulate(n_variables=3, n_samples=300, random_state=0).X)
    records: list[dict[str, Any]] = []
    with progress("Benchmark", silent=json) as step:
        for number, (d, n, seed) in enumerate(sizes):
            data = simulate(
                n_variables=d,
                edges_per_node=edges_per_node,
                mechanism=mechanism,
                intervention=intervention_kind,
                n_samples=n,
                random_state=seed,
            )
            # as many as there may be, so that the limit decides nothing
            own = {"max_regimes": max(16, d + 4)} | arguments
            began = time.perf_counter()
            estimator = LatentInterventionDAG(**own).fit(data.X)
            seconds = time.perf_counter() - began
            counts = metrics.edge_counts(data.adjacency, estimator.adjacency_)
            records.append(
                {
                    "variables": d,
                    "rows": len(data.X),
                    "seed": seed,
                    "seconds": seconds,
                    "hamming": int(counts.hamming),
                    "empty_graph": int(data.adjacency.to_numpy().sum()),
                    "regimes": estimator.n_regimes_,
                    "true_regimes": data.n_regimes,
                    "adjusted_rand_index": metrics.adjusted_rand_index(data.regimes, estimator.regimes_),
                }
            )
            if step is not None:
                step({"step": f"fit {number + 1} of {len(sizes)}", "regimes": estimator.n_regimes_})
    if json:
        print_json({"fits": records, "arguments": arguments})
        return
    print_table(
        [
            {
                "variables": record["variables"],
                "rows": record["rows"],
                "seconds": record["seconds"],
                "wrong entries": record["hamming"],
                "empty graph": record["empty_graph"],
                "regimes": f"{record['regimes']} of {record['true_regimes']}",
                "adjusted Rand index": record["adjusted_rand_index"],
            }
            for record in records
        ]
    )
    say(
        "Wrong entries: Hamming distance to the true graph (a reversed arrow counts twice), beside that of an empty "
        "graph. Adjusted Rand index: agreement of rows and regimes, 1 is perfect, 0 is chance."
    )
