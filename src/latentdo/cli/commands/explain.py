"""``latentdo explain``: why rows belong to their regimes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from latentdo.cli.application import app
from latentdo.cli.console import print_json, print_table, say
from latentdo.cli.inputs import gather_rows
from latentdo.cli.options import ConfigFile, Flag, ReadOptions, RowOptions
from latentdo.cli.tables import check_results, find_regime

Rows = Annotated[list[str], Parameter(consume_multiple=True, negative="", json_list=False)]


@app.command
def explain(
    results: Path,
    /,
    *,
    data: Path,
    rows: Rows,
    against: str | None = None,
    json: Flag = False,
    config: ConfigFile = None,  # noqa: ARG001  (read by latentdo.cli.sources)
    read: ReadOptions = ReadOptions(),  # noqa: B008
    belong: RowOptions = RowOptions(),  # noqa: B008
) -> None:
    """Say why rows belong to their regimes, variable by variable, the weightiest first.

    For example `latentdo explain results --data data.csv --rows 17 42`. A log ratio above 0 speaks for the row's
    regime, and they add up to the log odds. *Expected* is what the variable's usual mechanism makes of the row's own
    causes, with the range of 90 %.

    Parameters
    ----------
    results
        Folder that `latentdo fit` wrote.
    data
        A table with the same variables; other columns are left out.
    rows
        Numbers of the rows, counted from 0, or their names in an .h5ad file.
    against
        The regime to compare with; by default the reference, and for rows of the reference the likeliest other one.
    json
        Print JSON on standard output.
    """
    from latentdo.estimator import LatentInterventionDAG
    from latentdo.report.messages import chance

    check_results(results)
    estimator = LatentInterventionDAG.load(results / "model.safetensors")
    # The rows asked about have to be complete, which the estimator checks; what others lack is no matter.
    lenient = replace(read, missing="model") if read.missing == "error" else read
    X, known = gather_rows(data, estimator.result_.columns, lenient, belong)
    names = {str(name): name for name in X.index}
    absent = [row for row in rows if row not in names]
    if absent:
        raise ValueError(
            f"{data.name} has no row {', '.join(absent)}; rows are {X.index[0]} to {X.index[-1]}"
            f"{', counted from 0' if X.index.name is None else ''}."
        )
    other = None if against is None else find_regime(against, estimator.regime_names_)
    asked = [names[row] for row in rows]
    table = estimator.explain(X, rows=asked, against=other, **known)
    if json:
        print_json({"rows": table.to_dict("records")})
        return
    for name, part in table.groupby("row", sort=False):
        first = part.iloc[0]
        say(
            f"Row {name}: regime {first['regime']} ({chance(first['probability'])}), against regime {first['against']}"
        )
        print_table(
            [
                {
                    "variable": line["variable"],
                    "log ratio": line["log_ratio"],
                    "value": _shown(line["value"], 4),
                    "expected": _expected(line),
                    "": " and ".join(
                        word
                        for word, there in (
                            ("target", line["target"]),
                            ("downstream", line["downstream"]),
                            ("unusual", line["deviates"]),
                        )
                        if there
                    ),
                }
                for line in part.to_dict("records")
            ]
        )
        say("")


def _shown(value: Any, digits: int = 3) -> str:
    """A number, the name of a level, or a dash where there is neither."""
    if isinstance(value, str):
        return value
    return f"{value:.{digits}g}" if math.isfinite(value) else "-"


def _expected(line: dict[Any, Any]) -> str:
    """What is usual, and the range of 90 % of what is a number."""
    usual = _shown(line["expected"])
    ends = (_shown(line["expected_low"]), _shown(line["expected_high"]))
    return usual if "-" in ends else f"{usual} ({ends[0]} to {ends[1]})"
