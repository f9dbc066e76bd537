"""Networks: the strategy that the driver follows to find them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from latentdo.data import Dataset
from latentdo.model.fitted import FittedModel
from latentdo.result import FitResult
from latentdo.solvers.nonlinear import stages
from latentdo.solvers.nonlinear.learner import fit_from, with_networks
from latentdo.solvers.nonlinear.order import NetworkRun, NetworkStanding
from latentdo.solvers.nonlinear.units import without_spare_units
from latentdo.solvers.search import driver
from latentdo.solvers.search.driver import Conclusion, Run, SearchConfiguration
from latentdo.solvers.search.em import assign_rows
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.reporting import Progress
from latentdo.solvers.search.solve import conclude
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import (
    ALL_ROWS_STEPS,
    MIXED_NOISE,
    NETWORK_SEARCH_ROWS,
    SEARCH_NOISE,
    UNDECIDED,
    UNTURNED,
)

_GAUSSIAN: Final = {SEARCH_NOISE: "nonlinear"}
_MIXED: Final = {MIXED_NOISE: "nonlinear-mixed"}
NOISES: Final = {"nonlinear": _GAUSSIAN, "nonlinear-mixed": _MIXED, "auto": _GAUSSIAN | _MIXED}
"""Gaussians in the noise of the final mechanisms, and what they are then called; the evidence decides."""

BY_NOISE: Final = {"auto": "auto", "gaussian": "nonlinear", "any": "nonlinear-mixed"}
"""Which of these the noise that was asked for is."""


def solve(
    dataset: Dataset,
    configuration: SearchConfiguration,
    density: str,
    progress: Progress | None = None,
    curves: FittedModel | None = None,
) -> FitResult:
    """Fit networks by structural search, see :func:`.driver.search`.

    With density "nonlinear" their noise is Gaussian, with "nonlinear-mixed" it is a mixture of Gaussians; with "auto"
    the evidence decides. ``curves`` is what another family found in the same rows, if that is known: one more start.
    """
    return driver.search(dataset, configuration, NetworkStrategy(density, curves), progress)


@dataclass(frozen=True, eq=False)
class NetworkStrategy:
    """An order of the variables first, then regimes, parents and edges the other way round (:mod:`.stages`)."""

    density: str
    curves: FittedModel | None = None

    def search_rows(self, problem: Problem, configuration: SearchConfiguration) -> int:  # noqa: ARG002
        """See :class:`.driver.Strategy`."""
        return NETWORK_SEARCH_ROWS

    def _run(self, run: Run) -> NetworkRun:
        flexible = self.density != "nonlinear"
        return NetworkRun(run.problem, run.configuration, run.journal, run.rng, flexible, self.curves)

    def search(self, run: Run) -> NetworkStanding:
        """See :class:`.driver.Strategy`."""
        return stages.search(self._run(run))

    def salvage(self, run: Run) -> NetworkStanding:
        """See :class:`.driver.Strategy`."""
        standing: NetworkStanding | None = run.journal.latest
        if standing is None:
            raise KeyboardInterrupt
        if standing.parents:
            return standing
        # all predecessors are still parents, which constraints may not allow
        return stages.drop_inputs(self._run(run), standing)

    def on_all_rows(
        self,
        problem: Problem,
        configuration: SearchConfiguration,  # noqa: ARG002
        standing: NetworkStanding,
    ) -> State:
        """See :class:`.driver.Strategy`."""
        state = standing.state
        networks = with_networks(problem, standing.n_gaussians)
        responsibilities, _ = assign_rows(problem, state.model)
        return fit_from(
            networks, responsibilities, state.adjacency, state.targets, state.mechanisms, ALL_ROWS_STEPS
        )

    def conclude(
        self,
        problem: Problem,
        configuration: SearchConfiguration,
        standing: NetworkStanding,
        state: State,
        regimes: tuple[NDArray[np.float64], NDArray[np.int8]],
    ) -> Conclusion:
        """See :class:`.driver.Strategy`."""
        odds = edge_odds(standing, state.adjacency)
        found = []
        for count, density in NOISES[self.density].items():
            networks = with_networks(problem, count, flexible=self.density != "nonlinear", odds=odds)
            model = without_spare_units(problem, state, count)
            found.append(
                conclude(networks, configuration, state.adjacency, *regimes, density=density, model=model)
            )
        return max(found, key=lambda one: one.state.evidence)


def edge_odds(standing: NetworkStanding, adjacency: NDArray[np.int8]) -> NDArray[np.float64]:
    """Log-odds of every edge that was thought of, minus infinity for others, ``[d, d]``.

    Given an order they are those of elimination, or, if that was not reached, the chosen graph is all there is. Edges
    that were tried the other way round are thought of in both directions: a turned one lacks what was lost by it.
    """
    probabilities = adjacency.astype(np.float64)
    for j, parent_set in enumerate(standing.parents):
        for i, probability in parent_set.probabilities.items():
            probabilities[i, j] = max(probability, UNDECIDED)
    odds = np.asarray(logit(np.minimum(probabilities, 1.0 - UNDECIDED)))
    for (i, j), loss in standing.turned.items():
        # An edge that the search left as it is, for all its doubts, is not the less probable direction.
        if adjacency[i, j] and loss < UNTURNED:
            odds[j, i] = max(odds[j, i], odds[i, j] - max(loss, 0.0))
    return odds
