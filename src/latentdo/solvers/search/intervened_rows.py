r"""Two mechanisms in one variable: what most rows follow, and what a minority follows instead.

In every variable all rows but the intervened ones share one mechanism. So a two-mechanism mixture of regressions,

.. math:: p(z_j \mid z_P) = (1 - w)\, N(z_j; b^\top z_P, \sigma^2) + w\, N(z_j; c^\top z_Q, \tau^2)

(*Q* empty for a perfect intervention, *P* for an imperfect one), finds a hidden intervention on *j* with no clustering
at all, and its likelihood scores the parents *P* while interventions are still unknown.
"""

from __future__ import annotations

import numpy as np

from latentdo.compilation import njit
from latentdo.solvers.search.local_scores import LOG_2PI, regression, weighted_gram
from latentdo.solvers.settings import MINORITY_TOLERANCE, ROWS_PER_PARAMETER, SMALL_LINEAR_SET


@njit
def two_mechanisms(  # type: ignore[no-untyped-def]
    rows, n_first, n_second, base, weights, second, iterations, tolerance, floor
):
    """EM for the two-mechanism mixture; returns its log-likelihood, minus infinity if a regime dies.

    ``rows [n, q]`` holds ones, regressors and, last, the values. The first mechanism uses the first ``n_first``
    columns, or has the known log-density ``base [n]`` if ``n_first`` is 0; the second uses the first ``n_second``.
    ``weights [n]`` weighs the rows. ``second [n]`` is the posterior of the second mechanism: start and result.
    """
    n, width = rows.shape
    last = width - 1
    total = weights.sum()
    gram_a, gram_b = np.empty((n_first + 1, n_first + 1)), np.empty((n_second + 1, n_second + 1))
    factor = np.zeros((width, width))
    contrast_a, contrast_b = np.empty(n_first + 1), np.empty(n_second + 1)
    before, loglik = -np.inf, -np.inf
    for step in range(iterations):
        leaving = weights * second
        share = leaving.sum()
        rest = total - share
        weighted_gram(rows, n_second, rows[:, last], leaving, gram_b)
        if n_first:
            weighted_gram(rows, n_first, rows[:, last], weights - leaving, gram_a)
        if share < ROWS_PER_PARAMETER * (n_second + 1) or rest < ROWS_PER_PARAMETER * (n_first + 1):
            return -np.inf
        variance_b = max(regression(gram_b, n_second + 1, factor, contrast_b) / share, floor)
        constant_b = np.log(share / total) - 0.5 * (LOG_2PI + np.log(variance_b))
        constant_a = np.log(rest / total)
        variance_a = 1.0
        if n_first:
            variance_a = max(regression(gram_a, n_first + 1, factor, contrast_a) / rest, floor)
            constant_a -= 0.5 * (LOG_2PI + np.log(variance_a))
        loglik = 0.0
        for i in range(n):
            residual = rows[i, last]
            for a in range(n_second):
                residual += contrast_b[a] * rows[i, a]
            log_b = constant_b - 0.5 * residual * residual / variance_b
            if n_first:
                residual = rows[i, last]
                for a in range(n_first):
                    residual += contrast_a[a] * rows[i, a]
                log_a = constant_a - 0.5 * residual * residual / variance_a
            else:
                log_a = constant_a + base[i]
            if log_a > log_b:
                ratio = np.exp(log_b - log_a)
                loglik += weights[i] * (log_a + np.log1p(ratio))
                second[i] = ratio / (1.0 + ratio)
            else:
                ratio = np.exp(log_a - log_b)
                loglik += weights[i] * (log_b + np.log1p(ratio))
                second[i] = 1.0 / (1.0 + ratio)
        if loglik - before < tolerance and step > 0:
            break
        before = loglik
    return loglik


@njit
def minority_table(  # type: ignore[no-untyped-def]
    z, variable, candidates, imperfect, required, max_parents, edge_prior, starts, iterations, floor
):
    """Penalised mixture likelihood of every parent set within ``candidates``, ``[2^c]``.

    Small sets try every column of ``starts [n, s]`` (which rows might be the minority); larger ones continue from
    the best of their subsets, whose minority is nearly theirs. Also returns the minority posterior of every set.
    """
    n = z.shape[0]
    n_candidates = candidates.shape[0]
    table = np.full(1 << n_candidates, -np.inf)
    loglik = np.full(1 << n_candidates, -np.inf)
    posterior = np.zeros((1 << n_candidates, n))
    weights = np.ones(n)
    second = np.empty(n)
    base = np.empty(0)
    rows = np.ones((n, n_candidates + 2))
    for mask in range(1 << n_candidates):
        size, prior, parent_set = 0, 0.0, -1
        for a in range(n_candidates):
            if mask >> a & 1:
                size += 1
                for i in range(n):
                    rows[i, size] = z[i, candidates[a]]
                prior += edge_prior[candidates[a], variable]
                subset = mask & ~(1 << a)
                if parent_set < 0 or loglik[subset] > loglik[parent_set]:
                    parent_set = subset
        if size > max_parents:
            continue
        for i in range(n):
            rows[i, size + 1] = z[i, variable]
        n_second = size + 1 if imperfect else 1
        view = rows[:, : size + 2]
        for start in range(starts.shape[1] if size <= SMALL_LINEAR_SET else 0):
            second[:] = starts[:, start]
            value = two_mechanisms(
                view, size + 1, n_second, base, weights, second, iterations, MINORITY_TOLERANCE, floor
            )
            if value > loglik[mask]:
                loglik[mask] = value
                posterior[mask] = second
        if parent_set >= 0:
            second[:] = posterior[parent_set]
            value = two_mechanisms(
                view, size + 1, n_second, base, weights, second, iterations, MINORITY_TOLERANCE, floor
            )
            if value > loglik[mask]:
                loglik[mask] = value
                posterior[mask] = second
        if (mask & required) == required:
            n_parameters = size + 2 + n_second + 2
            table[mask] = loglik[mask] - 0.5 * n_parameters * np.log(n) + prior
    return table, posterior
