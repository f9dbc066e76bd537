"""What it costs to know that rows belong together: fits with groups, time or weights, as ratios to the fit without.

``python -m benchmarks.together`` takes some six minutes; ``--time`` shows only what concerns rows in order of time, and
``--rows`` adds how the E-step grows up to a million rows. Set ``OMP_NUM_THREADS=1``: all figures are processor seconds
of one thread, and each ratio is of two fits to the same table, one after the other.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.search_speed import seconds
from latentdo import LatentInterventionDAG, metrics, simulate
from latentdo.model.assignment import SEPARATE, Groups, Prior, Units, Weighted
from latentdo.model.series import Series
from latentdo.scm import Simulation

SEEDS = (1000, 1001, 1002)
ARGUMENTS: dict[str, dict[str, Any]] = {
    "lines, Gaussian noise": {"density": "linear", "noise": "gaussian"},
    "lines, any noise": {"density": "linear", "noise": "any"},
}


def table(kind: str, seed: int) -> tuple[Simulation, dict[str, Any]]:
    """Rows that belong together in some way, and how a fit is told."""
    shape: dict[str, Any] = {"n_variables": 8, "n_samples": 4000, "preset": "dcdi", "separation": 3.0}
    if kind == "groups":
        data = simulate(**shape, random_state=seed, group_size=20)
        return data, {"groups": data.groups}
    if kind == "time":
        data = simulate(**shape, random_state=seed, mean_duration=20)
        return data, {"time": np.arange(len(data.X))}
    data = simulate(**shape, random_state=seed)
    return data, {"sample_weight": np.random.default_rng(seed).uniform(0.5, 1.5, len(data.X))}


def against_nothing(kinds: Sequence[str]) -> None:
    print("8 variables, 4000 rows (goal: at most 1.3 times the fit without)")
    for name, arguments in ARGUMENTS.items():
        for kind in kinds:
            ratios = []
            for seed in SEEDS:
                data, told = table(kind, seed)
                plain, informed = (LatentInterventionDAG(**arguments) for _ in range(2))
                if seed == SEEDS[0]:  # compile
                    small = {key: values[:400] for key, values in told.items()}
                    informed.fit(data.X[:400], **small)
                    plain.fit(data.X[:400])
                without = seconds(lambda m=plain, x=data.X: m.fit(x))
                took = seconds(lambda m=informed, x=data.X, t=told: m.fit(x, **t))
                ratios.append(took / without)
                distances = [
                    metrics.hamming_distance(data.adjacency, one.adjacency_) for one in (plain, informed)
                ]
                print(
                    f"  {name:<22} {kind:<13} seed {seed}: {without:6.1f} s without, {took:6.1f} s with "
                    f"({took / without:.2f}); distance {distances[0]}, {distances[1]}; regimes "
                    f"{plain.n_regimes_}, {informed.n_regimes_}",
                    flush=True,
                )
            print(f"  {name:<22} {kind:<13} geometric mean {np.exp(np.mean(np.log(ratios))):.2f}")


def against_rows() -> None:
    print("one E-step, 8 regimes, as a ratio to rows on their own")
    prior = Prior(np.full(8, 0.125), 20.0)
    for n in (10_000, 100_000, 1_000_000):
        density = np.random.default_rng(0).normal(size=(n, 8))
        kinds: dict[str, Units] = {
            "alone": SEPARATE,
            "weights": Weighted(np.ones(n)),
            "groups": Groups.of(np.arange(n) // 20),
            "time": Series.by_time(np.arange(float(n)), None, 10),
        }
        took = {}
        for name, units in kinds.items():
            units.assign(density.copy(), prior)  # compile, and whatever is kept
            began = time.process_time()
            units.assign(density.copy(), prior)
            took[name] = time.process_time() - began
        said = "  ".join(f"{name} {value / took['alone']:.2f}" for name, value in took.items())
        print(f"  n={n:>9,}  {took['alone'] * 1e3:7.1f} ms alone; {said}")


def main(*, rows: bool = False, only_time: bool = False) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if rows:
            against_rows()
        against_nothing(("time",) if only_time else ("groups", "time", "sample_weight"))


if __name__ == "__main__":
    main(rows="--rows" in sys.argv, only_time="--time" in sys.argv)
