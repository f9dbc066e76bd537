r"""The sceptic's model: one regime, but noise of any shape.

A mixture of regimes also fits heavy tails and skewness. Hidden interventions count as found only if the mixture beats
linear models with *one* regime, :math:`z_j = b_j^\top z_{pa(j)} + \varepsilon_j`, whose noise is in every variable the
best of: Gaussian, sinh-arcsinh (Jones and Pewsey, 2009; tails alone, or tails and skewness), a mixture of Gaussians.
The graph is the best one-regime graph, or the mixture's own: non-Gaussian noise orients edges too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from latentdo.model.mechanisms.any_noise import ROW_TURNS, fit_rows
from latentdo.model.mechanisms.linear import LinearMechanism
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR, Noise
from latentdo.model.mechanisms.shapes import UNKNOWN
from latentdo.solvers.search.em import refine, relearn
from latentdo.solvers.search.local_scores import LOG_2PI
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import (
    DETERMINED,
    MAX_NOISE_GAUSSIANS,
    MAX_NOISE_ROWS,
    SINH_BOUNDS,
    SINH_RANGE,
)


@dataclass(frozen=True, eq=False)
class NullModel:
    """One regime with flexible noise.

    Parameters
    ----------
    state : State
        The one-regime state with Gaussian noise on the same graph.
    evidence : float
        Evidence with flexible noise.
    """

    state: State
    evidence: float


def fit_null(problem: Problem, adjacency: NDArray[np.int8] | None = None) -> NullModel:
    """Fit the one-regime model on a graph (by default the best one for Gaussian noise), then its noise."""
    everyone = np.ones((problem.n_rows, 1))
    state = (
        relearn(problem, everyone)
        if adjacency is None
        else refine(problem, everyone, adjacency, iterations=1)
    )
    evidence = state.evidence
    for j in range(problem.n_variables):
        parents = np.flatnonzero(state.adjacency[:, j])
        rows = np.column_stack([problem.design[:, 0], problem.z[:, parents], problem.z[:, j]])
        form = state.model.reference[j].linear_form
        assert form is not None
        evidence += noise_gain(rows, float(np.sqrt(form.variance)), problem.repeats)
    return NullModel(state, evidence)


def noise_gain(rows: NDArray[np.float64], spread: float, repeats: NDArray[np.float64]) -> float:
    """Rise of the evidence by the best shape of the noise over a Gaussian; zero if none is better.

    ``rows [n, q]`` holds ones, regressors and, last, the values, and ``repeats [n]`` says how often they count;
    ``spread`` is the scale of the residuals.
    """
    if spread**2 <= DETERMINED * VARIANCE_FLOOR:
        return 0.0  # a variable that its parents determine has only rounding for noise
    n = float(repeats.sum())
    some = slice(None, None, -(-len(rows) // MAX_NOISE_ROWS))
    rows, weights = np.ascontiguousarray(rows[some]), repeats[some]
    count = float(weights.sum())
    scale, root = n / count, np.sqrt(weights)
    coefficients = np.linalg.lstsq(rows[:, :-1] * root[:, None], rows[:, -1] * root, rcond=None)[0]
    residual = (rows[:, -1] - rows[:, :-1] @ coefficients) / spread
    plain = -0.5 * count * float(LOG_2PI + np.log((weights * residual**2).sum() / count) + 1.0)
    trials = [(sinh_arcsinh_loglik(residual, weights, skewed=skewed), 1 + skewed) for skewed in (False, True)]
    values = np.column_stack([rows[:, :-1], rows[:, -1] / spread])
    fit = fit_rows(values, weights * scale, UNKNOWN, MAX_NOISE_GAUSSIANS, ROW_TURNS)
    shaped = LinearMechanism(fit.coefficients, Noise(*fit.shape), growth=fit.growth)
    loglik = float((weights * shaped.log_density(values[:, 1:-1], values[:, -1])).sum())
    trials.append((loglik, shaped.n_parameters - fit.coefficients.size - 1))
    gains = [(loglik - plain) * scale - 0.5 * extra * np.log(n) for loglik, extra in trials]
    return max(0.0, *(float(gain) for gain in gains))


def sinh_arcsinh_loglik(values: NDArray[np.float64], weights: NDArray[np.float64], *, skewed: bool) -> float:
    r"""Maximised log-likelihood where :math:`\sinh(\delta \operatorname{asinh} y - \epsilon)` is standard normal."""
    count = float(weights.sum())

    def mean(terms: NDArray[np.float64]) -> float:
        return float((weights * terms).sum() / count)

    def negative(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Mean of minus the log-density, and its gradient."""
        location, log_scale, log_tail = parameters[:3]
        skewness = parameters[3] if skewed else 0.0
        tail = np.exp(log_tail)
        y = (values - location) * np.exp(-log_scale)
        bent = tail * np.arcsinh(y)
        inner = np.clip(bent - skewness, -SINH_RANGE, SINH_RANGE)
        cosh, sinh = np.cosh(inner), np.sinh(inner)
        density = log_tail - log_scale + np.log(cosh) - 0.5 * np.log1p(y**2) - 0.5 * sinh**2
        by_inner = np.where(np.abs(bent - skewness) < SINH_RANGE, sinh / cosh - sinh * cosh, 0.0)
        by_y = by_inner * tail / np.sqrt(1.0 + y**2) - y / (1.0 + y**2)
        gradient = np.array(
            [
                -np.exp(-log_scale) * mean(by_y),
                -1.0 - mean(by_y * y),
                1.0 + mean(by_inner * bent),
                -mean(by_inner),
            ]
        )
        return -mean(density) + 0.5 * LOG_2PI, -gradient[: len(parameters)]

    start = np.zeros(4 if skewed else 3)
    bounds = SINH_BOUNDS[: len(start)]
    best = minimize(negative, start, method="L-BFGS-B", jac=True, bounds=bounds)
    return -float(best.fun) * count
