"""Random models whose signal is about as large as their noise, whatever the mechanisms and the graph."""

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from latentdo import graphs
from latentdo.scm.curves import CURVES, Multiplicative, Smooth
from latentdo.scm.mechanisms import AdditiveMechanism, Heteroscedastic, Linear, Mechanism
from latentdo.scm.model import SCM
from latentdo.scm.noise import FloatArray, centred_noise
from latentdo.scm.presets import Preset
from latentdo.scm.variable import Variable

PILOT_ROWS: Final = 20_000
"""Rows on which a signal is measured: its standard deviation is then known within one per cent."""


def calibrated_scm(
    adjacency: npt.NDArray[np.int64],
    names: list[str],
    mechanism: str,
    noise: str,
    noise_scale: str,
    preset: Preset,
    rng: np.random.Generator,
) -> tuple[SCM, FloatArray]:
    """Draw mechanisms for a given graph, each scaled to a signal-to-noise ratio from the preset's range.

    Variables are made in causal order. Each sees its parents in units of their standard deviations and has mean
    zero, so that variances do not grow along the order.

    Returns
    -------
    SCM, ndarray [d]
        The model, and the standard deviation of every variable in it.
    """
    assert preset.signal_to_noise is not None  # what makes a preset one of this kind
    streams = rng.spawn(len(names))
    pilot = np.empty((len(names), PILOT_ROWS))
    variables: dict[str, Variable] = {}
    deviations = np.empty(len(names))
    for j in graphs.topological_order(adjacency):
        stream = streams[j]
        parents = np.flatnonzero(adjacency[:, j])
        variance = float(stream.uniform(*preset.noise_variance))
        signal_variance = variance * float(stream.uniform(*preset.signal_to_noise)) * (len(parents) > 0)
        drawn: Mechanism = Linear()
        if len(parents):
            build = _drawn_signal(
                tuple(names[i] for i in parents), deviations[parents], mechanism, preset, stream
            )
            drawn = _calibrated(build, pilot[parents].T, float(np.sqrt(signal_variance)), noise_scale)
        variables[names[j]] = Variable(drawn, centred_noise(noise, variance))
        deviations[j] = np.sqrt(variance + signal_variance)
        pilot[j] = variables[names[j]].sample(pilot[parents].T, stream.spawn(1)[0])
    return SCM({name: variables[name] for name in names}), deviations


Build = Callable[[float, float], AdditiveMechanism]
"""A mechanism as a function of the factor of its signal and its intercept."""


def _drawn_signal(
    parents: tuple[str, ...], units: FloatArray, mechanism: str, preset: Preset, rng: np.random.Generator
) -> Build:
    weights = preset.weights(rng, (len(parents),))
    curves = tuple(rng.choice(list(CURVES), size=len(parents)).tolist())
    if mechanism == "smooth":
        return lambda factor, intercept: Smooth(parents, factor * weights, units, intercept, curves=curves)
    if mechanism == "multiplicative":
        return lambda factor, intercept: Multiplicative(parents, weights, units, intercept, factor)
    return lambda factor, intercept: Linear(
        dict(zip(parents, (factor * weights / units).tolist(), strict=True)), intercept
    )


def _calibrated(build: Build, parents: FloatArray, deviation: float, noise_scale: str) -> Mechanism:
    """Scale and centre a signal as measured on ``parents``; let the noise grow with it if asked."""
    raw = build(1.0, 0.0).location(parents)
    factor = float(deviation / raw.std())
    signal = build(factor, float(-factor * raw.mean()))
    if noise_scale == "constant":
        return signal
    growing = Heteroscedastic(signal, unit=deviation)
    _, spread = growing.location_and_spread(parents)
    # The noise keeps its variance over all rows.
    return Heteroscedastic(signal, unit=deviation, spread=float(1 / np.sqrt(np.mean(spread**2))))
