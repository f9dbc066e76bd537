"""Which solver fits which request, in one place."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentdo.choices import DENSITY, INTERVENTION, NOISE, SOLVER, Density
from latentdo.data import Dataset
from latentdo.graphs.constraints import Constraints, Edge
from latentdo.model.mechanisms.any_noise import AnyNoise
from latentdo.model.mechanisms.registry import family_of
from latentdo.notices import is_part
from latentdo.ranks import Ranks
from latentdo.result import FitResult
from latentdo.solvers import lines
from latentdo.solvers.auto_density import solve as solve_by_density
from latentdo.solvers.background import confounded, rough_graph
from latentdo.solvers.background import solve as solve_background
from latentdo.solvers.hidden_values import fill
from latentdo.solvers.nonlinear.solve import BY_NOISE
from latentdo.solvers.nonlinear.solve import solve as solve_nonlinear
from latentdo.solvers.search.out_of_core import NO_GROUPS, Part, solve_in_parts
from latentdo.solvers.search.resampling import average
from latentdo.solvers.search.row_strategy import go_on
from latentdo.solvers.search.row_strategy import solve as solve_by_rows
from latentdo.solvers.search.rows import RowLearner
from latentdo.solvers.search.solve import SearchConfiguration, make_problem
from latentdo.solvers.settings import FEWEST_HALVED, RESAMPLED_ROWS, SEARCH_STARTS_A_NETWORK

Progress = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, eq=False)
class Request:
    """What the user asked for, checked; the fields are those of the estimator."""

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


def solve(dataset: Dataset, request: Request, progress: Progress | None = None) -> FitResult:
    """Fit with the solver that the request asks for, to rows without rounding, limits and zeros."""
    rows = dataset.spread(request.random_state)
    solve_rows = _solve_filled if rows.atoms.has_masses else _solve
    result = solve_rows(rows, request, progress)
    return result if rows is dataset else replace(result, data_hash=dataset.content_hash())


def rows_of_fit(dataset: Dataset, random_state: int, *, several: bool) -> Dataset:
    """The rows as a fit that found one or ``several`` regimes saw them: without rounding, limits and zeros."""
    rows = dataset.spread(random_state)
    if not rows.atoms.has_masses:
        return rows
    return fill(rows, random_state, clusters=several or dataset.n_regimes > 1)


def _solve_filled(dataset: Dataset, request: Request, progress: Progress | None) -> FitResult:
    """Fill in what is hidden as if there were no interventions; if some are found, fill in again and go on."""
    data_hash, known = dataset.content_hash(), dataset.n_regimes > 1
    filled = fill(dataset, request.random_state, clusters=known)
    first = replace(_solve(filled, request, progress), data_hash=data_hash)
    if known or first.n_regimes == 1 or first.status == "interrupted":
        return first
    try:
        filled = fill(dataset, request.random_state, clusters=True)
        again = None if first.background is not None else _go_on(filled, request, first, progress)
        again = _solve(filled, request, progress) if again is None else again
    except KeyboardInterrupt:
        return replace(first, status="interrupted", message="hidden values were filled in only once")
    return replace(
        again,
        data_hash=data_hash,
        history=(*first.history, *again.history),
        seconds=first.seconds + again.seconds,
    )


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
    family = AnyNoise if density.search == "linear" else family_of(density)
    configuration = _search_configuration(request, request.constraints(dataset.columns))
    return _averaged(
        dataset, request, go_on(dataset, configuration, family, first, progress, rescaled=rescaled)
    )


def _averaged(dataset: Dataset, request: Request, found: FitResult) -> FitResult:
    """The same result with probabilities averaged over half-samples, where these are cheap.

    Networks take too long; neighbours in time cannot be drawn as halves; and a part of a larger question is asked for
    its structure alone.
    """
    density = DENSITY.resolve(found.density, request.chosen_solver)
    expensive = density.search == "network" or dataset.n_rows > RESAMPLED_ROWS or Ranks.current().size > 1
    apart = found.status != "converged" or dataset.time is not None or is_part()
    if not request.resamples or expensive or apart or dataset.n_groups < FEWEST_HALVED:
        return found
    began = time.perf_counter()
    problem = make_problem(dataset, _search_configuration(request, request.constraints(dataset.columns)))
    if density.search != "linear" or not lines.is_plain(found.model):
        family = AnyNoise if density.search == "linear" else family_of(density)
        problem = replace(problem, learner=RowLearner.of(family, problem.z))
    try:
        means = average(problem, found.model, request.resamples, request.random_state)
    except KeyboardInterrupt:
        return replace(found, status="interrupted", message="probabilities are those of the plain posterior")
    return replace(
        found,
        model_edge_probabilities=found.edge_probabilities,
        edge_probabilities=means.edges,
        ancestor_probabilities=means.ancestors,
        target_probabilities=found.target_probabilities if means.targets is None else means.targets,
        seconds=found.seconds + time.perf_counter() - began,
    )


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

    result = solve_background(dataset, request.lags, request.seasonality, fit, again, graph)
    return replace(
        result,
        where=dataset.where,
        warnings=(*result.warnings, *confounded(result, dataset.where)),
    )


def _solve_rows(dataset: Dataset, request: Request, progress: Progress | None) -> FitResult:
    if request.chosen_solver != "search":
        return _solve_by_gradient(dataset, request, progress)
    configuration = _search_configuration(request, request.constraints(dataset.columns))
    density = request.chosen_density
    if density.search == "auto":
        found = solve_by_density(dataset, configuration, progress, request.chosen_noise)
        return _averaged(dataset, request, found)
    if density.search == "linear":
        return _averaged(
            dataset, request, lines.solve(dataset, configuration, request.chosen_noise, progress)
        )
    if density.search == "network":
        if dataset.weight is not None:
            raise ValueError(
                f"sample_weight= is not available with density={request.density!r}: networks take every row once; use "
                "density='additive' or density='linear', or repeat rows as often as they count"
            )
        return solve_nonlinear(dataset, configuration, density.name, progress)
    found = solve_by_rows(dataset, configuration, family_of(density), density.name, progress)
    return _averaged(dataset, request, found)


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
    if request.chosen_solver == "paper":
        return solve_by_gradient(dataset, GradientConfiguration.paper(**options), progress)
    networks = request.chosen_density.name != "linear"
    options["n_init"] = max(request.n_init // SEARCH_STARTS_A_NETWORK, 1) if networks else request.n_init
    return solve_by_gradient(dataset, GradientConfiguration(**options), progress)
