"""Tables with missing cells: what is refused, what is kept, and what is said of them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata

from latentdo.data import Dataset, DataWarning
from latentdo.data.missing import dependences, missing_by_regime
from latentdo.data.transforms import Preprocessor


def table(n=400, d=3, seed=0):
    return pd.DataFrame(np.random.default_rng(seed).normal(2.0, 3.0, size=(n, d)), columns=list("abcdef")[:d])


def with_holes(frame, share=0.2, seed=1):
    return frame.mask(np.random.default_rng(seed).random(frame.shape) < share)


def read(frame, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return Dataset.from_table(frame, missing="model", **options)


def test_rows_are_kept_and_standardised_by_what_is_seen():
    holes = with_holes(table())
    data = read(holes)
    assert data.n_rows == len(holes)
    np.testing.assert_array_equal(data.missing, holes.isna())
    np.testing.assert_array_equal(np.isnan(data.z), holes.isna())
    np.testing.assert_allclose(np.nanmean(data.z, axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(data.z, axis=0), 1.0)


@pytest.mark.parametrize("transform", ["none", "log", "log1p", "rank-gaussian"])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_column_is_transformed_as_if_its_holes_were_not_there(transform, weighted):
    x = np.exp(table().to_numpy() / 5.0)
    holes = np.where(np.random.default_rng(1).random(x.shape) < 0.3, np.nan, x)
    weights = np.random.default_rng(2).integers(1, 4, len(x)).astype(float) if weighted else None
    together = Preprocessor.fit(holes, transform, weights=weights)
    change = np.zeros(len(x))
    for j in range(3):
        seen = ~np.isnan(holes[:, j])
        alone = Preprocessor.fit(
            holes[seen, j : j + 1], transform, weights=None if weights is None else weights[seen]
        )
        np.testing.assert_allclose(
            together.forward(holes)[seen, j], alone.forward(holes[seen, j : j + 1])[:, 0]
        )
        change[seen] += alone.log_jacobian(holes[seen, j : j + 1])
    np.testing.assert_allclose(together.log_jacobian(holes), change)
    assert np.isnan(together.forward(holes)[np.isnan(holes)]).all()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda x: x.assign(b=np.nan), "'b'.*drop"),
        (lambda x: x.assign(b=np.where(np.arange(len(x)) == 7, np.inf, x["b"])), "inf in row 7.*'b'.*empty"),
        (lambda x: x.assign(c=np.where(np.arange(len(x)) < 9, 1.5, np.nan)), "Constant.*'c'"),
    ],
)
def test_what_cannot_be_used_is_named(spoil, words):
    with pytest.raises(ValueError, match=words):
        read(spoil(with_holes(table())))


def test_columns_with_atoms_are_recognised_beside_holes():
    rng = np.random.default_rng(0)
    x = table(2000)
    x["a"] = np.maximum(x["a"], np.quantile(x["a"], 0.2))
    x["b"] = x["b"].round(0)
    holes = with_holes(x)
    whole, atoms = read(x).atoms, read(holes).atoms
    assert atoms.rounded == whole.rounded == (False, True, False)
    assert [mass.side for mass in atoms.masses[0]] == [mass.side for mass in whole.masses[0]] == [-1]
    spread = atoms.spread(holes.to_numpy(), rng)
    np.testing.assert_array_equal(np.isnan(spread), holes.isna())


def test_copies_are_found_beside_holes():
    x = table()
    holes = with_holes(x.assign(c=3.0 * x["a"] + 1.0), 0.1)
    with pytest.warns(DataWarning, match="copies.*'a' and 'c'"):
        Dataset.from_table(holes, missing="model")


def test_the_count_and_the_assumption_are_said():
    holes = with_holes(table())
    holes.iloc[5] = np.nan
    with pytest.warns(DataWarning, match="missing at random") as heard:
        Dataset.from_table(holes, missing="model")
    said = " ".join(str(one.message) for one in heard)
    assert f"{int(holes.isna().sum().sum())} cells" in said
    assert "'a'" in said
    assert f"({int(holes.isna().all(axis=1).sum())})" in said
    assert "depends" not in said


def test_cells_that_depend_on_another_column_are_said_to():
    x = table(800)
    holes = x.assign(
        b=x["b"].mask(x["a"].rank() / len(x) > np.random.default_rng(3).uniform(0.5, 1.5, len(x)))
    )
    with pytest.warns(DataWarning, match="depends on other columns: 'b' more often where 'a' is high"):
        Dataset.from_table(holes, missing="model")


def test_p_values_are_fair_and_corrected():
    """Of 200 tables without any dependence, 1 in 100 may have one that is said."""
    rng = np.random.default_rng(0)
    least = []
    for _ in range(200):
        x = rng.exponential(size=(120, 4))
        least.append(dependences(rng.random(x.shape) < 0.2, rankdata(x, axis=0), None)[0].p_value)
    assert np.mean(np.array(least) < 0.05) < 0.1
    assert np.mean(np.array(least) < 0.05) > 0.01


def test_rows_of_a_block_count_as_one():
    """Blocks that lack a column, and have their own level of another: as many tests as blocks, not as rows."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(100):
        blocks = np.repeat(np.arange(60), 10)
        level, missing = rng.normal(size=(60, 1))[blocks], (rng.random((60, 1)) < 0.5)[blocks]
        found.append([dependences(missing, level, by)[0].p_value < 0.05 for by in (None, blocks)])
    alone, together = np.mean(found, axis=0)
    assert together < 0.15 < 0.5 < alone


def test_a_column_that_a_regime_lacks_is_named():
    rng = np.random.default_rng(0)
    x = table(600).to_numpy()
    regime = np.repeat([0, 1, 1], 200)
    x[rng.random(600) < np.where(regime == 1, 0.4, 0.05), 2] = np.nan
    x[rng.random(600) < 0.1, 0] = np.nan
    said = missing_by_regime(x, ("a", "b", "c"), np.eye(2)[regime], ("none", "drug"), None)
    assert "'c' in" in said
    assert "'a'" not in said
    assert missing_by_regime(x[:, :2], ("a", "b"), np.eye(2)[regime], ("none", "drug"), None) == ""
