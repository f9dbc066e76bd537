"""What is stored of a fit on simulated data: distances to the truth, assignments, targets, time."""

from __future__ import annotations

from typing import Any

from latentdo import LatentInterventionDAG, metrics
from latentdo.scm import Simulation


def outcome(data: Simulation, model: LatentInterventionDAG) -> dict[str, Any]:
    """Columns that every experiment on simulated data shares; ``true_edges`` is the distance of the empty graph."""
    targets = metrics.target_scores(data.targets, model.targets_, data.regimes, model.regimes_)
    return {
        "hamming": metrics.hamming_distance(data.adjacency, model.adjacency_),
        "shd": metrics.shd(data.adjacency, model.adjacency_),
        "true_edges": int(data.adjacency.to_numpy().sum()),
        "edges": int(model.adjacency_.to_numpy().sum()),
        "ari": metrics.adjusted_rand_index(data.regimes, model.regimes_),
        "target_f1": targets.f1,
        "regimes": model.n_regimes_,
        "fit_seconds": round(model.result_.seconds, 2),
    }


def given(data: Simulation, variant: str) -> dict[str, Any]:
    """Arguments of ``fit`` by which a column of the paper's table differs from another."""
    known: dict[str, Any] = {}
    if variant in {"unknown", "known", "oracle"}:
        known["regimes"] = data.regimes
    if variant in {"known", "oracle"}:
        known["targets"] = data.targets
    return known
