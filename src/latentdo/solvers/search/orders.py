"""Order search: the best DAG over orders of the variables, when there are too many subsets to enumerate.

Given an order, every variable takes its best parent set among its predecessors, a look-up in its table. Moving one
variable through the order, place by place, changes only two parent sets per step, so trying *all* its places costs
*d* look-ups (the insertion move of GRaSP and BOSS). Insertions run until none helps; then the best order is shaken
and the climb repeated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit
from latentdo.solvers.settings import (
    IMPOSSIBLE,
    LONGEST_SHAKE,
    MAX_ORDER_SWEEPS,
    ORDER_ROUNDING,
    ORDER_SHAKES,
    WORTHWHILE,
)


@njit
def best_within(tables):  # type: ignore[no-untyped-def]
    """For every candidate mask, the best parent set within it: scores and sets, ``[d, 2^c]`` each."""
    n_variables, n_sets = tables.shape
    best = tables.copy()
    choice = np.empty((n_variables, n_sets), dtype=np.int64)
    for j in range(n_variables):
        for mask in range(n_sets):
            choice[j, mask] = mask
            left = mask
            while left:
                bit = left & -left
                left ^= bit
                if best[j, mask ^ bit] > best[j, mask]:
                    best[j, mask] = best[j, mask ^ bit]
                    choice[j, mask] = choice[j, mask ^ bit]
    return best, choice


@njit
def _masks(order, place_of):  # type: ignore[no-untyped-def]
    """Candidate mask of every variable: which of its candidates come before it."""
    n_variables = order.shape[0]
    masks = np.zeros(n_variables, dtype=np.int64)
    for a in range(n_variables):
        for b in range(a + 1, n_variables):
            place = place_of[order[a], order[b]]
            if place >= 0:
                masks[order[b]] |= 1 << place
    return masks


@njit
def _swap_gain(best, masks, place_of, core, left, right):  # type: ignore[no-untyped-def]
    """Change of score when neighbours ``left, right`` of the order become ``right, left``."""
    gain = core[right, left] - core[left, right]
    place = place_of[left, right]
    if place >= 0:
        gain += best[right, masks[right] & ~(1 << place)] - best[right, masks[right]]
    place = place_of[right, left]
    if place >= 0:
        gain += best[left, masks[left] | (1 << place)] - best[left, masks[left]]
    return gain


@njit
def _swap(order, masks, place_of, position):  # type: ignore[no-untyped-def]
    left, right = order[position], order[position + 1]
    if place_of[left, right] >= 0:
        masks[right] &= ~(1 << place_of[left, right])
    if place_of[right, left] >= 0:
        masks[left] |= 1 << place_of[right, left]
    order[position], order[position + 1] = right, left


@njit
def _climb(order, masks, best, place_of, core):  # type: ignore[no-untyped-def]
    """Insert single variables at their best place until no insertion helps; ``order`` and ``masks`` in place."""
    n_variables = order.shape[0]
    for _ in range(MAX_ORDER_SWEEPS):
        improved = False
        for v in range(n_variables):
            start = 0
            while order[start] != v:
                start += 1
            # Walk v to the far left, then to the far right, and remember the best place on the way.
            gain, top, target = 0.0, WORTHWHILE, start
            for position in range(start - 1, -1, -1):
                gain += _swap_gain(best, masks, place_of, core, order[position], v)
                _swap(order, masks, place_of, position)
                if gain > top:
                    top, target = gain, position
            for position in range(n_variables - 1):
                gain += _swap_gain(best, masks, place_of, core, v, order[position + 1])
                _swap(order, masks, place_of, position)
                if position + 1 > start and gain > top:
                    top, target = gain, position + 1
            for position in range(n_variables - 2, target - 1, -1):
                _swap(order, masks, place_of, position)
            improved |= target != start
        if not improved:
            return


@njit
def _score(order, masks, best, core):  # type: ignore[no-untyped-def]
    total = 0.0
    for a in range(order.shape[0]):
        total += best[order[a], masks[order[a]]]
        for b in range(a):
            total -= core[order[a], order[b]]
    return total


@njit
def search_orders(best, place_of, core, order, n_shakes, rng):  # type: ignore[no-untyped-def]
    """Iterated climbing from ``order``; returns the best order found and its score.

    ``core[i, j]`` is what an order costs in which ``j`` comes before ``i``.
    """
    n_variables = order.shape[0]
    masks = _masks(order, place_of)
    _climb(order, masks, best, place_of, core)
    score = _score(order, masks, best, core)
    for _ in range(n_shakes):
        trial = order.copy()
        # Moving a short random block is enough to leave a local optimum without losing the rest of the order.
        for _ in range(rng.integers(1, LONGEST_SHAKE + 1)):
            source, length = rng.integers(0, n_variables), rng.integers(1, LONGEST_SHAKE + 1)
            block = trial[source : source + length].copy()
            rest = np.concatenate((trial[:source], trial[source + length :]))
            target = rng.integers(0, rest.shape[0] + 1)
            trial = np.concatenate((rest[:target], block, rest[target:]))
        trial_masks = _masks(trial, place_of)
        _climb(trial, trial_masks, best, place_of, core)
        trial_score = _score(trial, trial_masks, best, core)
        if trial_score > score - ORDER_ROUNDING:
            order, score = trial, trial_score
    return order, score


def best_dag_by_order(
    tables: NDArray[np.float64],
    candidates: NDArray[np.int64],
    order: NDArray[np.int64],
    n_shakes: int = ORDER_SHAKES,
    seed: int = 0,
    core: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int8], float]:
    """Best DAG found by order search.

    Parameters
    ----------
    tables
        ``[d, 2^c]``: scores of the parent sets of every variable, as bit masks over its candidates.
    candidates
        ``[d, c]``: candidate parents of every variable, padded with -1.
    order
        Where to start.
    n_shakes, seed
        Number of perturbed restarts, and their randomness.
    core
        ``[d, m]``: parents that all sets of a variable have, padded with -1.
    """
    n_variables = tables.shape[0]
    always = np.zeros((n_variables, n_variables), dtype=bool)
    if core is not None and core.size:
        rows, columns = np.nonzero(core >= 0)
        always[core[rows, columns], rows] = True
    place_of = np.full((n_variables, n_variables), -1, dtype=np.int64)
    for j in range(n_variables):
        for place, i in enumerate(candidates[j]):
            if i >= 0:
                place_of[i, j] = place
    best, choice = best_within(tables)
    # Minus infinity (required parents missing) would turn differences into NaN, and a huge cost would drown them in
    # rounding: a cost well below every real score does neither.
    possible = np.isfinite(best)
    if not possible.any(axis=1).all():
        return np.zeros((n_variables, n_variables), dtype=np.int8), -np.inf
    costly = np.where(possible, best, best[possible].min() - IMPOSSIBLE)
    late = always * (np.ptp(costly, axis=1).sum() + IMPOSSIBLE)
    order, score = search_orders(
        costly, place_of, late, np.array(order, dtype=np.int64), n_shakes, np.random.default_rng(seed)
    )
    masks = _masks(order, place_of)
    adjacency = always.astype(np.int8)
    for j in range(n_variables):
        for place, i in enumerate(candidates[j]):
            if i >= 0 and choice[j, masks[j]] >> place & 1:
                adjacency[i, j] = 1
    position = np.argsort(order)
    kept = not (always & (position[:, None] > position)).any()
    feasible = kept and possible[np.arange(n_variables), masks].all()
    return adjacency, float(score) if feasible else -np.inf
