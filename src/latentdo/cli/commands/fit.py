"""``latentdo fit``: a table in, a folder of results out."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentdo.cli.application import app
from latentdo.cli.console import complain, print_json, print_result, say
from latentdo.cli.inputs import diagnose_fit, fit_table, gather, gather_stream
from latentdo.cli.options import ConfigFile, DaskAddress, EstimatorOptions, Flag, KnownOptions, ReadOptions
from latentdo.cli.unfinished import Unfinished, clear_the_way, place_for, unfinished

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
    overwrite: Flag = False,
    json: Flag = False,
    dask: DaskAddress = None,
    config: ConfigFile = None,  # noqa: ARG001  (read by latentdo.cli.sources)
    known: KnownOptions = KnownOptions(),  # noqa: B008
    read: ReadOptions = ReadOptions(),  # noqa: B008
    model: EstimatorOptions = EstimatorOptions(),  # noqa: B008
) -> int:
    """Find graph, hidden interventions and targets in a table, and write a folder with a report.

    The least is `latentdo fit data.csv --out results`. As needed, add:

    - `--transform log` for columns that are positive and skewed
    - `--drop id date` for columns that are no measurements
    - `--regime-column condition --observational control` for a column of conditions, empty where unknown
    - `--knowledge known.toml`, or `--forbidden CAUSE EFFECT`, for arrows that you know to be absent or present
    - `--density nonlinear` if the scatter plots in the report show bends

    Ctrl-C ends the fit with the best it has found so far, and with exit code 130.

    Parameters
    ----------
    data
        Table with one row a sample and one numeric column a variable: CSV, TSV, Parquet, Feather or h5ad.
    out
        Folder for the results; open its report.html.
    stream
        The table is larger than memory: read a Parquet file, or a folder of them, part by part. Linear densities only;
        regimes.csv and the report's plots then show 20 000 rows drawn from all.
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
    from latentdo.outputs import check_folder
    from latentdo.ranks import Ranks, joined_ranks

    ranks = Ranks.started()
    if ranks.is_first:
        clear_the_way(out, resume=resume, overwrite=overwrite)
        check_folder(out, overwrite=overwrite or resume)
    with compute_on(dask):
        X, arguments, rows = (gather_stream if stream else gather)(data, read, model, known)
        if dask is not None:
            arguments.setdefault("n_jobs", -1)
        if ranks.size > 1:
            arguments["n_jobs"] = 1  # the processes are here already
        with _place_for_states(arguments, out, resume=resume, is_first=ranks.is_first) as kept:
            with joined_ranks(), warnings.catch_warnings():
                if not ranks.is_first:  # it computes; the first speaks and writes for all
                    warnings.simplefilter("ignore")
                estimator = fit_table(X, arguments, rows, silent=json or not ranks.is_first)
            if not ranks.is_first:
                return 0
            shown = estimator.sample_ if isinstance(X, Path) else X
            code = _write(estimator, arguments, shown, out, overwrite or resume, diagnose, json)
            if kept is not None:
                kept.keep = code != 0
        return code


@contextmanager
def _place_for_states(
    arguments: dict[str, Any], out: Path, *, resume: bool, is_first: bool
) -> Iterator[Unfinished | None]:
    """Where the gradient solvers keep their states; None for the search, and on ranks that write nothing."""
    if arguments.get("solver", "auto") not in ("gradient", "paper"):
        if resume and is_first:
            complain(
                "nothing to resume: the structural search keeps no states in between (only --solver gradient and paper "
                "do), so this fit starts from the beginning."
            )
        yield None
    elif is_first:
        with unfinished(out, resume=resume) as kept:
            arguments["checkpoint"] = kept.file("checkpoint")
            yield kept
    else:
        arguments["checkpoint"] = place_for(out) / "checkpoint"
        yield None


def _write(
    estimator: LatentInterventionDAG,
    arguments: dict[str, Any],
    X: pd.DataFrame,
    out: Path,
    overwrite: bool,
    diagnose: bool,
    json: bool,
) -> int:
    """Write and print what was found; the exit code."""
    from latentdo.outputs import write_outputs

    result = estimator.result_
    code = 130 if result.status == "interrupted" else 0
    diagnosis = diagnose_fit(estimator, arguments, silent=json) if diagnose and code == 0 else None
    folder = write_outputs(result, out, overwrite, X=X, diagnosis=diagnosis)
    if json:
        limits = {} if diagnosis is None else {"diagnosis": diagnosis.to_dict()}
        print_json({**result.summary(), **limits, "out": str(folder)})
        return code
    print_result(result)
    if diagnosis is not None:
        say(f"\nWhat data of this size can show\n{diagnosis}")
    say(f"\nOpen {folder / 'report.html'} in a browser.")
    return code
