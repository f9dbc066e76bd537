"""Random models with columns of every kind, whose effects are of a size that can be seen and believed."""

from typing import Final

import numpy as np
import numpy.typing as npt

from latentdo import graphs
from latentdo.scm.curves import CURVES
from latentdo.scm.discrete import (
    BINARY,
    CATEGORICAL,
    CONTINUOUS,
    COUNT,
    Bernoulli,
    Categorical,
    NegativeBinomial,
    Poisson,
)
from latentdo.scm.effects import Bent, Effects, Logits, PerLevel, PerLog, Slope, Term
from latentdo.scm.mechanisms import AdditiveMechanism, Linear
from latentdo.scm.model import SCM
from latentdo.scm.noise import FloatArray, Noise, centred_noise
from latentdo.scm.presets import KindSettings, Preset
from latentdo.scm.variable import Variable

LEVELS: Final = "abcdefghijklmnopqrstuvwxyz"

PILOT_ROWS: Final = 5000
"""Rows on which a signal is measured: its size is then known within two per cent, and counts take time to draw."""


def mixed_scm(
    adjacency: npt.NDArray[np.int64],
    names: list[str],
    mechanism: str,
    noise: str,
    preset: Preset,
    rng: np.random.Generator,
) -> tuple[SCM, FloatArray]:
    """Draw mechanisms for a given graph whose columns have the kinds of the preset.

    Variables are made in causal order. The signal of each is a sum over its parents, as `KindSettings` describes it: a
    continuous parent acts by its value (or by a curve of it), a binary one by being one, a count by its logarithm, a
    category by its level, and each contributes with the weight it would have in ``field``. The sum is scaled to the
    wanted size on rows drawn from the model as it stands, and centred, so that neither grows along the order; that of
    a count is such that the mean is the level drawn for it.

    Returns
    -------
    SCM, ndarray [d]
        The model, and what the shift of an intervention on each variable is counted in.
    """
    settings = preset.kinds
    assert settings is not None
    assert preset.signal_to_noise is not None
    kinds = settings.of(len(names))
    *streams, exposure_rng = rng.spawn(len(names) + 1)
    exposure = draw_exposure(settings, PILOT_ROWS, exposure_rng)
    offset = np.zeros(PILOT_ROWS) if exposure is None else np.log(exposure)
    pilot = np.empty((len(names), PILOT_ROWS))
    variables: dict[str, Variable] = {}
    units = np.empty(len(names))
    for j in graphs.topological_order(adjacency):
        stream, kind = streams[j], kinds[j]
        parents = np.flatnonzero(adjacency[:, j])
        causes = {names[i]: variables[names[i]] for i in parents}
        variance = float(stream.uniform(*preset.noise_variance))
        own = centred_noise(noise, variance) if kind == CONTINUOUS else _level(kind, settings, stream)
        ratio = float(stream.uniform(*preset.signal_to_noise))
        size = {
            CONTINUOUS: float(np.sqrt(variance * ratio)),
            COUNT: float(stream.uniform(*settings.log_mean_signal)),
        }.get(kind, float(stream.uniform(*settings.log_odds_signal)))
        drawn: AdditiveMechanism = Linear()
        if causes and isinstance(own, Categorical):
            # The first level is the one the others are compared with.
            sizes = stream.uniform(*settings.log_odds_signal, size=len(own.levels) - 1).tolist()
            others = {
                level: _signal(causes, pilot[parents], mechanism, one, preset, stream)
                for level, one in zip(own.levels[1:], sizes, strict=True)
            }
            drawn = Logits({own.levels[0]: Effects(), **others})
        elif causes:
            drawn = _signal(
                causes, pilot[parents], mechanism, size, preset, stream, mean_of_exp=kind == COUNT
            )
        variables[names[j]] = Variable(drawn, own)
        values = variables[names[j]].sample(
            pilot[parents].T, stream.spawn(1)[0], offset if kind == COUNT else None
        )
        pilot[j] = values if exposure is None or kind != COUNT else values / exposure  # as effects see it
        units[j] = {
            CONTINUOUS: float(np.sqrt(variance + (size**2 if causes else 0.0))),
            COUNT: settings.log_mean_shift,
        }.get(kind, settings.log_odds_shift)
    return SCM({name: variables[name] for name in names}), units


def draw_exposure(settings: KindSettings | None, n: int, rng: np.random.Generator) -> FloatArray | None:
    """Exposure of ``n`` rows, log-normal with median one; None where the preset has none."""
    if settings is None or not settings.exposure_spread:
        return None
    return np.exp(rng.normal(0.0, settings.exposure_spread, size=n))


def _level(kind: str, settings: KindSettings, rng: np.random.Generator) -> Noise:
    """Distribution of a discrete variable where its parents are at their means."""
    if kind == BINARY:
        return Bernoulli(float(rng.uniform(*settings.probability)))
    if kind == COUNT:
        level = float(np.exp(rng.uniform(*np.log(settings.level))))
        dispersion = float(rng.uniform(*settings.dispersion))
        return (
            Poisson(level) if rng.random() < settings.poisson_share else NegativeBinomial(level, dispersion)
        )
    n_levels = int(rng.integers(*settings.n_levels, endpoint=True))
    shares = np.exp(rng.uniform(-0.5, 0.5, size=n_levels))
    return Categorical(dict(zip(LEVELS, shares.tolist(), strict=False)))


def _signal(
    causes: dict[str, Variable],
    values: FloatArray,
    mechanism: str,
    size: float,
    preset: Preset,
    rng: np.random.Generator,
    *,
    mean_of_exp: bool = False,
) -> Effects:
    """Sum of the effects of all parents with ``values [n_parents, n]``, of standard deviation ``size``."""
    weights = preset.weights(rng, (len(causes),))
    raw = {
        name: _term(variable, column, float(weight), mechanism, rng)
        for (name, variable), column, weight in zip(causes.items(), values, weights, strict=True)
    }
    factor = size / float(Effects(raw).location(values.T).std())
    terms = {name: _scaled(term, factor) for name, term in raw.items()}
    signal = Effects(terms).location(values.T)
    middle = np.log(np.mean(np.exp(signal))) if mean_of_exp else signal.mean()
    return Effects(terms, -float(middle))


def _term(
    parent: Variable, values: FloatArray, weight: float, mechanism: str, rng: np.random.Generator
) -> Term:
    """Effect of one parent with standard deviation ``weight``, as measured on ``values``."""
    curve = str(rng.choice(list(CURVES)))
    if parent.kind == CATEGORICAL:
        # Every two levels differ: their effects are evenly spaced, up to half a step, in an order drawn afresh.
        steps = rng.permutation(len(parent.levels)) + rng.uniform(-0.25, 0.25, size=len(parent.levels))
        spread = float(steps[values.astype(np.int64)].std())
        return PerLevel(tuple((weight * (steps - steps.mean()) / spread).tolist()))
    if parent.kind == COUNT:
        return PerLog(weight / float(np.log1p(values).std()))
    unit = float(values.std())
    if parent.kind == CONTINUOUS and mechanism == "smooth":
        bent = Bent(1.0, curve, unit)
        return Bent(weight / float(bent(values).std()), curve, unit)
    return Slope(weight / unit)


def _scaled(term: Term, factor: float) -> Term:
    if isinstance(term, PerLevel):
        return PerLevel(tuple(factor * effect for effect in term.effects))
    if isinstance(term, Bent):
        return Bent(factor * term.weight, term.curve, term.unit)
    assert isinstance(term, Slope | PerLog)
    return type(term)(factor * term.weight)
