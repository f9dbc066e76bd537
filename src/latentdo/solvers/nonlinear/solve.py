"""Nonlinear structural search from a table to a result."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from threadpoolctl import threadpool_limits

from latentdo.data import Dataset
from latentdo.graphs import reachability
from latentdo.model.relu_mixture import ReluMixture
from latentdo.result import FitResult, Status
from latentdo.solvers.nonlinear.changes import Changes
from latentdo.solvers.nonlinear.em import State, fit_model, refine, settle
from latentdo.solvers.nonlinear.moves import Moves
from latentdo.solvers.nonlinear.search import NOISE_COMPONENTS, SEARCH_NOISE, Search
from latentdo.solvers.search.local_scores import FREE
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.reporting import Journal, Progress, canonical, regime_names
from latentdo.solvers.search.solve import SearchConfiguration, make_problem

ANCESTOR_DRAWS = 200
"""Graphs drawn to see who is whose ancestor."""

SEARCH_ROWS = 12_000
"""Structure is searched on at most so many rows and refined on all."""


def solve(
    dataset: Dataset, configuration: SearchConfiguration, density: str, progress: Progress | None = None
) -> FitResult:
    """Fit networks by structural search; with density "auto" the evidence decides whether noise is Gaussian.

    Known regimes and targets are held fixed, unknown ones are found. An interrupt (Ctrl-C) returns the best state so
    far with status "interrupted"; before the first state it is passed on.
    """
    problem = make_problem(dataset, configuration)
    rng = np.random.default_rng(configuration.random_state)
    search = problem
    if problem.n_rows > SEARCH_ROWS:
        search = problem.take(np.sort(rng.choice(problem.n_rows, SEARCH_ROWS, replace=False)))
    run = Search(search, configuration, SEARCH_NOISE, Journal(progress), rng, flexible=density != "nonlinear")
    status: Status = "converged"
    # Several threads on matrices this small mostly wait for each other.
    with threadpool_limits(limits=1):
        try:
            run.find()
        except KeyboardInterrupt:
            if run.best is None:
                raise
            status = "interrupted"
            if not run.families:  # all predecessors are still parents, which constraints may not allow
                run.best = run.prune(run.best)
        assert run.best is not None
        best = run.best
        if search is not problem:
            try:
                best = _on_all_rows(problem, best, run.n_components)
                run.journal.note("all rows", best)
            except KeyboardInterrupt:
                best, status = settle(problem, best.model), "interrupted"
        return _result(dataset, problem, configuration, density, best, run, status)


def _on_all_rows(problem: Problem, state: State, n_components: int) -> State:
    """Carry a state found on some of the rows to all of them."""
    everywhere = settle(problem, state.model)
    start = state.mechanisms
    return refine(
        problem, everywhere.responsibilities, state.targets, state.adjacency, start,
        n_components=n_components, iterations=4,
    )  # fmt: skip


def _edge_probabilities(run: Search, adjacency: NDArray[np.int8]) -> NDArray[np.float64]:
    """Probability of every edge given the order of the variables; the chosen graph if elimination was not reached."""
    probabilities = adjacency.astype(np.float64)
    for j, family in enumerate(run.families):
        for i, probability in family.probabilities.items():
            probabilities[i, j] = probability
    return probabilities


def _ancestor_probabilities(edges: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Share of graphs, drawn edge by edge (one order: never a cycle), in which one variable causes another."""
    rng = np.random.default_rng(seed)
    draws = [reachability((rng.random(edges.shape) < edges).astype(np.int8)) for _ in range(ANCESTOR_DRAWS)]
    return np.asarray(np.mean(draws, axis=0))


def _result(
    dataset: Dataset,
    problem: Problem,
    configuration: SearchConfiguration,
    density: str,
    state: State,
    run: Search,
    status: Status,
) -> FitResult:
    responsibilities, targets = canonical(problem, state.responsibilities, state.targets)
    start = state.mechanisms
    finals = {}
    for name in NOISE_COMPONENTS if density == "auto" else (density,):
        components = NOISE_COMPONENTS[name]
        candidate: ReluMixture = fit_model(
            problem, responsibilities, targets, state.adjacency, start,
            n_components=components, own_components=components, iterations=1,
        )  # fmt: skip
        finals[name] = settle(problem, candidate)
    density = max(finals, key=lambda name: finals[name].evidence)
    final = finals[density]
    model = final.model
    gains = Moves(problem, run.n_components, flexible=run.flexible).target_gains(final)
    # What did not move is no target, whatever a misfit of its network would gain.
    known = Changes.between(problem.z, final.responsibilities).known(problem) != FREE
    probabilities = np.asarray(expit(gains))
    # Targets that the search refused although they would gain (their network is at fault) are open, not certain.
    probabilities = np.where(targets == 1, probabilities, np.minimum(probabilities, 0.5))
    target_probabilities = np.where(known, targets, probabilities)
    target_probabilities[0] = 0.0  # the reference, whoever was found to belong to it
    edges = _edge_probabilities(run, state.adjacency)
    return FitResult(
        model=model,
        columns=dataset.columns,
        preprocessor=dataset.preprocessor,
        regime_names=regime_names(dataset, responsibilities.shape[1]),
        responsibilities=final.responsibilities,
        edge_probabilities=edges,
        ancestor_probabilities=_ancestor_probabilities(edges, configuration.random_state),
        target_probabilities=target_probabilities,
        evidence=final.evidence,
        evidence_terms={"log_likelihood": final.loglik, "structure_cost": -final.cost},
        solver="search",
        density=density,
        intervention=configuration.intervention,
        status=status,
        message="" if status == "converged" else "this is the best state so far",
        history=tuple(run.journal.entries),
        comparison=run.comparison,
        data_hash=dataset.content_hash(),
        seconds=time.perf_counter() - run.journal.began,
    )
