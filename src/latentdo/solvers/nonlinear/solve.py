"""Networks: the strategy that the driver follows to find them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from latentdo.data import Dataset
from latentdo.result import FitResult
from latentdo.solvers.nonlinear import stages
from latentdo.solvers.nonlinear.learner import with_networks
from latentdo.solvers.nonlinear.stages import NetworkRun, NetworkStanding
from latentdo.solvers.search import driver
from latentdo.solvers.search.driver import Conclusion, Run, SearchConfiguration
from latentdo.solvers.search.em import refine, weigh
from latentdo.solvers.search.parent_sets import ScoreTables
from latentdo.solvers.search.posterior import graph_posterior
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.reporting import Progress
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import (
    ALL_ROWS_STEPS,
    MIXED_NOISE,
    NETWORK_SEARCH_ROWS,
    SEARCH_NOISE,
    UNDECIDED,
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
        tables = _edge_scores(problem, standing, state.adjacency)
        posterior = graph_posterior(tables, state.adjacency, seed=configuration.random_state)
        density = "nonlinear-mixed" if count > SEARCH_NOISE else "nonlinear"
        return Conclusion(final, density, posterior.edges, posterior.ancestors, probabilities)


def _edge_scores(problem: Problem, standing: NetworkStanding, adjacency: NDArray[np.int8]) -> ScoreTables:
    """Scores of parent sets: odds of every predecessor, those of the graph itself if elimination was not reached."""
    probabilities = adjacency.astype(np.float64)
    seen = adjacency == 1
    for j, parent_set in enumerate(standing.parents):
        for i, probability in parent_set.probabilities.items():
            probabilities[i, j], seen[i, j] = probability, True
    odds = logit(np.clip(probabilities, UNDECIDED, 1.0 - UNDECIDED))
    candidates = np.full((len(adjacency), max(int(seen.sum(axis=0).max()), 1)), -1, dtype=np.int64)
    for j, column in enumerate(seen.T):
        candidates[j, : column.sum()] = np.flatnonzero(column)

    def score(j: int, own: NDArray[np.int64], required: int) -> NDArray[np.float64]:
        masks = np.arange(1 << own.size)
        total = (masks[:, None] >> np.arange(own.size) & 1) @ odds[own, j]
        return np.asarray(np.where(masks & required == required, total, -np.inf))

    return ScoreTables.build(candidates, problem.constraints, score)
