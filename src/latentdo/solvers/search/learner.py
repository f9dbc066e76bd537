"""What structural EM asks of a family of mechanisms, and how lines answer: from moments alone."""

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

    Statistics are all that a learner needs to know of rows and their assignment; their ``counts`` are the (soft) number
    of rows in every regime. Scores are penalised log-likelihoods, one per variable, so that they add up to the
    evidence.
    """

    @property
    def tolerance(self) -> float:
        """Nats below which a step of EM is the last."""
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
        """What the other methods work on; fits may begin at the mechanisms of ``model``.

        If that is ``settled``, a step of EM ago, they need not look far from there.
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
        """Best graph, or the best that can be reached from ``adjacency``; if ``thorough``, by all means there are."""
        ...

    def split(
        self, problem: Problem, state: State, regime: int, variable: int, rows: NDArray[np.int64]
    ) -> Split | None:
        """How some rows of a regime had better be split in two by one variable, if at all."""
        ...

    def split_followers(
        self, problem: Problem, state: State, variable: int, rows: NDArray[np.int64]
    ) -> Split | None:
        """The same for rows of all regimes that follow the reference mechanism of the variable."""
        ...

    def split_exception(
        self, problem: Problem, state: State, variable: int, regime: int
    ) -> tuple[Split, NDArray[np.int64], tuple[int, ...]] | None:
        """The same if what a regime follows there turns out to be the reference.

        Also says which rows these are, and which regimes lose the variable as a target.
        """
        ...

    def merge_changes(
        self, problem: Problem, statistics: Any, model: FittedModel, pairs: Sequence[tuple[int, int]]
    ) -> list[tuple[float, Graph]]:
        """How the scores change if two regimes become one, for every pair of them, and the targets ``[d]`` of that one.

        A lower bound will do.
        """
        ...

    def retarget(self, problem: Problem, state: State) -> State:
        """The state with better targets, or the state itself; nothing to do where EM chooses them."""
        ...

    def pays(self, problem: Problem, before: State, after: State, births: Sequence[Birth]) -> bool:
        """Whether a state in which regimes were born is better than the one before."""
        ...

    def target_probabilities(
        self, problem: Problem, statistics: Any, adjacency: Graph, targets: Graph
    ) -> Array:
        """Posterior probability of every target given the graph and the other targets, ``[K, d]``."""
        ...


class FreeTargets:
    """Targets are chosen in every step of EM, by fits that are as good as the family can be; evidence decides alone."""

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
        """See :class:`Learner`: births from single regimes will do, where noise does not absorb the unborn."""
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
    """Lines with Gaussian noise: one moment matrix per regime says everything, whatever the number of rows."""

    def take(self, rows: NDArray[np.int64]) -> MomentLearner:  # noqa: ARG002
        """See :class:`Learner`: it knows of no rows."""
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
        """See :class:`Learner`: all parent sets in small problems, else a screened few."""
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
        """See :class:`Learner`: exact in small problems, else from the order of ``adjacency``.

        Unless ``thorough``, a graph that is the best in its tables is not looked at beyond them.
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
