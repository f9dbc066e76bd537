r"""Lines with noise of any shape: a mixture of a few Gaussians, their number chosen by evidence.

Given which Gaussian a residual came from, the likeliest coefficients are a weighted least-squares problem; given the
coefficients, the Gaussians are fitted to a histogram of the residuals (whose bins keep their first two moments, so that
little is lost). Both take turns. An intervention keeps the *shape* of the noise and moves or stretches it, unless a
Gaussian of its own fits better: regimes must not be needed to draw the shape of the noise, and a new regime must not
pay for it again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit
from latentdo.model.mechanisms.base import AdditiveNoise, Array, Mechanism
from latentdo.model.mechanisms.family import RowFamily
from latentdo.model.mechanisms.linear import LinearMechanism
from latentdo.model.mechanisms.noise import COMB, LOG_2PI, VARIANCE_FLOOR, Noise
from latentdo.model.regression import regression, weighted_gram

MOST_COMPONENTS = 8
"""Gaussians in a noise at most: skewed noise uses four or five, and with three it once looked like two regimes."""

NARROWEST = 0.05
"""A Gaussian of mixed noise is at least so wide, as a share of the whole noise: atoms would have infinite density. With
a thousandth, atoms of networks were worth seven nats a row (lab book nonlinear.md, 33; left to do: 37, 45, 47)."""

N_BINS = 64
"""Bins of the histogram that shapes are fitted to; finer ones changed no fit."""

REACH = 6.0
"""Standard deviations that the bins cover at most on either side; the outermost ones take the rest."""

SHAPE_STEPS = 30
"""Steps of EM on a histogram."""

POLISH_STEPS = 100
"""Steps for the better of two beginnings."""

COMB_WIDTHS = (0.94, 0.96, 0.98, 0.99, 1.0)
"""Widths of nearly uniform noise that are tried, as shares of the range of the residuals."""

TURNS = 3
"""How often coefficients and shape take turns."""


@njit
def histogram(residual, weights):  # type: ignore[no-untyped-def]
    """Mass, mean and mean square of the residuals in every bin, ``[3, bins]``, empty bins left out; and the spread."""
    total = weights.sum()
    mean = (weights * residual).sum() / total
    spread = np.sqrt(max((weights * (residual - mean) ** 2).sum() / total, VARIANCE_FLOOR))
    low, high = mean, mean
    for i in range(residual.shape[0]):
        low, high = min(low, residual[i]), max(high, residual[i])
    low, high = max(low, mean - REACH * spread), min(high, mean + REACH * spread)
    sums = np.zeros((3, N_BINS))
    scale = N_BINS / max(high - low, 1e-3 * spread)
    for i in range(residual.shape[0]):
        place = int(min(max((residual[i] - low) * scale, 0.0), N_BINS - 1.0))
        sums[0, place] += weights[i]
        sums[1, place] += weights[i] * residual[i]
        sums[2, place] += weights[i] * residual[i] * residual[i]
    filled = sums[0] > 1e-9 * total
    bins = np.empty((3, filled.sum()))
    bins[0] = sums[0][filled]
    bins[1] = sums[1][filled] / bins[0]
    bins[2] = sums[2][filled] / bins[0]
    return bins, mean, spread


@njit
def climb(bins, shape, floor, iterations):  # type: ignore[no-untyped-def]
    """EM of a mixture of Gaussians on a histogram, in place; returns its log-likelihood before the last step.

    The rows of ``shape [3, c]`` are weights, means and variances.
    """
    c = shape.shape[1]
    share, sums = np.empty(c), np.empty((3, c))
    loglik, before = -np.inf, -np.inf
    for _ in range(iterations):
        sums[:] = 0.0
        level = np.log(shape[0]) - 0.5 * (LOG_2PI + np.log(shape[2]))
        loglik = 0.0
        for i in range(bins.shape[1]):
            top = -np.inf
            for a in range(c):
                off = bins[1, i] - shape[1, a]
                share[a] = level[a] - 0.5 * off * off / shape[2, a]
                top = max(top, share[a])
            total = 0.0
            for a in range(c):
                share[a] = np.exp(share[a] - top)
                total += share[a]
            slope, slopes, inverse = 0.0, 0.0, 0.0
            for a in range(c):
                share[a] /= total
                step = (bins[1, i] - shape[1, a]) / shape[2, a]
                slope += share[a] * step
                slopes += share[a] * step * step
                inverse += share[a] / shape[2, a]
            # A bin has a width: its rows see the curvature of the log-density, too.
            curvature = slopes - slope * slope - inverse
            loglik += bins[0, i] * (
                top + np.log(total) + 0.5 * curvature * max(bins[2, i] - bins[1, i] ** 2, 0.0)
            )
            for a in range(c):
                part = bins[0, i] * share[a]
                sums[0, a] += part
                sums[1, a] += part * bins[1, i]
                sums[2, a] += part * bins[2, i]
        everything = sums[0].sum()
        for a in range(c):
            count = max(sums[0, a], 1e-9)
            shape[0, a] = max(count / everything, 1e-9)
            shape[1, a] = sums[1, a] / count
            shape[2, a] = max(sums[2, a] / count - shape[1, a] ** 2, floor)
        if loglik - before < 0.01:
            break
        before = loglik
    return loglik


@njit
def fit_comb(bins):  # type: ignore[no-untyped-def]
    """Nearly uniform noise: equal Gaussians in a row, as wide as fits best, ``[3, c]``; and its log-likelihood."""
    low, high = bins[1].min(), bins[1].max()
    for i in range(bins.shape[1]):  # the outermost rows, not the means of their bins
        spread = np.sqrt(3.0 * max(bins[2, i] - bins[1, i] ** 2, 0.0))
        low, high = min(low, bins[1, i] - spread), max(high, bins[1, i] + spread)
    best, top = np.empty((3, COMB)), -np.inf
    for stretch in COMB_WIDTHS:
        half = max(0.5 * stretch * (high - low), np.sqrt(VARIANCE_FLOOR) * COMB)
        shape = np.empty((3, COMB))
        shape[0] = 1.0 / COMB
        shape[1] = 0.5 * (low + high) + half * ((2.0 * np.arange(COMB) + 1.0) / COMB - 1.0)
        shape[2] = (half / COMB) ** 2  # half the distance of neighbours: no ripples to speak of
        value = climb(bins, shape.copy(), VARIANCE_FLOOR, 1)
        if value > top:
            best, top = shape, value
    return best, top


@njit
def choose_shape(bins, mean, spread, most):  # type: ignore[no-untyped-def]
    """The mixture with the highest evidence, ``[3, c]``: one Gaussian more as long as that pays, or two more do.

    A row of equal Gaussians, for noise with sharp edges, costs as much as a single one.
    """
    n = bins[0].sum()
    floor = max((NARROWEST * spread) ** 2, VARIANCE_FLOOR)
    best = np.empty((3, 1))
    best[0, 0], best[1, 0], best[2, 0] = 1.0, mean, max(spread**2, VARIANCE_FLOOR)
    top = climb(bins, best.copy(), floor, 1)
    if most > 1:
        comb, value = fit_comb(bins)
        if value > top:
            top, best = value, comb
    behind = 0
    for c in range(2, most + 1):
        value, winner = -np.inf, best
        for wide in (False, True):
            shape = np.empty((3, c))
            shape[0] = 1.0 / c
            for a in range(c):
                # Side by side for skewness and humps, or of growing width for heavy tails.
                place = (a + 0.5) / c
                shape[1, a] = mean if wide else mean + spread * (4.0 * place - 2.0) * 0.8
                shape[2, a] = max((spread * (0.3 * 8.0**place if wide else 1.2 / np.sqrt(c))) ** 2, floor)
            trial = climb(bins, shape, floor, SHAPE_STEPS)
            if trial > value:
                value, winner = trial, shape
        value = climb(bins, winner, floor, POLISH_STEPS) - 1.5 * (c - 1) * np.log(max(n, 2.0))
        if value > top:
            top, best, behind = value, winner, 0
        else:
            behind += 1
            if behind == 2:
                break
    return best


@njit
def fit_rows(rows, weights, most):  # type: ignore[no-untyped-def]
    """Coefficients and shape of the noise of a weighted regression; ``rows [n, q]`` has ones first and values last."""
    n, width = rows.shape
    last = width - 1
    contrast, factor = np.zeros(width), np.zeros((width, width))
    gram = np.empty((width, width))
    weighted_gram(rows, last, rows[:, last], weights, gram)
    regression(gram, width, factor, contrast)
    residual, precision, shifted = np.empty(n), np.empty(n), np.empty(n)
    shape = np.empty((3, 1))
    for turn in range(TURNS):
        for i in range(n):
            residual[i] = rows[i, last]
            for a in range(last):
                residual[i] += contrast[a] * rows[i, a]
        bins, mean, spread = histogram(residual, weights)
        if turn == 0:
            shape = choose_shape(bins, mean, spread, most)
        elif shape.shape[1] == COMB:
            shape, _ = fit_comb(bins)
        else:
            climb(bins, shape, max((NARROWEST * spread) ** 2, VARIANCE_FLOOR), SHAPE_STEPS)
        c = shape.shape[1]
        if c == 1 and turn == 0:
            shape[1, 0] = 0.0
            shape[2, 0] = max((bins[0] * bins[2]).sum() / bins[0].sum(), VARIANCE_FLOOR)
            break
        if turn == TURNS - 1 or width == 2:
            break
        level = np.log(shape[0]) - 0.5 * np.log(shape[2])
        share = np.empty(c)
        for i in range(n):
            top = -np.inf
            for a in range(c):
                off = residual[i] - shape[1, a]
                share[a] = level[a] - 0.5 * off * off / shape[2, a]
                top = max(top, share[a])
            total, inverse, pull = 0.0, 0.0, 0.0
            for a in range(c):
                part = np.exp(share[a] - top)
                total += part
                inverse += part / shape[2, a]
                pull += part * shape[1, a] / shape[2, a]
            precision[i] = weights[i] * inverse / total
            shifted[i] = rows[i, last] - pull / inverse
        weighted_gram(rows, last, shifted, precision, gram)
        regression(gram, width, factor, contrast)
    return -contrast[:last], shape


@njit
def move_and_stretch(bins, shape, spread):  # type: ignore[no-untyped-def]
    """Where a shape must be moved to, and how far stretched, to fit a histogram best: by EM from equal moments."""
    mean = (shape[0] * shape[1]).sum()
    variance = (shape[0] * (shape[2] + (shape[1] - mean) ** 2)).sum()
    n = bins[0].sum()
    stretch = spread / np.sqrt(variance)
    move = (bins[0] * bins[1]).sum() / n - stretch * mean
    c = shape.shape[1]
    share = np.empty(c)
    floor = np.sqrt(VARIANCE_FLOOR / shape[2].min())
    for _ in range(SHAPE_STEPS):
        level = np.log(shape[0]) - 0.5 * np.log(shape[2])
        inverse, pull, square, product = 0.0, 0.0, 0.0, 0.0
        for i in range(bins.shape[1]):
            top = -np.inf
            for a in range(c):
                off = (bins[1, i] - move) / stretch - shape[1, a]
                share[a] = level[a] - 0.5 * off * off / shape[2, a]
                top = max(top, share[a])
            total = 0.0
            for a in range(c):
                share[a] = np.exp(share[a] - top)
                total += share[a]
            off, off2 = bins[1, i] - move, bins[2, i] - 2.0 * move * bins[1, i] + move * move
            for a in range(c):
                part = bins[0, i] * share[a] / total / shape[2, a]
                inverse += part
                pull += part * (off - stretch * shape[1, a])
                square += part * off2
                product += part * off * shape[1, a]
        new = max((-product + np.sqrt(product * product + 4.0 * n * square)) / (2.0 * n), floor)
        step = pull / inverse
        move += step
        done = abs(step) < 1e-3 * new and abs(new - stretch) < 1e-3 * stretch
        stretch = new
        if done:
            break
    return move, stretch


@njit
def best_move(residual, weights, shape):  # type: ignore[no-untyped-def]
    """A shape moved and stretched to fit the residuals best, or one Gaussian if that fits better; and how well."""
    bins, mean, spread = histogram(residual, weights)
    gaussian = np.empty((3, 1))
    gaussian[0, 0], gaussian[1, 0], gaussian[2, 0] = 1.0, mean, spread**2
    n = bins[0].sum()
    value = -0.5 * n * (LOG_2PI + np.log(spread**2) + 1.0)
    if shape.shape[1] == 1:
        return value, gaussian
    move, stretch = move_and_stretch(bins, shape, spread)
    moved = shape.copy()
    moved[1] = move + stretch * shape[1]
    moved[2] = stretch**2 * shape[2]
    trial = climb(bins, moved.copy(), VARIANCE_FLOOR, 1)
    if trial > value:
        return trial, moved
    return value, gaussian


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
        residual = (y - reference.mean(x) - reference.noise.mean) / np.sqrt(reference.noise.variance)
        return np.asarray(
            rough_gains(residual, x, responsibilities) > np.log(np.maximum(responsibilities.sum(axis=0), 2.0))
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
        trials: list[tuple[type[AdditiveNoise], Array, Array, int]] = [(LinearMechanism, np.zeros(1), y, 2)]
        if imperfect and x.shape[1]:
            trials.append((type(reference), reference.parameters, y - reference.mean(x), 2))
            own = least_squares(_rows(x, y), weights)
            trials.append((LinearMechanism, own, y - own[0] - x @ own[1:], 2 + x.shape[1]))
        noise = reference.noise
        shape = np.stack([noise.weights, noise.means, noise.variances])
        half_log = 0.5 * np.log(max(weights.sum(), 2.0))
        best, found = -np.inf, reference
        for kind, parameters, residual, n_free in trials:
            value, own_shape = best_move(residual, weights, shape)
            if value - n_free * half_log > best:
                best = value - n_free * half_log
                found = kind(parameters, Noise(*own_shape), n_free)
        return found


class AnyNoise(Shaped):
    """Lines plus noise of any shape."""

    @classmethod
    def fit(cls, x: Array, y: Array, weights: Array, start: Mechanism | None = None) -> LinearMechanism:  # noqa: ARG003
        """See :class:`RowFamily`."""
        coefficients, shape = fit_rows(_rows(x, y), weights, MOST_COMPONENTS)
        return LinearMechanism(coefficients, Noise(*shape))


def _rows(x: Array, y: Array) -> Array:
    return np.column_stack([np.ones(len(y)), x, y])
