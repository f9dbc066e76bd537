"""Our own search where others are compared: on the clusters of a mixture, and linear with the true labels."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.baselines.interface import Graph, Problem
from experiments.baselines.mixture import clusters


def default(problem: Problem) -> Graph:
    """Nothing known but, where rows have one, their order in time; every argument left as it is."""
    from latentdo import LatentInterventionDAG

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = LatentInterventionDAG().fit(problem.X, time=problem.time)
    return np.asarray(model.adjacency_, dtype=np.int64)


def with_regimes(problem: Problem) -> Graph:
    """True regimes, unknown targets."""
    return _fit(problem, regimes=problem.regimes)


def with_targets(problem: Problem) -> Graph:
    """True regimes and targets."""
    return _fit(problem, regimes=problem.regimes, targets=problem.targets)


def linear_with_regimes(problem: Problem) -> Graph:
    """True regimes, unknown targets, exact search over linear mechanisms whatever the data are."""
    return with_regimes(replace(problem, density="linear"))


def linear_with_targets(problem: Problem) -> Graph:
    """True regimes and targets, exact search over linear mechanisms whatever the data are."""
    return with_targets(replace(problem, density="linear"))


def gmm_then_search(problem: Problem) -> Graph:
    """Clusters of a mixture, told the number of regimes, taken for the truth; nothing is called observational."""
    return _fit(problem, regimes=clusters(problem) + 1, observational=None)


def _fit(problem: Problem, observational: int | None = 0, **known: Any) -> Graph:
    from latentdo import LatentInterventionDAG

    model = LatentInterventionDAG(problem.density, problem.intervention, observational=observational)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # small clusters are what this method has to live with
        model.fit(problem.X, **known)
    return np.asarray(model.adjacency_, dtype=np.int64)
