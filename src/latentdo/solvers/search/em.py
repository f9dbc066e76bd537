"""Expectation-maximisation with structure: assign rows, refit, and let targets and graph follow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit
from latentdo.model.fitted import FittedModel
from latentdo.model.linear_mixture import LinearMixture
from latentdo.solvers.search import grow_shrink
from latentdo.solvers.search.families import EXACT_LIMIT, MAX_CANDIDATES, FamilyTables, all_candidates
from latentdo.solvers.search.moments import Moments
from latentdo.solvers.search.parameters import (
    choose_all_targets,
    fit_parameters,
    score_families,
    screen_parents,
)
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import SearchState

BLOCK = 65_536
"""Rows handled at once: memory beyond the responsibilities does not grow with n."""

IMPOSSIBLE = -1e6
"""Log-density of a row that underflows everywhere: finite, so that fits stay comparable."""


@dataclass(frozen=True, eq=False)
class State(SearchState):
    """A state of the linear search."""

    model: LinearMixture


@njit
def normalise(joint, labels, weights):  # type: ignore[no-untyped-def]
    """Turn ``log p(z, k)`` into responsibilities, in place; returns the log-likelihood."""
    loglik = 0.0
    for i in range(joint.shape[0]):
        high = joint[i].max()
        if not np.isfinite(high):
            # A row that no component can explain in float64 says nothing about them: keep the weights.
            joint[i] = weights
            if labels[i] >= 0:
                joint[i] = 0.0
                joint[i, labels[i]] = 1.0
            loglik += IMPOSSIBLE
            continue
        known = joint[i, labels[i]]
        total = 0.0
        for k in range(joint.shape[1]):
            joint[i, k] = np.exp(joint[i, k] - high)
            total += joint[i, k]
        for k in range(joint.shape[1]):
            joint[i, k] /= total
        if labels[i] < 0:
            loglik += high + np.log(total)
        else:
            loglik += max(known, IMPOSSIBLE)
            joint[i] = 0.0
            joint[i, labels[i]] = 1.0
    return loglik


def assign(problem: Problem, model: FittedModel) -> tuple[NDArray[np.float64], float]:
    """E-step: exact responsibilities of the rows here, and the log-likelihood of those of all ranks."""
    n = problem.n_rows
    responsibilities = np.empty((n, model.topology.n_regimes))
    loglik = 0.0
    for first in range(0, n, BLOCK):
        rows = slice(first, min(first + BLOCK, n))
        joint = model.log_joint(problem.z[rows])
        loglik += float(normalise(joint, problem.labels[rows], model.topology.weights))
        responsibilities[rows] = joint
    return responsibilities, float(problem.ranks.sum(loglik))


def drop_small(problem: Problem, responsibilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Drop free components with too few rows; their rows go to the others in proportion."""
    counts = problem.counts(responsibilities)
    keep = counts >= problem.min_rows
    keep[: problem.n_labelled] = True
    if not keep.any():
        keep[np.argmax(counts)] = True
    if keep.all():
        return responsibilities
    kept = responsibilities[:, keep]
    total = kept.sum(axis=1, keepdims=True)
    share = counts[keep] / counts[keep].sum()
    return np.asarray(np.where(total > 1e-12, kept / np.maximum(total, 1e-300), share))


def refine(
    problem: Problem,
    responsibilities: NDArray[np.float64],
    adjacency: NDArray[np.int8],
    *,
    iterations: int = 10,
    tolerance: float = 0.1,
    target_prior: float | None = None,
    targets: NDArray[np.int8] | None = None,
) -> State:
    """EM with the graph fixed; targets are chosen anew in every step unless they are given."""
    last = -np.inf
    for step in range(iterations):
        if targets is None:
            responsibilities = drop_small(problem, responsibilities)
        moments = problem.moments(responsibilities)
        chosen = targets
        if chosen is None:
            chosen, _ = choose_all_targets(problem, moments, adjacency, target_prior=target_prior)
        model, cost = fit_parameters(problem, moments, adjacency, chosen)
        responsibilities, loglik = assign(problem, model)
        if step > 0 and loglik - cost - last < tolerance:
            break
        last = loglik - cost
    return State(responsibilities, model, loglik, cost)


def family_tables(
    problem: Problem,
    moments: Moments,
    adjacency: NDArray[np.int8],
    targets: NDArray[np.int8] | None = None,
    target_prior: float | None = None,
) -> FamilyTables:
    """Score the families that a search should consider: all of them in small problems, else a screened few."""
    if problem.n_variables <= EXACT_LIMIT:
        return score_families(problem, moments, all_candidates(problem.constraints), targets, target_prior)
    candidates, core = screen_parents(problem, moments, adjacency, targets, MAX_CANDIDATES)
    return score_families(problem, moments, candidates, targets, target_prior, core)


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
    tables = family_tables(problem, moments, adjacency, targets, target_prior)
    found, score = tables.best(adjacency)
    if not np.isfinite(score):
        return adjacency
    if not thorough and np.array_equal(found, adjacency):
        return found
    if EXACT_LIMIT < problem.n_variables <= grow_shrink.LIMIT:
        found = grow_shrink.improve(problem, moments, found, targets, target_prior)
    return found


def relearn(
    problem: Problem,
    responsibilities: NDArray[np.float64],
    *,
    adjacency: NDArray[np.int8] | None = None,
    rounds: int = 10,
    tolerance: float = 0.1,
    target_prior: float | None = None,
    thorough: bool = False,
) -> State:
    """Alternate graph search and EM until the evidence stops rising; returns the best state met."""
    best: State | None = None
    for _ in range(rounds):
        responsibilities = drop_small(problem, responsibilities)
        found = search_graph(problem, responsibilities, adjacency, target_prior, thorough=thorough)
        if best is not None and adjacency is not None and np.array_equal(found, adjacency):
            state = refine(problem, responsibilities, found, iterations=50, target_prior=target_prior)
            return state if state.evidence > best.evidence else best
        adjacency = found
        state = refine(problem, responsibilities, adjacency, iterations=5, target_prior=target_prior)
        if best is not None and state.evidence < best.evidence + tolerance:
            break
        best, responsibilities = state, state.responsibilities
    assert best is not None
    return best
