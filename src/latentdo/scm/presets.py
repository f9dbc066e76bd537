"""Presets of the benchmark generator: every number in which published benchmarks differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from latentdo.scm.mechanisms import WeightSampler
from latentdo.scm.noise import FloatArray


@dataclass(frozen=True)
class NormalWeights:
    """Weights from a centred normal distribution."""

    variance: float

    def __call__(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Draw an array of weights."""
        return rng.normal(0.0, np.sqrt(self.variance), size=shape)


@dataclass(frozen=True)
class SignedUniformWeights:
    """Weights bounded away from zero: a random sign times a uniform size."""

    low: float
    high: float

    def __call__(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Draw an array of weights."""
        sign = 1.0 - 2.0 * rng.integers(0, 2, size=shape)
        return np.asarray(sign * rng.uniform(self.low, self.high, size=shape))


@dataclass(frozen=True)
class Preset:
    r"""How random models and interventions are drawn.

    An intervened variable's noise is :math:`\mathcal{N}(\pm u, v)` with a fair sign, :math:`u` uniform on ``shift``
    and :math:`v` = ``intervention_variance``.

    Parameters
    ----------
    weights
        Draws all weights, and the biases of networks.
    noise_variance
        Range ``(low, high)`` of the uniform distribution of a variable's noise variance.
    shift, intervention_variance
        As above.
    n_variables, edges_per_node, edge_probability, n_samples
        What `simulate` uses where the caller says nothing; one of the two densities is None.
    n_hidden
        Hidden units of network mechanisms.
    """

    weights: WeightSampler
    noise_variance: tuple[float, float]
    shift: tuple[float, float]
    intervention_variance: float
    n_variables: int = 10
    edges_per_node: float | None = 1.0
    edge_probability: float | None = None
    n_samples: int = 10_000
    n_hidden: int = 5


_PAPER = Preset(
    weights=NormalWeights(2.0), noise_variance=(0.015, 0.015), shift=(1.2, 2.2), intervention_variance=0.1
)

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        # Appendix E of the paper; N(m, v) in its tables read as mean and variance.
        "paper": _PAPER,
        # The cause-effect pairs of section 4: two variables, and each of the three graphs equally likely.
        "paper-pairs": Preset(
            weights=_PAPER.weights,
            noise_variance=_PAPER.noise_variance,
            shift=_PAPER.shift,
            intervention_variance=_PAPER.intervention_variance,
            n_variables=2,
            edges_per_node=None,
            edge_probability=2 / 3,
            n_samples=999,
        ),
        # Equal noise variances give the order away; real data do not offer that shortcut.
        "paper-hetero": Preset(
            weights=_PAPER.weights,
            noise_variance=(0.005, 0.05),
            shift=_PAPER.shift,
            intervention_variance=_PAPER.intervention_variance,
        ),
        # Regimes overlap: even the true parameters cannot tell all rows apart.
        "dcdi": Preset(
            weights=SignedUniformWeights(0.25, 1.0),
            noise_variance=(1.0, 2.0),
            shift=(2.0, 2.0),
            intervention_variance=1.0,
        ),
    }
)
"""Name -> preset, for `simulate`."""
