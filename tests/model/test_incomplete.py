"""Rows with missing cells: their density against closed forms and quadrature, and draws of what is missing."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from latentdo.model import FittedModel, Topology
from latentdo.model.fitted import own_mechanisms
from latentdo.model.incomplete import draw_missing, observed_log_density
from latentdo.model.mechanisms import LinearMechanism, Noise

EVERY = [list(some) for m in range(1, 4) for some in combinations(range(3), m)]


def lines(smallest=0.05):
    """a -> b -> c, a -> c; regime 1 sets b."""
    adjacency = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=np.int8)
    targets = np.array([[0, 0, 0], [0, 1, 0]], dtype=np.int8)

    def line(coefficients, variance):
        return LinearMechanism(np.array(coefficients), Noise.gaussian(variance))

    reference = (line([0.1], 1.0), line([0.0, 1.5], 0.2), line([-0.2, 0.5, -1.0], smallest))
    own = own_mechanisms(targets, [line([2.0], 0.3)])
    return FittedModel(Topology(adjacency, targets, np.array([0.6, 0.4])), reference, own)


def moments(model, regime):
    """Mean and covariance of a regime of lines, by solving their equations."""
    d = model.topology.n_variables
    slopes, constants, variances = np.zeros((d, d)), np.zeros(d), np.zeros(d)
    for j in range(d):
        form = model.mechanism(j, regime).linear_form
        constants[j], variances[j] = form.coefficients[0], form.variance
        slopes[model.parents[j][: form.coefficients.size - 1], j] = form.coefficients[1:]
    inverse = np.linalg.inv(np.eye(d) - slopes)
    return constants @ inverse, inverse.T @ np.diag(variances) @ inverse


def without(z, cells):
    out = z.copy()
    out[:, cells] = np.nan
    return out


@pytest.mark.parametrize("cells", EVERY)
def test_lines_have_the_margin_of_their_gaussian(cells):
    model = lines()
    z = np.random.default_rng(0).normal(size=(20, 3))
    found = observed_log_density(model, without(z, cells))
    seen = [j for j in range(3) if j not in cells]
    for k in range(2):
        mean, covariance = moments(model, k)
        expected = (
            multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).logpdf(z[:, seen])
            if seen
            else np.zeros(len(z))
        )
        np.testing.assert_allclose(found[:, k], expected, rtol=1e-10, atol=1e-10)


def test_noise_next_to_nothing_is_summed_out_as_well():
    """A covariance matrix would be singular in float64; the missing parent of a child without noise is known."""
    model = lines(smallest=1e-12)
    z = model.sample(50, 0, np.random.default_rng(0))
    found = observed_log_density(model, without(z, [1]))[:, 0]
    # p(a, c) = p(a) N(c; mean given a, variance): b is summed out of c = -0.2 + 0.5 a - b + noise
    variance = 0.2 + 1e-12
    expected = -0.5 * ((z[:, 0] - 0.1) ** 2 + (z[:, 2] + 0.2 - 0.5 * z[:, 0] + 1.5 * z[:, 0]) ** 2 / variance)
    expected -= np.log(2.0 * np.pi) + 0.5 * np.log(variance)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    filled = draw_missing(model, without(z, [1]), np.zeros(50, dtype=np.int64), np.random.default_rng(1))
    np.testing.assert_allclose(filled[:, 1], z[:, 1], atol=1e-4)


def test_draws_have_the_conditional_distribution():
    model = lines()
    mean, covariance = moments(model, 0)
    row = np.array([0.8, np.nan, np.nan])
    filled = draw_missing(
        model, np.tile(row, (20_000, 1)), np.zeros(20_000, dtype=np.int64), np.random.default_rng(0)
    )
    gain = covariance[1:, 0] / covariance[0, 0]
    np.testing.assert_allclose(filled.mean(axis=0), [0.8, *(mean[1:] + gain * (0.8 - mean[0]))], atol=0.02)
    expected = covariance[1:, 1:] - np.outer(gain, covariance[0, 1:])
    np.testing.assert_allclose(np.cov(filled[:, 1:].T), expected, atol=0.02)


FAMILIES = ("linear", "network", "network-mixed", "neural-nonlinear-perfect")


@pytest.mark.parametrize("name", FAMILIES)
def test_any_family_agrees_with_quadrature(named_model, name):
    model = named_model(name)
    atom = 3.0 + np.linspace(
        -1e-3, 1e-3, 201
    )  # a regime of the linear model sets c to 3, with next to no noise
    grid = np.union1d(np.linspace(-12.0, 12.0, 2401), atom)
    widths = np.log(np.gradient(grid))[:, None]
    rng = np.random.default_rng(0)
    off = []
    for cell in range(3):
        some = np.concatenate([model.sample(5, k, rng) for k in range(model.topology.n_regimes)])
        found = observed_log_density(model, without(some, [cell]))
        for row, mine in zip(some, found, strict=True):
            whole = np.tile(row, (grid.size, 1))
            whole[:, cell] = grid
            expected = logsumexp(model.log_density(whole) + widths, axis=0)
            likely = expected > expected.max() - 10.0  # others decide nothing
            off.append(np.abs(mine - expected)[likely])
    assert np.median(np.concatenate(off)) < 0.05
    assert np.quantile(np.concatenate(off), 0.9) < 0.3


@pytest.mark.parametrize("name", FAMILIES)
def test_draws_of_any_family_leave_what_is_seen(named_model, rows, name):
    model = named_model(name)
    z = without(rows[:40], [1])
    z[::2, 0] = np.nan
    filled = draw_missing(model, z, np.zeros(40, dtype=np.int64), np.random.default_rng(0))
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(filled[~np.isnan(z)], z[~np.isnan(z)])


@pytest.mark.parametrize("name", FAMILIES)
def test_whole_rows_are_as_ever_and_empty_ones_say_nothing(named_model, rows, name):
    model = named_model(name)
    z = rows[:6].copy()
    z[3] = np.nan
    found = observed_log_density(model, z)
    whole = np.arange(6) != 3
    np.testing.assert_array_equal(found[whole], model.log_density(np.ascontiguousarray(z[whole])))
    np.testing.assert_allclose(found[3], 0.0, atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_row_does_not_depend_on_those_beside_it(named_model, rows, name):
    model = named_model(name)
    z = without(rows[:10], [2])
    z[::3, 0] = np.nan
    together = observed_log_density(model, z)
    alone = np.concatenate([observed_log_density(model, row[None]) for row in z])
    np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-5)
