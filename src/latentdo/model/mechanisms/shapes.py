"""Shapes of noise: a mixture of Gaussians, fitted to a histogram of what a mechanism leaves over.

A shape is an array ``[3, c]``: weights, means and variances of its Gaussians. A few of them are free, or many
stand in a row (:mod:`.sharp_ends`).
"""

from __future__ import annotations

import math

import numpy as np

from latentdo.compilation import njit, vectorised
from latentdo.model.mechanisms.histograms import histogram, likelihood, outermost
from latentdo.model.mechanisms.noise import LOG_2PI, ROW, VARIANCE_FLOOR, Array, fill_shares
from latentdo.model.mechanisms.sharp_ends import BEYOND, FEWEST_BINS, end_to_end, fit_row, likelihood_of_row

MOST_COMPONENTS = 8
"""Free Gaussians in a noise at most: skewed noise used four or five, and with three it once looked like two regimes."""

NARROWEST = 0.05
"""A free Gaussian is at least so wide, as a share of the whole noise: atoms would have infinite density."""

UNKNOWN = np.empty((3, 0))
"""The shape to begin with where none is known."""

SHAPE_STEPS = 30
"""Steps of EM on a histogram."""

ROW_STEPS = 6
"""The same where a row of Gaussians is moved and stretched: EM is slow beside sharp ends, and going from end to end
with the rows finds more."""

PATIENCE = 2
"""Numbers of Gaussians, one after another, that do not pay, after which more are not tried."""

ENOUGH = 0.01
"""A step that gains fewer nats is the last."""

POLISH_STEPS = 100
"""Steps for the better of two beginnings."""


@vectorised
def climb(bins, shape, floor, iterations, needed):  # type: ignore[no-untyped-def]
    """EM of a mixture of Gaussians on a histogram, in place; returns its log-likelihood before the last step.

    The rows of ``shape [3, c]`` are weights, means and variances. Where the steps left, were they all like the last
    one, would not reach what is ``needed``, there are no more.
    """
    c, m = shape.shape[1], bins.shape[1]
    shares, density, sums = np.empty((c, m)), np.empty(m), np.empty((3, c))
    slope, slopes, inverse = np.empty(m), np.empty(m), np.empty(m)
    loglik, before = -np.inf, -np.inf
    for taken in range(iterations):
        fill_shares(bins[1], shape, False, shares, density)
        slope[:], slopes[:], inverse[:] = 0.0, 0.0, 0.0
        for a in range(c):
            narrow, mean = 1.0 / shape[2, a], shape[1, a]
            count, first, second = 0.0, 0.0, 0.0
            for i in range(m):
                step = (bins[1, i] - mean) * narrow
                slope[i] += shares[a, i] * step
                slopes[i] += shares[a, i] * step * step
                inverse[i] += shares[a, i] * narrow
                part = bins[0, i] * shares[a, i]
                count += part
                first += part * bins[1, i]
                second += part * bins[2, i]
            sums[0, a], sums[1, a], sums[2, a] = count, first, second
        loglik = 0.0
        for i in range(m):
            # A bin has a width: its rows see the curvature of the log-density, too.
            curvature = slopes[i] - slope[i] * slope[i] - inverse[i]
            loglik += bins[0, i] * (density[i] + 0.5 * curvature * max(bins[2, i] - bins[1, i] ** 2, 0.0))
        everything = sums[0].sum()
        for a in range(c):
            count = max(sums[0, a], 1e-9)
            shape[0, a] = max(count / everything, 1e-9)
            shape[1, a] = sums[1, a] / count
            shape[2, a] = max(sums[2, a] / count - shape[1, a] ** 2, floor)
        if loglik - before < ENOUGH or loglik + (loglik - before) * (iterations - 1 - taken) < needed:
            break
        before = loglik
    return loglik


def choose_shape(
    bins: Array, mean: float, spread: float, start: Array, reach: int, error2: float
) -> tuple[Array, float]:
    """The mixture with the highest evidence, ``[3, c]``, and its log-likelihood less the cost of its Gaussians.

    One Gaussian more as long as that pays, or two more do; ``reach`` is how many more or fewer are tried than
    ``start [3, c]`` has. With other numbers, or where there was one, a row of Gaussians is tried, too; ``error2`` is
    that of :func:`.likelihood`, and blurs it.
    """
    cost = 1.5 * math.log(max(bins[0].sum(), 2.0))
    floor = max((NARROWEST * spread) ** 2, VARIANCE_FLOOR)
    best = np.array([[1.0], [mean], [max(spread**2, VARIANCE_FLOOR)]])
    top = climb(bins, best.copy(), floor, 1, -np.inf)
    known = 1 if start.shape[1] == ROW else start.shape[1]
    if reach > 0 or start.shape[1] == ROW:
        row, value = fit_row(bins, mean, spread, error2)
        if value > top:
            top, best = value, row
    behind = 0
    for c in range(max(known - reach, 2), min(known + reach, MOST_COMPONENTS) + 1):
        begins = (start, mean, spread, floor)
        winner = _as_before(*begins) if c == known else _from_scratch(bins, *begins[1:], c)
        value = climb(bins, winner, floor, POLISH_STEPS, top + cost * (c - 1)) - cost * (c - 1)
        if value > top:
            top, best, behind = value, winner, 0
        else:
            behind += 1
            if behind == PATIENCE:
                break
    return best, top


def _as_before(start: Array, mean: float, spread: float, floor: float) -> Array:
    """A known shape, moved and stretched to a mean and a spread."""
    middle = (start[0] * start[1]).sum()
    stretch = spread / np.sqrt((start[0] * (start[2] + (start[1] - middle) ** 2)).sum())
    shape = start.copy()
    shape[1] = mean + stretch * (start[1] - middle)
    shape[2] = np.maximum(stretch**2 * start[2], floor)
    return shape


@njit
def _from_scratch(bins, mean, spread, floor, c):  # type: ignore[no-untyped-def]
    """The better of two mixtures of ``c`` Gaussians."""
    value, winner = -np.inf, np.empty((3, c))
    for wide in (False, True):
        shape = np.empty((3, c))
        shape[0] = 1.0 / c
        for a in range(c):
            # Side by side for skewness and humps, or of growing width for heavy tails.
            place = (a + 0.5) / c
            shape[1, a] = mean if wide else mean + spread * (4.0 * place - 2.0) * 0.8
            shape[2, a] = max((spread * (0.3 * 8.0**place if wide else 1.2 / np.sqrt(c))) ** 2, floor)
        trial = climb(bins, shape, floor, SHAPE_STEPS, -np.inf)
        if trial > value:
            value, winner = trial, shape
    return winner


@vectorised
def move_and_stretch(bins, shape, spread):  # type: ignore[no-untyped-def]
    """Where a shape must be moved to, and how far stretched, to fit a histogram best: by EM from equal moments."""
    mean = (shape[0] * shape[1]).sum()
    variance = (shape[0] * (shape[2] + (shape[1] - mean) ** 2)).sum()
    n = bins[0].sum()
    stretch = spread / np.sqrt(variance)
    move = (bins[0] * bins[1]).sum() / n - stretch * mean
    c, m = shape.shape[1], bins.shape[1]
    shares, density, places = np.empty((c, m)), np.empty(m), np.empty(m)
    floor = np.sqrt(VARIANCE_FLOOR / shape[2].min())
    for _ in range(ROW_STEPS if c == ROW else SHAPE_STEPS):
        for i in range(m):
            places[i] = (bins[1, i] - move) / stretch
        fill_shares(places, shape, c == ROW, shares, density)
        inverse, pull, square, product = 0.0, 0.0, 0.0, 0.0
        for a in range(c):
            narrow, mean = 1.0 / shape[2, a], shape[1, a]
            for i in range(m):
                off = bins[1, i] - move
                # Of rows that are all alike rounding may leave less than nothing.
                off2 = max(bins[2, i] - 2.0 * move * bins[1, i] + move * move, 0.0)
                part = bins[0, i] * shares[a, i] * narrow
                inverse += part
                pull += part * (off - stretch * mean)
                square += part * off2
                product += part * off * mean
        new = max((-product + np.sqrt(product * product + 4.0 * n * square)) / (2.0 * n), floor)
        step = pull / inverse
        move += step
        done = abs(step) < 1e-3 * new and abs(new - stretch) < 1e-3 * stretch
        stretch = new
        if done:
            break
    return move, stretch


@njit
def moved_and_stretched(shape, move, stretch):  # type: ignore[no-untyped-def]
    """A shape elsewhere."""
    moved = shape.copy()
    moved[1] = move + stretch * shape[1]
    moved[2] = stretch**2 * shape[2]
    return moved


@njit
def best_move(residual, weights, shape):  # type: ignore[no-untyped-def]
    """A shape moved and stretched to fit the residuals best, or one Gaussian if that fits better; and how well."""
    bins, mean, spread = histogram(residual, weights)
    best = np.empty((3, 1))
    best[0, 0], best[1, 0], best[2, 0] = 1.0, mean, spread**2
    value = -0.5 * bins[0].sum() * (LOG_2PI + np.log(spread**2) + 1.0)
    if shape.shape[1] == 1:
        return value, best
    trial = moved_and_stretched(shape, *move_and_stretch(bins, shape, spread))
    found = likelihood(bins, trial, 0.0)
    if found > value:
        value, best = found, trial
    if shape.shape[1] == ROW:
        # EM is slow where ends are sharp.
        before = -1
        for share in BEYOND:
            beyond = outermost(bins, share)
            if bins.shape[1] < beyond[0] + beyond[1] + FEWEST_BINS:
                break
            if beyond[0] + beyond[1] == before:
                continue
            before = beyond[0] + beyond[1]
            trial = moved_and_stretched(shape, *end_to_end(bins, shape, beyond))
            found = likelihood_of_row(bins, trial, 0.0)
            if found > value:
                value, best = found, trial
    return value, best
