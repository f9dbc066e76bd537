r"""Noise whose scale follows the signal, as that of sensors, counts and concentrations does.

A growth is an array ``[2, m]``: some values of the signal, ascending, and the logarithm of the scale there; it is
straight between them and constant beyond, and empty where the scale is always the same. It rises or falls, but not
both: a scale that is wide at both ends is what the wrong direction of an edge leaves where noise has heavy tails.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit, vectorised
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR
from latentdo.model.transcendental import LOWEST, fast_exp

NO_GROWTH = np.empty((2, 0))
"""The scale of most noise: always the same."""

PLACES = (0.0, 0.15, 0.5, 0.85, 1.0)
"""Where the scale may bend, as shares of the rows with a smaller signal."""

REACH = 6.0
"""Standard deviations of the signal on either side that are told apart."""

N_BINS = 96
"""Bins of the signal in which squares of residuals are added up: much finer than the scale can bend."""

SWEEPS = 12
"""Newton's way to the likeliest heights, one after another: the problem is concave, and four numbers are few."""

LARGEST_STEP = 1.0
"""Change of a height in one step at most: far from the answer they overshoot."""

_SMALLEST = 1e-3  # of a rise, below which there is none


@njit
def log_scales(signal, growth):  # type: ignore[no-untyped-def]
    """Logarithm of the scale of the noise, ``[n]``."""
    found = np.zeros(signal.shape[0])
    m = growth.shape[1]
    if m == 0:
        return found
    for i in range(signal.shape[0]):
        if signal[i] <= growth[0, 0]:
            found[i] = growth[1, 0]
        elif signal[i] >= growth[0, m - 1]:
            found[i] = growth[1, m - 1]
        else:
            a = 1
            while signal[i] > growth[0, a]:
                a += 1
            share = (signal[i] - growth[0, a - 1]) / (growth[0, a] - growth[0, a - 1])
            found[i] = growth[1, a - 1] + share * (growth[1, a] - growth[1, a - 1])
    return found


@njit
def scales(signal, growth):  # type: ignore[no-untyped-def]
    """Scale of the noise, ``[n]``."""
    return np.exp(log_scales(signal, growth)) if growth.shape[1] else np.ones(signal.shape[0])


@njit
def n_rises(growth):  # type: ignore[no-untyped-def]
    """Free parameters of a growth: how many of its stretches are not level."""
    count = 0
    for a in range(growth.shape[1] - 1):
        if growth[1, a] != growth[1, a + 1]:
            count += 1
    return count


@njit
def _binned(residual, signal, weights):  # type: ignore[no-untyped-def]
    """Weight, sum of squared residuals and mean signal of every bin that is not empty, ``[3, bins]``."""
    total = weights.sum()
    mean = (weights * signal).sum() / total
    spread = np.sqrt(max((weights * (signal - mean) ** 2).sum() / total, 0.0))
    low, high = mean, mean
    for i in range(signal.shape[0]):
        low, high = min(low, signal[i]), max(high, signal[i])
    low, high = max(low, mean - REACH * spread), min(high, mean + REACH * spread)
    sums = np.zeros((3, N_BINS))
    if not high > low:
        return sums[:, :0]
    for i in range(signal.shape[0]):
        place = int(min(max((signal[i] - low) * N_BINS / (high - low), 0.0), N_BINS - 1.0))
        sums[0, place] += weights[i]
        sums[1, place] += weights[i] * residual[i] ** 2
        sums[2, place] += weights[i] * min(max(signal[i], low), high)
    filled = sums[0] > 1e-9 * total
    bins = np.empty((3, filled.sum()))
    for a in range(3):
        bins[a] = sums[a][filled]
    bins[2] /= bins[0]
    return bins


@njit
def _knots(bins):  # type: ignore[no-untyped-def]
    """Values of the signal at :data:`PLACES`, without those that coincide."""
    total, reached, place = bins[0].sum(), 0.0, 0
    knots, count = np.empty(len(PLACES)), 0
    for b in range(bins.shape[1]):
        reached += bins[0, b]
        if reached >= (PLACES[place] - 1e-9) * total or b == bins.shape[1] - 1:
            knots[count] = bins[2, b]
            count += 1
            while place < len(PLACES) - 1 and reached >= (PLACES[place] - 1e-9) * total:
                place += 1
    return knots[:count]


@vectorised
def _climb(bins, knots, sign):  # type: ignore[no-untyped-def]
    """Likeliest rises between knots, all of one sign or zero, and the log-likelihood they gain."""
    m, n_bins, n = knots.shape[0] - 1, bins.shape[1], bins[0].sum()
    ramps = np.empty((m, n_bins))
    for a in range(m):
        for b in range(n_bins):
            ramps[a, b] = min(max((bins[2, b] - knots[a]) / (knots[a + 1] - knots[a]), 0.0), 1.0)
    rises, scale = np.zeros(m), np.zeros(n_bins)
    for _ in range(SWEEPS):
        moved = 0.0
        for a in range(m):
            total, first, second, plain = 0.0, 0.0, 0.0, 0.0
            for b in range(n_bins):
                part = bins[1, b] * fast_exp(min(max(-2.0 * scale[b], LOWEST), -LOWEST))
                total += part
                first += part * ramps[a, b]
                second += part * ramps[a, b] ** 2
                plain += bins[0, b] * ramps[a, b]
            first, second = first / total, second / total
            slope, curvature = n * first - plain, 2.0 * n * (second - first * first)
            if curvature <= 1e-9 * n:
                continue
            step = min(max(slope / curvature, -LARGEST_STEP), LARGEST_STEP)
            new = sign * max(sign * (rises[a] + step), 0.0)
            step = new - rises[a]
            rises[a] = new
            for b in range(n_bins):
                scale[b] += step * ramps[a, b]
            moved = max(moved, abs(step))
        if moved < _SMALLEST:
            break
    before, after = bins[1].sum(), (bins[1] * np.exp(-2.0 * scale)).sum()
    return rises, 0.5 * n * np.log(before / after) - (bins[0] * scale).sum()


@njit
def likeliest_growth(residual, signal, weights):  # type: ignore[no-untyped-def]
    r"""How the scale of residuals follows the signal, ``[2, m]``, and what that gains in nats, cost not counted.

    By Gaussian quasi-likelihood, which is right on average whatever the shape of the noise.
    """
    nothing = np.empty((2, 0))
    bins = _binned(residual, signal, weights)
    if bins.shape[1] <= len(PLACES) or not bins[1].sum() > VARIANCE_FLOOR * bins[0].sum():
        return nothing, 0.0  # parents that determine a variable leave rounding
    knots = _knots(bins)
    best, found = 0.0, nothing
    for sign in (1.0, -1.0):
        rises, gain = _climb(bins, knots, sign)
        if gain > best:
            best = gain
            found = np.zeros((2, knots.shape[0]))
            found[0] = knots
            for a in range(rises.shape[0]):
                found[1, a + 1] = found[1, a] + (rises[a] if abs(rises[a]) > _SMALLEST else 0.0)
    return found, best


def check_growth(flat: NDArray[np.float64]) -> NDArray[np.float64]:
    """A growth from its numbers, ``[2 m]``; what no fit gives is a :class:`ValueError`."""
    if flat.size % 2 or not np.isfinite(flat).all():
        raise ValueError("the growth of a noise is not such as a fit gives")
    growth = np.ascontiguousarray(flat.reshape(2, -1))
    if not ((np.diff(growth[0]) > 0.0).all() and (np.abs(growth[1]) < _LARGEST).all()):
        raise ValueError("the growth of a noise is not such as a fit gives")
    return growth


_LARGEST = 100.0  # logarithm of a scale, which then stays finite
