"""Transforms: inverses, Jacobians, domains, and that a saved preprocessor is the same one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from latentdo.data.transforms import TRANSFORMS, Preprocessor


def positive_rows(n: int = 300, d: int = 3, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.lognormal(mean=[0.0, 2.0, -3.0][:d], sigma=[1.0, 0.3, 2.0][:d], size=(n, d))


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_forward_standardises_and_inverse_undoes_it(transform: str) -> None:
    x = positive_rows()
    prep = Preprocessor.fit(x, transform)
    z = prep.forward(x)
    np.testing.assert_allclose(z.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(z.std(axis=0), 1.0, rtol=1e-12)
    np.testing.assert_allclose(prep.inverse(z), x, rtol=1e-10)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_jacobian_equals_finite_differences_also_outside_the_range(transform: str) -> None:
    x = positive_rows()
    prep = Preprocessor.fit(x, transform)
    new = np.vstack([positive_rows(50, seed=1), x.max(axis=0) * 1.7, x.min(axis=0) * 0.3])
    step = 1e-7 * new
    for j, (knots, _) in enumerate(prep.knots):  # else a difference would straddle a kink of the map
        assert (np.abs(new[:, [j]] - knots) > step[:, [j]]).all()
    numeric = np.zeros(len(new))
    for j in range(x.shape[1]):
        up, down = new.copy(), new.copy()
        up[:, j] += step[:, j]
        down[:, j] -= step[:, j]
        numeric += np.log((prep.forward(up)[:, j] - prep.forward(down)[:, j]) / (2 * step[:, j]))
    np.testing.assert_allclose(prep.log_jacobian(new), numeric, atol=1e-5)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_density_in_the_users_units_integrates_to_one(transform: str) -> None:
    x = positive_rows(400, 1)
    prep = Preprocessor.fit(x, transform)
    low, high = {"none": (-40.0, 60.0), "log": (1e-6, 400.0), "log1p": (-0.999999, 400.0)}.get(
        transform, (-20, 40)
    )
    edges = np.unique(np.concatenate([np.linspace(low, high, 200_001), np.geomspace(1e-9, high, 100_001)]))
    edges = edges[edges >= low]
    middle = (edges[1:] + edges[:-1])[:, None] / 2
    density = np.exp(stats.norm.logpdf(prep.forward(middle)[:, 0]) + prep.log_jacobian(middle))
    assert (density * np.diff(edges)).sum() == pytest.approx(1.0, abs=2e-3)


finite = st.floats(-1e6, 1e6, allow_nan=False, allow_subnormal=False)


@settings(max_examples=60)
@given(
    x=arrays(np.float64, st.tuples(st.integers(2, 40), st.integers(1, 3)), elements=finite),
    new=arrays(np.float64, (5,), elements=st.floats(-1e7, 1e7, allow_nan=False, allow_subnormal=False)),
)
def test_rank_gaussian_is_increasing_and_invertible_everywhere(x: np.ndarray, new: np.ndarray) -> None:
    try:
        prep = Preprocessor.fit(x, "rank-gaussian")
    except ValueError as error:
        assert "vary too little" in str(error)  # noqa: PT017 - a spread below float64 is refused, not mangled
        return
    rows = np.repeat(np.unique(new)[:, None], x.shape[1], axis=1)
    z = prep.forward(rows)
    assert np.isfinite(z).all()
    assert np.isfinite(prep.log_jacobian(rows)).all()
    back = prep.inverse(z)
    # where the map is flat, float64 resolves z only to 1e-15 of its size: that much of x is lost, and no more
    flattest = np.array([(np.diff(xs) / np.diff(zs)).max(initial=1.0) for xs, zs in prep.knots])
    np.testing.assert_allclose(back, rows, rtol=1e-9, atol=1e-13 * (1.0 + np.abs(z).max()) * flattest.max())
    assert (np.diff(z, axis=0) >= 0).all()


@settings(max_examples=60)
@given(arrays(np.float64, st.tuples(st.integers(2, 30), st.integers(1, 4)), elements=st.floats(1e-3, 1e6)))
def test_logarithms_round_trip(x: np.ndarray) -> None:
    for transform in ("none", "log", "log1p"):
        try:
            prep = Preprocessor.fit(x, transform)
        except ValueError as error:
            assert "vary too little" in str(error)  # noqa: PT017
            continue
        np.testing.assert_allclose(prep.inverse(prep.forward(x)), x, rtol=1e-8, atol=1e-8)


def test_rank_gaussian_makes_any_marginal_normal() -> None:
    x = np.random.default_rng(0).standard_t(df=2, size=(5000, 1)) ** 3
    prep = Preprocessor.fit(x, "rank-gaussian")
    assert stats.kstest(prep.forward(x)[:, 0], "norm").statistic < 0.02
    fresh = np.random.default_rng(1).standard_t(df=2, size=(5000, 1)) ** 3
    assert stats.kstest(prep.forward(fresh)[:, 0], "norm").pvalue > 1e-4


def test_rank_gaussian_density_holds_up_on_new_rows() -> None:
    """The slopes are a density estimate: on new rows it must be close to the true density, not overfitted."""
    rng = np.random.default_rng(0)
    train, test = rng.gamma(2.0, size=(4000, 1)), rng.gamma(2.0, size=(4000, 1))
    prep = Preprocessor.fit(train, "rank-gaussian")
    density = stats.norm.logpdf(prep.forward(test)[:, 0]) + prep.log_jacobian(test)
    truth = stats.gamma(2.0).logpdf(test[:, 0])
    assert 0.0 < (truth - density).mean() < 0.05


def test_rank_gaussian_handles_ties() -> None:
    x = np.array([[0.0]] * 60 + [[1.0]] * 30 + [[5.0]] * 10)
    prep = Preprocessor.fit(x, "rank-gaussian")
    z = prep.forward(np.array([[0.0], [0.5], [1.0], [3.0], [5.0], [9.0]]))[:, 0]
    assert (np.diff(z) > 0).all()
    np.testing.assert_allclose(prep.inverse(prep.forward(x)), x, atol=1e-12)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_constant_columns_keep_unit_scale(transform: str) -> None:
    prep = Preprocessor.fit(np.array([[0.1, 1.0], [0.1, 2.0], [0.1, 4.0]]), transform)
    assert prep.scale[0] == 1.0
    np.testing.assert_array_equal(prep.forward(np.array([[0.1, 1.0]]))[:, 0], 0.0)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_saved_state_gives_identical_results(transform: str) -> None:
    x = positive_rows()
    prep = Preprocessor.fit(x, transform, columns=("a", "b", "c"))
    again = Preprocessor.from_dict(json.loads(json.dumps(prep.to_dict())))
    np.testing.assert_array_equal(again.forward(x), prep.forward(x))
    np.testing.assert_array_equal(again.log_jacobian(x), prep.log_jacobian(x))
    assert again.to_dict() == prep.to_dict()
    assert again.columns == ("a", "b", "c")


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_one_column_alone_agrees_with_the_table(transform: str) -> None:
    x = positive_rows()
    prep = Preprocessor.fit(x, transform, columns=("a", "b", "c"))
    np.testing.assert_array_equal(prep.forward_column("b", x[:, 1]), prep.forward(x)[:, 1])
    np.testing.assert_allclose(prep.inverse_column("b", prep.forward(x)[:, 1]), x[:, 1], rtol=1e-10)
    with pytest.raises(ValueError, match="no variable 'q'"):
        prep.forward_column("q", [1.0])


def test_logarithms_name_the_cell_and_the_remedy() -> None:
    x = positive_rows(10)
    bad = x.copy()
    bad[4, 1] = 0.0
    with pytest.raises(ValueError, match=r"row 4 .counted from 0., column 'b' is 0 .*log1p.*rank-gaussian"):
        Preprocessor.fit(bad, "log", columns=("a", "b", "c"))
    bad[4, 1] = -1.0
    with pytest.raises(ValueError, match=r'"log1p" needs values above -1, but row 4 .*column \'X2\''):
        Preprocessor.fit(bad, "log1p")
    with pytest.raises(ValueError, match="row 104"):
        Preprocessor.fit(bad, "log", row_index=np.arange(100, 110))
    prep = Preprocessor.fit(x, "log")
    with pytest.raises(ValueError, match=r"row 4 .*column 'X2'"):
        prep.forward(bad)
    with pytest.raises(ValueError, match=r"row 4 .*column 'X2'"):
        prep.log_jacobian(bad)


@pytest.mark.parametrize(
    ("x", "transform", "message"),
    [
        ([[1.0], [2.0]], "sqrt", "transform='sqrt' is unknown"),
        ([1.0, 2.0], "none", "2D array"),
        (np.zeros((0, 2)), "none", "at least one row"),
        ([[1e200], [0.0]], "none", "'X1' are too large"),
        ([[0.0], [5e-324]], "none", "'X1' vary too little"),
    ],
)
def test_what_cannot_be_fitted_is_refused(x: object, transform: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Preprocessor.fit(x, transform)  # type: ignore[arg-type]


def test_wrong_width_is_refused_and_arrays_are_frozen() -> None:
    prep = Preprocessor.fit(positive_rows())
    with pytest.raises(ValueError, match="3 columns, got shape"):
        prep.forward(np.zeros((4, 2)))
    with pytest.raises(ValueError, match="read-only"):
        prep.mean[0] = 1.0
    with pytest.raises(ValueError, match="unknown to this version"):
        Preprocessor.from_dict({**prep.to_dict(), "transform": "sqrt"})


def test_overflow_of_the_inverse_is_infinite_without_a_warning() -> None:
    prep = Preprocessor.fit(positive_rows(), "log")
    assert np.isinf(prep.inverse(np.full((1, 3), 1e5))).all()
