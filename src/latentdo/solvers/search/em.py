"""Expectation-maximisation with structure: assign rows, refit, and let targets and graph follow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latentdo.model.fitted import FittedModel
from latentdo.solvers.search import grow_shrink
from latentdo.solvers.search.moments import Moments
from latentdo.solvers.search.parameters import (
    choose_all_targets,
    fit_parameters,
    score_parent_sets,
    screen_parents,
)
from latentdo.solvers.search.parent_sets import ScoreTables, all_candidates
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import (
    BLOCK,
    EM_STEPS,
    EM_TOLERANCE,
    EXACT_LIMIT,
    MAX_CANDIDATES,
    RELEARN_ROUNDS,
    RELEARN_STEPS,
    SETTLE_STEPS,
    TINY,
    UNDECIDED,
    WALK_LIMIT,
)


def assign_rows(problem: Problem, model: FittedModel) -> tuple[NDArray[np.float64], float]:
    """E-step: exact responsibilities of the rows here, and the log-likelihood of those of all ranks."""
    n = problem.n_rows
    responsibilities = np.empty((n, model.topology.n_regimes))
    loglik = 0.0
    for first in range(0, n, BLOCK):
        rows = slice(first, min(first + BLOCK, n))
        found = model.assign(problem.z[rows], problem.labels[rows])
        loglik += float(found.log_likelihood.sum())
        responsibilities[rows] = found.responsibilities
    return responsibilities, float(problem.ranks.sum(loglik))


def weigh(problem: Problem, model: FittedModel) -> State:
    """The evidence of a model, of whatever mechanisms: assign the rows under it, and count what it costs."""
    responsibilities, loglik = assign_rows(problem, model)
    return State(responsibilities, model, loglik, problem.penalties.cost(model, problem.n_total))


def drop_small(
    problem: Problem, responsibilities: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Drop free regimes with too few rows; their rows go to the others in proportion. Also says who stays."""
    counts = problem.counts(responsibilities)
    keep = counts >= problem.min_rows
    keep[: problem.n_labelled] = True
    if not keep.any():
        keep[np.argmax(counts)] = True
    if keep.all():
        return responsibilities, keep
    kept = responsibilities[:, keep]
    total = kept.sum(axis=1, keepdims=True)
    share = counts[keep] / counts[keep].sum()
    return np.asarray(np.where(total > UNDECIDED, kept / np.maximum(total, TINY), share)), keep


def refine(
    problem: Problem,
    responsibilities: NDArray[np.float64],
    adjacency: NDArray[np.int8],
    *,
    iterations: int = EM_STEPS,
    tolerance: float = EM_TOLERANCE,
    target_prior: float | None = None,
    targets: NDArray[np.int8] | None = None,
) -> State:
    """EM with the graph fixed; targets are chosen anew in every step unless they are given."""
    last = -np.inf
    for step in range(iterations):
        if targets is None:
            responsibilities, _ = drop_small(problem, responsibilities)
        moments = problem.moments(responsibilities)
        chosen = targets
        if chosen is None:
            chosen, _ = choose_all_targets(problem, moments, adjacency, target_prior=target_prior)
        state = weigh(problem, fit_parameters(problem, moments, adjacency, chosen))
        responsibilities = state.responsibilities
        if step > 0 and state.evidence - last < tolerance:
            break
        last = state.evidence
    return state


def score_tables(
    problem: Problem,
    moments: Moments,
    adjacency: NDArray[np.int8],
    targets: NDArray[np.int8] | None = None,
    target_prior: float | None = None,
) -> ScoreTables:
    """Score the parent sets that a search should consider: all of them in small problems, else a screened few."""
    if problem.n_variables <= EXACT_LIMIT:
        return score_parent_sets(problem, moments, all_candidates(problem.constraints), targets, target_prior)
    candidates, core = screen_parents(problem, moments, adjacency, targets, MAX_CANDIDATES)
    return score_parent_sets(problem, moments, candidates, targets, target_prior, core)


def search_graph(
    problem: Problem,
    responsibilities: NDArray[np.float64],
    adjacency: NDArray[np.int8] | None = None,
    target_prior: float | None = None,
    targets: NDArray[np.int8] | None = None,
    *,
    thorough: bool = False,
) -> NDArray[np.int8]:
    """Best graph for the current assignment of rows."""
    if adjacency is None:
        adjacency = problem.constraints.required.astype(np.int8)
    moments = problem.moments(responsibilities)
    return best_graph(problem, moments, adjacency, targets, target_prior, thorough=thorough)


def best_graph(
    problem: Problem,
    moments: Moments,
    adjacency: NDArray[np.int8],
    targets: NDArray[np.int8] | None = None,
    target_prior: float | None = None,
    *,
    thorough: bool = True,
) -> NDArray[np.int8]:
    """Best graph for given moments: exact in small problems, else from the order of ``adjacency``, or itself.

    Unless ``thorough``, a graph that is the best in its tables is not looked at beyond them.
    """
    tables = score_tables(problem, moments, adjacency, targets, target_prior)
    found, score = tables.best(adjacency)
    if not np.isfinite(score):
        return adjacency
    if not thorough and np.array_equal(found, adjacency):
        return found
    if EXACT_LIMIT < problem.n_variables <= WALK_LIMIT:
        found = grow_shrink.improve(problem, moments, found, targets, target_prior)
    return found


def relearn(
    problem: Problem,
    responsibilities: NDArray[np.float64],
    *,
    adjacency: NDArray[np.int8] | None = None,
    rounds: int = RELEARN_ROUNDS,
    tolerance: float = EM_TOLERANCE,
    target_prior: float | None = None,
    thorough: bool = False,
) -> State:
    """Alternate graph search and EM until the evidence stops rising; returns the best state met."""
    best: State | None = None
    for _ in range(rounds):
        responsibilities, _ = drop_small(problem, responsibilities)
        found = search_graph(problem, responsibilities, adjacency, target_prior, thorough=thorough)
        if best is not None and adjacency is not None and np.array_equal(found, adjacency):
            state = refine(
                problem, responsibilities, found, iterations=SETTLE_STEPS, target_prior=target_prior
            )
            return state if state.evidence > best.evidence else best
        adjacency = found
        state = refine(
            problem, responsibilities, adjacency, iterations=RELEARN_STEPS, target_prior=target_prior
        )
        if best is not None and state.evidence < best.evidence + tolerance:
            break
        best, responsibilities = state, state.responsibilities
    assert best is not None
    return best
