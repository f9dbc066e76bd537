"""What limits and zeros hide is filled in as the other columns suggest."""

import warnings

import numpy as np
import pytest

from latentdo.data import Dataset, DataWarning
from latentdo.solvers.hidden_values import fill


def dataset(x, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return Dataset.from_table(x, **options)


def gaussian(n=4000):
    """Three columns with known covariance."""
    covariance = np.array([[1.0, 0.8, 0.5], [0.8, 1.5, 0.6], [0.5, 0.6, 2.0]])
    rng = np.random.default_rng(0)
    return rng.multivariate_normal([3.0, -1.0, 10.0], covariance, size=n), covariance


def limited():
    x, covariance = gaussian()
    low, high = np.quantile(x[:, 0], 0.2), np.quantile(x[:, 1], 0.8)
    seen = x.copy()
    seen[:, 0], seen[:, 1] = np.maximum(x[:, 0], low), np.minimum(x[:, 1], high)
    return seen, covariance, low, high


def with_zeros():
    x, covariance = gaussian()
    hidden = np.random.default_rng(1).random(x.shape) < 0.2
    hidden[:, 1] = False
    return np.where(hidden, 0.0, x), hidden, covariance


@pytest.mark.parametrize("clusters", [False, True])
def test_what_is_beyond_a_limit_has_its_distribution(clusters):
    seen, covariance, low, high = limited()
    filled = fill(dataset(seen), 0, clusters=clusters)
    at_low, at_high = seen[:, 0] == low, seen[:, 1] == high
    assert (filled.x[at_low, 0] <= low).all()
    assert (filled.x[at_high, 1] >= high).all()
    untouched = ~np.column_stack([at_low, at_high, np.zeros(len(seen), dtype=bool)])
    np.testing.assert_array_equal(filled.x[untouched], seen[untouched])
    assert not filled.atoms.has_masses
    # 4000 rows leave standard errors of at most 0.05
    np.testing.assert_allclose(np.cov(filled.x.T), covariance, atol=0.15)


@pytest.mark.parametrize("clusters", [False, True])
def test_what_zeros_hide_has_its_distribution(clusters):
    seen, hidden, covariance = with_zeros()
    filled = fill(dataset(seen), 0, clusters=clusters)
    np.testing.assert_array_equal(filled.x[~hidden], seen[~hidden])
    np.testing.assert_allclose(filled.x.mean(axis=0), [3.0, -1.0, 10.0], atol=0.1)
    np.testing.assert_allclose(np.cov(filled.x.T), covariance, atol=0.15)


def test_clusters_stay_apart():
    """Two groups, told apart by the second column: what is hidden in the first must not lie between them."""
    rng = np.random.default_rng(0)
    group = rng.random(2000) < 0.5
    x = np.column_stack([group * 6.0, group * 6.0]) + rng.normal(size=(2000, 2)) + 20.0
    hidden = rng.random(2000) < 0.2
    x[hidden, 0] = 0.0
    between = {}
    for clusters in (False, True):
        filled = fill(dataset(x), 0, clusters=clusters).x[hidden, 0]
        between[clusters] = (np.abs(filled - 23.0) < 1.0).mean()
    assert between[True] < 0.06 < between[False]  # 0.023 lie there without hidden values


def test_only_the_seed_decides():
    seen = with_zeros()[0][:1000]
    first, again, other = (fill(dataset(seen), seed, clusters=True).x for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("transform", ["log1p", "rank-gaussian"])
def test_transformed_columns_stay_in_their_domain(transform):
    rng = np.random.default_rng(0)
    x = rng.lognormal(size=(1000, 1)) * rng.lognormal(sigma=0.3, size=(1000, 2))
    x[rng.random(1000) < 0.2, 1] = 0.0
    x[:, 0] = np.maximum(x[:, 0], np.quantile(x[:, 0], 0.15))
    data = dataset(x, transform=transform)
    filled = fill(data, 0)
    assert np.isfinite(filled.z).all()
    assert not filled.atoms.has_masses
