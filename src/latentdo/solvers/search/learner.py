"""The interface of structural EM to a family of mechanisms, and its implementation for lines, from moments alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from latentdo.model.fitted import FittedModel
from latentdo.solvers.search import grow_shrink
from latentdo.solvers.search.moments import Moments
from latentdo.solvers.search.parameters import (
    choose_all_targets,
    fit_parameters,
    score_parent_sets,
    screen_parents,
    target_probabilities,
)
from latentdo.solvers.search.parent_sets import ScoreTables, all_candidates
from latentdo.solvers.search.splits import Split, split_by_lines
from latentdo.solvers.settings import BIRTH_GAIN, EM_TOLERANCE, EXACT_LIMIT, MAX_CANDIDATES, WALK_LIMIT

if TYPE_CHECKING:
    from latentdo.solvers.search.problem import Problem
    from latentdo.solvers.search.regime_moves import Birth
    from latentdo.solvers.search.state import State

Array = NDArray[np.float64]
Graph = NDArray[np.int8]


class Learner(Protocol):
    """How structure and mechanisms of one family are learnt from rows that are assigned to regimes.

    Statistics contain all that a learner needs to know about rows and their assignment; their ``counts`` are the (soft)
    number
    of rows in every regime. Scores are penalised log-likelihoods, one per variable, so that they add up to the
    evidence.
    """

    @property
    def tolerance(self) -> float:
        """EM stops after a step that gains fewer nats."""
        ...

    @property
    def holds_targets(self) -> bool:
        """Whether EM keeps the targets that a move proposes, instead of choosing them anew in every step."""
        ...

    def take(self, rows: NDArray[np.int64]) -> Learner:
        """The learner of some of the rows."""
        ...

    def statistics(
        self,
        problem: Problem,
        responsibilities: Array,
        model: FittedModel | None = None,
        *,
        settled: bool = False,
    ) -> Any:
        """The statistics on which the other methods work; fits may start from the mechanisms of ``model``.

        If these were ``settled`` one step of EM ago, fits need not search far from them.
        """
        ...

    def choose_targets(
        self,
        problem: Problem,
        statistics: Any,
        adjacency: Graph,
        variables: NDArray[np.int64] | None = None,
        target_prior: float | None = None,
    ) -> tuple[Graph, Array]:
        """Best targets of every variable (or of some) given the graph, and the scores, ``[K, d]`` and ``[d]``."""
        ...

    def fit(self, problem: Problem, statistics: Any, adjacency: Graph, targets: Graph) -> FittedModel:
        """Maximum-likelihood mechanisms of a graph with given targets."""
        ...

    def tables(
        self,
        problem: Problem,
        statistics: Any,
        adjacency: Graph,
        targets: Graph | None = None,
        target_prior: float | None = None,
    ) -> ScoreTables:
        """Scores of the parent sets that a search should consider."""
        ...

    def best_graph(
        self,
        problem: Problem,
        statistics: Any,
        adjacency: Graph,
        target_prior: float | None = None,
        *,
        thorough: bool = False,
    ) -> Graph:
        """Best graph, or the best reachable from ``adjacency``; if ``thorough``, by every available method."""
        ...

    def split(
        self, problem: Problem, state: State, regime: int, variable: int, rows: NDArray[np.int64]
    ) -> Split | None:
        """The best split of some rows of a regime in two by one variable, if any."""
        ...

    def split_followers(
        self, problem: Problem, state: State, variable: int, rows: NDArray[np.int64]
    ) -> Split | None:
        """The same for rows of all regimes that follow the reference mechanism of the variable."""
        ...

    def split_exception(
        self, problem: Problem, state: State, variable: int, regime: int
    ) -> tuple[Split, NDArray[np.int64], tuple[int, ...]] | None:
        """The same if the mechanism of a regime there turns out to be the reference.

        Also returns which rows these are, and which regimes lose the variable as a target.
        """
        ...

    def merge_changes(
        self, problem: Problem, statistics: Any, model: FittedModel, pairs: Sequence[tuple[int, int]]
    ) -> list[tuple[float, Graph]]:
        """Change of the scores if two regimes are merged, for every pair, and the targets ``[d]`` of the result.

        A lower bound suffices.
        """
        ...

    def retarget(self, problem: Problem, state: State) -> State:
        """The state with better targets, or the state itself; unchanged where EM chooses targets."""
        ...

    def pays(self, problem: Problem, before: State, after: State, births: Sequence[Birth]) -> bool:
        """Whether a state with newly split regimes is better than the previous one."""
        ...

    def target_probabilities(
        self, problem: Problem, statistics: Any, adjacency: Graph, targets: Graph
    ) -> Array:
        """Posterior probability of every target given the graph and the other targets, ``[K, d]``."""
        ...


class FreeTargets:
    """Targets are chosen in every step of EM, by the best fits of the family; evidence alone decides."""

    tolerance: ClassVar[float] = EM_TOLERANCE
    holds_targets: ClassVar[bool] = False

    def retarget(self, problem: Problem, state: State) -> State:  # noqa: ARG002
        """See :class:`Learner`."""
        return state

    def split_followers(
        self,
        problem: Problem,  # noqa: ARG002
        state: State,  # noqa: ARG002
        variable: int,  # noqa: ARG002
        rows: NDArray[np.int64],  # noqa: ARG002
    ) -> Split | None:
        """See :class:`Learner`: splits of single regimes suffice, where noise does not absorb regimes not yet found."""
        return None

    def split_exception(
        self,
        problem: Problem,  # noqa: ARG002
        state: State,  # noqa: ARG002
        variable: int,  # noqa: ARG002
        regime: int,  # noqa: ARG002
    ) -> tuple[Split, NDArray[np.int64], tuple[int, ...]] | None:
        """See :class:`Learner`: nothing, for the same reason."""
        return None

    def pays(self, problem: Problem, before: State, after: State, births: Sequence[Birth]) -> bool:  # noqa: ARG002
        """See :class:`Learner`."""
        return after.evidence > before.evidence + BIRTH_GAIN


class MomentLearner(FreeTargets):
    """Lines with Gaussian noise: one moment matrix per regime suffices, whatever the number of rows."""

    def take(self, rows: NDArray[np.int64]) -> MomentLearner:  # noqa: ARG002
        """See :class:`Learner`: it does not depend on rows."""
        return self

    def statistics(
        self,
        problem: Problem,
        responsibilities: Array,
        model: FittedModel | None = None,  # noqa: ARG002  (nothing to warm up)
        *,
        settled: bool = False,  # noqa: ARG002
    ) -> Moments:
        """See :class:`Learner`."""
        return problem.moments(responsibilities)

    def choose_targets(
        self,
        problem: Problem,
        statistics: Moments,
        adjacency: Graph,
        variables: NDArray[np.int64] | None = None,
        target_prior: float | None = None,
    ) -> tuple[Graph, Array]:
        """See :class:`Learner`."""
        return choose_all_targets(problem, statistics, adjacency, variables, target_prior)

    def fit(self, problem: Problem, statistics: Moments, adjacency: Graph, targets: Graph) -> FittedModel:
        """See :class:`Learner`."""
        return fit_parameters(problem, statistics, adjacency, targets)

    def tables(
        self,
        problem: Problem,
        statistics: Moments,
        adjacency: Graph,
        targets: Graph | None = None,
        target_prior: float | None = None,
    ) -> ScoreTables:
        """See :class:`Learner`: all parent sets in small problems, otherwise a screened selection."""
        if problem.n_variables <= EXACT_LIMIT:
            candidates = all_candidates(problem.constraints)
            return score_parent_sets(problem, statistics, candidates, targets, target_prior)
        candidates, core = screen_parents(problem, statistics, adjacency, targets, MAX_CANDIDATES)
        return score_parent_sets(problem, statistics, candidates, targets, target_prior, core)

    def best_graph(
        self,
        problem: Problem,
        statistics: Moments,
        adjacency: Graph,
        target_prior: float | None = None,
        *,
        thorough: bool = False,
    ) -> Graph:
        """See :class:`Learner`: exact in small problems, otherwise from the order of ``adjacency``.

        Unless ``thorough``, a graph that is the best in its tables is not improved beyond them.
        """
        found, score = self.tables(problem, statistics, adjacency, target_prior=target_prior).best(adjacency)
        if not np.isfinite(score):
            return adjacency
        if not thorough and np.array_equal(found, adjacency):
            return found
        if EXACT_LIMIT < problem.n_variables <= WALK_LIMIT:
            return grow_shrink.improve(problem, statistics, found, target_prior=target_prior)
        return found

    def split(
        self, problem: Problem, state: State, regime: int, variable: int, rows: NDArray[np.int64]
    ) -> Split | None:
        """See :class:`Learner`."""
        return split_by_lines(problem, state, regime, variable, rows)

    def merge_changes(
        self, problem: Problem, statistics: Moments, model: FittedModel, pairs: Sequence[tuple[int, int]]
    ) -> list[tuple[float, Graph]]:
        """See :class:`Learner`: exact, because moments add up. Only variables that either targets can change."""
        adjacency, targets = model.topology.adjacency, model.topology.targets
        _, base = self.choose_targets(problem, statistics, adjacency)
        changes = []
        for a, b in pairs:
            touched = np.flatnonzero(targets[a] | targets[b])
            found, scores = self.choose_targets(problem, statistics.merged(a, b), adjacency, touched)
            changes.append((float((scores - base)[touched].sum()), found[a]))
        return changes

    def target_probabilities(
        self, problem: Problem, statistics: Moments, adjacency: Graph, targets: Graph
    ) -> Array:
        """See :class:`Learner`."""
        return target_probabilities(problem, statistics, adjacency, targets)
