"""GES, PC and FCI (package ``causal-learn``): methods that know of no interventions."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.baselines.interface import Graph, Problem

TAIL, ARROW, CIRCLE = -1, 1, 2
"""Marks of an edge's ends; ``marks[i, j]`` is the mark at i."""


def ges(problem: Problem) -> Graph:
    """Gaussian BIC."""
    from causallearn.search.ScoreBased.GES import ges as search

    return _read(search(problem.rows())["G"])


def pc(problem: Problem) -> Graph:
    """Partial correlations at level 0.001, because there are thousands of rows."""
    from causallearn.search.ConstraintBased.PC import pc as search

    return _read(search(problem.rows(), alpha=0.001, show_progress=False).G)


def fci(problem: Problem) -> Graph:
    """As PC, with hidden common causes allowed."""
    from causallearn.search.ConstraintBased.FCI import fci as search

    graph, _ = search(problem.rows(), alpha=0.001, show_progress=False)
    return _read(graph)


def _read(graph: Any) -> Graph:
    """Count i -> j and i o-> j as i -> j, i - j and i o-o j as undirected, and i <-> j (a hidden cause) as no edge."""
    marks = np.asarray(graph.graph)
    out = np.zeros(marks.shape, dtype=np.int64)
    for i, j in np.argwhere(marks != 0):
        out[i, j] = marks[i, j] != ARROW  # an arrowhead at i says that i does not cause j
    return out
