"""Columns of every kind: binary columns, counts and categories beside measurements, with hidden regimes.

``python -m experiments.kinds --rows mixed,counts --methods kinds,continuous --seeds 1000:1003`` fits every row of that
name. Methods are our search (``kinds``); the same on the same numbers, all called measurements (``continuous``); that
with counts as logarithms over their exposure, as people who know better make them (``logarithms``); and ``classes``:
latent classes (StepMix, number by the Schwarz criterion), then greedy equivalence search with a conditional Gaussian
score (pgmpy) over columns and classes. Each is told nothing, or the true regimes. StepMix needs ``--rivals-python``, an
interpreter of the environment that ``make baselines`` makes for it. Distances are Hamming's; undirected edges of
``classes`` count as right wherever one of their directions is. A known exposure is the ``offset=`` of ``kinds``, and
one more column for ``continuous``: its logarithm, which nothing causes; arrows from it do not count. Seeds from 1000 up
are for development; 0 to 9 are for the final run.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments import runner
from experiments.baselines.conditional_gaussian import equivalence_search
from experiments.baselines.latent_classes import KINDS
from experiments.baselines.solve import favourable
from experiments.tables import Table
from experiments.together import ask
from latentdo import LatentInterventionDAG, metrics, simulate
from latentdo.data import Dataset
from latentdo.model.mechanisms.additive import AdditiveMechanism
from latentdo.model.mechanisms.any_noise import AnyNoise
from latentdo.model.mechanisms.mixed import MixedFamily
from latentdo.result import FitResult
from latentdo.scm import PRESETS, Simulation
from latentdo.solvers.search.driver import SearchConfiguration, make_problem
from latentdo.solvers.search.em import refine
from latentdo.solvers.search.rows import RowLearner

CLASSES = Path(__file__).parent / "baselines" / "latent_classes.py"
INTERPRETER = "LATENTDO_RIVALS_PYTHON"  # not part of a cell: where it lies does not matter

_MIXED, _COUNTS = PRESETS["mixed"], PRESETS["counts"]
assert _MIXED.kinds is not None
assert _COUNTS.kinds is not None

ROWS: Final[dict[str, dict[str, Any]]] = {
    "mixed": {"preset": "mixed"},
    "counts": {"preset": "counts"},
    "binary": {"preset": "binary"},
    "screen": {"preset": "screen"},
    "mixed-soft": {"preset": "mixed", "intervention": "soft"},
    "mixed-smooth": {"preset": "mixed", "mechanism": "smooth"},
    # Regimes may hit nothing but one binary or categorical column.
    "mixed-any-target": {"preset": replace(_MIXED, kinds=replace(_MIXED.kinds, leading=()))},
    # Every row was counted for as long as the others.
    "counts-even": {"preset": replace(_COUNTS, kinds=replace(_COUNTS.kinds, exposure_spread=0.0))},
    "quiet-mixed": {"preset": "mixed", "n_regimes": 1},
    "quiet-counts": {"preset": "counts", "n_regimes": 1},
}
"""Arguments of ``simulate``."""

METHODS: Final = ("kinds", "continuous", "logarithms", "classes")
TOLD: Final = ("nothing", "regimes")
SURE: Final = 0.9
EXPOSURE: Final = "log exposure"
BEHIND: Final = 10.0
"""Nats of evidence that a fit must lack before the search, not the score, is said to have failed."""

SMALL: Final = {"n_variables": 4, "n_samples": 400, "n_regimes": 3}


def numbers(data: Simulation, *, logarithms: bool = False) -> pd.DataFrame:
    """The table as numbers: levels as their places, counts as they are or as logarithms over their exposure."""
    X = pd.DataFrame(
        {
            name: (column.cat.codes if kind == "categorical" else column).astype(float)
            for (name, kind), (_, column) in zip(data.kinds.items(), data.X.items(), strict=True)
        }
    )
    if logarithms:
        exposure = 1.0 if data.exposure is None else data.exposure.to_numpy()
        for name, kind in data.kinds.items():
            if kind == "count":
                X[name] = np.log1p(X[name] / exposure)
    return X


def with_exposure(X: pd.DataFrame, data: Simulation) -> pd.DataFrame:
    """The table with the logarithm of a known exposure as one more column."""
    return X if data.exposure is None else X.assign(**{EXPOSURE: np.log(data.exposure.to_numpy())})


def true_state_evidence(data: Simulation, found: FitResult) -> float:
    """Evidence of true graph and targets after EM from the true responsibilities, with the families of a fit.

    A fit with less has been failed by the search, a wrong fit with more by the score.
    """
    dataset = Dataset.from_table(data.X, kinds=data.kinds, offset=data.exposure)
    problem = make_problem(dataset, SearchConfiguration())
    continuous = AdditiveMechanism if found.density == "additive" else AnyNoise
    family = MixedFamily(dataset.kinds, continuous, exposed=dataset.offset is not None)
    problem = replace(problem, learner=RowLearner.of(family, problem.z))
    graph, targets = (frame.to_numpy().astype(np.int8) for frame in (data.adjacency, data.targets))
    truth = data.bayes_responsibilities()
    return float(refine(problem, truth, graph, iterations=100, targets=targets).evidence)


def cell(row: str, method: str, told: str, seed: int, small: bool) -> Mapping[str, Any]:
    """Fit one table."""
    data = simulate(random_state=seed, **ROWS[row] | (SMALL if small else {}))
    ceiling = metrics.adjusted_rand_index(data.regimes, data.bayes_responsibilities().argmax(axis=1))
    known = data.regimes if told == "regimes" else None
    found = _rival(data, known) if method == "classes" else _ours(data, method, known)
    return {"ari_true": ceiling, "true_edges": int(data.adjacency.to_numpy().sum()), **found}


def _ours(data: Simulation, method: str, regimes: NDArray[np.int64] | None) -> dict[str, Any]:
    model = LatentInterventionDAG()
    names = list(data.X.columns)
    if method == "kinds":
        X = data.X
        model.set_params(kinds=data.kinds)
    else:
        X = numbers(data, logarithms=method == "logarithms")
        X = X if method == "logarithms" else with_exposure(X, data)
        model.set_params(kinds=dict.fromkeys(X.columns, "continuous"))
    if EXPOSURE in X:
        model.set_params(forbidden=[(name, EXPOSURE) for name in names])
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, regimes=regimes, offset=data.exposure if method == "kinds" else None)
    seconds = time.process_time() - began
    truth, graph = data.adjacency.to_numpy(), model.adjacency_.loc[names, names].to_numpy()
    targets = metrics.target_scores(
        data.targets.to_numpy(), model.targets_[names].to_numpy(), data.regimes, model.regimes_
    )
    sure = model.edge_probabilities_.loc[names, names].to_numpy() > SURE
    judged = method == "kinds" and regimes is None
    return {
        "hamming": metrics.hamming_distance(truth, graph),
        "shd": metrics.shd(truth, graph),
        "edges": int(graph.sum()),
        "ari": metrics.adjusted_rand_index(data.regimes, model.regimes_),
        "target_f1": targets.f1,
        "regimes": model.n_regimes_,
        "fit_seconds": round(model.result_.seconds, 2),
        "essential": metrics.essential_graph_distance(truth, graph, data.targets.to_numpy()),
        "regimes_right": np.unique(model.regimes_).size == data.n_regimes,
        "targets_wrong": targets.fn + targets.fp,
        "sure": int(sure.sum()),
        "sure_right": int(truth[sure].sum()),
        "evidence": float(model.result_.evidence),
        "evidence_true": true_state_evidence(data, model.result_) if judged else None,
        "processor_seconds": round(seconds, 1),
    }


def _rival(data: Simulation, regimes: NDArray[np.int64] | None) -> dict[str, Any]:
    codes = np.array([KINDS.index(kind) for kind in data.kinds.values()])
    began = time.perf_counter()
    if regimes is None:
        regimes = ask(os.environ[INTERPRETER], CLASSES, numbers(data).to_numpy(), codes)
    X = numbers(data, logarithms=True)  # over their exposure, since this search takes no prior knowledge
    for name, kind in data.kinds.items():
        if kind in ("binary", "categorical"):
            X[name] = data.X[name]
    truth = data.adjacency.to_numpy()
    found = equivalence_search(X, regimes)
    graph = favourable(truth, found)
    return {
        "hamming": metrics.hamming_distance(truth, graph),
        "shd": metrics.shd(truth, graph),
        "edges": int(graph.sum()),
        "ari": metrics.adjusted_rand_index(data.regimes, regimes),
        "regimes": np.unique(regimes).size,
        "regimes_right": np.unique(regimes).size == data.n_regimes,
        "fit_seconds": round(time.perf_counter() - began, 2),
    }


_MAYBE: Final = (
    "essential",
    "targets_wrong",
    "sure",
    "sure_right",
    "evidence",
    "evidence_true",
    "processor_seconds",
)


def summary(frame: pd.DataFrame) -> Table:
    """One line per row and method: what was found knowing nothing, beside what the true regimes lead to."""
    header = (
        "row",
        "method",
        "tables",
        "empty graph",
        "distance",
        "with labels",
        "equivalence class",
        "number right",
        "ARI",
        "true state's",
        "targets wrong",
        "sure edges right",
        "below truth",
        "seconds",
    )
    table = Table("kinds", "Columns of every kind; means over seeds.", header)
    frame = frame.reindex(columns=[*dict.fromkeys([*frame.columns, *_MAYBE])])  # rivals lack some
    for (row, method), part in frame.groupby(["row", "method"], sort=False):
        latent, labelled = (part[part["told"] == told] for told in TOLD)
        n = len(latent)
        above = (latent["evidence"] - latent["evidence_true"]).astype(float).dropna()
        table.rows.append(
            (
                str(row),
                str(method),
                f"{max(n, len(labelled))}",
                f"{part['true_edges'].mean():.1f}",
                _mean(latent, "hamming"),
                _mean(labelled, "hamming"),
                _mean(latent, "essential"),
                f"{latent['regimes_right'].astype(bool).sum()}/{n}" if n else "",
                f"{latent['ari'].mean():.2f}" if n else "",
                f"{part['ari_true'].mean():.2f}",
                _mean(latent, "targets_wrong"),
                f"{latent['sure_right'].sum():.0f}/{latent['sure'].sum():.0f}" if n else "",
                f"{(above < -BEHIND).sum()}/{len(above)}" if len(above) else "",
                f"{latent['processor_seconds'].fillna(latent['fit_seconds']).mean():.0f}" if n else "",
            )
        )
    return table


def _mean(part: pd.DataFrame, column: str) -> str:
    if part[column].isna().all():
        return ""
    return runner.mean_and_error(part[column]) if len(part) > 1 else f"{part[column].mean():.0f}"


def main() -> None:
    options = runner.arguments(
        __doc__, rows="mixed,counts,binary", methods="kinds,continuous", told=",".join(TOLD), rivals_python=""
    )
    seeds = [1000] if options.smoke else runner.seeds_of(options.seeds, range(1000, 1003))
    rows = ["mixed"] if options.smoke else options.rows.split(",")
    for name, allowed in (
        *((row, ROWS) for row in rows),
        *((way, METHODS) for way in options.methods.split(",")),
    ):
        if name not in allowed:
            raise SystemExit(f"{name!r} is unknown; there are {', '.join(allowed)}")
    if options.rivals_python:
        os.environ[INTERPRETER] = options.rivals_python
    elif "classes" in options.methods.split(","):
        raise SystemExit(
            "classes need --rivals-python: run `make baselines`, then .venv-baselines-kinds/bin/python"
        )
    cells = [
        {"row": row, "method": method, "told": told, "seed": seed, "small": options.smoke}
        for row in rows
        for seed in seeds
        for method in (["continuous"] if options.smoke else options.methods.split(","))
        for told in (["regimes"] if options.smoke else options.told.split(","))
        if told == "nothing" or not row.startswith("quiet")
    ]
    frame = runner.run("kinds", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh)
    print(f"\n{runner.machine()}; seeds {seeds[0]} to {seeds[-1]}\n\n{summary(frame).markdown()}")


if __name__ == "__main__":
    main()
