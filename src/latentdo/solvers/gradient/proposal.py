"""A quick guess of graph and targets for nonlinear fits: additive splines, scored in closed form.

Networks are slow judges of structure, and early in training poor ones: every regime would rather have a mechanism of
its own. Mechanisms that are sums of piecewise linear functions of the parents have closed-form scores from moments of
fixed features, so the local search of the linear family applies. What it finds is where the networks start, not where
they end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from latentdo.result import FitResult
from latentdo.solvers.gradient.local_search import Array, Bools, LinearScore, search


@dataclass(frozen=True, eq=False)
class Proposal:
    """A DAG and what goes with it: where a fit starts.

    Parameters
    ----------
    adjacency : ndarray [d, d]
        The DAG.
    targets : ndarray [n_regimes, d]
        The targets.
    labels : ndarray [n] of int64, optional
        A guess of every row's regime.
    """

    adjacency: NDArray[np.int8]
    targets: NDArray[np.int8]
    labels: NDArray[np.int64] | None = None

    @classmethod
    def from_result(cls, result: FitResult) -> Proposal:
        """What another solver found, as a start: its graph, its targets and the likeliest regime of every row."""
        topology = result.model.topology
        labels = result.responsibilities.argmax(axis=1).astype(np.int64)
        return cls(topology.adjacency.astype(np.int8), topology.targets.astype(np.int8), labels)

    def take(self, rows: NDArray[np.int64]) -> Proposal:
        """The same for some of the rows."""
        return replace(self, labels=None if self.labels is None else self.labels[rows])

    def content(self) -> bytes:
        """All values, to tell proposals apart."""
        parts = (self.adjacency, self.targets, np.zeros(0) if self.labels is None else self.labels)
        return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


def spline_features(z: Array, n_knots: int = 6) -> tuple[Array, NDArray[np.int64]]:
    """Rows ``[n, 1 + d + d * n_knots]`` of constant, variables and hinges, and each variable's positions among them."""
    n, d = z.shape
    knots = np.quantile(z, np.linspace(0.04, 0.96, n_knots), axis=0)  # [n_knots, d]
    hinges = np.maximum(z[:, :, None] - knots.T[None], 0.0)  # [n, d, n_knots]
    rows = np.concatenate([np.ones((n, 1)), z, hinges.reshape(n, -1)], axis=1)
    own = 1 + np.arange(d)[:, None]
    extra = 1 + d + np.arange(d * n_knots).reshape(d, n_knots)
    return rows, np.concatenate([own, extra], axis=1)


def propose(
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
) -> Proposal:
    """Search a DAG and targets under additive splines.

    Parameters
    ----------
    z : ndarray [n, d]
        Rows.
    labels : ndarray [n] of int64
        Regime of every row, known or guessed.
    known : ndarray [n_regimes, d]
        Known targets, NaN where unknown.
    edge_log_odds, allowed, required : ndarray [d, d]
        Prior knowledge of edges.
    perfect : bool
        Intervened mechanisms ignore the parents.
    rng : Generator
        Source of randomness.
    n_kicks : int, optional
        Restarts of the local search from disturbed optima.
    """
    rows, features = spline_features(z)
    moments = np.zeros((len(known), rows.shape[1], rows.shape[1]))
    for k in range(len(known)):
        part = rows[labels == k]
        moments[k] = part.T @ part
    score = LinearScore(moments, known, edge_log_odds, perfect, features)
    adjacency, targets = search(score, required.astype(np.int8), allowed, required, rng, n_kicks)
    return Proposal(adjacency, targets)
