"""Rows with missing cells: their density against closed forms and quadrature, and draws of what is missing."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from scipy.stats import multivariate_normal, nbinom, poisson

from latentdo.data import Kind
from latentdo.model import FittedModel, Topology
from latentdo.model.fitted import own_mechanisms
from latentdo.model.incomplete import draw_missing, observed_log_density
from latentdo.model.mechanisms import LinearMechanism, Noise
from latentdo.model.mechanisms.binary import BinaryMechanism
from latentdo.model.mechanisms.categorical import CategoricalMechanism
from latentdo.model.mechanisms.count import CountMechanism
from latentdo.model.mechanisms.inputs import Expanded, Inputs

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


KINDS = (Kind("categorical", ("r", "s", "t")), Kind(), Kind("binary", ("0", "1")), Kind("count"), Kind())
COUNTS = np.arange(400.0)


def of_all_kinds():
    """Category -> continuous -> binary and count, category -> count -> continuous; regime 1 sets the count."""
    adjacency = np.zeros((5, 5), dtype=np.int8)
    adjacency[[0, 1, 1, 0, 3], [1, 2, 3, 3, 4]] = 1
    targets = np.array([[0, 0, 0, 0, 0], [0, 0, 0, 1, 0]], dtype=np.int8)
    inputs = Inputs(
        np.array([[2.0, 3.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.5], [0.0, 0.0, 0.0]])
    )

    def expanded(j, mechanism):
        return Expanded(inputs.take(np.flatnonzero(adjacency[:, j])), mechanism)

    def count(coefficients, *shape):
        return CountMechanism(np.array([coefficients]), np.array(shape))

    reference = (
        CategoricalMechanism(np.array([[0.3], [-1.5]])),
        expanded(1, LinearMechanism(np.array([-0.5, 1.5, -1.0]), Noise.gaussian(0.4))),
        BinaryMechanism(np.array([[0.4, 2.0]])),
        expanded(3, count([1.0, -0.7, 0.8, 0.6], 0.3, 0.1)),
        expanded(4, LinearMechanism(np.array([0.2, 0.8]), Noise.gaussian(0.2))),
    )
    own = own_mechanisms(targets, [count([2.0], 0.0, 0.0)])
    return FittedModel(Topology(adjacency, targets, np.array([0.7, 0.3])), reference, own)


def summed_out(model, row, cells):
    """Log-density of what is seen of a row, by enumeration of discrete cells and quadrature of continuous ones."""
    grid = np.linspace(-7.0, 7.0, 281)
    values = [
        grid
        if not kind.is_discrete
        else COUNTS
        if kind.kind == "count"
        else np.arange(float(len(kind.levels)))
        for kind in (KINDS[j] for j in cells)
    ]
    whole = np.tile(row, (np.prod([one.size for one in values]), 1))
    whole[:, cells] = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(len(whole), -1)
    width = np.log(grid[1] - grid[0]) * sum(not KINDS[j].is_discrete for j in cells)
    return logsumexp(model.log_density(whole), axis=0) + width


@pytest.mark.parametrize("cells", [[0], [1], [2], [3], [0, 1], [0, 3], [1, 2], [1, 3], [0, 2, 4]])
def test_all_kinds_agree_with_enumeration(cells):
    model = of_all_kinds()
    rng = np.random.default_rng(0)
    some = np.concatenate([model.sample(15, k, rng) for k in range(2)])
    found = observed_log_density(model, without(some, cells))
    expected = np.array([summed_out(model, row, cells) for row in some])
    off = np.abs(found - expected)[expected > expected.max(axis=1, keepdims=True) - 10.0]
    assert np.median(off) < 0.1  # as PARTICLES promises
    assert np.quantile(off, 0.9) < 0.4


def test_draws_of_all_kinds_have_the_conditional_distribution():
    """Of a category and a count that are missing together, what follows from both is seen."""
    model = of_all_kinds()
    row = np.array([np.nan, -0.2, 1.0, np.nan, 1.5])
    n = 20_000
    filled = draw_missing(
        model, without(np.tile(row, (n, 1)), [0, 3]), np.zeros(n, np.int64), np.random.default_rng(0)
    )
    whole = np.tile(row, (3 * COUNTS.size, 1))
    whole[:, [0, 3]] = np.stack(np.meshgrid(np.arange(3.0), COUNTS, indexing="ij"), axis=-1).reshape(-1, 2)
    chances = softmax(model.log_density(whole)[:, 0])
    np.testing.assert_allclose(
        np.bincount(filled[:, 0].astype(int), minlength=3) / n, chances.reshape(3, -1).sum(axis=1), atol=0.015
    )
    mean, mean_square = chances @ whole[:, 3], chances @ whole[:, 3] ** 2
    assert filled[:, 3].mean() == pytest.approx(mean, rel=0.02)
    assert filled[:, 3].var() == pytest.approx(mean_square - mean**2, rel=0.1)
    assert not (filled[:, 3] % 1.0).any()


def test_a_row_of_all_kinds_does_not_depend_on_those_beside_it():
    model = of_all_kinds()
    z = model.sample(12, 0, np.random.default_rng(0))
    z[np.random.default_rng(1).random(z.shape) < 0.4] = np.nan
    z[5] = np.nan
    together = observed_log_density(model, z)
    alone = np.concatenate([observed_log_density(model, row[None]) for row in z])
    np.testing.assert_allclose(together, alone, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(together[5], 0.0, atol=1e-12)


def test_quantiles_are_those_of_the_law():
    mean, share = np.repeat([0.1, 7.0, 400.0, 2e4], 50), np.tile(np.linspace(0.0, 0.999, 50), 4)
    for dispersion in (0.0, 0.3):
        found = CountMechanism(np.array([[0.0, 1.0]]), np.array([dispersion, 0.2])).quantile(
            np.log(mean)[:, None], share
        )
        law = nbinom(1.0 / 0.3, 1.0 / (1.0 + 0.3 * mean)) if dispersion else poisson(mean)
        expected = np.maximum(law.ppf(np.maximum((share - 0.2) / 0.8, 0.0)), 0.0)
        np.testing.assert_array_equal(found, expected)
