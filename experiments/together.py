"""Rows that belong together: quiet services, incidents, and what others make of them.

``python -m experiments.together`` fits services without incidents (one regime is right) and with twelve of them on six
root causes, with defaults and the time column. Rivals are the same fit without time; a Gaussian hidden Markov model
(hmmlearn, number of states by the Schwarz criterion) followed by our search with its states as labels; and BARO
(fse-baro), which ranks root causes of incidents and is told here when each begins and ends. The latter two need
``--rivals-python``, an interpreter of the environment that ``make baselines`` makes for them. ``--methods "time,BARO"``
or ``--what incidents`` or ``--noises gaussian`` run only some.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments import runner
from latentdo import LatentInterventionDAG, metrics
from latentdo.scm import Service, simulate_service

HMM = Path(__file__).parent / "baselines" / "hidden_markov.py"
BARO = Path(__file__).parent / "baselines" / "root_cause.py"
INTERPRETER = "LATENTDO_RIVALS_PYTHON"  # not part of a cell: where it lies does not matter
OVERLAP = 0.5
USUAL_ROWS = 600
"""Quiet minutes before an incident that BARO compares with, at most."""


def cell(
    what: str, method: str, noise: str, seed: int, n_minutes: int, n_metrics: int, **more: Any
) -> Mapping[str, Any]:
    """Fit one service."""
    quiet = what != "incidents"
    service = simulate_service(
        n_metrics=n_metrics,
        n_minutes=n_minutes,
        n_incidents=0 if quiet else more.get("n_incidents", 12),
        n_causes=min(6, n_metrics),
        random_state=seed,
        noise=noise,
        season=0.0 if what == "quiet" else 1.0,
    )
    if method == "BARO":
        return {"root_first": _ranked_first(service, os.environ[INTERPRETER])}
    est = LatentInterventionDAG()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == "time":
            est.fit(service.X, time=service.time)
        elif method == "no time":
            est.fit(service.X)
        else:
            est.fit(service.X, regimes=_states(service, os.environ[INTERPRETER]))
    truth, found = service.adjacency.to_numpy(), est.adjacency_.to_numpy()
    return {
        "regimes": est.n_regimes_,
        "hamming": metrics.hamming_distance(truth, found),
        "essential": metrics.essential_graph_distance(truth, found),
        **({} if quiet else _found(service, est)),
        "density_found": est.result_.density,
        "fit_seconds": est.result_.seconds,
    }


def ask(python: str, script: Path, *given: NDArray[Any]) -> NDArray[np.int64]:
    """What a script in another environment answers: arrays go to files, and one comes back."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{place}.npy" for place in range(len(given) + 1)]
        for file, array in zip(files, given, strict=False):
            np.save(file, array)
        subprocess.run([python, str(script), *map(str, files)], check=True, capture_output=True)
        return np.asarray(np.load(files[-1]), dtype=np.int64)


def _ranked_first(service: Service, python: str) -> float:
    """Share of the incidents whose root cause BARO ranks first, if it is told when they begin and end."""
    begins = service.time.get_indexer(pd.DatetimeIndex(service.incidents["start"]))
    ends = service.time.get_indexer(pd.DatetimeIndex(service.incidents["end"])) + 1
    quiet = np.maximum(np.concatenate([[0], ends[:-1]]), begins - USUAL_ROWS)
    found = ask(python, BARO, service.X.to_numpy(), np.column_stack([quiet, begins, ends]))
    causes = [list(service.X.columns).index(name) for name in service.incidents["cause"]]
    return float(np.mean(found == np.array(causes)))


def _states(service: Service, python: str) -> list[int]:
    """States of a hidden Markov model; the commonest is called 0."""
    found = ask(python, HMM, service.X.to_numpy())
    by_size = np.argsort(-np.bincount(found), kind="stable")
    return [int(np.flatnonzero(by_size == k)[0]) for k in found]


def _found(service: Service, est: LatentInterventionDAG) -> dict[str, float]:
    """How well segments and root causes were found."""
    table = est.segments_
    if table is None:  # stretches of rows with the same regime
        regimes = est.regimes_
        begins = np.flatnonzero(np.diff(regimes, prepend=-1) != 0)
        ends = np.append(begins[1:], len(regimes)) - 1
        result = est.result_
        table = pd.DataFrame(
            [
                {
                    "start": service.time[a],
                    "end": service.time[b],
                    "targets": " ".join(result.columns[j] for j in result.ranked_targets(int(regimes[a]))),
                }
                for a, b in zip(begins, ends, strict=True)
                if regimes[a] > 0
            ],
            columns=["start", "end", "targets"],
        )
    minute = pd.Timedelta(minutes=1)
    hits, rooted = 0, 0
    for true in service.incidents.itertuples():
        shared = (table["end"].clip(upper=true.end) - table["start"].clip(lower=true.start) + minute) / minute
        union = (table["end"].clip(lower=true.end) - table["start"].clip(upper=true.start) + minute) / minute
        match = np.flatnonzero((shared / union).to_numpy(dtype=float) >= OVERLAP)
        if match.size:
            hits += 1
            rooted += table["targets"].iloc[match[0]].split(" ")[0].rstrip(",") == true.cause
    count = len(service.incidents)
    return {
        "segments": len(table),
        "f1": 2.0 * hits / (len(table) + count),
        "root_first": rooted / count,
        "ari": metrics.adjusted_rand_index(service.regimes, est.regimes_),
    }


def main() -> None:
    options = runner.arguments(__doc__, rivals_python="", what="", methods="", noises="")
    seeds = [1000] if options.smoke else runner.seeds_of(options.seeds, range(1000, 1003))
    small = {"n_minutes": 800, "n_metrics": 3} if options.smoke else {"n_minutes": 5000, "n_metrics": 8}
    large = (
        {"n_minutes": 1200, "n_metrics": 4, "n_incidents": 4}
        if options.smoke
        else {"n_minutes": 20_160, "n_metrics": 15}
    )
    noises = ["gaussian"] if options.smoke else ["gaussian", "student"]
    cells: list[dict[str, Any]] = [
        {"what": what, "method": "time", "noise": noise, "seed": seed, **small}
        for seed in seeds
        for what in ("quiet", "seasonal")
        for noise in noises
    ]
    cells += [
        {"what": "incidents", "method": "time", "noise": noise, "seed": seed, **large}
        for seed in seeds
        for noise in noises
    ]
    if options.rivals_python:
        os.environ[INTERPRETER] = options.rivals_python
        cells += [
            {"what": "incidents", "method": "BARO", "noise": noise, "seed": seed, **large}
            for seed in seeds
            for noise in noises
        ]
        rival = {"what": "incidents", "method": "hmm", "noise": noises[0]}
        cells += [{**rival, "seed": seed, **large} for seed in seeds]
    if not options.smoke:
        cells += [
            {"what": "incidents", "method": "no time", "noise": noises[0], "seed": seed, **large}
            for seed in seeds
        ]
    for key, some in (("what", options.what), ("method", options.methods), ("noise", options.noises)):
        cells = [one for one in cells if not some or one[key] in some.split(",")]
    frame = runner.run(
        "together", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh
    )
    shown = ["regimes", "hamming", "essential", "segments", "f1", "root_first", "ari", "fit_seconds"]
    shown = [name for name in shown if name in frame]
    print(f"\n{runner.machine()}; means over seeds:")
    print(frame.groupby(["what", "method", "noise"], sort=False)[shown].mean().round(3).to_string())
    quiet = frame[frame["what"] != "incidents"]
    if len(quiet):
        print(f"quiet services with one regime: {int((quiet['regimes'] == 1).sum())} of {len(quiet)}")


if __name__ == "__main__":
    main()
