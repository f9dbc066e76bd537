"""GES, BOSS, GRaSP, PC, FCI and CD-NOD (package ``causal-learn``).

All but the last know of no interventions; CD-NOD takes a column that says under which conditions a row was measured.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.baselines.interface import Graph, Problem
from experiments.baselines.mixture import clusters_by_bic

TAIL, ARROW, CIRCLE = -1, 1, 2
"""Marks of an edge's ends; ``marks[i, j]`` is the mark at i."""


def ges(problem: Problem) -> Graph:
    """Gaussian BIC."""
    from causallearn.search.ScoreBased.GES import ges as search

    return _read(search(problem.rows())["G"])


def boss(problem: Problem) -> Graph:
    """Best orders by Gaussian BIC."""
    from causallearn.search.PermutationBased.BOSS import boss as search

    return _read(search(problem.rows(), verbose=False))


def grasp(problem: Problem) -> Graph:
    """Sparsest orders by greedy relaxation, Gaussian BIC."""
    from causallearn.search.PermutationBased.GRaSP import grasp as search

    return _read(search(problem.rows(), verbose=False))


def pc(problem: Problem) -> Graph:
    """Partial correlations at level 0.001, because there are thousands of rows."""
    from causallearn.search.ConstraintBased.PC import pc as search

    return _read(search(problem.rows(), alpha=0.001, show_progress=False).G)


def fci(problem: Problem) -> Graph:
    """As PC, with hidden common causes allowed."""
    from causallearn.search.ConstraintBased.FCI import fci as search

    graph, _ = search(problem.rows(), alpha=0.001, show_progress=False)
    return _read(graph)


def cdnod_with_regimes(problem: Problem) -> Graph:
    """True regimes, their targets unknown."""
    return _cdnod(problem.X, problem.regimes)


def gmm_then_cdnod(problem: Problem) -> Graph:
    """Regimes are the clusters of a Gaussian mixture, their number by BIC."""
    return _cdnod(problem.X, clusters_by_bic(problem.X))


def cdnod_with_time(problem: Problem) -> Graph:
    """Mechanisms change with time, the other use that its paper is written for."""
    return _cdnod(problem.X, problem.time)


def _cdnod(X: NDArray[np.float64], index: NDArray[Any]) -> Graph:
    """Fisher's test, the package's default: the kernel test needs 40 s for 400 rows of eight variables."""
    from causallearn.search.ConstraintBased.CDNOD import cdnod as search

    found = search(X, np.asarray(index, dtype=float)[:, None], alpha=0.001, show_progress=False)
    d = X.shape[1]
    return _read(found.G)[:d, :d]  # the last node is the index


def _read(graph: Any) -> Graph:
    """Count i -> j and i o-> j as i -> j, i - j and i o-o j as undirected, and i <-> j (a hidden cause) as no edge."""
    marks = np.asarray(graph.graph)
    out = np.zeros(marks.shape, dtype=np.int64)
    for i, j in np.argwhere(marks != 0):
        out[i, j] = marks[i, j] != ARROW  # an arrowhead at i says that i does not cause j
    return out
