"""Splits where a mechanism hides two regimes, alternating with merges and graph search (:mod:`.fewer_regimes`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from latentdo.solvers.search.em import refine, relearn
from latentdo.solvers.search.fewer_regimes import (
    after_move,
    first_better,
    fit_afresh,
    merge,
    merge_while_better,
    propose_merges,
)
from latentdo.solvers.search.local_scores import FREE
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
    SAME_ROWS,
    TAIL,
    TAIL_LOSS,
    TAIL_SHARE,
    TAIL_STEPS,
)


@dataclass(frozen=True, eq=False)
class Birth:
    """A regime that is better split in two, which differ in one variable.

    Parameters
    ----------
    gain : float
        Rise of the expected log-likelihood, without costs.
    regime, variable : int
        What to split, and where it shows.
    rows, share
        Rows of the regime, and the part of each that moves to the new regime.
    reference_stays : bool
        Whether the remaining rows follow the reference mechanism there.
    others : tuple of int
        Further regimes from which rows move, in the same shares: all that share the reference mechanism there.
    joined : tuple of int
        Regimes that lose the variable as a target, because their mechanism turns out to be the reference.
    """

    gain: float
    regime: int
    variable: int
    rows: NDArray[np.int64]
    share: NDArray[np.float64]
    reference_stays: bool = True
    others: tuple[int, ...] = ()
    joined: tuple[int, ...] = ()

    def apply(self, responsibilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Move this part of the rows into a new last regime."""
        left = np.ix_(self.rows, np.array([self.regime, *self.others]))
        moved = responsibilities[left] * self.share[:, None]
        split = np.column_stack([responsibilities, np.zeros(len(responsibilities))])
        split[left] -= moved
        split[self.rows, -1] = moved.sum(axis=1)
        return split

    def hit(self, targets: NDArray[np.int8]) -> NDArray[np.int8]:
        """The targets with those of the new last regime: the variable, and the targets common to its rows before."""
        grown = np.vstack([targets, targets[[self.regime, *self.others]].min(axis=0)])
        grown[self.regime, self.variable] &= not self.reference_stays
        grown[list(self.joined), self.variable] = 0
        grown[-1, self.variable] = 1
        return grown


def propose_births(problem: Problem, state: State) -> list[Birth]:
    """Splits worth trying, the most promising first.

    In every regime and variable: does part of the rows follow the reference mechanism (or the regime's own) and the
    rest another one? The same question is asked of all rows that follow the reference mechanism of a variable, because
    the rows of a regime not yet found may be spread over several others.
    """
    worth = BIRTH_WORTH * np.log(problem.n_counted)
    births = []
    repeats = problem.repeats
    for k in range(state.n_regimes):
        rows = np.flatnonzero((state.responsibilities[:, k] > MEMBERSHIP) & (problem.labels < 0))
        if repeats[rows].sum() < 2 * problem.min_rows:
            continue
        for j in range(problem.n_variables):
            split = problem.learner.split(problem, state, k, j, rows)
            if split is not None and split.gain > worth:
                births.append(Birth(split.gain, k, j, rows, split.share, split.reference_stays))
    for j in range(problem.n_variables):
        rows = np.flatnonzero((state.following(j) > MEMBERSHIP) & (problem.labels < 0))
        if repeats[rows].sum() < 2 * problem.min_rows:
            continue
        split = problem.learner.split_followers(problem, state, j, rows)
        if split is not None and split.gain > worth:
            first, *others = _followers(problem, state, j)
            births.append(Birth(split.gain, first, j, rows, split.share, others=tuple(others)))
    return sorted(births, key=lambda birth: -birth.gain)


def propose_exceptions(problem: Problem, state: State) -> list[Birth]:
    """Splits of rows that seem to follow the reference where intervened rows do in fact, best first.

    They may seem not to cover the cost of a split, but other variables also separate the new regime from the others.
    """
    births, worth = [], BIRTH_WORTH * np.log(problem.n_counted)
    free = problem.fixed(state.n_regimes) == FREE
    for k, j in np.argwhere((state.targets == 1) & free).tolist():
        found = problem.learner.split_exception(problem, state, j, k)
        if found is not None and found[0].gain > -worth and _followers(problem, state, j):
            split, rows, joined = found
            first, *others = _followers(problem, state, j)
            births.append(Birth(split.gain, first, j, rows, split.share, others=tuple(others), joined=joined))
    return sorted(births, key=lambda birth: -birth.gain)


def _followers(problem: Problem, state: State, variable: int) -> list[int]:
    """Regimes that share the reference mechanism of a variable, the largest first."""
    sharing = np.flatnonzero(state.targets[:, variable] == 0)
    return [int(k) for k in sharing[np.argsort(-problem.counts(state.responsibilities)[sharing])]]


def _try_births(problem: Problem, state: State, births: list[Birth]) -> State | None:
    """Apply splits (of different regimes) together, merge if there are too many regimes, and keep the better state."""
    responsibilities, targets = state.responsibilities, state.targets
    for birth in births:
        responsibilities, targets = birth.apply(responsibilities), birth.hit(targets)
    needed = state.evidence if responsibilities.shape[1] <= problem.max_regimes else -np.inf
    trial = after_move(problem, state.model, responsibilities, targets, needed=needed)
    if trial.n_regimes > problem.max_regimes:
        trial = merge_while_better(problem, trial)
    return trial if problem.learner.pays(problem, state, trial, births) else None


def overlapping(state: State) -> bool:
    """Whether the assignment of rows to their most probable regime is uncertain."""
    return bool(state.responsibilities.max(axis=1).mean() < OVERLAP)


def try_tails(problem: Problem, state: State) -> State:
    """Where regimes overlap: let a regime grow from either tail of every variable; keep those that raise the evidence.

    An intervention on a variable without parents hardly shows in that variable alone; it shows once its rows are
    *not* explained by the other interventions. So the new regime keeps its target for a while before it is charged for
    it.
    """
    known = problem.labels >= 0
    for j in np.argsort(state.targets.sum(axis=0), kind="stable")[:MAX_TAILS]:
        values = problem.units.spread(problem.units.means(problem.z[:, j]))
        rank = np.argsort(np.argsort(values)) / problem.n_rows
        for tail in (rank < TAIL, rank > 1.0 - TAIL):
            source = int(np.argmin(state.targets.sum(axis=1) - state.model.topology.weights))
            rows = np.flatnonzero(tail & ~known)
            birth = Birth(0.0, source, int(j), rows, np.full(rows.size, TAIL_SHARE))
            targets = np.vstack([state.targets, np.eye(problem.n_variables, dtype=np.int8)[j]])
            targets[-1] |= state.targets[source]
            grown = birth.apply(state.responsibilities)
            trial = refine(problem, grown, state.adjacency, iterations=TAIL_STEPS, targets=targets)
            if trial.evidence < state.evidence - TAIL_LOSS * np.log(problem.n_counted):
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


def settle(problem: Problem, state: State) -> State:
    """Alternate changes of targets and merges, as long as they raise the evidence."""
    while True:
        better = problem.learner.retarget(problem, state)
        merged = merge_while_better(problem, better)
        if better is state:
            return merged
        state = merged


def improve(
    problem: Problem,
    state: State,
    *,
    tails: bool = False,
    rounds: int = BIRTH_ROUNDS,
    rounds_at_limit: int = MAX_ROUNDS_AT_LIMIT,
    same_graph: bool = False,
    unlike: State | None = None,
) -> State:
    """Splits, merges and graph search until none of them raises the evidence; tails (slow) once, on request.

    Where that leads back to a state that it should be ``unlike``, because what follows from it is known, it ends there.
    """
    state = settle(problem, state)
    if problem.all_labelled or problem.max_regimes == 1:
        return state
    for _ in range(rounds):
        if unlike is not None and state.is_like(unlike, SAME_ROWS):
            return state
        births = propose_births(problem, state)
        alone = [birth for birth in births if not birth.others]
        distinct = [
            birth for i, birth in enumerate(alone) if birth.regime not in {b.regime for b in alone[:i]}
        ]
        room = problem.max_regimes - state.n_regimes
        grown = _try_births(problem, state, distinct[:room]) if min(len(distinct), room) > 1 else None
        # At the limit every split requires a merge: try fewer, for a limited number of rounds.
        full = room <= 0
        rounds_at_limit -= full
        if rounds_at_limit < 0:
            break
        for birth in births[: BIRTH_TRIES_AT_LIMIT if full else BIRTH_TRIES] if grown is None else ():
            grown = _try_births(problem, state, [birth])
            if grown is not None:
                break
        if grown is None and not full:
            exceptions = propose_exceptions(problem, state)[:BIRTH_TRIES]
            trials = (_try_births(problem, state, [birth]) for birth in exceptions)
            grown = next((trial for trial in trials if trial is not None), None)
        if grown is not None:
            state = settle(problem, grown)
            continue
        if same_graph:
            break
        again = relearn(problem, state.responsibilities, adjacency=state.adjacency, model=state.model)
        if again.evidence < state.evidence + GRAPH_GAIN:
            state = state if state.evidence >= again.evidence else again
            break
        state = settle(problem, again)
    if not tails or not overlapping(state):
        return state
    grown = try_tails(problem, state)
    return state if grown is state else improve(problem, grown, rounds=rounds)


def merge_and_split_while_better(problem: Problem, state: State) -> State:
    """Merge regimes, with mechanisms fitted from scratch, and split others, as long as the evidence rises.

    Two halves of a regime may each have a mechanism that suits it. Merged, they would need the shape of the reference,
    which no step of EM from either half leads to, so the bound for a merge falls although the merge is right. Two
    regimes that mix each other's rows can be separated only after they are merged. So pairs are merged, and also all
    regimes that differ in one variable only: if interventions on a variable were mixed up, they were so in every regime
    that targets it.
    """
    while state.n_regimes > max(problem.n_labelled, 1):
        together = chain(_pairs_merged(problem, state), _variables_forgotten(problem, state))
        apart = (improve(problem, one, rounds_at_limit=0, same_graph=True, unlike=state) for one in together)
        better = first_better(state, apart, BIRTH_GAIN)
        if better is None:
            return state
        state = better
    return state


def _pairs_merged(problem: Problem, state: State) -> Iterator[State]:
    """Merges of two regimes, best first."""
    for one in propose_merges(problem, state)[:MERGE_TRIES]:
        yield fit_afresh(problem, merge(problem, state, [one]))


def _variables_forgotten(problem: Problem, state: State) -> Iterator[State]:
    """Remove a variable that several regimes target from all targets, and merge regimes that then do not differ.

    Variables that most regimes target come first: a mix-up is repeated in every regime.
    """
    free = problem.fixed(state.n_regimes) == FREE
    hits = ((state.targets == 1) & free).sum(axis=0)
    often = [int(j) for j in np.argsort(-hits, kind="stable") if hits[j] > 1]
    for j in often[:MERGE_TRIES]:
        targets = state.targets.copy()
        targets[free[:, j], j] = 0
        # Labelled regimes stay separate, and come first.
        labels = np.minimum(np.arange(state.n_regimes), problem.n_labelled)
        alike = np.unique(np.column_stack([labels, targets]), axis=0, return_index=True, return_inverse=True)
        rows = state.responsibilities @ np.eye(alike[1].size)[alike[2].ravel()]
        begun = refine(problem, rows, state.adjacency, iterations=1, targets=targets[alike[1]])
        yield refine(problem, begun.responsibilities, state.adjacency, model=begun.model)
