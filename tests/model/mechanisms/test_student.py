"""Lines with Student-t noise: the most likely ones, whatever the weights, the start and the tails."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import digamma, polygamma
from scipy.stats import t

from latentdo.model.mechanisms.family import evidence
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR
from latentdo.model.mechanisms.student import FEWEST_DEGREES, MOST_DEGREES, StudentMechanism, polygammas

SLOPES = np.array([1.0, -0.5])


def _rows(n: int, degrees: float, seed: int = 0):
    """Two parents, heavy-tailed noise, and a weight for every row."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    y = 0.3 + x @ SLOPES + 0.5 * rng.standard_t(degrees, n)
    return x, y, rng.uniform(0.1, 1.0, n)


def _log_likelihood(mechanism, x, y, weights) -> float:
    return float(weights @ mechanism.log_density(x, y))


def _most_likely(x, y, weights) -> float:
    """The same maximum by general means."""

    def loss(q):
        *coefficients, log_scale, log_degrees = q
        residual = y - coefficients[0] - x @ coefficients[1:]
        return -weights @ t.logpdf(residual, np.exp(log_degrees), scale=np.exp(log_scale))

    start = np.concatenate([[np.median(y)], np.zeros(x.shape[1]), [0.0, 1.0]])
    bounds = [(None, None)] * (start.size - 1) + [(np.log(FEWEST_DEGREES), np.log(MOST_DEGREES))]
    return -minimize(loss, start, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-13}).fun


@pytest.mark.parametrize("x", [0.5, 1.0, 3.3, 11.9, 100.5])
def test_derivatives_of_log_gamma(x):
    assert polygammas(x) == pytest.approx((digamma(x), float(polygamma(1, x))), rel=1e-12)


@pytest.mark.parametrize("degrees", [1.0, 2.5, 8.0, 1e6])
@pytest.mark.parametrize("n", [50, 1000])
@pytest.mark.parametrize("n_inputs", [0, 2])
def test_a_fit_is_the_most_likely_one(n, n_inputs, degrees):
    x, y, weights = _rows(n, degrees)
    x = x[:, :n_inputs]
    fitted = StudentMechanism.fit(x, y, weights)
    assert _log_likelihood(fitted, x, y, weights) == pytest.approx(_most_likely(x, y, weights), abs=1e-3)


def test_a_fit_finds_what_drew_the_rows():
    x, y, _ = _rows(20_000, 3.0)
    fitted = StudentMechanism.fit(x, y, np.ones(len(y)))
    assert fitted.parameters == pytest.approx([0.3, *SLOPES, 0.5, 3.0], abs=0.15)
    form = fitted.linear_form
    assert form.coefficients == pytest.approx([0.3, *SLOPES], abs=0.02)


def test_weights_count_rows():
    x, y, _ = _rows(200, 3.0)
    times = np.arange(200) % 4
    weighted = StudentMechanism.fit(x, y, times.astype(float))
    repeated = StudentMechanism.fit(
        np.repeat(x, times, axis=0), np.repeat(y, times), np.ones(int(times.sum()))
    )
    np.testing.assert_allclose(weighted.parameters, repeated.parameters, rtol=1e-6)


def test_where_a_fit_begins_does_not_matter():
    x, y, weights = _rows(500, 3.0)
    afresh = StudentMechanism.fit(x, y, weights)
    far = StudentMechanism(np.array([3.0, 2.0, 2.0, 4.0, 50.0]), 2)
    of_other_parents = StudentMechanism.fit(x[:, :1], y, weights)
    for start in (afresh, far, of_other_parents):
        again = StudentMechanism.fit(x, y, weights, start)
        assert again.parameters == pytest.approx(afresh.parameters, rel=0.01)
        assert _log_likelihood(again, x, y, weights) == pytest.approx(
            _log_likelihood(afresh, x, y, weights), abs=1e-3
        )


def test_wild_rows_do_not_bend_the_line():
    x, y, _ = _rows(300, 1e6)
    y[:15] += 100.0
    fitted = StudentMechanism.fit(x, y, np.ones(300))
    assert fitted.parameters[:3] == pytest.approx([0.3, *SLOPES], abs=0.15)


def test_gaussian_noise_is_the_limit():
    x, y, weights = _rows(3000, 1e6)
    fitted = StudentMechanism.fit(x, y, weights)
    design = np.column_stack([np.ones(3000), x]) * np.sqrt(weights)[:, None]
    residual_sum = np.linalg.lstsq(design, y * np.sqrt(weights), rcond=None)[1][0]
    total = weights.sum()
    gaussian = -0.5 * total * (np.log(2 * np.pi * residual_sum / total) + 1.0)
    assert _log_likelihood(fitted, x, y, weights) > gaussian - 0.1
    assert fitted.linear_form.variance == pytest.approx(residual_sum / total, rel=0.02)


@pytest.mark.parametrize("n_inputs", [0, 2])
def test_rows_without_noise_have_a_finite_density(n_inputs):
    x, _, _ = _rows(100, 3.0)
    y = np.full(100, 0.4) + x[:, :n_inputs].sum(axis=1)
    fitted = StudentMechanism.fit(x[:, :n_inputs], y, np.ones(100))
    assert fitted.scale**2 >= 0.99 * VARIANCE_FLOOR
    assert np.isfinite(fitted.log_density(x, y)).all()
    np.testing.assert_allclose(fitted.log_density(x, y).mean(), -np.log(np.sqrt(VARIANCE_FLOOR)), atol=2.0)


def test_without_a_variance_there_is_no_equation():
    assert StudentMechanism(np.array([0.0, 1.0, 1.5]), 0).linear_form is None


def test_what_was_fitted_without_parents_ignores_them():
    x, y, weights = _rows(100, 3.0)
    alone = StudentMechanism.fit(x[:, :0], y, weights)
    np.testing.assert_array_equal(alone.log_density(x, y), alone.log_density(x[:, :0], y))
    first, second = (alone.draw(inputs, np.random.default_rng(0)) for inputs in (x, x[:, :0]))
    np.testing.assert_array_equal(first, second)


def test_an_intervention_keeps_the_parents_only_if_that_pays():
    x, y, weights = _rows(200, 3.0)
    reference = StudentMechanism.fit(x, y, weights)
    assert StudentMechanism.intervene(x, y + 3.0, weights, reference, imperfect=True).n_inputs == 2
    assert StudentMechanism.intervene(x, y + 3.0, weights, reference, imperfect=False).n_inputs == 0
    noise = np.random.default_rng(1).standard_t(3.0, 200)
    assert StudentMechanism.intervene(x, noise, weights, reference, imperfect=True).n_inputs == 0


def test_the_quick_test_lets_nothing_worth_fitting_pass():
    """Against fits: regimes that would pay for a mechanism of their own, whatever it changes."""
    x, y, _ = _rows(1200, 3.0)
    labels = np.arange(1200) % 6
    y[labels == 1] += 1.0
    y[labels == 2] += 1.5 * x[labels == 2, 0]
    y[labels == 3] = np.random.default_rng(1).normal(size=200)
    y[labels == 4] += 8.0
    responsibilities = np.eye(6)[labels]
    for shares in (np.array([0, 5]), np.arange(6)):  # a clean reference, and one that takes shifts for tails
        reference = StudentMechanism.fit(x, y, np.isin(labels, shares).astype(float))
        worth = StudentMechanism.may_differ(x, y, responsibilities, reference)
        for k in range(6):
            rows = labels == k
            own = StudentMechanism.intervene(x[rows], y[rows], np.ones(200), reference, imperfect=True)
            gain = (
                evidence(own, x[rows], y[rows], np.ones(200)) - reference.log_density(x[rows], y[rows]).sum()
            )
            assert worth[k] or gain < 0.0
        assert not worth[0] or shares.size == 6


def test_evidence_prefers_heavy_tails_only_where_they_are():
    """Against the same family as Gaussian as it can be."""
    for degrees, heavy in ((2.5, True), (1e6, False)):
        x, y, weights = _rows(1000, degrees)
        fitted = StudentMechanism.fit(x, y, weights)
        gaussian = StudentMechanism(
            np.array([*fitted.parameters[:3], np.sqrt(fitted.linear_form.variance), MOST_DEGREES]), 2
        )
        gain = evidence(fitted, x, y, weights) - evidence(gaussian, x, y, weights)
        assert gain > 100.0 if heavy else abs(gain) < 2.0
