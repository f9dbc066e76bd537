"""Linear mechanisms: starts, structural EM, moves, the comparison with a single regime, and probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from latentdo.data import Dataset
from latentdo.model.fitted import FittedModel
from latentdo.result import FitResult
from latentdo.solvers.search import driver, fewer_regimes, regime_moves, starts
from latentdo.solvers.search.driver import Conclusion, Run, SearchConfiguration, Standing, make_problem
from latentdo.solvers.search.em import assign_rows, refine, relearn, weigh
from latentdo.solvers.search.posterior import graph_posterior
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.reporting import Progress
from latentdo.solvers.search.single_regime import NullModel, fit_null
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import (
    AGREEMENT,
    ALL_ROWS_ROUNDS,
    ALL_ROWS_STEPS,
    ALL_ROWS_TOLERANCE,
    ANNEALING,
    ANNEALING_ROUNDS,
    DOUBT_AFTER,
    LINEAR_SEARCH_ROWS,
    ROWS_PER_REGIME,
    START_NAMES,
)

__all__ = ["LinearStrategy", "SearchConfiguration", "make_problem", "solve"]


Enough = Callable[[Problem, State], bool]
"""Whether the result of one start already shows that lines with Gaussian noise do not suffice."""


def solve(
    dataset: Dataset,
    configuration: SearchConfiguration,
    progress: Progress | None = None,
    enough: Enough | None = None,
) -> FitResult:
    """Fit linear mechanisms by structural EM, see :func:`.driver.search`.

    If the first start is ``enough``, there is no other: another family continues from there.
    """
    return driver.search(dataset, configuration, LinearStrategy(enough), progress)


@dataclass(frozen=True, eq=False)
class LinearStanding(Standing):
    """The state of the search, and the one-regime model that it has to beat, if any."""

    null: NullModel | None = None


@dataclass(frozen=True, eq=False)
class LinearStrategy:
    """Several starts, grown by splits and merges; the best is compared with one regime, and its graph refined."""

    enough: Enough | None = None

    def search_rows(self, problem: Problem, configuration: SearchConfiguration) -> int:  # noqa: ARG002
        """See :class:`.driver.Strategy`."""
        return max(LINEAR_SEARCH_ROWS, ROWS_PER_REGIME * problem.max_regimes)

    def search(self, run: Run) -> LinearStanding:
        """See :class:`.driver.Strategy`."""
        problem = run.problem
        if problem.all_labelled or problem.max_regimes == 1:
            standing = _without_regimes(run)
        else:
            standing = _grow(run, self.enough)
        return _verdict(run, _last_graph(run, standing))

    def salvage(self, run: Run) -> LinearStanding:
        """See :class:`.driver.Strategy`; at least one regime."""
        standing = run.journal.latest or LinearStanding(_at_once(run.problem))
        return _verdict(run, _last_graph(run, standing))

    def on_all_rows(
        self, problem: Problem, configuration: SearchConfiguration, standing: LinearStanding
    ) -> State:
        """See :class:`.driver.Strategy`: assign, run EM, search the graph once more."""
        state = configuration.ranks.from_first(standing.state)
        responsibilities, _ = assign_rows(problem, state.model)
        state = refine(
            problem,
            responsibilities,
            state.adjacency,
            iterations=ALL_ROWS_STEPS,
            tolerance=ALL_ROWS_TOLERANCE,
        )
        return relearn(
            problem,
            state.responsibilities,
            adjacency=state.adjacency,
            rounds=ALL_ROWS_ROUNDS,
            tolerance=ALL_ROWS_TOLERANCE,
        )

    def conclude(
        self,
        problem: Problem,
        configuration: SearchConfiguration,
        standing: LinearStanding,  # noqa: ARG002
        state: State,
        regimes: tuple[NDArray[np.float64], NDArray[np.int8]],
    ) -> Conclusion:
        """See :class:`.driver.Strategy`."""
        return conclude(problem, configuration, state.adjacency, *regimes, model=state.model)


def conclude(
    problem: Problem,
    configuration: SearchConfiguration,
    adjacency: NDArray[np.int8],
    responsibilities: NDArray[np.float64],
    targets: NDArray[np.int8],
    density: str = "linear",
    model: FittedModel | None = None,
) -> Conclusion:
    """The maximum-likelihood model of a structure, and its probabilities."""
    learner = problem.learner
    # Shapes chosen by the search are kept: chosen again from there, they may be hundreds of nats worse.
    statistics = learner.statistics(problem, responsibilities, model, settled=model is not None)
    # An empty reference must stay free of targets although it has no rows.
    fitted = learner.fit(problem, statistics, adjacency, targets)
    # Other graphs are fitted from there, as in the search: probabilities must not contradict the graph.
    statistics = learner.statistics(problem, configuration.measured * responsibilities, fitted)
    final = weigh(problem, fitted.with_prior(problem.prior(responsibilities, model)))
    tables = learner.tables(problem, statistics, adjacency, targets)
    posterior = graph_posterior(tables, adjacency, seed=configuration.random_state)
    return Conclusion(
        final,
        density,
        posterior.edges,
        posterior.ancestors,
        learner.target_probabilities(problem, statistics, adjacency, targets),
    )


def _without_regimes(run: Run) -> LinearStanding:
    """The graph alone, where every row has a label or only one regime is allowed."""
    problem = run.problem
    known = (
        np.ones((problem.n_rows, 1))
        if problem.n_labelled == 0
        else np.eye(problem.n_labelled)[problem.labels]
    )
    standing = LinearStanding(relearn(problem, known))
    run.journal.note("graph", standing.state)
    run.journal.keep(standing)
    return standing


def _grow(run: Run, enough: Enough | None) -> LinearStanding:
    """The best of several starts, grown further if one regime with flexible noise does not beat it."""
    problem = run.problem
    best: LinearStanding | None = None
    for step, state in _candidates(problem, run.configuration):
        if best is None or state.evidence > best.state.evidence:
            best = LinearStanding(state)
        run.journal.note(step, state)
        run.journal.keep(best)
        if enough is not None and len(run.journal.entries) == 1 and enough(problem, state):
            return best
    assert best is not None
    if problem.n_labelled == 0:  # labels already say that there are several regimes
        best = replace(best, null=_sceptic(problem, best.state))
        run.journal.keep(best)
    if best.null is None or best.null.evidence < best.state.evidence:
        grown = regime_moves.improve(problem, best.state, tails=True)
        if grown is not best.state:
            null = None if best.null is None else _sceptic(problem, grown, best.null)
            best = LinearStanding(grown, null=null)
    run.journal.note("final", best.state)
    run.journal.keep(best)
    return best


def _at_once(problem: Problem) -> State:
    """The state available at once: every row in the reference or at its label."""
    everyone = np.zeros((problem.n_rows, max(problem.n_labelled, 1)))
    everyone[:, 0] = 1.0
    return relearn(problem, problem.clamp(everyone), rounds=1)


def _last_graph(run: Run, standing: LinearStanding) -> LinearStanding:
    """At most as many regimes as are allowed, and the best graph for that assignment of rows.

    The probabilities of edges come from there, and must not contradict the graph.
    """
    problem, state = run.problem, standing.state
    if problem.n_labelled == 0:
        state = fewer_regimes.fit_into(problem, state, problem.max_regimes)
    again = relearn(problem, state.responsibilities, adjacency=state.adjacency, thorough=True)
    if again.evidence > state.evidence and (
        problem.n_labelled or fewer_regimes.fits(again, problem.max_regimes)
    ):
        state = again
    return replace(standing, state=state)


def _verdict(run: Run, standing: LinearStanding) -> LinearStanding:
    """One regime, unless hidden interventions beat it clearly."""
    found, null = standing.state, standing.null
    if null is None:
        return standing
    rivals = {
        "one regime, flexible noise": null.evidence,
        "one regime, Gaussian noise": null.state.evidence,
    }
    doubtful, comparison = driver.doubt(run.problem, found.evidence, rivals)
    return replace(standing, state=null.state if doubtful else found, comparison=comparison)


def _sceptic(problem: Problem, state: State, null: NullModel | None = None) -> NullModel:
    """The best one-regime model: on its own best graph, or on the graph of ``state``."""
    own = fit_null(problem) if null is None else null
    other = fit_null(problem, state.adjacency)
    return other if other.evidence > own.evidence else own


@dataclass(frozen=True, eq=False)
class _Start:
    """The result of one start: before it was grown by splits, and after."""

    early: State
    grown: State


def _candidates(problem: Problem, configuration: SearchConfiguration) -> Iterator[tuple[str, State]]:
    """States from different starts, each grown as far as splits, merges and graph search take it.

    In parallel the same starts count as in sequence, so that the number of processes does not change the result.
    """
    names = [START_NAMES[i % len(START_NAMES)] for i in range(configuration.n_init)]
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
        if (
            name != "residual"
            and early.evidence < max(reached, default=-np.inf)
            and regime_moves.overlapping(early)
        ):
            state = early  # a clustering of overlapping regimes that is already behind is not grown further
        else:
            state = regime_moves.improve(problem, early) if start is None else start.grown
        yield name, state
        if any(abs(state.evidence - other) < AGREEMENT for other in reached):
            return
        reached.append(state.evidence)
        doubtful = len(reached) == DOUBT_AFTER and not problem.n_labelled and regime_moves.overlapping(state)
        if doubtful and _sceptic(problem, state).evidence > max(reached):
            return  # two different starts do not beat one regime: more would only fit its noise better


def _run_start(problem: Problem, name: str, seed: int) -> _Start:
    early = _begin(problem, name, seed)
    return _Start(early, regime_moves.improve(problem, early))


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
        state = relearn(
            problem, responsibilities, adjacency=adjacency, rounds=ANNEALING_ROUNDS, target_prior=target_prior
        )
        responsibilities, adjacency = state.responsibilities, state.adjacency
    return fewer_regimes.merge_while_better(problem, relearn(problem, responsibilities, adjacency=adjacency))
