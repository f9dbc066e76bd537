"""Presets of the benchmark generator: every number in which published benchmarks differ."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from latentdo.scm.mechanisms import WeightSampler
from latentdo.scm.noise import FloatArray


@dataclass(frozen=True)
class NormalWeights:
    """Weights from a normal distribution around zero."""

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

    The noise of an intervened variable is :math:`\mathcal{N}(\pm u, v)` with a fair sign, :math:`u` uniform
    on ``shift`` and :math:`v` = ``intervention_variance``.

    Parameters
    ----------
    weights
        Draws all weights, and the biases of networks.
    noise_variance
        Range ``(low, high)`` of the uniform distribution of a variable's noise variance.
    shift, intervention_variance
        As above.
    n_variables, edges_per_node, edge_probability, n_samples
        What `simulate` uses where the caller says nothing; exactly one of the two densities is given.
    n_hidden
        Hidden units of network mechanisms.
    n_regimes, targets_per_regime
        As for `simulate`; ``n_regimes=None`` is one intervention for each variable.
    reference_share
        Share of the reference; the other regimes then differ in size, the largest having three times the rows of
        the smallest. None: all regimes have the same size.
    signal_to_noise
        Range of the ratio of variances of a variable's signal and noise in the reference. With it every mechanism
        is scaled to that ratio, shifts are counted in the variable's standard deviations, and an intervened
        variable keeps the shape of its noise. None: weights, shifts and intervened noise are as above.
    arbitrary_units
        Whether columns come in units of their own, a location and a scale drawn for each, or standardised.

    Examples
    --------
    A preset of your own is a changed copy:

    >>> from dataclasses import replace
    >>> noisier = replace(PRESETS["paper"], noise_variance=(0.1, 0.2))
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
    n_regimes: int | None = None
    targets_per_regime: int | tuple[int, int] = 1
    reference_share: float | None = None
    signal_to_noise: tuple[float, float] | None = None
    arbitrary_units: bool = False

    def __post_init__(self) -> None:
        for name in ("noise_variance", "shift", "signal_to_noise"):
            low, high = getattr(self, name) or (1.0, 1.0)
            if not 0 < low <= high < np.inf:
                raise ValueError(f"Preset: {name} must be a range (low, high) of positive numbers")
        if not 0 < self.intervention_variance < np.inf:
            raise ValueError(
                "Preset: intervention_variance must be positive; for none use atomic interventions"
            )
        if (self.edges_per_node is None) == (self.edge_probability is None):
            raise ValueError("Preset: give exactly one of edges_per_node and edge_probability")
        if self.reference_share is not None and not 0 < self.reference_share < 1:
            raise ValueError(f"Preset: reference_share={self.reference_share!r} must lie between 0 and 1")


# Appendix E of the paper; N(m, v) in its tables is read as mean and variance.
_PAPER = Preset(
    weights=NormalWeights(2.0), noise_variance=(0.015, 0.015), shift=(1.2, 2.2), intervention_variance=0.1
)
# The cause-effect pairs of its section 4: each of the three graphs is equally likely.
_PAIRS = replace(_PAPER, n_variables=2, edges_per_node=None, edge_probability=2 / 3, n_samples=999)
# Equal noise variances help to find the order; real data do not offer that shortcut.
_HETERO = replace(_PAPER, noise_variance=(0.005, 0.05))
# Regimes overlap: even the true parameters cannot tell all rows apart.
_DCDI = Preset(
    weights=SignedUniformWeights(0.25, 1.0),
    noise_variance=(1.0, 2.0),
    shift=(2.0, 2.0),
    intervention_variance=1.0,
)
# Tables as they are: as much noise as signal, few interventions of unequal size, units that mean nothing.
_FIELD = Preset(
    weights=SignedUniformWeights(0.5, 1.0),
    noise_variance=(1.0, 1.0),
    shift=(2.5, 2.5),
    intervention_variance=1.0,
    n_variables=8,
    edges_per_node=1.5,
    n_samples=3000,
    n_regimes=5,
    targets_per_regime=(1, 2),
    reference_share=0.4,
    signal_to_noise=(0.7, 1.4),
    arbitrary_units=True,
)

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {"paper": _PAPER, "paper-pairs": _PAIRS, "paper-hetero": _HETERO, "dcdi": _DCDI, "field": _FIELD}
)
"""Name to preset, for `simulate`."""
