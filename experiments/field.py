"""Tables as they are: noise of any shape, curves, soft interventions, weak shifts, few rows, many variables.

``python -m experiments.field --rows linear,soft --densities auto,linear --seeds 1000:1003`` fits every row of that
name, or whose name begins so, three ways: knowing nothing, with the true regimes, and with the clusters of a Gaussian
mixture (their number by BIC) as regimes. A density may name its noise too, as in ``linear/gaussian``. Seeds from 1000
up are for development; 0 to 9 are for the final run.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import scale

from experiments import runner
from experiments.outcome import outcome
from experiments.tables import Table
from latentdo import LatentInterventionDAG, metrics, simulate
from latentdo.data import Dataset
from latentdo.model.mechanisms.additive import AdditiveMechanism
from latentdo.model.mechanisms.any_noise import AnyNoise
from latentdo.model.mechanisms.linear import LinearMechanism
from latentdo.result import FitResult
from latentdo.scm import Simulation
from latentdo.solvers.search.driver import SearchConfiguration, make_problem
from latentdo.solvers.search.em import refine
from latentdo.solvers.search.rows import RowLearner

NOISES: Final = ("gaussian", "laplace", "student", "gamma", "uniform", "bimodal")

ROWS: Final[dict[str, dict[str, Any]]] = {
    **{f"linear-{noise}": {"noise": noise} for noise in NOISES},
    **{f"smooth-{noise}": {"mechanism": "smooth", "noise": noise} for noise in NOISES},
    **{
        f"smooth-{noise}-growing": {"mechanism": "smooth", "noise": noise, "noise_scale": "growing"}
        for noise in NOISES
    },
    "multiplicative": {"mechanism": "multiplicative"},
    "soft": {"intervention": "soft"},
    "penetrance": {"penetrance": 0.7},
    "weak": {"separation": 1.0},
    "rows-600": {"n_samples": 600},
    **{
        f"quiet-{mechanism}-{noise}": {"mechanism": mechanism, "noise": noise, "n_regimes": 1}
        for mechanism in ("linear", "smooth", "multiplicative")
        for noise in NOISES
    },
    "variables-20": {"mechanism": "smooth", "n_variables": 20, "n_regimes": 9, "n_samples": 6000},
    "variables-50": {"mechanism": "smooth", "n_variables": 50, "n_regimes": 9, "n_samples": 20_000},
}
"""Arguments of ``simulate`` by which a row differs from the preset: 8 variables, 3000 rows, 4 hidden regimes."""

TOLD: Final = ("nothing", "regimes", "clusters")
SURE: Final = 0.9
BEHIND: Final = 10.0
"""Nats of evidence that a fit must lack before the search, not the score, is said to have failed."""

MOST_CLUSTERS: Final = 12
SMALL: Final = {"n_variables": 4, "n_samples": 600, "n_regimes": 3}


def clusters(X: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Regimes as a user without us would find them: a Gaussian mixture with the number of clusters by BIC."""
    z = scale(X)
    fits = [GaussianMixture(k, n_init=2, random_state=0).fit(z) for k in range(1, MOST_CLUSTERS + 1)]
    return np.asarray(min(fits, key=lambda fit: fit.bic(z)).predict(z))


def true_state_evidence(data: Simulation, found: FitResult) -> float | None:
    """Evidence of true graph and targets after EM from the true responsibilities, with the family of a fit.

    A fit with less has been failed by the search, a wrong fit with more by the score. None for networks.
    """
    families = {"additive": AdditiveMechanism, "linear": AnyNoise}
    if found.density not in families:
        return None
    problem = make_problem(Dataset.from_table(data.X), SearchConfiguration())
    gaussian_lines = all(isinstance(one, LinearMechanism) and one.is_plain for one in found.model.reference)
    if not gaussian_lines:
        problem = replace(problem, learner=RowLearner.of(families[found.density], problem.z))
    graph, targets = (frame.to_numpy().astype(np.int8) for frame in (data.adjacency, data.targets))
    truth = data.bayes_responsibilities()
    return float(refine(problem, truth, graph, iterations=100, targets=targets).evidence)


def estimator(density: str) -> LatentInterventionDAG:
    """The estimator that a word such as ``linear`` or ``additive/any`` stands for."""
    mean, _, noise = density.partition("/")
    return LatentInterventionDAG(**{"density": mean} | ({"noise": noise} if noise else {}))


def cell(row: str, density: str, told: str, seed: int, small: bool) -> Mapping[str, Any]:
    """Fit one table."""
    data = simulate(preset="field", random_state=seed, **ROWS[row] | (SMALL if small else {}))
    model = estimator(density)
    began = time.process_time()
    regimes = None
    if told == "regimes":
        regimes = data.regimes
    elif told == "clusters":
        regimes = clusters(data.X) + 1  # none of them is known to be the reference
        model.set_params(observational=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.X, regimes=regimes)
    seconds = time.process_time() - began
    targets = metrics.target_scores(
        data.targets.to_numpy(), model.targets_.to_numpy(), data.regimes, model.regimes_
    )
    sure = np.asarray(model.edge_probabilities_) > SURE
    return {
        **outcome(data, model),
        "regimes_right": np.unique(model.regimes_).size == data.n_regimes,  # those with rows
        "ari_true": metrics.adjusted_rand_index(data.regimes, data.bayes_responsibilities().argmax(axis=1)),
        "targets_wrong": targets.fn + targets.fp,
        "sure": int(sure.sum()),
        "sure_right": int(data.adjacency.to_numpy()[sure].sum()),
        "evidence": float(model.result_.evidence),
        "evidence_true": true_state_evidence(data, model.result_) if told == "nothing" else None,
        "processor_seconds": round(seconds, 1),
    }


def summary(frame: pd.DataFrame) -> Table:
    """One line per row and density: what was found knowing nothing, beside what labels or clusters lead to."""
    told = [way for way in TOLD if (frame["told"] == way).any()]
    named = {"nothing": "distance", "regimes": "with labels", "clusters": "with clusters"}
    found = (
        "number right",
        "ARI",
        "true state's",
        "targets wrong",
        "sure edges right",
        "below truth",
        "seconds",
    )
    header = ("row", "density", "tables", *(named[way] for way in told), *found)
    table = Table("field", "Realistic tables; means over seeds.", header)
    groups = dict(list(frame.groupby(["row", "density", "told"], sort=False)))
    for row, density in dict.fromkeys((row, density) for row, density, _ in groups):
        parts = {way: groups.get((row, density, way)) for way in told}
        tables = max(len(part) for part in parts.values() if part is not None)
        line = [row, density, f"{tables}", *(_mean(part, "shd") for part in parts.values())]
        latent = parts.get("nothing")
        if latent is None:
            table.rows.append((*line, *[""] * len(found)))
            continue
        above = latent["evidence"] - latent["evidence_true"]
        table.rows.append(
            (
                *line,
                f"{latent['regimes_right'].astype(bool).sum()}/{len(latent)}",
                f"{latent['ari'].mean():.2f}",
                f"{latent['ari_true'].mean():.2f}",
                _mean(latent, "targets_wrong"),
                f"{latent['sure_right'].sum()}/{latent['sure'].sum()}",
                f"{(above < -BEHIND).sum()}/{above.notna().sum()}",
                f"{latent['processor_seconds'].mean():.0f}",
            )
        )
    return table


def _mean(part: pd.DataFrame | None, column: str) -> str:
    if part is None:
        return ""
    return runner.mean_and_error(part[column]) if len(part) > 1 else f"{part[column].mean():.0f}"


def main() -> None:
    options = runner.arguments(__doc__, rows="", densities="auto", told=",".join(TOLD))
    seeds = [1000] if options.smoke else runner.seeds_of(options.seeds, range(1000, 1003))
    parts = options.rows.split(",")
    chosen = [
        row for row in ROWS if any(row == part or row.startswith(part) > (part in ROWS) for part in parts)
    ]
    if not chosen:
        raise SystemExit(f"--rows {options.rows}: no row begins so; there are {', '.join(ROWS)}")
    cells = [
        {"row": row, "density": density, "told": told, "seed": seed, "small": options.smoke}
        for row in (["linear-laplace"] if options.smoke else chosen)
        for seed in seeds
        for density in (["linear"] if options.smoke else options.densities.split(","))
        for told in options.told.split(",")
        if told == "nothing" or not row.startswith("quiet")  # without interventions there is nothing to tell
    ]
    frame = runner.run("field", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh)
    print(f"\n{runner.machine()}; seeds {seeds[0]} to {seeds[-1]}\n\n{summary(frame).markdown()}")


if __name__ == "__main__":
    main()
