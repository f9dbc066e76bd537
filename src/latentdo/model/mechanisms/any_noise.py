r"""Lines with noise of any shape: a mixture of a few Gaussians, their number chosen by evidence.

Given which Gaussian a residual came from, the likeliest coefficients are a weighted least-squares problem; given the
coefficients, the Gaussians are fitted to a histogram of the residuals (:mod:`.shapes`). Both take turns. Where evidence
pays for it, the scale of the noise grows with the signal, as that of sensors and concentrations does. An intervention
keeps the *shape* of the noise and moves or stretches it, unless a Gaussian of its own fits better: regimes must not be
needed to draw the shape of the noise, and a new regime must not pay for it again.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit
from latentdo.model.mechanisms.base import AdditiveNoise, Array, Mechanism
from latentdo.model.mechanisms.family import RowFamily
from latentdo.model.mechanisms.growth import NO_GROWTH, likeliest_growth, log_scales, n_rises, scales
from latentdo.model.mechanisms.histograms import histogram
from latentdo.model.mechanisms.linear import LinearMechanism
from latentdo.model.mechanisms.noise import ROW, VARIANCE_FLOOR, Noise
from latentdo.model.mechanisms.shapes import (
    MOST_COMPONENTS,
    NARROWEST,
    SHAPE_STEPS,
    UNKNOWN,
    best_move,
    choose_shape,
    climb,
)
from latentdo.model.mechanisms.sharp_ends import fit_row
from latentdo.model.mechanisms.squares import as_scores, as_squares, as_steps
from latentdo.model.regression import regression, wide_gram

TURNS = 2
"""How often coefficients and shape take turns."""

ROW_TURNS = 3
"""The same for noise with sharp ends, before these are brought into focus."""

BLURS = np.array([0.01, 0.005, 0.003])
"""How sharply ends are seen while coefficients settle, as shares of the spread. Coefficients and ends that take turns
get stuck where neither can move alone: on tables with uniform noise, 12 to 36 nats short of the likeliest fit, which
is enough for a wrong cause. Blurred ends leave them room."""

STEPS_A_BLUR = 2
"""Steps of Newton's at each blur; four reach as far."""

HALVINGS = 6
"""How often a step that overshoots is halved."""

GROWTH_TURNS = 2
"""How often coefficients and a scale that follows the signal take turns before the shape of the noise is looked at."""


class Left(NamedTuple):
    """What a regression leaves over, and its signal, both ``[n]``."""

    raw: Array
    signal: Array

    @classmethod
    def by(cls, rows: Array, contrast: Array) -> Self:
        """Of ``rows [n, q]``, ones first and values last, by minus the coefficients of a regression."""
        found = cls(np.empty(len(rows)), np.empty(len(rows)))
        _fill_residuals(rows, contrast, *found)
        return found


class ShapedFit(NamedTuple):
    """Minus the coefficients of a regression, and 1; the shape of its noise, how that grows, and the score of all."""

    contrast: Array
    shape: Array
    growth: Array
    value: float

    @property
    def coefficients(self) -> Array:
        """The constant first."""
        return -self.contrast[:-1]


def next_shape(
    left: Left, weights: Array, shape: Array, growth: Array, error2: float
) -> tuple[Array, float, Array]:
    """The shape with as many Gaussians as before, its score, and growth if there was some."""
    half_log = 0.5 * math.log(max(weights.sum(), 2.0))
    loss = 0.0
    if growth.shape[1]:
        growth, _ = likeliest_growth(*left, weights)
        loss = half_log * n_rises(growth) + float(weights @ log_scales(left.signal, growth))
    bins, mean, spread = histogram(_unscaled(left, growth), weights)
    if shape.shape[1] == ROW:
        shape, value = fit_row(bins, mean, spread, error2)
    else:
        shape = shape.copy()
        value = climb(bins, shape, max((NARROWEST * spread) ** 2, VARIANCE_FLOOR), SHAPE_STEPS, -np.inf)
        value -= 3.0 * half_log * (shape.shape[1] - 1)
    return shape, value - loss, growth


def _unscaled(left: Left, growth: Array) -> Array:
    """Residuals in units of their noise."""
    return left.raw / scales(left.signal, growth) if growth.shape[1] else left.raw


@njit
def _fill_residuals(rows, contrast, raw, signal):  # type: ignore[no-untyped-def]
    last = rows.shape[1] - 1
    for i in range(rows.shape[0]):
        signal[i] = 0.0
        for a in range(last):
            signal[i] -= contrast[a] * rows[i, a]
        raw[i] = rows[i, last] - signal[i]


@njit
def _regress(rows, values, weights):  # type: ignore[no-untyped-def]
    """Minus the coefficients of a weighted regression, and 1, ``[q]``."""
    width = rows.shape[1]
    gram, factor, contrast = np.empty((width, width)), np.zeros((width, width)), np.zeros(width)
    wide_gram(rows, width - 1, values, weights, gram)
    regression(gram, width, factor, contrast)
    return contrast


def take_turns(
    rows: Array, weights: Array, start: ShapedFit, left: Left, error2: float, most: int
) -> ShapedFit:
    """Coefficients, shape and growth of a known kind, from a first guess of all.

    ``error2`` is the mean square of the errors of the fitted values of the first regression. The best of at most
    ``most`` turns is kept: a scale that follows a fit which follows the scale need not get better. With one turn, sharp
    ends stay blurred.
    """
    n, width = rows.shape
    values = np.ascontiguousarray(rows[:, -1])
    precision, shifted = np.empty(n), np.empty(n)
    best, now = start, start
    in_row = start.shape.shape[1] == ROW
    turns = min(ROW_TURNS if in_row else TURNS, most)
    for turn in range(turns):
        scale = scales(left.signal, now.growth)
        if in_row:
            information = as_scores(left.raw, scale, weights, now.shape, error2, values, precision, shifted)
            error2 = (width - 1) / (information * weights.sum()) if turn < turns - 1 else 0.0
        else:
            as_squares(left.raw, scale, weights, now.shape, values, precision, shifted)
        contrast = _regress(rows, shifted, precision)
        left = Left.by(rows, contrast)
        shape, value, growth = next_shape(left, weights, now.shape, now.growth, error2)
        now = ShapedFit(contrast, shape, growth, value)
        # With errors of fitted values allowed for, the value is not that of the fit.
        if value > best.value or (in_row and turn == turns - 1):
            best = now
    if in_row and most > 1:
        best = max(best, focus(rows, weights, best), key=lambda one: one.value)
    return best


def focus(rows: Array, weights: Array, start: ShapedFit) -> ShapedFit:
    """Coefficients, shape and growth of noise whose sharp ends are seen more and more sharply."""
    n = len(rows)
    values = np.ascontiguousarray(rows[:, -1])
    precision, shifted = np.empty(n), np.empty(n)
    contrast, shape, growth, _ = start
    mean = (shape[0] * shape[1]).sum()
    spread2 = float((shape[0] * (shape[2] + (shape[1] - mean) ** 2)).sum())
    left = Left.by(rows, contrast)
    for blur in BLURS:
        error2 = blur**2 * spread2
        shape, _, growth = next_shape(left, weights, shape, growth, error2)
        scale = scales(left.signal, growth)
        value = as_steps(left.raw, scale, weights, shape, error2, values, precision, shifted)
        for _ in range(STEPS_A_BLUR):
            step = _regress(rows, shifted, precision) - contrast
            for _ in range(HALVINGS):
                left = Left.by(rows, contrast + step)
                reached = as_steps(left.raw, scale, weights, shape, error2, values, precision, shifted)
                if reached > value:
                    break
                step *= 0.5
            if not reached > value:
                break
            contrast, value = contrast + step, reached
        left = Left.by(rows, contrast)
    shape, value, growth = next_shape(left, weights, shape, growth, 0.0)
    return ShapedFit(contrast, shape, growth, value)


def grow(
    rows: Array, weights: Array, left: Left, start: Array, growth: Array, reach: int, most: int
) -> ShapedFit:
    """The same with a scale that follows the signal, from a first guess of it.

    Coefficients and scale settle first, as if the noise were Gaussian: where the scale is small, errors of a fit that
    did not know it would hide what shape the noise has.
    """
    last, half_log = rows.shape[1] - 1, 0.5 * math.log(max(weights.sum(), 2.0))
    values = np.ascontiguousarray(rows[:, -1])
    for _ in range(GROWTH_TURNS):
        contrast = _regress(rows, values, weights / scales(left.signal, growth) ** 2)
        left = Left.by(rows, contrast)
        growth, _ = likeliest_growth(*left, weights)
    bins, mean, spread = histogram(_unscaled(left, growth), weights)
    error2 = spread**2 * last / weights.sum()
    shape, value = choose_shape(bins, mean, spread, start, reach, error2)
    value -= float(weights @ log_scales(left.signal, growth)) + half_log * n_rises(growth)
    return take_turns(rows, weights, ShapedFit(contrast, shape, growth, value), left, error2, most)


def fit_rows(rows: Array, weights: Array, start: Array, reach: int, most: int) -> ShapedFit:
    """A weighted regression whose noise has any shape and may grow with the signal.

    ``rows [n, q]`` have ones first and values last; ``start`` and ``reach`` are those of :func:`.choose_shape`;
    coefficients and shape take at most so many turns.
    """
    last, total = rows.shape[1] - 1, float(weights.sum())
    half_log = 0.5 * math.log(max(total, 2.0))
    contrast = _regress(rows, np.ascontiguousarray(rows[:, -1]), weights)
    left = Left.by(rows, contrast)
    bins, mean, spread = histogram(left.raw, weights)
    error2 = spread**2 * last / total if last > 1 else 0.0
    shape, value = choose_shape(bins, mean, spread, start, reach, error2)
    found = ShapedFit(contrast, shape, NO_GROWTH, value)
    if last > 1:
        if found.shape.shape[1] > 1:
            found = take_turns(rows, weights, found, left, error2, most)
            left = Left.by(rows, found.contrast)
        # Not before the coefficients are good: a scale can make up for a wrong slope.
        growth, gain = likeliest_growth(*left, weights)
        if gain > half_log * n_rises(growth):
            other = grow(rows, weights, left, start, growth, reach, most)
            found = max(found, other, key=lambda one: one.value)
    if found.shape.shape[1] == 1 and found.growth.shape[1] == 0:
        variance = max(float(weights @ left.raw**2) / total, VARIANCE_FLOOR)
        found = found._replace(shape=np.array([[1.0], [0.0], [variance]]))
    # One variance and the constant are there whatever the shape.
    return found._replace(value=found.value - half_log * rows.shape[1])


@njit
def fill_squares(values, fitted, weights, growth, shape, width, precision, shifted):  # type: ignore[no-untyped-def]
    """Fill weights and values ``[n]`` of the least-squares problem that a fit with ``width`` coefficients solves."""
    scale = scales(fitted, growth)
    if shape.shape[1] == ROW:
        mean = (shape[0] * shape[1]).sum()
        spread2 = (shape[0] * (shape[2] + (shape[1] - mean) ** 2)).sum()
        error2 = spread2 * width / weights.sum()
        as_scores(values - fitted, scale, weights, shape, error2, values, precision, shifted)
    else:
        as_squares(values - fitted, scale, weights, shape, values, precision, shifted)


def squares_of_fit(rows: Array, weights: Array, fit: ShapedFit) -> Array:
    """Sums of squares and products, lower half, of the least-squares problem that a fit of :func:`fit_rows` solves."""
    last = rows.shape[1] - 1
    precision, shifted, gram = np.empty(len(rows)), np.empty(len(rows)), np.empty((last + 1, last + 1))
    fitted, values = rows[:, :last] @ fit.coefficients, np.ascontiguousarray(rows[:, last])
    fill_squares(values, fitted, weights, fit.growth, fit.shape, last, precision, shifted)
    wide_gram(rows, last, shifted, precision, gram)
    return gram


@njit
def rough_gains(residual, x, responsibilities):  # type: ignore[no-untyped-def]
    """Nats that every regime would gain by a mean, a variance and coefficients of its own, ``[K]``, generously.

    ``residual`` is standardised; coefficients count as if parents were uncorrelated, twice.
    """
    n, n_regimes = responsibilities.shape
    p = x.shape[1]
    sums = np.zeros((n_regimes, 3 + 3 * p))
    for i in range(n):
        for k in range(n_regimes):
            r = responsibilities[i, k]
            if r > 1e-4:
                sums[k, 0] += r
                sums[k, 1] += r * residual[i]
                sums[k, 2] += r * residual[i] * residual[i]
                for a in range(p):
                    sums[k, 3 + 3 * a] += r * x[i, a]
                    sums[k, 4 + 3 * a] += r * x[i, a] * x[i, a]
                    sums[k, 5 + 3 * a] += r * x[i, a] * residual[i]
    gains = np.zeros(n_regimes)
    for k in range(n_regimes):
        count = max(sums[k, 0], 1e-9)
        mean = sums[k, 1] / count
        variance = max(sums[k, 2] / count - mean * mean, 1e-12)
        gains[k] = 0.5 * count * (variance + mean * mean - 1.0 - np.log(variance))
        for a in range(p):
            centre = sums[k, 3 + 3 * a] / count
            spread = max(sums[k, 4 + 3 * a] / count - centre * centre, 1e-12)
            slope = sums[k, 5 + 3 * a] / count - centre * mean
            gains[k] += count * slope * slope / spread / variance
    return gains


_CONSTANT, _MOVED, _LINE = 0, 1, 2
"""What an intervention puts in the place of a mechanism: a constant, what the parents leave over elsewhere, a line."""


@njit
def _likeliest_intervention(x, y, weights, shape, residual, log_scale, imperfect):  # type: ignore[no-untyped-def]
    """What an intervention does by evidence, coefficients of its own with the constant first, and its noise ``[3, c]``.

    ``residual`` and ``log_scale`` are what the reference leaves over, and in which units.
    """
    half_log = 0.5 * np.log(max(weights.sum(), 2.0))
    kind, coefficients = _CONSTANT, np.zeros(1)
    best, found = best_move(y, weights, shape)
    best -= 2.0 * half_log
    if imperfect:
        value, moved = best_move(residual, weights, shape)
        value -= (weights * log_scale).sum() + 2.0 * half_log
        if value > best:
            best, found, kind = value, moved, _MOVED
        rows = np.empty((y.shape[0], x.shape[1] + 2))
        rows[:, 0], rows[:, 1:-1], rows[:, -1] = 1.0, x, y
        contrast = _regress(rows, y, weights)
        left, signal = np.empty(y.shape[0]), np.empty(y.shape[0])
        _fill_residuals(rows, contrast, left, signal)
        value, moved = best_move(left, weights, shape)
        value -= (2.0 + x.shape[1]) * half_log
        if value > best:
            best, found, kind, coefficients = value, moved, _LINE, -contrast[:-1]
    return kind, coefficients, found


class Shaped(RowFamily):
    """A function of the parents plus noise of any shape: what such families have in common."""

    @classmethod
    def glance(cls, x: Array, y: Array, weights: Array) -> Mechanism | None:
        """See :class:`RowFamily`: least squares, and the shape of what they leave over."""
        fit = fit_rows(_rows(x, y), np.ascontiguousarray(weights), UNKNOWN, MOST_COMPONENTS, 0)
        return LinearMechanism(fit.coefficients, Noise(*fit.shape), growth=fit.growth)

    @classmethod
    def may_differ(
        cls, x: Array, y: Array, responsibilities: Array, reference: Mechanism
    ) -> NDArray[np.bool_]:
        """See :class:`RowFamily`: what an own Gaussian would gain, about, is more than it costs."""
        assert isinstance(reference, AdditiveNoise)
        residual, _ = reference.residual(x, y)
        residual = (residual - reference.noise.mean) / np.sqrt(reference.noise.variance)
        return np.asarray(
            rough_gains(residual, x, np.ascontiguousarray(responsibilities))
            > np.log(np.maximum(responsibilities.sum(axis=0), 2.0))
        )

    @classmethod
    def intervene(
        cls, x: Array, y: Array, weights: Array, reference: Mechanism, *, imperfect: bool
    ) -> Mechanism:
        """See :class:`RowFamily`: the shape of the reference elsewhere, or one Gaussian.

        An imperfect intervention moves and stretches what the parents leave over, or has a line of its own. It has no
        curve of its own: that would absorb whatever does not fit.
        """
        assert isinstance(reference, AdditiveNoise)
        residual, log_scale = reference.residual(x, y)
        kind, coefficients, shape = _likeliest_intervention(
            np.ascontiguousarray(x),
            np.ascontiguousarray(y),
            np.ascontiguousarray(weights),
            as_shape(reference.noise),
            np.ascontiguousarray(residual),
            log_scale,
            imperfect and x.shape[1] > 0,
        )
        noise = Noise(*shape)
        if kind == _MOVED:
            return replace(reference, noise=noise, n_free=2)
        return LinearMechanism(coefficients, noise, 1 + coefficients.size)


class AnyNoise(Shaped):
    """Lines plus noise of any shape."""

    @classmethod
    def fit(cls, x: Array, y: Array, weights: Array, start: Mechanism | None = None) -> LinearMechanism:
        """See :class:`RowFamily`."""
        return cls._fit(x, y, weights, *beginning(start))

    @classmethod
    def refit(cls, x: Array, y: Array, weights: Array, start: Mechanism) -> LinearMechanism:
        """See :class:`RowFamily`: with as many Gaussians as before."""
        assert isinstance(start, AdditiveNoise)
        return cls._fit(x, y, weights, as_shape(start.noise), 0)

    @classmethod
    def _fit(cls, x: Array, y: Array, weights: Array, shape: Array, reach: int) -> LinearMechanism:
        fit = fit_rows(_rows(x, y), np.ascontiguousarray(weights), shape, reach, ROW_TURNS)
        return LinearMechanism(fit.coefficients, Noise(*fit.shape), growth=fit.growth)


def as_shape(noise: Noise) -> Array:
    """The numbers of a noise, ``[3, c]``."""
    return np.stack([noise.weights, noise.means, noise.variances])


def beginning(start: Mechanism | None) -> tuple[Array, int]:
    """The shape to begin with, and how many Gaussians more or fewer to try."""
    return (as_shape(start.noise), 1) if isinstance(start, AdditiveNoise) else (UNKNOWN, MOST_COMPONENTS)


def _rows(x: Array, y: Array) -> Array:
    return np.column_stack([np.ones(len(y)), x, y])
