r"""What limits and zeros hide, filled in before a fit.

A value at a detection limit lies somewhere beyond it, and a zero where others are not may stand for any value. Both are
drawn from their distribution given the other columns of the row, which is that of a Gaussian, or of a mixture of
Gaussians,

.. math:: z_{ij} \sim p(z_{ij} \mid z_{i,-j}, z_{ij} \text{ beyond its limit}),

in turns with the parameters of that distribution. Discrete columns take part as what they give to their children
(:mod:`latentdo.model.mechanisms.inputs`), and a draw in their place becomes the nearest level or count. A filled table
has neither point masses on which a density could collapse, nor a preferred direction of causes and effects, and every
solver can fit it.

Hidden interventions must show where nothing suggests them: values are first filled in by one Gaussian, as if there were
none. Only if the fit finds some all the same are they filled in by a mixture, which keeps regimes apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from latentdo.data import Dataset
from latentdo.data.atoms import Side, at
from latentdo.data.background import BATCH_ROWS
from latentdo.model.incomplete import assign_seen, draw_missing
from latentdo.model.mechanisms.inputs import Inputs
from latentdo.notices import ignoring_in_sklearn
from latentdo.result import FitResult
from latentdo.solvers.search.driver import units_of
from latentdo.solvers.settings import (
    FILLING_MIXTURE,
    FILLING_RIDGE,
    FILLING_ROUNDS,
    FILLING_ROWS,
    FILLING_STARTS,
    FILLING_STEPS,
    FILLING_SWEEPS,
    TINY,
    WHOLE_ROWS,
)

Array = NDArray[np.float64]


class Hidden(NamedTuple):
    """Rows of a variable that share a value: ``side`` says on which side of it they were, 0 if on either."""

    variable: int
    rows: NDArray[np.int64]
    value: float
    side: Side


def fill(dataset: Dataset, random_state: int, *, clusters: bool = False) -> Dataset:
    """The same table with other values in the place of limits and zeros.

    Parameters
    ----------
    dataset : Dataset
        Whose ``atoms`` say where.
    random_state : int
        Seed of the draws.
    clusters : bool
        Whether to draw from a mixture of Gaussians, their number chosen by the Schwarz criterion, or from one.
    """
    inputs = Inputs.of(dataset.kinds, dataset.z, dataset.offset)
    z = inputs.expand(dataset.z, dataset.offset).copy()
    hidden = []
    for j, masses in enumerate(dataset.atoms.masses):
        own = inputs.columns(np.array([j]))
        for mass in masses:
            rows = np.flatnonzero(at(dataset.x[:, j], mass.value))
            hidden.append(Hidden(int(own[0]), rows, float(z[rows[0], own[0]]), mass.side))
        if dataset.missing[:, j].any():
            rows = np.flatnonzero(dataset.missing[:, j])
            hidden += [Hidden(int(column), rows, np.nan, 0) for column in own]
    rng = np.random.default_rng([random_state, *b"hidden"])
    with threadpool_limits(limits=1), ignoring_in_sklearn(ConvergenceWarning):
        _begin(z, hidden, rng)
        _sweep(z, hidden, GaussianMixture(1, reg_covar=FILLING_RIDGE, random_state=0), rng)
        for _ in range(FILLING_ROUNDS if clusters else 0):
            _sweep(z, hidden, _chosen(z), rng)
    values = inputs.contract(z, dataset.kinds, dataset.offset)
    filled, x = dataset.preprocessor.inverse(values), dataset.x.copy()
    variable = np.repeat(np.arange(dataset.n_variables), inputs.widths)
    for column, rows, _, _ in hidden:
        x[rows, variable[column]] = filled[rows, variable[column]]
    return replace(dataset, x=x)


def whole_rows_suffice(dataset: Dataset) -> bool:
    """Whether the rows of which all is seen can say something on their own, of every label and batch that there is.

    In order of time they cannot: a row may depend on the one before.
    """
    whole = ~dataset.missing.any(axis=1)
    if dataset.time is not None or whole.sum() < WHOLE_ROWS * dataset.n_variables:
        return False
    for codes in (dataset.regimes, dataset.where.batch):
        if codes is not None:
            named = codes >= 0
            kept = np.bincount(codes[named & whole], minlength=codes.max() + 1)
            if (kept[codes[named]] < BATCH_ROWS).any():
                return False
    return True


def pairs_seen(missing: NDArray[np.bool_]) -> float:
    """Share of the rows in which two cells are seen, on average: elsewhere they say nothing of each other.

    A table that was filled in looks as if all of them did, and its probabilities would be too sure.
    """
    n, d = missing.shape
    seen = (~missing).astype(np.float64)
    if d == 1:
        return float(max(seen.mean(), 1.0 / n))
    both = seen.T @ seen
    return float(max((both.sum() - both.trace()) / (n * d * (d - 1)), 1.0 / n))


def redraw(dataset: Dataset, filled: Dataset, found: FitResult, random_state: int) -> Dataset:
    """The same table with missing cells drawn from a fit, given what is seen of their rows.

    What the past and batches explain is taken away as in ``filled``, the table that was fitted, whose limits and zeros
    stay filled in as they are.
    """
    rng = np.random.default_rng([random_state, *b"missing"])
    rows = found.read(filled.x, dataset.where, units_of(dataset))
    z = rows.without(dataset.missing)
    given = assign_seen(found.model, z, dataset.regimes, rows.units)
    # Rows of a group share their regime, in a draw too.
    members = np.arange(len(z)) if dataset.groups is None else dataset.groups
    chance = rng.random(members.max() + 1)[members, None]
    regimes = (given.responsibilities.cumsum(axis=1) < chance).sum(axis=1)
    drawn = draw_missing(found.model, z, np.minimum(regimes, found.n_regimes - 1), rng)[
        :, : dataset.n_variables
    ]
    x = found.preprocessor.inverse(drawn * rows.unit + rows.expected)
    return replace(filled, x=np.where(dataset.missing, x, filled.x))


def fill_again(dataset: Dataset, found: FitResult, random_state: int) -> Dataset:
    """The same table without rounding, limits, zeros and missing cells, as a fit of it may have seen it."""
    rows = dataset.spread(random_state)
    if rows.atoms.has_masses or rows.missing.any():
        rows = fill(rows, random_state, clusters=found.n_regimes > 1)
    return redraw(dataset, rows, found, random_state) if dataset.missing.any() else rows


def by_what_is_seen(dataset: Dataset, filled: Dataset, found: FitResult) -> FitResult:
    """A fit to a ``filled`` table with responsibilities and evidence of what is seen: draws are no measurements."""
    rows = found.read(filled.x, dataset.where, units_of(dataset))
    given = assign_seen(found.model, rows.without(dataset.missing), dataset.regimes, rows.units)
    drawn = found.model.assign(rows.z, dataset.regimes, rows.units)
    units = np.where(dataset.missing, np.log(rows.unit), 0.0).sum(axis=1)
    extra = float((given.log_likelihood - drawn.log_likelihood + rows.units.counted(units)).sum())
    return replace(
        found,
        responsibilities=given.responsibilities,
        groups=dataset.groups,
        where=dataset.where,
        evidence=found.evidence + extra,
        evidence_terms={**found.evidence_terms, "missing cells": extra},
        comparison=tuple({**one, "evidence": one["evidence"] + extra} for one in found.comparison),
    )


def _begin(z: Array, hidden: list[Hidden], rng: np.random.Generator) -> None:
    """Values like those of other rows, or a little beyond the limit."""
    known = np.ones(z.shape, dtype=bool)
    for j, rows, _, _ in hidden:
        known[rows, j] = False
    for j, rows, value, side in hidden:
        rest = z[known[:, j], j]
        if side:
            z[rows, j] = value + side * rest.std() * rng.exponential(0.5, rows.size)
        else:
            z[rows, j] = rng.choice(rest, rows.size)


def _chosen(z: Array) -> GaussianMixture:
    """The mixture with as many Gaussians as the Schwarz criterion wants."""
    some = z[:: -(-len(z) // FILLING_ROWS)]
    fits = [
        GaussianMixture(k, n_init=FILLING_STARTS, reg_covar=FILLING_RIDGE, random_state=0).fit(some)
        for k in range(1, FILLING_MIXTURE + 1)
    ]
    return min(fits, key=lambda fit: fit.bic(some))


def _sweep(z: Array, hidden: list[Hidden], mixture: GaussianMixture, rng: np.random.Generator) -> None:
    """Draw hidden values and fit the mixture by turns, in place."""
    some = slice(None, None, -(-len(z) // FILLING_ROWS))
    mixture.set_params(warm_start=True, max_iter=FILLING_STEPS, n_init=1)
    for _ in range(FILLING_SWEEPS):
        mixture.fit(z[some])
        chance = mixture.predict_proba(z).cumsum(axis=1)
        member = (rng.random((len(z), 1)) * chance[:, -1:] > chance).sum(axis=1)
        for one in hidden:
            for k in range(mixture.n_components):
                rows = one.rows[member[one.rows] == k]
                given = _Conditional(mixture.means_[k], mixture.precisions_[k], one.variable)
                z[rows, one.variable] = given.draw(z[rows], one, rng)


@dataclass(frozen=True, eq=False)
class _Conditional:
    """Distribution of one variable given the others under a Gaussian."""

    mean: Array
    precision: Array
    variable: int

    def draw(self, z: Array, hidden: Hidden, rng: np.random.Generator) -> Array:
        """One value per row, beyond the limit if there is one."""
        j = self.variable
        others = np.delete(np.arange(len(self.mean)), j)
        pull = (z[:, others] - self.mean[others]) @ self.precision[others, j]
        centre = self.mean[j] - pull / self.precision[j, j]
        scale, uniform = 1.0 / np.sqrt(self.precision[j, j]), rng.random(len(z))
        if not hidden.side:
            return np.asarray(centre + scale * ndtri(uniform))
        beyond = ndtr(-hidden.side * (hidden.value - centre) / scale)
        drawn = centre - hidden.side * scale * ndtri(np.maximum(uniform * beyond, TINY))
        # Where hardly anything is beyond, numbers end before the limit does.
        return np.asarray(hidden.side * np.maximum(hidden.side * drawn, hidden.side * hidden.value))
