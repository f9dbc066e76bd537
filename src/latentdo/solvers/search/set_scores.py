"""Scores of the parent sets of one variable, fitted only if they may matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from latentdo.solvers.search.glances import Parents, glance, glance_at_discrete
from latentdo.solvers.search.parent_sets import ScoreTables
from latentdo.solvers.search.weighted_rows import Local, WeightedRows
from latentdo.solvers.settings import FAMILY_DOUBT, FAMILY_HOPELESS, SPARE

if TYPE_CHECKING:
    from latentdo.solvers.search.problem import Problem
    from latentdo.solvers.search.rows import RowLearner


class SetScores:
    """Scores of parent sets of one variable, fitted only if they may matter, otherwise approximate."""

    def __init__(
        self,
        learner: RowLearner,
        problem: Problem,
        statistics: WeightedRows,
        j: int,
        target_prior: float | None,
    ) -> None:
        self._learner, self._problem, self._statistics, self._j = learner, problem, statistics, j
        self._target_prior = target_prior
        self._discrete = learner.family.of(j).is_discrete
        self._fitted: dict[tuple[int, ...], float] = {}
        # Of discrete variables they depend on the best fit so far; others are the same for whoever asks.
        own: dict[tuple[int, ...], float | None] = {}
        self._glances = own if self._discrete else statistics.glances.setdefault((j, target_prior), own)
        self._best: tuple[float, Parents, Local] | None = None

    def slack(self, parents: Parents) -> float:
        """How much a fit may exceed the approximate score: nothing after a fit, little with more parents."""
        if self.is_fitted(parents):
            return 0.0
        larger = self._best is not None and parents.size > self._best[1].size
        return FAMILY_DOUBT if larger else FAMILY_HOPELESS

    def fit(self, parents: Parents) -> float:
        """The score by a fit."""
        key = tuple(parents.tolist())
        if key not in self._fitted:
            local = self._learner.local(
                self._problem, self._statistics, self._j, parents, target_prior=self._target_prior
            )
            self._fitted[key] = local.score + self._prior(parents)
            if self._best is None or self._fitted[key] > self._best[0]:
                self._best = (self._fitted[key], parents, local)
                if self._discrete:
                    self._glances.clear()  # they assumed the sharing regimes of another fit
        return self._fitted[key]

    def is_fitted(self, parents: Parents) -> bool:
        """Whether the score of a set is that of a fit."""
        return tuple(parents.tolist()) in self._fitted

    def rough(self, parents: Parents) -> float:
        """The score by a fit, if there was one, otherwise an approximate one, if the family has it."""
        key = tuple(parents.tolist())
        if key in self._fitted:
            return self._fitted[key]
        value = self.glance(parents)
        return self.fit(parents) if value is None else value

    def glance(self, parents: Parents) -> float | None:
        """See :mod:`.glances`."""
        key = tuple(parents.tolist())
        if key not in self._glances:
            value: float | None
            this = (self._learner, self._problem, self._statistics, self._j, parents)
            if self._discrete:
                assert self._best is not None
                value = glance_at_discrete(*this, self._best[2], self._target_prior)
            else:
                value = glance(*this, self._target_prior)
            self._glances[key] = None if value is None else value + self._prior(parents)
        return self._glances[key]

    def _prior(self, parents: Parents) -> float:
        return float(self._problem.penalties.edge_prior[parents, self._j].sum())


def fit_what_matters(
    tables: ScoreTables,
    sets: Sequence[Mapping[int, Parents]],
    scores: Sequence[SetScores],
    adjacency: NDArray[np.int8],
) -> None:
    """Fit the parent sets of the best graph, and their neighbours, until no other graph looks better.

    Graphs that differ by one edge, or by its direction, decide about directions: they are all fitted, and so are sets
    with one parent more or fewer, unless they are too far behind.
    """
    around = False
    while True:
        best, value = tables.best(adjacency)
        if not np.isfinite(value):
            return
        fitted = False
        for j, named in enumerate(sets):
            now = np.flatnonzero(best[:, j])
            least = scores[j].rough(now) - FAMILY_HOPELESS
            close = [*now, *np.flatnonzero(best[j])]
            for mask, parents in named.items():
                if scores[j].is_fitted(parents):
                    continue
                apart = np.setxor1d(parents, now).size
                near = apart == 1 and (np.isin(parents, close).all() or tables.scores[j, mask] > least)
                if apart == 0 or (around and near):
                    tables.scores[j, mask] = scores[j].fit(parents)
                    fitted = True
        if not fitted:
            if around:
                return
            around = True


def quick_screen(
    problem: Problem,
    adjacency: NDArray[np.int8],
    scores: Sequence[Callable[[NDArray[np.int64]], float]],
    limit: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Candidate parents of every variable, and its core, as :func:`.screen_parents` gives them, from quick scores.

    Half of the free places go to variables that explain most alone. The others go, one after another, to variables that
    explain most given the parents in the graph and those chosen already: a parent may be redundant given children, and
    may have no visible effect without other parents.
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
        alone = others[np.argsort([-score(np.array([i])) for i in others], kind="stable")]
        chosen = np.setdiff1d(first, core)
        room = min(limit - chosen.size, others.size)
        added, path, race = alone[: room // 2].tolist(), first, others
        while len(added) < room:
            beside = np.array([score(np.sort(np.append(path, i))) for i in race])
            if path is first:
                race, beside = (
                    one[np.argsort(-beside, kind="stable")[: 2 * limit]] for one in (race, beside)
                )
            next_one = race[beside.argmax()]
            path, race = np.sort(np.append(path, next_one)), race[race != next_one]
            added += [] if next_one in added else [next_one]
        chosen = np.sort(np.concatenate([chosen, added[:room]])).astype(np.int64)
        candidates[j, : chosen.size] = chosen
        cores.append(core)
    widest = max(core.size for core in cores)
    return candidates, np.stack([np.pad(core, (0, widest - core.size), constant_values=-1) for core in cores])
