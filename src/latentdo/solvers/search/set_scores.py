"""Scores of the parent sets of one variable, fitted only if they may matter."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from latentdo.solvers.search.parameters import target_costs
from latentdo.solvers.search.quick_scores import Bound, bound_by_fit, bound_by_lines
from latentdo.solvers.search.weighted_rows import Local, WeightedRows
from latentdo.solvers.settings import FAMILY_DOUBT, FAMILY_HOPELESS, SPARE

if TYPE_CHECKING:
    from latentdo.solvers.search.problem import Problem
    from latentdo.solvers.search.rows import RowLearner


class SetScores:
    """Scores of parent sets of one variable, fitted only if they may matter.

    Whoever is far behind the best set that was fitted, by what fits and lines say of all sets (:mod:`.quick_scores`),
    has that lower bound for a score.
    """

    def __init__(
        self,
        learner: RowLearner,
        problem: Problem,
        statistics: WeightedRows,
        j: int,
        target_prior: float | None,
    ) -> None:
        self._learner, self._problem, self._statistics = learner, problem, statistics
        self._j, self._target_prior = j, target_prior
        self._fitted: dict[tuple[int, ...], float] = {}
        self._best: tuple[float, NDArray[np.int64], Local] | None = None
        self._cost = target_costs(problem, target_prior, statistics.responsibilities.shape[1])
        self._bounds: list[Bound] = []
        self._anchored = False

    def slack(self, parents: NDArray[np.int64]) -> float:
        """How much more a fit may find than is said without: nothing if there was one, little with more parents."""
        if self.is_fitted(parents):
            return 0.0
        larger = self._best is not None and parents.size > self._best[1].size
        return FAMILY_DOUBT if larger else FAMILY_HOPELESS

    def fit(self, parents: NDArray[np.int64]) -> float:
        """The score by a fit."""
        key = tuple(parents.tolist())
        if key not in self._fitted:
            local = self._learner.local(
                self._problem, self._statistics, self._j, parents, target_prior=self._target_prior
            )
            self._fitted[key] = local.score + self._prior(parents)
            if self._best is None or self._fitted[key] > self._best[0]:
                self._best, self._anchored = (self._fitted[key], parents, local), False
        return self._fitted[key]

    def near_the_best(
        self, sets: Mapping[int, NDArray[np.int64]], always: Collection[int] = ()
    ) -> dict[int, float]:
        """Scores of named sets: by fits of those in ``always`` and of whoever may be close to the best of all.

        A bound from a fit says little of sets that are far from it: a fit without parents draws a broad noise, in which
        a pair of parents together explains much less than it would in its own. So fits and bounds take turns, each
        round bounding all sets from the best fit so far, until no set that is close is without a fit.
        """
        bounds = dict.fromkeys(sets, -np.inf)
        for name in always:
            bounds[name] = self.fit(sets[name])
        while True:
            for name, parents in sets.items():
                bounds[name] = max(bounds[name], self.rough(parents))
            limit = max(bounds.values(), default=-np.inf) - FAMILY_HOPELESS
            close = [
                name for name, value in bounds.items() if not value < limit and not self.is_fitted(sets[name])
            ]
            if not close:
                return bounds
            for name in sorted(close, key=bounds.__getitem__, reverse=True):
                bounds[name] = self.fit(sets[name])

    def anchor(self, parents: NDArray[np.int64]) -> bool:
        """Fit a set, and say whether others can now be scored without."""
        self.fit(parents)
        assert self._best is not None
        value, now, local = self._best
        if not self._anchored and np.isfinite(value):
            this = (self._learner, self._problem, self._statistics, self._j)
            bound = bound_by_fit(*this, now, local, self._cost)
            if bound is not None and not self._bounds and not self._learner.family.of(self._j).is_discrete:
                self._bounds.append(bound_by_lines(*this, self._cost))
            self._bounds += [] if bound is None else [bound]
            self._anchored = True
        return bool(self._bounds)

    def is_fitted(self, parents: NDArray[np.int64]) -> bool:
        """Whether the score of a set is that of a fit."""
        return tuple(parents.tolist()) in self._fitted

    def rough(self, parents: NDArray[np.int64]) -> float:
        """The score without a fit, if the family allows for that: a lower bound, about."""
        key = tuple(parents.tolist())
        if key in self._fitted:
            return self._fitted[key]
        assert self._best is not None
        if not self.anchor(self._best[1]):
            return self.fit(parents)
        return max(bound(parents) for bound in self._bounds) + self._prior(parents)

    def _prior(self, parents: NDArray[np.int64]) -> float:
        return float(self._problem.penalties.edge_prior[parents, self._j].sum())


def quick_screen(
    problem: Problem,
    adjacency: NDArray[np.int8],
    scores: Sequence[Callable[[NDArray[np.int64]], float]],
    limit: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Candidate parents of every variable, and its core, as :func:`.screen_parents` gives them, from quick scores.

    Half of the free places go to those that explain most alone, the others to those that explain most beside the
    parents of the graph: a parent may be redundant beside children, and may not show without other parents.
    """
    d, allowed = problem.n_variables, problem.constraints.allowed
    required = problem.constraints.required
    limit = min(max(limit, int(required.sum(axis=0).max())), d - 1)
    candidates = np.full((d, limit), -1, dtype=np.int64)
    cores: list[NDArray[np.int64]] = []
    for j, score in enumerate(scores):
        first = np.flatnonzero((required[:, j] | (adjacency[:, j] == 1)) & allowed[:, j])
        surplus = max(first.size - max(limit - SPARE, 1), 0)
        without = [score(np.delete(first, a)) for a in range(first.size)] if surplus else []
        core = first[np.argsort(without, kind="stable")[:surplus]] if surplus else first[:0]
        others = np.setdiff1d(np.flatnonzero(allowed[:, j]), first)
        beside = others[np.argsort([-score(np.sort(np.append(first, i))) for i in others], kind="stable")]
        alone = others[np.argsort([-score(np.array([i])) for i in others], kind="stable")]
        chosen = np.setdiff1d(first, core)
        room = limit - chosen.size
        ranked = dict.fromkeys([*alone[: room // 2].tolist(), *beside.tolist()])
        chosen = np.sort(np.concatenate([chosen, list(ranked)[:room]])).astype(np.int64)
        candidates[j, : chosen.size] = chosen
        cores.append(core)
    widest = max(core.size for core in cores)
    return candidates, np.stack([np.pad(core, (0, widest - core.size), constant_values=-1) for core in cores])
