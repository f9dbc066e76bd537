r"""Binary variables: a logistic regression, :math:`P(y = 1 \mid x) = 1 / (1 + e^{-\eta})`."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from latentdo.compilation import njit, vectorised
from latentdo.model.mechanisms.base import Array, Mechanism
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
def _log_likelihood(eta, y, weights):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(y.shape[0]):
        # log(1 + exp(e)), without overflow
        total += weights[i] * (y[i] * eta[i] - max(eta[i], 0.0) - fast_log(1.0 + fast_exp(-abs(eta[i]))))
    return total


@vectorised
def _log_probabilities(eta, y):  # type: ignore[no-untyped-def]
    found = np.empty(y.shape[0])
    for i in range(y.shape[0]):
        found[i] = y[i] * eta[i] - max(eta[i], 0.0) - fast_log(1.0 + fast_exp(-abs(eta[i])))
    return found


@vectorised
def _pulls(eta, y, weights, slopes, bends):  # type: ignore[no-untyped-def]
    """Fill derivatives by the predictor: the first, and minus the second ``[n]``."""
    for i in range(y.shape[0]):
        p = 1.0 / (1.0 + fast_exp(-eta[i]))
        slopes[i], bends[i] = weights[i] * (y[i] - p), weights[i] * p * (1.0 - p)


@njit
def _climb(inputs, offset, y, weights, beta):  # type: ignore[no-untyped-def]
    """Newton steps to the likeliest coefficients, in place, of ``inputs [q, n]`` beside a known ``offset [n]``."""
    q, n = inputs.shape
    eta, moved, slopes, bends = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    predict(inputs, beta, offset, eta)
    best = _log_likelihood(eta, y, weights) - 0.5 * RIDGE * (beta * beta).sum()
    for _ in range(MOST_STEPS):
        _pulls(eta, y, weights, slopes, bends)
        gradient, hessian = -RIDGE * beta, RIDGE * np.eye(q)
        weighted_sums(inputs, slopes, gradient)
        weighted_products(inputs, bends, hessian)
        move = np.linalg.solve(hessian, gradient)
        if 0.5 * (gradient * move).sum() < TOLERANCE:
            beta += move
            break
        length, gain = 1.0, -1.0
        while gain < 0.0 and length > SHORTEST:
            trial = beta + length * move
            predict(inputs, trial, offset, moved)
            value = _log_likelihood(moved, y, weights) - 0.5 * RIDGE * (trial * trial).sum()
            gain = value - best
            length *= 0.5
        if gain < 0.0:
            break
        beta[:] = trial
        eta[:], best = moved, value


class BinaryMechanism(Response):
    """``coefficients [1, 1 + q]`` of the log-odds of 1."""

    family: ClassVar[str] = "binary"
    summary: ClassVar[str] = "logistic regression"

    def check(self) -> None:
        """See :class:`Response`."""
        super().check()
        if len(self.coefficients) != 1:
            raise ValueError("a binary mechanism has one linear predictor")

    @classmethod
    def fit(cls, x: Array, y: Array, weights: Array, start: Any = None) -> Self:
        """See :class:`RowFamily`."""
        beta = begin(start, cls, 1, 1 + x.shape[1])
        x, y, weights = alike(x, np.ascontiguousarray(y), np.ascontiguousarray(weights))
        _climb(with_ones(x), np.zeros(len(y)), y, weights, beta[0])
        return cls(beta)

    def _shift(self, eta: Array, y: Array, weights: Array, constants: Array) -> None:
        move = np.zeros(1)
        _climb(np.ones((1, len(y))), eta[0], np.ascontiguousarray(y), np.ascontiguousarray(weights), move)
        constants += move

    def probability(self, x: Array) -> Array:
        """Probability of 1, ``[n]``."""
        return np.asarray(expit(self.predictors(x)[0]))

    def log_density(self, x: Array, y: Array) -> Array:
        """See :class:`Mechanism`: a log-probability."""
        return np.asarray(_log_probabilities(self.predictors(x)[0], np.ascontiguousarray(y)))

    def draw(self, x: Array, rng: np.random.Generator) -> Array:
        """See :class:`Mechanism`."""
        return (rng.random(len(x)) < self.probability(x)).astype(np.float64)

    @property
    def n_levels(self) -> int:
        """See :class:`Mechanism`."""
        return 2

    @classmethod
    def may_differ(
        cls, x: Array, y: Array, responsibilities: Array, reference: Mechanism
    ) -> NDArray[np.bool_]:
        """See :class:`RowFamily`: score tests of the constant and of every slope, against less than they cost."""
        assert isinstance(reference, cls)
        p = reference.probability(x)
        return score_tests(x, y - p, p * (1.0 - p), responsibilities)


def score_tests(x: Array, pull: Array, information: Array, responsibilities: Array) -> NDArray[np.bool_]:
    """Regimes ``[K]`` whose constant and slopes may differ: twice what they gain, one by one, against one parameter."""
    inputs = with_ones(x)
    counts = np.maximum(responsibilities.sum(axis=0), 2.0)
    scores = (inputs * pull) @ responsibilities
    squares = (inputs**2 * information) @ responsibilities + RIDGE
    return np.asarray((scores**2 / squares).sum(axis=0) > 0.5 * np.log(counts))
