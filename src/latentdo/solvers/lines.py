"""Straight lines: with Gaussian noise, or with noise of any shape where the rows ask for it.

Lines with Gaussian noise take seconds and are right where the noise is Gaussian. Where it is not, they need regimes to
draw its shape. So their mechanisms are fitted once more with noise of any shape; if evidence wants another shape in any
of them, the search is run with that.
"""

from __future__ import annotations

from dataclasses import replace

from latentdo.data import Dataset
from latentdo.model.mechanisms.any_noise import AnyNoise
from latentdo.model.mechanisms.base import AdditiveNoise
from latentdo.result import FitResult
from latentdo.solvers.search.driver import SearchConfiguration, make_problem
from latentdo.solvers.search.em import refine
from latentdo.solvers.search.reporting import Progress
from latentdo.solvers.search.row_strategy import solve as solve_by_rows
from latentdo.solvers.search.rows import RowLearner
from latentdo.solvers.search.solve import solve as solve_by_moments
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
    gaussian = solve_by_moments(dataset, configuration, progress)
    if (
        noise == "gaussian"
        or gaussian.status == "interrupted"
        or not needs_shape(dataset, configuration, gaussian)
    ):
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


def needs_shape(dataset: Dataset, configuration: SearchConfiguration, found: FitResult) -> bool:
    """Whether any mechanism of a fit is better off with noise that is not Gaussian."""
    problem = replace(make_problem(dataset, configuration), learner=RowLearner(AnyNoise))
    rows = slice(None, None, -(-problem.n_rows // FAMILY_SEARCH_ROWS))
    some = replace(problem, design=problem.design[rows], labels=problem.labels[rows])
    topology = found.model.topology
    responsibilities = found.model.assign(some.z, some.labels).responsibilities
    state = refine(some, responsibilities, topology.adjacency, iterations=1, targets=topology.targets)
    mechanisms = (*state.model.reference, *state.model.own.values())
    return any(isinstance(one, AdditiveNoise) and one.noise.weights.size > 1 for one in mechanisms)
