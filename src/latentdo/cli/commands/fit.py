"""``latentdo fit``: a table in, a folder of results out."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentdo.cli.application import app
from latentdo.cli.console import complain, print_json, print_result, say
from latentdo.cli.destination import Destination, destination
from latentdo.cli.inputs import diagnose_fit, fit_table, gather, gather_stream
from latentdo.cli.options import (
    CheckpointSeconds,
    ConfigFile,
    DaskAddress,
    EstimatorOptions,
    Flag,
    KnownOptions,
    ReadOptions,
)

if TYPE_CHECKING:
    import pandas as pd

    from latentdo.estimator import LatentInterventionDAG


@app.command
def fit(
    data: Path,
    /,
    *,
    out: Path,
    stream: Flag = False,
    diagnose: Flag = False,
    resume: Flag = False,
    checkpoint_seconds: CheckpointSeconds = 60.0,
    overwrite: Flag = False,
    json: Flag = False,
    dask: DaskAddress = None,
    config: ConfigFile = None,  # noqa: ARG001  (read by latentdo.cli.sources)
    known: KnownOptions = KnownOptions(),  # noqa: B008
    read: ReadOptions = ReadOptions(),  # noqa: B008
    model: EstimatorOptions = EstimatorOptions(),  # noqa: B008
) -> int:
    """Find graph, hidden interventions and targets in a table, and write a folder with a report.

    The shortest call is `latentdo fit data.csv --out results`. As needed, add:

    - `--transform log` for columns that are positive and skewed
    - `--drop id date` for columns that are not measurements
    - `--regime-column condition --observational control` for a column of conditions, empty where unknown
    - `--group-column plate` for rows that share their regime: a plate, a run, an animal
    - `--time-column time` for rows in order of time, whose neighbours tend to share their regime
    - `--knowledge known.toml`, or `--forbidden CAUSE EFFECT`, for arrows that you know to be absent or present
    - `--density nonlinear` if the scatter plots in the report show bends

    Ctrl-C ends the fit with the best it has found so far, and with exit code 130.

    Parameters
    ----------
    data
        Table with one row per sample and one numeric column per variable: CSV, TSV, Parquet, Feather or h5ad.
    out
        Folder for the results; open its report.html.
    stream
        The table is larger than memory: read a Parquet file, or a folder of them, part by part. Straight
        lines with Gaussian noise only; regimes.csv and the report's plots then show 20 000 rows drawn from all.
    diagnose
        Also simulate from the fitted model and fit again three times, to report what data of this size can show; takes
        about three times as long as the fit.
    resume
        Go on with an interrupted fit of the same command (solvers gradient and paper), and replace its results.
    overwrite
        Replace a folder of earlier results.
    json
        Print the result as JSON on standard output.
    """
    from latentdo.cluster import compute_on
    from latentdo.files import state_of
    from latentdo.ranks import Ranks, joined_ranks

    ranks = Ranks.started()
    keeps_states = model.keeps_states
    # of several processes the first owns the folder; it speaks and writes for all
    claim = (
        destination(out, overwrite=overwrite, resume=resume, state="fit" if keeps_states else None)
        if ranks.is_first
        else nullcontext()
    )
    with claim as work, compute_on(dask):
        X, arguments, rows = (gather_stream if stream else gather)(data, read, model, known)
        if dask is not None:
            arguments.setdefault("n_jobs", -1)
        if ranks.size > 1:
            arguments["n_jobs"] = 1  # the processes are here already
        if keeps_states:
            arguments["checkpoint"] = (
                state_of(out, "fit-checkpoint") if work is None else work.state("fit-checkpoint")
            )
            arguments["checkpoint_seconds"] = checkpoint_seconds
        elif resume and ranks.is_first:
            complain(
                "nothing to resume: the structural search keeps no states in between (only --solver gradient and paper "
                "do), so this fit starts from the beginning."
            )
        with joined_ranks(), warnings.catch_warnings():
            if work is None:
                warnings.simplefilter("ignore")
            estimator = fit_table(X, arguments, rows, silent=json or work is None)
        if work is None:
            return 0
        shown = estimator.sample_ if isinstance(X, Path) else X
        code = _write(estimator, arguments, shown, work, diagnose, json)
        work.keep = code != 0
        return code


def _write(
    estimator: LatentInterventionDAG,
    arguments: dict[str, Any],
    X: pd.DataFrame,
    work: Destination,
    diagnose: bool,
    json: bool,
) -> int:
    """Write and print what was found; the exit code."""
    result = estimator.result_
    code = 130 if result.status == "interrupted" else 0
    diagnosis = diagnose_fit(estimator, arguments, silent=json) if diagnose and code == 0 else None
    folder = work.write(result, X=X, diagnosis=diagnosis)
    if json:
        limits = {} if diagnosis is None else {"diagnosis": diagnosis.to_dict()}
        print_json({**result.summary(), **limits, "out": str(folder)})
        return code
    print_result(result)
    if diagnosis is not None:
        say(f"\nWhat data of this size can show\n{diagnosis}")
    say(f"\nOpen {folder / 'report.html'} in a browser.")
    return code
