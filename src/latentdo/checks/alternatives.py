"""What rival explanations, if one of them wins, say to a user."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from scipy.special import expit
from threadpoolctl import threadpool_limits

from latentdo.checks.check import Array, Check, listed
from latentdo.checks.dependence import Hint
from latentdo.checks.hidden_factor import HiddenFactor, look_for_factor
from latentdo.checks.measurement_error import MeasurementError, look_for_errors
from latentdo.checks.regimes import is_broad
from latentdo.checks.rivals import best_lines, without
from latentdo.model.fitted import FittedModel
from latentdo.solvers.settings import RIVAL_GAIN


def check_alternatives(
    z: Array,
    responsibilities: Array,
    names: Sequence[str],
    fitted: FittedModel,
    *,
    imperfect: bool,
    told: bool = False,
) -> tuple[list[Hint], list[Check]]:
    """Whether a hidden variable, or errors of measurement, explain rows ``z [n, d]`` better than arrows alone.

    Rivals have lines with Gaussian noise, and must beat such lines as well as the model that was fitted, whatever its
    mechanisms: curves and shapes of noise that imitate what is hidden cost more than what they imitate. So do regimes
    that change most variables: rivals may do without them. Where it was ``told`` which rows belong together, rivals
    that look at single rows do not assign them anew.
    """
    broad = is_broad(fitted.topology)
    begins = [responsibilities]
    if broad.any() and not told:
        begins.append(without(responsibilities, broad))
    with threadpool_limits(limits=1):  # several threads on matrices this small mostly wait for each other
        plain = best_lines(z, responsibilities, fitted, imperfect=imperfect, told=told)
        factor = max(
            (look_for_factor(z, q, plain, imperfect=imperfect, told=told) for q in begins),
            key=lambda one: one.gain,
        )
        errors = max(
            (look_for_errors(z, q, plain, imperfect=imperfect, told=told) for q in begins),
            key=lambda one: one.gain,
        )
    # Each may imitate the other a little: the better one is meant.
    found = [_about_factor(factor, errors, names), _about_errors(errors, factor)]
    hints = []
    if found[0].failed:
        hints = [
            Hint(names[i], names[j], float(factor.loadings[i] * factor.loadings[j]), found[0].p_value or 0.0)
            for i, j in combinations(factor.loaded.tolist(), 2)
        ]
    return hints, found


def _about_factor(factor: HiddenFactor, errors: MeasurementError, names: Sequence[str]) -> Check:
    failed = factor.gain > max(RIVAL_GAIN, errors.gain) and factor.loaded.size > 1
    words = "No hidden variable that moves many columns explains the rows better than arrows do."
    if failed:
        before, after = factor.arrows
        words = (
            f"One hidden variable that moves {listed([names[j] for j in factor.loaded])} explains the rows better than "
            f"arrows do (by {factor.gain:.0f} nats, with {after} arrows instead of {before}): do not read arrows among "
            "them as causes; measure what they share (size, depth, temperature) and add it as a column, or divide by "
            "it."
        )
    return Check("hidden factor", factor.gain, float(expit(-factor.gain)), failed, words)


def _about_errors(errors: MeasurementError, factor: HiddenFactor) -> Check:
    failed = errors.gain > RIVAL_GAIN and errors.gain >= factor.gain
    words = "Measurement error does not explain the rows better than arrows alone."
    if failed:
        before, after = errors.arrows
        words = (
            f"Measurement error, about {errors.share:.0%} of the variance of every column, explains the rows better "
            f"than arrows alone (by {errors.gain:.0f} nats, with {after} arrows instead of {before}): arrows from "
            "indirect causes may be spurious; average repeated measurements, or leave out the noisiest columns."
        )
    return Check("measurement error", errors.gain, float(expit(-errors.gain)), failed, words)
