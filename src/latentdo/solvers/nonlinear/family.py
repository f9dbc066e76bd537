"""Networks as a family: what the search fits to weighted rows, and what interventions put in its place."""

from __future__ import annotations

from typing import ClassVar, cast

import numpy as np

from latentdo.model.mechanisms import AdditiveNoise, LinearMechanism, Mechanism, NetworkMechanism, Noise
from latentdo.model.mechanisms.base import Array
from latentdo.model.mechanisms.family import RowFamily, evidence
from latentdo.model.mechanisms.network import hidden
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR
from latentdo.solvers.nonlinear.levenberg import fit_network
from latentdo.solvers.nonlinear.mechanism import fit_mechanism, fit_noise
from latentdo.solvers.settings import (
    EMPTY,
    MIXED_NOISE,
    OWN_RIDGE,
    OWN_ROWS_PER_GAUSSIAN,
    OWN_ROWS_PER_PARAMETER,
    SEARCH_NOISE,
)


class Networks(RowFamily):
    """Networks with Gaussian noise."""

    n_gaussians: ClassVar[int] = SEARCH_NOISE

    @classmethod
    def fit(cls, x: Array, y: Array, weights: Array, start: Mechanism | None = None) -> NetworkMechanism:
        """See :class:`RowFamily`; ``start`` has the same inputs, and the fit goes on from it for a few steps."""
        if start is None:
            network, _ = fit_network(x, y, weights, np.random.default_rng(0))
            return fit_mechanism(x, y, weights, network, n_components=cls.n_gaussians)
        assert isinstance(start, AdditiveNoise)
        return fit_mechanism(
            x, y, weights, start.parameters, n_components=cls.n_gaussians, noise=start.noise, rounds=1
        )

    @classmethod
    def intervene(
        cls, x: Array, y: Array, weights: Array, reference: Mechanism, *, imperfect: bool
    ) -> AdditiveNoise:
        """See :class:`RowFamily`.

        A perfect intervention leaves a constant; an imperfect one may be linear in the parents, or in the hidden units
        of the reference network.
        """
        network = cast("NetworkMechanism", reference)
        count = max(float(weights.sum()), EMPTY)
        designs = [np.ones((len(y), 1))]
        if imperfect and x.shape[1]:
            designs.append(np.column_stack([designs[0], x]))
            designs.append(np.column_stack([designs[1], hidden(x, network.parameters)]))
        found: list[AdditiveNoise] = []
        for design in designs:
            size = design.shape[1]
            if size > 1 and count < OWN_ROWS_PER_PARAMETER * size:
                continue
            weighted = design * weights[:, None]
            gram = weighted.T @ design + OWN_RIDGE * count * np.eye(size)
            coefficients: Array = np.linalg.lstsq(gram, weighted.T @ y, rcond=None)[0].astype(np.float64)
            noise = cls._noise(y - design @ coefficients, weights, count)
            found.append(
                network.with_last_layer(coefficients, x.shape[1], noise)
                if size > 1 + x.shape[1]
                else LinearMechanism(coefficients, noise)
            )
        return max(found, key=lambda one: evidence(one, x, y, weights))

    @classmethod
    def _noise(cls, residual: Array, weights: Array, count: float) -> Noise:
        if count > OWN_ROWS_PER_GAUSSIAN * cls.n_gaussians:
            return fit_noise(residual, weights, cls.n_gaussians)
        return Noise.gaussian(max(float(weights @ residual**2) / count, VARIANCE_FLOOR))


class MixedNetworks(Networks):
    """Networks whose noise is a mixture of a few Gaussians."""

    n_gaussians: ClassVar[int] = MIXED_NOISE
