"""Order search over all predecessors: parents are added and dropped one by one, without a list of candidates.

Family tables hold every subset of a few candidates. They cannot represent a variable with more parents than candidates,
or with a parent that the screen missed, and in dense graphs of twenty variables there are many of these. Here a graph
is improved without any list: a variable moves through the order, each variable that it passes loses or gains a possible
parent, and the parent sets are then grown and shrunk greedily. With enough rows, this ends at the true parents for a
given order. Tables, whose subsets are compared exactly, supply the initial graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit
from latentdo.graphs import topological_order
from latentdo.solvers.search.local_scores import RegimeData, parent_set_score
from latentdo.solvers.search.moments import Moments
from latentdo.solvers.search.parameters import target_costs
from latentdo.solvers.settings import MAX_WALK_SWEEPS, WALK_REACH, WORTHWHILE

if TYPE_CHECKING:
    from latentdo.solvers.search.problem import Problem


@njit
def _score(j, members, data):  # type: ignore[no-untyped-def]
    """Score of ``j`` with the parents in ``members [d]``."""
    moments, counts, fixed, cost, imperfect, exhaustive, max_parents, edge_prior, shares = data
    parents = np.flatnonzero(members)
    if parents.shape[0] > max_parents:
        return -np.inf
    prior = 0.0
    for i in parents:
        prior += edge_prior[i, j]
    chosen = shares[:, j].copy()
    regimes = RegimeData(moments, counts, np.ascontiguousarray(fixed[:, j]), cost, imperfect, exhaustive)
    return prior + parent_set_score(regimes, j, parents, chosen)


@njit
def _climb_by(adding, members, score, free, j, data):  # type: ignore[no-untyped-def]
    """Add (or remove) the one among ``free [d]`` that gains most, as long as one does; in place, returns the score."""
    while True:
        best, which = score + WORTHWHILE, -1
        for i in range(members.shape[0]):
            if free[i] and members[i] != adding:
                members[i] = adding
                trial = _score(j, members, data)
                members[i] = not adding
                if trial > best:
                    best, which = trial, i
        if which < 0:
            return score
        members[which] = adding
        score = best


@njit
def _grow_and_shrink(members, score, possible, required, j, data):  # type: ignore[no-untyped-def]
    """Grow and shrink the parents of ``j`` among those possible until neither helps, in place; returns the score."""
    while True:
        grown = _climb_by(True, members, score, possible, j, data)
        shrunk = _climb_by(False, members, grown, ~required[:, j], j, data)
        if shrunk <= score:
            return shrunk
        score = shrunk


@njit
def _possible(order, place, allowed):  # type: ignore[no-untyped-def]
    """Allowed parents of the variable at ``place``: those before it."""
    out = np.zeros(order.shape[0], dtype=np.bool_)
    for position in range(place):
        out[order[position]] = allowed[order[position], order[place]]
    return out


@njit
def _pass(order, place, graph, scores, allowed, required, data):  # type: ignore[no-untyped-def]
    """Neighbours at ``place`` and ``place + 1`` change places; both take the parents that they then prefer.

    Returns the change of the score, minus infinity if a required edge forbids the move; ``graph[j]`` has the parents of
    ``j``.
    """
    left, right = order[place], order[place + 1]
    if required[left, right]:
        return -np.inf
    before = scores[left] + scores[right]
    order[place], order[place + 1] = right, left
    if graph[right, left]:
        graph[right, left] = False
        score = _score(right, graph[right], data)
        scores[right] = _grow_and_shrink(
            graph[right], score, _possible(order, place, allowed), required, right, data
        )
    if allowed[right, left]:
        graph[left, right] = True
        score = _score(left, graph[left], data)
        if score > scores[left] + WORTHWHILE:
            scores[left] = _grow_and_shrink(
                graph[left], score, _possible(order, place + 1, allowed), required, left, data
            )
        else:
            graph[left, right] = False
    return scores[left] + scores[right] - before


@njit
def _walk(order, start, step, graph, scores, allowed, required, data):  # type: ignore[no-untyped-def]
    """Move one variable place by place; the best order, graph and scores on the way."""
    best_gain, gain = WORTHWHILE, 0.0
    best_order, best_graph, best_scores = order, graph, scores
    order, graph, scores = order.copy(), graph.copy(), scores.copy()
    place = start
    while 0 <= place + step < order.shape[0] and abs(place + step - start) <= WALK_REACH:
        gain += _pass(order, min(place, place + step), graph, scores, allowed, required, data)
        if gain == -np.inf:
            break
        place += step
        if gain > best_gain:
            best_gain = gain
            best_order, best_graph, best_scores = order.copy(), graph.copy(), scores.copy()
    return best_gain, best_order, best_graph, best_scores


@njit
def _climb(order, graph, allowed, required, data):  # type: ignore[no-untyped-def]
    """Walk every variable both ways until no walk helps; returns the graph, ``graph[j]`` the parents of j."""
    n_variables = order.shape[0]
    scores = np.empty(n_variables)
    for place in range(n_variables):
        j = order[place]
        score = _score(j, graph[j], data)
        scores[j] = _grow_and_shrink(graph[j], score, _possible(order, place, allowed), required, j, data)
    for _ in range(MAX_WALK_SWEEPS):
        improved = False
        for v in range(n_variables):
            start = np.flatnonzero(order == v)[0]
            left = _walk(order, start, -1, graph, scores, allowed, required, data)
            right = _walk(order, start, 1, graph, scores, allowed, required, data)
            better = left if left[0] >= right[0] else right
            if better[0] > WORTHWHILE:
                improved = True
                order, graph, scores = better[1], better[2], better[3]
        if not improved:
            break
    return graph


def improve(
    problem: Problem,
    moments: Moments,
    adjacency: NDArray[np.int8],
    targets: NDArray[np.int8] | None = None,
    target_prior: float | None = None,
) -> NDArray[np.int8]:
    """A graph that no walk of a single variable through the order makes better, from a given one."""
    counts = moments.counts
    fixed = problem.fixed(len(counts))
    shares = np.ones_like(fixed, dtype=bool) if targets is None else targets == 0
    data = (
        moments.matrices,
        counts,
        fixed,
        target_costs(problem, target_prior, len(counts)),
        problem.imperfect,
        True,
        problem.constraints.max_parents,
        problem.penalties.edge_prior,
        shares,
    )
    graph = _climb(
        np.array(topological_order(adjacency), dtype=np.int64),
        np.ascontiguousarray(adjacency.T == 1),
        problem.constraints.allowed,
        problem.constraints.required,
        data,
    )
    return np.ascontiguousarray(graph.T).astype(np.int8)
