"""``latentdo simulate``: a table whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

from latentdo.cli.application import app, program_version
from latentdo.cli.console import print_json, say
from latentdo.cli.destination import destination
from latentdo.cli.options import ConfigFile, Flag

EXPOSURE: Final = "exposure"
"""Column of data.csv with what counts are in proportion to."""


@app.command
def simulate(
    *,
    out: Path,
    n_variables: int | None = None,
    edges_per_node: float | None = None,
    mechanism: Literal["linear", "nonlinear", "nonadditive", "smooth", "multiplicative"] = "linear",
    intervention: Literal["stochastic", "atomic", "imperfect", "soft"] = "stochastic",
    n_samples: int | None = None,
    preset: str = "paper",
    random_state: int = 0,
    n_regimes: int | None = None,
    targets_per_regime: int | None = None,
    separation: float | None = None,
    noise: str = "gaussian",
    noise_scale: Literal["constant", "growing"] = "constant",
    penetrance: float = 1.0,
    group_size: int = 1,
    mean_duration: float | None = None,
    violation: str | None = None,
    graph: Literal["erdos-renyi", "scale-free"] = "erdos-renyi",
    observational: bool = True,
    overwrite: Flag = False,
    json: Flag = False,
    config: ConfigFile = None,  # read by latentdo.cli.sources
) -> None:
    """Write a table with known truth: data.csv, adjacency.csv, targets.csv, regimes.csv and simulation.json.

    Where counts are in proportion to a known exposure of their row, such as a library size, it is one more column of
    data.csv, "exposure", and no variable: pass it to `latentdo fit` as --offset-column.

    Parameters
    ----------
    out
        Folder to write.
    n_variables
        Number of variables; the preset decides by default.
    edges_per_node
        Expected edges per variable.
    mechanism
        How causes act.
    intervention
        What an intervention does to its target.
    n_samples
        Number of rows.
    preset
        "paper", "paper-pairs", "paper-hetero", "released", "dcdi"; "field", which resembles real tables; or "mixed",
        "counts", "binary" or "screen", whose columns are of several kinds. simulation.json says which.
    random_state
        Seed.
    n_regimes
        Number of regimes, the observational one included; by default one intervention per variable, or as the
        preset says.
    targets_per_regime
        How many variables an intervention hits; the preset decides by default.
    separation
        Size of the shifts in standard deviations of the intervened noise; of the variable, with "field".
    noise
        Family of the noise.
    noise_scale
        Whether the noise grows with the signal; only with "field".
    penetrance
        Probability that a row responds to its intervention.
    group_size
        Rows that share a regime; regimes.csv, and data.csv as a column "group", then say which.
    mean_duration
        Rows are one series in which regimes take turns; a visit lasts this many rows on average. data.csv then has a
        column "time".
    violation
        One way in which real tables break the model, such as "rounding", "zeros" or "common-factor".
    graph
        Kind of random graph.
    observational
        Whether there are rows without an intervention.
    overwrite
        Replace a folder of an earlier simulation.
    json
        Print what was written as JSON on standard output.
    """
    settings: dict[str, Any] = {
        k: v for k, v in locals().items() if k not in ("out", "overwrite", "json", "config")
    }
    import pandas as pd

    from latentdo.outputs import fresh_folder, json_text
    from latentdo.scm import simulate as draw

    files = ("data.csv", "adjacency.csv", "targets.csv", "regimes.csv", "simulation.json")
    marker = "simulation.json"
    with destination(out, overwrite=overwrite, files=files, marker=marker):
        drawn = draw(**settings)
        tables = {
            "data.csv": drawn.X,
            "adjacency.csv": drawn.adjacency.rename_axis("cause"),
            "targets.csv": drawn.targets.rename_axis("regime"),
            "regimes.csv": pd.DataFrame({"row": range(len(drawn.regimes)), "regime": drawn.regimes}),
        }
        if penetrance < 1:
            tables["regimes.csv"]["assigned"] = drawn.assigned
        if group_size > 1:
            tables["regimes.csv"]["group"] = drawn.groups
            tables["data.csv"] = drawn.X.assign(group=drawn.groups)
        if mean_duration is not None:
            tables["data.csv"] = drawn.X.assign(time=range(len(drawn.X)))
        if drawn.exposure is not None:
            tables["data.csv"] = tables["data.csv"].assign(**{EXPOSURE: drawn.exposure})
        with fresh_folder(out, files, overwrite=overwrite, marker=marker) as place:
            for name, table in tables.items():
                with place(name) as path:
                    table.to_csv(path, index=table.index.name is not None)
            about: dict[str, Any] = {
                "program": "latentdo",
                "version": program_version(),
                "arguments": settings,
            }
            about["kinds"] = drawn.kinds
            with place(marker) as path:
                path.write_text(json_text(about), encoding="utf-8")
    n, d = drawn.X.shape
    if json:
        told = {"rows": n, "variables": d, "regimes": drawn.n_regimes, "kinds": drawn.kinds}
        print_json({"out": str(out), **told, "files": list(files)})
        return
    more = " --group-column group" if group_size > 1 else " --time-column time" if mean_duration else ""
    more += "" if drawn.exposure is None else f" --offset-column {EXPOSURE}"
    say(
        f"Wrote {n} rows of {d} variables under {drawn.n_regimes} regimes to {out}.\n"
        f"Next: latentdo fit {out / 'data.csv'} --out results{more}, then latentdo evaluate results --truth {out}"
    )
