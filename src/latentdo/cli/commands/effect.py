"""``latentdo effect``: what would happen if a variable were changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from latentdo.cli.application import app
from latentdo.cli.console import print_json, print_table, say
from latentdo.cli.options import ConfigFile, Flag
from latentdo.cli.tables import check_results, find_regime

Names = Annotated[list[str] | None, Parameter(consume_multiple=True, negative="", json_list=False)]


@app.command
def effect(
    results: Path,
    cause: str,
    /,
    *,
    on: Names = None,
    do: tuple[str, str] | None = None,
    shift: float | None = None,
    regime: str | None = None,
    level: float = 0.9,
    json: Flag = False,
    config: ConfigFile = None,  # noqa: ARG001  (read by latentdo.cli.sources)
) -> None:
    """Say what changing one variable does to the others, in the units of the table.

    For example `latentdo effect results PKA --on Erk --do 1 2`. In a folder of `latentdo bootstrap`, intervals are over
    the resamples, so that they take graph and regimes as uncertain; otherwise they hold given the graph, and exist for
    linear mechanisms only.

    Parameters
    ----------
    results
        Folder that `latentdo fit` or `latentdo bootstrap` wrote.
    cause
        The variable that is changed.
    on
        Where to look for the effect; every other variable by default.
    do
        Two values, numbers or levels: compare the worlds in which the cause is set to the first, and to the second.
    shift
        Compare the world as it is with one in which the cause is larger by so much. By default about one standard
        deviation; a binary cause is set to its first and to its second level.
    regime
        The regime to ask about; the reference by default.
    level
        Coverage of the intervals.
    json
        Print JSON on standard output.
    """
    from latentdo.bootstrap import BootstrapDAG
    from latentdo.estimator import LatentInterventionDAG

    check_results(results)
    resamples = results / "bootstrap.safetensors"
    source: Any
    if resamples.is_file():
        source = BootstrapDAG.load(resamples)
        names = source.estimator_.regime_names_
    else:
        source = LatentInterventionDAG.load(results / "model.safetensors")
        names = source.regime_names_
    at = names[0] if regime is None else find_regime(regime, names)
    values = None if do is None else (_value(do[0]), _value(do[1]))
    table = source.effect(cause, on, do=values, shift=shift, regime=at, level=level)
    rows = table.reset_index().to_dict("records")
    if json:
        print_json({"cause": cause, "regime": str(at), "effects": rows})
        return
    about = f"intervals of {rows[0]['interval']}" if "low" in table else rows[0]["interval"]
    say(f"{rows[0]['intervention']}, regime {at}; {about}")
    rows.sort(key=lambda row: -abs(row["change"]))
    print_table(
        [
            {
                "on": row["effect"],
                **({"of": row["quantity"]} if "quantity" in row else {}),
                "before": f"{row['before']:.4g}",
                "after": f"{row['after']:.4g}",
                "change": f"{row['change']:+.4g}",
                **(
                    {"times": f"{row['ratio']:.3g}" if row["ratio"] == row["ratio"] else ""}
                    if "ratio" in row
                    else {}
                ),
                "interval": f"{row['low']:+.4g} to {row['high']:+.4g}" if "low" in row else "none",
                "probability of any effect": f"{row['path_probability']:.2f}",
            }
            for row in rows
        ]
    )


def _value(text: str) -> float | str:
    """A number if it is one, else the name of a level."""
    try:
        return float(text)
    except ValueError:
        return text
