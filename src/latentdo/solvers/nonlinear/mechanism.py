"""One reference mechanism: a network and the density of its noise, fitted together."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from latentdo.compilation import njit
from latentdo.model.mechanisms import NetworkMechanism, Noise
from latentdo.model.mechanisms.base import Array
from latentdo.model.mechanisms.network import evaluate
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR
from latentdo.solvers.nonlinear.levenberg import descend
from latentdo.solvers.settings import (
    EMPTY,
    FRESH_NOISE_STEPS,
    MECHANISM_ROUNDS,
    MECHANISM_STEPS,
    NARROWEST,
    NOISE_VARIANCES,
    PEAK_STEPS,
    UNDECIDED,
    WARM_NOISE_STEPS,
)


def narrowest(variance: float) -> float:
    """Smallest variance of a component where the whole noise has ``variance``."""
    return max(NARROWEST**2 * variance, VARIANCE_FLOOR)


def fit_noise(
    residual: Array,
    weights: Array,
    n_components: int,
    start: Noise | None = None,
    floor: float | None = None,
) -> Noise:
    """Weighted maximum likelihood of the noise, by EM from a spread of widths around zero.

    No variance of mixed noise is below ``floor``, by default :data:`NARROWEST` of the whole.
    """
    total = weights.sum()
    variance = max(float(weights @ residual**2 / total), VARIANCE_FLOOR)
    if n_components == 1:
        return Noise.gaussian(variance)
    noise = start
    if noise is None or noise.weights.size != n_components:
        widths = np.geomspace(*NOISE_VARIANCES, n_components)
        noise = Noise(np.full(n_components, 1.0 / n_components), np.zeros(n_components), variance * widths)
    floor = narrowest(variance) if floor is None else floor
    shape = np.stack([noise.weights, noise.means, noise.variances])
    _climb(residual, weights, shape, floor, FRESH_NOISE_STEPS if noise is not start else WARM_NOISE_STEPS)
    return Noise(*shape)


def peaks(values: Array, weights: Array, n_components: int) -> Noise:
    """Weighted maximum likelihood of a mixture of Gaussians side by side, by EM from equal shares of the rows."""
    order = np.argsort(values, kind="stable")
    place = np.cumsum(weights[order]) / weights.sum()
    share = np.minimum((place * n_components).astype(np.int64), n_components - 1)
    shape = np.full((3, n_components), 1.0 / n_components)
    centred = values - np.average(values, weights=weights)
    spread = float(np.average(centred**2, weights=weights))
    for a in range(n_components):
        mine, w = values[order][share == a], np.maximum(weights[order][share == a], UNDECIDED)
        if mine.size:
            shape[1, a] = np.average(mine, weights=w)
            shape[2, a] = np.average((mine - shape[1, a]) ** 2, weights=w)
    floor = narrowest(spread)
    shape[2] = np.maximum(shape[2], floor)
    _climb(values, weights, shape, floor, PEAK_STEPS)
    return Noise(*shape)


@njit
def _climb(residual, weights, shape, floor, iterations):  # type: ignore[no-untyped-def]
    """EM of a mixture of Gaussians in place; the rows of ``shape [3, c]`` are weights, means and variances."""
    c = shape.shape[1]
    share, sums = np.empty(c), np.empty((3, c))
    for _ in range(iterations):
        sums[:] = 0.0
        level = np.log(shape[0]) - 0.5 * np.log(shape[2])
        for i in range(residual.size):
            if weights[i] <= 0.0:
                continue
            top = -np.inf
            for a in range(c):
                off = residual[i] - shape[1, a]
                share[a] = level[a] - 0.5 * off * off / shape[2, a]
                top = max(top, share[a])
            total = 0.0
            for a in range(c):
                share[a] = np.exp(share[a] - top)
                total += share[a]
            for a in range(c):
                part = weights[i] * share[a] / total
                off = residual[i] - shape[1, a]
                sums[0, a] += part
                sums[1, a] += part * off
                sums[2, a] += part * off * off
        everything = sums[0].sum()
        for a in range(c):
            count = max(sums[0, a], EMPTY)
            step = sums[1, a] / count
            shape[0, a] = max(count / everything, EMPTY)
            shape[1, a] += step
            shape[2, a] = max(sums[2, a] / count - step * step, floor)


def fit_mechanism(  # noqa: PLR0913  (rows, start and effort of one fit; most callers give three of the options)
    x: Array,
    y: Array,
    weights: Array,
    network: Array,
    *,
    n_components: int = 1,
    noise: Noise | None = None,
    iterations: int = MECHANISM_STEPS,
    rounds: int = MECHANISM_ROUNDS,
    floor: float | None = None,
) -> NetworkMechanism:
    """Weighted fit from a given network.

    With mixed noise, network and noise take ``rounds`` turns: given the components' shares of every residual the
    network's problem is a weighted least-squares one again. Where the noise is not known yet plain least squares come
    first.
    """
    if n_components == 1 or noise is None or noise.weights.size != n_components:
        network, loss = descend(x, y, weights, network, iterations)
        if n_components == 1:
            return NetworkMechanism(network, Noise.gaussian(max(loss / weights.sum(), VARIANCE_FLOOR)))
    for _ in range(rounds):
        noise = fit_noise(y - evaluate(x, network), weights, n_components, noise, floor)
        share = softmax(noise.log_joint(y - evaluate(x, network)), axis=1) / noise.variances
        precision = share.sum(axis=1)
        shifted = y - share @ noise.means / precision
        # Scaled so that damping and ridge mean the same as with Gaussian noise.
        effective = weights * precision / np.average(precision, weights=weights)
        network, _ = descend(x, shifted, effective, network, iterations)
    return NetworkMechanism(network, fit_noise(y - evaluate(x, network), weights, n_components, noise, floor))
