"""The graph that is shown and how sure it is, from one and the same score on all rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from latentdo.graphs import reachability
from latentdo.model.fitted import Array, FittedModel
from latentdo.solvers.gradient.local_search import Bools, LinearScore, climb
from latentdo.solvers.gradient.polish import fit_linear, moments_of


def settle(
    model: FittedModel,
    z: Array,
    labels: NDArray[np.int64],
    known: Array,
    edge_log_odds: Array,
    allowed: Bools,
    required: Bools,
    *,
    perfect: bool,
    max_rounds: int = 5,
) -> tuple[FittedModel, Array]:
    """Climb to the nearest optimum on all rows, and compare every pair of variables there.

    Structure was found on the training rows; a probability taken from other rows could contradict it. So the last
    climb and the probabilities share their moments, and the graph is a local optimum of what the probabilities measure.

    Parameters
    ----------
    model : FittedModel
        What training and search found.
    z, labels, known, edge_log_odds, allowed, required, perfect
        As for :func:`.polish.polish`, for all rows.
    max_rounds : int
        Alternations of climb and responsibilities at most.

    Returns
    -------
    model : FittedModel
        At its maximum-likelihood mechanisms.
    edges : ndarray [d, d]
        Probability of every directed edge, see :func:`pair_probabilities`.
    """
    for _ in range(max_rounds):
        before = model.topology
        moments = moments_of(z, model.assign(z, labels).responsibilities)
        score = LinearScore(moments, known, edge_log_odds, perfect)
        adjacency, targets, moves = climb(score, before.adjacency, allowed, required)
        model = fit_linear(moments, adjacency, targets, perfect=perfect)
        if moves == 0 and np.array_equal(targets, before.targets):
            break
    return model, pair_probabilities(score, adjacency, allowed, required)


def pair_probabilities(
    score: LinearScore, adjacency: NDArray[np.int8], allowed: Bools, required: Bools
) -> Array:
    r"""Probability of every directed edge given the rest of the graph, ``[d, d]``.

    For two variables the three states "no edge", ``i -> j`` and ``j -> i`` are compared by the penalised score,
    with the targets of both variables chosen anew in each; states that are forbidden or close a cycle are impossible.
    In a graph that no single change improves, the state shown is the most probable of the three. The rest of the graph
    is held fixed, so doubt about whole orders is understated.
    """
    graph = adjacency.astype(bool)
    d = len(graph)
    everywhere = reachability(adjacency).astype(bool)
    out = np.zeros((d, d))

    def value(j: int, parent: int, *, present: bool) -> float:
        column = graph[:, j].copy()
        column[parent] = present
        return score.family(j, tuple(int(i) for i in np.flatnonzero(column)))[0]

    for i, j in combinations(range(d), 2):
        reach = everywhere
        if graph[i, j] or graph[j, i]:
            cut = adjacency.copy()
            cut[i, j] = cut[j, i] = 0
            reach = reachability(cut).astype(bool)
        gain = np.full(3, -np.inf)
        if not (required[i, j] or required[j, i]):
            gain[0] = 0.0
        for place, (a, b) in ((1, (i, j)), (2, (j, i))):
            if allowed[a, b] and not reach[b, a] and not required[b, a]:
                gain[place] = value(b, a, present=True) - value(b, a, present=False)
        gain = np.nan_to_num(gain, nan=-np.inf, neginf=-np.inf)
        if np.isfinite(gain.max()):
            weights = np.exp(gain - gain.max())
            out[i, j], out[j, i] = weights[1:] / weights.sum()
    return out
