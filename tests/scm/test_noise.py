"""One contract for every noise family: moments, sampler and density agree with scipy."""

import numpy as np
import pytest
from scipy import integrate, stats

from latentdo.scm import (
    ATOM_STD,
    Autocorrelated,
    Bimodal,
    Exponential,
    Gamma,
    Gaussian,
    Laplace,
    PointMass,
    StudentT,
    Uniform,
)
from latentdo.scm.noise import NOISE_FAMILIES, centred_noise


class TwoGaussians:
    """What the contract needs of a scipy distribution, for an equal mixture of two Gaussians."""

    def __init__(self, means, std):
        self.parts = [stats.norm(mean, std) for mean in means]

    def mean(self):
        return np.mean([part.mean() for part in self.parts])

    def var(self):
        return np.mean([part.var() + (part.mean() - self.mean()) ** 2 for part in self.parts])

    def cdf(self, values):
        return np.mean([part.cdf(values) for part in self.parts], axis=0)

    def logpdf(self, values):
        return np.log(np.mean([part.pdf(values) for part in self.parts], axis=0))

    def ppf(self, levels):
        return np.array([self.parts[0].ppf(levels[0]), self.parts[1].ppf(levels[1])])


FAMILIES = {
    "gaussian": (Gaussian(0.5, 2.0), stats.norm(0.5, 2.0)),
    "student": (StudentT(6.0, -1.0, 0.7), stats.t(6.0, -1.0, 0.7)),
    "uniform": (Uniform(-0.5, 3.0), stats.uniform(-0.5, 3.5)),
    "laplace": (Laplace(1.0, 0.4), stats.laplace(1.0, 0.4)),
    "exponential": (Exponential(1.5, loc=-1.0), stats.expon(-1.0, 1.5)),
    "gamma": (Gamma(3.0, 0.6, loc=0.2), stats.gamma(3.0, 0.2, 0.6)),
    "bimodal": (Bimodal(2.5, 0.5, 0.6), TwoGaussians([-1.0, 2.0], 0.6)),
}


@pytest.fixture(params=FAMILIES)
def pair(request):
    return FAMILIES[request.param]


def test_every_named_family_is_under_contract():
    assert set(FAMILIES) == set(NOISE_FAMILIES)


def test_moments_are_exact(pair):
    noise, reference = pair
    assert noise.mean == pytest.approx(reference.mean())
    assert noise.variance == pytest.approx(reference.var())


def test_samples_follow_the_distribution(pair):
    noise, reference = pair
    values = noise.sample(np.random.default_rng(0), 4000)
    assert values.shape == (4000,)
    assert stats.kstest(values, reference.cdf).pvalue > 1e-3


def test_density_agrees_with_scipy_and_integrates_to_one(pair):
    noise, reference = pair
    values = np.linspace(-4.0, 6.0, 101)
    np.testing.assert_allclose(noise.log_density(values), reference.logpdf(values), rtol=1e-10)
    low, high = reference.ppf([1e-9, 1 - 1e-9])
    area, _ = integrate.quad(lambda x: np.exp(noise.log_density(np.array(x))), low, high, limit=200)
    assert area == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("family", sorted(NOISE_FAMILIES))
def test_named_families_have_mean_zero_and_the_wanted_variance(family):
    noise = centred_noise(family, 0.37)
    assert noise.mean == pytest.approx(0.0, abs=1e-12)
    assert noise.variance == pytest.approx(0.37)


def test_shifting_moves_and_keeps_the_shape(pair):
    noise, _ = pair
    moved = noise.shifted(3.0)
    assert (moved.mean, moved.variance) == pytest.approx((noise.mean + 3.0, noise.variance))
    values = np.linspace(-4.0, 6.0, 50)
    np.testing.assert_allclose(moved.log_density(values + 3.0), noise.log_density(values))
    assert PointMass(1.0).shifted(-2.0) == PointMass(-1.0)


def test_autocorrelated_draws_keep_their_distribution_and_resemble_their_neighbours(pair):
    noise, _ = pair
    chained = Autocorrelated(noise, 0.8)
    values = chained.sample(np.random.default_rng(0), 5000)
    np.testing.assert_array_equal(np.sort(values), np.sort(noise.sample(np.random.default_rng(0), 5000)))
    assert stats.spearmanr(values[1:], values[:-1]).statistic == pytest.approx(0.8, abs=0.05)
    assert (chained.mean, chained.variance) == (noise.mean, noise.variance)
    assert chained.shifted(1.0).mean == pytest.approx(noise.mean + 1.0)
    assert str(noise) in str(chained)


def test_skewed_families_are_skewed_and_heavy_tails_heavy():
    rng = np.random.default_rng(1)
    assert stats.skew(centred_noise("exponential", 1.0).sample(rng, 20000)) > 1.5
    assert stats.skew(centred_noise("gamma", 1.0).sample(rng, 20000)) > 1.0
    assert stats.kurtosis(centred_noise("laplace", 1.0).sample(rng, 20000)) > 2.0
    assert stats.kurtosis(centred_noise("student", 1.0).sample(rng, 20000)) > 2.0


def test_student_without_moments_says_so():
    assert StudentT(1.5).variance == np.inf
    assert StudentT(1.5).mean == 0.0
    assert np.isnan(StudentT(1.0).mean)


def test_a_point_mass_never_varies_and_stands_as_a_narrow_gaussian():
    noise = PointMass(1.25)
    assert set(noise.sample(np.random.default_rng(0), 10)) == {1.25}
    assert (noise.mean, noise.variance) == (1.25, 0.0)
    reference = stats.norm(1.25, ATOM_STD)
    np.testing.assert_allclose(
        noise.log_density(np.array([1.25, 1.2500005])), reference.logpdf([1.25, 1.2500005])
    )


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Gaussian(0.0, 0.0), "Gaussian: scale must be a positive"),
        (lambda: Gaussian(np.nan, 1.0), "Gaussian: loc must be a finite"),
        (lambda: Laplace(scale=-1.0), "Laplace: scale must be a positive"),
        (lambda: StudentT(0.0), "StudentT: df must be a positive"),
        (lambda: Gamma(shape=-2.0), "Gamma: shape must be a positive"),
        (lambda: Exponential(scale=np.inf), "Exponential: scale must be a positive"),
        (lambda: Bimodal(separation=0.0), "separation must be a positive number"),
        (lambda: Autocorrelated(Gaussian(), 1.0), "correlation must be at least 0 and below 1"),
        (lambda: Uniform(1.0, 1.0), "Uniform: low must be below high"),
        (lambda: PointMass(np.inf), "PointMass: value must be a finite"),
        (
            lambda: centred_noise("cauchy", 1.0),
            "noise='cauchy' is unknown: choose one of bimodal, exponential",
        ),
        (lambda: centred_noise("gaussian", 0.0), "noise variance must be a positive number"),
    ],
)
def test_bad_parameters_are_named(build, words):
    with pytest.raises(ValueError, match=words):
        build()


def test_printing_rounds_but_repr_does_not():
    noise = Gaussian(0.0, 1 / 3)
    assert str(noise) == "Gaussian(loc=0, scale=0.3333)"
    assert eval(repr(noise)) == noise
