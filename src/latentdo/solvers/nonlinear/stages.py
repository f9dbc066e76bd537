"""The stages of a search for networks, from nothing to the best state; see the package for the way they go."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from latentdo.model.mechanisms import NetworkMechanism
from latentdo.model.mechanisms.network import with_inputs
from latentdo.solvers.nonlinear.learner import fit_from, flexible_noise, with_networks
from latentdo.solvers.nonlinear.marginal_shifts import Changes, conflicts
from latentdo.solvers.nonlinear.mechanism import fit_mechanism
from latentdo.solvers.nonlinear.mending import improve, simplify
from latentdo.solvers.nonlinear.orientation import doubtful_edges, reverse
from latentdo.solvers.nonlinear.parents import ParentSet, eliminate, reconsider
from latentdo.solvers.nonlinear.regimes import find_minority, first_regimes, predecessors
from latentdo.solvers.nonlinear.rough_scores import RoughGraph, rough_graph
from latentdo.solvers.nonlinear.separated_peaks import divide
from latentdo.solvers.search.driver import Run, Standing, doubt
from latentdo.solvers.search.em import weigh
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.regime_moves import fit_into, settle
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import (
    FIRST_STEPS,
    LOOK_GAIN,
    LOOKS,
    LUCK,
    MISFIT,
    MIXED_MISFIT,
    MIXED_NOISE,
    REMAINING,
    SEARCH_NOISE,
    SETTLED,
)


@dataclass(frozen=True, eq=False)
class NetworkRun(Run):
    """What the stages share; ``flexible`` noise need not be Gaussian."""

    flexible: bool

    def note(self, step: str, standing: NetworkStanding) -> NetworkStanding:
        """Keep a step in the history, told apart from the same step of an earlier look, with the time that is left."""
        looks = standing.looks
        name = f"{step}, look {looks}" if looks > 1 and step in {"regimes", "moves"} else step
        entries = self.journal.entries
        first = entries[0]["seconds"] if entries else time.perf_counter() - self.journal.began
        self.journal.note(name, standing.state, REMAINING[step] * first)
        self.journal.keep(standing)
        return standing

    def networks(self, n_gaussians: int = SEARCH_NOISE) -> Problem:
        """The problem for networks whose noise has so many Gaussians."""
        return with_networks(self.problem, n_gaussians, flexible=self.flexible)


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkStanding(Standing):
    """Where a search for networks stands.

    Parameters
    ----------
    state, comparison
        See :class:`.driver.Standing`.
    rough : RoughGraph
        The scores that the order was found with.
    labels : ndarray [n] of int64
        The regimes that it was found with; all rows alike the first time.
    looks : int
        How often an order was looked for.
    n_gaussians : int
        Gaussians in the noise.
    parents : tuple of ParentSet
        Everybody's parents, once predecessors that are none were dropped.
    """

    rough: RoughGraph
    labels: NDArray[np.int64]
    looks: int
    n_gaussians: int = SEARCH_NOISE
    parents: tuple[ParentSet, ...] = ()


Stage = Callable[[NetworkRun, NetworkStanding], NetworkStanding]


def search(run: NetworkRun) -> NetworkStanding:
    """All stages, one after another."""
    problem = run.problem
    changes = None
    if problem.all_labelled and problem.n_labelled > 1:
        changes = Changes.between(problem.z, np.eye(problem.n_labelled)[problem.labels])
        run = replace(run, problem=replace(problem, known=changes.known(problem)))
    standing = find_order(run, run.problem, changes)
    for stage in (look_again, *FINISH, divide_regimes):
        standing = stage(run, standing)
    if problem.n_labelled == 0:
        state = fit_into(run.networks(standing.n_gaussians), standing.state, problem.max_regimes)
        standing = replace(standing, state=state)
    return compare_with_single_regime(run, run.note("final", standing))


def find_order(
    run: NetworkRun,
    problem: Problem,
    changes: Changes | None = None,
    known: NetworkStanding | None = None,
) -> NetworkStanding:
    """An order of the variables, everybody's predecessors as inputs, regimes, and targets.

    With a ``known`` standing regimes are not looked for: the problem's labels stand for them.
    """
    lateness = None
    if changes is not None:
        lateness = changes.lateness
        problem = replace(problem, constraints=problem.constraints.without(changes.impossible))
    rough = rough_graph(problem, seed=run.configuration.random_state, lateness=lateness)
    inputs = predecessors(rough, problem)
    found = [
        find_minority(problem, j, inputs[j], rough.rows, rough.minority[:, j], SEARCH_NOISE, run.rng)
        for j in range(problem.n_variables)
    ]
    start = {j: mechanism for j, (_, mechanism) in enumerate(found)}
    if problem.max_regimes == 1:
        first = np.ones((problem.n_rows, 1))
        targets = np.zeros((1, problem.n_variables), dtype=np.int8)
    else:
        first, targets = first_regimes(problem, np.column_stack([second for second, _ in found]))
    if known is not None:
        # A regime without targets would lose its rows; it was told apart by something.
        first = known.state.responsibilities
        lost = ~targets.any(axis=1) & known.state.targets.any(axis=1)
        targets[lost] = known.state.targets[lost]
        start |= better_before(run.problem, known.state, inputs, start, targets)
    state = fit_from(run.networks(), first, _matrix(inputs), targets, start, FIRST_STEPS)
    labels = np.zeros(problem.n_rows, dtype=np.int64) if known is None else problem.labels
    looks = 1 if known is None else known.looks + 1
    standing = NetworkStanding(state, rough=rough, labels=labels, looks=looks)
    if run.journal.latest is None:  # something to return if interrupted
        run.journal.keep(standing)
    before = run.journal.latest
    run.note("regimes", standing)
    # Births wait until the networks fit well: a bad fit looks like a hidden regime.
    standing = replace(standing, state=settle(run.networks(), simplify(run.networks(), state)))
    run.note("moves", standing)
    if known is not None:  # not before it is known to be better
        run.journal.keep(before)
    return standing


def better_before(
    problem: Problem,
    known: State,
    inputs: list[list[int]],
    fresh: Mapping[int, NetworkMechanism],
    targets: NDArray[np.int8],
) -> dict[int, NetworkMechanism]:
    """Mechanisms of an earlier state that fit better than fresh ones whose inputs include theirs."""
    z, better = problem.z, {}
    for j, wanted in enumerate(inputs):
        parents = known.model.parents[j].tolist()
        if not parents or not set(parents) <= set(wanted):
            continue
        network = with_inputs(known.mechanism(j).parameters, parents, wanted)
        weights = known.responsibilities @ (1.0 - targets[:, j])
        x, y = np.ascontiguousarray(z[:, wanted]), z[:, j]
        before, now = (
            fit_mechanism(x, y, weights, start, n_components=SEARCH_NOISE)
            for start in (network, fresh[j].parameters)
        )
        if weights @ (before.log_density(x, y) - now.log_density(x, y)) > 0.0:
            better[j] = before
    return better


def is_better(run: NetworkRun, state: State, before: State, margin: float = LOOK_GAIN) -> bool:
    """Whether a state needs fewer coincidences than the one before, or no more and has ``margin`` more evidence.

    Evidence alone does not decide between orders: where noise is not what the networks assume it may prefer a wrong
    one. Large differences count all the same.
    """
    gain = state.evidence - before.evidence
    now, then = conflicts(run.problem, state), conflicts(run.problem, before)
    allowed = (MIXED_MISFIT * MISFIT if run.flexible else MISFIT) * run.problem.n_rows
    return bool(gain > margin + allowed * np.sign(now - then))


def look(run: NetworkRun, standing: NetworkStanding) -> NetworkStanding:
    """Look for the order with regimes that are known well enough to serve as labels."""
    changes = Changes.between(run.problem.z, standing.state.responsibilities)
    labels = standing.state.responsibilities.argmax(axis=1)
    labelled = replace(run.problem, labels=labels, known=changes.known(run.problem))
    return find_order(run, labelled, changes, standing)


def look_again(run: NetworkRun, standing: NetworkStanding) -> NetworkStanding:
    """Look once more, and keep the better state, as long as there is one."""
    for _ in range(LOOKS):
        if run.problem.all_labelled or standing.state.n_regimes == 1:
            break
        fresh = look(run, standing)
        # The regimes that an order was last looked for with stay those, whichever order is kept.
        standing = replace(standing, labels=fresh.labels, looks=fresh.looks)
        if not is_better(run, fresh.state, standing.state):
            break
        standing = fresh
        run.journal.keep(standing)
    return standing


def find_parents(run: NetworkRun, standing: NetworkStanding) -> NetworkStanding:
    """Keep the inputs that are parents, and settle the rows again."""
    return run.note("parents", drop_inputs(run, standing))


def drop_inputs(run: NetworkRun, standing: NetworkStanding) -> NetworkStanding:
    """Eliminate inputs that a network can do without; parents are then found from scratch as well."""
    problem, state = run.problem, standing.state
    count, rng = standing.n_gaussians, run.rng
    found = [
        eliminate(
            problem, j, inputs.tolist(), state.mechanism(j), state.following(j), n_components=count, rng=rng
        )
        for j, inputs in enumerate(state.model.parents)
    ]
    if count > 1 or not run.flexible:
        found = [
            reconsider(problem, j, parent_set, state.following(j), n_components=count, rng=rng)
            for j, parent_set in enumerate(found)
        ]
    adjacency = _matrix([list(parent_set.parents) for parent_set in found])
    mechanisms = {j: parent_set.mechanism for j, parent_set in enumerate(found)}
    settled = fit_from(run.networks(count), state.responsibilities, adjacency, state.targets, mechanisms)
    return replace(standing, state=settled, parents=tuple(found))


def find_regimes(run: NetworkRun, standing: NetworkStanding) -> NetworkStanding:
    """Regimes again, now that networks fit well; with flexible noise parents too."""
    if not run.flexible:
        return replace(standing, state=improve(run.networks(), standing.state))
    state = standing.state
    mixed = fit_from(
        run.networks(MIXED_NOISE), state.responsibilities, state.adjacency, state.targets, state.mechanisms
    )
    standing = run.note("noise", replace(standing, state=mixed, n_gaussians=MIXED_NOISE))
    standing = run.note("births", replace(standing, state=improve(run.networks(MIXED_NOISE), mixed)))
    pruned = drop_inputs(run, standing)
    return pruned if is_better(run, pruned.state, standing.state) else standing


def turn_edges(run: NetworkRun, standing: NetworkStanding) -> NetworkStanding:
    """Try edges that regimes object to, and those that the rough scores are least sure of, the other way round."""
    before = standing.state
    changes = Changes.between(run.problem.z, before.responsibilities)
    edges = [(int(i), int(j)) for i, j in np.argwhere(changes.impossible & (before.adjacency == 1))]
    edges += [edge for edge in doubtful_edges(standing.rough, before.adjacency) if edge not in edges]
    margin = LUCK * run.problem.n_rows if run.flexible else LOOK_GAIN
    networks = run.networks(standing.n_gaussians)
    for i, j in edges:
        state = standing.state
        if state.adjacency[i, j]:
            turned = reverse(networks, state, i, j, run.rng)
            if turned is not None and is_better(run, turned[0], state, margin):
                parents = [turned[1].get(v, one) for v, one in enumerate(standing.parents)]
                standing = replace(standing, state=turned[0], parents=tuple(parents))
    if standing.state is not before:
        standing = replace(standing, state=improve(networks, standing.state))
    run.journal.keep(standing)
    return standing


FINISH: tuple[Stage, ...] = (find_parents, find_regimes, turn_edges)
"""From predecessors as inputs to parents, and to what good networks make possible."""


def divide_regimes(run: NetworkRun, standing: NetworkStanding) -> NetworkStanding:
    """All over again with finer regimes, if they are no longer those that the order was found with."""
    problem, state = run.problem, standing.state
    if not run.flexible or problem.all_labelled or state.n_regimes == 1:
        return standing
    responsibilities, targets = divide(problem, state)
    settled = adjusted_rand_score(standing.labels, responsibilities.argmax(axis=1)) > SETTLED
    if settled and not conflicts(problem, state):
        return standing
    networks = run.networks()
    statistics = networks.learner.statistics(networks, responsibilities, state.model)
    model = networks.learner.fit(networks, statistics, state.adjacency, targets)
    model = problem.weighted(model, responsibilities)
    finer = replace(weigh(problem, model), responsibilities=responsibilities)
    fresh = look(run, replace(standing, state=finer))
    for stage in FINISH:
        fresh = stage(run, fresh)
    # Mixed noise makes evidence unreliable; interventions that hit one variable more must be worth it.
    surplus = int(fresh.state.targets.sum()) - int(state.targets.sum())
    better = is_better(run, fresh.state, state, LUCK * problem.n_rows * surplus)
    standing = fresh if better else standing
    run.journal.keep(standing)
    return standing


def compare_with_single_regime(run: NetworkRun, standing: NetworkStanding) -> NetworkStanding:
    """One regime with flexible noise, if hidden interventions do not explain the rows much better."""
    problem, state = run.problem, standing.state
    if problem.n_labelled or state.n_regimes == 1:
        return standing
    everyone = np.ones((problem.n_rows, 1))
    none = np.zeros((1, problem.n_variables), dtype=np.int8)
    networks = run.networks(standing.n_gaussians)
    single = fit_from(networks, everyone, state.adjacency, none, state.mechanisms)
    # Both sides may use flexible noise, or the comparison would be about noise.
    flexible, found = (
        one.evidence + sum(gain for _, gain in flexible_noise(networks, one)) for one in (single, state)
    )
    doubtful, comparison = doubt(problem, float(found), {"one regime, flexible noise": float(flexible)})
    if doubtful:
        # The graph was found with minorities set aside; without them it is another question.
        standing = search(replace(run, problem=replace(problem, max_regimes=1)))
    return replace(standing, comparison=comparison)


def _matrix(inputs: list[list[int]]) -> NDArray[np.int8]:
    adjacency = np.zeros((len(inputs), len(inputs)), dtype=np.int8)
    for j, parents in enumerate(inputs):
        adjacency[parents, j] = 1
    return adjacency
