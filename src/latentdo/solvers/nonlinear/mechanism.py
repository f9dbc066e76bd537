"""One reference mechanism: a network and the density of its noise, fitted together."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from latentdo.model.mechanisms import NetworkMechanism, Noise
from latentdo.model.mechanisms.base import Array
from latentdo.model.mechanisms.network import evaluate
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR
from latentdo.model.mechanisms.shapes import NARROWEST, climb
from latentdo.solvers.nonlinear.levenberg import descend
from latentdo.solvers.settings import (
    FRESH_NOISE_STEPS,
    MECHANISM_ROUNDS,
    MECHANISM_STEPS,
    NOISE_VARIANCES,
    WARM_NOISE_STEPS,
)


def narrowest(variance: float) -> float:
    """Smallest variance of a component where the whole noise has ``variance``."""
    return max(NARROWEST**2 * variance, VARIANCE_FLOOR)


def as_bins(residual: Array, weights: Array) -> Array:
    """Every row that counts as a bin of its own: networks leave peaks that are narrow beside their tails."""
    rows = weights > 0.0
    return np.stack([weights[rows], residual[rows], residual[rows] ** 2])


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
    climb(
        as_bins(residual, weights),
        shape,
        floor,
        FRESH_NOISE_STEPS if noise is not start else WARM_NOISE_STEPS,
        -np.inf,
    )
    return Noise(*shape)


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
            noise = Noise.gaussian(max(loss / weights.sum(), VARIANCE_FLOOR))
            return NetworkMechanism.of(network, noise, x.shape[1])
    for _ in range(rounds):
        noise = fit_noise(y - evaluate(x, network), weights, n_components, noise, floor)
        share = softmax(noise.log_joint(y - evaluate(x, network)), axis=1) / noise.variances
        precision = share.sum(axis=1)
        shifted = y - share @ noise.means / precision
        # Scaled so that damping and ridge mean the same as with Gaussian noise.
        effective = weights * precision / np.average(precision, weights=weights)
        network, _ = descend(x, shifted, effective, network, iterations)
    noise = fit_noise(y - evaluate(x, network), weights, n_components, noise, floor)
    return NetworkMechanism.of(network, noise, x.shape[1])
