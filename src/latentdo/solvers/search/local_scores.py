r"""Local scores: how well parents and targets explain one variable, from moment matrices alone.

For variable *j*, parents *P* and the set of regimes *S* that share *j*'s reference mechanism (the others are
*targets*), with :math:`M_k = \sum_i r_{ik} [1, x_i][1, x_i]^\top` the weighted moments of regime *k*,

.. math::
    s_j(P, S) = \ell\Big(\sum_{k \in S} M_k\Big) + \sum_{k \notin S} \big(\ell_k - c_k\big) - c(P),

where :math:`\ell` is the maximised Gaussian log-likelihood of the regression on *P*, :math:`\ell_k` that of the
intervened mechanism of regime *k* alone and the costs come from :mod:`latentdo.model.penalties`. The score decomposes
over variables, and nothing in it depends on the number of rows.

Choosing *S* is where plain alternation fails: one wrong pooled regression drags in every regime. So the choice
starts from *every* regime alone as the reference, lets regimes that fit it join until nothing changes, keeps the best,
and refines it by single flips with exact refits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR
from latentdo.model.penalties import FEWEST_ROWS
from latentdo.model.regression import cholesky_residual, regression
from latentdo.solvers.settings import EMPTY, ROWS_PER_PARAMETER, SCORE_ROUNDING, SHARING_ROUNDS, SHORT_LIST

LOG_2PI = float(np.log(2.0 * np.pi))

FREE, REFERENCE, TARGET = -1, 0, 1
"""What is known of a (regime, variable) pair: nothing, that the mechanism is shared, that it is a target."""


@njit
def gaussian_loglik(residual, count, floor):  # type: ignore[no-untyped-def]
    """Maximised Gaussian log-likelihood of ``count`` rows with this residual sum of squares."""
    if count <= 0.0:
        return 0.0
    variance = max(residual / count, floor)
    return -0.5 * (count * (LOG_2PI + np.log(variance)) + residual / variance)


@njit
def _quadratic(gram, size, contrast):  # type: ignore[no-untyped-def]
    total = 0.0
    for a in range(size):
        row = 0.0
        for b in range(size):
            row += gram[a, b] * contrast[b]
        total += contrast[a] * row
    return max(total, 0.0)


@njit
def _pool(grams, shares, size, pooled):  # type: ignore[no-untyped-def]
    for a in range(size):
        for b in range(size):
            pooled[a, b] = 0.0
    for k in range(grams.shape[0]):
        if shares[k]:
            for a in range(size):
                for b in range(size):
                    pooled[a, b] += grams[k, a, b]


@njit
def own_scores(grams, counts, imperfect, target_cost, factor, own):  # type: ignore[no-untyped-def]
    """Log-likelihood less cost of every regime's own, intervened mechanism; imperfect ones may ignore parents."""
    size = grams.shape[1]
    n_parents = size - 2
    for k in range(grams.shape[0]):
        count = counts[k]
        if count <= EMPTY:
            own[k] = 0.0  # no rows: only a known target gets here, the others share the reference
            continue
        mean = grams[k, 0, size - 1] / count
        residual = max(grams[k, size - 1, size - 1] - count * mean * mean, 0.0)
        half_log = 0.5 * np.log(max(count, FEWEST_ROWS))
        best = gaussian_loglik(residual, count, VARIANCE_FLOOR) - 2.0 * half_log
        if imperfect and n_parents > 0 and count > ROWS_PER_PARAMETER * size:
            residual = cholesky_residual(grams[k], size, factor)
            best = max(best, gaussian_loglik(residual, count, VARIANCE_FLOOR) - size * half_log)
        own[k] = best - target_cost[k]


@njit
def _reference_score(pooled, count, factor):  # type: ignore[no-untyped-def]
    """Penalised log-likelihood of the shared mechanism; too few rows to fit it means minus infinity."""
    size = pooled.shape[0]
    if count < ROWS_PER_PARAMETER * size:
        return -np.inf
    residual = cholesky_residual(pooled, size, factor)
    return gaussian_loglik(residual, count, VARIANCE_FLOOR) - 0.5 * size * np.log(count)


@njit
def _reassign_regimes(grams, counts, fixed, own, shares, pooled, factor, contrast):  # type: ignore[no-untyped-def]
    """Let regimes join or leave the reference mechanism until nothing changes; leaves ``pooled`` up to date."""
    n_regimes, size = grams.shape[0], grams.shape[1]
    for _ in range(SHARING_ROUNDS):
        count = 0.0
        for k in range(n_regimes):
            if shares[k]:
                count += counts[k]
        _pool(grams, shares, size, pooled)
        if count < ROWS_PER_PARAMETER * size:
            return
        variance = max(regression(pooled, size, factor, contrast) / count, VARIANCE_FLOOR)
        changed = False
        for k in range(n_regimes):
            if fixed[k] == FREE and counts[k] > EMPTY:
                misfit = _quadratic(grams[k], size, contrast) / variance
                joins = -0.5 * (counts[k] * (LOG_2PI + np.log(variance)) + misfit) >= own[k]
                if joins != shares[k]:
                    shares[k] = joins
                    changed = True
        if not changed:
            return
    _pool(grams, shares, size, pooled)


@njit
def _polish(grams, counts, fixed, own, shares, pooled, factor, best):  # type: ignore[no-untyped-def]
    """Flip single regimes, with exact refits, while that raises the score ``best``; returns the new score."""
    n_regimes, size = grams.shape[0], grams.shape[1]
    trial = np.empty((size, size))
    for _ in range(2 * n_regimes):
        count, separate = 0.0, 0.0
        for k in range(n_regimes):
            if shares[k]:
                count += counts[k]
            else:
                separate += own[k]
        flip, top = -1, best + SCORE_ROUNDING
        for k in range(n_regimes):
            if fixed[k] != FREE or counts[k] <= EMPTY:
                continue
            sign = -1.0 if shares[k] else 1.0
            for a in range(size):
                for b in range(size):
                    trial[a, b] = pooled[a, b] + sign * grams[k, a, b]
            score = separate - sign * own[k]
            score += _reference_score(trial, count + sign * counts[k], factor)
            if score > top:
                top, flip = score, k
        if flip < 0:
            return best
        shares[flip] = not shares[flip]
        best = top
        _pool(grams, shares, size, pooled)
    return best


@njit
def choose_targets(grams, counts, fixed, own, exhaustive, best_shares):  # type: ignore[no-untyped-def]
    """Best set of regimes that share the reference mechanism: filled into ``best_shares``; returns its score.

    ``best_shares`` is the first start on entry. With ``exhaustive``, every regime that no earlier start explained is
    a start of its own.
    """
    n_regimes, size = grams.shape[0], grams.shape[1]
    pooled = np.empty((size, size))
    factor = np.zeros((size, size))
    contrast = np.empty(size)
    shares = np.empty(n_regimes, dtype=np.bool_)
    covered = np.zeros(n_regimes, dtype=np.bool_)
    best, most = -np.inf, 0.0
    for start in range(-1, n_regimes if exhaustive else 0):
        if start >= 0 and (covered[start] or fixed[start] == TARGET or counts[start] <= EMPTY):
            continue
        for k in range(n_regimes):
            begins = best_shares[k] if start < 0 else k == start
            shares[k] = (begins or fixed[k] == REFERENCE or counts[k] <= EMPTY) and fixed[k] != TARGET
        _reassign_regimes(grams, counts, fixed, own, shares, pooled, factor, contrast)
        count, score = 0.0, 0.0
        for k in range(n_regimes):
            covered[k] |= shares[k]
            if shares[k]:
                count += counts[k]
            else:
                score += own[k]
        score += _reference_score(pooled, count, factor)
        # Either of two regimes may be the intervened one at the same cost: the one with more rows is the reference.
        if start < 0 or score > best + SCORE_ROUNDING or (score > best - SCORE_ROUNDING and count > most):
            best, most = score, count
            best_shares[:] = shares
    _pool(grams, best_shares, size, pooled)
    return _polish(grams, counts, fixed, own, best_shares, pooled, factor, best)


@njit
def local_index(variable, parents):  # type: ignore[no-untyped-def]
    """Where the intercept, the parents and, last, the variable stand in a moment matrix."""
    index = np.zeros(parents.shape[0] + 2, dtype=np.int64)
    index[1:-1] = parents + 1
    index[-1] = variable + 1
    return index


class RegimeData(NamedTuple):
    """What the score of one variable needs to know about the regimes, whatever its parents.

    Parameters
    ----------
    moments : ndarray [K, d + 1, d + 1]
        See :class:`.Moments`.
    counts : ndarray [K]
        (Soft) rows of every regime.
    fixed : ndarray [K] of int8
        What is known of the variable in every regime.
    target_cost : ndarray [K]
        What a target costs in every regime.
    imperfect : bool
        Whether intervened mechanisms may use the parents.
    exhaustive : bool
        Whether every regime that no earlier start explained is a start of its own, see :func:`choose_targets`.
    """

    moments: NDArray[np.float64]
    counts: NDArray[np.float64]
    fixed: NDArray[np.int8]
    target_cost: NDArray[np.float64]
    imperfect: bool
    exhaustive: bool = True


@njit
def parent_set_score(data, variable, parents, shares):  # type: ignore[no-untyped-def]
    """Score of ``variable`` given ``parents`` (without the parents' prior), the sharing regimes chosen on the way."""
    moments = data.moments
    n_regimes = moments.shape[0]
    index = local_index(variable, parents)
    size = index.shape[0]
    grams = np.empty((n_regimes, size, size))
    for k in range(n_regimes):
        for a in range(size):
            for b in range(size):
                grams[k, a, b] = moments[k, index[a], index[b]]
    own = np.empty(n_regimes)
    own_scores(grams, data.counts, data.imperfect, data.target_cost, np.zeros((size, size)), own)
    return choose_targets(grams, data.counts, data.fixed, own, data.exhaustive, shares)


@njit
def score_table(  # type: ignore[no-untyped-def]
    data, variable, candidates, required, max_parents, edge_prior, shares, core
):
    """Score of every parent set within ``candidates`` (a bit mask over them), ``[2^c]``.

    Sets that miss a ``required`` candidate (bit mask) or exceed ``max_parents`` score minus infinity. ``shares`` is
    where the choice of targets starts for every set; all of them have the parents in ``core`` besides.
    """
    n_candidates = candidates.shape[0]
    table = np.full(1 << n_candidates, -np.inf)
    parents = np.empty(core.shape[0] + n_candidates, dtype=np.int64)
    parents[: core.shape[0]] = core
    always = 0.0
    for i in core:
        always += edge_prior[i, variable]
    chosen = np.empty(shares.shape[0], dtype=np.bool_)
    for mask in range(1 << n_candidates):
        if (mask & required) != required:
            continue
        size, prior = core.shape[0], always
        for a in range(n_candidates):
            if mask >> a & 1:
                parents[size] = candidates[a]
                prior += edge_prior[candidates[a], variable]
                size += 1
        if size > max_parents:
            continue
        chosen[:] = shares
        table[mask] = prior + parent_set_score(data, variable, parents[:size], chosen)
    return table


@njit
def greedy_parents(data, variable, allowed, first, limit, shares):  # type: ignore[no-untyped-def]
    """Up to ``limit`` parents among ``allowed``, after those in ``first``.

    Half of the free places go to the best *single* additions, the others to a greedy path: children together explain a
    variable so well that a path alone may miss a parent that is redundant given them. After the first round only the
    :data:`SHORT_LIST` most promising candidates are kept.
    """
    kept = np.zeros(allowed.shape[0], dtype=np.bool_)
    in_race = np.ones(allowed.shape[0], dtype=np.bool_)
    path = np.empty(allowed.shape[0], dtype=np.int64)
    length = first.shape[0]
    path[:length] = first
    for a in range(allowed.shape[0]):
        for b in range(length):
            if allowed[a] == first[b]:
                kept[a] = True
                in_race[a] = False
    scores = np.empty(allowed.shape[0])
    trial = np.empty(shares.shape[0], dtype=np.bool_)
    singles = (limit - length) // 2
    while kept.sum() < limit and in_race.any():
        scores[:] = -np.inf
        for a in range(allowed.shape[0]):
            if in_race[a]:
                path[length] = allowed[a]
                trial[:] = shares
                scores[a] = parent_set_score(data, variable, path[: length + 1], trial)
        order = np.argsort(-scores)
        if scores[order[0]] == -np.inf:  # too few rows for one more parent: nothing is left to rank
            break
        if length == first.shape[0]:
            kept[order[:singles]] = True
            in_race[order[SHORT_LIST:]] = False
        kept[order[0]] = True
        in_race[order[0]] = False
        path[length] = allowed[order[0]]
        length += 1
    return allowed[kept]
