"""``latentdo bootstrap``: what returns when rows are drawn anew."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from latentdo.cli.application import app
from latentdo.cli.console import print_bootstrap, print_json, say
from latentdo.cli.destination import destination
from latentdo.cli.inputs import gather
from latentdo.cli.options import (
    CheckpointSeconds,
    ConfigFile,
    DaskAddress,
    EstimatorOptions,
    Flag,
    KnownOptions,
    ReadOptions,
)
from latentdo.cli.panel import progress


@app.command
def bootstrap(
    data: Path,
    /,
    *,
    out: Path,
    n_resamples: int = 50,
    resample: Literal["half", "bootstrap"] = "half",
    threshold: float = 0.5,
    checkpoint: Path | None = None,
    checkpoint_seconds: CheckpointSeconds = 60.0,
    resume: Flag = False,
    overwrite: Flag = False,
    json: Flag = False,
    dask: DaskAddress = None,
    config: ConfigFile = None,  # noqa: ARG001  (read by latentdo.cli.sources)
    known: KnownOptions = KnownOptions(),  # noqa: B008
    read: ReadOptions = ReadOptions(),  # noqa: B008
    model: EstimatorOptions = EstimatorOptions(),  # noqa: B008
) -> int:
    """Fit a table, then resamples of its rows, and count which edges, targets and regimes return.

    Support is not probability: it says whether a finding would come out again with other rows, not whether it is true.
    Ctrl-C ends with the resamples that are done, and with exit code 130.

    Parameters
    ----------
    data
        Table as for `latentdo fit`.
    out
        Folder for the results of the fit to all rows, and for the tables of support.
    n_resamples
        Number of resamples; --n-jobs of them run in parallel.
    resample
        "half": half of the rows, without replacement. "bootstrap": as many rows, with replacement; their repeats look
        like regimes, so use it only where regimes are known.
    threshold
        Support from which an edge enters the consensus graph.
    checkpoint
        File that keeps finished resamples for good: the same command goes on after an interruption, or adds more.
        Without it, they are kept until the command ends.
    resume
        Go on with an interrupted run of the same command, and replace its results.
    overwrite
        Replace a folder of earlier results.
    json
        Print the result and the support of edges, targets and regimes as JSON on standard output.
    """
    from latentdo.bootstrap import BootstrapDAG
    from latentdo.cluster import compute_on
    from latentdo.estimator import LatentInterventionDAG

    own = "bootstrap" if checkpoint is None else None
    with destination(out, overwrite=overwrite, resume=resume, state=own) as work, compute_on(dask):
        X, arguments, rows = gather(data, read, model, known)
        n_jobs = arguments.pop("n_jobs", 1 if dask is None else -1)
        if model.keeps_states and own is not None:  # of the fit to all rows
            arguments["checkpoint"] = work.state("bootstrap-checkpoint")
            arguments["checkpoint_seconds"] = checkpoint_seconds
        boot = BootstrapDAG(
            LatentInterventionDAG(**arguments),
            n_resamples,
            resample=resample,
            threshold=threshold,
            checkpoint=checkpoint or work.state("bootstrap-resamples.safetensors"),
            checkpoint_seconds=checkpoint_seconds,
            n_jobs=n_jobs,
            random_state=arguments.get("random_state", 0),
        )
        with progress(f"Resampling {len(X)} rows of {X.shape[1]} variables", silent=json) as step:
            boot.fit(X, **rows, progress=step)
        result = boot.estimator_.result_
        complete = len(boot.resamples_) + len(boot.failures_) >= n_resamples
        folder = work.write(result, X=X, bootstrap=boot)
        work.keep = not complete
    if json:
        support = {
            "resamples": len(boot.resamples_),
            "edges": boot.edges_.to_dict("records"),
            "targets": boot.target_support_.to_dict("split"),
            "regimes": boot.regime_stability_.to_dict("index"),
            "n_regimes": {str(k): int(v) for k, v in boot.n_regimes_.items()},
        }
        print_json({**result.summary(), "bootstrap": support, "out": str(folder)})
    else:
        print_bootstrap(boot)
        say(f"\nOpen {folder / 'report.html'} in a browser; the tables of support are beside it.")
    return 0 if complete else 130
