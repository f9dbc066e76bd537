"""Splitting a regime in two by one variable, with mechanisms of a family on both sides.

Noise of any shape may have absorbed an intervention. So what stays is fitted without those who leave, where
:mod:`.splits` sets a line beside what all rows follow now.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from latentdo.model.mechanisms.base import Mechanism
from latentdo.model.mechanisms.family import RowFamily, evidence
from latentdo.solvers.search.splits import Split, guesses
from latentdo.solvers.search.weighted_rows import Array, rows_that_count
from latentdo.solvers.settings import FAMILY_FAINT, FAMILY_GLANCE, FAMILY_SPLIT_STEPS, PROBE_ROWS

if TYPE_CHECKING:
    from latentdo.solvers.search.problem import Problem
    from latentdo.solvers.search.rows import RowLearner
    from latentdo.solvers.search.state import State


class _Rows(NamedTuple):
    """Parents, values and weights of some rows."""

    x: Array
    y: Array
    weights: Array

    def every(self, step: int) -> _Rows:
        """Only every so many."""
        return _Rows(self.x[::step], self.y[::step], self.weights[::step])


def split_by_family(
    problem: Problem,
    state: State,
    regime: int,
    variable: int,
    rows: NDArray[np.int64],
    learner: RowLearner,
) -> Split | None:
    """The best split of some rows of a regime; it is found on some of the rows and carried to all."""
    everyone = _Rows(
        state.model.inputs(problem.z, variable)[rows],
        np.ascontiguousarray(problem.z[rows, variable]),
        state.responsibilities[rows, regime],
    )
    few = everyone.every(-(-rows.size // PROBE_ROWS))
    fits = learner.fits(state.model.parents[variable])
    whole = fits.fit(*rows_that_count(*few), state.model.mechanism(variable, regime))
    now = evidence(whole, *few)
    best = Split(0.0, np.empty(0))
    for guess in [*guesses(whole.log_density(few.x, few.y), few.y), *whole.parts(few.x, few.y)]:
        found = _two(problem, learner.family, fits.refit, few, guess, FAMILY_GLANCE, whole)
        if found.gain - now > best.gain:
            best = Split(found.gain - now, found.share)
    if not best.share.size:
        return None
    followed = _two(problem, learner.family, fits.refit, few, best.share, FAMILY_SPLIT_STEPS, whole)
    # What stays may be simpler than the whole was.
    found = _two(problem, learner.family, fits.fit, few, followed.share, 1, whole)
    if found.gain - now > best.gain:
        best = Split(found.gain - now, found.share)
    share = best.share
    if share.size < rows.size:
        order = np.argsort(few.y)
        place = np.searchsorted(few.y[order], everyone.y).clip(0, order.size - 1)
        share = _two(problem, learner.family, fits.fit, everyone, share[order[place]], 1, whole).share
    return Split(best.gain * float(everyone.weights.sum() / few.weights.sum()), share)


def _two(
    problem: Problem,
    family: type[RowFamily],
    fit: Callable[..., Any],
    rows: _Rows,
    share: Array,
    steps: int,
    start: Mechanism,
) -> Split:
    """EM of two mechanisms in one variable: what most rows follow, and what an intervention put in its place."""
    x, y, weights = rows
    value, total = -np.inf, float(weights.sum())
    for _ in range(steps):
        leaving = weights * share
        count = float(leaving.sum())
        if min(count, total - count) < problem.min_rows:
            break
        stays = fit(*rows_that_count(x, y, weights - leaving), start)
        some = leaving > FAMILY_FAINT
        leaves = family.intervene(x[some], y[some], leaving[some], stays, imperfect=problem.imperfect)
        log_odds = leaves.log_density(x, y) - stays.log_density(x, y) + np.log(count / (total - count))
        terms = stays.log_density(x, y) + np.log1p(-count / total) + np.logaddexp(0.0, log_odds)
        cost = stays.n_parameters * np.log(total - count) + leaves.n_parameters * np.log(count)
        value = float(weights @ terms) - 0.5 * float(cost) - 0.5 * float(np.log(total))
        share = expit(log_odds)
    return Split(value, share)
