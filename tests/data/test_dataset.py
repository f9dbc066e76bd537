"""The data set: splits, resamples, hashes, and parts that do not fit together."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentdo.data import Dataset, DataWarning

VALUES = np.random.default_rng(0).normal(size=(12, 3))
FRAME = pd.DataFrame(VALUES, columns=["a", "b", "c"])


def labelled(regimes: Any, **arguments: Any) -> Dataset:
    return Dataset.from_table(FRAME, regimes=regimes, **arguments)


@settings(max_examples=40)
@given(n=st.integers(2, 60), fraction=st.floats(0.01, 0.99), seed=st.integers(0, 5))
def test_split_is_a_partition_of_the_right_size(n: int, fraction: float, seed: int) -> None:
    x = np.arange(2.0 * n).reshape(n, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        data = Dataset.from_table(x, regimes=np.arange(n) % 3)
    first, second = data.split(fraction, seed)
    assert first.n_rows == min(max(round(fraction * n), 1), n - 1)
    assert sorted([*first.row_index, *second.row_index]) == list(range(n))
    for part in (first, second):
        np.testing.assert_array_equal(part.x, x[part.row_index])
        np.testing.assert_array_equal(part.regimes, part.row_index % 3)
        assert (np.diff(part.row_index) > 0).all()
        assert part.preprocessor is data.preprocessor


def test_split_spreads_regimes_and_depends_only_on_the_seed() -> None:
    x = np.random.default_rng(0).normal(size=(1000, 2))
    data = Dataset.from_table(x, regimes=np.repeat([0, 1, 2], [900, 90, 10]))
    first, second = data.split(0.8, 3)
    assert np.bincount(second.regimes).tolist() == [180, 18, 2]
    again, _ = data.split(0.8, np.random.RandomState(3))
    np.testing.assert_array_equal(first.row_index, again.row_index)
    other, _ = data.split(0.8, np.random.default_rng(3))
    assert not np.array_equal(first.row_index, other.row_index)
    for bad in (0.0, 1.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="strictly between"):
            data.split(bad)
    with pytest.raises(ValueError, match="Cannot split 1"):
        data.take([0]).split(0.5)


def test_take_allows_repeats_and_pickle_keeps_everything() -> None:
    data = labelled([0, 1, 2] * 4, targets={1: "a", 2: "b"})
    part = data.take([3, 3, 0])
    assert part.row_index.tolist() == [3, 3, 0]
    np.testing.assert_array_equal(part.z, data.z[[3, 3, 0]])
    again = pickle.loads(pickle.dumps(data))
    np.testing.assert_array_equal(again.z, data.z)
    assert again.regime_labels == data.regime_labels


def test_content_hash_sees_values_and_names_only() -> None:
    base = Dataset.from_table(FRAME).content_hash()
    other = pytest.importorskip("polars").DataFrame(FRAME.to_dict("list"))
    assert base == Dataset.from_table(other, regimes=[0] * 12, transform="rank-gaussian").content_hash()
    fixed = Dataset.from_table([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]).content_hash()
    assert (
        fixed == "d388229b1f63a8ab24f11ebabd89ee9d85bcf7eb52ff6d23ee8e48dc3e6930b8"
    )  # provenance: must not change between versions
    assert base != Dataset.from_table(FRAME.rename(columns={"a": "q"})).content_hash()
    changed = VALUES.copy()
    changed[0, 0] = np.nextafter(changed[0, 0], 9)
    assert base != Dataset.from_table(pd.DataFrame(changed, columns=list("abc"))).content_hash()
    assert base != Dataset.from_table(FRAME.iloc[::-1]).content_hash()


def test_parts_that_do_not_fit_together_are_refused() -> None:
    data = Dataset.from_table(FRAME)
    parts = {"x": data.x, "columns": data.columns, "preprocessor": data.preprocessor}
    two = {"regimes": np.zeros(12, int), "regime_labels": (0, 1)}
    for wrong, message in (
        ({"columns": ("a", "b")}, "2 names"),
        ({"row_index": np.arange(3)}, "3 rows"),
        ({"regimes": np.zeros(3, int), "regime_labels": (0,)}, "one entry per row"),
        ({"regimes": np.full(12, 2), "regime_labels": (0, 1)}, "must lie in -1 .. 1"),
        ({**two, "targets": np.ones((2, 3), np.int8)}, "row 0 zero"),
        ({**two, "targets": np.zeros((3, 3), np.int8)}, r"shape \(2, 3\)"),
    ):
        with pytest.raises(ValueError, match=message):
            Dataset(**{**parts, **wrong})  # type: ignore[arg-type]


def test_groups_stay_together_in_a_split():
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(20), 5))
    regimes = groups % 2
    data = Dataset.from_table(rng.normal(size=(100, 2)), groups=groups, regimes=regimes)
    train, test = data.split(0.7, random_state=1)
    assert (train.n_groups, test.n_groups) == (14, 6)
    assert not set(train.groups) & set(test.groups)
    assert np.unique(train.groups[train.regimes == 0]).size == 7  # labels are spread over both parts
    with pytest.raises(ValueError, match="1 group"):
        Dataset.from_table(rng.normal(size=(10, 2)), groups=["a"] * 10).split(0.5)


def test_groups_and_labels_of_rows_that_are_used():
    X = np.array([[0.0, 1.0], [np.nan, 2.0], [1.0, 5.0], [2.0, 3.0], [4.0, 4.0]])
    data = Dataset.from_table(
        X, groups=["p", "p", None, "q", "p"], regimes=["x", "y", None, None, None], missing="drop",
        observational=None,
    )  # fmt: skip
    np.testing.assert_array_equal(data.groups, [0, 2, 1, 0])
    assert data.group_labels == ("p", "q")
    assert data.labels() == ["x", None, None, "x"]  # the other label went with its row
    assert data.n_groups == 3
    np.testing.assert_array_equal(data.take([3, 1]).groups, [0, 2])
