r"""Lines with noise of any shape: a mixture of a few Gaussians, their number chosen by evidence.

Given which Gaussian a residual came from, the likeliest coefficients are a weighted least-squares problem; given the
coefficients, the Gaussians are fitted to a histogram of the residuals (:mod:`.shapes`). Both take turns. Where evidence
pays for it, the scale of the noise grows with the signal, as that of sensors and concentrations does. An intervention
keeps the *shape* of the noise and moves or stretches it, unless a Gaussian of its own fits better: regimes must not be
needed to draw the shape of the noise, and a new regime must not pay for it again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit
from latentdo.model.mechanisms.base import AdditiveNoise, Array, Mechanism
from latentdo.model.mechanisms.family import RowFamily
from latentdo.model.mechanisms.growth import likeliest_growth, log_scales, n_rises
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
from latentdo.model.regression import regression, weighted_gram, wide_gram

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


@njit
def next_shape(raw, signal, weights, shape, growth, error2):  # type: ignore[no-untyped-def]
    """The same with as many Gaussians as before, and growth if there was some."""
    half_log = 0.5 * np.log(max(weights.sum(), 2.0))
    loss = 0.0
    if growth.shape[1]:
        growth, _ = likeliest_growth(raw, signal, weights)
        loss = half_log * n_rises(growth)
    scales = log_scales(signal, growth)
    loss += (weights * scales).sum()
    bins, mean, spread = histogram(raw * np.exp(-scales), weights)
    if shape.shape[1] == ROW:
        shape, value = fit_row(bins, mean, spread, error2)
    else:
        shape = shape.copy()
        value = climb(bins, shape, max((NARROWEST * spread) ** 2, VARIANCE_FLOOR), SHAPE_STEPS)
        value -= 3.0 * half_log * (shape.shape[1] - 1)
    return shape, value - loss, growth


@njit
def fill_residuals(rows, contrast, raw, signal):  # type: ignore[no-untyped-def]
    """Fill what a regression leaves over and its signal, both ``[n]``."""
    last = rows.shape[1] - 1
    for i in range(rows.shape[0]):
        signal[i] = 0.0
        for a in range(last):
            signal[i] -= contrast[a] * rows[i, a]
        raw[i] = rows[i, last] - signal[i]


@njit
def take_turns(rows, weights, contrast, shape, growth, value, error2, most):  # type: ignore[no-untyped-def]
    """Coefficients, shape and growth of a known kind, from a first guess of all, their score, and what is left over.

    ``contrast`` and ``error2`` are those after a first regression: minus its coefficients, and the mean square of the
    errors of its fitted values; ``value`` is the log-likelihood less cost there. The best of at most ``most`` turns is
    kept: a scale that follows a fit which follows the scale need not get better.
    """
    n, width = rows.shape
    last = width - 1
    values = np.ascontiguousarray(rows[:, last])
    factor, gram = np.zeros((width, width)), np.empty((width, width))
    raw, signal, precision, shifted = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    fill_residuals(rows, contrast, raw, signal)
    in_row = shape.shape[1] == ROW
    turns = min(ROW_TURNS if in_row else TURNS, most)
    top, best, best_shape, best_growth = value, contrast.copy(), shape, growth
    for turn in range(turns):
        scale = np.exp(log_scales(signal, growth))
        if in_row:
            information = as_scores(raw, scale, weights, shape, error2, values, precision, shifted)
            error2 = last / (information * weights.sum()) if turn < turns - 1 else 0.0
        else:
            as_squares(raw, scale, weights, shape, values, precision, shifted)
        wide_gram(rows, last, shifted, precision, gram)
        regression(gram, width, factor, contrast)
        fill_residuals(rows, contrast, raw, signal)
        shape, value, growth = next_shape(raw, signal, weights, shape, growth, error2)
        # With errors of fitted values allowed for, the value is not that of the fit.
        if value > top or (in_row and turn == turns - 1):
            top, best, best_shape, best_growth = value, contrast.copy(), shape, growth
    if in_row:
        sharper = focus(rows, weights, best, best_shape, best_growth)
        if sharper[3] > top:
            best, best_shape, best_growth, top = sharper
    fill_residuals(rows, best, raw, signal)
    return best, best_shape, best_growth, top, raw, signal


@njit
def focus(rows, weights, contrast, shape, growth):  # type: ignore[no-untyped-def]
    """Coefficients, shape and growth of noise whose sharp ends are seen more and more sharply, and their score."""
    n, width = rows.shape
    last = width - 1
    values = np.ascontiguousarray(rows[:, last])
    factor, gram, step = np.zeros((width, width)), np.empty((width, width)), np.zeros(width)
    raw, signal, precision, shifted = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    mean = (shape[0] * shape[1]).sum()
    spread2 = (shape[0] * (shape[2] + (shape[1] - mean) ** 2)).sum()
    fill_residuals(rows, contrast, raw, signal)
    for blur in BLURS:
        error2 = blur**2 * spread2
        shape, _, growth = next_shape(raw, signal, weights, shape, growth, error2)
        scale = np.exp(log_scales(signal, growth))
        value = as_steps(raw, scale, weights, shape, error2, values, precision, shifted)
        for _ in range(STEPS_A_BLUR):
            wide_gram(rows, last, shifted, precision, gram)
            regression(gram, width, factor, step)
            step -= contrast
            for _ in range(HALVINGS):
                fill_residuals(rows, contrast + step, raw, signal)
                reached = as_steps(raw, scale, weights, shape, error2, values, precision, shifted)
                if reached > value:
                    break
                step *= 0.5
            if not reached > value:
                break
            contrast, value = contrast + step, reached
        fill_residuals(rows, contrast, raw, signal)
    shape, value, growth = next_shape(raw, signal, weights, shape, growth, 0.0)
    return contrast, shape, growth, value


@njit
def grow(rows, weights, contrast, start, growth, reach, most):  # type: ignore[no-untyped-def]
    """The same with a scale that follows the signal, from a first guess of it.

    Coefficients and scale settle first, as if the noise were Gaussian: where the scale is small, errors of a fit that
    did not know it would hide what shape the noise has.
    """
    width = rows.shape[1]
    last, half_log = width - 1, 0.5 * np.log(max(weights.sum(), 2.0))
    values = np.ascontiguousarray(rows[:, last])
    contrast, factor, gram = contrast.copy(), np.zeros((width, width)), np.empty((width, width))
    raw, signal = np.empty(rows.shape[0]), np.empty(rows.shape[0])
    fill_residuals(rows, contrast, raw, signal)
    for _ in range(GROWTH_TURNS):
        wide_gram(rows, last, values, weights * np.exp(-2.0 * log_scales(signal, growth)), gram)
        regression(gram, width, factor, contrast)
        fill_residuals(rows, contrast, raw, signal)
        growth, _ = likeliest_growth(raw, signal, weights)
    scales = log_scales(signal, growth)
    bins, mean, spread = histogram(raw * np.exp(-scales), weights)
    error2 = spread**2 * last / weights.sum()
    shape, value = choose_shape(bins, mean, spread, start, reach, error2)
    value -= (weights * scales).sum() + half_log * n_rises(growth)
    return take_turns(rows, weights, contrast, shape, growth, value, error2, most)


@njit
def fit_rows(rows, weights, start, reach, most):  # type: ignore[no-untyped-def]
    """A weighted regression whose noise has any shape and may grow with the signal.

    ``rows [n, q]`` have ones first and values last; ``start`` and ``reach`` are those of :func:`.choose_shape`;
    coefficients and shape take at most so many turns. Returns coefficients, growth, shape, and the log-likelihood less
    what all of these cost.
    """
    n, width = rows.shape
    last = width - 1
    contrast, factor = np.zeros(width), np.zeros((width, width))
    gram = np.empty((width, width))
    wide_gram(rows, last, np.ascontiguousarray(rows[:, last]), weights, gram)
    regression(gram, width, factor, contrast)
    raw, signal, growth = np.empty(n), np.empty(n), np.empty((2, 0))
    fill_residuals(rows, contrast, raw, signal)
    bins, mean, spread = histogram(raw, weights)
    error2 = spread**2 * last / weights.sum() if last > 1 else 0.0
    shape, value = choose_shape(bins, mean, spread, start, reach, error2)
    if last > 1:
        if shape.shape[1] > 1:
            contrast, shape, growth, value, raw, signal = take_turns(
                rows, weights, contrast, shape, growth, value, error2, most
            )
        # Not before the coefficients are good: a scale can make up for a wrong slope.
        found, gain = likeliest_growth(raw, signal, weights)
        if gain > 0.5 * np.log(max(weights.sum(), 2.0)) * n_rises(found):
            other = grow(rows, weights, contrast, start, found, reach, most)
            if other[3] > value:
                contrast, shape, growth, value, raw, signal = other
    if shape.shape[1] == 1 and growth.shape[1] == 0:
        shape[1, 0] = 0.0
        shape[2, 0] = max((weights * raw**2).sum() / weights.sum(), VARIANCE_FLOOR)
    # One variance and the constant are there whatever the shape.
    return -contrast[:last], growth, shape, value - 0.5 * np.log(max(weights.sum(), 2.0)) * width


@njit
def fill_squares(values, fitted, weights, growth, shape, width, precision, shifted):  # type: ignore[no-untyped-def]
    """Fill weights and values ``[n]`` of the least-squares problem that a fit with ``width`` coefficients solves."""
    scale = np.exp(log_scales(fitted, growth))
    if shape.shape[1] == ROW:
        mean = (shape[0] * shape[1]).sum()
        spread2 = (shape[0] * (shape[2] + (shape[1] - mean) ** 2)).sum()
        error2 = spread2 * width / weights.sum()
        as_scores(values - fitted, scale, weights, shape, error2, values, precision, shifted)
    else:
        as_squares(values - fitted, scale, weights, shape, values, precision, shifted)


@njit
def squares_of_fit(rows, weights, coefficients, growth, shape):  # type: ignore[no-untyped-def]
    """Sums of squares and products, lower half, of the least-squares problem that a fit of :func:`fit_rows` solves."""
    n, last = rows.shape[0], rows.shape[1] - 1
    values = np.ascontiguousarray(rows[:, last])
    fitted = np.zeros(n)
    for i in range(n):
        for a in range(last):
            fitted[i] += coefficients[a] * rows[i, a]
    precision, shifted = np.empty(n), np.empty(n)
    fill_squares(values, fitted, weights, growth, shape, last, precision, shifted)
    gram = np.empty((last + 1, last + 1))
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


@njit
def least_squares(rows, weights):  # type: ignore[no-untyped-def]
    """Coefficients of a weighted regression; ``rows [n, q]`` has ones first and values last."""
    width = rows.shape[1]
    gram, factor, contrast = np.empty((width, width)), np.zeros((width, width)), np.zeros(width)
    weighted_gram(rows, width - 1, rows[:, width - 1], weights, gram)
    regression(gram, width, factor, contrast)
    return -contrast[: width - 1]


class Shaped(RowFamily):
    """A function of the parents plus noise of any shape: what such families have in common."""

    @classmethod
    def as_squares(
        cls, mechanism: Mechanism, x: Array, y: Array, weights: Array
    ) -> tuple[Array, Array] | None:
        """See :class:`RowFamily`."""
        assert isinstance(mechanism, AdditiveNoise)
        precision, shifted = np.empty(len(y)), np.empty(len(y))
        shape, width = as_shape(mechanism.noise), 1 + x.shape[1]
        fill_squares(y, mechanism.mean(x), weights, mechanism.growth, shape, width, precision, shifted)
        return precision, shifted

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
        trials: list[AdditiveNoise] = [LinearMechanism(np.zeros(1), reference.noise, 2)]
        if imperfect and x.shape[1]:
            trials.append(replace(reference, n_free=2))
            own = least_squares(_rows(x, y), np.ascontiguousarray(weights))
            trials.append(LinearMechanism(own, reference.noise, 2 + x.shape[1]))
        half_log = 0.5 * np.log(max(weights.sum(), 2.0))
        weights = np.ascontiguousarray(weights)
        best, found = -np.inf, reference
        for trial in trials:
            residual, log_scale = trial.residual(x, y)
            value, own_shape = best_move(np.ascontiguousarray(residual), weights, as_shape(reference.noise))
            value -= float(weights @ log_scale) + trial.n_parameters * half_log
            if value > best:
                best, found = value, replace(trial, noise=Noise(*own_shape))
        return found


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
        coefficients, growth, shape, _ = fit_rows(
            _rows(x, y), np.ascontiguousarray(weights), shape, reach, ROW_TURNS
        )
        return LinearMechanism(coefficients, Noise(*shape), growth=growth)


def as_shape(noise: Noise) -> Array:
    """The numbers of a noise, ``[3, c]``."""
    return np.stack([noise.weights, noise.means, noise.variances])


def beginning(start: Mechanism | None) -> tuple[Array, int]:
    """The shape to begin with, and how many Gaussians more or fewer to try."""
    return (as_shape(start.noise), 1) if isinstance(start, AdditiveNoise) else (UNKNOWN, MOST_COMPONENTS)


def _rows(x: Array, y: Array) -> Array:
    return np.column_stack([np.ones(len(y)), x, y])
