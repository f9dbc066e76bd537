r"""About the scores of parent sets, in a fraction of the time of a fit.

Moments say which regimes had best share the mechanism of a set and how much its parents bend; one regression of those
rows, and one look at the shape of what it leaves over, says how well the set explains them. A fit starts there and goes
on with coefficients and shape in turns, which hardly matters for the causes of a variable: a regression is right about
them whatever the noise. What regimes that do not share the mechanism have instead is fitted as ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit
from latentdo.model.mechanisms.family import evidence
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR
from latentdo.model.mechanisms.splines import choose_levels, explained
from latentdo.solvers.search.local_scores import REFERENCE, TARGET, RegimeData, local_index, parent_set_score
from latentdo.solvers.search.parameters import target_costs
from latentdo.solvers.search.weighted_rows import Local, WeightedRows, rows_that_count
from latentdo.solvers.settings import FAMILY_FAINT, SHARING_FUNCTIONS

if TYPE_CHECKING:
    from latentdo.solvers.search.problem import Problem
    from latentdo.solvers.search.rows import RowLearner

Parents = NDArray[np.int64]


def who_shares(
    learner: RowLearner,
    problem: Problem,
    statistics: WeightedRows,
    j: int,
    parents: Parents,
    known: NDArray[np.int8],
    target_prior: float | None = None,
) -> NDArray[np.bool_]:
    """Regimes that had best share the mechanism of a variable, ``[K]``, as lines or slight curves would have it."""
    counts, length = statistics.counts, statistics.length(problem.n_variables)
    cost = target_costs(problem, target_prior, len(counts))
    data = RegimeData(
        statistics.moments.matrices, counts, np.ascontiguousarray(known), cost, problem.imperfect
    )
    lines = learner.family.widths(learner.prepared, problem.n_variables)[parents]
    best, found = -np.inf, known != TARGET
    curves = np.maximum(lines, min(length, SHARING_FUNCTIONS))
    for levels in (lines,) if np.array_equal(lines, curves) else (lines, curves):
        shares = np.ones(len(counts), dtype=bool)
        score = parent_set_score(data, j * length, _places(parents, levels, length), shares)
        if score > best:
            best, found = score, shares
    return np.asarray(found)


def glance(
    learner: RowLearner,
    problem: Problem,
    statistics: WeightedRows,
    j: int,
    parents: Parents,
    target_prior: float | None = None,
) -> float | None:
    """About the score of a variable with these parents; None where a family has nothing better than a fit."""
    family = learner.family.of(j)
    known = problem.fixed(len(statistics.counts))[:, j]
    shares = who_shares(learner, problem, statistics, j, parents, known, target_prior)
    weights = statistics.responsibilities @ shares
    if float(weights.sum()) < problem.min_rows:
        return -np.inf
    functions = 1 + _functions(learner, problem, statistics, j, parents, shares)
    x, y = np.ascontiguousarray(statistics.design[:, functions]), np.ascontiguousarray(problem.z[:, j])
    reference = family.glance(*rows_that_count(x, y, weights))
    if reference is None:
        return None
    held = np.where(shares, REFERENCE, TARGET).astype(np.int8)
    prior = problem.penalties.target_prior if target_prior is None else target_prior
    return learner.score_shares(problem, statistics, j, (x, y), held, prior, shares, reference)[0].score


def glance_at_discrete(
    learner: RowLearner,
    problem: Problem,
    statistics: WeightedRows,
    j: int,
    parents: Parents,
    local: Local,
    target_prior: float | None = None,
) -> float:
    """The same of a variable that is no least-squares problem: by quick fits, who shares a mechanism as in another fit.

    Working values of a discrete variable are those of one fit, and mislead by hundreds of nats about sets that are far
    from it.
    """
    own, cost = sorted(local.own), target_costs(problem, target_prior, len(statistics.counts))
    known = statistics.explained.setdefault((j, local.shares.tobytes()), {})
    key = tuple(parents.tolist())
    if key not in known:
        weights = statistics.responsibilities @ local.shares
        rows = np.flatnonzero(weights > FAMILY_FAINT)
        x, y = problem.inputs(parents), np.ascontiguousarray(problem.z[:, j])
        reference = learner.fits(j, parents).fit(x[rows], y[rows], weights[rows], local.reference)
        known[key] = evidence(reference, x[rows], y[rows], weights[rows])
        for k in own:
            mine, weight = statistics.members[k]
            found = learner.family.of(j).intervene(
                x[mine], y[mine], weight, reference, imperfect=problem.imperfect
            )
            known[key] += evidence(found, x[mine], y[mine], weight)
    return known[key] - float(cost[own].sum())


def _places(parents: Parents, levels: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Where the first functions of every parent, so many of each, stand among those of all variables."""
    own = [i * length + np.arange(level) for i, level in zip(parents.tolist(), levels.tolist(), strict=True)]
    return np.concatenate([np.empty(0, np.int64), *own])


def _functions(
    learner: RowLearner,
    problem: Problem,
    statistics: WeightedRows,
    j: int,
    parents: Parents,
    shares: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """The functions of its parents that evidence pays for, by the moments of the regimes that share a mechanism."""
    length = statistics.length(problem.n_variables)
    least = learner.family.widths(learner.prepared, problem.n_variables)[parents]
    levels = np.where(least == 1, length, least)
    if length > 1 and parents.size:
        index = local_index(j * length, _places(parents, np.full(parents.size, length), length))
        count = max(float(statistics.counts[shares].sum()), 2.0)
        levels = _levels(statistics.moments.matrices, shares, index, levels, least, length, count)
    return _places(parents, levels, length)


@njit
def _levels(moments, shares, index, levels, least, length, count):  # type: ignore[no-untyped-def]
    """How many functions of every parent pay, ``[p]``, with the noise that the most flexible curves leave over."""
    size = index.shape[0]
    gram = np.zeros((size, size))
    for k in range(moments.shape[0]):
        if shares[k]:
            for a in range(size):
                for b in range(a + 1):
                    gram[a, b] += moments[k, index[a], index[b]]
    left = gram[size - 1, size - 1] - explained(gram, levels, length)
    variance = max(left / count, VARIANCE_FLOOR)
    return choose_levels(gram / variance, levels, least, length, 0.5 * np.log(count))
