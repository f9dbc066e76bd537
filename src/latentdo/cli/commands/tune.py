"""``latentdo tune``: priors and rates by held-out rows."""

from __future__ import annotations

from pathlib import Path

from latentdo.cli.application import app
from latentdo.cli.console import complain, print_json, print_result, print_table, say
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
def tune(
    data: Path,
    /,
    *,
    out: Path,
    n_trials: int = 20,
    storage: str | None = None,
    study_name: str = "latentdo",
    validation_fraction: float = 0.2,
    timeout: float | None = None,
    checkpoint_seconds: CheckpointSeconds = 60.0,
    resume: Flag = False,
    overwrite: Flag = False,
    json: Flag = False,
    dask: DaskAddress = None,
    config: ConfigFile = None,  # noqa: ARG001  (read by latentdo.cli.sources)
    known: KnownOptions = KnownOptions(),  # noqa: B008
    read: ReadOptions = ReadOptions(),  # noqa: B008
    model: EstimatorOptions = EstimatorOptions(),  # noqa: B008
) -> None:
    """Choose priors and rates by the likelihood of held-out rows, then fit all rows; needs the extra `tune`.

    Varied are the priors of edges and targets and, with --solver gradient or paper, the concentration and the learning
    rate. Among trials within one standard error of the best, the one with the fewest edges and targets is chosen.

    Parameters
    ----------
    data
        Table as for `latentdo fit`.
    out
        Folder for the results of the chosen fit, and for trials.csv.
    n_trials
        Number of fits, those already in the storage included.
    storage
        File (SQLite) that keeps the trials for good, so that the same command goes on after an interruption; or a
        storage URL of Optuna, which several machines may share. Without it, trials are kept until the command ends.
    study_name
        Name of the study in the storage.
    validation_fraction
        Share of the rows that are held out.
    timeout
        Start no further trial after this many seconds.
    resume
        Go on with an interrupted run of the same command.
    overwrite
        Replace a folder of earlier results.
    json
        Print the result, the chosen values and all trials as JSON on standard output.
    """
    from latentdo.cluster import compute_on
    from latentdo.estimator import LatentInterventionDAG
    from latentdo.tuning import TunedDAG

    own = "tune" if storage is None else None
    with destination(out, overwrite=overwrite, resume=resume, state=own) as work, compute_on(dask):
        X, arguments, rows = gather(data, read, model, known)
        if storage is not None and resume:
            complain(f"--resume is not needed with --storage: trials in {storage} are always continued.")
        if dask is not None:
            arguments.setdefault("n_jobs", -1)
        if model.keeps_states and own is not None:  # of the chosen fit
            arguments["checkpoint"] = work.state("tune-checkpoint")
            arguments["checkpoint_seconds"] = checkpoint_seconds
        tuned = TunedDAG(
            LatentInterventionDAG(**arguments),
            n_trials,
            storage=storage if storage is not None else work.state("tune-trials.sqlite"),
            study_name=study_name,
            validation_fraction=validation_fraction,
            timeout=timeout,
            random_state=arguments.get("random_state", 0),
        )
        try:
            with progress(f"Tuning on {len(X)} rows of {X.shape[1]} variables", silent=json) as step:
                tuned.fit(X, **rows, progress=step)
        except KeyboardInterrupt:
            if storage is not None:
                complain(f"The finished trials are kept in {storage}: the same command continues from there.")
            raise
        result = tuned.best_estimator_.result_
        trials = tuned.trials_
        folder = work.write(result, X=X, trials=trials)
    if json:
        chosen = {"chosen": tuned.best_params_, "held_out": tuned.best_score_}
        print_json({**result.summary(), **chosen, "trials": trials.to_dict("records"), "out": str(folder)})
        return
    say(f"{len(trials)} trials, the best held-out log-likelihood (nats per row) first")
    shown = trials.sort_values("held_out", ascending=False, kind="stable").head(10)
    print_table(
        [
            {
                **{name: f"{row[name]:.3g}" for name in tuned.best_params_},
                "held out": f"{row['held_out']:.4f}",
                **{name: int(row[name]) for name in ("edges", "targets", "regimes")},
                "": "chosen" if row["chosen"] else "as good" if row["within_one_error"] else "",
            }
            for row in shown.to_dict("records")
        ]
    )
    say("Chosen: " + ", ".join(f"{name} {value:.3g}" for name, value in tuned.best_params_.items()) + "\n")
    print_result(result)
    say(f"\nOpen {folder / 'report.html'} in a browser.")
