"""Histograms of what a mechanism leaves over, to which shapes of noise are fitted.

Bins keep their first two moments, so that little is lost, and a fit takes the same time whatever the number of rows.
"""

from __future__ import annotations

import numpy as np

from latentdo.compilation import njit
from latentdo.model.mechanisms.noise import ROW, VARIANCE_FLOOR, log_density

N_BINS = 48
"""Bins of a histogram, unless tails are long; with 64 fits were no better."""

FINE = 2048
"""Places that residuals are first sorted into, half a hundredth of the spread apart: ends are not seen more sharply."""

BULK = 4.0
"""Standard deviations on either side of the mean that get half of these places; the rest reach as far as rows do."""

RANKS = np.sin(0.5 * np.pi * np.arange(1, N_BINS + 1) / N_BINS) ** 2
"""Shares of the rows at which bins end. There are few rows in the outermost ones, so that ends are seen sharply."""


@njit
def histogram(residual, weights):  # type: ignore[no-untyped-def]
    """Mass, mean and mean square of the residuals in every bin, ``[3, bins]``, empty bins left out; and the spread.

    Where rows are few, in long tails, there are more bins than elsewhere, so that none is much wider than others.
    """
    total = weights.sum()
    mean = (weights * residual).sum() / total
    spread = np.sqrt(max((weights * (residual - mean) ** 2).sum() / total, VARIANCE_FLOOR))
    sums = np.zeros((FINE, 3))
    for i in range(residual.shape[0]):
        off = (residual[i] - mean) / spread
        place = int(min(max(0.5 * FINE * (1.0 + off / (abs(off) + BULK)), 0.0), FINE - 1.0))
        sums[place, 0] += weights[i]
        sums[place, 1] += weights[i] * residual[i]
        sums[place, 2] += weights[i] * residual[i] * residual[i]
    bins = np.zeros((3, 2 * N_BINS + 1))
    current, rank, reached, begun = 0, 0, 0.0, 0
    for place in range(FINE):
        if sums[place, 0] > 0.0:
            # Half of it counts, so that the bins are the same from either side.
            middle = (reached + 0.5 * sums[place, 0]) / total
            reached += sums[place, 0]
            if (rank < N_BINS - 1 and middle > RANKS[rank]) or place >= begun + FINE // N_BINS:
                current, begun = current + 1, place
                while rank < N_BINS - 1 and middle > RANKS[rank]:
                    rank += 1
            for a in range(3):
                bins[a, current] += sums[place, a]
    filled = bins[0] > 1e-9 * total
    kept = np.empty((3, filled.sum()))
    kept[0] = bins[0][filled]
    kept[1] = bins[1][filled] / kept[0]
    kept[2] = bins[2][filled] / kept[0]
    return kept, mean, spread


@njit
def outermost(bins, share):  # type: ignore[no-untyped-def]
    """How many bins at the lower and at the upper end together hold no more than a share of the rows, each."""
    most = share * bins[0].sum()
    low, high = 0, 0
    left = most
    while low < bins.shape[1] - 1 and bins[0, low] <= left:
        left -= bins[0, low]
        low += 1
    left = most
    while high < bins.shape[1] - 1 and bins[0, bins.shape[1] - 1 - high] <= left:
        left -= bins[0, bins.shape[1] - 1 - high]
        high += 1
    return low, high


@njit
def lowest(bins, dropped):  # type: ignore[no-untyped-def]
    """Where a histogram begins, without some of its bins: rows are further out than the mean of theirs."""
    return bins[1, dropped] - np.sqrt(3.0 * max(bins[2, dropped] - bins[1, dropped] ** 2, 0.0))


@njit
def highest(bins, dropped):  # type: ignore[no-untyped-def]
    """Where a histogram ends, without some of its bins."""
    at = bins.shape[1] - 1 - dropped
    return bins[1, at] + np.sqrt(3.0 * max(bins[2, at] - bins[1, at] ** 2, 0.0))


@njit
def likelihood(bins, shape, error2):  # type: ignore[no-untyped-def]
    """Log-likelihood of a histogram of values with errors of mean square ``error2``.

    Each bin is two points, a standard deviation from its mean. That is right for cubic polynomials, and keeps within
    the bin: at sharp ends a curvature would say too much.
    """
    variances = shape[2] + error2
    off = np.sqrt(np.maximum(bins[2] - bins[1] ** 2, 0.0))
    in_row = shape.shape[1] == ROW
    left = log_density(bins[1] - off, shape[0], shape[1], variances, in_row)
    right = log_density(bins[1] + off, shape[0], shape[1], variances, in_row)
    return 0.5 * (bins[0] * (left + right)).sum()
