r"""Counts: Poisson or negative binomial, with more zeros than that if evidence asks for them.

.. math:: \mu = e^\eta, \qquad
    P(y \mid x) = \pi [y = 0] + (1 - \pi) \frac{\Gamma(y + r)}{\Gamma(r)\, y!}
    \Bigl(\frac{r}{r + \mu}\Bigr)^r \Bigl(\frac{\mu}{r + \mu}\Bigr)^y

The dispersion :math:`1 / r` is zero for Poisson's law. It and the share :math:`\pi` of further zeros are parameters
that have to pay for themselves.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import nbinom, poisson

from latentdo.compilation import njit, vectorised
from latentdo.model.mechanisms.base import Array, Mechanism
from latentdo.model.mechanisms.binary import score_tests
from latentdo.model.mechanisms.family import evidence
from latentdo.model.mechanisms.response import (
    FARTHEST,
    MOST_STEPS,
    RIDGE,
    SHORTEST,
    TOLERANCE,
    Response,
    alike,
    begin,
    predict,
    weighted_products,
    weighted_sums,
    with_ones,
)
from latentdo.model.mechanisms.student import polygammas
from latentdo.model.transcendental import fast_exp, fast_log

LEAST_DISPERSION: Final = 1e-6
"""Below, a negative binomial law cannot be told from Poisson's."""

MOST_DISPERSION: Final = 1e3
"""Beyond, nearly all rows are zero and the others have any size."""

LONGEST_STEP: Final = 1.0
"""Of the logarithm of the dispersion."""

MOST_TAILS: Final = 5000
"""Largest count for which sums over all smaller ones are quicker than gamma functions of every row."""

MOST_SUMMED: Final = 500.0
"""Largest mean for which probabilities are added up from zero on: that of zero does not underflow."""

MOST_ZEROS: Final = 0.999
"""Share of further zeros, at most."""


@njit
def _log_factors(y, dispersion):  # type: ignore[no-untyped-def]
    """What a count has whatever its mean: the sum of ``log((1 + dispersion k) / (k + 1))`` over all ``k`` below it."""
    n, found = y.shape[0], np.empty(y.shape[0])
    most = y.max() if n else 0.0
    if most <= min(n, MOST_TAILS):  # a table of all counts is quicker than gamma functions of every row
        table = np.zeros(int(most) + 1)
        for k in range(int(most)):
            table[k + 1] = table[k] + math.log((1.0 + dispersion * k) / (k + 1.0))
        for i in range(n):
            found[i] = table[int(y[i])]
        return found
    for i in range(n):
        found[i] = -math.lgamma(y[i] + 1.0)
        if dispersion > 0.0:
            r = 1.0 / dispersion
            found[i] += math.lgamma(y[i] + r) - math.lgamma(r) + y[i] * math.log(dispersion)
    return found


@njit
def _log_law(y, eta, mu, dispersion):  # type: ignore[no-untyped-def]
    """Log-probability of a count with mean ``mu = exp(eta)`` without further zeros, but for its factor."""
    if dispersion <= 0.0:
        return y * eta - mu
    log = fast_log(1.0 + mu * dispersion)
    return y * (eta - log) - log / dispersion


@njit
def _log_probabilities(eta, y, dispersion, zeros):  # type: ignore[no-untyped-def]
    found = _log_factors(y, dispersion)
    _add_laws(eta, y, dispersion, found)
    if zeros > 0.0:
        for i in range(y.shape[0]):
            found[i] += math.log1p(-zeros)
            if y[i] == 0.0:
                found[i] = math.log(zeros + math.exp(found[i]))
    return found


@vectorised
def _add_laws(eta, y, dispersion, out):  # type: ignore[no-untyped-def]
    for i in range(y.shape[0]):
        out[i] += _log_law(y[i], eta[i], fast_exp(eta[i]), dispersion)


@njit
def _quantiles(mu, dispersion, share):  # type: ignore[no-untyped-def]
    """The smallest counts whose distribution function reaches a share, by adding up; -1 where that takes too long."""
    found = np.empty(mu.shape[0])
    for i in range(mu.shape[0]):
        m = mu[i]
        if m > MOST_SUMMED:
            found[i] = -1.0
            continue
        term = math.exp(-m if dispersion <= 0.0 else -math.log1p(m * dispersion) / dispersion)
        total, y = term, 0.0
        while total < share[i] and y < MOST_TAILS:
            term *= m * (1.0 + dispersion * y) / ((1.0 + dispersion * m) * (y + 1.0))
            total += term
            y += 1.0
        found[i] = y if total >= share[i] else -1.0
    return found


@njit
def _tails(y, weights):  # type: ignore[no-untyped-def]
    """Weight of the rows that count more than ``k = 0, 1, ...``; empty where counts are too large for that to pay."""
    most = y.max()
    if most > MOST_TAILS:
        return np.empty(0)
    tails = np.zeros(int(most) + 1)
    for i in range(y.shape[0]):
        if y[i] > 0.0:
            tails[int(y[i]) - 1] += weights[i]
    for k in range(tails.shape[0] - 2, -1, -1):
        tails[k] += tails[k + 1]
    return tails


@njit
def _log_gammas(y, weights, tails, r):  # type: ignore[no-untyped-def]
    """Weighted sum of ``log gamma(y + r) - log gamma(r)``, and its first two derivatives by ``r``.

    It is a sum of ``log(r + k)`` over all ``k`` below ``y``, so that tails of the counts are enough.
    """
    value, first, second = 0.0, 0.0, 0.0
    if tails.shape[0]:
        for k in range(tails.shape[0]):
            if tails[k] > 0.0:
                value += tails[k] * math.log(r + k)
                first += tails[k] / (r + k)
                second -= tails[k] / (r + k) ** 2
        return value, first, second
    base0 = math.lgamma(r)
    base1, base2 = polygammas(r)
    for i in range(y.shape[0]):
        if y[i] > 0.0:
            more1, more2 = polygammas(y[i] + r)
            value += weights[i] * (math.lgamma(y[i] + r) - base0)
            first += weights[i] * (more1 - base1)
            second += weights[i] * (more2 - base2)
    return value, first, second


@vectorised
def _means(eta, y, counted, dispersion, mu):  # type: ignore[no-untyped-def]
    """Fill means ``[n]``; returns the log-likelihood but for factors of counts."""
    value = 0.0
    for i in range(y.shape[0]):
        mu[i] = fast_exp(eta[i])
        value += counted[i] * _log_law(y[i], eta[i], mu[i], dispersion)
    return value


@njit
def _mean_step(inputs, offset, y, counted, beta, dispersion, eta, mu):  # type: ignore[no-untyped-def]
    """One scoring step of the coefficients, in place as are predictors and means; returns about what it gained."""
    q, n = inputs.shape
    slopes, bends = np.empty(n), np.empty(n)
    for i in range(n):
        scale = counted[i] / (1.0 + dispersion * mu[i])
        slopes[i], bends[i] = (y[i] - mu[i]) * scale, mu[i] * scale
    gradient, hessian = -RIDGE * beta, RIDGE * np.eye(q)
    weighted_sums(inputs, slopes, gradient)
    weighted_products(inputs, bends, hessian)
    move = np.linalg.solve(hessian, gradient)
    promised = 0.5 * (gradient * move).sum()
    if promised < TOLERANCE:
        beta += move
        predict(inputs, beta, offset, eta)
        mu[:] = np.exp(eta)
        return promised
    best = _means(eta, y, counted, dispersion, mu) - 0.5 * RIDGE * (beta * beta).sum()
    length, gain = 1.0, -1.0
    while gain < 0.0 and length > SHORTEST:
        trial = beta + length * move
        predict(inputs, trial, offset, eta)
        value = _means(eta, y, counted, dispersion, mu)
        gain = value - 0.5 * RIDGE * (trial * trial).sum() - best
        length *= 0.5
    if gain < 0.0:
        predict(inputs, beta, offset, eta)
        mu[:] = np.exp(eta)
        return 0.0
    beta[:] = trial
    return gain


@vectorised
def _slopes_of_dispersion(mu, y, counted, dispersion):  # type: ignore[no-untyped-def]
    """Derivatives by ``1 / dispersion`` of the log-likelihood without gamma functions: the first and the second."""
    r, first, second = 1.0 / dispersion, 0.0, 0.0
    for i in range(y.shape[0]):
        rest = (mu[i] - y[i]) / (r + mu[i])
        first += counted[i] * (rest - fast_log(1.0 + mu[i] * dispersion))
        second += counted[i] * (dispersion - (1.0 + rest) / (r + mu[i]))
    return first, second


@njit
def _dispersion_step(mu, y, counted, tails, dispersion):  # type: ignore[no-untyped-def]
    """One Newton step of the logarithm of the dispersion: the new dispersion, and about what it gained."""
    r = 1.0 / dispersion
    _, first, second = _log_gammas(y, counted, tails, r)
    more, bent = _slopes_of_dispersion(mu, y, counted, dispersion)
    first, second = first + more, second + bent
    # by log r, whose negative is the logarithm of the dispersion
    slope, bend = r * first, r * r * second + r * first
    move = -slope / bend if bend < 0.0 else math.copysign(LONGEST_STEP, slope)
    move = min(max(move, -LONGEST_STEP), LONGEST_STEP)
    found = min(max(dispersion * math.exp(-move), LEAST_DISPERSION), MOST_DISPERSION)
    return found, 0.0 if found == dispersion else abs(0.5 * slope * move)


@njit
def _climb(inputs, offset, y, weights, beta, shape, same_shape):  # type: ignore[no-untyped-def]
    """Steps of coefficients, dispersion and further zeros in turn, in place; what is zero of the latter stays so.

    Dispersion and share of zeros stay as they are in any case, if they are to be the ``same_shape``.
    """
    counted, tails = weights.copy(), _tails(y, weights)
    eta = np.empty(y.shape[0])
    predict(inputs, beta, offset, eta)
    mu = np.exp(eta)
    for _ in range(MOST_STEPS):
        gained = 0.0
        if shape[1] > 0.0:
            hidden = 0.0
            for i in range(y.shape[0]):
                if y[i] == 0.0:
                    law = (1.0 - shape[1]) * math.exp(_log_law(0.0, eta[i], mu[i], shape[0]))
                    share = shape[1] / (shape[1] + law)
                    hidden += weights[i] * share
                    counted[i] = weights[i] * (1.0 - share)
            if not same_shape:
                share = min(hidden / weights.sum(), MOST_ZEROS)
                gained += abs(share - shape[1]) * weights.sum() * TOLERANCE
                shape[1] = share
        gained += _mean_step(inputs, offset, y, counted, beta, shape[0], eta, mu)
        if shape[0] > 0.0 and not same_shape:
            shape[0], more = _dispersion_step(mu, y, counted, tails, shape[0])
            gained += more
        if gained < TOLERANCE:
            break


class CountMechanism(Response):
    """``coefficients [1, 1 + q]`` of the logarithm of the mean; ``shape`` are dispersion and share of further zeros."""

    family: ClassVar[str] = "count"
    summary: ClassVar[str] = (
        "Poisson or negative binomial regression, with further zeros where evidence asks for them"
    )

    def check(self) -> None:
        """See :class:`Response`."""
        if len(self.coefficients) != 1 or self.shape.shape != (2,):
            raise ValueError("a count has one linear predictor, a dispersion and a share of zeros")
        if not (0.0 <= self.dispersion <= MOST_DISPERSION and 0.0 <= self.zeros <= MOST_ZEROS):
            raise ValueError("dispersion or share of zeros of a count are not such as a fit gives")

    @property
    def dispersion(self) -> float:
        """Variance beyond Poisson's, in squares of the mean: zero for Poisson's law."""
        return float(self.shape[0])

    @property
    def zeros(self) -> float:
        """Share of rows that are zero whatever the mean."""
        return float(self.shape[1])

    @property
    def n_all(self) -> int:
        """See :class:`Response`."""
        return self.coefficients.size + int(np.count_nonzero(self.shape))

    @classmethod
    def fit(cls, x: Array, y: Array, weights: Array, start: Any = None) -> Self:
        """See :class:`RowFamily`: dispersion and further zeros where a test suggests them and evidence agrees."""
        x, y, weights = alike(x, y, weights)
        inputs, known = cls.split(x)
        beta = begin(start, cls, 1, 1 + inputs.shape[1])
        if not isinstance(start, cls):
            beta[0, 0] = math.log(max(float(weights @ y / (weights @ np.exp(known))), 1e-3))
        found = cls._fit(x, y, weights, beta, np.zeros(2))
        excess = found._excess_dispersion(x, y, weights)
        if excess > 0.0:
            begun = start.dispersion if isinstance(start, cls) and start.dispersion > 0.0 else excess
            spread = cls._fit(x, y, weights, found.coefficients, np.array([begun, 0.0]))
            found = _better(found, spread, x, y, weights)
        share = found._excess_zeros(x, y, weights)
        if share > 0.0:
            more = cls._fit(x, y, weights, found.coefficients, np.array([found.dispersion, share]))
            found = _better(found, more, x, y, weights)
            if found is more and more.dispersion > 0.0:  # which the zeros may have asked for
                simpler = cls._fit(x, y, weights, more.coefficients, np.array([0.0, more.zeros]))
                found = _better(found, simpler, x, y, weights)
        return found

    @classmethod
    def refit(cls, x: Array, y: Array, weights: Array, start: Mechanism) -> Self:
        """See :class:`RowFamily`: of the same law as before."""
        assert isinstance(start, cls)
        x, y, weights = alike(x, y, weights)
        return cls._fit(x, y, weights, begin(start, cls, 1, 1 + cls.split(x)[0].shape[1]), start.shape)

    @classmethod
    def _fit(cls, x: Array, y: Array, weights: Array, beta: Array, shape: Array) -> Self:
        beta, shape, y = beta.copy(), shape.copy(), np.ascontiguousarray(y)
        inputs, known = cls.split(x)
        _climb(with_ones(inputs), known, y, np.ascontiguousarray(weights), beta[0], shape, False)
        return cls(beta, shape)

    def _shift(self, eta: Array, y: Array, weights: Array, constants: Array) -> None:
        move, y, weights = np.zeros(1), np.ascontiguousarray(y), np.ascontiguousarray(weights)
        _climb(np.ones((1, len(y))), eta[0], y, weights, move, self.shape.copy(), True)
        constants += move

    def _excess_dispersion(self, x: Array, y: Array, weights: Array) -> float:
        """A first guess of the dispersion, if a score test against Poisson's law pays for it; else zero."""
        mu = self.mean(x)
        excess, squares = float(weights @ ((y - mu) ** 2 - y)), float(weights @ mu**2)
        if excess <= 0.0 or squares <= 0.0 or excess**2 < 2.0 * squares * math.log(max(weights.sum(), 2.0)):
            return 0.0
        return min(max(excess / squares, LEAST_DISPERSION), MOST_DISPERSION)

    def _excess_zeros(self, x: Array, y: Array, weights: Array) -> float:
        """A first guess of the share of further zeros, if a score test pays for it; else zero."""
        none = np.exp(np.maximum(self._without_zeros(x, np.zeros(len(y))), -FARTHEST))
        score = float(weights @ ((y == 0.0) / none - 1.0))
        information = float(weights @ (1.0 / none - 1.0))
        if score <= 0.0 or score**2 < information * math.log(max(weights.sum(), 2.0)):
            return 0.0
        return min(max(score / information, 1e-4), 0.5)

    def mean(self, x: Array) -> Array:
        """Mean of the rows that are no further zeros, ``[n]``."""
        return np.asarray(np.exp(self.predictors(x)[0]))

    def _without_zeros(self, x: Array, y: Array) -> Array:
        eta = self.predictors(x)[0]
        return np.asarray(_log_probabilities(eta, y, self.dispersion, 0.0))

    def log_density(self, x: Array, y: Array) -> Array:
        """See :class:`Mechanism`: a log-probability."""
        eta, y = self.predictors(x)[0], np.ascontiguousarray(y)
        return np.asarray(_log_probabilities(eta, y, self.dispersion, self.zeros))

    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        """See :class:`Mechanism`."""
        mu = self.mean(x)
        if self.dispersion > 0.0:
            mu = mu * rng.gamma(1.0 / self.dispersion, self.dispersion, len(mu))
        return np.where(rng.random(len(mu)) < self.zeros, 0.0, rng.poisson(mu).astype(np.float64))

    @property
    def n_levels(self) -> int:
        """See :class:`Mechanism`."""
        return 0

    def quantile(self, x: Array, uniform: Array) -> Array:
        """See :class:`Mechanism`."""
        mu, share = self.mean(x), np.maximum((uniform - self.zeros) / (1.0 - self.zeros), 0.0)
        found = _quantiles(mu, self.dispersion, share)
        if (large := found < 0.0).any():
            mu, share = mu[large], share[large]
            r = 1.0 / max(self.dispersion, LEAST_DISPERSION)
            found[large] = (
                nbinom.ppf(share, r, r / (r + mu)) if self.dispersion > 0.0 else poisson.ppf(share, mu)
            )
        return np.asarray(np.maximum(found, 0.0))  # scipy's quantile of 0 is -1

    @classmethod
    def may_differ(
        cls, x: Array, y: Array, responsibilities: Array, reference: Mechanism
    ) -> NDArray[np.bool_]:
        """See :class:`RowFamily`: score tests of constant and slopes, and of the spread."""
        assert isinstance(reference, cls)
        pi, mu = reference.zeros, reference.mean(x)
        mean = (1.0 - pi) * mu
        variance = mean * (1.0 + mu * (reference.dispersion + pi))
        scale = mean / variance
        found = score_tests(cls.split(x)[0], (y - mean) * scale, mean * scale, responsibilities)
        counts = np.maximum(responsibilities.sum(axis=0), 2.0)
        # The fourth moment is that of these rows: laws with heavy tails have spreads that vary.
        excess = (y - mean) ** 2 / variance - 1.0
        spread = (excess @ responsibilities) ** 2 / (excess**2 @ responsibilities + RIDGE)
        return np.asarray(found | (spread > 0.5 * np.log(counts)))


def _better(one: CountMechanism, other: CountMechanism, x: Array, y: Array, weights: Array) -> Any:
    return max((one, other), key=lambda law: evidence(law, x, y, weights))
