"""What resampled rows say, beside what the fit itself says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from latentdo.bootstrap import BootstrapDAG
from latentdo.model.fitted import Array
from latentdo.result import FitResult

_MOST_SUPPORTED = 60


@dataclass(frozen=True, eq=False)
class Support:
    """What resampled rows say: shares of the resamples that agree.

    Parameters
    ----------
    n_resamples : int
        How often the fit was repeated.
    edges : ndarray [d, d]
        Share of the resamples with each directed edge.
    targets : ndarray [n_regimes, d], optional
        Share of the resamples in which a regime has a variable as its target.
    stability : ndarray [n_regimes], optional
        How well each regime's rows were found again, from 0 to 1.
    resample : {"half", "bootstrap"}
        Half of the rows, or as many as there are, drawn with replacement.
    """

    n_resamples: int
    edges: Array
    targets: Array | None = None
    stability: Array | None = None
    resample: str = "half"

    @classmethod
    def of(cls, bootstrap: BootstrapDAG) -> Self:
        """What a fitted bootstrap says."""
        return cls(
            n_resamples=len(bootstrap.resamples_),
            edges=bootstrap.edge_support_.to_numpy(np.float64),
            targets=bootstrap.target_support_.to_numpy(np.float64),
            stability=bootstrap.regime_stability_["stability"].to_numpy(np.float64),
            resample=bootstrap.resample,
        )


def support_tables(result: FitResult, support: Support) -> dict[str, Any]:
    """Bootstrap support beside what the fit itself says, the most supported arrows first."""
    adjacency = result.model.topology.adjacency
    shown = np.argwhere((adjacency == 1) | (support.edges >= 0.1)).tolist()
    shown.sort(key=lambda edge: -support.edges[edge[0], edge[1]])
    targets = []
    if support.targets is not None:
        for k, j in np.argwhere(result.model.topology.targets == 1):
            targets.append(
                {
                    "regime": str(result.regime_names[k]),
                    "stability": None if support.stability is None else float(support.stability[k]),
                    "target": result.columns[j],
                    "support": float(support.targets[k, j]),
                }
            )
    return {
        "n_resamples": support.n_resamples,
        "halves": support.resample == "half",
        "edges": [
            {
                "cause": result.columns[i],
                "effect": result.columns[j],
                "support": float(support.edges[i, j]),
                "reverse": float(support.edges[j, i]),
                "probability": float(result.edge_probabilities[i, j]),
                "in_graph": bool(adjacency[i, j]),
            }
            for i, j in shown[:_MOST_SUPPORTED]
        ],
        "targets": targets,
    }
