"""Edges the other way round: a second look at the order with good networks, at any width."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from latentdo.graphs import reachability
from latentdo.model.mechanisms import AdditiveNoise
from latentdo.solvers.nonlinear.learner import NetworkLearner, fit_from
from latentdo.solvers.nonlinear.marginal_shifts import Changes
from latentdo.solvers.nonlinear.parents import ParentSet, eliminate
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import MISFIT, MIXED_MISFIT, TRIAL_STEPS, TURN_ROWS, TURNS_PER_VARIABLE


def doubtful_edges(problem: Problem, state: State) -> list[tuple[int, int]]:
    """Edges that may be the other way round, the most doubtful first.

    By quick fits on some rows, of the two variables that an edge concerns: parents are exchanged, targets chosen anew.
    """
    rows = np.arange(problem.n_rows)[:: -(-problem.n_rows // TURN_ROWS)]
    learner = problem.learner
    assert isinstance(learner, NetworkLearner)
    known = Changes.between(problem.z, state.responsibilities).known(problem)
    some = replace(problem.take(rows), known=known)
    statistics = learner.statistics(some, state.responsibilities[rows], state.model)
    prior = problem.penalties.edge_prior

    def score(v: int, parents: NDArray[np.int64]) -> float:
        return learner.local(some, statistics, v, parents).score + float(prior[parents, v].sum())

    parents = state.model.parents
    gains = []
    for i, j in np.argwhere(state.adjacency).tolist():
        if may_turn(problem, state, i, j):
            turned = score(i, np.union1d(parents[i], [j])) + score(j, np.setdiff1d(parents[j], [i]))
            gains.append((score(i, parents[i]) + score(j, parents[j]) - turned, i, j))
    hopeless = MIXED_MISFIT * MISFIT * rows.size
    likely = sorted(one for one in gains if one[0] < hopeless)
    return [(i, j) for _, i, j in likely[: int(TURNS_PER_VARIABLE * problem.n_variables) + 1]]


def may_turn(problem: Problem, state: State, i: int, j: int) -> bool:
    """Whether ``i -> j`` may be the other way round: constraints allow it, and no cycle would follow."""
    if not problem.constraints.allowed[j, i] or problem.constraints.required[i, j]:
        return False
    rest = state.adjacency.copy()
    rest[i, j] = 0
    return not reachability(rest)[i, j]


def reverse(
    problem: Problem, state: State, i: int, j: int, rng: np.random.Generator
) -> tuple[State, dict[int, ParentSet]] | None:
    """The state with ``i -> j`` turned round, and the parents of both; None if that makes a cycle.

    Targets and parents of both are chosen anew.
    """
    if not may_turn(problem, state, i, j):
        return None
    rest = state.adjacency.copy()
    rest[i, j] = 0
    below = reachability(rest)[i].astype(bool)
    wanted = np.flatnonzero(rest[:, i] | rest[:, j]).tolist()
    allowed = [a for a in wanted if a not in (i, j) and not below[a] and problem.constraints.allowed[a, i]]
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
