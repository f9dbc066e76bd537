"""What rival explanations, if one of them wins, say to a user."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from scipy.special import expit, softmax
from threadpoolctl import threadpool_limits

from latentdo.checks.check import Array, Check, listed
from latentdo.checks.dependence import Hint
from latentdo.checks.hidden_factor import HiddenFactor, look_for_factor
from latentdo.checks.measurement_error import MeasurementError, look_for_errors
from latentdo.checks.rivals import best_lines
from latentdo.model.fitted import FittedModel
from latentdo.solvers.settings import RIVAL_GAIN, RIVAL_WEIGHT


def check_alternatives(
    z: Array,
    responsibilities: Array,
    names: Sequence[str],
    fitted: FittedModel,
    *,
    imperfect: bool,
    told: bool = False,
) -> tuple[list[Hint], list[Check]]:
    """Whether a hidden variable, or errors of measurement, explain rows ``z [n, d]`` as well as arrows alone.

    Rivals have lines with Gaussian noise, and must beat such lines as well as the model that was fitted, whatever its
    mechanisms: curves and shapes of noise that imitate what is hidden cost more than what they imitate. The three
    explanations are equally probable beforehand. Where it was ``told`` which rows belong together, rivals that look at
    single rows do not assign them anew.
    """
    with threadpool_limits(limits=1):  # several threads on matrices this small mostly wait for each other
        plain = best_lines(z, responsibilities, fitted, imperfect=imperfect, told=told)
        factor = look_for_factor(z, responsibilities, plain, imperfect=imperfect, told=told)
        errors = look_for_errors(z, responsibilities, plain, imperfect=imperfect, told=told)
    moved = factor.gain if factor.loaded.size > 1 else -np.inf  # what moves one column only is its noise
    _, hidden, measured = softmax([0.0, moved, errors.gain]).tolist()
    found = [_about_factor(factor, hidden, names), _about_errors(errors, measured)]
    hints = []
    if found[0].failed:
        hints = [
            Hint(names[i], names[j], float(factor.loadings[i] * factor.loadings[j]), found[0].p_value or 0.0)
            for i, j in combinations(factor.loaded.tolist(), 2)
        ]
    return hints, found


def _about_factor(factor: HiddenFactor, weight: float, names: Sequence[str]) -> Check:
    failed = weight > RIVAL_WEIGHT
    words = "No hidden variable that moves many columns explains the rows as well as arrows do."
    if failed:
        words = (
            f"One hidden variable that moves {listed([names[j] for j in factor.loaded])} explains the rows "
            f"{_how_well(factor.gain, factor.arrows)}: do not read arrows among them as causes; measure what they "
            "share (size, depth, temperature) and add it as a column, or divide by it."
        )
    return Check("hidden factor", factor.gain, float(expit(-factor.gain)), failed, words, weight=weight)


def _about_errors(errors: MeasurementError, weight: float) -> Check:
    failed = weight > RIVAL_WEIGHT
    words = "Measurement error does not explain the rows as well as arrows alone."
    if failed:
        words = (
            f"Measurement error, about {errors.share:.0%} of the variance of every column, explains the rows "
            f"{_how_well(errors.gain, errors.arrows)}: arrows from indirect causes may be spurious; average repeated "
            "measurements, or leave out the noisiest columns."
        )
    return Check("measurement error", errors.gain, float(expit(-errors.gain)), failed, words, weight=weight)


def _how_well(gain: float, arrows: tuple[int, int]) -> str:
    """In words."""
    before, after = arrows
    count = f"with {after} arrows instead of {before}"
    if gain > RIVAL_GAIN:
        return f"better than arrows do (by {gain:.0f} nats, {count})"
    return f"about as well as arrows do ({count}), and these data cannot tell which is true"
