r"""Noise with sharp ends: a row of Gaussians side by side, whose weights follow a law.

Uniform, exponential and gamma noise, waiting times and half-normals end abruptly, where a few free Gaussians are either
too wide or too many. The Gaussians of a row are narrower the nearer they are to a sharp end, each half as wide as the
distance between its neighbours, and have the weights of a density with few parameters at their places: a constant
between two ends, or the generalised gamma law

.. math:: f(u) \propto u^{a - 1} e^{-(u / s)^p}

of the distance :math:`u` from one end (Stacy, 1962): exponential, gamma, Weibull and half-normal densities, with the
log-normal one as a limit for small :math:`p`, and the constant as a limit for large :math:`p` where :math:`a = 1`. So a
row is charged for a width, and for :math:`a` and :math:`p` unless it is flat.
"""

from __future__ import annotations

import math

import numpy as np

from latentdo.compilation import njit, vectorised
from latentdo.model.mechanisms.histograms import highest, likelihood, lowest, outermost
from latentdo.model.mechanisms.noise import ROW, VARIANCE_FLOOR
from latentdo.model.transcendental import LOWEST, fast_exp, fast_log

TAIL = 3.72
"""Standard score of the share of a law, 1e-4, that a row may leave out at its far end."""

LEAST_NARROWING = 2.0
"""Power of its number in the row that the distance of a Gaussian from a sharp end follows at least: 12 nats short of an
exponential density on 3000 rows; with 1.5, 39."""

SHARPEST = 0.003
"""Width that the outermost Gaussian stands for, as a share of the spread: atoms would have infinite density."""

FLATTEST = 0.5
"""Power :math:`a` of a law at least: below, more and more rows are at the very end, as if that were an atom."""

BEYOND = (0.0, 0.0007, 0.0015, 0.004, 0.01, 0.025, 0.05)
"""Shares of the rows that may be beyond a sharp end, by errors of fitted values or from other regimes."""

FEWEST_BINS = 8
"""Different values that a law with a sharp end needs at least."""

BLUNT = 0.5
"""Variance of the Gaussian at the one sharp end of a row, as a share of that at the other end, at most."""

GAPS = np.array([0.003, 0.01, 0.03, 0.1, 0.3, 1.0])
"""Distances of the end from the outermost row that are tried, as shares of the spread."""

DECAYS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
"""Powers :math:`p` of the law that are tried, each the double of the one before."""

NEARER_GAPS, NEARER_DECAYS = np.array([0.6, 1.0, 1.7]), np.array([0.7, 1.0, 1.4])
"""Multiples of the best of them that are tried after that."""

REFINEMENTS = 3
"""Rounds of such trials, the first included."""


@njit
def flat_row(low, high):  # type: ignore[no-untyped-def]
    """Nearly uniform noise between two ends, ``[3, c]``: Gaussians side by side, narrower towards both."""
    borders = low + (high - low) * np.sin(0.5 * np.pi * np.arange(ROW + 1) / ROW) ** 2
    shape = np.empty((3, ROW))
    widths = borders[1:] - borders[:-1]
    shape[0] = widths / (high - low)
    shape[1] = 0.5 * (borders[1:] + borders[:-1])
    shape[2] = (0.5 * widths) ** 2  # neighbours are two standard deviations apart: no ripples to speak of
    return shape


@njit
def sharp_row(end, side, start, decay, scale, furthest, spread):  # type: ignore[no-untyped-def]
    """Noise with one sharp end, ``[3, c]``: Gaussians side by side, narrower towards it.

    ``start``, ``decay`` and ``scale`` are the law's ``a``, ``p`` and ``s``. The row is on the ``side`` 1 or -1 of its
    end, and reaches at least as far as ``furthest``.
    """
    # Where the law ends, practically (Wilson and Hilferty's quantile of a gamma variable).
    k = start / decay
    reach = scale * (k * max(1.0 - 1.0 / (9.0 * k) + TAIL / (3.0 * np.sqrt(k)), 1.0) ** 3) ** (1.0 / decay)
    reach = max(reach, furthest)
    # The longer the tail, the more of them stand near the end.
    narrowing = min(1.0 + 1.0 / decay, np.log(max(reach / (SHARPEST * spread), 1.0)) / np.log(ROW))
    narrowing = max(narrowing, LEAST_NARROWING)
    borders = reach * (np.arange(ROW + 1) / ROW) ** narrowing
    shape = np.empty((3, ROW))
    widths, middles = borders[1:] - borders[:-1], 0.5 * (borders[1:] + borders[:-1])
    power = (borders / reach) ** start
    shape[0] = np.maximum(power[1:] - power[:-1], 1e-300)
    level = np.log(shape[0]) - (middles / scale) ** decay
    shape[0] = np.maximum(np.exp(level - level.max()), 1e-9)
    shape[0] /= shape[0].sum()
    shape[1] = end + side * middles
    shape[2] = (0.5 * widths) ** 2
    if side < 0.0:
        shape = shape[:, ::-1].copy()
    return shape


@njit
def likeliest_law(n, middle, level, decay):  # type: ignore[no-untyped-def]
    """Log-likelihood, ``a`` and ``s`` of the likeliest law with a power ``p``.

    ``n`` rows have a mean logarithm of the distance and a logarithm of the mean power.
    """
    # The shape of a gamma variable, within 1.5 % (Minka, 2002).
    s = max(level - decay * middle, 1e-6)
    k = (3.0 - s + np.sqrt((s - 3.0) ** 2 + 24.0 * s)) / (12.0 * s)
    k = max(k, FLATTEST / decay)
    value = np.log(decay) + (k * decay - 1.0) * middle - k - math.lgamma(k) - k * (level - np.log(k))
    return n * value, k * decay, np.exp((level - np.log(k)) / decay)


@vectorised
def fit_sharp(bins, spread, side, dropped):  # type: ignore[no-untyped-def]
    """The likeliest noise with a sharp end on one side, ``dropped`` bins left out beyond it, ``[3, c]``."""
    m = bins.shape[1] - dropped
    mass, place, logs = np.empty(m), np.empty(m), np.empty(m)
    for i in range(m):
        j = i + dropped if side > 0 else m - 1 - i
        mass[i], place[i] = bins[0, j], side * bins[1, j]
    low = lowest(bins, dropped) if side > 0 else -highest(bins, dropped)
    best, n = -np.inf, mass.sum()
    gap, decay, start, scale = 0.0, 1.0, 1.0, 1.0
    gaps, decays = GAPS * spread, DECAYS
    for _ in range(REFINEMENTS):
        for trial in gaps:
            middle = 0.0
            for i in range(m):
                logs[i] = fast_log(place[i] - low + trial)
                middle += mass[i] * logs[i]
            middle /= n
            for power in decays:
                total = 0.0
                for i in range(m):
                    total += mass[i] * fast_exp(min(max(power * logs[i], LOWEST), -LOWEST))
                value, a, s = likeliest_law(n, middle, np.log(total / n), power)
                if value > best:
                    best, gap, decay, start, scale = value, trial, power, a, s
        gaps, decays = gap * NEARER_GAPS, decay * NEARER_DECAYS
    end = low - gap
    return sharp_row(side * end, side, start, decay, scale, place[m - 1] - end, spread)


@njit
def fit_row(bins, mean, spread, error2):  # type: ignore[no-untyped-def]
    """The likeliest row of Gaussians, ``[3, c]``, and its log-likelihood less what it costs more than one Gaussian.

    ``error2`` is that of :func:`.likelihood`. The end of one-sided noise is opposite to its longer tail.
    """
    n = bins.shape[1]
    cost = np.log(max(bins[0].sum(), 2.0))  # two numbers of the law, half a logarithm each
    skewness = 0.0
    for i in range(n):
        skewness += bins[0, i] * (bins[1, i] - mean) ** 3
    side = 1.0 if skewness > 0.0 else -1.0
    # A uniform density of the same moments: errors of fitted values hide where it ends, but not how wide it is.
    best = flat_row(mean - np.sqrt(3.0) * spread, mean + np.sqrt(3.0) * spread)
    top = likelihood_of_row(bins, best, error2)
    last, last_sharp = -1, -1
    for share in BEYOND:
        low, high = outermost(bins, share)
        if n < low + high + FEWEST_BINS:
            break
        if low + high > last:
            shape = flat_row(lowest(bins, low), highest(bins, high))
            value = likelihood_of_row(bins, shape, error2)
            if value > top:
                best, top = shape, value
        dropped = low if side > 0.0 else high
        if dropped > last_sharp:
            shape = fit_sharp(bins, spread, side, dropped)
            value = likelihood_of_row(bins, shape, error2) - cost
            if value > top:
                best, top = shape, value
        last, last_sharp = low + high, dropped
    return best, top


@njit
def likelihood_of_row(bins, shape, error2):  # type: ignore[no-untyped-def]
    """See :func:`.likelihood`; what is too narrow is impossible."""
    return likelihood(bins, shape, error2) if shape[2].min() >= VARIANCE_FLOOR else -np.inf


@njit
def end_to_end(bins, shape, beyond):  # type: ignore[no-untyped-def]
    """Where a row must be moved to, and how far stretched, so that its sharp ends are those of a histogram.

    With one such end, it is the means that agree. ``beyond`` are the bins left out at either end.
    """
    low, high = lowest(bins, beyond[0]), highest(bins, beyond[1])
    first, last = shape[1, 0] - np.sqrt(shape[2, 0]), shape[1, -1] + np.sqrt(shape[2, -1])
    if shape[2, 0] < BLUNT * shape[2, -1]:
        high, last = (bins[0] * bins[1]).sum() / bins[0].sum(), (shape[0] * shape[1]).sum()
    elif shape[2, -1] < BLUNT * shape[2, 0]:
        low, first = (bins[0] * bins[1]).sum() / bins[0].sum(), (shape[0] * shape[1]).sum()
    stretch = (high - low) / (last - first)
    return low - stretch * first, stretch
