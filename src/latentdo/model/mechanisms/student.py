r"""Lines with Student-t noise: heavy tails, so that single wild rows neither bend a line nor ask for a regime.

With residual :math:`r`, scale :math:`s`, degrees of freedom :math:`\nu` and :math:`\delta = r^2 / s^2`, a row counts
with the weight :math:`u = (\nu + 1) / (\nu + \delta)` in the normal equations. Coefficients and (:math:`\log s`,
:math:`\log \nu`) are independent in the Fisher information of Student's t, so that one pass over the rows gives a
scoring step for all of them (Lange, Little and Taylor, JASA 84, 1989).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit
from latentdo.model.mechanisms.base import Array, LinearForm, Mechanism
from latentdo.model.mechanisms.family import ParametricFamily
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR
from latentdo.model.regression import regression, weighted_gram

FEWEST_DEGREES = 1.0
"""Cauchy noise. Below it a few rows that are nearly equal would have any likelihood, at a vanishing scale."""

MOST_DEGREES = 1000.0
"""As good as Gaussian: a thousand Gaussian rows lose about a thousandth of a nat."""

START_DEGREES = 4.0
"""Where a fit begins: robust, yet with a variance."""

MOST_STEPS = 60
"""Scoring steps. Ten are usual; a scale that falls to its floor takes the most."""

TOLERANCE = 1e-5
"""Nats that a last step may gain: evidence is compared by far more."""

LONGEST_STEP = 1.0
"""Of the logarithms of scale and degrees of freedom; far from Gaussian noise the information promises too much."""

TINY = 1e-300
"""Squares of a parent that is zero throughout, not to divide by it."""

LOG_OF_GAUSSIAN = -1.2703628454614782
"""Mean of ``log r^2`` for standard Gaussian ``r``: a start for the scale that outliers hardly move."""

STIRLING = 12.0
"""From here on Stirling's series is exact to 13 digits."""

SHORTEST = 0.01
"""Share of a step below which it is not halved again."""

HEAVIEST = 2.0
"""Degrees of freedom up to which the noise has no variance."""


@njit
def polygammas(x):  # type: ignore[no-untyped-def]
    """The first and the second derivative of ``log gamma(x)``, to 13 digits: recurrence, then Stirling's series."""
    first, second = 0.0, 0.0
    while x < STIRLING:
        first -= 1.0 / x
        second += 1.0 / (x * x)
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))))
    first += math.log(x) - 0.5 / x - series
    series = y * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y * (1 / 30 - y * 5 / 66))))
    second += 1.0 / x + 0.5 * y + series / x
    return first, second


@njit
def _log_constant(scale, degrees):  # type: ignore[no-untyped-def]
    """Log-density at the centre."""
    return (
        math.lgamma(0.5 * (degrees + 1.0))
        - math.lgamma(0.5 * degrees)
        - 0.5 * math.log(math.pi * degrees)
        - math.log(scale)
    )


@njit
def _log_density(y, x, parameters):  # type: ignore[no-untyped-def]
    """Fill in ``log p(y | x)``; ``parameters`` are constant, slopes, scale and degrees of freedom."""
    p = parameters.shape[0] - 3
    scale, degrees = parameters[p + 1], parameters[p + 2]
    level, power = _log_constant(scale, degrees), 0.5 * (degrees + 1.0)
    spread = scale * math.sqrt(degrees)
    density = np.empty(y.shape[0])
    for i in range(y.shape[0]):
        residual = y[i] - parameters[0]
        for a in range(p):
            residual -= parameters[1 + a] * x[i, a]
        density[i] = level - power * math.log1p((residual / spread) ** 2)
    return density


@njit
def _scores(rows, weights, parameters, precisions):  # type: ignore[no-untyped-def]
    """Log-likelihood, and its derivatives by log scale and log degrees; fills the weights of the normal equations.

    ``rows [n, p + 2]`` has ones first and values last.
    """
    last = rows.shape[1] - 1
    scale, degrees = parameters[last], parameters[last + 1]
    tails, leverage = 0.0, 0.0
    for i in range(rows.shape[0]):
        residual = rows[i, last]
        for a in range(last):
            residual -= parameters[a] * rows[i, a]
        square = (residual / scale) ** 2
        precisions[i] = weights[i] * (degrees + 1.0) / (degrees + square)
        tails += weights[i] * math.log1p(square / degrees)
        leverage += precisions[i] * square
    n = weights.sum()
    loglik = n * _log_constant(scale, degrees) - 0.5 * (degrees + 1.0) * tails
    more, _ = polygammas(0.5 * (degrees + 1.0))
    less, _ = polygammas(0.5 * degrees)
    by_degrees = 0.5 * (degrees * (n * (more - less) - tails) - n + leverage)
    return loglik, leverage - n, by_degrees


@njit
def _step(n, by_scale, by_degrees, degrees):  # type: ignore[no-untyped-def]
    """Scoring step of log scale and log degrees: the inverse Fisher information times their derivatives."""
    of_scale = 2.0 * n * degrees / (degrees + 3.0)
    alone = by_scale / of_scale
    if (degrees >= MOST_DEGREES and by_degrees >= 0.0) or (degrees <= FEWEST_DEGREES and by_degrees <= 0.0):
        return min(max(alone, -LONGEST_STEP), LONGEST_STEP), 0.0
    _, more = polygammas(0.5 * (degrees + 1.0))
    _, less = polygammas(0.5 * degrees)
    known = 0.25 * (less - more) - (degrees + 5.0) / (2.0 * degrees * (degrees + 1.0) * (degrees + 3.0))
    of_degrees = n * degrees * degrees * known
    both = -2.0 * n * degrees / ((degrees + 1.0) * (degrees + 3.0))
    determinant = of_scale * of_degrees - both * both
    if determinant <= 0.0:  # rounding, near Gaussian noise
        return min(max(alone, -LONGEST_STEP), LONGEST_STEP), math.copysign(LONGEST_STEP, by_degrees)
    first = (of_degrees * by_scale - both * by_degrees) / determinant
    second = (of_scale * by_degrees - both * by_scale) / determinant
    shorter = min(1.0, LONGEST_STEP / max(abs(first), abs(second), 1e-300))
    return first * shorter, second * shorter


@njit
def _fit(rows, weights, parameters):  # type: ignore[no-untyped-def]
    """Climb to the most likely parameters, in place; without a scale they begin at least squares."""
    n_rows, width = rows.shape
    last = width - 1
    gram, factor, contrast = np.empty((width, width)), np.zeros((width, width)), np.zeros(width)
    precisions, floor = np.empty(n_rows), math.sqrt(VARIANCE_FLOOR)
    n = weights.sum()
    if parameters[last] <= 0.0:
        weighted_gram(rows, last, rows[:, last], weights, gram)
        regression(gram, width, factor, contrast)
        level = 0.0
        for i in range(n_rows):
            residual = 0.0
            for a in range(width):
                residual += contrast[a] * rows[i, a]
            level += weights[i] * math.log(max(residual * residual, VARIANCE_FLOOR))
        parameters[:last] = -contrast[:last]
        parameters[last] = max(math.exp(0.5 * (level / n - LOG_OF_GAUSSIAN)), floor)
        parameters[last + 1] = START_DEGREES
    best, by_scale, by_degrees = _scores(rows, weights, parameters, precisions)
    trial = parameters.copy()
    for _ in range(MOST_STEPS):
        degrees = parameters[last + 1]
        weighted_gram(rows, last, rows[:, last], precisions, gram)
        regression(gram, width, factor, contrast)
        # least squares with these weights, and beyond: the information is smaller than the normal equations say
        move = (-contrast[:last] - parameters[:last]) * (degrees + 3.0) / (degrees + 1.0)
        wider, thinner = _step(n, by_scale, by_degrees, degrees)
        length, gain = 1.0, -1.0
        while gain < 0.0 and length > SHORTEST:
            trial[:last] = parameters[:last] + length * move
            trial[last] = max(parameters[last] * math.exp(length * wider), floor)
            trial[last + 1] = min(max(degrees * math.exp(length * thinner), FEWEST_DEGREES), MOST_DEGREES)
            loglik, scale_now, degrees_now = _scores(rows, weights, trial, precisions)
            gain = loglik - best
            length *= 0.5
        if gain < 0.0:
            break
        parameters[:] = trial
        best, by_scale, by_degrees = loglik, scale_now, degrees_now
        if gain < TOLERANCE:
            break


class StudentMechanism(ParametricFamily):
    """``y = c + b' x + s t``; ``parameters`` are ``c``, ``b``, ``s`` and the degrees of freedom of ``t``."""

    family: ClassVar[str] = "student"

    def check(self) -> None:
        """See :class:`ParametricFamily`; the compiled loops trust what is checked here."""
        if self.parameters.size != 3 + self.n_inputs:
            raise ValueError(
                f"a mechanism with Student noise and {self.n_inputs} inputs has {self.parameters.size} parameters"
            )
        if not (self.scale > 0.0 and self.degrees > 0.0):
            raise ValueError("scale and degrees of freedom of Student noise must be above zero")

    @property
    def scale(self) -> float:
        """Scale of the noise."""
        return float(self.parameters[-2])

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the noise."""
        return float(self.parameters[-1])

    @classmethod
    def fit(cls, x: Array, y: Array, weights: Array, start: Any = None) -> Self:
        """See :class:`RowFamily`."""
        same = isinstance(start, cls) and start.n_inputs == x.shape[1]
        parameters = start.parameters.copy() if same else np.zeros(x.shape[1] + 3)
        _fit(np.column_stack([np.ones(len(y)), x, y]), weights, parameters)
        return cls(parameters, x.shape[1])

    @classmethod
    def may_differ(
        cls, x: Array, y: Array, responsibilities: Array, reference: Mechanism
    ) -> NDArray[np.bool_]:
        """See :class:`RowFamily`: score tests of constant, scale and slopes, against less than it costs."""
        assert isinstance(reference, cls)
        nu = reference.degrees
        residual = (y - reference.mean(x)) / reference.scale
        pull = (nu + 1.0) / (nu + residual**2) * residual
        counts = np.maximum(responsibilities.sum(axis=0), 2.0)
        scores = np.column_stack([pull, pull[:, None] * x]).T @ responsibilities
        squares = np.vstack([counts, (x**2).T @ responsibilities]) + TINY
        of_scale = ((pull * residual - 1.0) @ responsibilities) ** 2 / (4.0 * nu * counts)
        gains = (nu + 3.0) * ((scores**2 / squares).sum(axis=0) / (2.0 * (nu + 1.0)) + of_scale)
        return np.asarray(gains > np.log(counts))

    def mean(self, x: Array) -> Array:
        """Value of the line, ``[n]``."""
        return np.asarray(self.parameters[0] + self.used(x) @ self.parameters[1:-2])

    def log_density(self, x: Array, y: Array) -> Array:
        """See :class:`Mechanism`."""
        return np.asarray(_log_density(y, x, self.parameters))

    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        """See :class:`Mechanism`."""
        return np.asarray(self.mean(x) + self.scale * rng.standard_t(self.degrees, len(x)))

    @property
    def linear_form(self) -> LinearForm | None:
        """See :class:`Mechanism`; with two degrees of freedom or fewer the noise has no variance."""
        if self.degrees <= HEAVIEST:
            return None
        return LinearForm(self.parameters[:-2], self.scale**2 * self.degrees / (self.degrees - 2.0))
