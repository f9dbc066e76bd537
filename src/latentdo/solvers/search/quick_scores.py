r"""Scores of many parent sets from one fit, without fitting any of them.

Given which Gaussian of the noise every residual came from, and the scale of the noise, a mechanism is a weighted
least-squares problem; with both held as one fit has them, its sums of squares and products say how well *every* set of
parents would do. As in EM that is a lower bound: a set that is fitted itself can only do better. So sets that are far
behind need no fit, and one pass over the rows rules out all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit
from latentdo.model.mechanisms.base import Mechanism
from latentdo.model.mechanisms.family import evidence
from latentdo.model.mechanisms.splines import choose_levels, explained
from latentdo.solvers.search.weighted_rows import Array, Local, WeightedRows
from latentdo.solvers.settings import FAMILY_DOUBT, SPARE

if TYPE_CHECKING:
    from latentdo.solvers.search.problem import Problem
    from latentdo.solvers.search.rows import RowLearner


@dataclass(frozen=True, eq=False)
class QuickScores:
    """How much parent sets of one variable explain, in nats, their functions paid.

    Parameters
    ----------
    gram : ndarray [1 + d L + 1, 1 + d L + 1]
        Sums of squares and products of ones, the functions of every variable, and values, in units of the noise.
    length : int
        Functions of a variable, L.
    price : float
        What a function costs.
    """

    gram: Array
    length: int
    price: float

    @classmethod
    def of(cls, design: Array, n_variables: int, precision: Array, values: Array, weights: Array) -> Self:
        """From ones and functions of every variable, ``[n, 1 + d L]``, and what a fit makes of rows and values."""
        rows = precision > 0.0
        length = (design.shape[1] - 1) // n_variables
        scaled = np.column_stack([design[rows], values[rows]]) * np.sqrt(precision[rows, None])
        return cls(scaled.T @ scaled, length, 0.5 * float(np.log(max(weights.sum(), 2.0))))

    def __call__(self, parents: NDArray[np.int64]) -> float:
        """What a set explains; only differences mean something."""
        return float(_explains(self.gram, parents, self.length, self.price))


@njit
def _explains(gram, parents, length, price):  # type: ignore[no-untyped-def]
    p, last = parents.shape[0], gram.shape[0] - 1
    index = np.zeros(2 + p * length, dtype=np.int64)
    for a in range(p):
        for b in range(length):
            index[1 + a * length + b] = 1 + parents[a] * length + b
    index[-1] = last
    own = np.empty((index.shape[0], index.shape[0]))
    for a in range(index.shape[0]):
        for b in range(index.shape[0]):
            own[a, b] = gram[index[a], index[b]]
    levels = choose_levels(own, np.full(p, length), length, price)
    return 0.5 * explained(own, levels, length) - price * levels.sum()


class ReferenceScores:
    """The same of a variable that is no least-squares problem: by fits of its reference mechanism alone.

    Working values of a discrete variable are those of one fit, and mislead by hundreds of nats about sets that are far
    from it; but with the regimes that share the mechanism known, one quick fit per set is all that is needed.

    Parameters
    ----------
    fit : callable
        The reference mechanism for a set of parents.
    z, y, weights : ndarray [n, d], [n], [n]
        Rows that share it, values of the variable, and how much they count.
    known : dict from parents to float
        What is known already, and is added to.
    """

    def __init__(
        self,
        fit: Callable[[NDArray[np.int64], Array], Mechanism],
        z: Array,
        y: Array,
        weights: Array,
        known: dict[tuple[int, ...], float],
    ) -> None:
        self._fit, self._z, self._y, self._weights = fit, z, y, weights
        self._known = known

    def __call__(self, parents: NDArray[np.int64]) -> float:
        """What a set explains; only differences mean something."""
        key = tuple(parents.tolist())
        if key not in self._known:
            x = np.ascontiguousarray(self._z[:, parents])
            self._known[key] = evidence(self._fit(parents, x), x, self._y, self._weights)
        return self._known[key]


class SetScores:
    """Scores of parent sets of one variable, fitted only if they may matter.

    Whoever is far behind the best set that was fitted, by what its fit says of all sets (:mod:`.quick_scores`), has
    that lower bound for a score.
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
        self._quick: QuickScores | ReferenceScores | None = None

    def __call__(self, parents: NDArray[np.int64]) -> float:
        """The score; a set with more parents than the best so far is fitted only if they seem to pay."""
        if self._best is not None and parents.size > self._best[1].size:
            rough = self.rough(parents)
            if rough < self._best[0] - FAMILY_DOUBT:
                return rough
        return self.fit(parents)

    def fit(self, parents: NDArray[np.int64]) -> float:
        """The score by a fit."""
        key = tuple(parents.tolist())
        if key not in self._fitted:
            local = self._learner.local(
                self._problem, self._statistics, self._j, parents, target_prior=self._target_prior
            )
            self._fitted[key] = local.score + self._prior(parents)
            if self._best is None or self._fitted[key] > self._best[0]:
                self._best, self._quick = (self._fitted[key], parents, local), None
        return self._fitted[key]

    def anchor(self, parents: NDArray[np.int64]) -> bool:
        """Fit a set, and say whether others can now be scored without."""
        self.fit(parents)
        assert self._best is not None
        value, now, local = self._best
        if self._quick is None and np.isfinite(value):
            self._quick = self._learner.quick_scores(self._problem, self._statistics, self._j, now, local)
        return self._quick is not None

    def rough(self, parents: NDArray[np.int64]) -> float:
        """The score without a fit, if the family allows for that: a lower bound, about."""
        key = tuple(parents.tolist())
        if key in self._fitted:
            return self._fitted[key]
        assert self._best is not None
        value, now, _ = self._best
        if not self.anchor(now) or self._quick is None:
            return self.fit(parents)
        return value + self._quick(parents) - self._quick(now) + self._prior(parents) - self._prior(now)

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
