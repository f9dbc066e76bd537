"""Presets of the benchmark generator: every number in which published benchmarks differ."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from latentdo.scm.discrete import BINARY, CATEGORICAL, CONTINUOUS, COUNT, check_kinds
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


Range = tuple[float, float]


@dataclass(frozen=True)
class KindSettings:
    """How columns of other kinds are drawn; all ranges are ``(low, high)`` of uniform distributions.

    Effects are set by the standard deviation of the whole signal of a variable's parents, on the scale of its link, in
    rows without interventions. For comparison: a change of 1.3 in log-odds takes a probability from 50 % to 79 %, one
    of 0.7 in a log-mean doubles a count. Logistic noise has the standard deviation 1.8, so the signal of a binary
    variable explains 25 to 45 % of its latent variable, where that of a continuous one explains 41 to 58 %.

    Parameters
    ----------
    pattern
        Kinds of the columns, repeated as often as there are columns.
    leading
        Kinds that the first target of every regime may have; others where the table has none of them. A binary or
        categorical column alone does not show that it was intervened upon unless it has parents: a mixture of its
        distributions is one of its distributions.
    probability
        Of a one where the parents are at their means.
    level
        Mean of a count over all rows without interventions; uniform on the logarithmic scale.
    dispersion, poisson_share
        Of negative binomial counts, and the share of counts that are Poisson instead.
    n_levels
        Smallest and largest number of levels of a category.
    log_odds_signal, log_mean_signal
        Standard deviations of the signals of binary and categorical columns, and of counts.
    log_odds_shift, log_mean_shift
        How large a shift by one standard deviation of a continuous column is for the others.
    downward
        Whether interventions lower their targets, as knock-downs do, or raise them as often.
    exposure_spread
        Standard deviation of the logarithm of a known exposure of every row, such as its library size; zero for none.
    """

    pattern: tuple[str, ...]
    leading: tuple[str, ...] = (CONTINUOUS, COUNT)
    probability: Range = (0.3, 0.7)
    level: Range = (1.0, 50.0)
    dispersion: Range = (0.1, 0.5)
    poisson_share: float = 0.0
    n_levels: tuple[int, int] = (3, 4)
    log_odds_signal: Range = (1.0, 1.6)
    log_mean_signal: Range = (0.5, 0.9)
    log_odds_shift: float = 1.0
    log_mean_shift: float = 0.8
    downward: bool = False
    exposure_spread: float = 0.0

    def __post_init__(self) -> None:
        check_kinds((*self.pattern, *self.leading))
        if not self.pattern:
            raise ValueError("KindSettings: pattern must name at least one kind")
        for name in ("probability", "level", "dispersion", "log_odds_signal", "log_mean_signal", "n_levels"):
            low, high = getattr(self, name)
            if not 0 < low <= high < (1 if name == "probability" else np.inf):
                raise ValueError(f"KindSettings: {name}={(low, high)!r} is not a range (low, high)")

    def of(self, d: int) -> tuple[str, ...]:
        """Kinds of ``d`` columns."""
        return tuple(self.pattern[j % len(self.pattern)] for j in range(d))


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
    kinds
        How columns that are not continuous are drawn; None if all are. Needs ``signal_to_noise``.

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
    kinds: KindSettings | None = None

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
        if self.kinds is not None and self.signal_to_noise is None:
            raise ValueError(
                "Preset: kinds need signal_to_noise, by which the effects on continuous columns are set"
            )


# Appendix E of the paper; N(m, v) in its tables is read as mean and variance.
_PAPER = Preset(
    weights=NormalWeights(2.0), noise_variance=(0.015, 0.015), shift=(1.2, 2.2), intervention_variance=0.1
)
# The cause-effect pairs of its section 4: each of the three graphs is equally likely.
_PAIRS = replace(_PAPER, n_variables=2, edges_per_node=None, edge_probability=2 / 3, n_samples=999)
# What the code that came with the paper draws instead of its tables: regimes lie far apart, and no weight is near zero.
_RELEASED = Preset(
    weights=SignedUniformWeights(0.25, 1.25),
    noise_variance=(0.04, 0.04),
    shift=(4.0, 8.0),
    intervention_variance=0.04,
)
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
# Of ten columns four are continuous, and two each binary, counts and categories.
_MIXED = replace(
    _FIELD,
    n_variables=10,
    edges_per_node=1.2,
    n_samples=5000,
    kinds=KindSettings((CONTINUOUS, BINARY, COUNT, CONTINUOUS, CATEGORICAL), poisson_share=0.5),
)
# Nothing but over-dispersed counts, rare and frequent ones, of rows that were counted for unequally long.
_COUNTS = replace(
    _FIELD,
    edges_per_node=1.2,
    n_samples=5000,
    kinds=KindSettings((COUNT,), level=(0.5, 50.0), exposure_spread=0.4),
)
# Regimes that change one column of 0/1 hardly show; those that change several do, as latent classes do.
_BINARY = replace(
    _FIELD,
    edges_per_node=1.2,
    n_samples=5000,
    targets_per_regime=(2, 3),
    shift=(4.0, 4.0),
    kinds=KindSettings((BINARY,), leading=(BINARY,), log_odds_signal=(1.4, 2.0)),
)
# A screen of single cells: many genes with few molecules, each knocked down to an eleventh, and scores of cells.
_SCREEN = replace(
    _FIELD,
    n_variables=12,
    edges_per_node=1.2,
    n_samples=6000,
    n_regimes=7,
    targets_per_regime=1,
    shift=(3.0, 3.0),
    reference_share=0.3,
    kinds=KindSettings(
        (COUNT, COUNT, COUNT, CONTINUOUS),
        leading=(COUNT,),
        level=(2.0, 30.0),
        downward=True,
        exposure_spread=0.5,
    ),
)

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "paper": _PAPER,
        "paper-pairs": _PAIRS,
        "paper-hetero": _HETERO,
        "released": _RELEASED,
        "dcdi": _DCDI,
        "field": _FIELD,
        "mixed": _MIXED,
        "counts": _COUNTS,
        "binary": _BINARY,
        "screen": _SCREEN,
    }
)
"""Name to preset, for `simulate`."""
