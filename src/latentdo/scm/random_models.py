"""Random models and interventions, as a preset describes them."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from latentdo.scm.discrete import CONTINUOUS, Categorical
from latentdo.scm.interventions import Atomic, Imperfect, Intervention, Stochastic
from latentdo.scm.mechanisms import MLP, Heteroscedastic, LayeredMechanism, Linear, NonadditiveMLP
from latentdo.scm.model import SCM
from latentdo.scm.noise import Gaussian, Noise, centred_noise
from latentdo.scm.presets import Preset
from latentdo.scm.variable import Variable


def random_scm(
    adjacency: npt.NDArray[np.int64],
    names: list[str],
    mechanism: str,
    noise: str,
    preset: Preset,
    rng: np.random.Generator,
) -> SCM:
    """Draw mechanisms and noise variances for a given graph."""
    variables = {}
    for j, (name, stream) in enumerate(zip(names, rng.spawn(len(names)), strict=True)):
        parents = [names[i] for i in np.flatnonzero(adjacency[:, j])]
        # Drawn even where the range is a point, so that presets share their weights under one seed.
        variance = float(stream.uniform(*preset.noise_variance))
        variables[name] = Variable(
            _random_mechanism(parents, mechanism, preset, stream), centred_noise(noise, variance)
        )
    return SCM(variables)


def _random_mechanism(
    parents: list[str], mechanism: str, preset: Preset, rng: np.random.Generator
) -> LayeredMechanism:
    if mechanism == "nonadditive":
        return NonadditiveMLP.random(parents, rng, preset.weights, preset.n_hidden)
    # Without parents an additive network is a mere constant: such a variable is its noise, as if linear.
    if mechanism == "nonlinear" and parents:
        return MLP.random(parents, rng, preset.weights, preset.n_hidden)
    return Linear(dict(zip(parents, preset.weights(rng, (len(parents),)).tolist(), strict=True)))


def random_intervention(
    variable: Variable,
    kind: str,
    preset: Preset,
    shift: tuple[float, float],
    rng: np.random.Generator,
    unit: float = 1.0,
) -> Intervention:
    """Draw an intervention on one variable; ``unit`` is what its shift is counted in."""
    # Sign and size come first, so that all kinds share them under one seed.
    value = float((1 - 2 * rng.integers(0, 2)) * rng.uniform(*shift)) * unit
    if preset.kinds is not None and preset.kinds.downward:
        value = -abs(value)
    if kind == "atomic":
        return Atomic(value if variable.kind == CONTINUOUS else _held_at(variable.noise, value, rng))
    if isinstance(variable.noise, Categorical):  # which has no direction: one level gains
        favoured = variable.noise.favouring(str(rng.choice(variable.levels)), abs(value))
        return Imperfect(noise=favoured) if kind == "soft" else Stochastic(favoured)
    if kind == "soft":
        return _soft(variable, value)
    calibrated = preset.signal_to_noise is not None
    noise = (
        variable.noise.shifted(value)
        if calibrated
        else Gaussian(value, float(np.sqrt(preset.intervention_variance)))
    )
    if kind == "stochastic":
        return Stochastic(noise)
    assert isinstance(variable.mechanism, LayeredMechanism)  # as every mechanism drawn above
    return Imperfect(variable.mechanism.redraw_last_layer(rng, preset.weights), noise)


def _held_at(noise: Noise, value: float, rng: np.random.Generator) -> float | str:
    """What a discrete variable is held at if the shift of its link would have been ``value``."""
    if isinstance(noise, Categorical):
        return str(rng.choice(noise.levels))
    mean = noise.shifted(value).mean
    return float(round(mean))


def _soft(variable: Variable, value: float) -> Imperfect:
    """Move the variable and leave all else as it is."""
    if isinstance(variable.mechanism, Heteroscedastic):  # which would stretch a shift of the noise
        return Imperfect(replace(variable.mechanism, intercept=variable.mechanism.intercept + value))
    return Imperfect(noise=variable.noise.shifted(value))


def random_targets(
    d: int,
    n_regimes: int,
    counts: tuple[int, int],
    *,
    in_order: bool,
    rng: np.random.Generator,
    leading: npt.NDArray[np.bool_] | None = None,
) -> npt.NDArray[np.int64]:
    """Draw targets ``[n_regimes, d]``; every regime has a leading variable, and variables take turns.

    Parameters
    ----------
    d, n_regimes
        Number of variables; number of regimes, the observational one included.
    counts
        Smallest and largest number of targets of a regime.
    in_order
        Whether the variables lead in column order, or in an order drawn afresh for every round.
    rng
        Source of randomness.
    leading
        Which variables ``[d]`` may lead; all by default.
    """
    may_lead = np.arange(d) if leading is None or not leading.any() else np.flatnonzero(leading)
    rounds = -(-(n_regimes - 1) // len(may_lead))
    turns = (range(len(may_lead)) if in_order else rng.permutation(len(may_lead)) for _ in range(rounds))
    leaders = [int(may_lead[place]) for turn in turns for place in turn]
    targets = np.zeros((n_regimes, d), dtype=np.int64)
    for regime, leader in zip(range(1, n_regimes), leaders, strict=False):
        count = int(rng.integers(counts[0], counts[1], endpoint=True))
        others = rng.choice(np.delete(np.arange(d), leader), size=count - 1, replace=False)
        targets[regime, [leader, *others.tolist()]] = 1
    return targets
