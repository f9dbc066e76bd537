"""One reference mechanism: a network and the density of its noise, fitted together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from latentdo.model.relu_mixture import Noise
from latentdo.model.relu_network import Array, evaluate
from latentdo.solvers.nonlinear.levenberg import descend

VARIANCE_FLOOR = 1e-14
"""Smallest noise variance of a standardised variable. Deep graphs of the benchmark do have such small noise."""

NARROWEST = 1e-3
"""A component of mixed noise is at least so wide, as a share of the whole noise: atoms would have infinite density."""


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A network over given inputs with its noise.

    Parameters
    ----------
    network : ndarray
        Flat parameters.
    noise : Noise
        Density of the residual.
    """

    network: Array
    noise: Noise

    @property
    def n_parameters(self) -> int:
        """Free parameters of network and noise."""
        return int(self.network.size) + self.noise.n_parameters

    def log_density(self, x: Array, y: Array) -> Array:
        """``log p(y | x)`` of every row, ``[n]``."""
        return self.noise.log_density(y - evaluate(x, self.network))


def fit_noise(residual: Array, weights: Array, n_components: int, start: Noise | None = None) -> Noise:
    """Weighted maximum likelihood of the noise, by EM from a spread of widths around zero."""
    total = weights.sum()
    variance = max(float(weights @ residual**2 / total), VARIANCE_FLOOR)
    if n_components == 1:
        return Noise.gaussian(variance)
    noise = start
    if noise is None or noise.weights.size != n_components:
        widths = np.geomspace(0.05, 2.0, n_components)
        noise = Noise(np.full(n_components, 1.0 / n_components), np.zeros(n_components), variance * widths)
    floor = max(NARROWEST**2 * variance, VARIANCE_FLOOR)
    for _ in range(15 if noise is not start else 6):
        share = softmax(noise.log_joint(residual), axis=1) * weights[:, None]
        counts = np.maximum(share.sum(axis=0), 1e-9)
        means = share.T @ residual / counts
        spread = (share * (residual[:, None] - means) ** 2).sum(axis=0) / counts
        noise = Noise(np.maximum(counts / total, 1e-9), means, np.maximum(spread, floor))
    return noise


def fit_mechanism(
    x: Array,
    y: Array,
    weights: Array,
    network: Array,
    *,
    n_components: int = 1,
    noise: Noise | None = None,
    iterations: int = 3,
    rounds: int = 2,
) -> Mechanism:
    """Weighted fit from a given network.

    With mixed noise, network and noise take turns: given the components' shares of every residual the network's
    problem is a weighted least-squares one again.
    """
    network, loss = descend(x, y, weights, network, iterations)
    if n_components == 1:
        return Mechanism(network, Noise.gaussian(max(loss / weights.sum(), VARIANCE_FLOOR)))
    for _ in range(rounds):
        noise = fit_noise(y - evaluate(x, network), weights, n_components, noise)
        share = softmax(noise.log_joint(y - evaluate(x, network)), axis=1) / noise.variances
        precision = share.sum(axis=1)
        shifted = y - share @ noise.means / precision
        # Scaled so that damping and ridge mean the same as with Gaussian noise.
        effective = weights * precision / np.average(precision, weights=weights)
        network, _ = descend(x, shifted, effective, network, iterations)
    return Mechanism(network, fit_noise(y - evaluate(x, network), weights, n_components, noise))
