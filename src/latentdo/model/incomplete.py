r"""Rows of which some cells are missing: their density with these summed out, and draws of what they may have been.

Given the regime, a row of straight lines with Gaussian noise is Gaussian. In units of its noise every equation is
:math:`(z_j - c_j - \sum_i b_{ij} z_i) / \sigma_j`, together :math:`r + W_m z_m` with a part :math:`r` of the seen cells
and a matrix :math:`W_m` of the missing ones. With :math:`W_m = Q R`,

.. math::
    \log p(z_o) = -\tfrac12 \lVert r - Q Q^\top r \rVert^2 - \log \lvert R \rvert - \sum_j \log \sigma_j
        - \tfrac{\lvert o \rvert}{2} \log 2 \pi, \qquad
    z_m \mid z_o \sim N(-R^{-1} Q^\top r, \; R^{-1} R^{-\top}),

which needs no covariance matrix, and so no inverse of one that is nearly singular where noise is small.

Other mechanisms have no formula. Their lines of the same means and variances suggest values of the missing cells, with
heavier tails, and each value is weighted by its density under the mechanisms themselves (importance sampling); the mean
of the weights is the density, and a value drawn by its weight is a draw. Nothing is asked of mechanisms but their
density, so that any family will do.

A missing cell from which nothing follows that is seen is *barren*: its equation integrates to one whatever it is, so
that it is left out, and drawn from its mechanism when the rest is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from latentdo.graphs import topological_order
from latentdo.model.assignment import SEPARATE, Assignment, Units
from latentdo.model.fitted import FittedModel
from latentdo.model.mechanisms.base import LinearForm, Mechanism
from latentdo.model.mechanisms.linear import LinearMechanism
from latentdo.model.mechanisms.noise import LOG_2PI, VARIANCE_FLOOR

Array = NDArray[np.float64]

PARTICLES: Final = 64
"""Values that are weighted for every row and regime; the logarithm of the density is then right to about 0.1."""

TAILS: Final = 5.0
"""Degrees of freedom of what suggests them: heavier tails than any noise that is fitted, lest a few weights be all."""

SAMPLE: Final = 4000
"""Draws of a regime that give the line of a mechanism without an equation."""

CELLS: Final = 4_000_000
"""Numbers that are weighted at a time, for memory."""


def observed_log_density(model: FittedModel, z: Array) -> Array:
    """``log p(seen cells | regime)``, ``[n, n_regimes]``, of rows ``z [n, d]`` with NaN where a cell is missing.

    A row of which nothing is seen has 0 in every regime: it says nothing. A row's density does not depend on others.
    """
    missing = np.isnan(z)
    rows = np.flatnonzero(missing.any(axis=1))
    whole = np.flatnonzero(~missing.any(axis=1))
    out = np.zeros((len(z), model.topology.n_regimes))
    out[whole] = model.log_density(np.ascontiguousarray(z[whole]))
    for regime in range(model.topology.n_regimes if rows.size else 0):
        lines = Lines.of(model, regime)
        for some in _blocks(rows, z.shape[1]):
            if lines.exact:
                out[some, regime] = lines.log_density(z[some])
            else:
                # The same numbers for every row: what is said of one must not depend on who comes with it.
                numbers = _numbers(1, z.shape[1], np.random.default_rng(0))
                out[some, regime] = Particles.of(lines, z[some], *numbers).log_density
    return out


def assign_seen(
    model: FittedModel, z: Array, labels: NDArray[np.int64] | None = None, units: Units = SEPARATE
) -> Assignment:
    """The E-step by what is seen of rows: responsibilities, and log-likelihoods with missing cells summed out."""
    return units.assign(observed_log_density(model, z), model.prior, labels)


def draw_missing(model: FittedModel, z: Array, regimes: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """The rows with a draw in the place of every missing cell, given the seen ones and the ``regimes [n]``."""
    filled = z.copy()
    missing = np.isnan(z).any(axis=1)
    for regime in np.unique(regimes[missing]):
        lines = Lines.of(model, int(regime))
        for some in _blocks(np.flatnonzero(missing & (regimes == regime)), z.shape[1]):
            if lines.exact:
                filled[some] = lines.draw(z[some], rng)
            else:
                numbers = _numbers(some.size, z.shape[1], rng)
                filled[some] = Particles.of(lines, z[some], *numbers).draw(rng)
    for j in topological_order(model.topology.adjacency):
        for regime in np.unique(regimes[left := np.isnan(filled[:, j])]):
            rows = np.flatnonzero(left & (regimes == regime))
            filled[rows, j] = model.draw_variable(filled[rows], j, int(regime), rng)
    return filled


def _barren(model: FittedModel, missing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Missing cells from which nothing follows that is seen, ``[n, d]``: their equations say nothing of the others."""
    found = missing.copy()
    for j in reversed(topological_order(model.topology.adjacency)):
        found[:, j] &= found[:, np.flatnonzero(model.topology.adjacency[j])].all(axis=1)
    return found


def _blocks(rows: NDArray[np.int64], n_variables: int) -> Iterator[NDArray[np.int64]]:
    """As many of the rows at a time as memory allows."""
    size = max(CELLS // (PARTICLES * n_variables), 1)
    return (rows[first : first + size] for first in range(0, rows.size, size))


class Pattern(NamedTuple):
    """Rows that lack the same cells: their places, the cells, and the Gaussian of these given the others.

    Barren cells are not among them: whatever they are, the rest is the same.
    ``centre [n, m]`` are its means, ``root [m, m]`` the triangular :math:`R` of its precision :math:`R^T R`, and
    ``rest [n]`` is the logarithm of the density of what is seen.
    """

    rows: NDArray[np.int64]
    cells: NDArray[np.int64]
    centre: Array
    root: Array
    rest: Array

    @property
    def log_root(self) -> float:
        """Logarithm of the root of the determinant of the precision."""
        return float(np.log(np.abs(np.diag(self.root))).sum())

    def spread(self, standard: Array) -> Array:
        """What numbers ``[..., m]`` of unit variance stand for, from the centre."""
        if not self.cells.size:
            return standard
        flat = standard.reshape(-1, self.cells.size)
        return np.asarray(np.linalg.solve(self.root, flat.T).T.reshape(standard.shape))


@dataclass(frozen=True, eq=False)
class Lines:
    """The mechanisms of a regime as straight lines with Gaussian noise.

    Parameters
    ----------
    model : FittedModel
        Whose regime it is.
    regime : int
        Its number.
    whitener : ndarray [d, d]
        Row *j* is the equation of variable *j* in units of its noise.
    constants : ndarray [d]
        What is taken away, in the same units.
    exact : bool
        Whether the mechanisms are such lines, and not only alike in mean and variance.
    """

    model: FittedModel
    regime: int
    whitener: Array
    constants: Array
    exact: bool

    @classmethod
    def of(cls, model: FittedModel, regime: int) -> Lines:
        """Those of a regime of a model."""
        d = model.topology.n_variables
        mechanisms = [model.mechanism(j, regime) for j in range(d)]
        sample = None
        if any(one.linear_form is None for one in mechanisms):
            sample = model.sample(SAMPLE, regime, np.random.default_rng(0))
        whitener, constants = np.eye(d), np.empty(d)
        for j, (mechanism, parents) in enumerate(zip(mechanisms, model.parents, strict=True)):
            coefficients, variance = _line(model, j, mechanism, sample)
            whitener[j, parents[: coefficients.size - 1]] = -coefficients[1:]
            scale = np.sqrt(max(variance, VARIANCE_FLOOR))
            whitener[j] /= scale
            constants[j] = coefficients[0] / scale
        return cls(model, regime, whitener, constants, all(_is_gaussian_line(one) for one in mechanisms))

    def patterns(self, z: Array) -> Iterator[Pattern]:
        """Rows ``z [n, d]`` by the cells that are missing (NaN) in them."""
        missing = np.isnan(z)
        kinds, which = np.unique(missing, axis=0, return_inverse=True)
        order = np.argsort(which.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(which.ravel(), minlength=len(kinds)))
        barren = _barren(self.model, kinds)
        for kind, idle, rows in zip(kinds, barren, np.split(order, ends[:-1]), strict=True):
            cells, seen, equations = (np.flatnonzero(one) for one in (kind & ~idle, ~kind, ~idle))
            whitener = self.whitener[equations]
            r = z[np.ix_(rows, seen)] @ whitener[:, seen].T - self.constants[equations]
            q, root = np.linalg.qr(whitener[:, cells])
            inner = r @ q
            level = float(np.log(np.diag(self.whitener)[equations]).sum())
            outer = r - inner @ q.T
            rest = level - 0.5 * ((outer**2).sum(axis=1) + seen.size * LOG_2PI)
            pattern = Pattern(rows, cells, -np.linalg.solve(root, inner.T).T, root, rest)
            yield pattern._replace(rest=rest - pattern.log_root)

    def log_density(self, z: Array) -> Array:
        """Logarithm of the density of what is seen of rows, ``[n]``."""
        out = np.empty(len(z))
        for pattern in self.patterns(z):
            out[pattern.rows] = pattern.rest
        return out

    def draw(self, z: Array, rng: np.random.Generator) -> Array:
        """The rows with missing cells drawn given the others."""
        filled = z.copy()
        for pattern in self.patterns(z):
            noise = pattern.spread(rng.standard_normal(pattern.centre.shape))
            filled[np.ix_(pattern.rows, pattern.cells)] = pattern.centre + noise
        return filled


@dataclass(frozen=True, eq=False)
class Particles:
    """Values of missing cells, ``values [n, S, d]`` with the seen ones beside them, and how much each weighs.

    ``log_weights [n, S]`` is the density of the whole row under its mechanisms by that of the suggestion.
    """

    values: Array
    log_weights: Array

    @classmethod
    def of(cls, lines: Lines, z: Array, standard: Array, stretch: Array) -> Particles:
        """Values that ``lines`` suggest for rows ``z [n, d]``, weighed by the mechanisms of their regime.

        ``standard [n or 1, S, d]`` are Gaussian numbers, and ``stretch [n or 1, S]`` makes their tails heavier.
        """
        values = np.repeat(z[:, None], PARTICLES, axis=1)
        log_weights = np.empty((len(z), PARTICLES))
        for pattern in lines.patterns(z):
            rows, cells = pattern.rows, pattern.cells
            mine = rows if len(standard) > 1 else [0]
            away = standard[mine, :, : cells.size] * stretch[mine, :, None]
            place = np.ix_(rows, np.arange(PARTICLES), cells)
            values[place] = pattern.centre[:, None] + pattern.spread(away)
            log_weights[rows] = -_log_student(away) - pattern.log_root
        model, missing = lines.model, np.isnan(z)
        counts = ~_barren(model, missing)
        for j, parents in enumerate(model.parents):
            mechanism = model.mechanism(j, lines.regime)
            varies = counts[:, j] & (missing[:, j] | missing[:, parents].any(axis=1))
            same = np.flatnonzero(counts[:, j] & ~varies)
            log_weights[same] += model.log_density_under(z[same], j, mechanism)[:, None]
            some = values[varies].reshape(-1, z.shape[1])
            log_weights[varies] += model.log_density_under(some, j, mechanism).reshape(-1, PARTICLES)
        return cls(values, np.nan_to_num(log_weights, nan=-np.inf))

    @property
    def log_density(self) -> Array:
        """Logarithm of the density of what is seen of rows, ``[n]``."""
        return np.asarray(logsumexp(self.log_weights, axis=1) - np.log(PARTICLES))

    def draw(self, rng: np.random.Generator) -> Array:
        """One of the values of every row, by their weights, ``[n, d]``."""
        noise = rng.gumbel(size=self.log_weights.shape)
        best = (self.log_weights + noise).argmax(axis=1)
        return np.asarray(self.values[np.arange(len(best)), best])


def _numbers(n: int, d: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Gaussian numbers ``[n, S, d]``, and how far to stretch them so that they have the tails of Student's."""
    return rng.standard_normal((n, PARTICLES, d)), np.sqrt(TAILS / rng.chisquare(TAILS, (n, PARTICLES)))


def _log_student(away: Array) -> Array:
    """Log-density of Student's distribution of unit scale at ``[..., m]``."""
    m = away.shape[-1]
    level = gammaln(0.5 * (TAILS + m)) - gammaln(0.5 * TAILS) - 0.5 * m * np.log(TAILS * np.pi)
    return np.asarray(level - 0.5 * (TAILS + m) * np.log1p((away**2).sum(axis=-1) / TAILS))


def _line(model: FittedModel, variable: int, mechanism: Mechanism, sample: Array | None) -> LinearForm:
    """The equation of a mechanism, or the line through draws of its regime."""
    form = mechanism.linear_form
    if form is not None:
        return form
    assert sample is not None
    design = np.column_stack([np.ones(len(sample)), model.inputs(sample, variable)])
    coefficients = np.asarray(np.linalg.lstsq(design, sample[:, variable], rcond=None)[0], dtype=np.float64)
    return LinearForm(coefficients, float(np.var(sample[:, variable] - design @ coefficients)))


def _is_gaussian_line(mechanism: Mechanism) -> bool:
    return isinstance(mechanism, LinearMechanism) and mechanism.is_plain
