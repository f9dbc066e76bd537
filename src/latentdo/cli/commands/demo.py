"""``latentdo demo``: a service whose truth is known, then real cells whose truth nobody knows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from latentdo.cli.application import app
from latentdo.cli.console import print_json, print_result, print_table, say
from latentdo.cli.destination import destination
from latentdo.cli.inputs import fit_table
from latentdo.cli.options import ConfigFile, EstimatorOptions, Flag

if TYPE_CHECKING:
    import pandas as pd

    from latentdo.result import FitResult
    from latentdo.scm import Simulation

# To be quick: "auto" would fit curves and networks too, which are no closer to the literature on these cells
# (docs/results.md), and more starts, regimes and half-samples take minutes.
_QUICK: Final = {"density": "linear", "noise": "gaussian"}
_QUICKER: Final = {"transform": "log", "n_init": 1, "max_regimes": 6, "resamples": 0}
_CELLS: Final = 2000


@app.command
def demo(
    *,
    out: Path = Path("latentdo-demo"),
    overwrite: Flag = False,
    json: Flag = False,
    config: ConfigFile = None,  # noqa: ARG001  (read by latentdo.cli.sources)
    model: EstimatorOptions = EstimatorOptions(),  # noqa: B008
) -> None:
    """Find hidden incidents in a simulated service, where the truth is known; then look at real cells, where it is not.

    The cells are cytometry data that come with the package (Sachs et al. 2005): a quick look at 2000 of them, without
    the labels. Takes less than a minute.

    Parameters
    ----------
    out
        Folder for the results about the service; those about the cells go to OUT-cytometry.
    overwrite
        Replace folders of earlier results.
    json
        Print results and agreement as JSON on standard output.
    """
    cells_out = out.with_name(f"{out.name}-cytometry")
    with destination(out, overwrite=overwrite) as work, destination(cells_out, overwrite=overwrite) as more:
        service = _service(model, silent=json)
        folder = work.write(service["result"], X=service["X"], title=service["title"], story=service["story"])
        if not json:
            say(f"\nOpen {folder / 'report.html'} in a browser.\n")
        cells = _cells(model, silent=json)
        place = more.write(cells["result"], X=cells["X"], title=cells["title"], story=cells["story"])
    if json:
        parts = {"service": (service, folder), "cytometry": (cells, place)}
        print_json(
            {
                name: {**part["result"].summary(), **part["truth"], "out": str(at)}
                for name, (part, at) in parts.items()
            }
        )
    else:
        say(f"\nOpen {place / 'report.html'} in a browser.")


def _service(model: EstimatorOptions, *, silent: bool) -> dict[str, Any]:
    """Snapshots of a service: fitted, and compared with the truth."""
    from latentdo.scm import simulate_snapshots

    data = simulate_snapshots(random_state=1)
    n, d = data.X.shape
    title = "A service with hidden incidents (simulated)"
    about = (
        f"{n} snapshots of a web service, {d} metrics. In some of them the cache was cold, a neighbour kept the disk "
        "busy, or a deployment cost processor time. This was not recorded: the fit sees only the numbers."
    )
    if not silent:
        say(f"1. {title}\n{about}\n")
    result = fit_table(data.X, _options(model, {}), {}, silent=silent).result_
    truth, said = _against_the_truth(data, result)
    if not silent:
        print_result(result)
        say(f"\n{said}")
    return {"X": data.X, "result": result, "title": title, "story": (about, said), "truth": truth}


def _against_the_truth(data: Simulation, result: FitResult) -> tuple[dict[str, Any], str]:
    """What was right, in numbers and in words."""
    from latentdo import metrics
    from latentdo.report.messages import percent
    from latentdo.scm import INCIDENTS

    wrong = int(metrics.shd(data.adjacency, result.adjacency))
    matching = metrics.match_regimes(data.regimes, result.regimes)
    share = sum(rows for *_, rows in matching.pairs) / len(data.regimes)
    hits = {
        frozenset(result.columns[j] for j in result.ranked_targets(k)) for k in range(1, result.n_regimes)
    }
    found = [name for name, target in INCIDENTS.items() if frozenset([target]) in hits]
    truth = {"wrong_edges": wrong, "incidents_found": found, "rows_right": share}
    graph = (
        "every arrow is right, and none is missing" if wrong == 0 else f"{wrong} arrows are wrong or missing"
    )
    return truth, (
        f"The truth is known here: {graph}; {len(found)} of {len(INCIDENTS)} kinds of incidents are found with the "
        f"metric that broke ({', '.join(found) or 'none'}); {percent(share)} of the rows are in the right one."
    )


def _cells(model: EstimatorOptions, *, silent: bool) -> dict[str, Any]:
    """Cells under nine conditions: fitted without them, and compared with them and with the literature."""
    import numpy as np

    from latentdo import metrics
    from latentdo.datasets import load_sachs

    data = load_sachs(subset="full")
    rows = np.sort(np.random.default_rng(0).permutation(len(data.X))[:_CELLS])
    X = data.X.iloc[rows]
    title = "Cytometry: real cells (Sachs et al. 2005)"
    about = (
        f"{len(X)} of {len(data.X)} cells, {X.shape[1]} proteins and lipids, nine experimental conditions, which the "
        "fit does not see. Settings for speed: straight lines, one start, at most six regimes unless you say otherwise."
    )
    if not silent:
        say(f"2. {title}\n{about}\n")
    result = fit_table(X, _options(model, _QUICKER), {}, silent=silent).result_
    conditions = data.conditions.iloc[rows]
    agreement = {
        "adjusted_rand_index": metrics.adjusted_rand_index(conditions, result.regimes),
        "normalized_mutual_information": metrics.normalized_mutual_information(conditions, result.regimes),
    }
    distances = _distances(result)
    worse = [s for s, pair in distances.items() if pair["found"]["SHD"] >= pair["empty graph"]["SHD"]]
    said = (
        f"Regimes and conditions agree with an adjusted Rand index of {agreement['adjusted_rand_index']:.2f} (1 = the "
        "same, 0 = chance). No graph in the literature is certain to be the truth."
    )
    if worse:
        said += (
            f" By SHD the empty graph is as close or closer to the reference with {', '.join(worse)}: read these "
            "arrows as hypotheses, not as findings."
        )
    if not silent:
        print_result(result)
        say("\nDistance to the graphs in the literature:")
        print_table(
            [
                {"reference": size, "graph": name, **row}
                for size, pair in distances.items()
                for name, row in pair.items()
            ]
        )
        say(f"\n{said}")
    truth = {"agreement": agreement, "reference_graphs": distances}
    return {"X": X, "result": result, "title": title, "story": (about, said), "truth": truth}


def _options(model: EstimatorOptions, quicker: dict[str, Any]) -> dict[str, Any]:
    """What is fitted: quick unless the user chose a model or solver, which may have noise of its own."""
    given = model.given()
    quick = _QUICK if given.keys().isdisjoint(("density", "solver")) else {"density": _QUICK["density"]}
    return {**quick, **quicker, **given}


def _distances(result: FitResult) -> dict[str, dict[str, dict[str, float]]]:
    from latentdo.datasets import reference_graph

    return {
        f"{size} edges": {
            "found": _graph_row(truth, result.adjacency),
            "empty graph": _graph_row(truth, result.adjacency * 0),
        }
        for size in ("17", "18", "20")
        for truth in [reference_graph(size)]
    }


def _graph_row(true: pd.DataFrame, found: pd.DataFrame) -> dict[str, float]:
    from latentdo import metrics

    counts = metrics.edge_counts(true, found)
    return {
        "SHD": metrics.shd(true, found),
        "Hamming": counts.hamming,
        **counts.as_dict(),
        "F1": counts.f1,
    }
