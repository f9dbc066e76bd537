"""The gate of a refactoring: the same tables before and after, with evidence, distance and processor time.

``python -m experiments.gate --store before`` fits development tables (seeds from 1000 up, never those of the results)
of every kind that the package is measured on; the same with ``--store after``, and then
``python -m experiments.gate --compare before,after`` prints what changed. ``--cases quick`` takes a minute or two.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments import false_alarms, runner
from experiments.outcome import given
from experiments.paper import TABLE_1
from latentdo import LatentInterventionDAG, load_sachs, metrics, simulate
from latentdo.persistence import load_result
from latentdo.scm import Simulation

FIRST_SEED = 1000
SMALL = {"n_variables": 5, "n_samples": 1500}


def table1(seed: int, intervention: str, mechanism: str, edges: int) -> dict[str, Any]:
    """A row of Table 1 without labels, with the matching family."""
    data = simulate(10, edges, mechanism, intervention, 10_000, random_state=seed)
    density = "flow" if mechanism == "nonadditive" else mechanism
    kind = "imperfect" if intervention == "imperfect" else "perfect"
    return _fit(data, LatentInterventionDAG(density, kind))


def overlap(seed: int, separation: float) -> dict[str, Any]:
    """Regimes that overlap."""
    data = simulate(10, 1, n_samples=10_000, preset="dcdi", separation=separation, random_state=seed)
    return _fit(data, LatentInterventionDAG("linear", "perfect"))


def larger(seed: int, edges: int) -> dict[str, Any]:
    """Twenty variables."""
    data = simulate(20, edges, n_samples=20_000, random_state=seed)
    return _fit(data, LatentInterventionDAG("linear", "perfect", max_regimes=data.n_regimes + 5))


def pairs(seed: int) -> dict[str, Any]:
    """A cause-effect pair."""
    data = simulate(preset="paper-pairs", random_state=seed)
    return _fit(data, LatentInterventionDAG("linear", "perfect", max_regimes=6))


def quiet(seed: int, noise: str) -> dict[str, Any]:
    """A table without interventions; ``regimes`` should be 1."""
    return dict(false_alarms.cell(noise, seed, 5000, 10))


def labelled(seed: int, mechanism: str, edges: int) -> dict[str, Any]:
    """True regimes given, targets not."""
    data = simulate(10, edges, mechanism, n_samples=10_000, random_state=seed)
    return _fit(data, LatentInterventionDAG(mechanism, "perfect"), **given(data, "unknown"))


def cytometry(seed: int, density: str) -> dict[str, Any]:  # noqa: ARG001  (there is one table)
    """Flow cytometry without labels; the distance is the SHD to the graph of 17 edges."""
    data = load_sachs("dcdi")
    model = LatentInterventionDAG(density, "imperfect").fit(data.X)
    return _scores(model) | {
        "hamming": metrics.shd(load_sachs("dcdi", "17").adjacency, model.adjacency_),
        "ari": metrics.adjusted_rand_index(data.regimes, model.regimes_),
    }


def streamed(seed: int) -> dict[str, Any]:
    """Rows that are read in parts."""
    data = simulate(10, 1, n_samples=60_000, random_state=seed)
    with tempfile.TemporaryDirectory() as folder:
        data.X.to_parquet(Path(folder) / "rows.parquet", row_group_size=20_000)
        model = LatentInterventionDAG("linear", "perfect").fit_stream(Path(folder) / "rows.parquet")
    return _scores(model) | {"hamming": metrics.hamming_distance(data.adjacency, model.adjacency_)}


def torchrun(seed: int) -> dict[str, Any]:
    """Two processes that share the rows."""
    data = simulate(10, 1, n_samples=60_000, random_state=seed)
    with tempfile.TemporaryDirectory() as folder:
        data.X.to_csv(Path(folder) / "rows.csv", index=False)
        words = ["-m", "torch.distributed.run", "--nproc-per-node=2", "-m", "latentdo", "fit"]
        words += [f"{folder}/rows.csv", "--out", f"{folder}/out", "--density", "linear", "--json"]
        subprocess.run([sys.executable, *words], check=True, capture_output=True)
        result = load_result(Path(folder) / "out" / "model.safetensors")
    return {
        "hamming": metrics.hamming_distance(data.adjacency, result.adjacency),
        "evidence": result.evidence,
        "regimes": result.model.topology.n_regimes,
    }


def quick(seed: int, **options: Any) -> dict[str, Any]:
    """A small table with any options of the estimator; regimes given if ``variant`` is not latent."""
    variant = options.pop("variant", "latent")
    mechanism = {"flow": "nonadditive", "auto": "nonlinear"}.get(options["density"], options["density"])
    data = simulate(**SMALL, mechanism=mechanism, random_state=seed)
    return _fit(data, LatentInterventionDAG(**{"max_regimes": 8} | options), **given(data, variant))


def _fit(data: Simulation, model: LatentInterventionDAG, **known: Any) -> dict[str, Any]:
    model.fit(data.X, **known)
    return _scores(model) | {
        "hamming": metrics.hamming_distance(data.adjacency, model.adjacency_),
        "ari": metrics.adjusted_rand_index(data.regimes, model.regimes_),
    }


def _scores(model: LatentInterventionDAG) -> dict[str, Any]:
    return {
        "evidence": float(model.result_.evidence),
        "regimes": model.n_regimes_,
        "targets": int(np.asarray(model.targets_).sum()),
        "probabilities": float(np.asarray(model.edge_probabilities_).sum()),
    }


QUICK: dict[str, tuple[Callable[..., dict[str, Any]], dict[str, Any], int]] = {
    f"quick {name}": (quick, options, 2)
    for name, options in {
        "linear": {"density": "linear"},
        "linear perfect": {"density": "linear", "intervention": "perfect"},
        "linear unknown": {"density": "linear", "variant": "unknown"},
        "linear known": {"density": "linear", "variant": "known"},
        "nonlinear": {"density": "nonlinear"},
        "nonlinear unknown": {"density": "nonlinear", "variant": "unknown"},
        "flow": {"density": "flow"},
        "flow unknown": {"density": "flow", "variant": "unknown"},
        "auto": {"density": "auto"},
        "gradient": {"density": "linear", "solver": "gradient"},
        "gradient unknown": {"density": "linear", "solver": "gradient", "variant": "unknown"},
        "gradient nonlinear unknown": {"density": "nonlinear", "solver": "gradient", "variant": "unknown"},
        "paper known": {"density": "linear", "solver": "paper", "variant": "known"},
    }.items()
}

CASES: dict[str, tuple[Callable[..., dict[str, Any]], dict[str, Any], int]] = {
    **QUICK,
    "pairs": (pairs, {}, 20),
    **{f"quiet {noise}": (quiet, {"noise": noise}, 3) for noise in false_alarms.NOISES},
    **{
        f"table1 {row}": (
            table1,
            {"intervention": row.intervention, "mechanism": row.mechanism, "edges": row.edges_per_node},
            4,
        )
        for row in sorted(TABLE_1, key=lambda row: row.mechanism != "linear")
    },
    "labelled linear e=4": (labelled, {"mechanism": "linear", "edges": 4}, 2),
    "streamed": (streamed, {}, 1),
    "torchrun": (torchrun, {}, 1),
    **{f"overlap {s}": (overlap, {"separation": s}, 3) for s in (2.0, 4.0)},
    **{f"larger e={e}": (larger, {"edges": e}, 2) for e in (1, 4)},
    "labelled nonlinear e=1": (labelled, {"mechanism": "nonlinear", "edges": 1}, 2),
    "cytometry linear": (cytometry, {"density": "linear"}, 1),
    "cytometry flow": (cytometry, {"density": "flow"}, 1),
}
"""Every case: the function that fits it, its arguments, and how many seeds."""


def cell(case: str, seed: int) -> Mapping[str, Any]:
    """One fit, with the processor time that it took (wall time says little beside other work)."""
    function, options, _ = CASES[case]
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = function(seed, **options)
    return {**found, "processor_seconds": round(time.process_time() - began, 2)}


def compare(before: Path, after: Path) -> pd.DataFrame:
    """One line per case: mean distance before and after, largest relative change of evidence, ratio of times."""
    first, second = (
        pd.read_csv(folder / "gate.csv").set_index(["case", "seed"]) for folder in (before, after)
    )
    both = first.join(second, lsuffix="_before", rsuffix="_after", how="inner")
    both["evidence"] = (
        (both["evidence_after"] - both["evidence_before"]) / both["evidence_before"].abs()
    ).abs()
    groups = both.groupby("case", sort=False)
    return pd.DataFrame(
        {
            "graphs": groups.size(),
            **{
                f"{name} {when}": groups[f"{name}_{when}"].mean()
                for name in ("hamming", "ari", "regimes")
                for when in ("before", "after")
            },
            "largest change of evidence": groups["evidence"].max(),
            "time ratio": groups["processor_seconds_after"].sum() / groups["processor_seconds_before"].sum(),
        }
    )


def main() -> None:
    options = runner.arguments(__doc__, cases="", compare="")
    if options.compare:
        print(compare(*map(Path, options.compare.split(","))).round(9).to_string())
        return
    chosen = [case for case in CASES if any(case.startswith(part) for part in options.cases.split(","))]
    cells = [
        {"case": case, "seed": FIRST_SEED + i}
        for case in (list(QUICK)[:1] if options.smoke else chosen)
        for i in range(1 if options.smoke else CASES[case][2])
    ]
    frame = runner.run("gate", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh)
    print(f"\n{runner.machine()}; seeds {FIRST_SEED} and up")
    columns = ["hamming", "ari", "regimes", "processor_seconds"]
    print(frame.groupby("case", sort=False)[columns].mean().round(2).to_string())


if __name__ == "__main__":
    main()
