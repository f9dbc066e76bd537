"""CAM, causal additive models (Bühlmann, Peters and Ernest 2014), small and from the paper's description.

The published implementation is in R and was taken off CRAN; the Python port that we know of (in ``dodiscover``) has no
release on PyPI. The steps: additive regressions on splines; a greedy order, always adding the edge that raises the
likelihood most and closes no cycle; pruning of parents that are not significant at level 0.001. Preliminary
neighbourhood selection, which only saves time on many variables, is left out. With known targets a variable's
regression leaves out the rows in which it is intervened upon, as in the comparison of DCDI.

All regressions need only products of basis functions, so rows are looked at once.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from experiments.baselines.interface import Graph, Problem

KNOTS, LEVEL, RIDGE = 6, 1e-3, 1e-6


def cam(problem: Problem) -> Graph:
    """One data set without interventions."""
    rows = problem.rows()
    moments = _moments(rows, [np.ones(len(rows), dtype=bool)])
    return _search([moments[0]] * rows.shape[1])


def cam_with_targets(problem: Problem) -> Graph:
    """Rows in which a variable is intervened upon say nothing about its mechanism."""
    shared = problem.targets[problem.regimes] == 0
    return _search(_moments(problem.X, list(shared.T)))


class _Moments:
    """Products of basis functions (column 0 is the constant) and variables over some rows."""

    def __init__(self, basis: NDArray[np.float64], X: NDArray[np.float64]) -> None:
        self.gram, self.cross, self.squares = basis.T @ basis, basis.T @ X, (X**2).sum(axis=0)
        self.n, self.size = len(X), (basis.shape[1] - 1) // X.shape[1]

    def residual(self, child: int, parents: list[int]) -> float:
        """Sum of squares that an additive function of the parents leaves."""
        blocks = [np.arange(1 + self.size * p, 1 + self.size * (p + 1)) for p in parents]
        columns = np.concatenate([[0], *blocks]).astype(int)
        gram = self.gram[np.ix_(columns, columns)] + RIDGE * self.n * np.diag(columns > 0)
        cross = self.cross[columns, child]
        left = self.squares[child] - cross @ np.linalg.solve(gram, cross)
        return max(float(left), 1e-12 * self.squares[child])


def _moments(X: NDArray[np.float64], selections: list[NDArray[np.bool_]]) -> list[_Moments]:
    from sklearn.preprocessing import SplineTransformer

    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    splines = SplineTransformer(KNOTS, degree=3, knots="quantile", include_bias=False)
    basis = np.hstack([np.ones((len(X), 1)), splines.fit_transform(X + 0.0)])
    return [_Moments(basis[rows], X[rows]) for rows in selections]


def _search(moments: list[_Moments]) -> Graph:
    d = len(moments)
    parents: list[list[int]] = [[] for _ in range(d)]
    before = np.array([moments[j].residual(j, []) for j in range(d)])
    gain = np.full((d, d), -np.inf)

    def refresh(child: int) -> None:
        for cause in range(d):
            if np.isfinite(gain[cause, child]):
                after = moments[child].residual(child, [*parents[child], cause])
                gain[cause, child] = moments[child].n / 2 * np.log(before[child] / after)

    reaches = np.eye(d, dtype=bool)
    for cause, child in product(range(d), repeat=2):
        gain[cause, child] = 0.0 if cause != child else -np.inf
    for child in range(d):
        refresh(child)
    while np.isfinite(gain).any():
        cause, child = np.unravel_index(gain.argmax(), gain.shape)
        parents[child].append(int(cause))
        before[child] = moments[child].residual(child, parents[child])
        reaches |= np.outer(reaches[:, cause], reaches[child])
        gain[reaches.T] = -np.inf  # i -> j would close a cycle where j reaches i
        gain[cause, child] = -np.inf
        refresh(int(child))
    graph = np.zeros((d, d), dtype=np.int64)
    for child in range(d):
        graph[_significant(moments[child], child, parents[child]), child] = 1
    return graph


def _significant(moments: _Moments, child: int, parents: list[int]) -> list[int]:
    """Parents whose splines an F-test keeps, all others being there."""
    from scipy import stats

    full = moments.residual(child, parents)
    freedom = moments.n - 1 - moments.size * len(parents)
    kept = []
    for parent in parents:
        without = moments.residual(child, [p for p in parents if p != parent])
        ratio = (without - full) / moments.size / (full / freedom)
        if stats.f.sf(ratio, moments.size, freedom) < LEVEL:
            kept.append(parent)
    return kept
