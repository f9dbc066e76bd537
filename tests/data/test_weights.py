"""What may be a weight, and what becomes of rows without one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from latentdo.data import Dataset, DataWarning, encode_weights
from latentdo.data.background import Background
from latentdo.data.circumstances import Circumstances
from latentdo.data.transforms import TRANSFORMS, Preprocessor


@pytest.fixture
def table():
    return pd.DataFrame(np.random.default_rng(0).lognormal(size=(60, 2)), columns=["a", "b"])


@pytest.mark.parametrize(
    "form",
    [list, tuple, np.array, pd.Series, pa.array, lambda w: [str(one) for one in w], np.float32],
)
def test_any_sequence_of_numbers(form):
    np.testing.assert_array_equal(encode_weights(form([1.0, 0.5, 0.0]), 3), [1.0, 0.5, 0.0])


def test_one_number_is_the_weight_of_every_row():
    np.testing.assert_array_equal(encode_weights(2, 3), [2.0, 2.0, 2.0])


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf, None, "much"])
def test_what_is_no_weight_is_named_with_its_row(wrong):
    with pytest.raises(ValueError, match=r"row 2 \(counted from 0\).*from 0"):
        encode_weights([1.0, 1.0, wrong, 1.0], 4)


@pytest.mark.parametrize("shape", [(3,), (5,), (4, 1)])
def test_as_many_weights_as_rows(shape):
    with pytest.raises(ValueError, match=r"one entry per row \(4\)"):
        encode_weights(np.ones(shape), 4)


def test_other_bad_weights(table):
    with pytest.raises(TypeError, match="one number per row"):
        encode_weights("heavy", 4)
    with pytest.raises(ValueError, match="zero in every row"):
        encode_weights(np.zeros(4), 4)
    with pytest.raises(ValueError, match="another order"):
        Dataset.from_table(table, sample_weight=pd.Series(1.0, index=table.index[::-1]))
    with pytest.raises(ValueError, match=r"adds up to 1 rows.*sample_weight \* n_rows"):
        Dataset.from_table(table, sample_weight=np.full(60, 1.0 / 60.0))
    with pytest.warns(DataWarning, match="row 7 .*look like a regime"):
        Dataset.from_table(table, sample_weight=np.where(np.arange(60) == 7, 30.0, 1.0))


def test_rows_without_weight_are_left_out(table):
    weights = np.arange(60) % 3
    found = Dataset.from_table(table, sample_weight=weights, groups=np.arange(60) // 6, time=None)
    kept = np.flatnonzero(weights)
    np.testing.assert_array_equal(found.row_index, kept)
    np.testing.assert_array_equal(found.weight, weights[kept])
    assert (found.n_dropped, found.total) == (20, 60.0)
    np.testing.assert_array_equal(found.take([3, 0]).weight, weights[kept][[3, 0]])


def test_weights_beside_missing_values(table):
    table.iloc[4, 0], table.iloc[6, 1] = np.nan, np.nan
    weights = np.arange(60) % 3  # 0 in row 6
    with pytest.raises(ValueError, match="row 4 "):
        Dataset.from_table(table, sample_weight=weights)
    found = Dataset.from_table(table, sample_weight=weights, missing="drop")
    kept = np.flatnonzero((weights > 0) & (np.arange(60) != 4))
    np.testing.assert_array_equal(found.row_index, kept)
    np.testing.assert_array_equal(found.weight, weights[kept])


def test_weights_of_one_say_nothing(table):
    assert Dataset.from_table(table, sample_weight=np.ones(60)).weight is None
    # also if the others do not count
    assert Dataset.from_table(table, sample_weight=np.arange(60) % 2).weight is None


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_standardising_counts_rows_by_their_weights(table, transform):
    x, weights = table.to_numpy(), np.random.default_rng(1).integers(1, 5, 60)
    one = Preprocessor.fit(x, transform, weights=weights.astype(float))
    two = Preprocessor.fit(np.repeat(x, weights, axis=0), transform)
    np.testing.assert_allclose(one.forward(x), two.forward(x), rtol=1e-9, atol=1e-12)


def test_levels_of_batches_and_cycles_count_rows_by_their_weights():
    rng = np.random.default_rng(2)
    z, weights = rng.normal(size=(200, 2)), rng.integers(1, 4, 200).astype(float)
    again = np.repeat(np.arange(200), weights.astype(int))
    batch, names = np.arange(200) % 2, ("a", "b")
    known = np.eye(2)[(np.arange(200) > 90).astype(int)]
    where = Circumstances(batch=batch, batch_names=names)
    one = Background.fit(
        z, Circumstances(batch=batch, batch_names=names, weight=weights), responsibilities=known
    )
    two = Background.fit(z[again], where.take(again), responsibilities=known[again])
    np.testing.assert_allclose(one.level, two.level, atol=1e-9)
    np.testing.assert_allclose(one.scale, two.scale, atol=1e-9)
    guess = Background.fit(z, Circumstances(batch=batch, batch_names=names, weight=weights))
    other = Background.fit(z[again], where.take(again))
    np.testing.assert_allclose(
        guess.level, other.level, atol=0.1
    )  # quartiles lie between two rows, or on one
    when = Circumstances(time=np.arange(200.0), weight=weights)
    waves = Background.fit(z, when, periods=(20.0,))
    twice = Background.fit(z[again], Circumstances(time=np.arange(200.0)).take(again), periods=(20.0,))
    np.testing.assert_allclose(waves.first, twice.first, atol=1e-6)
    np.testing.assert_allclose(waves.first_scale, twice.first_scale, atol=1e-6)
