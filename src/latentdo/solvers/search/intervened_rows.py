r"""Two mechanisms in one variable: what most rows follow, and what a minority follows instead.

In every variable all rows but the intervened ones share one mechanism. So a two-mechanism mixture of regressions,

.. math:: p(z_j \mid z_P) = (1 - w)\, N(z_j; b^\top \varphi(z_P), \sigma^2) + w\, N(z_j; c^\top z_Q, \tau^2)

(*Q* empty for a perfect intervention, *P* for an imperfect one), finds a hidden intervention on *j* with no clustering
at all, and its likelihood scores the parents *P* while interventions are still unknown. The features :math:`\varphi`
are the parents themselves, or random features where curves are sought; a first mechanism that is not a regression, such
as a network, is given by its log-densities and fitted between the steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit, vectorised
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR
from latentdo.model.regression import regression, weighted_gram
from latentdo.model.transcendental import LOWEST, fast_exp, fast_log
from latentdo.solvers.search.local_scores import FREE, LOG_2PI, TARGET
from latentdo.solvers.settings import (
    FAINT,
    MINORITY_TOLERANCE,
    ROUGH_RIDGE,
    ROWS_PER_PARAMETER,
    SMALL_LINEAR_SET,
)


class Known(NamedTuple):
    """What is known of a variable before EM begins; what is not known is empty.

    Parameters
    ----------
    log_density : ndarray [n]
        Of the first mechanism in every row, if it is not to be fitted.
    products : ndarray [q, q]
        Of the first mechanism's columns and the values with each other, over all rows: with many columns a step is much
        cheaper if it only sums the smaller side.
    labels : ndarray [n] of int64
        Label of every row, or -1. All rows of a label are assigned to the mechanism that explains them better.
    codes : ndarray of int8
        For every label, what is known of it in this variable: ``FREE``, ``REFERENCE`` or ``TARGET``.
    groups : ndarray [n] of int64
        Group of every row, numbered from 0 without gaps. Rows of a group follow the same mechanism, and have equal
        weight.
    repeats : ndarray [n]
        How often every row counts, regardless of its weight: this applies to its density, not to its group.
    """

    log_density: NDArray[np.float64]
    products: NDArray[np.float64]
    labels: NDArray[np.int64]
    codes: NDArray[np.int8]
    groups: NDArray[np.int64]
    repeats: NDArray[np.float64]


_UNKNOWN = Known(
    np.empty(0),
    np.empty((0, 0)),
    np.empty(0, np.int64),
    np.empty(0, np.int8),
    np.empty(0, np.int64),
    np.empty(0),
)


def knowing(**what: NDArray[Any]) -> Known:
    """Only this is known."""
    return _UNKNOWN._replace(**what)


@njit
def two_mechanisms(  # type: ignore[no-untyped-def]
    rows, n_first, n_second, known, weights, second, iterations, tolerance, fewest
):
    """EM for the two-mechanism mixture; returns its log-likelihood, minus infinity if a mechanism dies.

    ``rows [n, q]`` holds ones, regressors and, last, the values. The first mechanism uses the first ``n_first``
    columns, or has a ``known`` log-density if ``n_first`` is 0; the second uses the first ``n_second``. ``weights [n]``
    weights the rows. ``second [n]`` is the posterior of the second mechanism, both start and result. A minority of
    fewer than ``fewest`` rows is abandoned: all rows then follow the first mechanism.
    """
    n, width = rows.shape
    counted = weights * known.repeats if known.repeats.size else weights
    total = counted.sum()
    log_first, log_second = np.empty(n), np.empty(n)
    each = _shares_of_groups(known.groups)
    units = total if each.size == 0 else (weights * each[known.groups]).sum()
    factor = np.zeros((width, width))
    before, loglik = -np.inf, -np.inf
    for step in range(iterations):
        leaving = counted * second
        alone = leaving.sum() < fewest
        if alone:
            second[:] = 0.0
            leaving[:] = 0.0
        share = leaving.sum()
        rest = total - share
        if rest < ROWS_PER_PARAMETER * (n_first + 1) or (
            share < ROWS_PER_PARAMETER * (n_second + 1) and not alone
        ):
            return -np.inf
        if n_first:
            _regress(rows, n_first, known.products, leaving, counted - leaving, factor, log_first)
        else:
            log_first[:] = known.log_density
        if alone:
            return (counted * log_first).sum()
        _regress(rows, n_second, np.empty((0, 0)), counted, leaving, factor, log_second)
        if each.size:  # mixing weights are shares of groups
            share = (weights * second * each[known.groups]).sum()
            rest = units - share
        loglik = _posterior(
            log_first, log_second, np.log(rest / units), np.log(share / units), known, each, weights, second
        )
        if loglik - before < tolerance and step > 0:
            break
        before = loglik
    return loglik


@njit
def _regress(rows, size, products, others, weights, factor, log_density):  # type: ignore[no-untyped-def]
    """Fill ``log_density [n]`` with that of the weighted regression of the values on the first ``size`` columns."""
    values = rows[:, rows.shape[1] - 1]
    gram, contrast = np.empty((size + 1, size + 1)), np.empty(size + 1)
    if products.size:
        _subtracted_gram(rows, products, others, weights, gram)
    else:
        weighted_gram(rows, size, values, weights, gram)
    regression(gram, size + 1, factor, contrast)
    total = 0.0
    for i in range(rows.shape[0]):
        residual = values[i]
        for a in range(size):
            residual += contrast[a] * rows[i, a]
        log_density[i] = residual * residual
        total += weights[i] * log_density[i]
    variance = max(total / weights.sum(), VARIANCE_FLOOR)
    log_density[:] = -0.5 * (LOG_2PI + np.log(variance) + log_density / variance)


@njit
def _subtracted_gram(rows, products, others, weights, gram):  # type: ignore[no-untyped-def]
    """Fill ``gram`` from the products of all rows: only the smaller of the two sides is summed."""
    whole = others.sum() > weights.sum()
    few = weights if whole else others
    chosen = np.flatnonzero(few > FAINT)
    scaled = rows[chosen] * np.sqrt(few[chosen]).reshape(-1, 1)
    part = np.dot(scaled.T, scaled)
    gram[:] = part if whole else products - part
    for a in range(len(gram) - 1):
        gram[a, a] += ROUGH_RIDGE


@njit
def _shares_of_groups(groups):  # type: ignore[no-untyped-def]
    """The part of its group that a row is, for every group."""
    sizes = np.zeros(groups.max() + 1 if groups.size else 0)
    for group in groups:
        sizes[group] += 1.0
    return 1.0 / sizes


@njit
def _posterior(  # type: ignore[no-untyped-def]
    log_first, log_second, log_rest, log_share, known, each, weights, second
):
    """Fill ``second`` with the posterior of the second mechanism; returns the log-likelihood.

    The mixing weights, whose logarithms are ``log_rest`` and ``log_share``, do not apply to a whole label, which is
    assigned by the densities alone. A group is charged for its mechanism once; ``each`` is the part of a row in its
    group.
    """
    often = known.repeats.size > 0
    if known.labels.size == 0 and each.size == 0:
        counted = weights * known.repeats if often else weights
        return _assign(log_first, log_second, log_rest, log_share, counted, second)
    gain = np.zeros(known.codes.size)
    for i in range(known.labels.size):
        if known.labels[i] >= 0:
            count = known.repeats[i] if often else 1.0
            gain[known.labels[i]] += count * (log_second[i] - log_first[i])
    pooled_first, pooled_second = np.full(each.size, log_rest), np.full(each.size, log_share)
    for i in range(known.groups.size):
        count = known.repeats[i] if often else 1.0
        pooled_first[known.groups[i]] += count * log_first[i]
        pooled_second[known.groups[i]] += count * log_second[i]
    loglik = 0.0
    for i in range(second.size):
        label = known.labels[i] if known.labels.size else -1
        count = known.repeats[i] if often else 1.0
        if label >= 0:
            code = known.codes[label]
            hit = code == TARGET or (code == FREE and gain[label] > 0.0)
            second[i] = 1.0 if hit else 0.0
            loglik += count * weights[i] * (log_second[i] + log_share if hit else log_first[i] + log_rest)
            continue
        if each.size:
            group = known.groups[i]
            first, other, part = pooled_first[group], pooled_second[group], each[group]  # counted already
        else:
            first, other, part = log_first[i] + log_rest, log_second[i] + log_share, count
        low, high = min(first, other), max(first, other)
        ratio = np.exp(low - high)
        second[i] = (ratio if first > other else 1.0) / (1.0 + ratio)
        loglik += weights[i] * part * (high + np.log1p(ratio))
    return loglik


@vectorised
def _assign(log_first, log_second, log_rest, log_share, counted, second):  # type: ignore[no-untyped-def]
    """The same where rows have neither labels nor groups, as nearly always: several rows at a time."""
    loglik = 0.0
    for i in range(second.size):
        first, other = log_first[i] + log_rest, log_second[i] + log_share
        ratio = fast_exp(max(-abs(first - other), LOWEST))
        second[i] = (ratio if first > other else 1.0) / (1.0 + ratio)
        loglik += counted[i] * (max(first, other) + fast_log(1.0 + ratio))
    return loglik


@njit
def minority_table(  # type: ignore[no-untyped-def]
    z, variable, candidates, imperfect, required, max_parents, edge_prior, starts, iterations, groups, repeats
):
    """Penalised mixture likelihood of every parent set within ``candidates``, ``[2^c]``.

    Small sets try every column of ``starts [n, s]`` (which rows might be the minority); larger ones continue from
    the best of their subsets, whose minority is nearly theirs. ``groups [n]`` says which rows go together, and
    ``repeats [n]`` how often they count, if not empty. Also returns the minority posterior of every set.
    """
    n = z.shape[0]
    n_candidates = candidates.shape[0]
    table = np.full(1 << n_candidates, -np.inf)
    loglik = np.full(1 << n_candidates, -np.inf)
    posterior = np.zeros((1 << n_candidates, n))
    weights = np.ones(n)
    second = np.empty(n)
    count = repeats.sum() if repeats.size else float(n)
    known = Known(np.empty(0), np.empty((0, 0)), np.empty(0, np.int64), np.empty(0, np.int8), groups, repeats)
    for mask in range(1 << n_candidates):
        size, prior, parent_set = 0, 0.0, -1
        for a in range(n_candidates):
            if mask >> a & 1:
                size += 1
                prior += edge_prior[candidates[a], variable]
                subset = mask & ~(1 << a)
                if parent_set < 0 or loglik[subset] > loglik[parent_set]:
                    parent_set = subset
        if size > max_parents:
            continue
        rows, column = np.ones((n, size + 2)), 1
        for a in range(n_candidates):
            if mask >> a & 1:
                rows[:, column] = z[:, candidates[a]]
                column += 1
        rows[:, column] = z[:, variable]
        n_second = size + 1 if imperfect else 1
        for start in range(starts.shape[1] if size <= SMALL_LINEAR_SET else 0):
            second[:] = starts[:, start]
            value = two_mechanisms(
                rows, size + 1, n_second, known, weights, second, iterations, MINORITY_TOLERANCE, 0.0
            )
            if value > loglik[mask]:
                loglik[mask] = value
                posterior[mask] = second
        if parent_set >= 0:
            second[:] = posterior[parent_set]
            value = two_mechanisms(
                rows, size + 1, n_second, known, weights, second, iterations, MINORITY_TOLERANCE, 0.0
            )
            if value > loglik[mask]:
                loglik[mask] = value
                posterior[mask] = second
        if (mask & required) == required:
            n_parameters = size + 2 + n_second + 2
            table[mask] = loglik[mask] - 0.5 * n_parameters * np.log(count) + prior
    return table, posterior
