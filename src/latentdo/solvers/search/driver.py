"""One driver for every search: rows to search on, stages one after another, all rows, and the result.

The family of mechanisms determines the stages (:class:`Strategy`): linear ones start from clusterings and let regimes
grow, networks need an order of the variables first. Each stage receives a standing and returns a better one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from latentdo.data import Dataset
from latentdo.graphs.constraints import Constraints
from latentdo.model.assignment import Groups, Units
from latentdo.model.penalties import Penalties
from latentdo.model.series import Series
from latentdo.ranks import Ranks
from latentdo.result import FitResult, Status
from latentdo.solvers.search.em import weigh
from latentdo.solvers.search.problem import Problem, known_targets
from latentdo.solvers.search.reporting import Journal, Progress, canonical, regime_names
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import MAX_VARIABLES, SCEPTICISM, STRETCH


@dataclass(frozen=True)
class SearchConfiguration:
    """What the user may set about a search; the defaults are those of the estimator.

    Parameters
    ----------
    intervention : {"auto", "perfect", "imperfect"}
        Whether intervened mechanisms may use their parents; "auto" lets the score decide for every target.
    max_regimes : int
        Largest number of regimes, the reference included.
    edge_prior, target_prior
        Prior log-odds, see :mod:`latentdo.model.penalties`; None means the default.
    constraints
        Prior knowledge of the graph; None means that there is none.
    n_init : int
        Largest number of starts; fewer if two of them agree.
    search_rows : int, optional
        Structure is searched on at most this many rows (drawn at random) and refined on all; None leaves it to the
        family of mechanisms.
    random_state : int
        Seed of everything random.
    n_jobs : int
        Number of processes on which starts run in parallel.
    ranks : Ranks
        Processes that run this same search. They share the work that needs all rows.
    measured : float
        Weight of every row where probabilities of edges and targets are computed: less than 1 where some cells were
        drawn, so that draws do not count as measurements.
    """

    intervention: str = "auto"
    max_regimes: int = 16
    edge_prior: float | NDArray[np.float64] | None = None
    target_prior: float | None = None
    constraints: Constraints | None = None
    n_init: int = 4
    search_rows: int | None = None
    random_state: int = 0
    n_jobs: int = 1
    ranks: Ranks = Ranks()  # noqa: RUF009  (frozen)
    measured: float = 1.0


@dataclass(frozen=True, eq=False)
class Run:
    """What all stages of one search share.

    Parameters
    ----------
    problem : Problem
        The rows to search on, and what is known.
    configuration : SearchConfiguration
        How to search.
    journal : Journal
        Where steps are noted, with the standing that an interrupted search returns.
    rng : Generator
        Source of everything random.
    rows : ndarray of int64
        Which rows of the table those of the problem are, for strategies that continue an earlier fit to the table.
    """

    problem: Problem
    configuration: SearchConfiguration
    journal: Journal
    rng: np.random.Generator
    rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64), kw_only=True)


@dataclass(frozen=True, eq=False)
class Standing:
    """Where a search stands: the best state so far, and the models it was compared with."""

    state: State
    comparison: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, eq=False)
class Conclusion:
    """A final state with its regimes in the order that users see, and its probabilities.

    Parameters
    ----------
    state : State
        The reported values follow from its model, which is the one that is saved.
    density : str
        Name of the family of mechanisms that was chosen.
    edges, ancestors : ndarray [d, d]
        Probabilities of edges and of causal paths.
    targets : ndarray [K, d]
        Probabilities of targets.
    """

    state: State
    density: str
    edges: NDArray[np.float64]
    ancestors: NDArray[np.float64]
    targets: NDArray[np.float64]


StandingT = TypeVar("StandingT", bound=Standing)


class Strategy(Protocol[StandingT]):
    """How mechanisms of one family are searched."""

    def search_rows(self, problem: Problem, configuration: SearchConfiguration) -> int:
        """Most rows to search structure on."""
        ...

    def search(self, run: Run) -> StandingT:
        """From nothing to the best standing; it notes its steps in the journal."""
        ...

    def salvage(self, run: Run) -> StandingT:
        """The result of an interrupted search; raises KeyboardInterrupt again if there is none."""
        ...

    def on_all_rows(self, problem: Problem, configuration: SearchConfiguration, standing: StandingT) -> State:
        """Carry a state found on some of the rows to all of them."""
        ...

    def conclude(
        self,
        problem: Problem,
        configuration: SearchConfiguration,
        standing: StandingT,
        state: State,
        regimes: tuple[NDArray[np.float64], NDArray[np.int8]],
    ) -> Conclusion:
        """The last fit of a state, given its responsibilities and targets in the order that users see."""
        ...


def doubt(
    problem: Problem, found: float, rivals: Mapping[str, float]
) -> tuple[bool, tuple[Mapping[str, Any], ...]]:
    """Whether hidden interventions are in doubt, and what to report of it.

    The evidence ``found`` with them has to beat the first of its rivals, a model with one regime, clearly.
    """
    first, evidence = next(iter(rivals.items()))
    doubtful = bool(evidence + SCEPTICISM * np.log(problem.n_counted) >= found)
    models = [("hidden interventions", found, not doubtful)]
    models += [(name, value, doubtful and name == first) for name, value in rivals.items()]
    return doubtful, tuple(dict(zip(("model", "evidence", "chosen"), one, strict=True)) for one in models)


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
    # Labels without rows and without targets carry no information: the same as no labels at all.
    n_labelled = 0 if dataset.targets is None and (labels < 0).all() else dataset.n_regimes
    return Problem(
        design=np.column_stack([np.ones(dataset.n_rows), dataset.z]),
        labels=labels,
        known=known_targets(dataset.targets, n_labelled, d, observational=observational),
        constraints=configuration.constraints or Constraints.build(dataset.columns),
        penalties=Penalties.build(d, configuration.edge_prior, configuration.target_prior),
        imperfect=configuration.intervention != "perfect",
        max_regimes=max(configuration.max_regimes, dataset.n_regimes),
        units=units_of(dataset),
        offset=np.empty(0) if dataset.offset is None else dataset.offset,
    )


def units_of(dataset: Dataset) -> Units:
    """How the rows belong together, and how often they count."""
    if dataset.time is not None:
        return Series.by_time(dataset.time, dataset.where.series, STRETCH, dataset.weight)
    return Groups.of(dataset.groups, dataset.weight)


def search(
    dataset: Dataset,
    configuration: SearchConfiguration,
    strategy: Strategy[StandingT],
    progress: Progress | None = None,
) -> FitResult:
    """Search graph, regimes, targets and mechanisms.

    Known regimes and targets are held fixed, unknown ones are found; see :class:`Problem`. An interrupt (Ctrl-C)
    during the search returns the best state so far with status "interrupted".
    """
    # Several threads on matrices this small mostly wait for each other.
    with threadpool_limits(limits=1):
        return _search(dataset, configuration, strategy, progress)


def _search(
    dataset: Dataset,
    configuration: SearchConfiguration,
    strategy: Strategy[StandingT],
    progress: Progress | None,
) -> FitResult:
    problem = make_problem(dataset, configuration)
    rng = np.random.default_rng(configuration.random_state)
    limit = configuration.search_rows or strategy.search_rows(problem, configuration)
    some, rows = problem, np.arange(problem.n_rows)
    if problem.n_rows > limit:
        rows = problem.units.draw(problem.n_rows, limit, rng)
        some = problem.take(rows)
    run = Run(some, configuration, Journal(progress), rng, rows=rows)
    status: Status = "converged"
    try:
        standing = strategy.search(run)
    except KeyboardInterrupt:
        standing, status = strategy.salvage(run), "interrupted"
    state = standing.state
    if some is not problem:
        problem = problem.shared(configuration.ranks)
        try:
            state = strategy.on_all_rows(problem, configuration, standing)
            run.journal.note("all rows", state)
        except KeyboardInterrupt:
            state, status = weigh(problem, state.model), "interrupted"
    regimes = canonical(problem, state.responsibilities, state.targets)
    try:
        found = strategy.conclude(problem, configuration, standing, state, regimes)
    except KeyboardInterrupt:  # without it nothing of what was found could be reported
        found, status = strategy.conclude(problem, configuration, standing, state, regimes), "interrupted"
    return make_result(dataset, problem, configuration, found, run.journal, status, standing.comparison)


def make_result(
    dataset: Dataset,
    problem: Problem,
    configuration: SearchConfiguration,
    found: Conclusion,
    journal: Journal,
    status: Status,
    comparison: Sequence[Mapping[str, Any]],
) -> FitResult:
    """The result for users, whichever strategy found it."""
    return FitResult(
        model=found.state.model,
        columns=dataset.columns,
        preprocessor=dataset.preprocessor,
        regime_names=regime_names(dataset, found.state.n_regimes),
        responsibilities=problem.ranks.join(found.state.responsibilities),
        edge_probabilities=found.edges,
        ancestor_probabilities=found.ancestors,
        target_probabilities=found.targets,
        evidence=found.state.evidence,
        evidence_terms=found.state.terms,
        solver="search",
        density=found.density,
        intervention=configuration.intervention,
        status=status,
        message="" if status == "converged" else "this is the best state so far",
        history=tuple(journal.entries),
        comparison=tuple(comparison),
        data_hash=dataset.content_hash(),
        groups=dataset.groups,
        group_names=dataset.group_labels,
        seconds=time.perf_counter() - journal.began,
    )
