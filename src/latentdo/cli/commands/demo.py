"""``latentdo demo``: the cytometry data that come with the package, from end to end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from latentdo.cli.application import app
from latentdo.cli.console import print_json, print_result, print_table, say
from latentdo.cli.destination import destination
from latentdo.cli.inputs import fit_table
from latentdo.cli.options import ConfigFile, EstimatorOptions, Flag

if TYPE_CHECKING:
    import pandas as pd


@app.command
def demo(
    *,
    out: Path = Path("latentdo-demo"),
    overwrite: Flag = False,
    json: Flag = False,
    config: ConfigFile = None,  # noqa: ARG001  (read by latentdo.cli.sources)
    model: EstimatorOptions = EstimatorOptions(),  # noqa: B008
) -> None:
    """Fit the cytometry data that come with the package (Sachs et al. 2005), without showing the labels.

    Parameters
    ----------
    out
        Folder for the results.
    overwrite
        Replace a folder of earlier results.
    json
        Print result and agreement as JSON on standard output.
    """
    from latentdo import metrics
    from latentdo.datasets import load_sachs, reference_graph

    data = load_sachs(subset="full")
    n, d = data.X.shape
    if not json:
        say(
            f"{n} cells, {d} proteins and lipids, nine experimental conditions. The fit sees only the numbers.\n"
        )
    # Linear, to be quick: "auto" would fit networks too, which are no closer to the literature (docs/results.md).
    # Gaussian for the same reason, unless the user chose a model or solver, which may have noise of its own.
    given = model.given()
    quick = {"noise": "gaussian"} if given.keys().isdisjoint(("density", "solver")) else {}
    options = {"transform": "log", "density": "linear", **quick, **given}
    with destination(out, overwrite=overwrite) as work:
        result = fit_table(data.X, options, {}, silent=json).result_
        folder = work.write(result, X=data.X)
    agreement = {
        "adjusted_rand_index": metrics.adjusted_rand_index(data.conditions, result.regimes),
        "normalized_mutual_information": metrics.normalized_mutual_information(
            data.conditions, result.regimes
        ),
    }
    empty = result.adjacency * 0
    rows = {
        f"{size} edges": {
            "found": _graph_row(truth, result.adjacency),
            "empty graph": _graph_row(truth, empty),
        }
        for size in ("17", "18", "20")
        for truth in [reference_graph(size)]
    }
    if json:
        print_json({**result.summary(), "agreement": agreement, "reference_graphs": rows, "out": str(folder)})
        return
    print_result(result)
    say(
        f"\nAgreement of the regimes with the nine conditions: adjusted Rand index "
        f"{agreement['adjusted_rand_index']:.2f} (1 = the same, 0 = chance), normalised mutual information "
        f"{agreement['normalized_mutual_information']:.2f}."
    )
    say("\nDistance to the graphs in the literature, none of which is certain to be the truth:")
    flat = [
        {"reference": size, "graph": name, **row} for size, pair in rows.items() for name, row in pair.items()
    ]
    print_table(flat)
    worse = [size for size, pair in rows.items() if pair["found"]["SHD"] >= pair["empty graph"]["SHD"]]
    if worse:
        say(
            f"By SHD the empty graph is as close or closer to the reference with {', '.join(worse)}: read these "
            "arrows as hypotheses, not as findings."
        )
    say(f"\nOpen {folder / 'report.html'} in a browser.")


def _graph_row(true: pd.DataFrame, found: pd.DataFrame) -> dict[str, float]:
    from latentdo import metrics

    counts = metrics.edge_counts(true, found)
    return {
        "SHD": metrics.shd(true, found),
        "Hamming": counts.hamming,
        **counts.as_dict(),
        "F1": counts.f1,
    }
