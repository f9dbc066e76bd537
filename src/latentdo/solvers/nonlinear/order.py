"""An order of the variables, and the regimes and networks that follow from it; found once, and looked for again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from latentdo.model.fitted import FittedModel
from latentdo.model.mechanisms import NetworkMechanism
from latentdo.model.mechanisms.network import with_inputs
from latentdo.solvers.nonlinear.learner import fit_from, with_networks
from latentdo.solvers.nonlinear.marginal_shifts import Changes, conflicts
from latentdo.solvers.nonlinear.mechanism import fit_mechanism
from latentdo.solvers.nonlinear.mending import simplify
from latentdo.solvers.nonlinear.parents import ParentSet
from latentdo.solvers.nonlinear.regimes import find_minority, first_regimes, predecessors
from latentdo.solvers.nonlinear.rough_scores import rough_graph
from latentdo.solvers.search.driver import Run, Standing
from latentdo.solvers.search.em import weigh
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.regime_moves import settle
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import (
    FIRST_STEPS,
    LOOK_GAIN,
    LOOKS,
    MISFIT,
    MIXED_MISFIT,
    REMAINING,
    SEARCH_NOISE,
    WIDEST,
)


@dataclass(frozen=True, eq=False)
class NetworkRun(Run):
    """What the stages share.

    Parameters
    ----------
    problem, configuration, journal, rng
        See :class:`.driver.Run`.
    flexible : bool
        Whether noise need not be Gaussian.
    curves : FittedModel, optional
        What another family, such as curves, found in the same rows.
    """

    flexible: bool
    curves: FittedModel | None = None

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

    def each(self, task: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
        """The answers to independent tasks, each with a random stream of its own as its last argument.

        They depend neither on the number of processes nor on each other.
        """
        given = list(arguments)
        jobs = zip(given, self.rng.spawn(len(given)), strict=True)
        calls = (delayed(_in_one_thread)(task, *one, rng) for one, rng in jobs)
        return list(Parallel(n_jobs=self.configuration.n_jobs)(calls))


def _in_one_thread(task: Callable[..., Any], *arguments: Any) -> Any:
    with threadpool_limits(limits=1):  # as in the search itself: sums by several threads round differently
        return task(*arguments)


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkStanding(Standing):
    """Where a search for networks stands.

    Parameters
    ----------
    state, comparison
        See :class:`.driver.Standing`.
    labels : ndarray [n] of int64
        The regimes that the order was found with; all rows alike the first time.
    looks : int
        How often an order was looked for.
    n_gaussians : int
        Gaussians in the noise.
    parents : tuple of ParentSet
        Everybody's parents, once predecessors that are none were dropped.
    turned : mapping (i, j) -> float
        Nats that are lost where the edge ``i -> j`` is turned round, parents and targets of both chosen anew; of the
        edges that were tried.
    """

    labels: NDArray[np.int64]
    looks: int
    n_gaussians: int = SEARCH_NOISE
    parents: tuple[ParentSet, ...] = ()
    turned: Mapping[tuple[int, int], float] = field(default_factory=dict)


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
    found = run.each(
        find_minority,
        ((problem, j, own, rough.rows, rough.minority[:, j], SEARCH_NOISE) for j, own in enumerate(inputs)),
    )
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
    state = fit_from(run.networks(), first, as_matrix(inputs), targets, start, FIRST_STEPS)
    labels = np.zeros(problem.n_rows, dtype=np.int64) if known is None else problem.labels
    looks = 1 if known is None else known.looks + 1
    standing = NetworkStanding(state, labels=labels, looks=looks)
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


def as_networks(
    run: NetworkRun,
    responsibilities: NDArray[np.float64],
    adjacency: NDArray[np.int8],
    targets: NDArray[np.int8],
    model: FittedModel | None = None,
) -> State:
    """Networks fitted to a structure, wherever it comes from, with rows that stay as they are assigned."""
    networks = run.networks()
    statistics = networks.learner.statistics(networks, responsibilities, model)
    fitted = networks.learner.fit(networks, statistics, adjacency, targets)
    state = weigh(run.problem, run.problem.weighted(fitted, responsibilities))
    return replace(state, responsibilities=responsibilities)


def look(run: NetworkRun, standing: NetworkStanding) -> NetworkStanding:
    """Look for the order with regimes that are known well enough to serve as labels."""
    changes = Changes.between(run.problem.z, standing.state.responsibilities)
    labels = standing.state.responsibilities.argmax(axis=1)
    labelled = replace(run.problem, labels=labels, known=changes.known(run.problem))
    return find_order(run, labelled, changes, standing)


def is_wide(run: NetworkRun) -> bool:
    """Whether there are too many variables to look for their order, and curves that have one."""
    return run.curves is not None and run.problem.n_variables > WIDEST


def look_again(run: NetworkRun, standing: NetworkStanding) -> NetworkStanding:
    """Look once more, and keep the better state, as long as there is one."""
    if is_wide(run):
        return standing
    while standing.looks <= LOOKS and not run.problem.all_labelled and standing.state.n_regimes > 1:
        fresh = look(run, standing)
        # The regimes that an order was last looked for with stay those, whichever order is kept.
        standing = replace(standing, labels=fresh.labels, looks=fresh.looks)
        if not is_better(run, fresh.state, standing.state):
            break
        standing = fresh
        run.journal.keep(standing)
    return standing


def as_matrix(inputs: list[list[int]]) -> NDArray[np.int8]:
    """The graph in which variables have these inputs."""
    adjacency = np.zeros((len(inputs), len(inputs)), dtype=np.int8)
    for j, parents in enumerate(inputs):
        adjacency[parents, j] = 1
    return adjacency
