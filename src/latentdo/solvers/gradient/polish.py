"""Expectation-maximisation around the local search: the last stage of a linear fit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latentdo.model.fitted import Array, FittedModel, Topology, own_mechanisms
from latentdo.model.mechanisms import LinearMechanism, Noise
from latentdo.solvers.gradient.local_search import Bools, LinearScore, search

_FLOOR = 1e-10


def moments_of(z: Array, q: Array) -> Array:
    """Moment matrices ``[n_regimes, d + 1, d + 1]`` of rows under responsibilities, constant first."""
    rows = np.concatenate([np.ones((len(z), 1)), z], axis=1)
    return np.stack([rows.T @ (q[:, k : k + 1] * rows) for k in range(q.shape[1])])


def fit_linear(
    moments: Array, adjacency: NDArray[np.int8], targets: NDArray[np.int8], *, perfect: bool
) -> FittedModel:
    """Maximum-likelihood mechanisms of a fixed DAG and fixed targets.

    Own mechanisms of imperfect interventions use the parents where the penalised score says so.
    """
    d = len(adjacency)
    counts = moments[:, 0, 0]
    half_log_n = 0.5 * np.log(counts.sum())
    reference, own = [], []
    for j in range(d):
        pooled = moments[targets[:, j] == 0].sum(axis=0)
        coefficients, variance = _regression(pooled, j, np.flatnonzero(adjacency[:, j]))
        reference.append(LinearMechanism(coefficients, Noise.gaussian(variance)))
    for k, j in np.argwhere(targets):
        coefficients, variance = _regression(moments[k], j, np.zeros(0, dtype=np.int64))
        parents = np.flatnonzero(adjacency[:, j])
        if not perfect and len(parents):
            richer, smaller = _regression(moments[k], j, parents)
            if 0.5 * counts[k] * np.log(variance / smaller) > half_log_n * len(parents):
                coefficients, variance = richer, smaller
        own.append(LinearMechanism(coefficients, Noise.gaussian(variance)))
    weights = counts / counts.sum()
    topology = Topology(adjacency.astype(np.int8), targets.astype(np.int8), weights)
    return FittedModel(topology, tuple(reference), own_mechanisms(topology.targets, own))


def _regression(second: Array, j: int, parents: NDArray[np.int64]) -> tuple[Array, float]:
    """Coefficients ``[d + 1]`` and noise variance of one regression from its moments."""
    used = np.concatenate([[0], 1 + parents])
    gram = second[np.ix_(used, used)]
    gram = gram + np.diag(1e-10 * np.diag(gram) + 1e-9)
    solution = np.linalg.solve(gram, second[used, 1 + j])
    contrast = np.zeros(len(second))
    contrast[used] = -solution
    contrast[1 + j] = 1.0
    residual = max(float(contrast @ second @ contrast), 0.0)
    return solution, (residual + _FLOOR) / max(float(second[0, 0]), 1e-9)


def polish(
    model: FittedModel,
    z: Array,
    labels: NDArray[np.int64],
    known: Array,
    edge_log_odds: Array,
    allowed: Bools,
    required: Bools,
    *,
    perfect: bool,
    rng: np.random.Generator,
    n_kicks: int | None = None,
    max_rounds: int = 8,
) -> tuple[FittedModel, int]:
    """Alternate local search and responsibilities until the structure stays the same.

    Parameters
    ----------
    model : FittedModel
        Where to start.
    z, labels : ndarray [n, d], [n]
        Training rows and their known regimes (-1 elsewhere).
    known : ndarray [n_regimes, d]
        Known targets, NaN where unknown.
    edge_log_odds, allowed, required : ndarray [d, d]
        Prior knowledge of edges.
    perfect : bool
        Intervened mechanisms ignore the parents.
    rng : Generator
        Source of randomness.
    n_kicks : int, optional
        Restarts of the local search from disturbed optima, in the first round.
    max_rounds : int
        Alternations at most; one is enough if all rows are labelled.

    Returns
    -------
    model : FittedModel
        At its maximum-likelihood mechanisms.
    moves : int
        Edges changed on the way.
    """
    total = 0
    for number in range(max_rounds):
        moments = moments_of(z, model.assign(z, labels).responsibilities)
        before = model.topology
        score = LinearScore(moments, known, edge_log_odds, perfect)
        kicks = n_kicks if number == 0 else 0  # later rounds only follow the rows that moved
        adjacency, targets = search(score, before.adjacency, allowed, required, rng, kicks)
        moves = int((adjacency != before.adjacency).sum())
        model = fit_linear(moments, adjacency, targets, perfect=perfect)
        total += moves
        same = np.array_equal(before.targets, targets)
        if (moves == 0 and same) or bool((labels >= 0).all()):
            break
    return model, total
