"""Random small fits for as long as one likes: no crash, no NaN, flat memory. ``python -m benchmarks.soak [minutes]``.

Sizes, graphs, regimes, labels, options and nastiness are drawn anew for every fit; a failure prints the seed that
repeats it (``python -m benchmarks.soak --seed 123``). Memory is the resident size of the process after every fit.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from latentdo import LatentInterventionDAG, simulate


def one(seed: int) -> str:
    """One random fit, checked, saved and loaded; what it was."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 14)), int(rng.integers(5, 1500))
    n_regimes = int(rng.integers(1, min(d, 5) + 2))
    data = simulate(
        n_variables=d,
        n_samples=n,
        n_regimes=n_regimes,
        edges_per_node=float(rng.choice([0.5, 1.0, 2.0])) if d > 4 else 0.25 * (d - 1),
        intervention=str(rng.choice(["stochastic", "imperfect", "atomic"])),
        random_state=seed,
    )
    X, n = data.X.copy(), len(data.X)
    if rng.random() < 0.2:
        X.iloc[int(rng.integers(n)), int(rng.integers(d))] *= 10.0 ** rng.uniform(2, 12)
    if rng.random() < 0.1 and d > 1:
        X.iloc[:, -1] = X.iloc[:, 0] * 2.0
    X = X.loc[:, X.nunique() > 1]
    if X.shape[1] == 0:
        return "nothing varies"
    known = {}
    if rng.random() < 0.4:
        labels = np.where(rng.random(n) < rng.random(), data.regimes, -1)
        known["regimes"] = labels
    est = LatentInterventionDAG(
        intervention=str(rng.choice(["auto", "perfect", "imperfect"])),
        max_regimes=int(rng.integers(n_regimes, 9)),
        n_init=int(rng.integers(1, 3)),
        transform=str(rng.choice(["none", "none", "rank-gaussian"])),
        random_state=seed,
    ).fit(X, **known)
    numbers = (
        est.responsibilities_,
        est.edge_probabilities_,
        est.target_probabilities_,
        est.score_samples(X),
    )
    assert all(np.isfinite(np.asarray(part)).all() for part in numbers), "not finite"
    with tempfile.TemporaryDirectory() as folder:
        est.save(Path(folder) / "model")
        again = LatentInterventionDAG.load(Path(folder) / "model")
        assert np.array_equal(again.predict_proba(X), est.predict_proba(X)), "changed by saving"
    return f"{n} x {X.shape[1]}, {est.n_regimes_} regimes"


def resident_mebibytes() -> float:
    """Memory that the process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main(minutes: float) -> int:
    began, memory, failures, slowest = time.monotonic(), [], [], 0.0
    seed, next_line = 0, 0.0
    while (elapsed := time.monotonic() - began) < 60 * minutes:
        started = time.process_time()
        try:
            one(seed)
        except Exception as error:  # a soak counts failures, and goes on
            failures.append(f"seed {seed}: {type(error).__name__}: {error}")
            print(f"  {failures[-1]}", flush=True)
        slowest = max(slowest, time.process_time() - started)
        gc.collect()
        memory.append(resident_mebibytes())
        seed += 1
        if elapsed >= next_line:
            print(f"  {elapsed / 60:5.1f} min  {seed:5d} fits  {memory[-1]:6.0f} MiB", flush=True)
            next_line += 60
    third = max(len(memory) // 3, 1)
    first, last = np.median(memory[third : 2 * third]), np.median(memory[-third:])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{seed} fits in {minutes:g} minutes, {len(failures)} failures, slowest {slowest:.1f} s; memory: median of the "
        f"second third {first:.0f} MiB, of the last third {last:.0f} MiB, peak {peak:.0f} MiB"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("minutes", type=float, nargs="?", default=20.0)
    parser.add_argument("--seed", type=int, help="repeat one fit")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.seed is not None:
        print(one(given.seed))
    else:
        raise SystemExit(main(given.minutes))
