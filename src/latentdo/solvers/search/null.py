r"""The sceptic's model: one regime, but noise of any shape.

A mixture of regimes also fits heavy tails and skewness. Hidden interventions count as found only if the mixture beats
the best linear DAG with *one* regime whose noise is a Gaussian mixture of its own in every variable,
:math:`z_j = b_j^\top z_{pa(j)} + \varepsilon_j,\ \varepsilon_j \sim \sum_c w_c N(m_c, s_c^2)`,
compared by the same evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latentdo.solvers.search.em import State, relearn
from latentdo.solvers.search.local_scores import LOG_2PI, regression
from latentdo.solvers.search.problem import Problem

MAX_NOISE_COMPONENTS = 3

MAX_NOISE_ROWS = 5000
"""The shape of the noise is learnt from at most this many rows, and its gain scaled to all."""


@dataclass(frozen=True, eq=False)
class NullModel:
    """One regime with flexible noise.

    Parameters
    ----------
    state : State
        The best one-regime state with Gaussian noise.
    evidence : float
        Evidence with flexible noise on the same graph.
    noise_components : tuple of int
        Gaussian components in the noise of every variable.
    """

    state: State
    evidence: float
    noise_components: tuple[int, ...]


def fit_null(problem: Problem) -> NullModel:
    """Fit the one-regime model, then the shape of its noise."""
    state = relearn(problem, np.ones((problem.n_rows, 1)))
    evidence, chosen = state.evidence, []
    for j in range(problem.n_variables):
        parents = np.flatnonzero(state.adjacency[:, j])
        rows = np.column_stack([problem.design[:, 0], problem.z[:, parents], problem.z[:, j]])
        gain, n_components = _noise_gain(rows, float(np.sqrt(state.model.variances[j])))
        evidence += gain
        chosen.append(n_components)
    return NullModel(state, evidence, tuple(chosen))


def _noise_gain(rows: NDArray[np.float64], spread: float) -> tuple[float, int]:
    """Rise of the evidence by a mixture as noise, over a single Gaussian; zero if none pays."""
    n = len(rows)
    rows = np.ascontiguousarray(rows[:: -(-n // MAX_NOISE_ROWS)])
    plain = flexible_noise_loglik(rows, np.zeros(1), np.full(1, spread))
    best, chosen = 0.0, 1
    for n_components in range(2, MAX_NOISE_COMPONENTS + 1):
        # Two shapes to start from: components side by side (skewness), or of growing width (heavy tails).
        side = (np.linspace(-spread, spread, n_components), np.full(n_components, 0.7 * spread))
        wide = (np.zeros(n_components), np.geomspace(0.6, 2.5, n_components) * spread)
        loglik = max(flexible_noise_loglik(rows, *shape) for shape in (side, wide))
        gain = (loglik - plain) * n / len(rows) - 1.5 * (n_components - 1) * np.log(n)
        if gain > best:
            best, chosen = gain, n_components
    return best, chosen


@njit(cache=True)
def flexible_noise_loglik(rows, mean, scale):  # type: ignore[no-untyped-def]
    """Log-likelihood of a regression whose noise is a Gaussian mixture, by EM with reweighted least squares.

    ``rows [n, q]`` holds ones, regressors and, last, the values; ``mean`` and ``scale [c]`` are where the components
    of the noise start.
    """
    n, width = rows.shape
    last, n_components = width - 1, mean.shape[0]
    spread = scale.max()
    mean, variance = mean.copy(), scale**2
    weight = np.full(n_components, 1.0 / n_components)
    contrast, factor, gram = np.zeros(width), np.zeros((width, width)), np.empty((width, width))
    posterior, log_term = np.full((n, n_components), 1.0 / n_components), np.empty(n_components)
    loglik, before = -np.inf, -np.inf
    for step in range(200):
        gram[:] = 0.0
        for i in range(n):
            precision, pull = 0.0, 0.0
            for c in range(n_components):
                precision += posterior[i, c] / variance[c]
                pull += posterior[i, c] * mean[c] / variance[c]
            shifted = rows[i, last] - pull / precision
            for a in range(last):
                scaled = precision * rows[i, a]
                for b in range(a + 1):
                    gram[a, b] += scaled * rows[i, b]
                gram[last, a] += scaled * shifted
            gram[last, last] += precision * shifted * shifted
        regression(gram, width, factor, contrast)
        if step > 0:
            for c in range(n_components):
                count, first, second = 1e-9, 0.0, 0.0
                for i in range(n):
                    residual = rows[i, last]
                    for a in range(last):
                        residual += contrast[a] * rows[i, a]
                    count += posterior[i, c]
                    first += posterior[i, c] * residual
                    second += posterior[i, c] * residual * residual
                mean[c] = first / count
                variance[c] = max(second / count - mean[c] ** 2, 1e-6 * spread**2)
                weight[c] = count / n
        loglik = 0.0
        for i in range(n):
            residual = rows[i, last]
            for a in range(last):
                residual += contrast[a] * rows[i, a]
            high = -np.inf
            for c in range(n_components):
                log_term[c] = np.log(weight[c]) - 0.5 * (
                    LOG_2PI + np.log(variance[c]) + (residual - mean[c]) ** 2 / variance[c]
                )
                high = max(high, log_term[c])
            total = 0.0
            for c in range(n_components):
                posterior[i, c] = np.exp(log_term[c] - high)
                total += posterior[i, c]
            for c in range(n_components):
                posterior[i, c] /= total
            loglik += high + np.log(total)
        if step > 1 and loglik - before < 0.05:
            break
        before = loglik
    return loglik
