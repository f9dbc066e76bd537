"""What many refits say of edges and regimes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latentdo.diagnosis.refits import Refit
from latentdo.graphs.equivalence import essential_graph
from latentdo.model.assignment import SEPARATE, Groups
from latentdo.model.fitted import Array, FittedModel
from latentdo.result import FitResult

_CONFUSION_ROWS = 2000


def confusion(model: FittedModel, rng: np.random.Generator, groups: NDArray[np.int64] | None = None) -> Array:
    """Share of the rows of each regime that the Bayes-optimal assignment gives to each, ``[n_regimes, n_regimes]``.

    Rows that were fitted in ``groups [n]`` are drawn in groups of such sizes.
    """
    n_regimes = model.topology.n_regimes
    shares = np.zeros((n_regimes, n_regimes))
    for k in np.flatnonzero(model.topology.weights > 0):
        rows = model.sample(_CONFUSION_ROWS, int(k), rng)
        units = SEPARATE
        if groups is not None:
            sizes = rng.choice(np.unique(groups, return_counts=True)[1], _CONFUSION_ROWS)
            units = Groups.of(np.repeat(np.arange(_CONFUSION_ROWS), sizes)[:_CONFUSION_ROWS])
        best = model.responsibilities(rows, units).argmax(axis=1)
        shares[k] = np.bincount(best, minlength=n_regimes) / _CONFUSION_ROWS
    return shares


def edge_tables(result: FitResult, refits: Sequence[Refit]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What became of the fitted edges, and which others appeared."""
    topology = result.model.topology
    share = np.mean([r.adjacency for r in refits], axis=0)
    essential = essential_graph(topology.adjacency, topology.targets[topology.weights > 0])
    names = result.columns
    edges = [
        {
            "cause": names[i],
            "effect": names[j],
            "found": float(share[i, j]),
            "reversed": float(share[j, i]),
            "missing": float(max(1.0 - share[i, j] - share[j, i], 0.0)),
            "open": bool(essential[j, i]),
        }
        for i, j in np.argwhere(topology.adjacency)
    ]
    connected = topology.adjacency | topology.adjacency.T
    extra = [
        {"cause": names[i], "effect": names[j], "found": float(share[i, j])}
        for i, j in np.argwhere((share > 0) & (connected == 0))
    ]
    table = pd.DataFrame(edges, columns=["cause", "effect", "found", "reversed", "missing", "open"])
    others = pd.DataFrame(extra, columns=["cause", "effect", "found"])
    return (
        table.astype({"open": bool}).sort_values("found", kind="stable", ignore_index=True),
        others.sort_values("found", ascending=False, kind="stable", ignore_index=True),
    )


def regime_tables(
    result: FitResult, refits: Sequence[Refit], confused: Array
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """How well each regime is recognised and found again, and how close each pair is."""
    names, weights = result.regime_names, result.model.topology.weights
    present = np.flatnonzero(weights > 0)
    refound = np.array([r.refound for r in refits])[:, present]
    drawn = ~np.isnan(refound)
    mean = np.where(drawn, refound, 0.0).sum(axis=0) / np.maximum(drawn.sum(axis=0), 1)
    regimes = pd.DataFrame(
        {"weight": weights[present], "recognised": confused[present, present], "refound": mean},
        index=pd.Index([names[k] for k in present], name="regime", dtype=object),
    )
    records = [
        {
            "first": names[a],
            "second": names[b],
            "confused": float(max(confused[a, b], confused[b, a])),
            "merged": float(np.mean([r.home[a] == r.home[b] >= 0 for r in refits])),
        }
        for a, b in combinations(present, 2)
    ]
    pairs = pd.DataFrame(records, columns=["first", "second", "confused", "merged"])
    pairs = pairs.sort_values(["confused", "merged"], ascending=False, kind="stable", ignore_index=True)
    return regimes, pairs
