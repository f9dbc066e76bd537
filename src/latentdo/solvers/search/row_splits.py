"""Splitting the followers of a mechanism in two, with mechanisms of a family on both sides.

Noise of any shape may have absorbed an intervention. So what stays is fitted without those who leave, where
:mod:`.splits` sets a line beside what all rows follow now.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentdo.model.assignment import Prior, Units
from latentdo.model.mechanisms.base import Mechanism
from latentdo.model.mechanisms.family import Fits, RowFamily, evidence
from latentdo.solvers.search.splits import Split, guesses
from latentdo.solvers.search.weighted_rows import Array, rows_that_count
from latentdo.solvers.settings import FAMILY_FAINT, FAMILY_GLANCE, FAMILY_SPLIT_STEPS, PROBE_ROWS

if TYPE_CHECKING:
    from latentdo.solvers.search.problem import Problem
    from latentdo.solvers.search.rows import RowLearner
    from latentdo.solvers.search.state import State


class _Rows(NamedTuple):
    """Parents, values and weights of some rows, and how they belong together."""

    x: Array
    y: Array
    weights: Array
    units: Units

    def some(self, limit: int) -> _Rows:
        """Only so many."""
        at = self.units.thin(np.arange(self.y.size), limit)
        return _Rows(self.x[at], self.y[at], self.weights[at], self.units.take(at))


def split_by_family(
    problem: Problem,
    state: State,
    variable: int,
    rows: NDArray[np.int64],
    learner: RowLearner,
) -> Split | None:
    """The best split of some rows that follow the reference mechanism of a variable, whatever their regimes.

    It is found on some of the rows and carried to all.
    """
    model = state.model
    everyone = _Rows(
        model.inputs(problem.z, variable)[rows],
        np.ascontiguousarray(problem.z[rows, variable]),
        state.following(variable)[rows],
        problem.units.pooled.take(rows),
    )
    few = everyone.some(PROBE_ROWS)
    fits = learner.fits(model.parents[variable])
    whole = fits.fit(*rows_that_count(*few[:3]), model.reference[variable])
    now = evidence(whole, *few[:3])
    best = Split(0.0, np.empty(0))
    for guess in [*guesses(whole.log_density(few.x, few.y), few.y, few.units), *whole.parts(few.x, few.y)]:
        found = _two(problem, learner.family, fits, few, guess, FAMILY_GLANCE, whole)
        if found.gain - now > best.gain:
            best = Split(found.gain - now, found.share)
    if not best.share.size:
        return None
    found = _two(problem, learner.family, fits, few, best.share, FAMILY_SPLIT_STEPS, whole)
    if found.gain - now > best.gain:
        best = Split(found.gain - now, found.share)
    share = best.share
    if share.size < rows.size:
        order = np.argsort(few.y)
        place = np.searchsorted(few.y[order], everyone.y).clip(0, order.size - 1)
        share = _two(problem, learner.family, fits, everyone, share[order[place]], 1, whole).share
    return Split(best.gain * float(everyone.weights.sum() / few.weights.sum()), share)


def _two(
    problem: Problem,
    family: type[RowFamily],
    fits: Fits,
    rows: _Rows,
    share: Array,
    steps: int,
    start: Mechanism,
) -> Split:
    """EM of two mechanisms in one variable: what most rows follow, and what an intervention put in its place.

    What stays follows the rows, and is fitted with care in the last step: it may be simpler than the whole was.
    """
    x, y, weights, units = rows
    value, total = -np.inf, float(weights.sum())
    for step in range(steps):
        leaving = weights * share
        count = float(leaving.sum())
        if min(count, total - count) < problem.min_rows:
            break
        fit: Callable[..., Any] = fits.fit if step == steps - 1 else fits.refit
        stays = fit(*rows_that_count(x, y, weights - leaving), start)
        some = leaving > FAMILY_FAINT
        leaves = family.intervene(x[some], y[some], leaving[some], stays, imperfect=problem.imperfect)
        cost = stays.n_parameters * np.log(total - count) + leaves.n_parameters * np.log(count)
        units_leaving, all_units = float(units.total(leaving)), float(units.total(weights))
        parts = np.array([1.0 - units_leaving / all_units, units_leaving / all_units])
        densities = np.column_stack([stays.log_density(x, y), leaves.log_density(x, y)])
        found = units.assign(densities, Prior(parts))
        value = float(weights @ found.log_likelihood) - 0.5 * float(cost) - 0.5 * float(np.log(all_units))
        share = found.responsibilities[:, 1].copy()
    return Split(value, share)
