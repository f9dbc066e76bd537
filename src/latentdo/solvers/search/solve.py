"""The search solver from end to end: starts, structural EM, moves, the sceptic's check, and how sure it all is."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from latentdo.data import Dataset
from latentdo.graphs.constraints import Constraints
from latentdo.model.penalties import Penalties
from latentdo.ranks import Ranks
from latentdo.result import FitResult, Status
from latentdo.solvers.search import moves, starts
from latentdo.solvers.search.em import assign_rows, family_tables, refine, relearn, weigh
from latentdo.solvers.search.null import NullModel, fit_null
from latentdo.solvers.search.parameters import fit_parameters, target_probabilities
from latentdo.solvers.search.posterior import graph_posterior
from latentdo.solvers.search.problem import Problem, known_targets
from latentdo.solvers.search.reporting import Journal, Progress, canonical, regime_names
from latentdo.solvers.search.state import State

ANNEALING = (-40.0, -20.0, -10.0)
"""Target priors of the first rounds from a clustering: wrong clusters must not buy targets before they are mended."""

SCEPTICISM = 2.0
"""Hidden interventions must beat one regime by this many times log(n) nats, the error that either evidence may have."""

MAX_VARIABLES = 2000
"""Beyond this the moments of 16 regimes fill gigabytes, and one graph search takes hours."""

AGREEMENT = 0.5
"""Two starts that end within this many nats of each other have found the same optimum."""


@dataclass(frozen=True)
class SearchConfiguration:
    """What the user may set about the search; the defaults are those of the estimator.

    Parameters
    ----------
    intervention : {"auto", "perfect", "imperfect"}
        Whether intervened mechanisms may use their parents; "auto" lets the score decide for every target.
    max_regimes : int
        Largest number of regimes, the reference included.
    edge_prior, target_prior
        Prior log-odds, see :mod:`.penalties`; None means the default.
    constraints
        Prior knowledge of the graph; None means that there is none.
    n_init : int
        Largest number of starts; fewer if two of them agree.
    search_rows : int
        Structure is searched on at most this many rows (drawn at random) and refined on all.
    random_state : int
        Seed of everything random.
    n_jobs : int
        Starts run in parallel on so many processes.
    ranks : Ranks
        Processes that run this same search. What all rows are needed for is shared among them.
    """

    intervention: Literal["auto", "perfect", "imperfect"] = "auto"
    max_regimes: int = 16
    edge_prior: float | NDArray[np.float64] | None = None
    target_prior: float | None = None
    constraints: Constraints | None = None
    n_init: int = 4
    search_rows: int = 20_000
    random_state: int = 0
    n_jobs: int = 1
    ranks: Ranks = field(default_factory=Ranks)


def make_problem(dataset: Dataset, configuration: SearchConfiguration) -> Problem:
    """Collect what is fixed during the search."""
    d = dataset.n_variables
    if d > MAX_VARIABLES:
        raise ValueError(
            f"there are {d} variables, and the search takes at most {MAX_VARIABLES}: choose the ones of interest, for "
            "example those that vary most (read_table has columns= and drop=)"
        )
    labels = np.full(dataset.n_rows, -1) if dataset.regimes is None else np.array(dataset.regimes)
    observational = bool((labels == 0).any())
    # Labels that name no row and come without targets say nothing: the same as no labels at all.
    n_labelled = 0 if dataset.targets is None and (labels < 0).all() else dataset.n_regimes
    known = known_targets(dataset.targets, n_labelled, d, observational=observational)
    return Problem(
        design=np.column_stack([np.ones(dataset.n_rows), dataset.z]),
        labels=labels,
        known=known,
        constraints=configuration.constraints or Constraints.build(dataset.columns),
        penalties=Penalties.build(d, configuration.edge_prior, configuration.target_prior),
        imperfect=configuration.intervention != "perfect",
        max_regimes=max(configuration.max_regimes, dataset.n_regimes),
    )


def solve(
    dataset: Dataset, configuration: SearchConfiguration, progress: Progress | None = None
) -> FitResult:
    """Fit the linear model by structural EM.

    Known regimes and targets are held fixed, unknown ones are found; see :class:`Problem`. An interrupt (Ctrl-C)
    during the search returns the best state so far, one regime at least, with status "interrupted".
    """
    problem = make_problem(dataset, configuration)
    journal = Journal(progress)
    search = _subsample(problem, configuration)
    status: Status = "converged"
    null: NullModel | None = None
    best: State | None = None
    if problem.all_labelled or problem.max_regimes == 1:
        known = (
            np.ones((search.n_rows, 1))
            if problem.n_labelled == 0
            else np.eye(problem.n_labelled)[search.labels]
        )
        best = relearn(search, known)
        journal.note("graph", best)
    else:
        try:
            for step, state in _candidates(search, configuration):
                journal.note(step, state)
                if best is None or state.evidence > best.evidence:
                    best = state
            assert best is not None
            if problem.n_labelled == 0:  # labels already say that there are several regimes
                null = _sceptic(search, best)
            if null is None or null.evidence < best.evidence:
                grown = moves.improve(search, best, tails=True)
                if null is not None and grown is not best:
                    null = _sceptic(search, grown, null)
                best = grown
            journal.note("final", best)
        except KeyboardInterrupt:
            if best is None:
                best = _without_search(search)
            status = "interrupted"
    if problem.n_labelled == 0:
        best = moves.fit_into(search, best, problem.max_regimes)
    # The graph shown must be the best one for the rows as they are assigned now: its probabilities come from there.
    again = relearn(search, best.responsibilities, adjacency=best.adjacency, thorough=True)
    if again.evidence > best.evidence and (problem.n_labelled or moves.fits(again, problem.max_regimes)):
        best = again
    found = best
    if null is not None and null.evidence + SCEPTICISM * np.log(search.n_rows) >= best.evidence:
        best = null.state
    comparison = _comparison(best, found, null)
    if search is not problem:
        problem = problem.shared(configuration.ranks)
        best = _on_all_rows(problem, configuration.ranks.from_first(best))
        journal.note("all rows", best)
    return result_of(dataset, problem, configuration, best, journal, status, comparison)


def _subsample(problem: Problem, configuration: SearchConfiguration) -> Problem:
    """At most ``search_rows`` rows, all of them if they are fewer."""
    limit = max(configuration.search_rows, 300 * problem.max_regimes)
    if problem.n_rows <= limit:
        return problem
    rng = np.random.default_rng(configuration.random_state)
    return problem.take(np.sort(rng.choice(problem.n_rows, limit, replace=False)))


def _without_search(problem: Problem) -> State:
    """What can be said at once: every row in the reference or at its label."""
    n_components = max(problem.n_labelled, 1)
    everyone = np.zeros((problem.n_rows, n_components))
    everyone[:, 0] = 1.0
    return relearn(problem, problem.clamp(everyone), rounds=1)


def _sceptic(problem: Problem, state: State, null: NullModel | None = None) -> NullModel:
    """The best one-regime model: on its own best graph, or on the graph of ``state``."""
    own = fit_null(problem) if null is None else null
    other = fit_null(problem, state.adjacency)
    return other if other.evidence > own.evidence else own


@dataclass(frozen=True, eq=False)
class _Start:
    """What one start reached: before it was grown by births, and after."""

    early: State
    grown: State


def _candidates(problem: Problem, configuration: SearchConfiguration) -> Iterator[tuple[str, State]]:
    """States from different starts, each grown as far as births, merges and graph search take it.

    In parallel the same starts count as in sequence, so that the number of processes does not change the result.
    """
    names = [("residual", "mixture", "residual", "k-means")[i % 4] for i in range(configuration.n_init)]
    seeds = [configuration.random_state + i for i in range(configuration.n_init)]
    if problem.n_labelled:
        names.insert(0, "labels")
        seeds.insert(0, configuration.random_state)
    planned = list(zip(names, seeds, strict=True))
    ready: Iterator[_Start] | None = None
    if configuration.n_jobs != 1:
        jobs = (delayed(_run_start)(problem, name, seed) for name, seed in planned)
        ready = Parallel(n_jobs=configuration.n_jobs, return_as="generator")(jobs)
    reached: list[float] = []
    for name, seed in planned:
        start = None if ready is None else next(ready)
        early = _begin(problem, name, seed) if start is None else start.early
        if name != "residual" and early.evidence < max(reached, default=-np.inf) and moves.overlapping(early):
            state = early  # a clustering of overlapping regimes that is behind already is not grown further
        else:
            state = moves.improve(problem, early) if start is None else start.grown
        yield name, state
        if any(abs(state.evidence - other) < AGREEMENT for other in reached):
            return
        reached.append(state.evidence)
        doubtful = len(reached) == 2 and not problem.n_labelled and moves.overlapping(state)
        if doubtful and _sceptic(problem, state).evidence > max(reached):
            return  # two different starts do not beat one regime: more would only fit its noise better


def _run_start(problem: Problem, name: str, seed: int) -> _Start:
    early = _begin(problem, name, seed)
    return _Start(early, moves.improve(problem, early))


def _begin(problem: Problem, name: str, seed: int) -> State:
    """Structural EM from one start, with the regimes that it proposes."""
    if name == "residual":
        state = starts.residual(problem, seed)
        return relearn(problem, state.responsibilities, adjacency=state.adjacency)
    responsibilities = (
        starts.from_labels(problem) if name == "labels" else starts.clustering(problem, name, seed)
    )
    adjacency = None
    for target_prior in ANNEALING:
        state = relearn(problem, responsibilities, adjacency=adjacency, rounds=3, target_prior=target_prior)
        responsibilities, adjacency = state.responsibilities, state.adjacency
    return moves.merge_while_better(problem, relearn(problem, responsibilities, adjacency=adjacency))


def _on_all_rows(problem: Problem, state: State) -> State:
    """Carry a state found on some of the rows to all of them: assign, search the graph once more, settle."""
    responsibilities, _ = assign_rows(problem, state.model)
    state = refine(problem, responsibilities, state.adjacency, iterations=5, tolerance=1.0)
    return relearn(problem, state.responsibilities, adjacency=state.adjacency, rounds=2, tolerance=1.0)


def _comparison(best: State, found: State, null: NullModel | None) -> tuple[Mapping[str, Any], ...]:
    if null is None:
        return ()
    return (
        {"model": "hidden interventions", "evidence": found.evidence, "chosen": best is found},
        {"model": "one regime, flexible noise", "evidence": null.evidence, "chosen": best is null.state},
        {"model": "one regime, Gaussian noise", "evidence": null.state.evidence, "chosen": False},
    )


def result_of(
    dataset: Dataset,
    problem: Problem,
    configuration: SearchConfiguration,
    state: State,
    journal: Journal,
    status: Status,
    comparison: tuple[Mapping[str, Any], ...],
) -> FitResult:
    """What a state of linear mechanisms says, with how sure it is."""
    responsibilities, targets = canonical(problem, state.responsibilities, state.targets)
    moments = problem.moments(responsibilities)
    # An empty reference must stay free of targets although no row speaks for it.
    model = fit_parameters(problem, moments, state.adjacency, targets)
    # What is reported must follow from the model that is saved, not from the one a step before it.
    final = weigh(problem, model.with_weights(problem.counts(responsibilities) / dataset.n_rows))
    tables = family_tables(problem, moments, state.adjacency, targets)
    posterior = graph_posterior(tables, state.adjacency, seed=configuration.random_state)
    return FitResult(
        model=final.model,
        columns=dataset.columns,
        preprocessor=dataset.preprocessor,
        regime_names=regime_names(dataset, final.n_components),
        responsibilities=problem.ranks.join(final.responsibilities),
        edge_probabilities=posterior.edges,
        ancestor_probabilities=posterior.ancestors,
        target_probabilities=target_probabilities(problem, moments, state.adjacency, targets),
        evidence=final.evidence,
        evidence_terms=final.terms,
        solver="search",
        density="linear",
        intervention=configuration.intervention,
        status=status,
        message="" if status == "converged" else "this is the best state so far",
        history=tuple(journal.entries),
        comparison=comparison,
        data_hash=dataset.content_hash(),
        seconds=time.perf_counter() - journal.began,
    )
