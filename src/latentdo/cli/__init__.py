"""The command line: thin sub-commands over the public interface.

Exit codes: 0 done, 1 something was wrong with data or arguments (one message, no traceback), 2 wrong usage, 130
interrupted. Results go to standard output, everything else to standard error. Heavy imports happen inside the
commands, so that ``--help`` is quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

# Busy waiting between parallel regions makes small machines many times slower; OpenMP reads this once, when loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from cyclopts import App, CycloptsError

from latentdo.cli.console import (
    complain,
    console,
    plain_warnings,
    print_bootstrap,
    print_json,
    print_result,
    print_table,
    progress,
    say,
)
from latentdo.cli.options import EstimatorOptions, Flag, ReadOptions
from latentdo.cli.tables import check_results, compare_folders, find_label, read_targets

if TYPE_CHECKING:
    import pandas as pd

    from latentdo.diagnosis import Diagnosis
    from latentdo.estimator import LatentInterventionDAG

__all__ = ["app", "main"]


def _version() -> str:
    from importlib.metadata import version

    return version("latentdo")


app = App(
    name="latentdo",
    help=(
        "Find the causal graph, the hidden interventions and their targets in one table of numbers.\n\n"
        "Start with `latentdo demo`, or with your own table: `latentdo fit data.csv --out results`."
    ),
    help_format="markdown",
    version=_version,
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)


@app.command
def fit(
    data: Path,
    /,
    *,
    out: Path,
    regime_column: str | None = None,
    observational: str | None = None,
    targets: Path | None = None,
    diagnose: Flag = False,
    overwrite: Flag = False,
    json: Flag = False,
    read: ReadOptions = ReadOptions(),  # noqa: B008
    model: EstimatorOptions = EstimatorOptions(),  # noqa: B008
) -> None:
    """Find graph, hidden interventions and targets in a table, and write a folder with a report.

    Parameters
    ----------
    data
        Table with one row a sample and one numeric column a variable: CSV, TSV, Parquet, Feather or h5ad.
    out
        Folder for the results; open its report.html.
    regime_column
        Column with the condition of each row, where it is known; empty cells are unknown.
    observational
        Which condition is the one without an intervention.
    targets
        CSV of 0/1 with one row a condition and one column a variable, if it is known what each condition changed.
    diagnose
        Also simulate from the fitted model and fit again three times, to report what data of this size can show; takes
        about three times as long as the fit.
    overwrite
        Replace a folder of earlier results.
    json
        Print the result as JSON on standard output.
    """
    from latentdo.outputs import check_folder, write_outputs

    check_folder(out, overwrite=overwrite)
    X, arguments, known = _inputs(data, read, model, regime_column, observational, targets)
    estimator = _fit(X, arguments, known)
    result = estimator.result_
    diagnosis = _diagnose(estimator, arguments) if diagnose else None
    folder = write_outputs(result, out, overwrite, X=X, diagnosis=diagnosis)
    if json:
        limits = {} if diagnosis is None else {"diagnosis": diagnosis.to_dict()}
        print_json({**result.summary(), **limits, "out": str(folder)})
        return
    print_result(result)
    if diagnosis is not None:
        say(f"\nWhat data of this size can show\n{diagnosis}")
    say(f"\nOpen {folder / 'report.html'} in a browser.")


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
    regime_column: str | None = None,
    observational: str | None = None,
    targets: Path | None = None,
    overwrite: Flag = False,
    json: Flag = False,
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
        File (SQLite) that keeps the trials, so that the same command goes on after an interruption; or a storage URL
        of Optuna, which several machines may share.
    study_name
        Name of the study in the storage.
    validation_fraction
        Share of the rows that are held out.
    timeout
        Start no further trial after so many seconds.
    regime_column
        Column with the condition of each row, where it is known; empty cells are unknown.
    observational
        Which condition is the one without an intervention.
    targets
        CSV of 0/1 with one row a condition and one column a variable, if it is known what each condition changed.
    overwrite
        Replace a folder of earlier results.
    json
        Print the result, the chosen values and all trials as JSON on standard output.
    """
    from latentdo.estimator import LatentInterventionDAG
    from latentdo.outputs import check_folder, write_outputs
    from latentdo.tuning import TunedDAG

    check_folder(out, overwrite=overwrite)
    X, arguments, known = _inputs(data, read, model, regime_column, observational, targets)
    tuned = TunedDAG(
        LatentInterventionDAG(**arguments),
        n_trials,
        storage=storage,
        study_name=study_name,
        validation_fraction=validation_fraction,
        timeout=timeout,
        random_state=arguments.get("random_state", 0),
    )
    try:
        with progress(f"Tuning on {len(X)} rows of {X.shape[1]} variables") as step:
            tuned.fit(X, **known, progress=step)
    except KeyboardInterrupt:
        if storage is not None:
            complain(f"The finished trials are kept in {storage}: the same command goes on from there.")
        raise
    result = tuned.best_estimator_.result_
    trials = tuned.trials_
    folder = write_outputs(result, out, overwrite, X=X, tables={"trials.csv": trials})
    if json:
        chosen = {"chosen": tuned.best_params_, "held_out": tuned.best_score_}
        print_json({**result.summary(), **chosen, "trials": trials.to_dict("records"), "out": str(folder)})
        return
    say(f"{len(trials)} trials, the best held-out log-likelihood (nats a row) first")
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
    regime_column: str | None = None,
    observational: str | None = None,
    targets: Path | None = None,
    overwrite: Flag = False,
    json: Flag = False,
    read: ReadOptions = ReadOptions(),  # noqa: B008
    model: EstimatorOptions = EstimatorOptions(),  # noqa: B008
) -> None:
    """Fit a table, then resamples of its rows, and count which edges, targets and regimes return.

    Support is not probability: it says whether a finding would come out again with other rows, not whether it is true.

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
        File that keeps finished resamples, so that the same command goes on after an interruption, or adds more.
    regime_column
        Column with the condition of each row, where it is known; empty cells are unknown.
    observational
        Which condition is the one without an intervention.
    targets
        CSV of 0/1 with one row a condition and one column a variable, if it is known what each condition changed.
    overwrite
        Replace a folder of earlier results.
    json
        Print the result and the support of edges, targets and regimes as JSON on standard output.
    """
    from latentdo.bootstrap import BootstrapDAG
    from latentdo.estimator import LatentInterventionDAG
    from latentdo.outputs import check_folder, write_outputs

    check_folder(out, overwrite=overwrite)
    X, arguments, known = _inputs(data, read, model, regime_column, observational, targets)
    n_jobs = arguments.pop("n_jobs", 1)
    boot = BootstrapDAG(
        LatentInterventionDAG(**arguments),
        n_resamples,
        resample=resample,
        threshold=threshold,
        checkpoint=checkpoint,
        n_jobs=n_jobs,
        random_state=arguments.get("random_state", 0),
    )
    with progress(f"Resampling {len(X)} rows of {X.shape[1]} variables") as step:
        boot.fit(X, **known, progress=step)
    result = boot.estimator_.result_
    tables = {
        "bootstrap_edges.csv": boot.edges_,
        "edge_support.csv": boot.edge_support_.rename_axis("cause"),
        "target_support.csv": boot.target_support_.rename_axis("regime"),
        "regime_stability.csv": boot.regime_stability_.rename_axis("regime"),
        "consensus.csv": boot.adjacency_.rename_axis("cause"),
    }
    folder = write_outputs(result, out, overwrite, X=X, tables=tables, bootstrap=boot)
    if json:
        support = {
            "resamples": len(boot.resamples_),
            "edges": boot.edges_.to_dict("records"),
            "targets": boot.target_support_.to_dict("split"),
            "regimes": boot.regime_stability_.to_dict("index"),
            "n_regimes": {str(k): int(v) for k, v in boot.n_regimes_.items()},
        }
        print_json({**result.summary(), "bootstrap": support, "out": str(folder)})
        return
    print_bootstrap(boot)
    say(f"\nOpen {folder / 'report.html'} in a browser; the tables of support are beside it.")


@app.command
def demo(
    *,
    out: Path = Path("latentdo-demo"),
    overwrite: Flag = False,
    json: Flag = False,
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
    from latentdo.outputs import check_folder, write_outputs

    check_folder(out, overwrite=overwrite)
    data = load_sachs(subset="full")
    n, d = data.X.shape
    if not json:
        say(
            f"{n} cells, {d} proteins and lipids, nine experimental conditions. The fit sees only the numbers.\n"
        )
    result = _fit(data.X, {"transform": "log", **model.given()}, {}).result_
    folder = write_outputs(result, out, overwrite, X=data.X)
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


@app.command
def simulate(
    *,
    out: Path,
    n_variables: int | None = None,
    edges_per_node: float | None = None,
    mechanism: Literal["linear", "nonlinear", "nonadditive"] = "linear",
    intervention: Literal["stochastic", "atomic", "imperfect"] = "stochastic",
    n_samples: int | None = None,
    preset: str = "paper",
    random_state: int = 0,
    n_regimes: int | None = None,
    targets_per_regime: int = 1,
    separation: float | None = None,
    noise: str = "gaussian",
    graph: Literal["erdos-renyi", "scale-free"] = "erdos-renyi",
    observational: bool = True,
    overwrite: Flag = False,
) -> None:
    """Write a table with known truth: data.csv, adjacency.csv, targets.csv, regimes.csv and simulation.json.

    Parameters
    ----------
    out
        Folder to write.
    n_variables
        Number of variables; the preset decides by default.
    edges_per_node
        Expected edges a variable.
    mechanism
        How causes act.
    intervention
        What an intervention does to its target.
    n_samples
        Number of rows.
    preset
        "paper", "paper-pairs", "paper-hetero" or "dcdi".
    random_state
        Seed.
    n_regimes
        Number of regimes, the observational one included; one a variable more than there are, by default.
    targets_per_regime
        How many variables an intervention hits.
    separation
        Size of the shifts in standard deviations of the intervened noise.
    noise
        Family of the noise.
    graph
        Kind of random graph.
    observational
        Whether there are rows without an intervention.
    overwrite
        Replace a folder of an earlier simulation.
    """
    settings: dict[str, Any] = {k: v for k, v in locals().items() if k not in ("out", "overwrite")}
    import pandas as pd

    from latentdo.outputs import fresh_folder, json_text
    from latentdo.scm import simulate as draw

    files = ("data.csv", "adjacency.csv", "targets.csv", "regimes.csv", "simulation.json")
    with fresh_folder(out, files, overwrite=overwrite, marker="simulation.json") as folder:
        drawn = draw(**settings)
        drawn.X.to_csv(folder / "data.csv", index=False)
        drawn.adjacency.rename_axis("cause").to_csv(folder / "adjacency.csv")
        drawn.targets.rename_axis("regime").to_csv(folder / "targets.csv")
        table = pd.DataFrame({"row": range(len(drawn.regimes)), "regime": drawn.regimes})
        table.to_csv(folder / "regimes.csv", index=False)
        about = {"program": "latentdo", "version": _version(), "arguments": settings}
        (folder / "simulation.json").write_text(json_text(about), encoding="utf-8")
    n, d = drawn.X.shape
    say(
        f"Wrote {n} rows of {d} variables under {drawn.n_regimes} regimes to {out}.\n"
        f"Next: latentdo fit {out / 'data.csv'} --out results, then latentdo evaluate results --truth {out}"
    )


@app.command
def evaluate(results: Path, /, *, truth: Path, json: Flag = False) -> None:
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


@app.command
def report(results: Path, /, *, data: Path | None = None, out: Path | None = None) -> None:
    """Write report.html again from a saved result, for example after an upgrade.

    Parameters
    ----------
    results
        Folder that `latentdo fit` wrote, or a model.safetensors file.
    data
        The table that was fitted; adds scatter plots.
    out
        The HTML file; report.html in the folder by default.
    """
    import json

    from latentdo.persistence import load_result, write_atomically
    from latentdo.readers import read_table
    from latentdo.report import render_report

    check_results(results, file_allowed=True)
    model = results / "model.safetensors" if results.is_dir() else results
    result = load_result(model)
    about = model.with_name("result.json")
    stored = json.loads(about.read_text("utf-8")) if about.is_file() else {}
    limits = (stored.get("diagnosis") or {}).get("sentences")
    X = None if data is None else read_table(data, columns=list(result.columns))
    html = render_report(result, X, versions=stored.get("versions"), diagnosis=limits)
    target = out or model.with_name("report.html")
    write_atomically(target, lambda path: path.write_bytes(html.encode("utf-8", errors="replace")))
    say(f"Wrote {target}.")


@app.command(name="app")
def serve(*, port: int = 8501, browser: bool = True) -> None:
    """Open the app in a browser: choose a table, run, look at the report, download everything.

    It serves this computer only and sends nothing anywhere. Ctrl-C ends it.

    Parameters
    ----------
    port
        Port to listen on.
    browser
        Open a browser.
    """
    from latentdo.app import launch

    code = launch(port, browser=browser)
    if code:
        raise ValueError(
            f"the app's server ended with code {code}; if port {port} is taken, choose another with --port."
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        with plain_warnings():
            app(
                sys.argv[1:] if arguments is None else list(arguments),
                console=console(),
                error_console=console(stderr=True),
                exit_on_error=False,
            )
    except CycloptsError:
        return 2  # cyclopts has printed what was wrong
    except KeyboardInterrupt:
        complain("interrupted; nothing was written.")
        return 130
    except BrokenPipeError:  # `latentdo ... | head`: nobody listens any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError, ImportError, MemoryError) as error:
        complain(f"error: {error}" if str(error) else f"error: {type(error).__name__}")
        return 1
    return 0


def _inputs(
    data: Path,
    read: ReadOptions,
    model: EstimatorOptions,
    regime_column: str | None,
    observational: str | None,
    targets: Path | None,
) -> tuple[pd.DataFrame, dict[str, Any], dict[str, Any]]:
    """The table, the arguments of the estimator, and what is known: the arguments of ``fit``."""
    from latentdo.readers import read_table

    arguments = model.given()
    known: dict[str, Any] = {}
    if regime_column is None:
        if observational is not None or targets is not None:
            raise ValueError(
                "--observational and --targets need --regime-column, which names the conditions."
            )
        return read_table(data, **read.arguments()), arguments, known
    X, known["regimes"] = read_table(data, regime_column, **read.arguments())
    labels = {str(label): label for label in known["regimes"].dropna().unique()}
    if observational is not None:
        arguments["observational"] = find_label(observational, labels, "--observational")
    elif "0" in labels:  # the estimator's default, whatever its type in this file
        arguments["observational"] = labels["0"]
    if targets is not None:
        known["targets"] = read_targets(targets, labels)
    return X, arguments, known


def _fit(X: pd.DataFrame, arguments: dict[str, Any], known: dict[str, Any]) -> LatentInterventionDAG:
    """Fit with the public estimator, with a sign of life on a terminal."""
    from latentdo.estimator import LatentInterventionDAG

    estimator = LatentInterventionDAG(**arguments)
    with progress(f"Fitting {len(X)} rows of {X.shape[1]} variables") as step:
        estimator.fit(X, **known, progress=step)
    return estimator


def _diagnose(estimator: LatentInterventionDAG, arguments: dict[str, Any]) -> Diagnosis:
    """Simulate and fit again, with a sign of life on a terminal."""
    seed, n_jobs = arguments.get("random_state", 0), arguments.get("n_jobs", 1)
    with progress("Diagnosing") as step:
        return estimator.diagnose(random_state=seed, n_jobs=n_jobs, progress=step)


def _graph_row(true: pd.DataFrame, found: pd.DataFrame) -> dict[str, float]:
    from latentdo import metrics

    counts = metrics.edge_counts(true, found)
    return {
        "SHD": metrics.shd(true, found),
        "Hamming": counts.hamming,
        **counts.as_dict(),
        "F1": counts.f1,
    }
