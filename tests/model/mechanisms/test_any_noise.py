"""Noise of any shape: fits against the truth, against scipy, and against each other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from latentdo.model.mechanisms import LinearMechanism, Noise
from latentdo.model.mechanisms.any_noise import ROW_TURNS, AnyNoise, fit_rows, rough_gains
from latentdo.model.mechanisms.family import evidence
from latentdo.model.mechanisms.histograms import histogram
from latentdo.model.mechanisms.shapes import MOST_COMPONENTS, UNKNOWN, best_move

N = 3000


def _noise(name: str, rng: np.random.Generator, n: int = N) -> np.ndarray:
    """Standardised draws."""
    draws = {
        "gaussian": lambda: rng.standard_normal(n),
        "laplace": lambda: rng.laplace(size=n) / np.sqrt(2.0),
        "skewed": lambda: (rng.gamma(2.0, size=n) - 2.0) / np.sqrt(2.0),
        "uniform": lambda: rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), n),
        "humps": lambda: 0.9 * rng.choice([-1.0, 1.0], n) + np.sqrt(1.0 - 0.81) * rng.standard_normal(n),
    }
    return draws[name]()


@pytest.mark.parametrize("name", ["gaussian", "laplace", "skewed", "uniform", "humps"])
def test_a_fit_finds_the_line_and_improves_on_gaussian_noise_where_there_is_something_to_improve(name):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((N, 2))
    y = 0.3 + x @ [1.0, -0.5] + _noise(name, rng)
    found = AnyNoise.fit(x, y, np.ones(N))
    np.testing.assert_allclose(found.parameters[1:], [1.0, -0.5], atol=0.06)
    assert found.parameters[0] + found.noise.mean == pytest.approx(0.3, abs=0.06)
    plain = np.linalg.lstsq(np.column_stack([np.ones(N), x]), y, rcond=None)[0]
    residual = y - plain[0] - x @ plain[1:]
    gaussian = LinearMechanism(plain, Noise.gaussian(float(residual.var())))
    gain = evidence(found, x, y, np.ones(N)) - evidence(gaussian, x, y, np.ones(N))
    if name == "gaussian":
        assert found.noise.is_gaussian
        assert gain == pytest.approx(0.0, abs=1e-6)
    else:
        assert gain > 50.0


def test_weights_count_like_repeated_rows():
    rng = np.random.default_rng(2)
    x, weights = rng.standard_normal((600, 1)), rng.integers(1, 4, 600)
    y = x[:, 0] + _noise("skewed", rng, 600)
    weighted = AnyNoise.fit(x, y, weights.astype(float))
    repeated = AnyNoise.fit(np.repeat(x, weights, axis=0), np.repeat(y, weights), np.ones(weights.sum()))
    np.testing.assert_allclose(weighted.parameters, repeated.parameters, atol=1e-6)
    np.testing.assert_allclose(weighted.noise.to_array(), repeated.noise.to_array(), atol=1e-6)


def test_bins_keep_mass_and_moments():
    rng = np.random.default_rng(3)
    residual, weights = rng.standard_t(3, 500), rng.uniform(0.1, 2.0, 500)
    bins, mean, spread = histogram(residual, weights)
    assert bins[0].sum() == pytest.approx(weights.sum())
    assert bins[0] @ bins[1] / bins[0].sum() == pytest.approx(np.average(residual, weights=weights)) == mean
    assert bins[0] @ bins[2] == pytest.approx(weights @ residual**2)
    assert spread == pytest.approx(np.sqrt(np.average((residual - mean) ** 2, weights=weights)))


def test_a_shape_is_found_again_where_it_was_moved_and_stretched():
    rng = np.random.default_rng(4)
    noise = Noise(np.array([0.7, 0.3]), np.array([-0.5, 1.2]), np.array([0.1, 0.6]))
    shape = np.stack([noise.weights, noise.means, noise.variances])
    residual = 2.0 + 0.5 * noise.draw(4000, rng)
    value, moved = best_move(residual, np.ones(4000), shape)
    np.testing.assert_allclose(moved[0], noise.weights)
    np.testing.assert_allclose(moved[1], 2.0 + 0.5 * noise.means, atol=0.03)
    np.testing.assert_allclose(moved[2], 0.25 * noise.variances, rtol=0.1)
    exact = Noise(*moved).log_density(residual).sum()
    assert value == pytest.approx(exact, rel=1e-3)
    assert exact > norm.logpdf(residual, residual.mean(), residual.std()).sum()


@pytest.mark.parametrize("kind", ["perfect", "moved", "own slopes"])
def test_an_intervention_of_each_kind_is_recognised(kind):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((N, 2))
    reference = AnyNoise.fit(x, x @ [1.0, -0.5] + _noise("skewed", rng), np.ones(N))
    x, noise = x[:600], _noise("skewed", rng, 600)
    y = {
        "perfect": 2.0 + noise,
        "moved": 2.0 + x @ [1.0, -0.5] + noise,
        "own slopes": x @ [-1.0, 1.0] + noise,
    }[kind]
    found = AnyNoise.intervene(x, y, np.ones(600), reference, imperfect=True)
    assert found.n_parameters == {"perfect": 2, "moved": 2, "own slopes": 4}[kind]
    assert found.parameters.size == {"perfect": 1, "moved": 3, "own slopes": 3}[kind]
    gain = found.log_density(x, y).sum() - reference.log_density(x, y).sum()
    assert gain > 100.0
    perfect = AnyNoise.intervene(x, y, np.ones(600), reference, imperfect=False)
    assert perfect.parameters.size == 1


def test_regimes_without_an_intervention_need_not_be_fitted():
    rng = np.random.default_rng(6)
    x = rng.standard_normal((N, 1))
    y = x[:, 0] + _noise("laplace", rng)
    y[2000:] += 1.0
    responsibilities = np.zeros((N, 3))
    responsibilities[:1000, 0] = responsibilities[1000:2000, 1] = responsibilities[2000:, 2] = 1.0
    reference = AnyNoise.fit(x[:2000], y[:2000], np.ones(2000))
    np.testing.assert_array_equal(
        AnyNoise.may_differ(x, y, responsibilities, reference), [False, False, True]
    )
    residual = (y - x[:, 0]) / np.std(y[:2000] - x[:2000, 0])
    assert rough_gains(residual, x, responsibilities)[2] > 100.0


def test_noise_with_sharp_edges_costs_what_gaussian_noise_costs():
    rng = np.random.default_rng(7)
    x = rng.standard_normal((N, 1))
    found = AnyNoise.fit(x, x[:, 0] + _noise("uniform", rng), np.ones(N))
    assert found.noise.is_flat
    assert found.n_parameters == 3
    assert found.noise.log_density(np.zeros(1))[0] == pytest.approx(-np.log(2.0 * np.sqrt(3.0)), abs=0.05)
    density = found.log_density(x, x[:, 0] + _noise("uniform", rng)).sum()
    assert density == pytest.approx(-N * np.log(2.0 * np.sqrt(3.0)), abs=80.0)
    moved = AnyNoise.intervene(x, 2.0 + 0.5 * _noise("uniform", rng), np.ones(N), found, imperfect=False)
    assert moved.noise.is_flat
    assert moved.noise.mean == pytest.approx(2.0, abs=0.02)
    restored = Noise.from_array(moved.noise.to_array())
    assert restored.is_flat


@pytest.mark.parametrize("name", ["gaussian", "laplace", "skewed"])
def test_noise_that_grows_with_the_signal_is_seen(name):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((N, 2))
    signal = x @ [0.8, -0.5]
    y = signal + 0.4 * np.exp(0.6 * signal) * _noise(name, rng)
    found = AnyNoise.fit(x, y, np.ones(N))
    inside = np.linspace(-1.0, 1.0, 9)
    grown = found.scaled(inside)
    np.testing.assert_allclose(grown - grown.mean(), 0.6 * inside, atol=0.2)
    np.testing.assert_allclose(found.parameters[1:], [0.8, -0.5], atol=0.05)
    constant = LinearMechanism(found.parameters, found.noise)
    assert evidence(found, x, y, np.ones(N)) > evidence(constant, x, y, np.ones(N)) + 100.0


@pytest.mark.parametrize("name", ["gaussian", "laplace", "skewed", "uniform", "humps"])
def test_noise_that_does_not_grow_is_left_alone(name):
    grown = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((1000, 2))
        y = x @ [0.8, -0.5] + 0.5 * _noise(name, rng, 1000)
        grown += AnyNoise.fit(x, y, np.ones(1000)).grows
    assert grown <= 1  # log(n) lets one in a thousand pass


def test_growth_is_part_of_the_density_and_of_draws():
    rng = np.random.default_rng(6)
    growth = np.array([[-1.0, 0.0, 1.5], [-0.7, 0.0, 0.8]])
    mechanism = LinearMechanism(np.array([0.2, 0.7]), Noise.gaussian(0.3), growth=growth)
    x = np.linspace(-2.0, 2.0, 5)[:, None]
    mean = 0.2 + 0.7 * x[:, 0]
    scale = np.sqrt(0.3) * np.exp(np.interp(mean, *growth))
    y = rng.standard_normal(5)
    np.testing.assert_allclose(mechanism.log_density(x, y), norm.logpdf(y, mean, scale))
    z = np.column_stack([x, y])
    together = LinearMechanism.log_densities([mechanism], z, [1], [np.array([0])])
    np.testing.assert_allclose(together[0], norm.logpdf(y, mean, scale))
    draws = mechanism.draw(np.full((20_000, 1), 1.5), rng)
    assert draws.std() == pytest.approx(np.sqrt(0.3) * np.exp(0.8 * 1.25 / 1.5), rel=0.03)
    assert mechanism.n_parameters == 5
    assert mechanism.linear_form is None


def test_a_fit_that_begins_elsewhere_ends_at_the_same_evidence():
    rng = np.random.default_rng(7)
    x = rng.standard_normal((N, 2))
    y = x @ [0.8, -0.5] + _noise("skewed", rng)
    everywhere = np.ones(N)
    fresh = AnyNoise.fit(x, y, everywhere)
    for again in (
        AnyNoise.fit(x, y, everywhere, fresh),
        AnyNoise.refit(x, y, everywhere, fresh),
        AnyNoise.refit(x, y, everywhere, AnyNoise.fit(np.column_stack([x, x**2]), y, everywhere)),
    ):
        difference = evidence(again, x, y, everywhere) - evidence(fresh, x, y, everywhere)
        assert difference == pytest.approx(0.0, abs=6.0)  # a local optimum of the shape is worth a few nats


@pytest.mark.parametrize("growth", [0.0, 0.5])
def test_the_evidence_of_a_fit_agrees_with_its_rows(growth):
    rng = np.random.default_rng(8)
    x = rng.standard_normal((N, 1))
    y = 0.7 * x[:, 0] + 0.5 * np.exp(growth * 0.7 * x[:, 0]) * _noise("skewed", rng)
    rows = np.column_stack([np.ones(N), x, y])
    fit = fit_rows(rows, np.ones(N), UNKNOWN, MOST_COMPONENTS, ROW_TURNS)
    mechanism = LinearMechanism(fit.coefficients, Noise(*fit.shape), growth=fit.growth)
    assert fit.value == pytest.approx(evidence(mechanism, x, y, np.ones(N)), abs=1.0)


@pytest.mark.parametrize("name", ["laplace", "student"])
def test_the_wrong_direction_has_less_evidence_although_its_noise_seems_to_grow(name):
    """What heavy tails leave in the wrong direction is wide at both ends; a scale that may do that turns edges."""
    worse = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        cause, noise = (
            rng.standard_t(5, N) / np.sqrt(5.0 / 3.0) if name == "student" else _noise(name, rng)
            for _ in range(2)
        )
        effect = 0.7 * cause + 0.7 * noise
        scores = []
        for x, y in ((cause, effect), (effect, cause)):
            alone = AnyNoise.fit(np.empty((N, 0)), x, np.ones(N))
            given = AnyNoise.fit(x[:, None], y, np.ones(N))
            scores.append(
                evidence(alone, np.empty((N, 0)), x, np.ones(N)) + evidence(given, x[:, None], y, np.ones(N))
            )
        worse += scores[1] > scores[0]
    assert worse == 0


@pytest.mark.parametrize("draw", ["gamma", "uniform"])
def test_a_sharp_end_is_seen_where_the_scale_follows_the_signal(draw):
    """Coefficients and scale settle before the shape is chosen; else errors of the fit hide the sharp end."""
    rng = np.random.default_rng(3)
    n = 3000
    x = rng.standard_normal((n, 1))
    noise = rng.gamma(2.0, 1.0, n) if draw == "gamma" else rng.uniform(0.0, 1.0, n)
    scale = np.exp(np.clip(x[:, 0], -1.5, 1.5))
    y = 2.0 * x[:, 0] + scale * (noise - (2.0 if draw == "gamma" else 0.5))
    found = AnyNoise.fit(x, y, np.ones(n))
    assert found.noise.is_row
    assert found.growth.shape[1] > 0
    density = np.log(noise) - noise if draw == "gamma" else np.zeros(n)
    truth = float((density - np.log(scale)).sum())
    assert (
        evidence(found, x, y, np.ones(n)) > truth - 0.12 * n
    )  # Gaussian noise is at least 0.16 nats per row behind
