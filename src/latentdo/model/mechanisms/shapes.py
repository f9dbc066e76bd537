"""Shapes of noise: a mixture of a few Gaussians, fitted to a histogram of what a mechanism leaves over.

A shape is an array ``[3, c]``: weights, means and variances of its Gaussians. Bins keep their first two moments, so
that little is lost, and a fit takes the same time whatever the number of rows.
"""

from __future__ import annotations

import math

import numpy as np

from latentdo.compilation import njit
from latentdo.model.mechanisms.noise import LOG_2PI, NEGLIGIBLE, ROW, VARIANCE_FLOOR, fill_terms

MOST_COMPONENTS = 8
"""Gaussians in a noise at most: skewed noise uses four or five, and with three it once looked like two regimes."""

NARROWEST = 0.05
"""A Gaussian of mixed noise is at least so wide, as a share of the whole noise: atoms would have infinite density."""

FINE = 2048

N_BINS = 48
"""Bins of the histogram that shapes are fitted to; finer ones changed no fit."""

BULK = 4.0
"""Standard deviations on either side of the mean that get half of the fine bins; the rest reach as far as rows do."""

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

RANKS = np.sin(0.5 * np.pi * np.arange(1, N_BINS + 1) / N_BINS) ** 2
"""Ranks at which bins end."""

LAST = 3.72
"""Standard score of the share of a law, 1e-4, that is left out at its far end."""

LEAST_NARROWING, MOST_NARROWING = 2.0, 4.0
"""Power of its number in the row with which a Gaussian is further from the end."""

DROPPED = (0, 1, 2, 4, 7)
"""Outermost bins that may hold rows beyond a sharp end, by errors of fitted values or from other regimes."""

BLUNT = 0.5
"""Variance of the Gaussian at a sharp end, as a share of that at the other one, if that is not sharp, at most."""

FEWEST_BINS = 8
"""Different values that a law with a sharp end needs at least."""

GAPS = np.array([0.003, 0.01, 0.03, 0.1, 0.3, 1.0])
"""Distances of the end from the outermost row that are tried, as shares of the spread."""

DECAYS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
"""Decays of the law that are tried."""

FINER_GAPS, FINER_DECAYS = np.array([0.6, 1.0, 1.7]), np.array([0.7, 1.0, 1.4])

REFINEMENTS = 3

@njit
def histogram(residual, weights):  # type: ignore[no-untyped-def]
    """Mass, mean and mean square of the residuals in every bin, ``[3, bins]``, empty bins left out; and the spread.

    Bins hold equal shares of the arcsine of the rank: few rows where the residuals end, so that ends are drawn as
    sharply as they are known, and rows of hardly any weight beyond an end have bins of their own.
    """
    total = weights.sum()
    mean = (weights * residual).sum() / total
    spread = np.sqrt(max((weights * (residual - mean) ** 2).sum() / total, VARIANCE_FLOOR))
    sums = np.zeros((FINE, 3))
    for i in range(residual.shape[0]):
        off = (residual[i] - mean) / spread
        place = int(0.5 * FINE * (1.0 + off / (abs(off) + BULK)))
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
            if middle > RANKS[rank] or place >= begun + FINE // N_BINS:
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
def fill_shares(value, level, shape, share):  # type: ignore[no-untyped-def]
    """Fill ``share [c]`` with the probabilities that a value came from each Gaussian.

    ``level [c]`` are the log-densities of the Gaussians at their means, weights included, up to a constant. Returns the
    range of the Gaussians that matter, outside of which nothing is filled in, and the log-density of the value.
    """
    first, last, top = fill_terms(value, level, shape[1], shape[2], shape.shape[1] == ROW, share)
    total = 0.0
    for a in range(first, last):
        share[a] = np.exp(share[a] - top) if share[a] - top > NEGLIGIBLE else 0.0
        total += share[a]
    for a in range(first, last):
        share[a] /= total
    return first, last, top + np.log(total)


@njit
def likelihood(bins, shape, error2):  # type: ignore[no-untyped-def]
    """Log-likelihood of a histogram of values with errors of mean square ``error2``.

    Each bin is two points, a standard deviation from its mean. That is right for cubic polynomials, and keeps within
    the bin: at sharp ends a curvature would say too much.
    """
    if error2 > 0.0:
        shape = shape.copy()
        shape[2] += error2
    level = np.log(shape[0]) - 0.5 * (LOG_2PI + np.log(shape[2]))
    share = np.empty(shape.shape[1])
    total = 0.0
    for i in range(bins.shape[1]):
        off = np.sqrt(max(bins[2, i] - bins[1, i] ** 2, 0.0))
        _, _, left = fill_shares(bins[1, i] - off, level, shape, share)
        _, _, right = fill_shares(bins[1, i] + off, level, shape, share)
        total += 0.5 * bins[0, i] * (left + right)
    return total


@njit
def climb(bins, shape, floor, iterations, needed=-np.inf):  # type: ignore[no-untyped-def]
    """EM of a mixture of Gaussians on a histogram, in place; returns its log-likelihood before the last step.

    The rows of ``shape [3, c]`` are weights, means and variances. Where the steps left, were they all like the last
    one, would not reach what is ``needed``, there are no more.
    """
    c = shape.shape[1]
    share, sums = np.empty(c), np.empty((3, c))
    loglik, before = -np.inf, -np.inf
    for taken in range(iterations):
        sums[:] = 0.0
        level = np.log(shape[0]) - 0.5 * (LOG_2PI + np.log(shape[2]))
        loglik = 0.0
        for i in range(bins.shape[1]):
            first, last, density = fill_shares(bins[1, i], level, shape, share)
            slope, slopes, inverse = 0.0, 0.0, 0.0
            for a in range(first, last):
                step = (bins[1, i] - shape[1, a]) / shape[2, a]
                slope += share[a] * step
                slopes += share[a] * step * step
                inverse += share[a] / shape[2, a]
            # A bin has a width: its rows see the curvature of the log-density, too.
            curvature = slopes - slope * slope - inverse
            loglik += bins[0, i] * (density + 0.5 * curvature * max(bins[2, i] - bins[1, i] ** 2, 0.0))
            for a in range(first, last):
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
        if loglik - before < ENOUGH or loglik + (loglik - before) * (iterations - 1 - taken) < needed:
            break
        before = loglik
    return loglik


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
def sharp_row(end, side, start, decay, scale, furthest):  # type: ignore[no-untyped-def]
    r"""Noise with one sharp end, ``[3, c]``: Gaussians side by side, narrower towards it.

    Their weights follow the generalised gamma law :math:`u^{a - 1} e^{-(u / s)^p}` of the distance ``u`` from the end
    (Stacy, 1962), with ``start`` :math:`a`, ``decay`` :math:`p` and ``scale`` :math:`s`; the row is on the ``side`` 1 or
    -1 of its end, and reaches at least as far as ``furthest``.
    """
    # Where the law ends, practically (Wilson and Hilferty's quantile of a gamma variable).
    k = start / decay
    reach = scale * (k * max(1.0 - 1.0 / (9.0 * k) + LAST / (3.0 * np.sqrt(k)), 1.0) ** 3) ** (1.0 / decay)
    reach = max(reach, furthest)
    # The longer the tail, the more of them stand near the end.
    narrowing = min(max(1.0 + 1.0 / decay, LEAST_NARROWING), MOST_NARROWING)
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
def _law(mass, logs, decay):  # type: ignore[no-untyped-def]
    """Likeliest generalised gamma law of a decay, given logarithms of distances: log-likelihood, start and scale."""
    n, middle, powers = 0.0, 0.0, 0.0
    for i in range(mass.shape[0]):
        n += mass[i]
        middle += mass[i] * logs[i]
        powers += mass[i] * np.exp(decay * logs[i])
    middle /= n
    level = np.log(powers / n)
    # The shape of a gamma variable, within 1.5 % (Minka, 2002).
    s = max(level - decay * middle, 1e-6)
    k = (3.0 - s + np.sqrt((s - 3.0) ** 2 + 24.0 * s)) / (12.0 * s)
    value = np.log(decay) + (k * decay - 1.0) * middle - k - math.lgamma(k) - k * (level - np.log(k))
    return n * value, k * decay, np.exp((level - np.log(k)) / decay)


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
def fit_sharp(bins, spread, side, dropped):  # type: ignore[no-untyped-def]
    """The likeliest noise with a sharp end on one side, ``dropped`` bins left out beyond it, ``[3, c]``."""
    m = bins.shape[1] - dropped
    mass, place = np.empty(m), np.empty(m)
    for i in range(m):
        j = i + dropped if side > 0 else m - 1 - i
        mass[i], place[i] = bins[0, j], side * bins[1, j]
    low = lowest(bins, dropped) if side > 0 else -highest(bins, dropped)
    best = -np.inf
    gap, decay, start, scale = 0.0, 1.0, 1.0, 1.0
    logs = np.empty(m)
    gaps, decays = GAPS * spread, DECAYS
    for _ in range(REFINEMENTS):
        for trial in gaps:
            logs = np.log(place - low + trial)
            for power in decays:
                value, a, s = _law(mass, logs, power)
                if value > best:
                    best, gap, decay, start, scale = value, trial, power, a, s
        gaps, decays = gap * FINER_GAPS, decay * FINER_DECAYS
    end = low - gap
    return sharp_row(side * end, side, start, decay, scale, 1.01 * (place[m - 1] - end))


@njit
def fit_row(bins, mean, spread, error2):  # type: ignore[no-untyped-def]
    """The likeliest row of Gaussians, ``[3, c]``, and its log-likelihood less what it costs more than one Gaussian.

    ``error2`` is that of :func:`likelihood`.
    """
    n = bins.shape[1]
    cost = np.log(max(bins[0].sum(), 2.0))  # two numbers of the law, half a logarithm each
    skewness = 0.0
    for i in range(n):
        skewness += bins[0, i] * (bins[1, i] - mean) ** 3
    side = 1.0 if skewness > 0.0 else -1.0
    best = flat_row(mean - np.sqrt(3.0) * spread, mean + np.sqrt(3.0) * spread)
    top = likelihood(bins, best, error2)
    flat, sharp = True, True
    before_flat, before_sharp = -np.inf, -np.inf
    for dropped in DROPPED:
        if flat and n > 2 * dropped + 1:
            low, high = lowest(bins, dropped), highest(bins, dropped)
            if high - low > 1e-3 * spread:
                shape = flat_row(low, high)
                value = likelihood(bins, shape, error2)
                if value > top:
                    best, top = shape, value
                flat, before_flat = value > before_flat, value
        if sharp and n > dropped + FEWEST_BINS:
            shape = fit_sharp(bins, spread, side, dropped)
            value = likelihood(bins, shape, error2) - cost
            if value > top:
                best, top = shape, value
            sharp, before_sharp = value > before_sharp, value
    return best, top


@njit
def choose_shape(bins, mean, spread, start, reach, error2=0.0):  # type: ignore[no-untyped-def]
    """The mixture with the highest evidence, ``[3, c]``, and its log-likelihood less the cost of its Gaussians.

    One Gaussian more as long as that pays, or two more do; ``reach`` is how many more or fewer are tried than
    ``start [3, c]`` has. A row of equal Gaussians, for noise with sharp edges, costs as much as a single one.
    """
    cost = 1.5 * np.log(max(bins[0].sum(), 2.0))
    floor = max((NARROWEST * spread) ** 2, VARIANCE_FLOOR)
    best = np.empty((3, 1))
    best[0, 0], best[1, 0], best[2, 0] = 1.0, mean, max(spread**2, VARIANCE_FLOOR)
    top = climb(bins, best.copy(), floor, 1)
    known = 1 if start.shape[1] == ROW else start.shape[1]
    if reach > 0 or start.shape[1] == ROW:
        row, value = fit_row(bins, mean, spread, error2)
        if value > top:
            top, best = value, row
    behind = 0
    for c in range(max(known - reach, 2), min(known + reach, MOST_COMPONENTS) + 1):
        if c == known:
            winner, value = _as_before(start, mean, spread, floor), 0.0
        else:
            winner, value = _from_scratch(bins, mean, spread, floor, c)
        value = climb(bins, winner, floor, POLISH_STEPS, top + cost * (c - 1)) - cost * (c - 1)
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
            first, last, _ = fill_shares(off / stretch, level, shape, share)
            for a in range(first, last):
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
def end_to_end(bins, shape, dropped):  # type: ignore[no-untyped-def]
    """Where a row must be moved to, and how far stretched, so that its sharp ends are those of a histogram.

    With one such end, it is the means that agree. ``dropped`` bins are left out beyond each end.
    """
    low, high = lowest(bins, dropped), highest(bins, dropped)
    first, last = shape[1, 0] - np.sqrt(shape[2, 0]), shape[1, -1] + np.sqrt(shape[2, -1])
    if shape[2, 0] < BLUNT * shape[2, -1]:
        high, last = (bins[0] * bins[1]).sum() / bins[0].sum(), (shape[0] * shape[1]).sum()
    elif shape[2, -1] < BLUNT * shape[2, 0]:
        low, first = (bins[0] * bins[1]).sum() / bins[0].sum(), (shape[0] * shape[1]).sum()
    stretch = (high - low) / (last - first)
    return low - stretch * first, stretch


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
        before = -np.inf
        for dropped in DROPPED:
            if bins.shape[1] < 2 * dropped + FEWEST_BINS:
                break
            trial = moved_and_stretched(shape, *end_to_end(bins, shape, dropped))
            found = likelihood(bins, trial, 0.0)
            if found > value:
                value, best = found, trial
            if found < before:
                break
            before = found
    return value, best
