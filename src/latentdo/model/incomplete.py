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

What discrete columns give to their children (:mod:`.mechanisms.inputs`) has lines, too, so that a category or a count
that is seen suggests values of what is missing. A discrete cell that is missing itself is summed out of these lines. A
level is then suggested by its probability given all that is seen or suggested before, a count by its own mechanism; and
every second value by chances that leave out nothing, since what is not yet known may contradict the rest. Each of the
values of a row stands for an equal share of these chances (a Latin hypercube), so that levels hardly vary.

A missing cell from which nothing follows that is seen is *barren*: its equation integrates to one whatever it is, so
that it is left out, and drawn from its mechanism when the rest is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp, softmax

from latentdo.graphs import topological_order
from latentdo.model.assignment import SEPARATE, Assignment, Units
from latentdo.model.fitted import FittedModel
from latentdo.model.mechanisms.base import LinearForm, Mechanism
from latentdo.model.mechanisms.inputs import Inputs
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
                numbers = Numbers.draw(1, lines, np.random.default_rng(0))
                out[some, regime] = Particles.of(lines, z[some], numbers).log_density
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
                numbers = Numbers.draw(some.size, lines, rng)
                filled[some] = Particles.of(lines, z[some], numbers).draw(rng)
    for j in topological_order(model.topology.adjacency):
        for regime in np.unique(regimes[left := np.isnan(filled[:, j])]):
            rows = np.flatnonzero(left & (regimes == regime))
            filled[rows, j] = model.draw_variable(filled[rows], j, int(regime), rng)
    return filled


def _split(z: Array, n_variables: int) -> tuple[Array, Array | None]:
    """The variables' columns of rows, and their offset if they have one."""
    return z[:, :n_variables], z[:, n_variables] if z.shape[1] > n_variables else None


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

    Barren cells are not among them: whatever they are, the rest is the same. Nor are discrete ones, which are summed
    out.
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
    inputs : Inputs
        What variables give to their children: *q* columns, one per variable unless it has levels.
    whitener : ndarray [q, q]
        Every row is the equation of such a column in units of its noise.
    constants : ndarray [q]
        What is taken away, in the same units.
    exact : bool
        Whether the mechanisms are such lines, and not only alike in mean and variance.
    """

    model: FittedModel
    regime: int
    inputs: Inputs
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
        inputs = Inputs.of_laws(model.reference)
        expanded = None if sample is None else inputs.expand(*_split(sample, d))
        q = int(inputs.widths.sum())
        whitener, constants = np.eye(q), np.empty(q)
        for j, (mechanism, parents) in enumerate(zip(mechanisms, model.parents, strict=True)):
            causes, form = inputs.columns(parents), mechanism.linear_form
            for column in inputs.columns(np.array([j])):
                coefficients, variance = _line(expanded, column, causes) if form is None else form
                whitener[column, causes[: coefficients.size - 1]] = -coefficients[1:]
                # A level that hardly varies in draws may vary in rows.
                floor = VARIANCE_FLOOR if mechanism.n_levels is None else 1.0 / SAMPLE
                scale = np.sqrt(max(variance, floor))
                whitener[column] /= scale
                constants[column] = coefficients[0] / scale
        exact = all(_is_gaussian_line(one) for one in mechanisms)
        return cls(model, regime, inputs, whitener, constants, exact)

    def mechanism(self, variable: int) -> Mechanism:
        """The mechanism itself of a variable in this regime."""
        return self.model.mechanism(variable, self.regime)

    @cached_property
    def discrete(self) -> NDArray[np.bool_]:
        """Which variables have probabilities, ``[d]``."""
        return np.array([one.n_levels is not None for one in self.model.reference])

    def patterns(self, z: Array) -> Iterator[Pattern]:
        """Rows ``z [n, d]`` by the cells that are missing (NaN) in them."""
        values, offset = _split(z, len(self.discrete))
        missing, columns = np.isnan(values), self.inputs.expand(values, offset)
        widths, discrete = self.inputs.widths, np.repeat(self.discrete, self.inputs.widths)
        kinds, which = np.unique(missing, axis=0, return_inverse=True)
        order = np.argsort(which.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(which.ravel(), minlength=len(kinds)))
        barren = _barren(self.model, kinds)
        for kind, idle, rows in zip(kinds, barren, np.split(order, ends[:-1]), strict=True):
            unknown, seen, equations = (
                np.flatnonzero(np.repeat(one, widths)) for one in (kind & ~idle, ~kind, ~idle)
            )
            # The last ones have the lower right corner of the root to themselves: the others are then summed out.
            unknown = unknown[np.argsort(~discrete[unknown], kind="stable")]
            whitener = self.whitener[equations]
            r = columns[np.ix_(rows, seen)] @ whitener[:, seen].T - self.constants[equations]
            q, root = np.linalg.qr(whitener[:, unknown])
            inner = r @ q
            level = float(np.log(np.diag(self.whitener)[equations]).sum())
            outer = r - inner @ q.T
            rest = level - 0.5 * ((outer**2).sum(axis=1) + seen.size * LOG_2PI)
            cells = np.flatnonzero(kind & ~idle & ~self.discrete)
            centre, first = -np.linalg.solve(root, inner.T).T, unknown.size - cells.size
            rest -= np.log(np.abs(np.diag(root))).sum()
            yield Pattern(rows, cells, centre[:, first:], root[first:, first:], rest)

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
    def of(cls, lines: Lines, z: Array, numbers: Numbers) -> Particles:
        """Values that ``lines`` suggest for rows ``z [n, d]``, weighed by the mechanisms of their regime."""
        standard, stretch, uniform = numbers
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
        for j in topological_order(model.topology.adjacency):
            unknown = np.flatnonzero(missing[:, j] & counts[:, j] & lines.discrete[j])
            if unknown.size:
                own = uniform[:, :, j] if len(uniform) == 1 else uniform[unknown, :, j]
                shares = np.broadcast_to(own, (unknown.size, PARTICLES)).ravel()
                suggest = _suggest_level if lines.mechanism(j).n_levels else _suggest_count
                drawn, log_chance = suggest(lines, j, values[unknown].reshape(-1, z.shape[1]), shares)
                values[unknown, :, j] = drawn.reshape(-1, PARTICLES)
                log_weights[unknown] -= log_chance.reshape(-1, PARTICLES)
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


class Numbers(NamedTuple):
    """The chance in what is suggested, for all rows the same or for each its own.

    ``standard [n or 1, S, d]`` are Gaussian numbers, ``stretch [n or 1, S]`` says how far to stretch them so that they
    have the tails of Student's, and ``uniform [n or 1, S, d]`` are numbers from 0 to 1, one in every interval of 1 / S.
    """

    standard: Array
    stretch: Array
    uniform: Array

    @classmethod
    def draw(cls, n: int, lines: Lines, rng: np.random.Generator) -> Numbers:
        """Those of ``n`` rows."""
        shape = (n, PARTICLES, len(lines.discrete))
        standard, stretch = rng.standard_normal(shape), np.sqrt(TAILS / rng.chisquare(TAILS, shape[:2]))
        if not lines.discrete.any():
            return cls(standard, stretch, np.empty(shape))
        places = rng.random(shape).argsort(axis=1)
        return cls(standard, stretch, (places + rng.random(shape)) / PARTICLES)


def _suggest_level(lines: Lines, variable: int, z: Array, uniform: Array) -> tuple[Array, Array]:
    """Levels of a variable in rows ``z [n, d]``, and the logarithm of the chance of each, both ``[n]``.

    Half of them by their probability, given parents and children as far as these are known; half of them any level.
    """
    model, z, n_levels = lines.model, z.copy(), lines.mechanism(variable).n_levels
    assert n_levels
    joint = np.empty((n_levels, len(z)))
    for level in range(n_levels):
        z[:, variable] = level
        joint[level] = model.log_density_under(z, variable, lines.mechanism(variable))
        for child in np.flatnonzero(model.topology.adjacency[variable]).tolist():
            known = ~np.isnan(z[:, [child, *model.parents[child]]]).any(axis=1)
            joint[level, known] += model.log_density_under(z[known], child, lines.mechanism(child))
    chances = 0.5 * softmax(joint, axis=0) + 0.5 / n_levels
    level = (np.cumsum(chances[:-1], axis=0) < uniform).sum(axis=0)
    return level.astype(np.float64), np.log(chances[level, np.arange(len(z))])


def _suggest_count(lines: Lines, variable: int, z: Array, uniform: Array) -> tuple[Array, Array]:
    """The same of a count: half of them by its mechanism, half of them by a geometric law that reaches further."""
    mechanism, x = lines.mechanism(variable), lines.model.inputs(z, variable)
    usual, share = uniform < 0.5, 2.0 * uniform % 1.0  # noqa: PLR2004  (half of them)
    log_more = -np.log1p(1.0 / (mechanism.quantile(x, np.full(len(x), 0.5)) + 1.0))
    value = np.where(usual, mechanism.quantile(x, share), np.floor(np.log1p(-share) / log_more))
    log_geometric = np.log(-np.expm1(log_more)) + value * log_more
    return value, np.logaddexp(mechanism.log_density(x, value), log_geometric) - np.log(2.0)


def _log_student(away: Array) -> Array:
    """Log-density of Student's distribution of unit scale at ``[..., m]``."""
    m = away.shape[-1]
    level = gammaln(0.5 * (TAILS + m)) - gammaln(0.5 * TAILS) - 0.5 * m * np.log(TAILS * np.pi)
    return np.asarray(level - 0.5 * (TAILS + m) * np.log1p((away**2).sum(axis=-1) / TAILS))


def _line(sample: Array | None, column: int, causes: NDArray[np.int64]) -> LinearForm:
    """The line through draws of a regime, ``[SAMPLE, q]``."""
    assert sample is not None
    design = np.column_stack([np.ones(len(sample)), sample[:, causes]])
    coefficients = np.asarray(np.linalg.lstsq(design, sample[:, column], rcond=None)[0], dtype=np.float64)
    return LinearForm(coefficients, float(np.var(sample[:, column] - design @ coefficients)))


def _is_gaussian_line(mechanism: Mechanism) -> bool:
    return isinstance(mechanism, LinearMechanism) and mechanism.is_plain
