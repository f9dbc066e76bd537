"""Where a search for networks begins: regimes from very different ideas, and the order that follows from each.

Minorities need no clustering, but a majority: where most variables are hit in many rows, there is none to start from. A
mixture of Gaussians needs regimes that lie apart, however many variables they hit. Curves that were found before know
graph, regimes and targets, as far as means add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from latentdo.solvers.nonlinear.learner import fit_from
from latentdo.solvers.nonlinear.mending import simplify
from latentdo.solvers.nonlinear.order import (
    NetworkRun,
    NetworkStanding,
    as_networks,
    find_order,
    is_better,
    is_wide,
    look,
)
from latentdo.solvers.search.em import weigh
from latentdo.solvers.search.regime_moves import settle
from latentdo.solvers.search.reporting import Journal
from latentdo.solvers.search.starts import clustering
from latentdo.solvers.settings import NETWORK_START_NAMES, START_GAIN


def best_start(run: NetworkRun) -> NetworkStanding:
    """The best of several starts, if it is clearly so; there are no more once two of them reach about the same.

    In parallel the same starts count as in sequence, so that the number of processes does not change the result.
    """
    luck = START_GAIN * run.problem.n_rows
    best: NetworkStanding | None = None
    reached: list[float] = []
    for standing in _standings(run):
        evidence = standing.state.evidence
        if best is None or is_better(run, standing.state, best.state, luck):
            best = standing
        run.journal.keep(best)
        if any(abs(evidence - other) < luck for other in reached):
            # Two orders were found with regimes as good as each other: that was another look.
            return replace(best, looks=best.looks + 1)
        reached.append(evidence)
    assert best is not None
    return best


def _standings(run: NetworkRun) -> Iterator[NetworkStanding]:
    """What different starts lead to, one after another."""
    problem, configuration = run.problem, run.configuration
    names = list(NETWORK_START_NAMES)
    if problem.all_labelled or problem.max_regimes == 1:
        names = names[:1]  # there are no regimes to find
    elif run.curves is not None:
        names.insert(1, "curves")
    if is_wide(run):
        names = ["curves"]
    count = 1 if len(names) == 1 else configuration.n_init
    planned = [
        (names[a % len(names)], rng, configuration.random_state + a)
        for a, rng in enumerate(run.rng.spawn(count))
    ]
    at_once = min(configuration.n_jobs, count)
    if at_once == 1:
        for a, (name, rng, seed) in enumerate(planned):
            yield _begin(replace(_told(run, a, name), rng=rng), name, seed)
        return
    alone = replace(run, configuration=replace(configuration, n_jobs=1), journal=Journal(None))
    for first in range(0, count, at_once):  # so that nobody works on starts that nobody waits for
        some = planned[first : first + at_once]
        jobs = [
            delayed(_begin_in_one_thread)(replace(alone, rng=rng), name, seed) for name, rng, seed in some
        ]
        for a, standing in enumerate(Parallel(n_jobs=at_once)(jobs), first):
            _told(run, a, planned[a][0]).note("moves", standing)
            yield standing


def _told(run: NetworkRun, a: int, name: str) -> NetworkRun:
    """The run of start number ``a``, by whose name its steps are known if it is not the first."""
    return replace(run, journal=run.journal.under(f"start {a + 1}, {name}")) if a else run


def _begin_in_one_thread(run: NetworkRun, name: str, seed: int) -> NetworkStanding:
    with threadpool_limits(limits=1):
        return _begin(run, name, seed)


def _begin(run: NetworkRun, name: str, seed: int) -> NetworkStanding:
    """Order, regimes, targets and networks from one start."""
    problem = run.problem
    if name == "minorities":
        return find_order(replace(run, configuration=replace(run.configuration, random_state=seed)), problem)
    if name == "curves":
        assert run.curves is not None
        found = weigh(problem, run.curves)
        rows, targets = found.responsibilities, found.targets
        if problem.max_regimes == 1:
            rows, targets = np.ones((problem.n_rows, 1)), np.zeros((1, problem.n_variables), dtype=np.int8)
        known = as_networks(run, rows, found.adjacency, targets)
    else:
        clusters = clustering(problem, name, seed)
        graph = problem.constraints.required.astype(np.int8)
        none = np.zeros((clusters.shape[1], problem.n_variables), dtype=np.int8)
        known = as_networks(run, clusters, graph, none)
    standing = NetworkStanding(known, labels=known.responsibilities.argmax(axis=1), looks=0)
    if not is_wide(run):
        return look(run, standing)
    # Too wide to look for an order: that of the curves, whose edges will be added, dropped and turned one by one.
    networks = run.networks()
    settled = fit_from(networks, known.responsibilities, known.adjacency, known.targets, known.mechanisms)
    return run.note("moves", replace(standing, state=settle(networks, simplify(networks, settled)), looks=1))
