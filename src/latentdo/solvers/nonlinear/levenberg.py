"""Second-order fits of small networks: Levenberg-Marquardt on all parameters at once.

On the true parents of the paper's benchmark 8 units end at 1.0 times the noise of most variables within 0.1 s; Adam
with 32 units was at 25 times after 400 steps (`evidence.md`, section 8).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from latentdo.compilation import njit
from latentdo.model.mechanisms.base import Array
from latentdo.model.mechanisms.network import evaluate
from latentdo.solvers.settings import (
    DAMPING,
    DAMPING_FACTOR,
    DAMPING_FLOOR,
    DAMPING_TRIES,
    FIT_STARTS,
    FIT_STEPS,
    FIT_TOLERANCE,
    HEAVY,
    LEAST_DAMPING,
    RIDGE,
    SINGULAR_FACTOR,
    SLOW_STEPS,
    START_RIDGE,
    START_ROWS,
    START_STEPS,
    UNITS,
)


@njit
def _linearise(x, y, root_weights, parameters, jacobian, residual):  # type: ignore[no-untyped-def]
    """Fill the weighted Jacobian ``[n, q]`` and residual ``[n]``."""
    n, p = x.shape
    units = (parameters.shape[0] - 1 - p) // (p + 2)
    for i in range(n):
        w = root_weights[i]
        total = parameters[0]
        jacobian[i, 0] = w
        for a in range(p):
            total += parameters[1 + a] * x[i, a]
            jacobian[i, 1 + a] = w * x[i, a]
        place = 1 + p
        for _ in range(units):
            inner = parameters[place + 1]
            for a in range(p):
                inner += parameters[place + 2 + a] * x[i, a]
            if inner > 0.0:
                outer = parameters[place]
                total += outer * inner
                jacobian[i, place] = w * inner
                jacobian[i, place + 1] = w * outer
                for a in range(p):
                    jacobian[i, place + 2 + a] = w * outer * x[i, a]
            else:
                for a in range(p + 2):
                    jacobian[i, place + a] = 0.0
            place += p + 2
        residual[i] = w * (y[i] - total)


def descend(
    x: Array, y: Array, weights: Array, parameters: Array, iterations: int, tolerance: float = FIT_TOLERANCE
) -> tuple[Array, float]:
    """Lower the weighted sum of squares from ``parameters``; returns the better parameters and the sum.

    Ends after two steps in a row that gain less than ``tolerance`` of the sum. Without inputs the answer is exact.
    """
    if x.shape[1] == 0:
        mean = float(weights @ y / weights.sum())
        return np.array([mean]), float(weights @ (y - mean) ** 2)
    used = weights > 0.0
    if not used.all():
        x, y, weights = np.ascontiguousarray(x[used]), y[used], weights[used]
    root = np.sqrt(weights)
    jacobian, residual = np.empty((len(x), parameters.size)), np.empty(len(x))
    _linearise(x, y, root, parameters, jacobian, residual)
    loss, damping, slow = float(residual @ residual), DAMPING, 0
    for _ in range(iterations):
        gram, slope = jacobian.T @ jacobian, jacobian.T @ residual
        scale = np.diag(gram) + DAMPING_FLOOR * len(x)
        for _attempt in range(DAMPING_TRIES):
            matrix = gram + np.diag(damping * scale + RIDGE * len(x))
            try:
                step = cho_solve(cho_factor(matrix, check_finite=False), slope, check_finite=False)
            except np.linalg.LinAlgError:
                damping *= SINGULAR_FACTOR
                continue
            trial = parameters + step
            value = float(weights @ (y - evaluate(x, trial)) ** 2)
            if value < loss:
                break
            damping *= DAMPING_FACTOR
        else:
            return parameters, loss
        slow = slow + 1 if loss - value < tolerance * loss else 0
        parameters, loss, damping = trial, value, max(damping / DAMPING_FACTOR, LEAST_DAMPING)
        if slow >= SLOW_STEPS:
            break
        _linearise(x, y, root, parameters, jacobian, residual)
    return parameters, loss


def random_start(x: Array, y: Array, weights: Array, rng: np.random.Generator, units: int = UNITS) -> Array:
    """Random directions with their kinks at random rows, and the best last layer for them."""
    n, p = x.shape
    if p == 0:
        return np.array([weights @ y / weights.sum()])
    directions = rng.standard_normal((units, p))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    inner = x @ directions.T
    offsets = -inner[rng.integers(0, n, units), np.arange(units)]
    design = np.column_stack([np.ones(n), x, np.maximum(inner + offsets, 0.0)])
    weighted = design * weights[:, None]
    gram = weighted.T @ design + START_RIDGE * weights.sum() * np.eye(design.shape[1])
    last = np.linalg.solve(gram, weighted.T @ y)
    units_rows = np.column_stack([last[1 + p :], offsets, directions])
    return np.concatenate([last[: 1 + p], units_rows.ravel()])


@dataclass(frozen=True)
class Effort:
    """How hard to look for the best network.

    Parameters
    ----------
    starts : int
        Random starts.
    steps : int
        Steps on all rows from the best of them.
    tolerance : float
        Share of the sum of squares below which such a step gains nothing.
    finalists : int
        Starts that are continued on all rows.
    start_rows : int
        Rows on which starts are compared.
    units : int
        Rectified units.
    """

    starts: int = FIT_STARTS
    steps: int = FIT_STEPS
    tolerance: float = FIT_TOLERANCE
    finalists: int = 1
    start_rows: int = START_ROWS
    units: int = UNITS


USUAL = Effort()


def fit_network(
    x: Array,
    y: Array,
    weights: Array,
    rng: np.random.Generator,
    effort: Effort = USUAL,
    *,
    start: Array | None = None,
) -> tuple[Array, float]:
    """Best of several starts on a few rows (and of ``start``, if given), continued on all rows."""
    if x.shape[1] == 0:
        return descend(x, y, weights, np.empty(0), 0)
    heavy = np.flatnonzero(weights > HEAVY * weights.max())
    rows = rng.permutation(heavy)[: effort.start_rows]
    few = np.ascontiguousarray(x[rows]), y[rows], weights[rows]
    candidates = [random_start(*few, rng, effort.units) for _ in range(effort.starts)]
    if start is not None:
        candidates.append(start)
    fits = [descend(*few, candidate, START_STEPS) for candidate in candidates]
    fits.sort(key=lambda fit: fit[1])
    ends = [
        descend(x, y, weights, fit[0], effort.steps, effort.tolerance) for fit in fits[: effort.finalists]
    ]
    return min(ends, key=lambda fit: fit[1])
