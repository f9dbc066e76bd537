"""Least-squares problems that noise of a shape makes of a regression."""

from __future__ import annotations

import numpy as np

from latentdo.compilation import njit, vectorised
from latentdo.model.mechanisms.noise import BLOCK, fill_shares

WITHIN = 8
"""Points within each Gaussian of a row at which scores are computed, and between which they are interpolated."""

N_PLACES = 1024
"""Places of a row at which one begins to look for these points."""

LEAST_CURVATURE = 0.05
"""Curvature of a row's log-density in a step of Newton's, as a share of what rows tell on average: between its ends
noise may be flat."""


@vectorised
def as_squares(raw, scale, weights, shape, values, precision, shifted):  # type: ignore[no-untyped-def]
    """Fill weights and values ``[n]`` of the least-squares problem that noise of a shape makes of a regression."""
    n, c = raw.shape[0], shape.shape[1]
    shares, density, places = np.empty((c, BLOCK)), np.empty(BLOCK), np.empty(BLOCK)
    inverse, pull = np.empty(BLOCK), np.empty(BLOCK)
    for first in range(0, n, BLOCK):
        m = min(BLOCK, n - first)
        for i in range(m):
            places[i] = raw[first + i] / scale[first + i]
            inverse[i], pull[i] = 0.0, 0.0
        fill_shares(places[:m], shape, False, shares, density[:m])
        for a in range(c):
            narrow, mean = 1.0 / shape[2, a], shape[1, a]
            for i in range(m):
                inverse[i] += shares[a, i] * narrow
                pull[i] += shares[a, i] * narrow * mean
        for i in range(m):
            unit = scale[first + i]
            precision[first + i] = weights[first + i] * inverse[i] / (unit * unit)
            shifted[first + i] = values[first + i] - unit * pull[i] / inverse[i]


@njit
def fill_scores(values, shape, error2, losses, scores, curvatures):  # type: ignore[no-untyped-def]
    """Fill minus the log-density of a blurred row of Gaussians at values, its slopes and curvatures, ``[n]`` each.

    A few points within each Gaussian are computed, and those that are further out than the row; between them slopes
    are interpolated.
    """
    c = shape.shape[1]
    blurred = shape.copy()
    blurred[2] += error2
    points = c * WITHIN + 1
    grid = np.empty(points)
    for m in range(points):
        a = min(m // WITHIN, c - 1)
        grid[m] = shape[1, a] + np.sqrt(shape[2, a]) * (2.0 * (m - a * WITHIN) / WITHIN - 1.0)
    heights, slopes = _losses(grid, blurred)
    low, high = grid[0], grid[-1]
    per = N_PLACES / (high - low)
    begin, m = np.empty(N_PLACES + 1, np.int64), 0
    for place in range(N_PLACES + 1):
        while m < points - 2 and grid[m + 1] <= low + place / per:
            m += 1
        begin[place] = m
    for i in range(values.shape[0]):
        if low < values[i] < high:
            m = begin[int((values[i] - low) * per)]
            while m < points - 2 and grid[m + 1] <= values[i]:
                m += 1
            width = grid[m + 1] - grid[m]
            part = (values[i] - grid[m]) / width
            scores[i] = (1.0 - part) * slopes[m] + part * slopes[m + 1]
            curvatures[i] = (slopes[m + 1] - slopes[m]) / width
            losses[i] = (1.0 - part) * heights[m] + part * heights[m + 1]
            losses[i] -= 0.5 * part * (1.0 - part) * width * width * curvatures[i]
    outside = np.flatnonzero((values <= low) | (values >= high))
    losses[outside], scores[outside] = _losses(values[outside], blurred)
    for m in range(outside.size):
        i = outside[m]
        curvatures[i] = 1.0 / blurred[2, 0 if values[i] <= low else c - 1]


@vectorised
def _losses(values, shape):  # type: ignore[no-untyped-def]
    """Minus the log-density of a row of Gaussians with its strays at values, and its slopes there, ``[n]`` each."""
    n, c = values.shape[0], shape.shape[1]
    shares, losses, scores, stray = np.empty((c, n)), np.empty(n), np.zeros(n), np.ones(n)
    fill_shares(values, shape, True, shares, losses)
    for a in range(c):
        narrow, mean = 1.0 / shape[2, a], shape[1, a]
        for i in range(n):
            scores[i] += shares[a, i] * (values[i] - mean) * narrow
            stray[i] -= shares[a, i]
    low, high = shape[1, 0], shape[1, c - 1]
    for i in range(n):
        losses[i] = -losses[i]
        scores[i] += stray[i] * (values[i] - 0.5 * (low + high)) / (0.5 * (high - low)) ** 2
    return losses, scores


@njit
def as_scores(raw, scale, weights, shape, error2, values, precision, shifted):  # type: ignore[no-untyped-def]
    """The same for a row of Gaussians, by Fisher's scoring; returns the information of a row about its mean.

    Gaussians as narrow as those at a sharp end hold on to their rows, and EM would take a hundred turns. Scores are
    those of noise blurred by the errors of the fitted values, whose mean square is ``error2``: no end is seen more
    sharply than that.
    """
    fill_scores(raw / scale, shape, error2, np.empty(raw.shape[0]), shifted, precision)
    information = (weights * shifted * shifted).sum() / weights.sum()
    for i in range(raw.shape[0]):
        precision[i] = weights[i] * information / scale[i] ** 2
        shifted[i] = values[i] - raw[i] + scale[i] * shifted[i] / information
    return information


@njit
def as_steps(raw, scale, weights, shape, error2, values, precision, shifted):  # type: ignore[no-untyped-def]
    """The same by Newton's method, where a row counts by how fast its own score changes; returns the log-likelihood.

    Next to an optimum, the few rows at a sharp end decide, and what rows tell on average says nothing of those.
    """
    losses = np.empty(raw.shape[0])
    fill_scores(raw / scale, shape, error2, losses, shifted, precision)
    least = LEAST_CURVATURE * (weights * shifted * shifted).sum() / weights.sum()
    for i in range(raw.shape[0]):
        curvature = max(precision[i], least)
        precision[i] = weights[i] * curvature / scale[i] ** 2
        shifted[i] = values[i] - raw[i] + scale[i] * shifted[i] / curvature
    return -(weights * losses).sum()
