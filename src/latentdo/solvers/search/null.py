r"""The sceptic's model: one regime, but noise of any shape.

A mixture of regimes also fits heavy tails and skewness. Hidden interventions count as found only if the mixture beats
the best linear DAG with *one* regime whose noise is a Gaussian mixture of its own in every variable,
:math:`z_j = b_j^\top z_{pa(j)} + \varepsilon_j,\ \varepsilon_j \sim \sum_c w_c N(m_c, s_c^2)`,
compared by the same evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from latentdo.solvers.search.em import State, relearn
from latentdo.solvers.search.problem import Problem

MAX_NOISE_COMPONENTS = 3


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
        design = np.column_stack([problem.design[:, 0], problem.z[:, parents]])
        gain, n_components = _noise_gain(problem.z[:, j], design)
        evidence += gain
        chosen.append(n_components)
    return NullModel(state, evidence, tuple(chosen))


def _noise_gain(values: NDArray[np.float64], design: NDArray[np.float64]) -> tuple[float, int]:
    """Rise of the evidence by a mixture as noise, over a single Gaussian; zero if none pays."""
    n = len(values)
    plain = _loglik(values, design, 1)
    best, chosen = 0.0, 1
    for n_components in range(2, MAX_NOISE_COMPONENTS + 1):
        gain = _loglik(values, design, n_components) - plain - 1.5 * (n_components - 1) * np.log(n)
        if gain > best:
            best, chosen = gain, n_components
    return best, chosen


def _loglik(
    values: NDArray[np.float64], design: NDArray[np.float64], n_components: int, steps: int = 100
) -> float:
    """Maximised likelihood of a regression whose noise is a Gaussian mixture, by EM with reweighted least squares."""
    coefficients = np.linalg.lstsq(design, values, rcond=None)[0]
    residual = values - design @ coefficients
    spread = max(float(residual.std()), 1e-9)
    best = -np.inf
    # Two shapes to start from: components side by side (skewness), or of growing width (heavy tails).
    for means, scales in (
        (np.linspace(-1.0, 1.0, n_components) * (n_components > 1), np.full(n_components, 0.7)),
        (np.zeros(n_components), np.geomspace(0.6, 2.5, n_components) if n_components > 1 else np.ones(1)),
    ):
        beta, mean, variance = coefficients.copy(), means * spread, (scales * spread) ** 2
        weight, before = np.full(n_components, 1.0 / n_components), -np.inf
        for _ in range(steps):
            residual = values - design @ beta
            joint = np.log(weight) - 0.5 * np.log(2 * np.pi * variance)
            joint = joint - 0.5 * (residual[:, None] - mean) ** 2 / variance
            total = logsumexp(joint, axis=1)
            loglik = float(total.sum())
            if loglik - before < 0.01:
                break
            before = loglik
            posterior = np.exp(joint - total[:, None])
            precision = posterior / variance
            weights = precision.sum(axis=1)
            pulled = values - (precision * mean).sum(axis=1) / weights
            scaled = design * weights[:, None]
            beta = np.linalg.lstsq(scaled.T @ design, scaled.T @ pulled, rcond=None)[0]
            residual = values - design @ beta
            count = np.maximum(posterior.sum(axis=0), 1e-9)
            mean = posterior.T @ residual / count
            variance = np.einsum("nc,nc->c", posterior, (residual[:, None] - mean) ** 2) / count
            variance = np.maximum(variance, 1e-6 * spread**2)
            weight = count / len(values)
        best = max(best, before)
    return best
