"""Binary, count and categorical mechanisms against general optimisers, and enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from scipy.stats import nbinom, poisson

from latentdo.model.mechanisms.binary import BinaryMechanism
from latentdo.model.mechanisms.categorical import CategoricalMechanism, Levels
from latentdo.model.mechanisms.count import CountMechanism
from latentdo.model.mechanisms.family import evidence
from latentdo.model.mechanisms.response import RIDGE, Response

N = 800
RNG = np.random.default_rng(11)
X = RNG.normal(size=(N, 2))
ETA = 0.4 + X @ [0.9, -0.6]
WEIGHTS = RNG.uniform(0.2, 1.0, N)
BINARY = (RNG.random(N) < 1.0 / (1.0 + np.exp(-ETA))).astype(np.float64)
COUNTS = RNG.poisson(np.exp(ETA) * RNG.gamma(2.0, 0.5, N)).astype(np.float64)
LEVELS = (
    (np.column_stack([np.zeros(N), ETA, -ETA]) + RNG.gumbel(size=(N, 3))).argmax(axis=1).astype(np.float64)
)
CASES: list[tuple[Any, np.ndarray[Any, Any]]] = [
    (BinaryMechanism, BINARY),
    (CountMechanism, COUNTS),
    (CategoricalMechanism, LEVELS),
]


def value(mechanism: Response, x: Any, y: Any, weights: Any) -> float:
    """What fits maximise: the log-likelihood and the weak prior."""
    prior = 0.5 * RIDGE * float((mechanism.coefficients**2).sum())
    return float(weights @ mechanism.log_density(x, y)) - prior


@pytest.mark.parametrize(("family", "y"), CASES)
@pytest.mark.parametrize("n_inputs", [0, 2])
def test_fits_are_maxima(family: Any, y: Any, n_inputs: int) -> None:
    x = X[:, :n_inputs]
    found = family.fit(x, y, WEIGHTS)
    size = found.coefficients.size

    def loss(flat: Any) -> float:
        shape = found.shape
        if shape.size and found.dispersion > 0.0:
            shape = np.array([np.exp(min(flat[-1], 5.0)), found.zeros])
        return -value(family(flat[:size].reshape(found.coefficients.shape), shape), x, y, WEIGHTS)

    begin = np.zeros(size + (found.shape.size > 0))
    best = minimize(loss, begin, method="BFGS", options={"gtol": 1e-6})
    assert value(found, x, y, WEIGHTS) >= -best.fun - 1e-3


@pytest.mark.parametrize(("family", "y"), CASES)
def test_probabilities_sum_to_one_and_draws_follow_them(family: Any, y: Any) -> None:
    found = family.fit(X, y, WEIGHTS)
    x = np.repeat(X[:1], 20_000, axis=0)
    values = np.arange(0.0, 400.0 if family is CountMechanism else len(found.coefficients) + 1.0)
    probabilities = np.exp(found.log_density(np.repeat(X[:1], values.size, axis=0), values))
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-9)
    drawn = found.draw(x, np.random.default_rng(0))
    assert drawn.mean() == pytest.approx(float(probabilities @ values), abs=0.1)
    assert (drawn == 0.0).mean() == pytest.approx(probabilities[0], abs=0.02)


@pytest.mark.parametrize(("family", "y"), CASES)
def test_weights_count_rows(family: Any, y: Any) -> None:
    twice = np.where(np.arange(N) < 300, 2.0, 1.0)
    repeated = np.concatenate([np.arange(N), np.arange(300)])
    one, other = family.fit(X, y, twice), family.fit(X[repeated], y[repeated], np.ones(repeated.size))
    np.testing.assert_allclose(one.coefficients, other.coefficients, atol=1e-3)


@pytest.mark.parametrize(("family", "y"), CASES)
def test_interventions_cut_shift_or_replace(family: Any, y: Any) -> None:
    reference = family.fit(X, y, WEIGHTS)
    perfect = family.intervene(X, y, WEIGHTS, reference, imperfect=False)
    assert perfect.coefficients.shape[1] == 1
    np.testing.assert_allclose(perfect.log_density(X, y), perfect.log_density(X[::-1], y))
    # Rows of the reference need no more than its own constants.
    imperfect = family.intervene(X, y, WEIGHTS, reference, imperfect=True)
    assert imperfect.n_parameters == len(reference.coefficients)
    np.testing.assert_allclose(imperfect.coefficients[:, 1:], reference.coefficients[:, 1:])
    np.testing.assert_allclose(imperfect.coefficients[:, 0], reference.coefficients[:, 0], atol=0.02)


@pytest.mark.parametrize(("family", "y"), CASES)
def test_regimes_that_differ_are_worth_a_look(family: Any, y: Any) -> None:
    reference = family.fit(X, y, np.ones(N))
    alike = np.random.default_rng(1).random(N) < 0.2
    odd = (
        (y == y.max()) & (np.random.default_rng(2).random(N) < 0.9) if family is not CountMechanism else y > 3
    )
    responsibilities = np.column_stack([alike, odd]).astype(np.float64)
    assert family.may_differ(X, y, responsibilities, reference)[1]


@pytest.mark.parametrize(("family", "y"), CASES)
def test_mechanisms_survive_packing(family: Any, y: Any) -> None:
    mechanisms = [family.fit(X, y, WEIGHTS), family.fit(X[:, :0], y, WEIGHTS)]
    parents = [np.arange(2)] * 2
    again = family.unpack(family.pack(mechanisms), parents)
    for one, other in zip(mechanisms, again, strict=True):
        np.testing.assert_array_equal(one.log_density(X, y), other.log_density(X, y))
        assert one.n_parameters == other.n_parameters
    broken = family.pack(mechanisms)
    broken["coefficients"] = broken["coefficients"] * np.nan
    with pytest.raises(ValueError, match="coefficient"):
        family.unpack(broken, parents)


def test_laws_are_those_of_scipy() -> None:
    y = np.arange(0.0, 40.0)
    none = np.empty((y.size, 0))
    plain = CountMechanism(np.array([[1.2]]), np.zeros(2))
    np.testing.assert_allclose(plain.log_density(none, y), poisson.logpmf(y, np.exp(1.2)))
    spread = CountMechanism(np.array([[1.2]]), np.array([0.7, 0.0]))
    law = nbinom(1.0 / 0.7, 1.0 / (1.0 + 0.7 * np.exp(1.2)))
    np.testing.assert_allclose(spread.log_density(none, y), law.logpmf(y))
    zeros = CountMechanism(np.array([[1.2]]), np.array([0.7, 0.25]))
    np.testing.assert_allclose(np.exp(zeros.log_density(none, y)), 0.25 * (y == 0.0) + 0.75 * law.pmf(y))
    levels = CategoricalMechanism(np.array([[0.5], [-1.0]]))
    np.testing.assert_allclose(levels.log_density(none[:3], y[:3]), log_softmax([0.0, 0.5, -1.0]))


def test_evidence_decides_about_dispersion_and_zeros() -> None:
    rng, ones, n = np.random.default_rng(5), np.ones(2000), 2000
    x = rng.normal(size=(n, 1))
    mu = np.exp(0.8 + 0.5 * x[:, 0])
    plain = CountMechanism.fit(x, rng.poisson(mu).astype(np.float64), ones)
    assert (plain.dispersion, plain.zeros) == (0.0, 0.0)
    spread = CountMechanism.fit(x, rng.poisson(mu * rng.gamma(2.0, 0.5, n)).astype(np.float64), ones)
    assert spread.dispersion == pytest.approx(0.5, abs=0.1)
    assert spread.zeros == 0.0
    more = rng.poisson(mu) * (rng.random(n) > 0.3)
    inflated = CountMechanism.fit(x, more.astype(np.float64), ones)
    assert inflated.zeros == pytest.approx(0.3, abs=0.05)
    assert inflated.dispersion == 0.0


@pytest.mark.parametrize("largest", [1e4, 1e9])
def test_large_counts_are_fitted(largest: float) -> None:
    rng = np.random.default_rng(2)
    y = rng.poisson(largest * rng.gamma(4.0, 0.25, 500)).astype(np.float64)
    found = CountMechanism.fit(np.empty((500, 0)), y, np.ones(500))
    assert np.exp(found.coefficients[0, 0]) == pytest.approx(y.mean(), rel=1e-3)
    assert found.dispersion == pytest.approx(0.25, rel=0.2)


def test_no_rows_of_a_level_and_separation_leave_finite_fits() -> None:
    ones = np.ones(N)
    decided = (X[:, 0] > 0.0).astype(np.float64)
    found = BinaryMechanism.fit(X, decided, ones)
    assert np.isfinite(found.coefficients).all()
    assert found.log_density(X, decided).sum() > -60.0
    nothing = CountMechanism.fit(X, np.zeros(N), ones)
    assert nothing.mean(X).max() < 0.01
    few = Levels(4).fit(X, np.minimum(LEVELS, 1.0), ones)
    assert few.coefficients.shape == (3, 3)
    assert np.exp(few.log_probabilities(X)[:, 2:]).max() < 0.01
    always = BinaryMechanism.fit(X[:, :0], ones, ones)
    assert 0.99 < always.probability(X[:1, :0])[0] < 1.0


def test_a_parent_that_does_nothing_does_not_pay() -> None:
    for family, y in CASES:
        without = family.fit(X, y, np.ones(N))
        more = np.column_stack([X, np.random.default_rng(9).normal(size=N)])
        fitted = family.fit(more, y, np.ones(N), without)
        assert evidence(fitted, more, y, np.ones(N)) < evidence(without, X, y, np.ones(N))


def ordered_levels(order: Any) -> Any:
    """Levels whose neighbours have log-odds that depend on the inputs alike, if they are in this order."""
    eta = np.outer(np.arange(4.0), X @ [0.9, -0.6]) + np.array([0.0, 0.5, 0.3, -0.8])[:, None]
    drawn = (eta.T + np.random.default_rng(3).gumbel(size=(N, 4))).argmax(axis=1)
    return np.array(order)[drawn].astype(np.float64)


def test_slopes_in_order_are_the_likeliest_of_their_form() -> None:
    y = ordered_levels([0, 1, 2, 3])
    found = Levels(4, ordered=True).fit(X, y, WEIGHTS)
    assert found.is_in_order
    assert found.n_parameters == 3 + 2

    def loss(flat: Any) -> float:
        beta = np.column_stack([flat[:3], np.outer(np.arange(1.0, 4.0), flat[3:])])
        return -value(CategoricalMechanism(beta), X, y, WEIGHTS)

    best = minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-6})
    assert value(found, X, y, WEIGHTS) >= -best.fun - 1e-3
    ratios = np.diff(np.hstack([np.zeros((N, 1)), found.predictors(X).T]), axis=1)  # log-odds of neighbours
    np.testing.assert_allclose(
        ratios - ratios[:1], np.repeat((ratios - ratios[:1])[:, :1], 3, axis=1), atol=1e-9
    )
    free = Levels(4).fit(X, y, WEIGHTS)
    assert not free.is_in_order
    assert evidence(found, X, y, WEIGHTS) > evidence(free, X, y, WEIGHTS)
    again = Levels(4, ordered=True).refit(X, y, WEIGHTS, found)
    assert again.is_in_order
    np.testing.assert_allclose(again.coefficients, found.coefficients, atol=1e-2)
    (packed,) = CategoricalMechanism.unpack(CategoricalMechanism.pack([found]), [np.arange(2)])
    assert packed.is_in_order
    assert packed.n_parameters == 5


def test_levels_in_another_order_keep_slopes_of_their_own() -> None:
    found = Levels(4, ordered=True).fit(X, ordered_levels([2, 0, 3, 1]), WEIGHTS)
    assert not found.is_in_order
    assert found.n_parameters == 9
