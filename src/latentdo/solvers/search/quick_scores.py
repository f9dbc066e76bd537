r"""Scores of many parent sets without fitting any of them: lower bounds, from one fit and from lines.

Given which Gaussian of the noise every residual came from, a mechanism is a weighted least-squares problem; with that
held as one fit has it, its sums of squares and products say how well *every* set of parents would do. As in EM that is
a lower bound: a set that is fitted itself can only do better. Lines with Gaussian noise are another, in which every set
chooses for itself which regimes share a mechanism. Sets that are far behind in both need no fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit
from latentdo.model.mechanisms.family import evidence
from latentdo.model.mechanisms.splines import choose_levels, explained
from latentdo.solvers.search.local_scores import RegimeData, local_index, own_scores, parent_set_score
from latentdo.solvers.search.weighted_rows import Array, Local, WeightedRows
from latentdo.solvers.settings import FAMILY_FAINT

if TYPE_CHECKING:
    from latentdo.solvers.search.problem import Problem
    from latentdo.solvers.search.rows import RowLearner

Bound = Callable[[NDArray[np.int64]], float]
"""At least so much a set of parents scores, without the prior of its edges."""


def bound_by_lines(
    learner: RowLearner, problem: Problem, statistics: WeightedRows, j: int, target_cost: Array
) -> Bound:
    """What lines with Gaussian noise would score, every set with the regimes that had best share its mechanism."""
    moments, counts = statistics.moments.matrices, statistics.counts
    known = np.ascontiguousarray(problem.fixed(len(counts))[:, j])
    data = RegimeData(moments, counts, known, target_cost, problem.imperfect)
    lines = _Lines(learner, problem, statistics)

    def bound(parents: NDArray[np.int64]) -> float:
        shares = np.ones(len(counts), dtype=bool)
        return float(parent_set_score(data, lines.variable(j), lines(parents), shares))

    return bound


def bound_by_fit(
    learner: RowLearner,
    problem: Problem,
    statistics: WeightedRows,
    j: int,
    parents: NDArray[np.int64],
    local: Local,
    target_cost: Array,
) -> Bound | None:
    """What the fit with some parents says of all others, the same regimes sharing; None where it says nothing."""
    weights = statistics.responsibilities @ local.shares
    y = np.ascontiguousarray(problem.z[:, j])
    if learner.family.of(j).is_discrete:
        return _by_references(learner, problem, statistics, j, local, target_cost)
    x = problem.inputs(parents)
    squares = learner.family.of(j).as_squares(local.reference, x, y, weights)
    if squares is None:
        return None
    shared = QuickScores.of(statistics.design, problem.n_variables, parents, *squares, weights)
    own = OwnLines.of(problem, statistics, (x, y), local, target_cost)
    lines = _Lines(learner, problem, statistics)

    def others(these: NDArray[np.int64]) -> float:
        return own(local_index(lines.variable(j), lines(these)))

    now = local.score - shared(parents) - float(own.now.sum())
    return lambda these: now + shared(these) + (others(these) if problem.imperfect else float(own.now.sum()))


class _Lines:
    """Where functions of variables that are the variables themselves stand among all of their functions."""

    def __init__(self, learner: RowLearner, problem: Problem, statistics: WeightedRows) -> None:
        self._length: int = (statistics.design.shape[1] - 1) // problem.n_variables
        self._widths = learner.family.widths(learner.prepared, problem.n_variables)

    def __call__(self, parents: NDArray[np.int64]) -> NDArray[np.int64]:
        places = [i * self._length + np.arange(self._widths[i]) for i in parents]
        return np.concatenate([np.empty(0, np.int64), *places])

    def variable(self, j: int) -> int:
        return j * self._length


def _by_references(
    learner: RowLearner,
    problem: Problem,
    statistics: WeightedRows,
    j: int,
    local: Local,
    target_cost: Array,
) -> Bound:
    """The same of a variable that is no least-squares problem: by quick fits, the regimes that share a mechanism known.

    Working values of a discrete variable are those of one fit, and mislead by hundreds of nats about sets that are far
    from it.
    """
    weights = statistics.responsibilities @ local.shares
    rows = np.flatnonzero(weights > FAMILY_FAINT)
    y = np.ascontiguousarray(problem.z[:, j])
    known = statistics.explained.setdefault((j, local.shares.tobytes()), {})
    own = sorted(local.own)

    def bound(parents: NDArray[np.int64]) -> float:
        key = tuple(parents.tolist())
        if key not in known:
            x = problem.inputs(parents)
            reference = learner.fits(j, parents).fit(x[rows], y[rows], weights[rows], local.reference)
            known[key] = evidence(reference, x[rows], y[rows], weights[rows])
            for k in own:
                mine, weight = statistics.members[k]
                found = learner.family.of(j).intervene(
                    x[mine], y[mine], weight, reference, imperfect=problem.imperfect
                )
                known[key] += evidence(found, x[mine], y[mine], weight)
        return known[key] - float(target_cost[own].sum())

    return bound


@dataclass(frozen=True, eq=False)
class QuickScores:
    r"""How much parent sets of one variable explain, in nats, their functions paid.

    Who sets the scale? The best of each set: with residuals of :math:`R` squares in units of the fitted noise, whose
    own have as many as there are rows, :math:`n`, a scale that follows them gains :math:`-\frac n2 \log(R / n)`.

    Parameters
    ----------
    gram : ndarray [1 + d L + 1, 1 + d L + 1]
        Sums of squares and products of ones, the functions of every variable, and values, in units of the noise.
    length : int
        Functions of a variable, L.
    count : float
        Rows, n.
    explained : float
        Squares that the parents of the fit explain.
    """

    gram: Array
    length: int
    count: float
    explained: float = 0.0

    @classmethod
    def of(
        cls,
        design: Array,
        n_variables: int,
        parents: NDArray[np.int64],
        precision: Array,
        values: Array,
        weights: Array,
    ) -> Self:
        """From ones and functions of every variable, ``[n, 1 + d L]``, and what a fit makes of rows and values."""
        rows = precision > 0.0
        scaled = np.column_stack([design[rows], values[rows]]) * np.sqrt(precision[rows, None])
        found = cls(scaled.T @ scaled, (design.shape[1] - 1) // n_variables, max(float(weights.sum()), 2.0))
        return replace(found, explained=found._explain(parents)[0])

    def __call__(self, parents: NDArray[np.int64]) -> float:
        """What a set explains; only differences mean something."""
        explained, functions = self._explain(parents)
        left = max(self.count - explained + self.explained, np.finfo(float).tiny)
        return -0.5 * self.count * float(np.log(left / self.count)) - self._price * functions

    @property
    def _price(self) -> float:
        """What a function costs."""
        return 0.5 * float(np.log(self.count))

    def _explain(self, parents: NDArray[np.int64]) -> tuple[float, int]:
        found, functions = _explain(self.gram, parents, self.length, self._price)
        return float(found), int(functions)


@njit
def _explain(gram, parents, length, price):  # type: ignore[no-untyped-def]
    """Squares that parents explain, and by how many functions."""
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
    return explained(own, levels, length), levels.sum()


@dataclass(frozen=True, eq=False)
class OwnLines:
    """What the regimes that do not share a mechanism have instead, at least, whatever the parents: lines of their own.

    Parameters
    ----------
    moments : ndarray [m, 1 + d L, 1 + d L]
        Moments of these regimes.
    counts : ndarray [m]
        Their rows.
    least : ndarray [m]
        Scores that do not depend on parents; minus infinity where a mechanism has any.
    target_cost : ndarray [m]
        What a target costs.
    now : ndarray [m]
        Their scores in the fit.
    """

    moments: Array
    counts: Array
    least: Array
    target_cost: Array
    now: Array

    @classmethod
    def of(
        cls,
        problem: Problem,
        statistics: WeightedRows,
        rows: tuple[Array, Array],
        local: Local,
        target_cost: Array,
    ) -> Self:
        """Of the regimes that do not share the mechanism of a fit."""
        (x, y), own = rows, sorted(local.own)
        now = np.empty(len(own))
        least = np.full(len(own), -np.inf)
        for a, k in enumerate(own):
            mine, weights = statistics.members[k]
            now[a] = (
                evidence(local.own[k], x[mine], y[mine], weights) - target_cost[k] if mine.size > 1 else 0.0
            )
            form = local.own[k].linear_form
            if not problem.imperfect or (form is not None and form.coefficients.size == 1):
                least[a] = now[a]
        moments = statistics.moments.matrices[own]
        return cls(moments, statistics.counts[own], least, target_cost[own], now)

    def __call__(self, index: NDArray[np.int64]) -> float:
        """Their scores, where these functions are those of the parents, and last the variable."""
        own, size = np.empty(len(self.counts)), len(index)
        grams = np.ascontiguousarray(self.moments[:, index[:, None], index])
        own_scores(grams, self.counts, True, self.target_cost, np.zeros((size, size)), own)
        return float(np.maximum(own, self.least).sum())
