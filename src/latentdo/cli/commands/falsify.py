"""``latentdo falsify``: what the rows say against a fit."""

from __future__ import annotations

from pathlib import Path

from latentdo.cli.application import app
from latentdo.cli.console import print_json, print_table, say
from latentdo.cli.options import ConfigFile, Flag, ReadOptions
from latentdo.cli.panel import progress
from latentdo.cli.tables import check_results


@app.command
def falsify(
    results: Path,
    /,
    *,
    data: Path,
    refits: bool = True,
    random_state: int = 0,
    json: Flag = False,
    config: ConfigFile = None,  # noqa: ARG001  (read by latentdo.cli.sources)
    read: ReadOptions = ReadOptions(),  # noqa: B008
) -> None:
    """Say what the rows have against a fit: one line a check, with the remedy where it failed.

    For example `latentdo falsify results --data data.csv`. Cheap checks have run at the end of the fit; this adds those
    that fit again, to halves of the rows, to some of the variables and without a regime: some six fits.

    Parameters
    ----------
    results
        Folder that `latentdo fit` wrote.
    data
        The table that was fitted.
    refits
        Whether to run the checks that fit again.
    random_state
        Seed of the parts that are fitted again.
    json
        Print JSON on standard output.
    """
    from latentdo.estimator import LatentInterventionDAG
    from latentdo.readers.table import ReadingOptions, read_labelled

    check_results(results)
    estimator = LatentInterventionDAG.load(results / "model.safetensors")
    given = read.arguments() | {"columns": list(estimator.result_.columns), "drop": None}
    X, _ = read_labelled(data, {}, ReadingOptions(**given))
    with progress("Looking for what speaks against the fit", silent=json) as step:
        table = estimator.falsify(X, refits=refits, random_state=random_state, progress=step)
    rows = table.reset_index().to_dict("records")
    if json:
        print_json({"checks": rows})
        return
    print_table(
        [
            {
                "check": row["check"],
                "statistic": f"{row['statistic']:.3g}",
                "p": "-"
                if row["p_value"] is None or row["p_value"] != row["p_value"]
                else f"{row['p_value']:.2g}",
                "verdict": "failed" if row["failed"] else "passed",
            }
            for row in rows
        ]
    )
    failed = [row["words"] for row in rows if row["failed"]]
    say("\n" + ("\n".join(f"- {words}" for words in failed) if failed else "Nothing speaks against the fit."))
