"""Parents that nobody thought of: what explains a part of what a mechanism leaves over.

Candidates are few in wide tables, and were chosen by what each explains alone, before anything was known. Here the
question is what a variable adds to the parents that were found, alone or together with them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latentdo.graphs import reachability
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR
from latentdo.solvers.nonlinear.rough_scores import random_features
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import HEAVY, OWN_RIDGE, SCREEN_FEATURES, SCREENED_ROWS, SPARE

Array = NDArray[np.float64]


def promising_parents(problem: Problem, state: State, j: int, rng: np.random.Generator) -> list[int]:
    """Variables that may become parents of ``j`` without a cycle and seem to pay for it, the best first; a few."""
    parents = state.model.parents[j]
    below = reachability(state.adjacency)[j].astype(bool)
    free = problem.constraints.allowed[:, j] & ~below
    free[[j, *parents]] = False
    weights = state.following(j)
    rows = rng.permutation(np.flatnonzero(weights > HEAVY * weights.max()))[:SCREENED_ROWS]
    if not rows.size:
        return []  # all regimes target it, so no row shows what a parent would explain
    left = state.residual(problem.z[rows], j)
    x = problem.z[np.ix_(rows, parents)]
    # What another network of the same parents would explain is no merit of one more parent.
    known = random_features(x, SCREEN_FEATURES, rng)
    before = _left_over(known, left)
    half_log = 0.5 * np.log(max(rows.size, 2))
    gains = {}
    for i in np.flatnonzero(free).tolist():
        more = random_features(np.column_stack([problem.z[rows, i], x]), SCREEN_FEATURES, rng)[:, 1:]
        alone = random_features(problem.z[rows, i][:, None], SCREEN_FEATURES, rng)[:, 1:]
        after = _left_over(np.column_stack([known, alone, more]), left)
        gain = 0.5 * rows.size * np.log(before / after) - half_log * 2 * SCREEN_FEATURES
        if gain > 0.0:
            gains[i] = gain
    return sorted(gains, key=lambda i: -gains[i])[:SPARE]


def _left_over(design: Array, y: Array) -> float:
    """Mean square that a regression leaves of ``y``."""
    gram = design.T @ design
    gram += OWN_RIDGE * len(y) * np.eye(len(gram))
    fitted = design @ np.linalg.lstsq(gram, design.T @ y, rcond=None)[0]
    return max(float(np.mean((y - fitted) ** 2)), VARIANCE_FLOOR)
