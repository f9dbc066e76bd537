"""Sorting by variance and by R2, then sparse regression (package ``CausalDisco``): what a benchmark gives away."""

from __future__ import annotations

import numpy as np

from experiments.baselines.interface import Graph, Problem


def variance(problem: Problem) -> Graph:
    """Order of increasing variance: uninformative where the data are standardised."""
    from CausalDisco.baselines import var_sort_regress

    return np.asarray(var_sort_regress(problem.rows()) != 0, dtype=np.int64)


def r2(problem: Problem) -> Graph:
    """Order of increasing predictability."""
    from CausalDisco.baselines import r2_sort_regress

    return np.asarray(r2_sort_regress(problem.rows()) != 0, dtype=np.int64)
