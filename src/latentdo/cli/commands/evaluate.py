"""``latentdo evaluate``: results beside the truth."""

from __future__ import annotations

from pathlib import Path

from latentdo.cli.application import app
from latentdo.cli.console import print_json, print_table, say
from latentdo.cli.options import ConfigFile, Flag
from latentdo.cli.tables import check_results, compare_folders


@app.command
def evaluate(
    results: Path,
    /,
    *,
    truth: Path,
    json: Flag = False,
    config: ConfigFile = None,  # noqa: ARG001  (read by latentdo.cli.sources)
) -> None:
    """Compare a folder of results with the truth.

    Parameters
    ----------
    results
        Folder that `latentdo fit` wrote.
    truth
        Folder with adjacency.csv, regimes.csv, targets.csv, or some of them, as `latentdo simulate` writes them.
    json
        Print the numbers as JSON on standard output.
    """
    check_results(results)
    scores = compare_folders(results, truth)
    if json:
        print_json(scores)
        return
    if "graph" in scores:
        graph, empty = scores.pop("graph"), scores.pop("empty graph")
        print_table(
            [{"graph": key.replace("_", " "), "found": graph[key], "empty": empty[key]} for key in graph]
        )
    for title, row in scores.items():
        say("")
        print_table([{title: key.replace("_", " "), "found": value} for key, value in row.items()])
