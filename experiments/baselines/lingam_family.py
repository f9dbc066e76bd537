"""DirectLiNGAM and RESIT (package ``lingam``): orders from independent noise, without interventions."""

from __future__ import annotations

import numpy as np

from experiments.baselines.interface import Graph, Problem

RESIT_ROWS = 1000
"""Its test of independence needs several matrices of rows x rows per regression; more rows are drawn from at random."""


def direct_lingam(problem: Problem) -> Graph:
    """Linear, noise that is not Gaussian; edges are what the package's adaptive lasso leaves."""
    from lingam import DirectLiNGAM

    return _read(DirectLiNGAM(random_state=0).fit(problem.rows()).adjacency_matrix_)


def resit(problem: Problem) -> Graph:
    """Any function with additive noise; forests of depth 4 as in the package's tutorial, tests at level 0.001."""
    from lingam import RESIT
    from sklearn.ensemble import RandomForestRegressor

    rows = problem.rows()
    drawn = np.random.default_rng(0).permutation(len(rows))[:RESIT_ROWS]
    forest = RandomForestRegressor(max_depth=4, random_state=0)
    return _read(RESIT(forest, random_state=0, alpha=0.001).fit(rows[drawn]).adjacency_matrix_)


def _read(matrix: np.ndarray) -> Graph:
    """Their row is the effect and their column the cause."""
    return np.asarray(matrix.T != 0, dtype=np.int64)
