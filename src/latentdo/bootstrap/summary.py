"""What the resamples say together, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latentdo.bootstrap.consensus import consensus_dag
from latentdo.bootstrap.resample import Resample
from latentdo.graphs import reachability
from latentdo.result import FitResult

LEAST_PROBABILITY: Final = 0.01
"""Of an edge, by the fit to all rows: below, it is no part of the consensus, however often it returns."""


@dataclass(frozen=True, eq=False)
class Summary:
    """Tables; see the attributes of :class:`~latentdo.BootstrapDAG`, which have these names and an underscore."""

    edge_support: pd.DataFrame
    direction_support: pd.DataFrame
    path_support: pd.DataFrame
    target_support: pd.DataFrame
    regime_stability: pd.DataFrame
    n_regimes: pd.Series[int]
    adjacency: pd.DataFrame
    edges: pd.DataFrame


def summarise(result: FitResult, resamples: Sequence[Resample], threshold: float) -> Summary:
    """Counts over the resamples.

    Parameters
    ----------
    result : FitResult
        The fit to all rows.
    resamples : sequence of Resample
        At least one.
    threshold : float
        Support above which an edge enters the consensus, if the fit to all rows does not rule it out.
    """
    names, regimes = list(result.columns), list(result.regime_names)

    def square(values: NDArray[Any]) -> pd.DataFrame:
        return pd.DataFrame(values, index=names, columns=names)

    graphs = np.array([r.adjacency for r in resamples], dtype=np.float64)
    support = graphs.mean(axis=0)
    connected = support + support.T
    with np.errstate(invalid="ignore"):
        direction = np.where(connected > 0, support / connected, np.nan)
    overlap = np.array([r.overlap for r in resamples])
    # Half the rows may show what all of them speak against: support says what returns, not whether it is there.
    believable = result.edge_probabilities >= LEAST_PROBABILITY
    consensus = consensus_dag(np.where(believable, support, 0.0), threshold)
    counts = pd.Series([r.n_regimes for r in resamples], name="resamples")
    stability = {"stability": overlap.mean(axis=0), "found": (overlap > 0.5).mean(axis=0)}
    targets = np.mean([r.targets for r in resamples], axis=0)
    return Summary(
        edge_support=square(support),
        direction_support=square(direction),
        path_support=square(np.mean([reachability(r.adjacency) for r in resamples], axis=0)),
        target_support=pd.DataFrame(targets, index=regimes, columns=names),
        regime_stability=pd.DataFrame(stability, index=regimes),
        n_regimes=counts.value_counts().sort_index().rename_axis("regimes"),
        adjacency=square(consensus),
        edges=_edges(result, support, direction, consensus),
    )


def _edges(
    result: FitResult,
    support: NDArray[np.float64],
    direction: NDArray[np.float64],
    consensus: NDArray[np.int64],
) -> pd.DataFrame:
    """Every edge that occurred, the best supported first."""
    single = result.model.topology.adjacency
    records = [
        {
            "cause": result.columns[i],
            "effect": result.columns[j],
            "support": support[i, j],
            "direction": direction[i, j],
            "probability": result.edge_probabilities[i, j],
            "best_graph": bool(single[i, j]),
            "consensus": bool(consensus[i, j]),
        }
        for i, j in np.argwhere((support > 0) | (single > 0))
    ]
    columns = ["cause", "effect", "support", "direction", "probability", "best_graph", "consensus"]
    table = pd.DataFrame(records, columns=columns)
    return table.sort_values("support", ascending=False, kind="stable", ignore_index=True)
