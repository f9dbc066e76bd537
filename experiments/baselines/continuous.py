"""NOTEARS (as shipped by ``sdcd``) and DAGMA (package ``dagma``), linear, with the thresholds of their papers."""

from __future__ import annotations

import numpy as np

from experiments.baselines.interface import Graph, Problem

THRESHOLD = 0.3


def notears(problem: Problem) -> Graph:
    """Least squares with an L1 penalty of 0.1."""
    from sdcd.third_party.notears import notears_linear

    rows = problem.rows()
    weights = notears_linear(rows - rows.mean(axis=0), lambda1=0.1, loss_type="l2")
    return np.asarray(np.abs(weights) > THRESHOLD, dtype=np.int64)


def dagma(problem: Problem) -> Graph:
    """Least squares with an L1 penalty of 0.02, as in the package's example."""
    from dagma.linear import DagmaLinear

    rows = problem.rows()
    model = DagmaLinear(loss_type="l2")
    weights = model.fit(rows - rows.mean(axis=0), lambda1=0.02, w_threshold=THRESHOLD)
    return np.asarray(weights != 0, dtype=np.int64)
