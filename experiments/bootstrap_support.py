"""Edge probabilities of one fit beside bootstrap support: which tells true edges better, and which is honest.

``python -m experiments.bootstrap_support`` fits small linear tables, with and without labels, and resamples of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments import runner
from latentdo import BootstrapDAG, LatentInterventionDAG, metrics, simulate

KINDS = ("half", "bootstrap")
SETTINGS = (("labelled", 60, range(20), 20), ("latent", 150, range(4), 10))
"""What is known, rows, seeds and resamples: fits without labels take a hundred times as long."""


def cell(labels: str, n_samples: int, resample: str, n_resamples: int, seed: int) -> Mapping[str, Any]:
    """Fit and resample one small table; matrices are stored as text (a leading letter keeps zeros alive)."""
    data = simulate(5, 1, n_samples=n_samples, preset="dcdi", separation=4.0, random_state=seed)
    estimator = LatentInterventionDAG(density="linear", intervention="perfect", max_regimes=8, n_init=1)
    known = data.regimes if labels == "labelled" else None
    boot = BootstrapDAG(estimator, n_resamples, resample=resample).fit(data.X, regimes=known)
    off = ~np.eye(5, dtype=bool)
    found = np.repeat(boot.n_regimes_.index.to_numpy(), boot.n_regimes_.to_numpy())
    return {
        "truth": "b" + "".join(map(str, data.adjacency.to_numpy()[off].astype(int))),
        "hard": "b" + "".join(map(str, boot.estimator_.adjacency_.to_numpy()[off].astype(int))),
        "consensus": "b" + "".join(map(str, boot.adjacency_.to_numpy()[off].astype(int))),
        "probabilities": " ".join(f"{p:.4f}" for p in boot.estimator_.edge_probabilities_.to_numpy()[off]),
        "support": " ".join(f"{p:.4f}" for p in boot.edge_support_.to_numpy()[off]),
        "true_regimes": data.n_regimes,
        "regimes": boot.estimator_.n_regimes_,
        "mean_regimes": float(found.mean()),
        "mean_stability": float(boot.regime_stability_["stability"].mean()),
    }


def _numbers(column: pd.Series, *, bits: bool = False) -> np.ndarray:
    return np.concatenate(
        [np.array(list(text[1:]) if bits else text.split(), dtype=float) for text in column]
    )


def main() -> None:
    options = runner.arguments(__doc__)
    cells = [
        {
            "labels": labels,
            "n_samples": n,
            "resample": kind,
            "n_resamples": 2 if options.smoke else count,
            "seed": seed,
        }
        for labels, n, seeds, count in (SETTINGS[:1] if options.smoke else SETTINGS)
        for kind in KINDS
        for seed in ([1000] if options.smoke else runner.seeds_of(options.seeds, seeds))
    ]
    frame = runner.run(
        "bootstrap_support", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh
    )
    print(f"\n{runner.machine()}; {len(frame)} cells")
    for (labels, kind), part in frame.groupby(["labels", "resample"]):
        truth, hard, consensus = (_numbers(part[c], bits=True) for c in ("truth", "hard", "consensus"))
        print(f"\n{labels}, {kind}: {len(part)} tables, {truth.size} pairs, {int(truth.sum())} edges")
        for name, graph in (("best graph", hard), ("consensus", consensus)):
            print(f"  {name:<12} Hamming distance {np.abs(graph - truth).sum() / len(part):.2f}")
        for name, column in (("probability", "probabilities"), ("support", "support")):
            values = _numbers(part[column])
            print(
                f"  {name:<12} Brier skill {metrics.brier_skill(truth, values):.3f}, log-score skill "
                f"{metrics.log_score_skill(truth, values):.3f}, of {int((values > 0.9).sum())} above 0.9 true "
                f"{truth[values > 0.9].mean():.2f}, of {int(((values > 0.1) & (values <= 0.9)).sum())} between true "
                f"{truth[(values > 0.1) & (values <= 0.9)].mean():.2f} (mean value "
                f"{values[(values > 0.1) & (values <= 0.9)].mean():.2f})"
            )
        print(
            f"  regimes: true {part['true_regimes'].mean():.1f}, fit {part['regimes'].mean():.1f}, resamples "
            f"{part['mean_regimes'].mean():.1f}, stability {part['mean_stability'].mean():.2f}"
        )


if __name__ == "__main__":
    main()
