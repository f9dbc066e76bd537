r"""The last word on a linear fit: single edges and targets, judged by the penalised score.

A relaxed fit ends in a DAG that is good but seldom locally optimal, and held-out evidence is too generous for
structure. For linear mechanisms the penalised score is available in closed form from moments, and it decomposes over
variables,

.. math::
    s_j(P, S) = \ell\Big(\sum_{k \in S} M_k\Big) - \tfrac{|P| + 2}{2} \log n
    + \sum_{k \notin S} \big(\ell_k - \tfrac{c_k}{2} \log n\big) + \sum_{i \in P} \xi_{ij},

where ``S`` are the regimes that share the reference mechanism of ``j``. So the DAG is improved by single additions,
removals and reversals of edges, with the targets of the variables concerned chosen anew each time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from latentdo.graphs import reachability, topological_order

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

_FLOOR = 1e-10  # squared residual that every mechanism is granted, as in the closed-form density
_RIDGE = 1e-10


@dataclass(frozen=True, eq=False)
class LinearScore:
    """Local scores of linear mechanisms.

    Parameters
    ----------
    moments : ndarray [n_regimes, 1 + d, 1 + d]
        Moment matrices: the constant, then the ``d`` variables.
    known : ndarray [n_regimes, d]
        Known targets as 0 and 1, NaN where unknown.
    edge_log_odds : ndarray [d, d]
        Prior log-odds of edges.
    perfect : bool
        Intervened mechanisms ignore the parents.
    """

    moments: Array
    known: Array
    edge_log_odds: Array
    perfect: bool
    _cache: dict[tuple[int, tuple[int, ...]], tuple[float, Bools]] = field(default_factory=dict)

    @property
    def half_log_n(self) -> float:
        """What one free parameter costs."""
        return 0.5 * float(np.log(self.moments[:, 0, 0].sum()))

    def family(self, variable: int, parents: tuple[int, ...]) -> tuple[float, Bools]:
        """Score of a variable given its parents, and its best targets ``[n_regimes]``."""
        key = (variable, parents)
        if key not in self._cache:
            self._cache[key] = self._family(variable, parents)
        return self._cache[key]

    def _family(self, j: int, parents: tuple[int, ...]) -> tuple[float, Bools]:
        index = np.array([0, *(1 + i for i in parents), 1 + j])
        grams = self.moments[:, index[:, None], index]
        counts = grams[:, 0, 0]
        own = self._own(grams, counts)
        fixed = self.known[:, j]
        shares = self._starts(fixed, counts)
        for _ in range(6):
            shares, changed = self._settle(grams, counts, own, fixed, shares)
            if not changed:
                break
        scores = self._totals(grams, own, shares)
        best = int(scores.argmax())
        share, score = shares[best], float(scores[best])
        free = np.flatnonzero(np.isnan(fixed) & (counts > 0))
        for _ in range(2 * len(free)):  # single flips with exact refits
            flips = np.repeat(share[None], len(free), axis=0)
            flips[np.arange(len(free)), free] ^= True
            values = self._totals(grams, own, flips)
            if values.max() <= score + 1e-9:
                break
            share, score = flips[int(values.argmax())], float(values.max())
        prior = float(self.edge_log_odds[list(parents), j].sum())
        return score + prior, ~share

    def _starts(self, fixed: Array, counts: Array) -> Bools:
        """All regimes together, and every regime alone, as first sharers of the reference."""
        starts = np.concatenate([np.ones((1, len(fixed)), dtype=bool), np.eye(len(fixed), dtype=bool)])
        starts = starts[np.concatenate([[True], (counts > 0) & (fixed != 1)])]
        starts[:, fixed == 0] = True
        starts[:, fixed == 1] = False
        starts[:, counts <= 0] = True
        return np.asarray(np.unique(starts, axis=0))

    def _own(self, grams: Array, counts: Array) -> Array:
        """Log-likelihood less cost of every regime's own mechanism."""
        safe = np.maximum(counts, 1e-9)
        mean = grams[:, 0, -1] / safe
        rest = np.maximum(grams[:, -1, -1] - counts * mean**2, 0.0)
        own = _gaussian(rest, counts) - 2.0 * self.half_log_n
        if not self.perfect and grams.shape[1] > 2:
            residual, _ = _regress(grams)
            own = np.maximum(own, _gaussian(residual, counts) - grams.shape[1] * self.half_log_n)
        return np.where(counts > 0, own, 0.0)

    def _settle(
        self, grams: Array, counts: Array, own: Array, fixed: Array, shares: Bools
    ) -> tuple[Bools, bool]:
        """Let regimes join or leave the reference mechanism of every start once."""
        pooled = np.einsum("sk,kab->sab", shares.astype(float), grams)
        residual, contrast = _regress(pooled)
        variance = (residual + _FLOOR) / np.maximum(pooled[:, 0, 0], 1e-9)
        square = np.einsum("sa,kab,sb->sk", contrast, grams, contrast)
        fit = -0.5 * (counts * np.log(2.0 * np.pi * variance)[:, None] + square / variance[:, None])
        joins = np.where(np.isnan(fixed) & (counts > 0), fit >= own, shares)
        joins[joins.sum(axis=1) == 0] = shares[joins.sum(axis=1) == 0]
        return joins, bool((joins != shares).any())

    def _totals(self, grams: Array, own: Array, shares: Bools) -> Array:
        """Score of every choice of sharing regimes, by exact refits."""
        pooled = np.einsum("sk,kab->sab", shares.astype(float), grams)
        count = pooled[:, 0, 0]
        size = grams.shape[1]
        value = _gaussian(_regress(pooled)[0], count) - size * self.half_log_n
        value = value + (~shares).astype(float) @ own
        return np.where(count >= 2.0 * size, value, -np.inf)


def _gaussian(residual: Array, count: Array) -> Array:
    """Maximised Gaussian log-likelihood of ``count`` rows with this residual sum of squares."""
    variance = (residual + _FLOOR) / np.maximum(count, 1e-9)
    return np.asarray(-0.5 * count * (np.log(2.0 * np.pi * np.maximum(variance, 1e-300)) + 1.0))


def _regress(grams: Array) -> tuple[Array, Array]:
    """Residual sum of squares of the last column on the others, and the contrast ``[-coefficients, 1]``."""
    inner = grams[:, :-1, :-1].copy()
    at = np.arange(inner.shape[1])
    inner[:, at, at] += _RIDGE * inner[:, at, at] + 1e-9
    solution = np.linalg.solve(inner, grams[:, :-1, -1:])[:, :, 0]
    contrast = np.concatenate([-solution, np.ones((len(grams), 1))], axis=1)
    residual = np.einsum("sa,sab,sb->s", contrast, grams, contrast)
    return np.maximum(residual, 0.0), contrast


def climb(
    score: LinearScore, adjacency: NDArray[np.int8], allowed: Bools, required: Bools, max_moves: int = 500
) -> tuple[NDArray[np.int8], NDArray[np.int8], int]:
    """Hill-climb from a DAG by single edges.

    Parameters
    ----------
    score : LinearScore
        Local scores.
    adjacency : ndarray [d, d]
        Where to start.
    allowed, required : ndarray [d, d] of bool
        Edges that may exist, and that must.
    max_moves : int
        Moves at most.

    Returns
    -------
    adjacency : ndarray [d, d]
        A DAG that no addition, removal or reversal of one edge improves.
    targets : ndarray [n_regimes, d]
        The best targets under it.
    moves : int
        How many moves were made.
    """
    graph = adjacency.astype(bool)
    d = len(graph)

    def value(j: int, column: Bools) -> float:
        return score.family(j, tuple(int(i) for i in np.flatnonzero(column)))[0]

    moves = 0
    while moves < max_moves:
        current = [value(j, graph[:, j]) for j in range(d)]
        best, change = 1e-6, None
        reach = reachability(graph.astype(np.int8)).astype(bool)
        for i, j in zip(*np.nonzero(allowed), strict=True):
            column = graph[:, j].copy()
            column[i] ^= True
            gain = value(j, column) - current[j]
            if graph[i, j]:
                if required[i, j]:
                    continue
                if gain > best:
                    best, change = gain, [(i, j)]
                if allowed[j, i]:
                    other = graph[:, i].copy()
                    other[j] = True
                    both = gain + value(i, other) - current[i]
                    if both > best and not (graph[i] & reach[:, j]).any():  # no other way from i to j
                        best, change = both, [(i, j), (j, i)]
            elif gain > best and not reach[j, i]:
                best, change = gain, [(i, j)]
        if change is None:
            break
        for i, j in change:
            graph[i, j] ^= True
        moves += 1
    targets = np.stack(
        [score.family(j, tuple(int(i) for i in np.flatnonzero(graph[:, j])))[1] for j in range(d)], axis=1
    )
    return graph.astype(np.int8), targets.astype(np.int8), moves


def search(
    score: LinearScore,
    adjacency: NDArray[np.int8],
    allowed: Bools,
    required: Bools,
    rng: np.random.Generator,
    n_kicks: int | None = None,
) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Iterated local search: climb, move variables in the order at random, climb again, keep the best.

    Parameters
    ----------
    score, adjacency, allowed, required
        As for :func:`climb`.
    rng : Generator
        Source of the kicks.
    n_kicks : int, optional
        How often to start again from a disturbed optimum; fewer for more variables by default.

    Returns
    -------
    adjacency, targets : ndarray [d, d], [n_regimes, d]
        The best DAG that was seen, and its targets.
    """

    def total(graph: NDArray[np.int8]) -> float:
        columns = (tuple(int(i) for i in np.flatnonzero(graph[:, j])) for j in range(len(graph)))
        return sum(score.family(j, parents)[0] for j, parents in enumerate(columns))

    best, targets, _ = climb(score, adjacency, allowed, required)
    value = total(best)
    for _ in range(max(2, 150 // len(best)) if n_kicks is None else n_kicks):
        start = _kick(best, allowed, required, rng)
        graph, own, _ = climb(score, start, allowed, required)
        if total(graph) > value + 1e-6:
            best, targets, value = graph, own, total(graph)
    return best, targets


def _kick(
    adjacency: NDArray[np.int8], allowed: Bools, required: Bools, rng: np.random.Generator
) -> NDArray[np.int8]:
    """Move two random variables to random places in the order, and turn or drop the edges that no longer fit."""
    d = len(adjacency)
    order = topological_order(adjacency)
    for variable in rng.choice(d, size=min(2, d), replace=False).tolist():
        order.remove(variable)
        order.insert(int(rng.integers(d)), variable)
    place = np.argsort(order)
    linked = ((adjacency + adjacency.T) > 0) & allowed
    kicked = linked & (place[:, None] < place[None, :])
    if required.any():  # a required edge against the new order would close a cycle: keep the old graph then
        return adjacency if (required & ~kicked).any() else kicked.astype(np.int8)
    return kicked.astype(np.int8)
