"""Networks: the strategy that the driver follows to find them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from latentdo.data import Dataset
from latentdo.graphs import reachability
from latentdo.result import FitResult
from latentdo.solvers.nonlinear import stages
from latentdo.solvers.nonlinear.learner import with_networks
from latentdo.solvers.nonlinear.stages import NetworkRun, NetworkStanding
from latentdo.solvers.search import driver
from latentdo.solvers.search.driver import Conclusion, Run, SearchConfiguration
from latentdo.solvers.search.em import refine, weigh
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.reporting import Progress
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import (
    ALL_ROWS_STEPS,
    ANCESTOR_DRAWS,
    MIXED_NOISE,
    NETWORK_SEARCH_ROWS,
    SEARCH_NOISE,
)

NOISES: Final = {
    "nonlinear": (SEARCH_NOISE,),
    "nonlinear-mixed": (MIXED_NOISE,),
    "auto": (SEARCH_NOISE, MIXED_NOISE),
}
"""Gaussians in the noise of the final mechanisms; where there is a choice the evidence decides."""

BY_NOISE: Final = {"auto": "auto", "gaussian": "nonlinear", "any": "nonlinear-mixed"}
"""Which of these the noise that was asked for is."""


def solve(
    dataset: Dataset, configuration: SearchConfiguration, density: str, progress: Progress | None = None
) -> FitResult:
    """Fit networks by structural search, see :func:`.driver.search`.

    With density "nonlinear" their noise is Gaussian, with "nonlinear-mixed" it is a mixture of Gaussians; with "auto"
    the evidence decides.
    """
    return driver.search(dataset, configuration, NetworkStrategy(density), progress)


@dataclass(frozen=True)
class NetworkStrategy:
    """An order of the variables first, then regimes, parents and edges the other way round (:mod:`.stages`)."""

    density: str

    def search_rows(self, problem: Problem, configuration: SearchConfiguration) -> int:  # noqa: ARG002
        """See :class:`.driver.Strategy`."""
        return NETWORK_SEARCH_ROWS

    def _run(self, run: Run) -> NetworkRun:
        flexible = self.density != "nonlinear"
        return NetworkRun(run.problem, run.configuration, run.journal, run.rng, flexible=flexible)

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
        everywhere = weigh(problem, state.model)
        return refine(
            with_networks(problem, standing.n_gaussians),
            everywhere.responsibilities,
            state.adjacency,
            targets=state.targets,
            model=state.model,
            iterations=ALL_ROWS_STEPS,
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
        responsibilities, targets = regimes
        finals = []
        for count in NOISES[self.density]:
            networks = with_networks(problem, count, flexible=self.density != "nonlinear")
            statistics = networks.learner.statistics(networks, responsibilities, state.model)
            final = weigh(networks, networks.learner.fit(networks, statistics, state.adjacency, targets))
            finals.append((final.evidence, count, networks, final))
        _, count, networks, final = max(finals, key=lambda one: one[0])
        statistics = networks.learner.statistics(networks, final.responsibilities, final.model)
        probabilities = networks.learner.target_probabilities(networks, statistics, state.adjacency, targets)
        edges = _edge_probabilities(standing, state.adjacency)
        ancestors = _ancestor_probabilities(edges, configuration.random_state)
        return Conclusion(
            final, "nonlinear-mixed" if count > SEARCH_NOISE else "nonlinear", edges, ancestors, probabilities
        )


def _edge_probabilities(standing: NetworkStanding, adjacency: NDArray[np.int8]) -> NDArray[np.float64]:
    """Probability of every edge given the order of the variables; the chosen graph if elimination was not reached."""
    probabilities = adjacency.astype(np.float64)
    for j, parent_set in enumerate(standing.parents):
        for i, probability in parent_set.probabilities.items():
            probabilities[i, j] = probability
    return probabilities


def _ancestor_probabilities(edges: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Share of graphs, drawn edge by edge (one order: never a cycle), in which one variable causes another."""
    rng = np.random.default_rng(seed)
    draws = [reachability((rng.random(edges.shape) < edges).astype(np.int8)) for _ in range(ANCESTOR_DRAWS)]
    return np.asarray(np.mean(draws, axis=0))
