"""Regimes taken apart where the values of their targets fall apart.

With mixed noise one intervention may stand for several: three peaks of a variable that "was hit" are one peak for each
of three regimes that hit it or its causes. Evidence hardly sees the difference, but what moves in which of the regimes
tells the order of the variables.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latentdo.model.assignment import Prior
from latentdo.model.mechanisms import Noise
from latentdo.model.mechanisms.histograms import histogram
from latentdo.model.mechanisms.shapes import UNKNOWN, choose_shape
from latentdo.solvers.search.local_scores import FREE
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import CLEAR, PEAKS, SMALLEST_PART

Array = NDArray[np.float64]


def divide(problem: Problem, state: State) -> tuple[Array, NDArray[np.int8]]:
    """Responsibilities and targets of the finest regimes that the targets' values tell apart clearly."""
    fixed = problem.fixed(state.n_regimes)
    parts, targets = [], []
    for k in range(state.n_regimes):
        mine = [state.responsibilities[:, k]]
        if k >= problem.n_labelled:
            for j in np.flatnonzero((state.targets[k] == 1) & (fixed[k] == FREE)):
                mine = [part for one in mine for part in _peaks(problem, state, k, int(j), one)]
        parts += mine
        targets += [state.targets[k]] * len(mine)
    return np.column_stack(parts), np.array(targets, dtype=np.int8)


def _peaks(problem: Problem, state: State, k: int, j: int, rows: Array) -> list[Array]:
    """The rows (weighted) by the peaks of ``j``'s own mechanism in regime ``k``; all of them if there is one."""
    residual = state.residual(problem.z, j, k)
    bins, mean, spread = histogram(residual, rows)
    shape, _ = choose_shape(bins, mean, spread, UNKNOWN, PEAKS, 0.0)
    noise = Noise(*shape)
    if noise.is_row:
        return [rows]  # its law has one peak
    # The weights of the Gaussians are shares of rows; a group, whose rows go together, pays for its peak once.
    density = noise.log_joint(residual) - np.log(noise.weights)
    share = problem.units.pooled.assign(density, Prior(noise.weights)).responsibilities
    groups = [share[:, a] for a in range(share.shape[1])]
    while len(groups) > 1:
        sizes = np.array([rows @ group for group in groups])
        overlap = np.array([[rows @ (a * b) for b in groups] for a in groups])
        np.fill_diagonal(overlap, 0.0)
        small = int(sizes.argmin())
        if sizes[small] < max(problem.min_rows, SMALLEST_PART * rows.sum()):
            a, b = small, int(overlap[small].argmax())
        elif rows @ np.max(groups, axis=0) < CLEAR * rows.sum():
            a, b = (int(place) for place in np.unravel_index(overlap.argmax(), overlap.shape))
        else:
            break
        if a == b:
            b = (a + 1) % len(groups)
        groups[min(a, b)] = groups[a] + groups[b]
        del groups[max(a, b)]
    return [rows * group for group in groups]
