r"""What limits and zeros hide, filled in before a fit.

A value at a detection limit lies somewhere beyond it, and a zero where others are not may stand for any value. Both are
drawn from their distribution given the other columns of the row, which is that of a Gaussian, or of a mixture of
Gaussians,

.. math:: z_{ij} \sim p(z_{ij} \mid z_{i,-j}, z_{ij} \text{ beyond its limit}),

in turns with the parameters of that distribution. A filled table has neither point masses on which a density could
collapse, nor a preferred direction of causes and effects, and every solver can fit it.

Hidden interventions must show where nothing suggests them: values are first filled in by one Gaussian, as if there were
none. Only if the fit finds some all the same are they filled in by a mixture, which keeps regimes apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from latentdo.data import Dataset
from latentdo.data.atoms import Side, at
from latentdo.model.assignment import SEPARATE, Units
from latentdo.model.fitted import FittedModel
from latentdo.notices import ignoring_in_sklearn
from latentdo.solvers.settings import (
    FILLING_DRAWS,
    FILLING_MIXTURE,
    FILLING_RIDGE,
    FILLING_ROUNDS,
    FILLING_ROWS,
    FILLING_STARTS,
    FILLING_STEPS,
    FILLING_SWEEPS,
    TINY,
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
    z = dataset.z.copy()
    hidden = []
    for j, masses in enumerate(dataset.atoms.masses):
        for mass in masses:
            rows = np.flatnonzero(at(dataset.x[:, j], mass.value))
            hidden.append(Hidden(j, rows, float(z[rows[0], j]), mass.side))
    rng = np.random.default_rng([random_state, *b"hidden"])
    with threadpool_limits(limits=1), ignoring_in_sklearn(ConvergenceWarning):
        _begin(z, hidden, rng)
        _sweep(z, hidden, GaussianMixture(1, reg_covar=FILLING_RIDGE, random_state=0), rng)
        for _ in range(FILLING_ROUNDS if clusters else 0):
            _sweep(z, hidden, _chosen(z), rng)
    filled, x = dataset.preprocessor.inverse(z), dataset.x.copy()
    for j, rows, _, _ in hidden:
        x[rows, j] = filled[rows, j]
    return replace(dataset, x=x)


def responsibilities_of_seen(
    model: FittedModel, z: Array, hidden: NDArray[np.bool_], units: Units = SEPARATE
) -> Array:
    """Responsibilities ``[n, K]`` of rows by what is not ``hidden [n, d]`` of them.

    Where something is, the density of the rest is that of a Gaussian with the moments of the regime.
    """
    out = model.log_density(z)
    rng, prior = np.random.default_rng(0), model.prior
    rows = np.flatnonzero(hidden.any(axis=1))
    if not rows.size:
        return units.assign(out, prior).responsibilities
    draws = [model.sample(FILLING_DRAWS, k, rng) for k in range(prior.weights.size)]
    patterns, which = np.unique(hidden[rows], axis=0, return_inverse=True)
    for place, pattern in enumerate(patterns):
        mine, seen = rows[which.ravel() == place], np.flatnonzero(~pattern)
        density = np.zeros((mine.size, prior.weights.size))
        for k, drawn in enumerate(draws if seen.size else []):
            spread = np.cov(drawn[:, seen].T).reshape(seen.size, seen.size)
            ridge = FILLING_RIDGE * np.eye(seen.size)
            density[:, k] = multivariate_normal(drawn[:, seen].mean(axis=0), spread + ridge).logpdf(
                z[mine][:, seen]
            )
        out[mine] = density
    return units.assign(out, prior).responsibilities


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
