r"""Approximate scores of parent sets, in a fraction of the time of a fit.

Moments show which regimes should share the mechanism of a parent set, and how curved the effects of its parents are.
One regression on the rows of these regimes, and one fit of the shape of its residuals, then show how well the set
explains them. A full fit starts there and alternates between coefficients and shape, which hardly matters for the
choice of parents: a regression finds them whatever the noise. The mechanisms of regimes that do not share the reference
mechanism are fitted as usual.
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
    """Regimes that should share the mechanism of a variable, ``[K]``, according to lines or slight curves."""
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
    """The approximate score of a variable with these parents; None where a family has nothing faster than a fit."""
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
    """The same for a variable that is not a least-squares problem: quick fits, with the sharing regimes of another fit.

    Working values of a discrete variable belong to one fit, and are wrong by hundreds of nats for sets far from it.
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
    """Positions of the first functions of every parent, the given number of each, among those of all variables."""
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
    """Functions of the parents that the evidence supports, from moments of the regimes that share the mechanism."""
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
    """Number of functions of every parent that the evidence supports, ``[p]``, given the noise of the finest curves."""
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
