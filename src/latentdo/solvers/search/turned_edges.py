"""Edges turned together with regimes: what neither graph search nor births, merges and targets find alone.

An intervention on an effect that is taken for the cause shows as one on both, and so do further regimes that make up
for the wrong direction. With rows assigned to them the edge seems to be where it should; and as long as it is there,
they are needed. So the edge is turned first, and rows and targets get used to it before evidence decides.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from latentdo.graphs import is_dag
from latentdo.solvers.search.em import refine
from latentdo.solvers.search.fewer_regimes import drop_while_better, merge_while_better
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State


def turn_edges_while_better(problem: Problem, state: State) -> State:
    """Turn single edges whose ends are targets of the same regime, as long as the evidence rises."""
    while True:
        for adjacency in _turned(problem, state):
            trial = refine(
                problem, state.responsibilities, adjacency, model=state.model, needed=state.evidence
            )
            if trial.evidence > state.evidence:
                state = drop_while_better(problem, merge_while_better(problem, trial))
                break
        else:
            return state


def _turned(problem: Problem, state: State) -> Iterator[NDArray[np.int8]]:
    """The graph with each such edge turned, if that may be."""
    together = state.targets.T @ state.targets
    for i, j in np.argwhere(state.adjacency * (together > 0)).tolist():
        turned = state.adjacency.copy()
        turned[i, j], turned[j, i] = 0, 1
        if problem.constraints.allowed[j, i] and not problem.constraints.required[i, j] and is_dag(turned):
            yield turned
