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
from latentdo.model.mechanisms.base import GROWTH_REACH, AdditiveNoise, Array, Mechanism
from latentdo.model.mechanisms.family import RowFamily
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
from latentdo.model.mechanisms.squares import as_scores, as_squares
from latentdo.model.regression import regression, weighted_gram

TURNS = 2
"""How often coefficients and shape take turns."""

ROW_TURNS = 3
"""The same for noise with sharp ends."""

GROWTH_STEPS = 6
"""Newton steps towards the likeliest growth of a scale; the problem is concave in two numbers."""

LARGEST_STEP = 0.5
"""Change of either of them in one step at most: far from the answer they overshoot."""


@njit
def log_scales(signal, growth):  # type: ignore[no-untyped-def]
    """Logarithm of the scale of the noise, ``[n]``."""
    return growth[0] * signal + growth[1] * signal * signal


@njit
def likeliest_growth(residual, signal, weights):  # type: ignore[no-untyped-def]
    r"""How the scale of residuals grows with the signal, ``[2]``, and what that gains in nats.

    The growth of :math:`\sigma_i = \sigma e^{g_1 s_i + g_2 s_i^2}` by Gaussian quasi-likelihood, which is right on
    average whatever the shape of the noise. A scale that falls and rises again is refused: that is what the wrong
    direction of an edge leaves where noise has heavy tails. Then, the scale has no bend.
    """
    total = weights.sum()
    middle, middle2 = (weights * signal).sum() / total, (weights * signal * signal).sum() / total
    reach = 2.0 * np.sqrt(max(middle2 - middle * middle, 0.0))
    before = (weights * residual * residual).sum()
    if not before > VARIANCE_FLOOR * total:
        return np.zeros(2), 0.0  # parents that determine a variable leave rounding
    for bent in (True, False):
        growth = _climb_growth(residual, signal, weights, middle, middle2, bent)
        ends = growth[0] + 2.0 * growth[1] * np.array([middle - reach, middle + reach])
        if ends[0] * ends[1] > 0.0:
            break
    after = (weights * residual * residual * np.exp(-2.0 * log_scales(signal, growth))).sum()
    if not 0.0 < after < np.inf:
        return np.zeros(2), 0.0
    return growth, total * (0.5 * np.log(before / after) - growth[0] * middle - growth[1] * middle2)


@njit
def _climb_growth(residual, signal, weights, middle, middle2, bent):  # type: ignore[no-untyped-def]
    """Newton's way to the likeliest growth; ``middle`` and ``middle2`` are the means of the signal and its square."""
    growth, sums = np.zeros(2), np.empty(5)
    for _ in range(GROWTH_STEPS):
        sums[:] = 0.0
        for i in range(residual.shape[0]):
            u = signal[i]
            part = weights[i] * residual[i] ** 2 * np.exp(-2.0 * u * (growth[0] + growth[1] * u))
            for a in range(5):
                sums[a] += part
                part *= u
        if not 0.0 < sums[0] < np.inf:
            return np.zeros(2)
        first, second = sums[1] / sums[0], sums[2] / sums[0]
        # Half of the curvature per row, which is the covariance of (s, s^2) with these weights.
        aa, ab = second - first**2, sums[3] / sums[0] - first * second
        bb = sums[4] / sums[0] - second**2
        along, across = 0.5 * (first - middle), 0.5 * (second - middle2)
        if not bent:
            ab, across, bb = 0.0, 0.0, 1.0
        determinant = aa * bb - ab * ab
        if not determinant > 1e-9 * aa * bb:
            return np.zeros(2)
        steps = ((bb * along - ab * across) / determinant, (aa * across - ab * along) / determinant)
        for a in range(2):
            growth[a] += min(max(steps[a], -LARGEST_STEP), LARGEST_STEP)
    return growth


@njit
def grow_if_better(raw, signal, weights, shape, value, reach):  # type: ignore[no-untyped-def]
    """Shape and growth of noise whose scale follows the signal, and their log-likelihood less cost, if that pays."""
    cost = np.log(max(weights.sum(), 2.0))  # two numbers, half a logarithm each
    growth, gain = likeliest_growth(raw, signal, weights)
    if gain > cost:
        scales = log_scales(signal, growth)
        bins, mean, spread = histogram(raw * np.exp(-scales), weights)
        other, better = choose_shape(bins, mean, spread, shape, min(reach, 1))
        better -= (weights * scales).sum() + cost
        if better > value:
            return other, better, growth
    return shape, value, np.zeros(2)


@njit
def next_shape(raw, signal, weights, shape, growth, error2):  # type: ignore[no-untyped-def]
    """The same with as many Gaussians as before, and growth if there was some."""
    cost = np.log(max(weights.sum(), 2.0))
    loss = 0.0
    if growth.any():
        growth, _ = likeliest_growth(raw, signal, weights)
        loss = (weights * log_scales(signal, growth)).sum() + cost
    bins, mean, spread = histogram(raw * np.exp(-log_scales(signal, growth)), weights)
    if shape.shape[1] == ROW:
        shape, value = fit_row(bins, mean, spread, error2)
    else:
        value = climb(bins, shape, max((NARROWEST * spread) ** 2, VARIANCE_FLOOR), SHAPE_STEPS)
        value -= 1.5 * cost * (shape.shape[1] - 1)
    return shape, value - loss, growth


@njit
def fill_residuals(rows, contrast, raw, signal):  # type: ignore[no-untyped-def]
    """Fill what a regression leaves over and its bounded signal, both ``[n]``."""
    last = rows.shape[1] - 1
    for i in range(rows.shape[0]):
        fitted = 0.0
        for a in range(last):
            fitted -= contrast[a] * rows[i, a]
        raw[i] = rows[i, last] - fitted
        signal[i] = min(max(fitted, -GROWTH_REACH), GROWTH_REACH)


@njit
def take_turns(rows, weights, contrast, shape, growth, error2):  # type: ignore[no-untyped-def]
    """Coefficients and noise of a known kind, from a first guess of both, and what is left over.

    ``contrast`` and ``error2`` are those after a first regression: minus its coefficients, and the mean square of the
    errors of its fitted values.
    """
    n, width = rows.shape
    last = width - 1
    values = np.ascontiguousarray(rows[:, last])
    factor, gram = np.zeros((width, width)), np.empty((width, width))
    raw, signal, precision, shifted = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    fill_residuals(rows, contrast, raw, signal)
    value = 0.0
    in_row = shape.shape[1] == ROW
    turns = ROW_TURNS if in_row else TURNS
    for turn in range(turns):
        scale = np.exp(log_scales(signal, growth))
        if in_row:
            information = as_scores(raw, scale, weights, shape, error2, values, precision, shifted)
            error2 = last / (information * weights.sum()) if turn < turns - 1 else 0.0
        else:
            as_squares(raw, scale, weights, shape, values, precision, shifted)
        weighted_gram(rows, last, shifted, precision, gram)
        regression(gram, width, factor, contrast)
        fill_residuals(rows, contrast, raw, signal)
        shape, value, growth = next_shape(raw, signal, weights, shape, growth, error2)
    return contrast, shape, growth, value, raw, signal


@njit
def fit_rows(rows, weights, start, reach):  # type: ignore[no-untyped-def]
    """A weighted regression whose noise has any shape and may grow with the signal.

    ``rows [n, q]`` have ones first and values last; ``start`` and ``reach`` are those of :func:`.choose_shape`. Returns
    coefficients, growth, shape, and the log-likelihood less what all of these cost.
    """
    n, width = rows.shape
    last = width - 1
    contrast, factor = np.zeros(width), np.zeros((width, width))
    gram = np.empty((width, width))
    weighted_gram(rows, last, rows[:, last], weights, gram)
    regression(gram, width, factor, contrast)
    raw, signal, growth = np.empty(n), np.empty(n), np.zeros(2)
    fill_residuals(rows, contrast, raw, signal)
    bins, mean, spread = histogram(raw, weights)
    error2 = spread**2 * last / weights.sum() if last > 1 else 0.0
    shape, value = choose_shape(bins, mean, spread, start, reach, error2)
    if last > 1:
        if shape.shape[1] > 1:
            contrast, shape, growth, value, raw, signal = take_turns(
                rows, weights, contrast, shape, growth, error2
            )
        # Not before the coefficients are good: a scale can make up for a wrong slope.
        shape, value, growth = grow_if_better(raw, signal, weights, shape, value, reach)
        if growth.any():
            contrast, shape, growth, value, raw, signal = take_turns(
                rows, weights, contrast, shape, growth, error2
            )
    if shape.shape[1] == 1 and not growth.any():
        shape[1, 0] = 0.0
        shape[2, 0] = max((weights * raw**2).sum() / weights.sum(), VARIANCE_FLOOR)
    # One variance and the constant are there whatever the shape.
    return -contrast[:last], growth, shape, value - 0.5 * np.log(max(weights.sum(), 2.0)) * width


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
        coefficients, growth, shape, _ = fit_rows(_rows(x, y), np.ascontiguousarray(weights), shape, reach)
        return LinearMechanism(coefficients, Noise(*shape), growth=tuple(growth.tolist()))


def as_shape(noise: Noise) -> Array:
    """The numbers of a noise, ``[3, c]``."""
    return np.stack([noise.weights, noise.means, noise.variances])


def beginning(start: Mechanism | None) -> tuple[Array, int]:
    """The shape to begin with, and how many Gaussians more or fewer to try."""
    return (as_shape(start.noise), 1) if isinstance(start, AdditiveNoise) else (UNKNOWN, MOST_COMPONENTS)


def _rows(x: Array, y: Array) -> Array:
    return np.column_stack([np.ones(len(y)), x, y])
