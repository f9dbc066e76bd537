"""Expectation-maximisation with structure: assign rows, refit, and let targets and graph follow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latentdo.model.fitted import FittedModel
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import (
    BLOCK,
    EM_STEPS,
    EM_TOLERANCE,
    RELEARN_ROUNDS,
    RELEARN_STEPS,
    SETTLE_STEPS,
    TINY,
    UNDECIDED,
)


def assign_rows(problem: Problem, model: FittedModel) -> tuple[NDArray[np.float64], float]:
    """E-step: exact responsibilities of the rows here, and the log-likelihood of those of all ranks."""
    return _assigned(problem, _log_density(problem, model), model)


def _log_density(problem: Problem, model: FittedModel) -> NDArray[np.float64]:
    n = problem.n_rows
    log_density = np.empty((n, model.topology.n_regimes))
    for first in range(0, n, BLOCK):
        rows = slice(first, min(first + BLOCK, n))
        log_density[rows] = model.log_density(problem.z[rows])
    return log_density


def _assigned(
    problem: Problem, log_density: NDArray[np.float64], model: FittedModel
) -> tuple[NDArray[np.float64], float]:
    found = problem.units.assign(log_density, model.prior, problem.labels)
    return found.responsibilities, float(problem.ranks.sum(float(found.log_likelihood.sum())))


def weigh(problem: Problem, model: FittedModel) -> State:
    """The evidence of a model of any mechanisms: assign the rows under it, and subtract its cost.

    A prior that cannot be known without the rows is estimated first.
    """
    log_density = _log_density(problem, model)
    guess = model.prior
    prior = problem.units.settle(log_density, guess, problem.labels)
    model = model if prior is guess else model.with_prior(prior)
    responsibilities, loglik = _assigned(problem, log_density, model)
    return State(responsibilities, model, loglik, problem.cost(model, responsibilities))


def drop_small(
    problem: Problem, responsibilities: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Drop free regimes with too few rows, which go to the others in proportion; also returns which regimes stay."""
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


def refine(  # noqa: PLR0913  (a state in parts, and how long to go on)
    problem: Problem,
    responsibilities: NDArray[np.float64],
    adjacency: NDArray[np.int8],
    *,
    iterations: int = EM_STEPS,
    tolerance: float | None = None,
    target_prior: float | None = None,
    targets: NDArray[np.int8] | None = None,
    model: FittedModel | None = None,
    needed: float = -np.inf,
) -> State:
    """EM with the graph fixed; targets are chosen anew in every step unless they are given.

    Regimes that lose their rows are dropped. Fits of mechanisms start from ``model``, for families that need a start.
    EM stops after a step that gains less than ``tolerance``, by default the learner's. It also stops if the ``needed``
    evidence cannot be reached even if every remaining step gains as much as the last one.
    """
    learner = problem.learner
    tolerance = learner.tolerance if tolerance is None else tolerance
    best: State | None = None
    for step in range(iterations):
        responsibilities, keep = drop_small(problem, responsibilities)
        if not keep.all():
            targets = None if targets is None else targets[keep]
            best = None  # another number of regimes: not comparable step by step
        statistics = learner.statistics(problem, responsibilities, model, settled=step > 0)
        chosen = targets
        if chosen is None:
            chosen, _ = learner.choose_targets(problem, statistics, adjacency, target_prior=target_prior)
        fitted = learner.fit(problem, statistics, adjacency, chosen)
        model = problem.weighted(fitted, responsibilities, model)
        state = weigh(problem, model)
        responsibilities = state.responsibilities
        if best is not None:
            if state.evidence < best.evidence + tolerance:
                return state if state.evidence > best.evidence else best
            if state.evidence < needed:
                rise = state.evidence - best.evidence
                if state.evidence + (iterations - step) * rise < needed:
                    return state
        best = state
        if problem.all_labelled and step:
            break  # nothing is left to assign, and further fits gain next to nothing
    assert best is not None
    return best


def search_graph(
    problem: Problem,
    responsibilities: NDArray[np.float64],
    adjacency: NDArray[np.int8] | None = None,
    target_prior: float | None = None,
    model: FittedModel | None = None,
    *,
    thorough: bool = False,
) -> NDArray[np.int8]:
    """Best graph for the current assignment of rows."""
    if adjacency is None:
        adjacency = problem.constraints.required.astype(np.int8)
    statistics = problem.learner.statistics(problem, responsibilities, model)
    return problem.learner.best_graph(problem, statistics, adjacency, target_prior, thorough=thorough)


def relearn(
    problem: Problem,
    responsibilities: NDArray[np.float64],
    *,
    adjacency: NDArray[np.int8] | None = None,
    rounds: int = RELEARN_ROUNDS,
    tolerance: float = EM_TOLERANCE,
    target_prior: float | None = None,
    thorough: bool = False,
    model: FittedModel | None = None,
) -> State:
    """Alternate graph search and EM until the evidence stops rising; returns the best state met."""
    best: State | None = None
    for _ in range(rounds):
        responsibilities, _ = drop_small(problem, responsibilities)
        found = search_graph(problem, responsibilities, adjacency, target_prior, model, thorough=thorough)
        if best is not None and adjacency is not None and np.array_equal(found, adjacency):
            state = refine(
                problem,
                responsibilities,
                found,
                iterations=SETTLE_STEPS,
                target_prior=target_prior,
                model=model,
            )
            return state if state.evidence > best.evidence else best
        adjacency = found
        state = refine(
            problem,
            responsibilities,
            adjacency,
            iterations=RELEARN_STEPS,
            target_prior=target_prior,
            model=model,
        )
        if best is not None and state.evidence < best.evidence + tolerance:
            break
        best, responsibilities, model = state, state.responsibilities, state.model
    assert best is not None
    return best
