"""Edges the other way round: a second look with good networks where the rough scores were nearly equal."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from latentdo.graphs import reachability
from latentdo.graphs.constraints import Constraints
from latentdo.model.mechanisms import AdditiveNoise
from latentdo.solvers.nonlinear.learner import NetworkLearner, fit_from
from latentdo.solvers.nonlinear.marginal_shifts import Changes
from latentdo.solvers.nonlinear.parents import ParentSet, eliminate
from latentdo.solvers.nonlinear.rough_scores import RoughGraph
from latentdo.solvers.search.exact import best_dag
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import EXACT_LIMIT, MAX_EDGES, TRIAL_STEPS


def doubtful_edges(rough: RoughGraph, adjacency: NDArray[np.int8]) -> list[tuple[int, int]]:
    """Edges whose absence costs the rough score least, the most doubtful first; none in problems too large for that."""
    d = len(adjacency)
    if d > EXACT_LIMIT:
        return []
    table = rough.tables.full()
    masks = np.arange(table.shape[1])
    losses = []
    for i, j in np.argwhere(adjacency):
        without = table.copy()
        without[j, (masks >> i & 1) == 1] = -np.inf
        losses.append((-best_dag(without)[1], int(i), int(j)))
    return [(i, j) for _, i, j in sorted(losses)[:MAX_EDGES]]


def reverse(
    problem: Problem, state: State, i: int, j: int, rng: np.random.Generator
) -> tuple[State, dict[int, ParentSet]] | None:
    """The state with ``i -> j`` turned round, and the parents of both; None if that makes a cycle.

    Targets and parents of both are chosen anew.
    """
    constraints: Constraints = problem.constraints
    if not constraints.allowed[j, i] or constraints.required[i, j]:
        return None
    rest = state.adjacency.copy()
    rest[i, j] = 0
    below = reachability(rest)[i].astype(bool)
    if below[j]:
        return None
    wanted = np.flatnonzero(rest[:, i] | rest[:, j]).tolist()
    allowed = [a for a in wanted if a not in (i, j) and not below[a] and constraints.allowed[a, i]]
    inputs = {i: sorted([*allowed, j]), j: np.flatnonzero(rest[:, j]).tolist()}
    # What moves between regimes, as they are now, is known of them.
    learner = problem.learner
    assert isinstance(learner, NetworkLearner)
    known = replace(problem, known=Changes.between(problem.z, state.responsibilities).known(problem))
    statistics = learner.statistics(known, state.responsibilities, state.model)
    targets, mechanisms = state.targets.copy(), state.mechanisms
    parent_sets: dict[int, ParentSet] = {}
    for v in (i, j):
        local = learner.local(known, statistics, v, np.array(inputs[v], dtype=np.int64))
        weights = state.responsibilities @ local.shares
        targets[:, v] = ~local.shares
        start = cast("AdditiveNoise", local.reference)
        count = learner.family.n_gaussians
        parent_sets[v] = eliminate(problem, v, inputs[v], start, weights, n_components=count, rng=rng)
        rest[:, v] = 0
        rest[list(parent_sets[v].parents), v] = 1
        mechanisms[v] = parent_sets[v].mechanism
    trial = fit_from(problem, state.responsibilities, rest, targets, mechanisms, TRIAL_STEPS)
    return trial, parent_sets
