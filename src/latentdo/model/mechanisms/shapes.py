"""Shapes of noise: a mixture of a few Gaussians, fitted to a histogram of what a mechanism leaves over.

A shape is an array ``[3, c]``: weights, means and variances of its Gaussians. Bins keep their first two moments, so
that little is lost, and a fit takes the same time whatever the number of rows.
"""

from __future__ import annotations

import numpy as np

from latentdo.compilation import njit
from latentdo.model.mechanisms.noise import COMB, LOG_2PI, NEGLIGIBLE, VARIANCE_FLOOR

MOST_COMPONENTS = 8
"""Gaussians in a noise at most: skewed noise uses four or five, and with three it once looked like two regimes."""

NARROWEST = 0.05
"""A Gaussian of mixed noise is at least so wide, as a share of the whole noise: atoms would have infinite density."""

N_BINS = 64
"""Bins of the histogram that shapes are fitted to; finer ones changed no fit."""

REACH = 6.0
"""Standard deviations that the bins cover at most on either side; the outermost ones take the rest."""

UNKNOWN = np.empty((3, 0))
"""The shape to begin with where none is known."""

SHAPE_STEPS = 30
"""Steps of EM on a histogram."""

PATIENCE = 2
"""Numbers of Gaussians in a row that do not pay, after which more are not tried."""

ENOUGH = 0.01
"""A step that gains fewer nats is the last."""

POLISH_STEPS = 100
"""Steps for the better of two beginnings."""

COMB_WIDTHS = (0.94, 0.96, 0.98, 0.99, 1.0)
"""Widths of nearly uniform noise that are tried, as shares of the range of the residuals."""


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
def fill_shares(value, level, shape, share):  # type: ignore[no-untyped-def]
    """Fill ``share [c]`` with the probabilities that a value came from each Gaussian; returns its log-density.

    ``level [c]`` are the log-densities of the Gaussians at their means, weights included, up to a constant.
    """
    c = shape.shape[1]
    top, total = -np.inf, 0.0
    for a in range(c):
        off = value - shape[1, a]
        share[a] = level[a] - 0.5 * off * off / shape[2, a]
        top = max(top, share[a])
    for a in range(c):
        share[a] = np.exp(share[a] - top) if share[a] - top > NEGLIGIBLE else 0.0
        total += share[a]
    for a in range(c):
        share[a] /= total
    return top + np.log(total)


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
            density = fill_shares(bins[1, i], level, shape, share)
            slope, slopes, inverse = 0.0, 0.0, 0.0
            for a in range(c):
                step = (bins[1, i] - shape[1, a]) / shape[2, a]
                slope += share[a] * step
                slopes += share[a] * step * step
                inverse += share[a] / shape[2, a]
            # A bin has a width: its rows see the curvature of the log-density, too.
            curvature = slopes - slope * slope - inverse
            loglik += bins[0, i] * (density + 0.5 * curvature * max(bins[2, i] - bins[1, i] ** 2, 0.0))
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
        if loglik - before < ENOUGH:
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
def choose_shape(bins, mean, spread, start, reach):  # type: ignore[no-untyped-def]
    """The mixture with the highest evidence, ``[3, c]``, and its log-likelihood less the cost of its Gaussians.

    One Gaussian more as long as that pays, or two more do; ``reach`` is how many more or fewer are tried than
    ``start [3, c]`` has. A row of equal Gaussians, for noise with sharp edges, costs as much as a single one.
    """
    cost = 1.5 * np.log(max(bins[0].sum(), 2.0))
    floor = max((NARROWEST * spread) ** 2, VARIANCE_FLOOR)
    best = np.empty((3, 1))
    best[0, 0], best[1, 0], best[2, 0] = 1.0, mean, max(spread**2, VARIANCE_FLOOR)
    top = climb(bins, best.copy(), floor, 1)
    known = 1 if start.shape[1] == COMB else start.shape[1]
    if reach > 0 or start.shape[1] == COMB:
        comb, value = fit_comb(bins)
        if value > top:
            top, best = value, comb
    behind = 0
    for c in range(max(known - reach, 2), min(known + reach, MOST_COMPONENTS) + 1):
        if c == known:
            winner, value = _as_before(start, mean, spread, floor), 0.0
        else:
            winner, value = _from_scratch(bins, mean, spread, floor, c)
        value = climb(bins, winner, floor, POLISH_STEPS) - cost * (c - 1)
        if value > top:
            top, best, behind = value, winner, 0
        else:
            behind += 1
            if behind == PATIENCE:
                break
    return best, top


@njit
def _as_before(start, mean, spread, floor):  # type: ignore[no-untyped-def]
    """A known shape, moved and stretched to a mean and a spread."""
    middle = (start[0] * start[1]).sum()
    stretch = spread / np.sqrt((start[0] * (start[2] + (start[1] - middle) ** 2)).sum())
    shape = start.copy()
    shape[1] = mean + stretch * (start[1] - middle)
    shape[2] = np.maximum(stretch**2 * start[2], floor)
    return shape


@njit
def _from_scratch(bins, mean, spread, floor, c):  # type: ignore[no-untyped-def]
    """The better of two mixtures of ``c`` Gaussians, and its log-likelihood."""
    value, winner = -np.inf, np.empty((3, c))
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
    return winner, value


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
            off = bins[1, i] - move
            # Of rows that are all alike rounding may leave less than nothing.
            off2 = max(bins[2, i] - 2.0 * move * bins[1, i] + move * move, 0.0)
            fill_shares(off / stretch, level, shape, share)
            for a in range(c):
                part = bins[0, i] * share[a] / shape[2, a]
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
