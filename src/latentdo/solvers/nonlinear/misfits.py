"""Rows that leave a mechanism: whether they show an intervention, or a network that does not fit them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from latentdo.model.mechanisms import Noise
from latentdo.model.mechanisms.network import hidden
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import COMMON, LEAVING_ROWS_PER_PARENT, NOISIER, STILL_EXPLAINED

Array = NDArray[np.float64]


def is_misfit(
    problem: Problem,
    state: State,
    j: int,
    rows: NDArray[np.int64],
    leaving: NDArray[np.bool_],
    *,
    flexible: bool,
) -> bool:
    """Whether rows that leave a regime's mechanism of ``j`` show a bad network, not an intervention.

    Where a network is off, the variable is still a function of its parents with little noise, or with less than
    elsewhere. An intervention makes it something else: independent of the parents if it is perfect, noisier if it
    is not. (Interventions on the function alone are for the minorities at the start to find.)
    """
    parents = state.model.parents[j]
    if leaving.sum() < LEAVING_ROWS_PER_PARENT * (parents.size + 2) or leaving.all():
        return True
    if not parents.size:
        return False
    x, y = problem.z[np.ix_(rows, parents)], problem.z[rows, j]
    # The noise of those who stay, once their mechanism is no longer bent towards those who leave.
    bent = np.column_stack([x, hidden(x, state.mechanism(j).parameters)])
    usual = _left_over(bent[~leaving], y[~leaving])
    spread = float(y[leaving].var())
    if spread < usual and not flexible:
        return True
    left = _left_over(x[leaving], y[leaving])
    return left < STILL_EXPLAINED * spread and (not problem.imperfect or left < NOISIER * usual)


def _left_over(inputs: Array, y: Array) -> float:
    """Variance of ``y`` that no linear function of the inputs explains."""
    design = np.column_stack([np.ones(y.size), inputs])
    return float((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]).var())


def is_common(problem: Problem, state: State, k: int, j: int, rows: NDArray[np.int64], share: Array) -> bool:
    """Whether rows like those that leave regime ``k``'s mechanism of ``j`` are found in regimes that share it as well.

    Then they are a part of the mechanism that its density does not show, such as an atom, and no intervention.
    """
    sharing = (state.targets[:, j] == 0) & (np.arange(state.n_regimes) != k)
    if state.targets[k, j] or not sharing.any() or not 0.0 < share.mean() < 1.0:
        return False
    y = problem.z[:, j]
    mean = np.average(y[rows], weights=share)
    leaves = Noise.gaussian(max(float(np.average((y[rows] - mean) ** 2, weights=share)), VARIANCE_FLOOR))
    odds = leaves.log_density(y - mean) - state.model.variable_log_density(problem.z, j, k)
    leaving = expit(odds + logit(share.mean()))
    here = np.average(leaving, weights=state.responsibilities[:, k])
    elsewhere = np.average(leaving, weights=state.responsibilities[:, sharing].sum(axis=1))
    return bool(elsewhere > COMMON * here)
