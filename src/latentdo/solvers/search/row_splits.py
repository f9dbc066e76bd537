"""Splitting the rows of a mechanism in two, with mechanisms of a family on both sides.

Noise of any shape may have absorbed an intervention. So the mechanism of the remaining rows is fitted without the rows
that are split off, whereas :mod:`.splits` compares a line with the present mechanism of all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from latentdo.model.assignment import Prior, Units
from latentdo.model.mechanisms.base import Mechanism
from latentdo.model.mechanisms.family import FamilyOfVariable, Fits, evidence
from latentdo.solvers.search.splits import Split, guesses
from latentdo.solvers.search.weighted_rows import Array, rows_that_count
from latentdo.solvers.settings import (
    FAMILY_DISCRETE_GLANCE,
    FAMILY_EXCEPTION_STEPS,
    FAMILY_FAINT,
    FAMILY_GLANCE,
    FAMILY_SPLIT_STEPS,
    MEMBERSHIP,
    PROBE_ROWS,
)

if TYPE_CHECKING:
    from latentdo.solvers.search.problem import Problem
    from latentdo.solvers.search.rows import RowLearner
    from latentdo.solvers.search.state import State


class _Rows(NamedTuple):
    """Parents and values of some rows, how much of each may be split off or must stay, and how they belong together."""

    x: Array
    y: Array
    weights: Array
    units: Units
    staying: Array

    def some(self, limit: int) -> _Rows:
        """Only this many."""
        at = self.units.thin(np.arange(self.y.size), limit)
        return _Rows(self.x[at], self.y[at], self.weights[at], self.units.take(at), self.staying[at])

    @property
    def counted(self) -> tuple[Array, Array, Array]:
        """Parents, values and weights of rows that may be split off."""
        return self.x, self.y, self.units.counted(self.weights)

    @property
    def staying_counted(self) -> tuple[Array, Array, Array]:
        """The same for rows that must stay."""
        return self.x, self.y, self.units.counted(self.staying)

    def carry(self, share: Array, few: _Rows, *, by_parents: bool = False) -> Array:
        """Shares of a few rows as a guess for all: that of the row with the nearest value.

        Where many rows share a value, ``by_parents``: that of the row with the nearest parents.
        """
        if by_parents:
            near = cKDTree(np.column_stack([few.x, few.y])).query(np.column_stack([self.x, self.y]))[1]
            return np.asarray(share[near])
        order = np.argsort(few.y)
        place = np.searchsorted(few.y[order], self.y).clip(0, order.size - 1)
        return np.asarray(share[order[place]])


class _Parted(NamedTuple):
    """Evidence of two mechanisms, the share of every row that is split off, the mechanism that stays, and the costs."""

    evidence: float
    share: Array
    stays: Mechanism
    cost: float


def split_by_family(
    problem: Problem,
    state: State,
    variable: int,
    rows: NDArray[np.int64],
    learner: RowLearner,
    regime: int | None = None,
) -> Split | None:
    """The best split of some rows that follow the reference mechanism of a variable, whatever their regimes.

    Or of the rows of one ``regime`` with another mechanism. It is found on some of the rows and extended to all.
    """
    model, family = state.model, learner.family.of(variable)
    everyone = _rows(problem, state, variable, rows, np.zeros(problem.n_rows))
    if regime is not None:
        everyone = everyone._replace(weights=np.ascontiguousarray(state.responsibilities[rows, regime]))
    few = everyone.some(PROBE_ROWS)
    fits = learner.fits(variable, model.parents[variable])
    begun = model.reference[variable] if regime is None else model.mechanism(variable, regime)
    whole = fits.fit(*rows_that_count(*few.counted), begun)
    now = evidence(whole, *few.counted)
    paid = 0.5 * whole.n_parameters * float(np.log(max(few.counted[2].sum(), 2.0)))
    glance = FAMILY_DISCRETE_GLANCE if family.is_discrete else FAMILY_GLANCE
    best = Split(-np.inf, np.empty(0))

    def gain(found: _Parted) -> float:
        # A discrete variable alone hardly shows a regime: other variables have to support it, if any do.
        return found.evidence - now + (found.cost - paid if family.is_discrete else 0.0)

    for guess in [*guesses(whole.log_density(few.x, few.y), few.y, few.units), *whole.parts(few.x, few.y)]:
        found = _two(problem, family, fits, few, guess, glance, whole)
        if gain(found) > best.gain:
            best = Split(gain(found), found.share)
    if not best.share.size:
        return None
    found = _two(problem, family, fits, few, best.share, FAMILY_SPLIT_STEPS, whole)
    if gain(found) > best.gain:
        best = Split(gain(found), found.share)
    share = best.share
    if share.size < rows.size:
        begin = everyone.carry(share, few, by_parents=family.is_discrete)
        share = _two(problem, family, fits, everyone, begin, 1, whole).share
    scale = float(everyone.counted[2].sum() / few.counted[2].sum())
    return Split(best.gain * scale, share, reference_stays=regime is None)


def split_by_exception(
    problem: Problem, state: State, variable: int, regime: int, learner: RowLearner
) -> tuple[Split, NDArray[np.int64], tuple[int, ...]] | None:
    """The split of the rows of a reference mechanism after which an intervened mechanism becomes the reference.

    An intervention on many rows may hide in the shape of the noise. Regimes without it then seem to be intervened upon,
    each with one target too many; but their mechanism is the reference, and part of the rows assigned to the reference
    are the intervened ones. Returns the split, its rows, and the regimes that lose the target.
    """
    model, prior = state.model, problem.penalties.target_prior
    reference, mine = model.reference[variable], state.responsibilities[:, regime]
    free = (state.following(variable) > MEMBERSHIP) & (problem.labels < 0)
    rows = np.flatnonzero(free | (mine > MEMBERSHIP))
    everyone = _rows(problem, state, variable, rows, mine)
    everyone = everyone._replace(weights=everyone.weights * free[rows])
    if min(everyone.staying_counted[2].sum(), everyone.counted[2].sum()) < 2 * problem.min_rows:
        return None
    fits = learner.fits(variable, model.parents[variable])
    rule = fits.fit(*rows_that_count(*everyone.staying_counted))
    # The mechanism of all rows mixes the reference, of half of them, say, with something else.
    inside = rule.log_density(everyone.x, everyone.y) - reference.log_density(everyone.x, everyone.y)
    guess = 1.0 - np.exp(np.minimum(inside - np.log(2.0), 0.0))
    family = learner.family.of(variable)
    found = _two(problem, family, fits, everyone, guess, FAMILY_EXCEPTION_STEPS, rule)
    now = evidence(reference, *everyone.counted)
    now += evidence(model.own[regime, variable], *everyone.staying_counted)
    gain, joined = found.evidence - now, [regime]
    x, y = model.inputs(problem.z, variable), np.ascontiguousarray(problem.z[:, variable])
    for k in np.flatnonzero(state.targets[:, variable]).tolist():
        weights = problem.counted(state.responsibilities[:, k])
        more = float(weights @ found.stays.log_density(x, y)) - evidence(
            model.own[k, variable], x, y, weights
        )
        if k != regime and more - prior > 0.0:
            joined.append(k)
            gain += more - prior
    return Split(gain, found.share * free[rows]), rows, tuple(joined)


def _rows(problem: Problem, state: State, variable: int, rows: NDArray[np.int64], staying: Array) -> _Rows:
    return _Rows(
        state.model.inputs(problem.z, variable)[rows],
        np.ascontiguousarray(problem.z[rows, variable]),
        state.following(variable)[rows],
        problem.units.pooled.take(rows),
        staying[rows],
    )


def _two(
    problem: Problem,
    family: FamilyOfVariable,
    fits: Fits,
    rows: _Rows,
    share: Array,
    steps: int,
    start: Mechanism,
) -> _Parted:
    """EM of two mechanisms in one variable: that of most rows, and the one that an intervention put in its place.

    The mechanism of the remaining rows is refitted in every step, and chosen anew in the last: it may be simpler than
    before.
    """
    x, y, weights, units, _ = rows
    counted, staying = rows.counted[2], rows.staying_counted[2]
    value, total, stays, paid = -np.inf, float(counted.sum()), start, 0.0
    for step in range(steps):
        leaving = counted * share
        count = float(leaving.sum())
        if min(count, total - count) < problem.min_rows:
            break
        fit: Callable[..., Any] = fits.fit if step == steps - 1 else fits.refit
        remaining = counted - leaving + staying
        stays = fit(*rows_that_count(x, y, remaining), stays)
        some = leaving > FAMILY_FAINT
        leaves = family.intervene(x[some], y[some], leaving[some], stays, imperfect=problem.imperfect)
        cost = stays.n_parameters * np.log(remaining.sum()) + leaves.n_parameters * np.log(count)
        units_leaving, all_units = float(units.total(weights * share)), float(units.total(weights))
        parts = np.array([1.0 - units_leaving / all_units, units_leaving / all_units])
        densities = np.column_stack([stays.log_density(x, y), leaves.log_density(x, y)])
        kept = float(staying @ densities[:, 0])
        found = units.assign(densities, Prior(parts))  # uses their record of fits
        paid = 0.5 * float(cost) + 0.5 * float(np.log(all_units))
        value = kept + float(weights @ found.log_likelihood) - paid
        share = found.responsibilities[:, 1].copy()
    return _Parted(value, share, stays, paid)
