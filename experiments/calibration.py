"""Edge probabilities: worth more than the base rate and than the hard answer, and honest (or not).

``python -m experiments.calibration`` fits small tables, where graphs are uncertain, and pools all ordered pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments import runner
from latentdo import LatentInterventionDAG, metrics, simulate

Array = NDArray[np.float64]
SETTINGS = (("paper", 600), ("paper", 2000), ("dcdi", 600), ("dcdi", 2000))


def cell(preset: str, n_samples: int, seed: int) -> Mapping[str, Any]:
    """Fit one small table; truth and probabilities are stored as text (a leading letter keeps zeros alive)."""
    separation = 4.0 if preset == "dcdi" else None
    data = simulate(8, 1, n_samples=n_samples, preset=preset, separation=separation, random_state=seed)
    model = LatentInterventionDAG(density="linear", intervention="perfect", max_regimes=12).fit(data.X)
    off = ~np.eye(8, dtype=bool)
    return {
        "truth": "b" + "".join(map(str, data.adjacency.to_numpy()[off].astype(int))),
        "hard": "b" + "".join(map(str, model.adjacency_.to_numpy()[off].astype(int))),
        "probabilities": " ".join(f"{p:.4f}" for p in model.edge_probabilities_.to_numpy()[off]),
        "hamming": metrics.hamming_distance(data.adjacency, model.adjacency_),
        "fit_seconds": model.result_.seconds,
    }


def pooled(frame: pd.DataFrame) -> tuple[Array, Array, Array]:
    """Truth, graph and probability of every ordered pair of all tables."""
    truth, hard = (
        np.concatenate([np.array(list(text), dtype=float) for text in frame[name].str[1:]])
        for name in ("truth", "hard")
    )
    return (
        truth,
        hard,
        np.concatenate([np.array(text.split(), dtype=float) for text in frame["probabilities"]]),
    )


def main() -> None:
    options = runner.arguments(__doc__)
    seeds = [1000, 1001] if options.smoke else runner.seeds_of(options.seeds, range(25))
    cells = [
        {"preset": preset, "n_samples": n, "seed": seed}
        for preset, n in (SETTINGS[:1] if options.smoke else SETTINGS)
        for seed in seeds
    ]
    frame = runner.run(
        "calibration", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh
    )
    truth, hard, probability = pooled(frame)
    print(
        f"\n{runner.machine()}; {len(frame)} tables, {truth.size} ordered pairs, {truth.mean():.3f} are edges"
    )
    print(f"Brier skill over the base rate {metrics.brier_skill(truth, probability):.3f}")
    print(f"Brier skill over the hard answer {metrics.brier_skill(truth, probability, reference=hard):.3f}")
    print(f"log-score skill over the base rate {metrics.log_score_skill(truth, probability):.3f}")
    print(
        f"log-score skill over the hard answer {metrics.log_score_skill(truth, probability, reference=hard):.3f}"
    )
    print(metrics.reliability(truth, probability))


if __name__ == "__main__":
    main()
