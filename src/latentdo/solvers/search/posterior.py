r"""Posterior probabilities: sums over all DAGs, weighted by their scores.

With weights :math:`e^{s_j(P)}` of parent sets the posterior of a DAG is the product over its parent sets. For few
variables the sum over *all* DAGs is done exactly, layer by layer (Kuipers and Moffa, 2017): the variables without
parents come first, then those whose parents are all placed and that have at least one in the layer just placed. Every
DAG has exactly one such layering, so nothing is counted twice and every term is positive. Beyond that, orders are
sampled (Friedman and Koller, 2003) and DAGs within each order; that prior favours graphs that fit many orders.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit
from latentdo.graphs import reachability, topological_order
from latentdo.solvers.search.parent_sets import ScoreTables
from latentdo.solvers.settings import (
    BURN_IN,
    LAYER_LIMIT,
    NEGLIGIBLE_LOG,
    ORDER_STEP,
    SAMPLE_THINNING,
    SAMPLED_DAGS,
)


@dataclass(frozen=True, eq=False)
class GraphPosterior:
    """Marginal probabilities over DAGs.

    Parameters
    ----------
    edges, ancestors : ndarray [d, d]
        Probability that ``i -> j`` is an edge, and that ``i`` causes ``j`` directly or not.
    exact : bool
        Whether the edges are exact sums; ancestors always come from sampled DAGs.
    """

    edges: NDArray[np.float64]
    ancestors: NDArray[np.float64]
    exact: bool


def graph_posterior(
    tables: ScoreTables,
    start: NDArray[np.int8],
    *,
    temperature: float = 1.0,
    n_samples: int = SAMPLED_DAGS,
    seed: int = 0,
) -> GraphPosterior:
    """Edge and ancestor probabilities from parent-set scores.

    Parameters
    ----------
    tables
        Family scores.
    start
        A good DAG, where sampling begins.
    temperature
        Scores are divided by it: above 1 where scores overstate the information in the rows.
    n_samples, seed
        Number of DAGs sampled where there is no exact sum, and their seed.
    """
    tables = tables.settled(start)
    if tables.n_variables <= LAYER_LIMIT:
        table = tables.full() / temperature
        edges, dags = _exact(table, n_samples, seed)
        return GraphPosterior(edges, _mean_reachability(dags), exact=True)
    order = np.array(topological_order(start), dtype=np.int64)
    rng = np.random.default_rng(seed)
    scores = tables.scores / temperature
    dags = _sample_by_order(scores, tables.candidates, tables.core, order, n_samples, SAMPLE_THINNING, rng)
    return GraphPosterior(dags.mean(axis=0), _mean_reachability(dags), exact=False)


def _mean_reachability(dags: NDArray[np.int8]) -> NDArray[np.float64]:
    found, counts = np.unique(dags.reshape(len(dags), -1), axis=0, return_counts=True)
    d = dags.shape[1]
    total = np.zeros((d, d))
    for flat, count in zip(found, counts, strict=True):
        total += count * reachability(flat.reshape(d, d))
    np.fill_diagonal(total, 0.0)
    return total / len(dags)


@njit
def _log_add(a, b):  # type: ignore[no-untyped-def]
    if a == -np.inf:
        return b
    if b == -np.inf:
        return a
    high, low = max(a, b), min(a, b)
    return high + np.log1p(np.exp(low - high))


@njit
def _log_sub(a, b):  # type: ignore[no-untyped-def]
    """Log of ``exp(a) - exp(b)``, ``a >= b``."""
    if b == -np.inf:
        return a
    if b >= a:
        return -np.inf
    return a + np.log1p(-np.exp(b - a))


@njit
def _subset_sums(scores):  # type: ignore[no-untyped-def]
    """Log of the sum of ``exp(scores[j, P])`` over all ``P`` within every set."""
    sums = scores.copy()
    n_variables, n_sets = scores.shape
    for j in range(n_variables):
        for i in range(n_variables):
            for mask in range(n_sets):
                if mask >> i & 1:
                    sums[j, mask] = _log_add(sums[j, mask], sums[j, mask & ~(1 << i)])
    return sums


@njit
def _layer_terms(sums, placed, layer, terms):  # type: ignore[no-untyped-def]
    """Log weight of each unplaced variable: parents among ``placed``, at least one of them in ``layer``."""
    for j in range(sums.shape[0]):
        if placed >> j & 1:
            terms[j] = -np.inf
        elif placed == 0:
            terms[j] = sums[j, 0]
        else:
            terms[j] = _log_sub(sums[j, placed], sums[j, placed & ~layer])


@njit
def _rest_sums(terms, rest, products):  # type: ignore[no-untyped-def]
    """Sum of ``terms`` over every subset of ``rest``, indexed by the subset."""
    products[0] = 0.0
    subset = 0
    while True:
        subset = (subset - rest) & rest
        if subset == 0:
            break
        low, j = subset & -subset, 0
        while low >> j != 1:
            j += 1
        products[subset] = products[subset & ~low] + terms[j]


@njit
def _backward(sums):  # type: ignore[no-untyped-def]
    """``value[placed, layer]``: log weight of all ways to place the rest, given the last layer."""
    n_variables, n_sets = sums.shape
    everything = n_sets - 1
    value = np.full((n_sets, n_sets), -np.inf)
    terms, products = np.empty(n_variables), np.empty(n_sets)
    for placed in range(everything, -1, -1):
        rest = everything & ~placed
        layer = placed
        while True:
            if rest == 0:
                value[placed, layer] = 0.0
            elif placed == 0 or layer != 0:
                _layer_terms(sums, placed, layer, terms)
                _rest_sums(terms, rest, products)
                high = -np.inf
                subset = rest
                while subset:
                    products[subset] += value[placed | subset, subset]
                    high = max(high, products[subset])
                    subset = (subset - 1) & rest
                if high > -np.inf:
                    total = 0.0
                    subset = rest
                    while subset:
                        total += np.exp(products[subset] - high)
                        subset = (subset - 1) & rest
                    value[placed, layer] = high + np.log(total)
            if layer == 0:
                break
            layer = (layer - 1) & placed
    return value


@njit
def _edge_marginals(scores, sums, value):  # type: ignore[no-untyped-def]
    """Exact probability of every edge: a forward pass over the same layers."""
    n_variables, n_sets = sums.shape
    everything = n_sets - 1
    total = value[0, 0]
    # sums_with[i]: the subset sums over the parent sets that contain i.
    sums_with = np.full((n_variables, n_variables, n_sets), -np.inf)
    for i in range(n_variables):
        for mask in range(n_sets):
            if mask >> i & 1:
                sums_with[i, :, mask] = scores[:, mask]
        sums_with[i] = _subset_sums(sums_with[i])
    forward = np.full((n_sets, n_sets), -np.inf)
    forward[0, 0] = 0.0
    joins = np.empty(n_variables)
    terms, products = np.empty(n_variables), np.empty(n_sets)
    edges = np.zeros((n_variables, n_variables))
    for placed in range(n_sets):
        rest = everything & ~placed
        layer = placed
        while True:
            here = forward[placed, layer]
            if rest and here + value[placed, layer] - total > NEGLIGIBLE_LOG:
                _layer_terms(sums, placed, layer, terms)
                _rest_sums(terms, rest, products)
                joins[:] = 0.0
                subset = rest
                while subset:
                    through = here + products[subset]
                    forward[placed | subset, subset] = _log_add(forward[placed | subset, subset], through)
                    weight = np.exp(through + value[placed | subset, subset] - total)
                    for j in range(n_variables):
                        if subset >> j & 1:
                            joins[j] += weight
                    subset = (subset - 1) & rest
                for j in range(n_variables):
                    for i in range(n_variables if joins[j] > 0.0 else 0):
                        if placed >> i & 1:
                            # Sets with i that meet the layer; if i is in the layer, every set with i does.
                            missed = -np.inf if layer >> i & 1 else sums_with[i, j, placed & ~layer]
                            part = _log_sub(sums_with[i, j, placed], missed)
                            edges[i, j] += joins[j] * np.exp(part - terms[j])
            if layer == 0:
                break
            layer = (layer - 1) & placed
    return edges


@njit
def _pick(weights, count, rng):  # type: ignore[no-untyped-def]
    """Index drawn with probability proportional to ``exp(weights[:count])``."""
    high = -np.inf
    for a in range(count):
        high = max(high, weights[a])
    total = 0.0
    for a in range(count):
        total += np.exp(weights[a] - high)
    left = rng.random() * total
    for a in range(count):
        left -= np.exp(weights[a] - high)
        if left <= 0.0:
            return a
    return count - 1


@njit
def _sample_layers(scores, sums, value, n_samples, rng):  # type: ignore[no-untyped-def]
    """Independent DAGs from the exact posterior."""
    n_variables, n_sets = sums.shape
    everything = n_sets - 1
    dags = np.zeros((n_samples, n_variables, n_variables), dtype=np.int8)
    terms, products = np.empty(n_variables), np.empty(n_sets)
    weights, sets = np.empty(n_sets), np.empty(n_sets, dtype=np.int64)
    for s in range(n_samples):
        placed, layer = 0, 0
        while placed != everything:
            rest = everything & ~placed
            _layer_terms(sums, placed, layer, terms)
            _rest_sums(terms, rest, products)
            count, subset = 0, rest
            while subset:
                weights[count] = products[subset] + value[placed | subset, subset]
                sets[count] = subset
                count += 1
                subset = (subset - 1) & rest
            joined = sets[_pick(weights, count, rng)]
            for j in range(n_variables):
                if joined >> j & 1:
                    count, subset = 0, placed
                    while True:
                        if placed == 0 or subset & layer:
                            weights[count] = scores[j, subset]
                            sets[count] = subset
                            count += 1
                        if subset == 0:
                            break
                        subset = (subset - 1) & placed
                    parents = sets[_pick(weights, count, rng)]
                    for i in range(n_variables):
                        dags[s, i, j] = parents >> i & 1
            placed, layer = placed | joined, joined
    return dags


def _exact(
    table: NDArray[np.float64], n_samples: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Exact edge probabilities, and independent DAGs, from ``table [d, 2^d]``."""
    # Scores relative to each variable's best: the products below then neither overflow nor lose digits.
    scores = table - table.max(axis=1, keepdims=True)
    sums = _subset_sums(scores)
    value = _backward(sums)
    edges = _edge_marginals(scores, sums, value)
    return np.clip(edges, 0.0, 1.0), _sample_layers(
        scores, sums, value, n_samples, np.random.default_rng(seed)
    )


@njit
def _sample_by_order(scores, candidates, core, order, n_samples, thinning, rng):  # type: ignore[no-untyped-def]
    """Metropolis over orders, one DAG per kept order."""
    n_variables, n_sets = scores.shape
    n_candidates = candidates.shape[1]
    sums = scores.copy()
    for j in range(n_variables):
        for a in range(n_candidates):
            for mask in range(n_sets):
                if mask >> a & 1:
                    sums[j, mask] = _log_add(sums[j, mask], sums[j, mask & ~(1 << a)])
    position = np.empty(n_variables, dtype=np.int64)
    for a in range(n_variables):
        position[order[a]] = a
    dags = np.zeros((n_samples, n_variables, n_variables), dtype=np.int8)
    weights, sets = np.empty(n_sets), np.empty(n_sets, dtype=np.int64)
    for step in range((n_samples + n_samples // BURN_IN) * thinning * n_variables):
        # Insert a variable a few places away; only the parent sets in between can change.
        source = rng.integers(0, n_variables)
        target = min(max(source + rng.integers(-ORDER_STEP, ORDER_STEP + 1), 0), n_variables - 1)
        low, high = min(source, target), max(source, target)
        before = _order_score(sums, candidates, core, order, position, low, high)
        _move(order, position, source, target)
        after = _order_score(sums, candidates, core, order, position, low, high)
        if np.log(rng.random()) > after - before:
            _move(order, position, target, source)
        if (step + 1) % (thinning * n_variables) == 0:
            kept = (step + 1) // (thinning * n_variables) - 1 - n_samples // BURN_IN
            if kept < 0 or kept >= n_samples:
                continue
            for j in range(n_variables):
                parents = _draw_parents(scores[j], _preceding(candidates, position, j), weights, sets, rng)
                for a in range(n_candidates):
                    if parents >> a & 1:
                        dags[kept, candidates[j, a], j] = 1
                for a in range(core.shape[1]):
                    if core[j, a] >= 0:
                        dags[kept, core[j, a], j] = 1
    return dags


@njit
def _draw_parents(scores, mask, weights, sets, rng):  # type: ignore[no-untyped-def]
    """A subset of ``mask``, drawn by its weight; ``weights`` and ``sets`` are working memory."""
    count, subset = 0, mask
    while True:
        weights[count] = scores[subset]
        sets[count] = subset
        count += 1
        if subset == 0:
            return sets[_pick(weights, count, rng)]
        subset = (subset - 1) & mask


@njit
def _preceding(candidates, position, j):  # type: ignore[no-untyped-def]
    mask = 0
    for a in range(candidates.shape[1]):
        i = candidates[j, a]
        if i >= 0 and position[i] < position[j]:
            mask |= 1 << a
    return mask


@njit
def _order_score(sums, candidates, core, order, position, low, high):  # type: ignore[no-untyped-def]
    total = 0.0
    for a in range(low, high + 1):
        j = order[a]
        for b in range(core.shape[1]):
            if core[j, b] >= 0 and position[core[j, b]] > a:
                return -np.inf
        total += sums[j, _preceding(candidates, position, j)]
    return total


@njit
def _move(order, position, source, target):  # type: ignore[no-untyped-def]
    moved = order[source]
    step = 1 if target > source else -1
    place = source
    while place != target:
        order[place] = order[place + step]
        position[order[place]] = place
        place += step
    order[target] = moved
    position[moved] = target
