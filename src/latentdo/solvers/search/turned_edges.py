"""Edges reversed together with regimes, which neither graph search nor splits, merges and targets find alone.

If an effect is mistaken for the cause, an intervention on it looks like one on both variables, and further regimes
appear that compensate for the wrong direction. With rows assigned to these regimes, the edge seems right; and as long
as the edge is there, the regimes are needed. So the edge is reversed first, and rows and targets adapt to it before
evidence decides.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from latentdo.graphs import is_dag
from latentdo.solvers.search.em import refine
from latentdo.solvers.search.fewer_regimes import drop_while_better, first_better, merge_while_better
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State


def turn_edges_while_better(problem: Problem, state: State) -> State:
    """Reverse single edges that touch a target, as long as the evidence rises."""
    while True:
        trials = (
            refine(problem, state.responsibilities, graph, model=state.model, needed=state.evidence)
            for graph in _alternatives(problem, state)
        )
        better = first_better(state, trials)
        if better is None:
            return state
        state = drop_while_better(problem, merge_while_better(problem, better))


def _alternatives(problem: Problem, state: State) -> Iterator[NDArray[np.int8]]:
    """Graphs with one edge reversed: alone, and with other edges that this entails, if that differs.

    Edges whose ends are targets of the same regime come first. If only one end is a target, a row in which both were
    hit may have been taken for one of another regime; such an edge is only reversed alone, which is quick.
    """
    learner = problem.learner
    statistics = learner.statistics(
        problem, state.responsibilities, state.model
    )  # shared by all: they hold the fits
    for i, j in _doubtful(problem, state):
        turned = _turned(state.adjacency, i, j)
        if turned is not None:
            yield turned
            graph = learner.best_graph(problem, statistics, turned)
            if not any(np.array_equal(graph, other) for other in (turned, state.adjacency)):
                yield graph
    touched = state.targets.any(axis=0)
    for i, j in _reversible(problem, state, np.logical_or.outer(touched, touched)):
        turned = _turned(state.adjacency, i, j)
        if turned is not None and not _together(state)[i, j]:
            yield turned


def with_edges_turned(problem: Problem, state: State) -> NDArray[np.int8]:
    """The graph with all such edges reversed in turn, as far as it stays acyclic: for regimes grown afresh."""
    graph = state.adjacency
    for i, j in _doubtful(problem, state):
        turned = _turned(graph, i, j)
        graph = graph if turned is None else turned
    return graph


def _doubtful(problem: Problem, state: State) -> list[tuple[int, int]]:
    """Edges whose ends are targets of the same regime, and that may be reversed."""
    return _reversible(problem, state, _together(state))


def _together(state: State) -> NDArray[np.bool_]:
    return np.asarray((state.targets.T @ state.targets).astype(bool))


def _reversible(problem: Problem, state: State, which: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Edges among ``which [d, d]`` that may be reversed."""
    free = problem.constraints.allowed.T & ~problem.constraints.required
    return [(int(i), int(j)) for i, j in np.argwhere((state.adjacency == 1) & which & free)]


def _turned(adjacency: NDArray[np.int8], i: int, j: int) -> NDArray[np.int8] | None:
    """The graph with one edge reversed, if that is acyclic."""
    graph = adjacency.copy()
    graph[i, j], graph[j, i] = 0, 1
    return graph if is_dag(graph) else None
