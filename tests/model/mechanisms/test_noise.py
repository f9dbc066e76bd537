"""Noise against scipy's Gaussians, quadrature, and its own samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm

from latentdo.model.mechanisms import Noise
from latentdo.model.mechanisms.noise import STRAYS
from latentdo.model.mechanisms.sharp_ends import flat_row

MIXED = Noise(np.array([0.5, 0.3, 0.2]), np.array([0.0, 0.4, -0.9]), np.array([0.01, 0.2, 1.0]))
EVERY = pytest.mark.parametrize("noise", [Noise.gaussian(0.25), MIXED], ids=["gaussian", "mixed"])


@EVERY
def test_it_is_a_mixture_of_gaussians(noise):
    at = np.linspace(-4.0, 4.0, 101)
    joint = norm(noise.means, np.sqrt(noise.variances)).logpdf(at[:, None]) + np.log(noise.weights)
    np.testing.assert_allclose(noise.log_joint(at), joint, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(noise.log_density(at), logsumexp(joint, axis=1), rtol=1e-12, atol=1e-12)


@EVERY
def test_moments_are_those_of_the_density(noise):
    def moment(power, around=0.0):
        def integrand(at):
            return (at - around) ** power * np.exp(noise.log_density(np.array([at]))[0])

        return quad(integrand, -12.0, 12.0, points=[-0.9, 0.0, 0.4], limit=200)[0]

    assert moment(0) == pytest.approx(1.0, abs=1e-7)
    assert noise.mean == pytest.approx(moment(1), abs=1e-7)
    assert noise.variance == pytest.approx(moment(2, noise.mean), rel=1e-6)


@EVERY
def test_samples_have_its_moments_and_its_entropy(noise):
    n = 40_000
    drawn = noise.draw(n, np.random.default_rng(1))
    assert abs(drawn.mean() - noise.mean) < 5 * np.sqrt(noise.variance / n)
    assert drawn.var() == pytest.approx(noise.variance, rel=0.08)

    def entropy(value):
        log = noise.log_density(np.array([value]))[0]
        return -np.exp(log) * log

    expected, _ = quad(entropy, -12.0, 12.0, points=[0.0, 0.4, -0.9], limit=200)
    assert -noise.log_density(drawn).mean() == pytest.approx(expected, abs=0.03)


def test_parameters_are_counted():
    """Beyond the mechanism's own constant: a variance; or two weights, two places and three variances."""
    assert Noise.gaussian(1.0).n_parameters == 1
    assert MIXED.n_parameters == 7
    assert Noise.gaussian(1.0).is_gaussian
    assert not MIXED.is_gaussian


@EVERY
def test_numbers_bring_it_back(noise):
    again = Noise.from_array(noise.to_array())
    for name in ("weights", "means", "variances"):
        np.testing.assert_array_equal(getattr(again, name), getattr(noise, name))


@pytest.mark.parametrize(
    "flat",
    [
        [],
        [1.0, 0.0],
        [1.0, 0.0, 0.0],
        [1.0, 0.0, -1.0],
        [1.0, 0.0, np.inf],
        [1.0, np.nan, 1.0],
        [2.0, 0.0, 1.0],
        [1.5, -0.5, 0.0, 0.0, 1.0, 1.0],
        [1.0, 0.0, 0.0, 0.0, 1.0, 1.0],
        [1.0, 0.0, 1e-60],
    ],
)
def test_what_is_no_density_is_refused(flat):
    with pytest.raises(ValueError, match="noise"):
        Noise.from_array(np.array(flat))


@settings(deadline=None)
@given(st.floats(1e-12, 1e12), st.floats(-1e3, 1e3))
def test_one_gaussian_is_scipys(variance, at):
    found = Noise.gaussian(variance).log_density(np.array([at]))
    np.testing.assert_allclose(found, norm(0.0, np.sqrt(variance)).logpdf(at), rtol=1e-9, atol=1e-9)


def test_a_row_of_gaussians_has_the_density_of_its_parts_and_strays():
    row = Noise(*flat_row(-1.5, 2.0))
    assert row.is_row
    values = np.concatenate([np.linspace(-9.0, 9.0, 1001), [-1e3, 1e8]])
    joint = np.log1p(-STRAYS) + logsumexp(row.log_joint(values), axis=1)
    width, middle = 0.5 * np.ptp(row.means), row.means[[0, -1]].mean()
    expected = np.logaddexp(joint, np.log(STRAYS) + norm(middle, width).logpdf(values))
    np.testing.assert_allclose(row.log_density(values), expected, rtol=1e-12)
