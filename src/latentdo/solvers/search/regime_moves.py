"""Changing the number of regimes: births where a mechanism hides two, merges where two regimes are one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from latentdo.solvers.search.em import assign_rows, refine, relearn
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import (
    BIRTH_GAIN,
    BIRTH_ROUNDS,
    BIRTH_TRIES,
    BIRTH_TRIES_AT_LIMIT,
    BIRTH_WORTH,
    FREE_TAIL_STEPS,
    FREE_TAIL_TOLERANCE,
    GRAPH_GAIN,
    MAX_ROUNDS_AT_LIMIT,
    MAX_TAILS,
    MEMBERSHIP,
    MERGE_TRIES,
    OVERLAP,
    SEVERAL_MERGES_STEPS,
    TAIL,
    TAIL_LOSS,
    TAIL_SHARE,
    TAIL_STEPS,
    TINY,
)


@dataclass(frozen=True, eq=False)
class Birth:
    """A regime that would be better as two, told apart by one variable.

    Parameters
    ----------
    gain : float
        Rise of the expected log-likelihood, costs not counted.
    regime, variable : int
        What to split, and where it shows.
    rows, share
        Rows of the regime, and the part of each that leaves it.
    """

    gain: float
    regime: int
    variable: int
    rows: NDArray[np.int64]
    share: NDArray[np.float64]

    def apply(self, responsibilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Move the leaving part into a new last regime."""
        moved = responsibilities[self.rows, self.regime] * self.share
        split = np.column_stack([responsibilities, np.zeros(len(responsibilities))])
        split[self.rows, self.regime] -= moved
        split[self.rows, -1] = moved
        return split


def propose_births(problem: Problem, state: State) -> list[Birth]:
    """Births worth trying, the most promising first.

    In every regime and variable: does part of the rows follow the reference mechanism (or the regime's own) and
    the rest another one?
    """
    worth = BIRTH_WORTH * np.log(problem.n_rows)
    births = []
    for k in range(state.n_regimes):
        rows = np.flatnonzero((state.responsibilities[:, k] > MEMBERSHIP) & (problem.labels < 0))
        if rows.size < 2 * problem.min_rows:
            continue
        for j in range(problem.n_variables):
            split = problem.learner.split(problem, state, k, j, rows)
            if split is not None and split.gain > worth:
                births.append(Birth(split.gain, k, j, rows, split.share))
    return sorted(births, key=lambda birth: -birth.gain)


def propose_merges(problem: Problem, state: State) -> list[tuple[float, int, int]]:
    """Pairs of regimes by how much the variational bound changes if they become one, best first.

    With the assignment otherwise unchanged the bound is exact: statistics add up, and so do responsibilities. Two
    labelled regimes are never merged.
    """
    resp = state.responsibilities
    learner = problem.learner
    statistics = learner.statistics(problem, resp, state.model)
    counts = statistics.counts
    n = float(counts.sum())
    entropy = -(resp * np.log(np.maximum(resp, TINY))).sum(axis=0)
    pairs = [(a, b) for a, b in combinations(range(state.n_regimes), 2) if b >= problem.n_labelled]
    merges = []
    for (a, b), scores in zip(
        pairs, learner.merge_changes(problem, statistics, state.model, pairs), strict=True
    ):
        both = resp[:, a] + resp[:, b]
        change = scores + 0.5 * np.log(n)
        change += (
            _weight_term(counts[a] + counts[b], n) - _weight_term(counts[a], n) - _weight_term(counts[b], n)
        )
        change += float(-(both * np.log(np.maximum(both, TINY))).sum()) - entropy[a] - entropy[b]
        merges.append((change, a, b))
    return sorted(merges, reverse=True)


def _weight_term(count: float, n: float) -> float:
    return float(count * np.log(max(count, TINY) / n))


def merge(responsibilities: NDArray[np.float64], first: int, second: int) -> NDArray[np.float64]:
    """Add regime ``second`` to ``first`` and drop it."""
    joined = responsibilities.copy()
    joined[:, first] += joined[:, second]
    return np.delete(joined, second, axis=1)


def merge_while_better(problem: Problem, state: State) -> State:
    """Merge regimes as long as the evidence rises, or there are too many."""
    while state.n_regimes > max(problem.n_labelled, 1):
        merges = propose_merges(problem, state)
        if not merges:
            return state
        excess = state.n_regimes - problem.max_regimes
        if excess > 0:
            state = _merge_several(problem, state, merges, excess)
            continue
        for change, a, b in merges[:MERGE_TRIES]:
            trial = None
            if change > 0:
                joined = merge(state.responsibilities, a, b)
                others = np.delete(np.arange(state.n_regimes), b)
                trial = refine(
                    problem,
                    joined,
                    state.adjacency,
                    model=state.model.keep(others),
                    needed=state.evidence,
                )
            if trial is not None and trial.evidence > state.evidence:
                state = trial
                break
        else:
            return state
    return state


def drop_while_better(problem: Problem, state: State) -> State:
    """Do without single regimes as long as the evidence rises: their rows go wherever they fit best.

    A merge keeps the rows of two regimes together; where one regime was only needed to draw the shape of others, its
    rows belong to several of them.
    """
    tried: set[int] = set()
    while state.n_regimes > max(problem.n_labelled, 1):
        counts = problem.counts(state.responsibilities)
        left = [k for k in np.argsort(counts).tolist() if k >= problem.n_labelled and k not in tried]
        if not left:
            return state
        others = np.delete(np.arange(state.n_regimes), left[0])
        model = state.model.keep(others)
        responsibilities, _ = assign_rows(problem, model)
        trial = refine(problem, responsibilities, state.adjacency, model=model, needed=state.evidence)
        if trial.evidence > state.evidence:
            state, tried = trial, set()
        else:
            tried.add(left[0])
    return state


def _merge_several(problem: Problem, state: State, merges: list[tuple[float, int, int]], count: int) -> State:
    """Merge the ``count`` best disjoint pairs at once."""
    responsibilities = state.responsibilities.copy()
    gone: list[int] = []
    used: set[int] = set()
    for _, a, b in merges:
        if len(gone) < count and not used & {a, b}:
            responsibilities[:, a] += responsibilities[:, b]
            gone.append(b)
            used |= {a, b}
    return refine(
        problem, np.delete(responsibilities, gone, axis=1), state.adjacency, iterations=SEVERAL_MERGES_STEPS
    )


def fits(state: State, max_regimes: int) -> bool:
    """Whether the regimes, with the reference even if it has no rows, are at most ``max_regimes``."""
    return state.n_regimes + bool(state.targets.any(axis=1).all()) <= max_regimes


def fit_into(problem: Problem, state: State, max_regimes: int) -> State:
    """Merge until the regimes, with the reference even if it has no rows, are at most ``max_regimes``."""
    while not fits(state, max_regimes) and state.n_regimes > 1:
        _, a, b = propose_merges(problem, state)[0]
        others = np.delete(np.arange(state.n_regimes), b)
        joined = merge(state.responsibilities, a, b)
        state = refine(problem, joined, state.adjacency, model=state.model.keep(others))
    return state


def _try_births(problem: Problem, state: State, births: list[Birth]) -> State | None:
    """Apply births (of different regimes) together, merge if there are too many, and keep what is better."""
    responsibilities = state.responsibilities
    for birth in births:
        responsibilities = birth.apply(responsibilities)
    needed = state.evidence + BIRTH_GAIN if responsibilities.shape[1] <= problem.max_regimes else -np.inf
    trial = refine(problem, responsibilities, state.adjacency, model=state.model, needed=needed)
    if trial.n_regimes > problem.max_regimes:
        trial = merge_while_better(problem, trial)
    return trial if trial.evidence > state.evidence + BIRTH_GAIN else None


def overlapping(state: State) -> bool:
    """Whether rows belong to their likeliest regime only with some doubt."""
    return bool(state.responsibilities.max(axis=1).mean() < OVERLAP)


def try_tails(problem: Problem, state: State) -> State:
    """Where regimes overlap: let a regime grow from either tail of every variable in turn, and keep what pays.

    An intervention on a variable without parents hardly shows in that variable alone; it shows once its rows are
    *not* explained by the other interventions. So the newcomer gets its target for a while before it has to pay.
    """
    known = problem.labels >= 0
    for j in np.argsort(state.targets.sum(axis=0), kind="stable")[:MAX_TAILS]:
        rank = np.argsort(np.argsort(problem.z[:, j])) / problem.n_rows
        for tail in (rank < TAIL, rank > 1.0 - TAIL):
            source = int(np.argmin(state.targets.sum(axis=1) - state.model.topology.weights))
            rows = np.flatnonzero(tail & ~known)
            birth = Birth(0.0, source, int(j), rows, np.full(rows.size, TAIL_SHARE))
            targets = np.vstack([state.targets, np.eye(problem.n_variables, dtype=np.int8)[j]])
            targets[-1] |= state.targets[source]
            grown = birth.apply(state.responsibilities)
            trial = refine(problem, grown, state.adjacency, iterations=TAIL_STEPS, targets=targets)
            if trial.evidence < state.evidence - TAIL_LOSS * np.log(problem.n_rows):
                continue
            trial = refine(
                problem,
                trial.responsibilities,
                state.adjacency,
                iterations=FREE_TAIL_STEPS,
                tolerance=FREE_TAIL_TOLERANCE,
            )
            if trial.n_regimes > problem.max_regimes:
                trial = merge_while_better(problem, trial)
            if trial.evidence > state.evidence + BIRTH_GAIN:
                state = merge_while_better(problem, trial)
    return state


def improve(
    problem: Problem,
    state: State,
    *,
    tails: bool = False,
    rounds: int = BIRTH_ROUNDS,
    same_graph: bool = False,
) -> State:
    """Births, merges and graph search until none of them raises the evidence; tails (slow) once, on request."""
    if problem.all_labelled:
        return state
    state = merge_while_better(problem, state)
    rounds_at_limit = 0
    for _ in range(rounds):
        births = propose_births(problem, state)
        distinct = [
            birth for i, birth in enumerate(births) if birth.regime not in {b.regime for b in births[:i]}
        ]
        room = problem.max_regimes - state.n_regimes
        grown = _try_births(problem, state, distinct[:room]) if min(len(distinct), room) > 1 else None
        # At the limit every birth costs a merge: look at fewer, and not for ever.
        full = room <= 0
        rounds_at_limit += full
        if rounds_at_limit > MAX_ROUNDS_AT_LIMIT:
            break
        for birth in births[: BIRTH_TRIES_AT_LIMIT if full else BIRTH_TRIES] if grown is None else ():
            grown = _try_births(problem, state, [birth])
            if grown is not None:
                break
        if grown is not None:
            state = merge_while_better(problem, grown)
            continue
        if same_graph:
            break
        again = relearn(problem, state.responsibilities, adjacency=state.adjacency, model=state.model)
        if again.evidence < state.evidence + GRAPH_GAIN:
            state = state if state.evidence >= again.evidence else again
            break
        state = merge_while_better(problem, again)
    if not tails or not overlapping(state):
        return state
    grown = try_tails(problem, state)
    return state if grown is state else improve(problem, grown, rounds=rounds)
