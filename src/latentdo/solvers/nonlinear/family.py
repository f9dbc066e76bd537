"""Networks as a family: what the search fits to weighted rows, and what interventions put in its place."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from latentdo.model.mechanisms import AdditiveNoise, Mechanism, NetworkMechanism
from latentdo.model.mechanisms.any_noise import Shaped
from latentdo.model.mechanisms.base import Array
from latentdo.model.mechanisms.network import hidden
from latentdo.solvers.nonlinear.levenberg import fit_network
from latentdo.solvers.nonlinear.mechanism import fit_mechanism
from latentdo.solvers.settings import (
    MIXED_NOISE,
    OWN_RIDGE,
    OWN_ROWS_PER_PARAMETER,
    SEARCH_NOISE,
)


class Networks(Shaped):
    """Networks with Gaussian noise."""

    n_gaussians: ClassVar[int] = SEARCH_NOISE

    @classmethod
    def fit(cls, x: Array, y: Array, weights: Array, start: Mechanism | None = None) -> NetworkMechanism:
        """See :class:`Shaped`; ``start`` has the same inputs, and the fit goes on from it for a few steps."""
        if start is None:
            network, _ = fit_network(x, y, weights, np.random.default_rng(0))
            return fit_mechanism(x, y, weights, network, n_components=cls.n_gaussians)
        assert isinstance(start, AdditiveNoise)
        return fit_mechanism(
            x, y, weights, start.parameters, n_components=cls.n_gaussians, noise=start.noise, rounds=1
        )

    @classmethod
    def functions(
        cls, x: Array, y: Array, weights: Array, reference: AdditiveNoise, *, imperfect: bool
    ) -> list[AdditiveNoise]:
        """See :class:`Shaped`: also another last layer of the reference network, if there are rows enough for it."""
        found = super().functions(x, y, weights, reference, imperfect=imperfect)
        if imperfect and x.shape[1]:
            assert isinstance(reference, NetworkMechanism)
            design = np.column_stack([np.ones(len(y)), x, hidden(x, reference.parameters)])
            n_free = design.shape[1]
            if weights.sum() >= OWN_ROWS_PER_PARAMETER * n_free:
                weighted = design * weights[:, None]
                gram = weighted.T @ design + OWN_RIDGE * weights.sum() * np.eye(n_free)
                coefficients: Array = np.linalg.lstsq(gram, weighted.T @ y, rcond=None)[0].astype(np.float64)
                own = reference.with_last_layer(coefficients, x.shape[1], reference.noise)
                found.append(replace(own, n_free=n_free + 1))
        return found


class MixedNetworks(Networks):
    """Networks whose noise is a mixture of a few Gaussians."""

    n_gaussians: ClassVar[int] = MIXED_NOISE
