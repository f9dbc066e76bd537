"""Which solver fits which request, in one place."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentdo.choices import DENSITY, INTERVENTION, NOISE, SOLVER, Density
from latentdo.data import Dataset
from latentdo.graphs.constraints import Constraints, Edge
from latentdo.model.mechanisms.additive import AdditiveMechanism
from latentdo.model.mechanisms.any_noise import AnyNoise
from latentdo.model.mechanisms.family import Families, RowFamily
from latentdo.model.mechanisms.mixed import MixedFamily
from latentdo.model.mechanisms.registry import family_of
from latentdo.notices import is_part
from latentdo.ranks import Ranks
from latentdo.result import FitResult
from latentdo.solvers import lines
from latentdo.solvers.auto_density import solve as solve_by_density
from latentdo.solvers.background import confounded, rough_graph
from latentdo.solvers.background import solve as solve_background
from latentdo.solvers.hidden_values import by_what_is_seen, fill, pairs_seen, redraw, whole_rows_suffice
from latentdo.solvers.nonlinear.solve import BY_NOISE
from latentdo.solvers.nonlinear.solve import solve as solve_nonlinear
from latentdo.solvers.search.out_of_core import NO_GROUPS, Part, solve_in_parts
from latentdo.solvers.search.resampling import average
from latentdo.solvers.search.row_strategy import go_on, solve_mixed
from latentdo.solvers.search.row_strategy import solve as solve_by_rows
from latentdo.solvers.search.rows import RowLearner
from latentdo.solvers.search.solve import SearchConfiguration, make_problem
from latentdo.solvers.settings import (
    FEWEST_HALVED,
    FEWEST_HALVED_ROWS,
    MISSING_ROUNDS,
    RESAMPLED_CERTAIN,
    RESAMPLED_PAIRS,
    RESAMPLED_ROWS,
    SEARCH_STARTS_A_NETWORK,
)

Progress = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, eq=False)
class Request:
    """What the user asked for, checked; the fields are those of the estimator.

    ``measured`` alone follows from the rows, see :class:`.SearchConfiguration`.
    """

    density: str
    noise: str
    intervention: str
    solver: str
    max_regimes: int
    edge_prior: NDArray[np.float64] | None
    target_prior: float | None
    concentration: float | None
    learning_rate: float | None
    forbidden: Sequence[Edge] | None
    required: Sequence[Edge] | None
    tiers: Sequence[Sequence[str]] | None
    max_parents: int | None
    n_init: int
    random_state: int
    device: str
    n_jobs: int
    checkpoint: Path | None
    checkpoint_seconds: float
    verbose: bool
    lags: int | str = "auto"
    seasonality: str | tuple[str | float, ...] | None = "auto"
    resamples: int = 4
    measured: float = 1.0

    def constraints(self, columns: Sequence[str]) -> Constraints:
        """What is known of the graph beforehand, checked against the names of the variables."""
        return Constraints.build(
            columns,
            forbidden=self.forbidden,
            required=self.required,
            tiers=self.tiers,
            max_parents=self.max_parents,
        )

    @property
    def chosen_solver(self) -> str:
        """The solver that was meant; "auto" stands for one."""
        return SOLVER.resolve(self.solver).name

    @property
    def chosen_density(self) -> Density:
        """What the density means to this solver; of networks, those with the noise that was asked for."""
        density, noise = DENSITY.resolve(self.density, self.chosen_solver), self.chosen_noise
        if density.search == "network" and noise != "auto":
            return DENSITY.resolve(BY_NOISE[noise], self.chosen_solver)
        return density

    @property
    def chosen_noise(self) -> str:
        """The shape of noise, if solver and density leave a choice."""
        noise = NOISE.resolve(self.noise, self.chosen_solver).name
        if noise != "auto" and DENSITY.resolve(self.density).search == "rows":
            raise ValueError(
                f"noise={noise!r} is not available with density={self.density!r}, a family that has its own; use "
                "noise='auto'"
            )
        return noise

    @property
    def chosen_intervention(self) -> str:
        """What the kind of interventions means to this solver."""
        return INTERVENTION.resolve(self.intervention, self.chosen_solver).name


class Solution(NamedTuple):
    """What was found, and the rows as they were fitted: without rounding, with hidden and missing values drawn."""

    result: FitResult
    rows: Dataset


def solve(dataset: Dataset, request: Request, progress: Progress | None = None) -> Solution:
    """Fit with the solver that the request asks for, to rows without rounding, limits, zeros and missing cells."""
    if dataset.is_mixed:
        _check_kinds(dataset, request)
    rows = dataset.spread(request.random_state)
    solve_rows = _solve_incomplete if rows.missing.any() else _solve_filled
    found = solve_rows(rows, request, progress)
    if found.rows is not dataset:
        found = found._replace(result=replace(found.result, data_hash=dataset.content_hash()))
    missing = replace(request, measured=pairs_seen(rows.missing))
    return found._replace(result=_averaged(found, missing))


def _averaged(found: Solution, request: Request) -> FitResult:
    """The same result with probabilities averaged over half-samples, where these are cheap.

    Networks take too long, and a part of a larger question is asked for its structure alone.
    """
    result, rows = found
    density = DENSITY.resolve(result.density, request.chosen_solver)
    expensive = density.search == "network" or rows.n_rows > RESAMPLED_ROWS or Ranks.current().size > 1
    apart = request.chosen_solver != "search" or result.status != "converged" or is_part()
    n_blocks = rows.n_rows if rows.blocks is None else np.unique(rows.blocks).size
    few = n_blocks < FEWEST_HALVED or rows.n_rows < FEWEST_HALVED_ROWS
    if not request.resamples or expensive or apart or few:
        return result
    began = time.perf_counter()
    problem = make_problem(rows, _search_configuration(request, request.constraints(rows.columns)))
    z = result.read(rows.x, rows.where).z[:, : rows.n_variables]
    connected = np.maximum(result.edge_probabilities, result.model.topology.adjacency) > RESAMPLED_PAIRS
    constraints = problem.constraints.without(~(connected | connected.T))
    certain = (result.edge_probabilities > 1.0 - RESAMPLED_CERTAIN) & (result.model.topology.adjacency == 1)
    constraints = constraints.holding(certain)
    problem = replace(problem, design=np.column_stack([np.ones(len(z)), z]), constraints=constraints)
    if density.search != "linear" or rows.is_mixed or not lines.is_plain(result.model):
        problem = replace(problem, learner=RowLearner.of(_family(rows, density), problem.z))
    try:
        means = average(
            problem,
            result.model,
            request.resamples,
            request.random_state,
            rows.blocks,
            request.measured,
            request.n_jobs,
        )
    except KeyboardInterrupt:
        return replace(result, status="interrupted", message="probabilities are those of the plain posterior")
    return replace(
        result,
        model_edge_probabilities=result.edge_probabilities,
        edge_probabilities=means.edges,
        ancestor_probabilities=means.ancestors,
        target_probabilities=result.target_probabilities if means.targets is None else means.targets,
        seconds=result.seconds + time.perf_counter() - began,
    )


def _solve_incomplete(dataset: Dataset, request: Request, progress: Progress | None) -> Solution:
    """Fit the rows of which all is seen; then draw what is missing from what was found, and go on with all rows.

    Where few rows are whole, or a row depends on the one before, missing cells are filled in like what zeros hide.
    """
    all_rows = replace(request, measured=pairs_seen(dataset.missing))
    if whole_rows_suffice(dataset):
        found = _solve_filled(dataset.take(np.flatnonzero(~dataset.missing.any(axis=1))), request, progress)
        several = found.result.n_regimes > 1 and dataset.atoms.has_masses
        found = found._replace(rows=fill(dataset, request.random_state, clusters=several))
    else:
        found = _solve_filled(dataset, all_rows, progress)
    try:
        for turn in range(MISSING_ROUNDS):
            drawn = redraw(dataset, found.rows, found.result, request.random_state + turn)
            # The first fit was of few rows, or of draws that knew no regimes: what it got wrong must not stay.
            found = _again(drawn, all_rows, found, progress, afresh=turn == 0)
    except KeyboardInterrupt:
        message = "missing cells were not drawn as often as they should be"
        found = found._replace(result=replace(found.result, status="interrupted", message=message))
    return found._replace(result=by_what_is_seen(dataset, found.rows, found.result))


def _solve_filled(dataset: Dataset, request: Request, progress: Progress | None) -> Solution:
    """Fill in what is hidden as if there were no interventions; if some are found, fill in again and go on.

    Cells that are only missing are not filled in again here: draws from what was found follow, which are better.
    """
    if not dataset.atoms.has_masses and not dataset.missing.any():
        return Solution(_solve(dataset, request, progress), dataset)
    known = dataset.n_regimes > 1
    filled = fill(dataset, request.random_state, clusters=known)
    found = Solution(_solve(filled, request, progress), filled)
    settled = known or not dataset.atoms.has_masses
    if settled or found.result.n_regimes == 1 or found.result.status == "interrupted":
        return found
    try:
        return _again(fill(dataset, request.random_state, clusters=True), request, found, progress)
    except KeyboardInterrupt:
        message = "hidden values were filled in only once"
        return found._replace(result=replace(found.result, status="interrupted", message=message))


def _again(
    filled: Dataset,
    request: Request,
    before: Solution,
    progress: Progress | None,
    *,
    afresh: bool = False,
) -> Solution:
    """Fit a table that was filled in anew: from what was found before, or ``afresh``."""
    first = before.result
    if first.status == "interrupted":
        raise KeyboardInterrupt
    # Lines with Gaussian noise take seconds; what took longer is not searched from nothing again.
    quick = first.background is not None or (request.noise != "any" and lines.is_plain(first.model))
    found = None if quick or afresh else _go_on(filled, request, first, progress)
    found = _solve(filled, request, progress) if found is None else found
    history, seconds = (*first.history, *found.history), first.seconds + found.seconds
    return Solution(replace(found, history=history, seconds=seconds), filled)


def _go_on(
    dataset: Dataset,
    request: Request,
    first: FitResult,
    progress: Progress | None,
    *,
    rescaled: bool = False,
) -> FitResult | None:
    """Fit a table that has changed a little, from an earlier fit; None if its family cannot be continued."""
    density = DENSITY.resolve(first.density, request.chosen_solver)
    continues = request.chosen_solver == "search" and density.search != "network"
    if not continues or request.chosen_noise == "gaussian":
        return None
    family = _family(dataset, density)
    configuration = _search_configuration(request, request.constraints(dataset.columns))
    return go_on(dataset, configuration, family, first, progress, rescaled=rescaled)


def _solve(dataset: Dataset, request: Request, progress: Progress | None) -> FitResult:
    """Fit what is new in rows: what time, the past and batches explain is no intervention."""

    def fit(rows: Dataset) -> FitResult:
        return _solve_rows(rows, request, progress)

    def graph(rows: Dataset) -> NDArray[np.int8]:
        configuration = _search_configuration(request, request.constraints(rows.columns))
        return rough_graph(rows, configuration)

    def again(rows: Dataset, first: FitResult) -> FitResult:
        # Lines with Gaussian noise take seconds; what took longer is not searched from nothing again.
        quick = request.noise != "any" and lines.is_plain(first.model)
        found = None if quick else _go_on(rows, request, first, progress, rescaled=True)
        return fit(rows) if found is None else replace(found, comparison=())

    # What the past explains is taken from densities; probabilities have no such thing, and keep only their regimes.
    if dataset.is_mixed:
        result = fit(dataset)
    else:
        result = solve_background(dataset, request.lags, request.seasonality, fit, again, graph)
    return replace(
        result,
        where=dataset.where,
        warnings=(*result.warnings, *confounded(result, dataset.where)),
    )


def _continuous_family(density: Density) -> type[RowFamily]:
    """The family that fits continuous columns by rows."""
    if density.search == "linear":
        return AnyNoise
    return AdditiveMechanism if density.search == "auto" else family_of(density)


def _family(dataset: Dataset, density: Density) -> Families:
    """The families that fit the columns by rows."""
    continuous = _continuous_family(density)
    if not dataset.is_mixed:
        return continuous
    return MixedFamily(dataset.kinds, continuous, exposed=dataset.offset is not None)


def _check_kinds(dataset: Dataset, request: Request) -> None:
    """Refuse columns of other kinds than continuous where only densities are known."""
    name, kind = next(
        (name, kind.kind)
        for name, kind in zip(dataset.columns, dataset.kinds, strict=True)
        if kind.is_discrete
    )
    remedy = f"call it continuous with kinds={{{name!r}: 'continuous'}}"
    if dataset.offset is not None and request.chosen_solver != "search":
        raise ValueError(
            f"offset= is not available with solver={request.chosen_solver!r}; use solver='search'"
        )
    if request.chosen_solver == "search" and request.chosen_density.search == "network":
        raise ValueError(
            f"density={request.density!r} knows continuous columns only, and {name!r} is {kind}; use density='auto', "
            f"'additive' or 'linear', or {remedy}"
        )
    if request.chosen_noise == "gaussian":
        raise ValueError(
            f"noise='gaussian' is for tables of continuous columns, and {name!r} is {kind}; use noise='auto', which "
            f"finds Gaussian noise where it is, or {remedy}"
        )
    if dataset.where.batch is not None:
        raise ValueError(
            f"batch= takes level and scale from continuous columns, and {name!r} is {kind}, which has none; leave out "
            f"the column or batch=, or {remedy}"
        )
    if dataset.time is not None and request.lags not in ("auto", 0):
        raise ValueError(
            f"lags={request.lags} is for tables of continuous columns, and {name!r} is {kind}; use lags=0, or {remedy}"
        )


def _solve_rows(dataset: Dataset, request: Request, progress: Progress | None) -> FitResult:
    if request.chosen_solver != "search":
        return _solve_by_gradient(dataset, request, progress)
    configuration = _search_configuration(request, request.constraints(dataset.columns))
    density = request.chosen_density
    if dataset.is_mixed:
        family = _continuous_family(density)
        name = AdditiveMechanism.family if density.search == "auto" else density.name
        return solve_mixed(dataset, configuration, family, name, progress)
    if density.search == "auto":
        return solve_by_density(dataset, configuration, progress, request.chosen_noise)
    if density.search == "linear":
        return lines.solve(dataset, configuration, request.chosen_noise, progress)
    if density.search == "network":
        if dataset.weight is not None:
            raise ValueError(
                f"sample_weight= is not available with density={request.density!r}: networks take every row once; use "
                "density='additive' or density='linear', or repeat rows as often as they count"
            )
        return solve_nonlinear(dataset, configuration, density.name, progress)
    return solve_by_rows(dataset, configuration, family_of(density), density.name, progress)


def solve_stream(
    sample: Dataset,
    parts: Sequence[Part],
    request: Request,
    progress: Progress | None = None,
    group_regimes: NDArray[np.int64] = NO_GROUPS,
) -> FitResult:
    """Fit rows that do not fit into memory; lines with Gaussian noise only, because their moments add up."""
    blocking = [f"solver={request.solver!r}"] if request.chosen_solver != "search" else []
    moments = DENSITY.resolve(request.density).search in ("auto", "linear")  # "auto" then means linear
    blocking += [] if moments else [f"density={request.density!r}"]
    blocking += [f"noise={request.noise!r}"] if request.noise == "any" else []  # "auto" then means Gaussian
    if blocking:
        need = "needs" if len(blocking) == 1 else "need"
        raise ValueError(
            f"{' and '.join(blocking)} {need} all rows in memory; stream with density='linear', "
            "noise='gaussian' and solver='search', or fit a sample of the rows"
        )
    configuration = _search_configuration(request, request.constraints(sample.columns))
    return solve_in_parts(sample, parts, configuration, progress, group_regimes)


def _search_configuration(request: Request, constraints: Constraints) -> SearchConfiguration:
    for name in ("concentration", "learning_rate", "checkpoint"):
        if getattr(request, name) is not None:
            raise ValueError(f"{name} is not available with solver='search'; use solver='gradient'")
    return SearchConfiguration(
        intervention=request.chosen_intervention,
        max_regimes=request.max_regimes,
        edge_prior=request.edge_prior,
        target_prior=request.target_prior,
        constraints=constraints,
        n_init=request.n_init,
        random_state=request.random_state,
        n_jobs=request.n_jobs,
        ranks=Ranks.current(),
        measured=request.measured,
    )


def _solve_by_gradient(dataset: Dataset, request: Request, progress: Progress | None) -> FitResult:
    from latentdo.solvers.gradient import GradientConfiguration
    from latentdo.solvers.gradient import solve as solve_by_gradient

    if dataset.groups is not None or dataset.time is not None:
        given = "groups=" if dataset.groups is not None else "time="
        raise ValueError(
            f"{given} is not available with solver={request.chosen_solver!r}, which assigns every row on its own; use "
            "solver='search'"
        )
    if dataset.weight is not None:
        raise ValueError(
            f"sample_weight= is not available with solver={request.chosen_solver!r}, which takes every row once; use "
            "solver='search', or repeat rows as often as they count"
        )
    if request.max_parents is not None:
        raise ValueError(
            f"max_parents is not available with solver={request.chosen_solver!r}; use solver='search'"
        )
    options: dict[str, Any] = {
        "density": request.chosen_density.name,
        "intervention": request.chosen_intervention,
        "max_regimes": request.max_regimes,
        "constraints": request.constraints(dataset.columns),
        "random_state": request.random_state,
        "device": request.device,
        "n_jobs": request.n_jobs,
        "checkpoint": request.checkpoint,
        "checkpoint_seconds": request.checkpoint_seconds,
        "verbose": request.verbose,
    }
    if request.edge_prior is not None:
        options["edge_log_odds"] = (
            request.edge_prior if request.edge_prior.ndim else float(request.edge_prior)
        )
    if request.target_prior is not None:
        options["target_log_odds"] = request.target_prior
    if request.concentration is not None:
        options["concentration"] = float(request.concentration)
    if request.learning_rate is not None:
        options["learning_rate"] = float(request.learning_rate)
    if dataset.is_mixed:  # probabilities have no closed form
        options["mechanisms"] = "networks"
    if request.chosen_solver == "paper":
        labelled = dataset.regimes is not None and bool((dataset.regimes >= 0).all())
        paper = GradientConfiguration.paper(labelled=labelled or request.max_regimes == 1, **options)
        return solve_by_gradient(dataset, paper, progress)
    networks = request.chosen_density.name != "linear" or dataset.is_mixed
    options["n_init"] = max(request.n_init // SEARCH_STARTS_A_NETWORK, 1) if networks else request.n_init
    return solve_by_gradient(dataset, GradientConfiguration(**options), progress)
