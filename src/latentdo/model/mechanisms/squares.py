"""Least-squares problems that noise of a shape makes of a regression."""

from __future__ import annotations

import numpy as np

from latentdo.compilation import njit
from latentdo.model.mechanisms.histograms import fill_shares
from latentdo.model.mechanisms.noise import LOG_2PI, NEGLIGIBLE

WITHIN = 8
"""Points within each Gaussian of a row at which scores are computed, and between which they are interpolated."""

N_PLACES = 1024
"""Places of a row at which one begins to look for these points."""


@njit
def as_squares(raw, scale, weights, shape, values, precision, shifted):  # type: ignore[no-untyped-def]
    """Fill weights and values ``[n]`` of the least-squares problem that noise of a shape makes of a regression."""
    c = shape.shape[1]
    level = np.log(shape[0]) - 0.5 * np.log(shape[2])
    means, inverses, terms = shape[1], 1.0 / shape[2], np.empty(c)
    for i in range(raw.shape[0]):
        top = -np.inf
        for a in range(c):
            off = raw[i] / scale[i] - means[a]
            terms[a] = level[a] - 0.5 * off * off * inverses[a]
            top = max(top, terms[a])
        total, inverse, pull = 0.0, 0.0, 0.0
        for a in range(c):
            if terms[a] - top > NEGLIGIBLE:
                part = np.exp(terms[a] - top)
                total += part
                inverse += part * inverses[a]
                pull += part * inverses[a] * means[a]
        precision[i] = weights[i] * inverse / (total * scale[i] ** 2)
        shifted[i] = values[i] - scale[i] * pull / inverse


@njit
def fill_scores(values, shape, error2, scores):  # type: ignore[no-untyped-def]
    """Fill the slopes ``[n]`` of minus the log-density of a blurred row of Gaussians at values, interpolated.

    A few points within each Gaussian are computed, and those that are further out than the row.
    """
    c = shape.shape[1]
    blurred = shape.copy()
    blurred[2] += error2
    level = np.log(blurred[0]) - 0.5 * (LOG_2PI + np.log(blurred[2]))
    share = np.empty(c)
    grid, slopes = np.empty(c * WITHIN + 1), np.empty(c * WITHIN + 1)
    for m in range(grid.shape[0]):
        a = min(m // WITHIN, c - 1)
        grid[m] = shape[1, a] + np.sqrt(shape[2, a]) * (2.0 * (m - a * WITHIN) / WITHIN - 1.0)
        slopes[m] = _score(grid[m], level, blurred, share)
    low, high = grid[0], grid[-1]
    per = N_PLACES / (high - low)
    begin, m = np.empty(N_PLACES + 1, np.int64), 0
    for place in range(N_PLACES + 1):
        while m < grid.shape[0] - 2 and grid[m + 1] <= low + place / per:
            m += 1
        begin[place] = m
    for i in range(values.shape[0]):
        if low < values[i] < high:
            m = begin[int((values[i] - low) * per)]
            while m < grid.shape[0] - 2 and grid[m + 1] <= values[i]:
                m += 1
            part = (values[i] - grid[m]) / (grid[m + 1] - grid[m])
            scores[i] = (1.0 - part) * slopes[m] + part * slopes[m + 1]
        else:
            scores[i] = _score(values[i], level, blurred, share)


@njit
def _score(value, level, shape, share):  # type: ignore[no-untyped-def]
    first, last, _ = fill_shares(value, level, shape, share)
    score, stray = 0.0, 1.0
    for a in range(first, last):
        score += share[a] * (value - shape[1, a]) / shape[2, a]
        stray -= share[a]
    low, high = shape[1, 0], shape[1, -1]
    return score + stray * (value - 0.5 * (low + high)) / (0.5 * (high - low)) ** 2


@njit
def as_scores(raw, scale, weights, shape, error2, values, precision, shifted):  # type: ignore[no-untyped-def]
    """The same for a row of Gaussians, by Fisher's scoring; returns the information of a row about its mean.

    Gaussians as narrow as those at a sharp end hold on to their rows, and EM would take a hundred turns. Scores are
    those of noise blurred by the errors of the fitted values, whose mean square is ``error2``: no end is seen more
    sharply than that.
    """
    fill_scores(raw / scale, shape, error2, shifted)
    information = (weights * shifted * shifted).sum() / weights.sum()
    for i in range(raw.shape[0]):
        precision[i] = weights[i] * information / scale[i] ** 2
        shifted[i] = values[i] - raw[i] + scale[i] * shifted[i] / information
    return information
