"""What columns are: found, said, coded, and refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from latentdo.data import Dataset, Kind, validate_rows
from latentdo.data.kinds import describe_kinds, looks_like_counts
from latentdo.data.transforms import Preprocessor

N = 400
RNG = np.random.default_rng(3)
TABLE = pd.DataFrame(
    {
        "weight": RNG.normal(size=N),
        "failed": RNG.integers(0, 2, N),
        "clicks": RNG.poisson(4.0, N),
        "tissue": RNG.choice(["liver", "skin", "lung"], N),
        "stage": pd.Categorical(RNG.choice(["low", "mid", "high"], N), ["low", "mid", "high"], ordered=True),
        "smoker": RNG.random(N) < 0.3,
        "height": RNG.normal(170.0, 9.0, N).round(),
    }
)


def kinds_of(table: Any, **more: Any) -> dict[str, str]:
    data = Dataset.from_table(table, **more)
    return {name: kind.kind for name, kind in zip(data.columns, data.kinds, strict=True)}


def test_kinds_are_found() -> None:
    data = Dataset.from_table(TABLE)
    words = ["continuous", "binary", "count", "categorical", "categorical", "binary", "continuous"]
    assert [kind.kind for kind in data.kinds] == words
    assert data.kinds[1].levels == ("0", "1")
    assert data.kinds[3] == Kind("categorical", ("liver", "lung", "skin"))
    assert data.kinds[4] == Kind("categorical", ("low", "mid", "high"), ordered=True)
    assert data.kinds[5].levels == ("False", "True")
    assert data.is_mixed
    said = describe_kinds(data.kinds, data.columns)
    assert "count: 'clicks'" in said
    assert "'tissue' (liver, lung, skin)" in said


def test_discrete_columns_are_left_as_they_are_and_continuous_ones_standardised() -> None:
    data = Dataset.from_table(TABLE)
    np.testing.assert_array_equal(data.z[:, 1], TABLE["failed"])
    np.testing.assert_array_equal(data.z[:, 2], TABLE["clicks"])
    np.testing.assert_array_equal(data.z[:, 3], TABLE["tissue"].map({"liver": 0, "lung": 1, "skin": 2}))
    alone = Dataset.from_table(TABLE[["weight", "height"]], kinds={"height": "continuous"})
    np.testing.assert_allclose(data.z[:, [0, 6]], alone.z, atol=1e-12)
    # No unit changes a probability.
    np.testing.assert_allclose(
        data.preprocessor.log_jacobian(data.x), alone.preprocessor.log_jacobian(alone.x)
    )
    np.testing.assert_allclose(data.preprocessor.inverse(data.z), data.x)


@pytest.mark.parametrize("transform", ["none", "log1p", "rank-gaussian"])
def test_the_table_comes_back_and_survives_a_file(transform: str) -> None:
    table = TABLE.assign(weight=np.exp(TABLE["weight"]))
    data = Dataset.from_table(table, transform=transform, kinds={"clicks": "count"})
    back = data.to_frame()
    assert back["tissue"].astype(str).tolist() == table["tissue"].tolist()
    assert back["stage"].cat.ordered
    assert back["smoker"].dtype == bool
    again = Dataset.from_table(back, kinds=dict(zip(data.columns, data.kinds, strict=True)))
    assert again.kinds == data.kinds
    loaded = Preprocessor.from_dict(data.preprocessor.to_dict())
    assert loaded.kinds == data.kinds
    np.testing.assert_array_equal(loaded.forward(data.x), data.z)


def test_continuous_tables_are_what_they_were() -> None:
    x = RNG.normal(size=(60, 3))
    data = Dataset.from_table(x)
    assert not data.is_mixed
    assert "kinds" not in data.preprocessor.to_dict()


def test_kinds_are_what_the_user_says() -> None:
    said = {"clicks": "continuous", "failed": "categorical", "height": "count", "smoker": "continuous"}
    found = kinds_of(TABLE, kinds=said)
    assert {name: found[name] for name in said} == said
    levels = Dataset.from_table(TABLE[["clicks", "weight"]], kinds={"clicks": "categorical"}).kinds[0].levels
    assert levels == tuple(str(value) for value in sorted(set(TABLE["clicks"])))


def test_a_transform_says_that_whole_numbers_are_measurements() -> None:
    assert kinds_of(TABLE[["clicks", "failed"]], transform="log1p") == {
        "clicks": "continuous",
        "failed": "binary",
    }


def test_levels_without_rows_are_left_out() -> None:
    table = TABLE[["weight", "stage"]][TABLE["stage"] != "mid"]
    assert Dataset.from_table(table).kinds[1] == Kind("binary", ("low", "high"), ordered=True)
    missing = TABLE[["weight", "tissue"]].copy()
    missing.loc[missing["tissue"] == "lung", "weight"] = np.nan
    data = Dataset.from_table(missing, missing="drop")
    assert data.kinds[1].levels == ("liver", "skin")
    assert set(data.z[:, 1]) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("draw", "is_count"),
    [
        (lambda rng, n: rng.poisson(0.3, n), True),
        (lambda rng, n: rng.poisson(40.0, n), True),
        (lambda rng, n: rng.negative_binomial(2, 0.05, n), True),
        (lambda rng, n: rng.poisson(np.where(rng.random(n) < 0.8, 40.0, 10.0)), True),
        (lambda rng, n: rng.poisson(3.0, n) * (rng.random(n) < 0.6), True),
        (lambda rng, n: rng.normal(120.0, 18.0, n).round(), False),
        (lambda rng, n: np.exp(rng.normal(8.0, 0.6, n)).round(), False),
        (lambda rng, n: rng.integers(0, 100, n), False),
        (lambda rng, n: np.arange(n), False),
        (lambda rng, n: rng.choice([1.0, 2.0, 3.0, 4.0, 5.0], n, p=[0.05, 0.1, 0.3, 0.35, 0.2]), False),
    ],
)
def test_counting_is_told_from_rounding(draw: Any, is_count: bool) -> None:
    assert looks_like_counts(draw(np.random.default_rng(5), 2000).astype(np.float64)) == is_count


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("no such column", {"kinds": {"click": "count"}}, r"kinds names 'click'.*'clicks'"),
    (
        "no such kind",
        {"kinds": {"clicks": "counts"}},
        r"'clicks' 'counts'.*continuous, binary, count, categorical",
    ),
    ("count of measurements", {"kinds": {"weight": "count"}}, r"'weight' count, but row 0 .*whole number"),
    ("three values are not binary", {"kinds": {"tissue": "binary"}}, r"'tissue' binary, but it has 3 levels"),
    ("counts are not binary", {"kinds": {"clicks": "binary"}}, r"'clicks' binary, but it has \d+ values"),
    ("text is not continuous", {"kinds": {"tissue": "continuous"}}, r"Non-numeric columns: 'tissue'"),
    ("text is no count", {"kinds": {"tissue": "count"}}, r"Non-numeric columns: 'tissue'"),
    (
        "measurements have no levels",
        {"kinds": {"weight": "categorical"}},
        r"'weight' has 400 levels.*50.*drop",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_contradictions_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Dataset.from_table(TABLE, **arguments)


def test_many_levels_are_refused_with_a_remedy() -> None:
    towns = TABLE.assign(town=[f"town {i % 200}" for i in range(N)])
    with pytest.raises(ValueError, match=r"'town' has 200 levels.*Join rare levels"):
        Dataset.from_table(towns)
    with pytest.raises(TypeError, match="dict from columns to kinds"):
        Dataset.from_table(TABLE, kinds="count")  # type: ignore[arg-type]


def test_text_that_may_be_a_mistake_is_asked_about() -> None:
    typo = TABLE.assign(weight=TABLE["weight"].astype(object)).astype({"weight": object})
    typo.loc[5, "weight"] = "high"
    with pytest.raises(ValueError, match=r"row 5.*'weight' is 'high'.*kinds=\{'weight': 'categorical'\}"):
        Dataset.from_table(typo)
    conditions = TABLE.assign(condition=TABLE["tissue"])
    with pytest.raises(ValueError, match=r"'condition' says.*regimes=.*kinds=\{'condition': 'categorical'\}"):
        Dataset.from_table(conditions)
    assert kinds_of(conditions, kinds={"condition": "categorical"})["condition"] == "categorical"


def test_new_rows_are_coded_like_the_fitted_ones() -> None:
    data = Dataset.from_table(TABLE)
    rows = TABLE.iloc[:7]
    np.testing.assert_array_equal(validate_rows(rows, data.columns, data.kinds), data.x[:7])
    # An array holds numbers: codes where levels have names.
    np.testing.assert_array_equal(validate_rows(data.x[:7], data.columns, data.kinds), data.x[:7])
    strange = rows.assign(tissue=["liver", "skin", "bone", "skin", "skin", "skin", "skin"])
    with pytest.raises(ValueError, match=r"row 2 .*'tissue' is 'bone'.*'liver', 'lung', 'skin'.*fit again"):
        validate_rows(strange, data.columns, data.kinds)
    with pytest.raises(ValueError, match=r"row 0 .*'clicks' is 2\.5.*whole numbers from 0"):
        validate_rows(rows.assign(clicks=2.5), data.columns, data.kinds)
    with pytest.raises(ValueError, match=r"NaN in row 1 .*'tissue'"):
        validate_rows(rows.assign(tissue=["liver", None, *["skin"] * 5]), data.columns, data.kinds)


def test_kinds_that_no_column_has_are_refused() -> None:
    for state in (("binary", ("a",)), ("count", ("a", "b")), ("categorical", ("a", "a")), ("fish", ())):
        with pytest.raises(ValueError, match=r"levels|kind"):
            Kind(*state)  # type: ignore[arg-type]
