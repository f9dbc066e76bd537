"""The light tunnel (Gamella, Peters and Bühlmann 2025): real measurements of a machine whose graph is known.

``python -m experiments.light_tunnel --densities auto,linear`` draws 4000 of its 24 000 rows (20 variables, 14
interventions) and fits them without labels; ``--told regimes`` gives the experiments. The measurements are no part of
the package: ``--data`` says where they are, or are to be downloaded to (:func:`latentdo.datasets.load_light_tunnel`);
where they cannot be had nothing is run. A smoke run uses a simulated table of that form.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from experiments import runner
from experiments.field import SMALL, SURE, estimator
from latentdo import LatentInterventionDAG, metrics, simulate
from latentdo.datasets import LightTunnel, load_light_tunnel
from latentdo.datasets.light_tunnel import REFERENCE

DATA: Final = Path(__file__).parents[2] / "shared" / "data" / "light_tunnel"
MAJORITY: Final = 0.5


def simulated() -> LightTunnel:
    """A small table of the same form."""
    data = simulate(preset="field", random_state=1000, separation=4.0, **SMALL)
    names = [REFERENCE, *(f"experiment_{k}" for k in range(1, data.n_regimes))]
    experiments = pd.Series(np.array(names, dtype=object)[data.regimes])
    return LightTunnel(data.X, experiments, data.targets.set_axis(names), data.adjacency)


def gains(X: pd.DataFrame, model: LatentInterventionDAG) -> np.ndarray[Any, np.dtype[np.float64]]:
    """How much better the changed mechanisms fit the rows of their regime than the reference does; [n_regimes, d]."""
    fitted, z = model.result_.model, model.result_.preprocessor.forward(X)
    found = np.zeros(model.targets_.shape)
    for k, j in np.argwhere(model.targets_.to_numpy() == 1):
        rows = z[model.regimes_ == k]
        own, reference = (fitted.variable_log_density(rows, j, regime).sum() for regime in (k, 0))
        found[k, j] = own - reference
    return found


def interventions(
    truth: LightTunnel, model: LatentInterventionDAG, gained: np.ndarray[Any, np.dtype[np.float64]]
) -> dict[str, int]:
    """How many experiments have a regime of their own, in how many of these the target comes first, or is all.

    A regime is an experiment's own if more than half of the rows of either are those of the other. The first target is
    the one whose change gains most; probabilities do not rank them, since most are one.
    """
    together = pd.crosstab(truth.experiments.to_numpy(), model.regimes_)
    own = (together.div(together.sum(axis=1), axis=0) > MAJORITY) & (together.div(together.sum()) > MAJORITY)
    counts = {"interventions": 0, "own_regime": 0, "target_first": 0, "targets_exact": 0}
    for experiment, row in truth.targets.drop(index=REFERENCE).iterrows():
        targets = list(truth.X.columns[row == 1])
        counts["interventions"] += 1
        if not own.loc[experiment].any():
            continue
        regime = own.columns[own.loc[experiment]][0]
        changed = truth.X.columns[model.targets_.to_numpy()[regime] == 1]
        counts["own_regime"] += 1
        counts["target_first"] += len(changed) > 0 and truth.X.columns[gained[regime].argmax()] in targets
        counts["targets_exact"] += set(changed) == set(targets)
    return counts


def cell(density: str, told: str, seed: int, n_samples: int, data: str) -> Mapping[str, Any]:
    """Fit one draw of rows; without a folder, the simulated stand-in."""
    whole = load_light_tunnel(data) if data else simulated()
    # Drawn as in `cytometry`: with seed 0 and the labels, `linear` then has the distance 17 of the first measurement.
    drawn = np.random.default_rng(seed).permutation(len(whole.X))[:n_samples]
    truth = replace(whole, X=whole.X.iloc[drawn], experiments=whole.experiments.iloc[drawn])
    model = estimator(density).set_params(observational=REFERENCE)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(truth.X, regimes=truth.experiments.to_numpy() if told == "regimes" else None)
    seconds = time.process_time() - began
    sure = np.asarray(model.edge_probabilities_) > SURE
    return {
        "shd": metrics.shd(truth.adjacency, model.adjacency_),
        "true_edges": int(truth.adjacency.to_numpy().sum()),
        "edges": int(model.adjacency_.to_numpy().sum()),
        "sure": int(sure.sum()),
        "sure_right": int(truth.adjacency.to_numpy()[sure].sum()),
        "regimes": model.n_regimes_,
        "ari": metrics.adjusted_rand_index(truth.experiments, model.regimes_),
        **interventions(truth, model, gains(truth.X, model)),
        "evidence": float(model.result_.evidence),
        "processor_seconds": round(seconds, 1),
    }


def main() -> None:
    options = runner.arguments(__doc__, densities="auto", told="nothing", n_samples=4000, data=str(DATA))
    if not options.smoke:
        try:
            load_light_tunnel(options.data)
        except (ImportError, OSError) as error:
            print(f"light_tunnel: {error} Say --data where the measurements are.")
            return
    cells = [
        {
            "density": density,
            "told": told,
            "seed": seed,
            "n_samples": options.n_samples,
            "data": "" if options.smoke else options.data,
        }
        for density in (["linear"] if options.smoke else options.densities.split(","))
        for told in options.told.split(",")
        for seed in runner.seeds_of(options.seeds, [0])
    ]
    frame = runner.run(
        "light_tunnel", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh
    )
    hidden = ["key", "data", "versions", "version", "date", "memory_mb", "seconds"]
    print(f"\n{runner.machine()}\n{frame.drop(columns=hidden).T.to_string()}")


if __name__ == "__main__":
    main()
