r"""Categories: a multinomial logit.

.. math:: P(y = a \mid x) = \frac{e^{\eta_a}}{1 + \sum_{b \ge 1} e^{\eta_b}}, \qquad \eta_0 = 0

One predictor per level but the first. Where levels are ordered, the log-odds of all pairs of neighbours may depend on
the parents alike,

.. math:: \eta_a = c_a + a \, b' x, \qquad \log \frac{P(y = a)}{P(y = a - 1)} = c_a - c_{a-1} + b' x

(the adjacent-categories logit): one slope per input instead of one per input and level. Evidence decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit, vectorised
from latentdo.model.mechanisms.base import Array, Mechanism
from latentdo.model.mechanisms.binary import score_tests
from latentdo.model.mechanisms.family import evidence
from latentdo.model.mechanisms.response import (
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
from latentdo.model.transcendental import fast_exp, fast_log


@vectorised
def _shares(inputs, offset, beta, shares, log_totals):  # type: ignore[no-untyped-def]
    """Fill the probabilities ``[m, n]`` of the levels but the first, and minus the logarithm of the first's ``[n]``."""
    m, n = shares.shape
    for a in range(m):
        predict(inputs, beta[a], offset[a], shares[a])
    log_totals[:] = 1.0
    for a in range(m):  # at most exp(30) each
        for i in range(n):
            shares[a, i] = fast_exp(shares[a, i])
            log_totals[i] += shares[a, i]
    for a in range(m):
        for i in range(n):
            shares[a, i] /= log_totals[i]
    for i in range(n):
        log_totals[i] = fast_log(log_totals[i])


@njit
def _log_probabilities(eta):  # type: ignore[no-untyped-def]
    """Of all levels ``[n, m + 1]``, from the predictors of all but the first ``[m, n]``."""
    m, n = eta.shape
    found = np.empty((n, m + 1))
    for i in range(n):
        total = 1.0
        for a in range(m):
            total += fast_exp(eta[a, i])
        found[i, 0] = -fast_log(total)
        for a in range(m):
            found[i, a + 1] = eta[a, i] + found[i, 0]
    return found


@njit
def _log_likelihood(inputs, offset, y, weights, beta, shares, log_totals):  # type: ignore[no-untyped-def]
    """Of the coefficients ``[m, q]``; fills probabilities on the way."""
    _shares(inputs, offset, beta, shares, log_totals)
    total = 0.0
    for i in range(y.shape[0]):
        total += weights[i] * (-log_totals[i] if y[i] == 0 else fast_log(shares[y[i] - 1, i]))
    return total


@njit
def _derivatives(inputs, y, weights, beta, shares):  # type: ignore[no-untyped-def]
    """Gradient ``[m, q]`` of the penalised log-likelihood, and minus its second derivatives ``[m q, m q]``."""
    q, n = inputs.shape
    m = beta.shape[0]
    by_row = np.empty(n)
    gradient, hessian = -RIDGE * beta, RIDGE * np.eye(m * q)
    for a in range(m):
        for i in range(n):
            by_row[i] = weights[i] * ((1.0 if y[i] == a + 1 else 0.0) - shares[a, i])
        weighted_sums(inputs, by_row, gradient[a])
        for b in range(a + 1):
            for i in range(n):
                by_row[i] = weights[i] * shares[a, i] * ((1.0 if a == b else 0.0) - shares[b, i])
            weighted_products(inputs, by_row, hessian[a * q : (a + 1) * q, b * q : (b + 1) * q])
            if b < a:  # every block is symmetric
                hessian[b * q : (b + 1) * q, a * q : (a + 1) * q] = hessian[
                    a * q : (a + 1) * q, b * q : (b + 1) * q
                ]
    return gradient, hessian


@njit
def _climb(inputs, offset, y, weights, beta):  # type: ignore[no-untyped-def]
    """Newton steps to the likeliest coefficients ``[m, q]``, in place, beside known predictors ``offset [m, n]``."""
    shares, log_totals = np.empty((beta.shape[0], y.shape[0])), np.empty(y.shape[0])
    best = _log_likelihood(inputs, offset, y, weights, beta, shares, log_totals)
    best -= 0.5 * RIDGE * (beta * beta).sum()
    for _ in range(MOST_STEPS):
        gradient, hessian = _derivatives(inputs, y, weights, beta, shares)
        move = np.linalg.solve(hessian, gradient.ravel()).reshape(beta.shape)
        if 0.5 * (gradient * move).sum() < TOLERANCE:
            beta += move
            break
        length, gain = 1.0, -1.0
        while gain < 0.0 and length > SHORTEST:
            trial = beta + length * move
            value = _log_likelihood(inputs, offset, y, weights, trial, shares, log_totals)
            value -= 0.5 * RIDGE * (trial * trial).sum()
            gain = value - best
            length *= 0.5
        if gain < 0.0:
            break
        beta[:] = trial
        best = value


def _climb_in_order(inputs: Array, y: NDArray[np.int64], weights: Array, beta: Array) -> None:
    """Newton steps to the likeliest coefficients ``[m, q]`` whose slopes are in proportion to levels, in place.

    They are linear in constants and slopes of the first level, so that derivatives of all follow by the chain rule.
    """
    m, q = beta.shape
    spread = np.zeros((m * q, m + q - 1))
    for a in range(m):
        spread[a * q, a] = 1.0
        spread[a * q + 1 : (a + 1) * q, m:] = (a + 1.0) * np.eye(q - 1)
    known, shares, log_totals = np.zeros((m, len(y))), np.empty((m, len(y))), np.empty(len(y))

    def value(trial: Array) -> float:
        loglik = float(_log_likelihood(inputs, known, y, weights, trial, shares, log_totals))
        return loglik - 0.5 * RIDGE * float((trial * trial).sum())

    best = value(beta)
    for _ in range(MOST_STEPS):
        gradient, hessian = _derivatives(inputs, y, weights, beta, shares)
        pull = gradient.ravel() @ spread
        move = np.linalg.solve(spread.T @ hessian @ spread, pull)
        step = (spread @ move).reshape(m, q)
        length = 1.0
        while (found := value(beta + length * step)) < best and length > SHORTEST:
            length *= 0.5
        if found < best:
            break
        beta += length * step
        best = found
        if 0.5 * pull @ move < TOLERANCE:
            break


class CategoricalMechanism(Response):
    """``coefficients [L - 1, 1 + q]`` of every level but the first."""

    family: ClassVar[str] = "categorical"
    summary: ClassVar[str] = "multinomial logit"

    @classmethod
    def fit(cls, x: Array, y: Array, weights: Array, start: Any = None) -> CategoricalMechanism:
        """See :class:`RowFamily`: with the levels of ``start``, else as many as there are rows of."""
        m = len(start.coefficients) if isinstance(start, cls) else max(int(y.max(initial=1.0)), 1)
        ordered = isinstance(start, cls) and start.is_in_order
        return Levels(m + 1, ordered).fit(x, y, weights, start)

    @property
    def is_in_order(self) -> bool:
        """Whether slopes are in proportion to the places of levels."""
        slopes = self.coefficients[:, 1:]
        places = np.arange(1.0, len(slopes) + 1.0)[:, None]
        return slopes.size > 0 and len(slopes) > 1 and np.array_equal(slopes, places * slopes[:1])

    def _shift(self, eta: Array, y: Array, weights: Array, constants: Array) -> None:
        move = np.zeros((constants.size, 1))
        _climb(np.ones((1, len(y))), eta, y.astype(np.int64), np.ascontiguousarray(weights), move)
        constants += move[:, 0]

    def log_probabilities(self, x: Array) -> Array:
        """Log-probability of every level, ``[n, L]``."""
        return np.asarray(_log_probabilities(self.predictors(x)))

    def log_density(self, x: Array, y: Array) -> Array:
        """See :class:`Mechanism`: a log-probability."""
        level = np.clip(y.astype(np.int64), 0, len(self.coefficients))
        return np.asarray(self.log_probabilities(x)[np.arange(len(y)), level])

    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        """See :class:`Mechanism`."""
        steps = np.cumsum(np.exp(self.log_probabilities(x)), axis=1)
        return np.asarray((rng.random(len(x))[:, None] > steps[:, :-1]).sum(axis=1), dtype=np.float64)

    @property
    def n_levels(self) -> int:
        """See :class:`Mechanism`."""
        return len(self.coefficients) + 1

    @classmethod
    def may_differ(
        cls, x: Array, y: Array, responsibilities: Array, reference: Mechanism
    ) -> NDArray[np.bool_]:
        """See :class:`RowFamily`: score tests level by level."""
        assert isinstance(reference, cls)
        p = np.exp(reference.log_probabilities(x).T)
        tests = [
            score_tests(x, (y == a) - own, own * (1.0 - own), responsibilities) for a, own in enumerate(p)
        ]
        return np.asarray(np.any(tests, axis=0))


@dataclass(frozen=True)
class Levels:
    """Fits of categories whose number of levels is known, whether rows have all of them or not.

    If levels are ``ordered``, slopes in proportion to their places are tried, too.
    """

    n_levels: int
    ordered: bool = False

    def fit(self, x: Array, y: Array, weights: Array, start: Any = None) -> CategoricalMechanism:
        """See :class:`RowFamily`."""
        found = self._free(x, y, weights, start)
        if not self.ordered or self.n_levels <= 2 or not x.shape[1]:  # noqa: PLR2004  (two are always in order)
            return found
        return max(self._in_order(x, y, weights, start), found, key=lambda one: evidence(one, x, y, weights))

    def refit(self, x: Array, y: Array, weights: Array, start: Mechanism) -> CategoricalMechanism:
        """See :class:`RowFamily`: of the same form as before."""
        if isinstance(start, CategoricalMechanism) and start.is_in_order and x.shape[1]:
            return self._in_order(x, y, weights, start)
        return self._free(x, y, weights, start)

    def _free(self, x: Array, y: Array, weights: Array, start: Any) -> CategoricalMechanism:
        m = self.n_levels - 1
        beta = begin(start, CategoricalMechanism, m, 1 + x.shape[1])
        x, y, weights = alike(x, y, np.ascontiguousarray(weights))
        _climb(with_ones(x), np.zeros((m, len(y))), y.astype(np.int64), weights, beta)
        return CategoricalMechanism(beta)

    def _in_order(self, x: Array, y: Array, weights: Array, start: Any) -> CategoricalMechanism:
        m = self.n_levels - 1
        beta, places = begin(start, CategoricalMechanism, m, 1 + x.shape[1]), np.arange(1.0, m + 1.0)[:, None]
        beta[:, 1:] = places * (beta[:, 1:] / places).mean(axis=0)
        _climb_in_order(with_ones(x), y.astype(np.int64), np.ascontiguousarray(weights), beta)
        beta[:, 1:] = places * beta[:1, 1:]  # without errors of rounding, which would hide the form
        return CategoricalMechanism(beta, n_free=m + x.shape[1])
