"""Rounded columns and point masses are found, and continuous columns are left alone."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentdo import simulate
from latentdo.data import Dataset, DataWarning
from latentdo.data.atoms import Atoms

SHAPES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "log-normal": lambda rng, n: rng.lognormal(size=n),
    "uniform": lambda rng, n: rng.uniform(size=n),
    "heavy": lambda rng, n: rng.standard_t(3, size=n),
    "two humps": lambda rng, n: rng.normal(size=n) + 6.0 * (rng.random(n) < 0.3),
}

columns = st.tuples(st.sampled_from(sorted(SHAPES)), st.integers(0, 10_000), st.integers(100, 3000))


def draw(column):
    shape, seed, n = column
    return SHAPES[shape](np.random.default_rng(seed), n)


@settings(max_examples=60)
@given(column=columns)
def test_continuous_columns_are_left_alone(column):
    values = draw(column)
    assert Atoms.of(values[:, None]) == Atoms((False,), ((),))
    resampled = np.random.default_rng(1).choice(values, values.size)
    assert Atoms.of(resampled[:, None]) == Atoms((False,), ((),)), (
        "resampled rows repeat, and are not rounded"
    )


@settings(max_examples=60)
@given(column=columns, unit=st.sampled_from([1.0, 2.54, 1e-7, 1e5]), offset=st.sampled_from([0.0, 17.3]))
def test_rounded_columns_are_found_in_any_units(column, unit, offset):
    values = draw(column)
    step = values.std() / 6.0
    rounded = (np.round(values / step) * step + offset) * unit
    atoms = Atoms.of(rounded[:, None])
    if np.unique(np.round(values / step)).size >= 8 and values.size >= 300:
        assert atoms == Atoms((True,), ((),)), "and the values at its ends are not point masses"


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_spread_values_are_where_they_might_have_been(shape):
    values = SHAPES[shape](np.random.default_rng(0), 2000)
    step = values.std() / 8.0
    rounded = np.round(values / step) * step
    spread = Atoms.of(rounded[:, None]).spread(rounded[:, None], np.random.default_rng(1))[:, 0]
    common = np.abs(rounded - np.median(rounded)) < 1.5 * values.std()  # where every value occurs
    assert (np.abs(spread - rounded)[common] <= 0.5 * step * (1.0 + 1e-9)).all()
    assert np.unique(spread).size == spread.size
    assert Atoms.of(spread[:, None]) == Atoms((False,), ((),))
    if (values >= 0.0).all():
        assert (spread >= 0.0).all()


@pytest.mark.parametrize("step", [0.0, 0.1, 0.25])
def test_limits_and_zeros_are_found_beside_rounding(step):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2000, 3))
    values[:, 0] = np.clip(values[:, 0], -0.8, 1.0)
    values[:, 1] += 5.0
    if step:
        values = np.round(values / step) * step
    values[rng.random(2000) < 0.2, 1] = 0.0
    atoms = Atoms.of(values)
    low, high = values[:, 0].min(), values[:, 0].max()
    assert atoms.masses == (((low, -1), (high, 1)), ((0.0, 0),), ())
    assert atoms.rounded == (step > 0.0,) * 3
    kept = atoms.spread(values, rng)
    for j, masses in enumerate(atoms.masses):
        for value, _ in masses:
            np.testing.assert_array_equal(kept[:, j] == value, values[:, j] == value)


def test_binary_columns_and_categories_are_something_else():
    rng = np.random.default_rng(0)
    values = rng.integers(0, [2, 3, 7], size=(500, 3)).astype(float)
    assert Atoms.of(values) == Atoms((False,) * 3, ((),) * 3)


def test_what_was_seen_is_said_by_column():
    data = simulate(n_variables=3, n_samples=600, random_state=0)
    X = data.X.copy()
    rounded, limited, other = X.columns
    X[rounded] = X[rounded].round(1)
    X[limited] = X[limited].clip(lower=X[limited].quantile(0.2))
    with pytest.warns(DataWarning) as heard:
        Dataset.from_table(X)
    first, second = (str(warning.message) for warning in heard)
    assert repr(rounded) in first
    assert "spread" in first
    assert repr(limited) in second
    assert "20%" in second
    assert repr(other) not in first + second


def test_only_the_seed_decides_how_values_are_spread():
    rows = np.round(np.random.default_rng(0).normal(size=(500, 2)), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        data = Dataset.from_table(rows)
    first, again, other = (data.spread(seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.x, again.x)
    assert not np.array_equal(first.x, other.x)
    assert first.preprocessor is data.preprocessor
    continuous = Dataset.from_table(np.random.default_rng(0).normal(size=(500, 2)))
    assert continuous.spread(3) is continuous
