"""Straight lines: with Gaussian noise, or with noise of any shape where the rows ask for it.

Lines with Gaussian noise take seconds and are right where the noise is Gaussian. Where it is not, they need regimes to
draw its shape. So their mechanisms are fitted once more with noise of any shape; if evidence wants another shape in any
of them, the search is run with that.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from latentdo.data import Dataset
from latentdo.model.fitted import FittedModel
from latentdo.model.mechanisms.any_noise import AnyNoise, Shaped
from latentdo.model.mechanisms.base import AdditiveNoise
from latentdo.model.mechanisms.linear import LinearMechanism
from latentdo.result import FitResult
from latentdo.solvers.search.driver import SearchConfiguration, make_problem
from latentdo.solvers.search.em import refine, relearn, weigh
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.reporting import Progress
from latentdo.solvers.search.row_strategy import solve as solve_by_rows
from latentdo.solvers.search.rows import RowLearner
from latentdo.solvers.search.solve import Enough
from latentdo.solvers.search.solve import solve as solve_by_moments
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import FAMILY_SEARCH_ROWS


def solve(
    dataset: Dataset,
    configuration: SearchConfiguration,
    noise: str = "auto",
    progress: Progress | None = None,
) -> FitResult:
    """Fit lines; ``noise`` is "gaussian", "any", or "auto": any where some mechanism needs it."""
    if noise == "any":
        return solve_by_rows(dataset, configuration, AnyNoise, "linear", progress)
    if noise == "gaussian":
        return solve_by_moments(dataset, configuration, progress)
    gaussian = solve_by_moments(dataset, configuration, progress, wants(AnyNoise))
    if gaussian.status == "interrupted" or not fit_wants(AnyNoise, dataset, configuration, gaussian):
        return gaussian
    try:
        shaped = solve_by_rows(dataset, configuration, AnyNoise, "linear", progress, gaussian.model)
    except KeyboardInterrupt:
        return replace(gaussian, status="interrupted", message="noise of other shapes was not fitted")
    best = shaped if shaped.evidence > gaussian.evidence else gaussian
    return replace(
        best,
        status=shaped.status,
        history=(*gaussian.history, *shaped.history),
        seconds=gaussian.seconds + shaped.seconds,
    )


def fit_wants(
    family: type[Shaped], dataset: Dataset, configuration: SearchConfiguration, found: FitResult
) -> bool:
    """Whether any mechanism of a fit of lines with Gaussian noise would be better off as another of this family."""
    problem = make_problem(dataset, configuration)
    return wants(family)(problem, weigh(problem, found.model))


def wants(family: type[Shaped]) -> Enough:
    """The same of a state of the search."""

    def enough(problem: Problem, state: State) -> bool:
        rows = np.arange(problem.n_rows)[:: -(-problem.n_rows // FAMILY_SEARCH_ROWS)]
        some = problem.take(rows)
        some = replace(some, learner=RowLearner.of(family, some.z))
        shaped = refine(
            some, state.responsibilities[rows], state.adjacency, iterations=1, targets=state.targets
        )
        return not is_plain(shaped.model)

    return enough


def evidence_at(dataset: Dataset, configuration: SearchConfiguration, found: FitResult) -> float:
    """The evidence of lines with Gaussian noise that begin with the regimes and the graph of another fit."""
    problem = make_problem(dataset, configuration)
    state = weigh(problem, found.model)
    return relearn(problem, state.responsibilities, adjacency=state.adjacency).evidence


def is_plain(model: FittedModel) -> bool:
    """Whether all mechanisms with noise of their own are lines with Gaussian noise."""
    return not any(
        isinstance(one, AdditiveNoise) and not (isinstance(one, LinearMechanism) and one.is_plain)
        for one in (*model.reference, *model.own.values())
    )
