"""Fewer regimes, or fewer targets: merge regimes that are one, and drop what the evidence does not need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentdo.model.fitted import FittedModel
from latentdo.solvers.search.em import refine, weigh
from latentdo.solvers.search.local_scores import FREE, TARGET
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import (
    DROP_TRIES,
    EM_STEPS,
    HELD_STEPS,
    MERGE_TRIES,
    REFERENCE_DOUBT,
    SEVERAL_MERGES_STEPS,
    TARGET_TRIES,
    TINY,
)


class Merge(NamedTuple):
    """Two regimes that might be one: the change of the variational bound, and the targets of the merged regime."""

    change: float
    first: int
    second: int
    targets: NDArray[np.int8]


def propose_merges(problem: Problem, state: State) -> list[Merge]:
    """Pairs of regimes, ordered by how much the variational bound changes if they are merged, best first.

    With the assignment otherwise unchanged the bound is exact: statistics add up, and so do responsibilities. Two
    labelled regimes are never merged.
    """
    resp = state.responsibilities
    learner = problem.learner
    statistics = learner.statistics(problem, resp, state.model)
    counts = problem.unit_counts(resp)
    n = float(counts.sum())
    entropy = -problem.units.total(resp * np.log(np.maximum(resp, TINY)))
    pairs = [(a, b) for a, b in combinations(range(state.n_regimes), 2) if b >= problem.n_labelled]
    merges = []
    for (a, b), (scores, targets) in zip(
        pairs, learner.merge_changes(problem, statistics, state.model, pairs), strict=True
    ):
        both = resp[:, a] + resp[:, b]
        change = scores + 0.5 * np.log(n)
        change += (
            _weight_term(counts[a] + counts[b], n) - _weight_term(counts[a], n) - _weight_term(counts[b], n)
        )
        change -= float(problem.units.total(both * np.log(np.maximum(both, TINY)))) + entropy[a] + entropy[b]
        merges.append(Merge(change, a, b, targets))
    return sorted(merges, key=lambda one: one[:3], reverse=True)


def _weight_term(count: float, n: float) -> float:
    return float(count * np.log(max(count, TINY) / n))


def after_move(
    problem: Problem,
    model: FittedModel,
    responsibilities: NDArray[np.float64],
    targets: NDArray[np.int8],
    iterations: int = EM_STEPS,
    needed: float = -np.inf,
) -> State:
    """EM after a move, from the mechanisms of ``model``; the move's targets are kept if the learner does not choose."""
    known = problem.fixed(len(targets))
    held = np.where(known == FREE, targets, known == TARGET).astype(np.int8)
    return refine(
        problem,
        responsibilities,
        model.topology.adjacency,
        targets=held if problem.learner.holds_targets else None,
        model=model,
        iterations=iterations,
        needed=needed,
    )


def merge(
    problem: Problem,
    state: State,
    merges: Sequence[Merge],
    iterations: int = EM_STEPS,
    needed: float = -np.inf,
) -> State:
    """The state with the second of every two regimes added to the first; no regime may be in two of the merges."""
    responsibilities, targets = state.responsibilities.copy(), state.targets.copy()
    for one in merges:
        responsibilities[:, one.first] += responsibilities[:, one.second]
        targets[one.first] = one.targets
    others = np.delete(np.arange(state.n_regimes), [one.second for one in merges])
    model = state.model.keep(others)
    return after_move(problem, model, responsibilities[:, others], targets[others], iterations, needed)


def merge_while_better(problem: Problem, state: State) -> State:
    """Merge regimes as long as the evidence rises, or there are too many."""
    while state.n_regimes > max(problem.n_labelled, 1):
        merges = propose_merges(problem, state)
        if not merges:
            return state
        excess = state.n_regimes - problem.max_regimes
        if excess > 0:
            state = merge(problem, state, _disjoint(merges, excess), SEVERAL_MERGES_STEPS)
            continue
        promising = [one for one in merges[:MERGE_TRIES] if one.change > 0]
        better = first_better(
            state, (merge(problem, state, [one], needed=state.evidence) for one in promising)
        )
        if better is None:
            return state
        state = better
    return state


def drop_while_better(problem: Problem, state: State) -> State:
    """Drop single regimes as long as the evidence rises: their rows go to the regimes that explain them best.

    A merge keeps the rows of two regimes together. Where a regime was only needed to describe the shape of others, its
    rows belong to several of them. The regime whose removal costs least, with all other mechanisms fixed, comes first.
    """
    while state.n_regimes > max(problem.n_labelled, 1):
        without = [
            weigh(problem, state.model.keep(np.delete(np.arange(state.n_regimes), k)))
            for k in range(problem.n_labelled, state.n_regimes)
        ]
        without.sort(key=lambda one: -one.evidence)
        if without[0].evidence > state.evidence:
            state = without[0]
            continue
        needed = state.evidence
        better = first_better(
            state,
            (
                after_move(problem, one.model, one.responsibilities, one.targets, needed=needed)
                for one in without[:DROP_TRIES]
            ),
        )
        if better is None:
            return state
        state = better
    return state


def drop_doubtful(problem: Problem, state: State) -> State:
    """Drop regimes that the Schwarz criterion would not support if every logarithm counted all rows.

    The rows of an unlabelled regime were selected from all rows. It is easy to select a few rows, from the tails of
    several variables, that suit a regime with many targets; counted by these rows alone, each target costs next to
    nothing.
    """
    while state.n_regimes > max(problem.n_labelled, 1):
        counts = problem.unit_counts(state.responsibilities)
        n_own = np.zeros(state.n_regimes)
        for (k, _), mechanism in state.model.own.items():
            n_own[k] += mechanism.n_parameters
        spared = 0.5 * n_own * np.log(counts.sum() / np.maximum(counts, 1.0))
        without = [
            (weigh(problem, state.model.keep(np.delete(np.arange(state.n_regimes), k))), float(spared[k]))
            for k in range(problem.n_labelled, state.n_regimes)
        ]
        best, saved = max(without, key=lambda one: one[0].evidence + one[1])
        if best.evidence + saved <= state.evidence:
            return state
        state = refine(problem, best.responsibilities, best.adjacency, model=best.model)
    return state


def drop_targets_while_better(problem: Problem, state: State) -> State:
    """Drop single targets as long as the evidence rises, after a few steps of EM in which rows and mechanisms adapt.

    Rows assigned under a target favour it. So the largest regime may end with a target that the true reference does not
    have, while the smaller regimes share the mechanism that should be its own.
    """
    known = problem.fixed(state.n_regimes)
    tried: set[tuple[int, int]] = set()
    while True:
        order = np.argsort(-problem.counts(state.responsibilities), kind="stable")
        left = [(int(k), int(j)) for k in order for j in np.flatnonzero(state.targets[k])]
        left = [one for one in left if known[one] == FREE and one not in tried]
        if not left or len(tried) == TARGET_TRIES:
            return state
        targets = state.targets.copy()
        targets[left[0]] = 0
        trial = refine(
            problem,
            state.responsibilities,
            state.adjacency,
            targets=targets,
            model=state.model,
            iterations=HELD_STEPS,
            needed=state.evidence,
        )
        if trial.evidence > state.evidence:
            trial = refine(problem, trial.responsibilities, state.adjacency, model=trial.model)
        if trial.evidence > state.evidence:
            state, tried, known = trial, set(), problem.fixed(trial.n_regimes)
        else:
            tried.add(left[0])


def fit_afresh(problem: Problem, state: State) -> State:
    """Mechanisms refitted from scratch to the most probable assignment, if that raises the evidence.

    The shape of the noise was fitted while regimes were still mixed, and may still suit that mixture: free Gaussians
    instead of a sharp end, because rows of other regimes lay beyond the end.
    """
    hard = np.eye(state.n_regimes)[state.responsibilities.argmax(axis=1)]
    trial = refine(problem, hard, state.adjacency)
    return trial if trial.evidence > state.evidence else state


def first_better(state: State, trials: Iterable[State], gain: float = 0.0) -> State | None:
    """The first of several lazily evaluated trials that has more evidence, by at least the given number of nats."""
    return next((trial for trial in trials if trial.evidence > state.evidence + gain), None)


def _disjoint(merges: list[Merge], count: int) -> list[Merge]:
    """The ``count`` best merges of different regimes."""
    chosen: list[Merge] = []
    used: set[int] = set()
    for one in merges:
        if len(chosen) < count and not used & {one.first, one.second}:
            chosen.append(one)
            used |= {one.first, one.second}
    return chosen


def larger_reference(problem: Problem, state: State) -> State:
    """Of two regimes, the larger as the reference, unless the rows say clearly that it is the smaller one.

    Two regimes that are each other's exception cost the same, so that chance decides between them.
    """
    intervened = state.targets.any(axis=1)
    if problem.n_labelled or state.n_regimes != 2 or intervened.sum() != 1:  # noqa: PLR2004
        return state
    counts = problem.counts(state.responsibilities)
    if counts[~intervened] >= counts[intervened]:
        return state
    trial = refine(problem, state.responsibilities, state.adjacency, targets=state.targets[::-1].copy())
    return trial if trial.evidence > state.evidence - REFERENCE_DOUBT else state


def fits(state: State, max_regimes: int) -> bool:
    """Whether the regimes, with the reference even if it has no rows, are at most ``max_regimes``."""
    return state.n_regimes + bool(state.targets.any(axis=1).all()) <= max_regimes


def fit_into(problem: Problem, state: State, max_regimes: int) -> State:
    """Merge until the regimes, with the reference even if it has no rows, are at most ``max_regimes``."""
    while not fits(state, max_regimes) and state.n_regimes > 1:
        state = merge(problem, state, propose_merges(problem, state)[:1])
    return state
