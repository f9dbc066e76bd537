"""Changing the number of regimes: births where a mechanism hides two, merges where two regimes are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentdo.model.fitted import FittedModel
from latentdo.solvers.search.em import refine, relearn, weigh
from latentdo.solvers.search.local_scores import FREE, TARGET
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import (
    BIRTH_GAIN,
    BIRTH_ROUNDS,
    BIRTH_TRIES,
    BIRTH_TRIES_AT_LIMIT,
    BIRTH_WORTH,
    DROP_TRIES,
    EM_STEPS,
    FREE_TAIL_STEPS,
    FREE_TAIL_TOLERANCE,
    GRAPH_GAIN,
    HELD_STEPS,
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
    TARGET_TRIES,
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
    reference_stays : bool
        Whether those who stay follow the reference mechanism there.
    others : tuple of int
        Further regimes that rows leave, in the same shares: all that follow the reference mechanism there.
    """

    gain: float
    regime: int
    variable: int
    rows: NDArray[np.int64]
    share: NDArray[np.float64]
    reference_stays: bool = True
    others: tuple[int, ...] = ()

    def apply(self, responsibilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Move the leaving part into a new last regime."""
        left = np.ix_(self.rows, np.array([self.regime, *self.others]))
        moved = responsibilities[left] * self.share[:, None]
        split = np.column_stack([responsibilities, np.zeros(len(responsibilities))])
        split[left] -= moved
        split[self.rows, -1] = moved.sum(axis=1)
        return split

    def hit(self, targets: NDArray[np.int8]) -> NDArray[np.int8]:
        """The targets with those of the new last regime: the variable, and what all its rows had before."""
        grown = np.vstack([targets, targets[[self.regime, *self.others]].min(axis=0)])
        grown[self.regime, self.variable] &= not self.reference_stays
        grown[-1, self.variable] = 1
        return grown


class Merge(NamedTuple):
    """Two regimes that might be one: what that changes in the variational bound, and the targets of that one."""

    change: float
    first: int
    second: int
    targets: NDArray[np.int8]


def propose_births(problem: Problem, state: State) -> list[Birth]:
    """Births worth trying, the most promising first.

    In every regime and variable: does part of the rows follow the reference mechanism (or the regime's own) and
    the rest another one? And in every variable, of all that follow the reference mechanism: the rows of a regime that
    is yet unborn may be spread over several others.
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
                births.append(Birth(split.gain, k, j, rows, split.share, split.reference_stays))
    for j in range(problem.n_variables):
        sharing = np.flatnonzero(state.targets[:, j] == 0)
        rows = np.flatnonzero((state.following(j) > MEMBERSHIP) & (problem.labels < 0))
        if rows.size < 2 * problem.min_rows:
            continue
        split = problem.learner.split_followers(problem, state, j, rows)
        if split is not None and split.gain > worth:
            first, *others = sharing[np.argsort(-problem.counts(state.responsibilities)[sharing])].tolist()
            births.append(Birth(split.gain, first, j, rows, split.share, others=tuple(others)))
    return sorted(births, key=lambda birth: -birth.gain)


def propose_merges(problem: Problem, state: State) -> list[Merge]:
    """Pairs of regimes by how much the variational bound changes if they become one, best first.

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


def _refined(
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
    return _refined(problem, model, responsibilities[:, others], targets[others], iterations, needed)


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
        for one in merges[:MERGE_TRIES]:
            trial = merge(problem, state, [one], needed=state.evidence) if one.change > 0 else None
            if trial is not None and trial.evidence > state.evidence:
                state = trial
                break
        else:
            return state
    return state


def drop_while_better(problem: Problem, state: State) -> State:
    """Do without single regimes as long as the evidence rises: their rows go wherever they fit best.

    A merge keeps the rows of two regimes together; where one regime was only needed to draw the shape of others, its
    rows belong to several of them. The mechanisms of the others as they are say which regime is missed least.
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
        for one in without[:DROP_TRIES]:
            trial = _refined(problem, one.model, one.responsibilities, one.targets, needed=state.evidence)
            if trial.evidence > state.evidence:
                state = trial
                break
        else:
            return state
    return state


def drop_targets_while_better(problem: Problem, state: State) -> State:
    """Do without single targets as long as the evidence rises: rows and mechanisms first get used to it.

    Rows that are assigned with a target ask for it. So the largest regime may end with a target that the true reference
    has not, and the few others share what should be its mechanism.
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
    """Mechanisms fitted from nothing to the likeliest assignment, if that is better.

    Noise was given its shape while regimes were mixed up, and holds on to what suits the mixture: free Gaussians for a
    sharp end, beyond which there were rows of others.
    """
    hard = np.eye(state.n_regimes)[state.responsibilities.argmax(axis=1)]
    trial = refine(problem, hard, state.adjacency)
    return trial if trial.evidence > state.evidence else state


def merge_afresh_while_better(problem: Problem, state: State) -> State:
    """Merge pairs of regimes as long as the evidence rises, with mechanisms fitted from nothing.

    Two halves of a regime may each have found a mechanism that suits it. Together they would need the shape of the
    reference, which no step of EM from either half leads to; the bound of a merge falls all the same.
    """
    while state.n_regimes > max(problem.n_labelled, 1):
        for one in propose_merges(problem, state)[:MERGE_TRIES]:
            trial = fit_afresh(problem, merge(problem, state, [one]))
            if trial.evidence > state.evidence:
                state = trial
                break
        else:
            return state
    return state


def _disjoint(merges: list[Merge], count: int) -> list[Merge]:
    """The ``count`` best merges of different regimes."""
    chosen: list[Merge] = []
    used: set[int] = set()
    for one in merges:
        if len(chosen) < count and not used & {one.first, one.second}:
            chosen.append(one)
            used |= {one.first, one.second}
    return chosen


def fits(state: State, max_regimes: int) -> bool:
    """Whether the regimes, with the reference even if it has no rows, are at most ``max_regimes``."""
    return state.n_regimes + bool(state.targets.any(axis=1).all()) <= max_regimes


def fit_into(problem: Problem, state: State, max_regimes: int) -> State:
    """Merge until the regimes, with the reference even if it has no rows, are at most ``max_regimes``."""
    while not fits(state, max_regimes) and state.n_regimes > 1:
        state = merge(problem, state, propose_merges(problem, state)[:1])
    return state


def _try_births(problem: Problem, state: State, births: list[Birth]) -> State | None:
    """Apply births (of different regimes) together, merge if there are too many, and keep what is better."""
    responsibilities, targets = state.responsibilities, state.targets
    for birth in births:
        responsibilities, targets = birth.apply(responsibilities), birth.hit(targets)
    needed = state.evidence if responsibilities.shape[1] <= problem.max_regimes else -np.inf
    trial = _refined(problem, state.model, responsibilities, targets, needed=needed)
    if trial.n_regimes > problem.max_regimes:
        trial = merge_while_better(problem, trial)
    return trial if problem.learner.pays(problem, state, trial, births) else None


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


def settle(problem: Problem, state: State) -> State:
    """Other targets and merges, in turns, as long as they raise the evidence."""
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
) -> State:
    """Births, merges and graph search until none of them raises the evidence; tails (slow) once, on request."""
    state = settle(problem, state)
    if problem.all_labelled or problem.max_regimes == 1:
        return state
    for _ in range(rounds):
        births = propose_births(problem, state)
        alone = [birth for birth in births if not birth.others]
        distinct = [
            birth for i, birth in enumerate(alone) if birth.regime not in {b.regime for b in alone[:i]}
        ]
        room = problem.max_regimes - state.n_regimes
        grown = _try_births(problem, state, distinct[:room]) if min(len(distinct), room) > 1 else None
        # At the limit every birth costs a merge: look at fewer, and not for ever.
        full = room <= 0
        rounds_at_limit -= full
        if rounds_at_limit < 0:
            break
        for birth in births[: BIRTH_TRIES_AT_LIMIT if full else BIRTH_TRIES] if grown is None else ():
            grown = _try_births(problem, state, [birth])
            if grown is not None:
                break
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
