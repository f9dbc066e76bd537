"""What a row owes to time, its past and its batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from latentdo.data import Background, Circumstances, Dataset
from latentdo.data.background import HARMONICS

PHI = np.array([0.9, 0.5, 0.8])
GRAPH = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
MINUTES = 4000


def remembering(n, rng, shift=None):
    """Three metrics, ``a -> b -> c``, whose noise remembers; ``shift [n, 3]`` is added to it."""
    noise = np.zeros((n + 50, 3))
    for t in range(1, len(noise)):
        noise[t] = PHI * noise[t - 1] + rng.standard_normal(3) * np.sqrt(1.0 - PHI**2)
    x = noise[50:].copy() + (0.0 if shift is None else shift)
    x[:, 1] += 0.8 * x[:, 0]
    x[:, 2] -= 0.6 * x[:, 1]
    return x


@pytest.fixture(scope="module")
def calm():
    return remembering(MINUTES, np.random.default_rng(1000))


def in_order(n):
    return Circumstances(time=np.arange(float(n)))


def test_what_is_new_has_the_graph_of_lag_zero_and_no_memory(calm):
    data = Dataset.from_table(calm, time=np.arange(MINUTES)).explained(lags=2, periods=())
    z = data.z[5:]
    np.testing.assert_allclose(z.std(axis=0), 1.0, atol=0.05)
    for lag in (1, 2, 5):
        assert np.abs((z[lag:] * z[:-lag]).mean(axis=0)).max() < 4.0 / np.sqrt(MINUTES)
    # c depends on a only through b, now as before; not so in the rows themselves, where the past is in the way
    partial = np.linalg.inv(np.corrcoef(z.T))
    assert abs(partial[0, 2]) < 0.08 < 0.3 < abs(partial[0, 1])


def test_lagged_causes_are_the_own_past_and_that_of_causes(calm):
    data = Dataset.from_table(calm, time=np.arange(MINUTES)).explained(lags=2, periods=())
    found = data.background.lagged(data.preprocessor.forward(calm), data.where, GRAPH.astype(np.int8))
    np.testing.assert_array_equal(found[0], np.eye(3, dtype=int) + GRAPH)  # of noise that remembers
    assert found[1].sum() <= 1


def test_rows_without_a_past_are_measured_by_their_own_spread(calm):
    time = np.arange(MINUTES) + 100.0 * (np.arange(MINUTES) >= 2000)
    data = Dataset.from_table(calm, time=time).explained(lags=1, periods=())
    assert (data.unit[[0, 2000]] > data.unit[1] + 0.1).all()
    before = data.where.before(2, 1.0)
    assert (before[:, [0, 2000]] == -1).all()
    assert before[0, 2001] == 2000
    assert before[1, 2001] == -1


def test_series_and_order_of_rows(calm):
    series = np.repeat(["b", "a"], [2500, 1500])
    order = np.random.default_rng(0).permutation(MINUTES)
    frame = pd.DataFrame(calm, columns=list("abc"))
    time = np.arange(MINUTES)
    one = Dataset.from_table(frame, time=time, series=series).explained(lags=2, periods=())
    other = Dataset.from_table(frame.iloc[order], time=time[order], series=series[order]).explained(
        lags=2, periods=()
    )
    np.testing.assert_allclose(one.z[order], other.z, atol=1e-8)
    assert (one.where.before(1, 1.0)[0, [0, 2500]] == -1).all()


def test_cycles_are_taken_away_and_others_are_not_invented():
    rng = np.random.default_rng(1001)
    stamps = pd.Timestamp("2024-03-04", tz="UTC") + pd.to_timedelta(np.arange(6000), unit="min")
    hours = np.arange(6000) / 60.0
    x = np.column_stack([3.0 * np.sin(2 * np.pi * hours / 24), np.zeros(6000)]) + rng.standard_normal(
        (6000, 2)
    )
    data = Dataset.from_table(x, time=stamps)
    assert data.where.cycles("auto") == (86_400.0,)  # two weeks are not covered
    assert data.where.cycles(["day", 1800.0]) == (86_400.0, 1800.0)
    found = data.explained(lags=0, periods=data.where.cycles("auto"))
    assert np.count_nonzero(found.background.first[1:, 0]) <= 4
    assert np.count_nonzero(found.background.first[1:, 1]) <= 1
    assert abs(np.corrcoef(found.z[:, 0], x[:, 0] - 3.0 * np.sin(2 * np.pi * hours / 24))[0, 1]) > 0.999
    assert found.background.first.shape[0] == 1 + 2 * HARMONICS


def test_names_of_cycles_need_dates():
    where = in_order(100)
    assert where.cycles("auto") == ()
    assert where.cycles(24.0) == (24.0,)
    with pytest.raises(ValueError, match=r"'day'.*dates"):
        where.cycles("day")


def test_a_level_that_is_left_for_a_while_is_new_in_all_its_rows():
    shift = np.zeros((MINUTES, 3))
    shift[1000:1040, 0] = shift[3000:3030, 0] = 5.0
    x = remembering(MINUTES, np.random.default_rng(1002), shift)
    data = Dataset.from_table(x, time=np.arange(MINUTES)).explained(
        lags=2, periods=(), adjacency=GRAPH.astype(np.int8)
    )
    moved = data.background.shifts(data.preprocessor.forward(x), data.where)
    np.testing.assert_array_equal(np.flatnonzero(moved[:, 0]), np.flatnonzero(shift[:, 0]))
    inside = shift[:, 0] > 0.0
    assert data.z[inside, 0].min() > 4.0  # of 9 standard deviations of what is new
    assert abs(data.z[~inside, 0].mean()) < 0.1
    assert np.abs(data.settled.z[inside].mean(axis=0)).max() < 1.0


@pytest.mark.parametrize("seed", range(1003, 1008))
def test_heavy_tails_are_no_shifts_of_level(seed):
    rng = np.random.default_rng(seed)
    x = np.zeros((3000, 4))
    for t in range(1, 3000):
        x[t] = 0.9 * x[t - 1] + rng.standard_t(3.0, 4)
    data = Dataset.from_table(x, time=np.arange(3000)).explained(
        lags=1, periods=(), adjacency=np.zeros((4, 4), dtype=np.int8)
    )
    assert data.settled is data


def test_a_level_that_is_not_yet_left_again():
    shift = np.zeros((MINUTES, 3))
    shift[-60:, 1] = 8.0
    x = remembering(MINUTES, np.random.default_rng(1011), shift)
    data = Dataset.from_table(x, time=np.arange(MINUTES)).explained(
        lags=1, periods=(), adjacency=GRAPH.astype(np.int8)
    )
    moved = data.background.shifts(data.preprocessor.forward(x), data.where)
    begun = np.flatnonzero(moved[:, 1])
    assert abs(begun[0] - (MINUTES - 60)) <= 3
    np.testing.assert_array_equal(begun, np.arange(begun[0], MINUTES))


def test_batches_have_levels_and_scales():
    rng = np.random.default_rng(1008)
    batch = np.repeat(["p", "q", "r"], [600, 300, 100])
    level, scale = {"p": 0.0, "q": 5.0, "r": -2.0}, {"p": 1.0, "q": 3.0, "r": 0.5}
    truth = rng.standard_normal((1000, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    x = truth * np.array([scale[b] for b in batch])[:, None] + np.array([level[b] for b in batch])[:, None]
    data = Dataset.from_table(x, batch=batch).explained(lags=0, periods=())
    for name in "pqr":
        z = data.z[batch == name]
        assert np.abs(np.median(z, axis=0)).max() < 0.01
        np.testing.assert_allclose(z.std(axis=0), 1.0, rtol=0.25)
    assert np.corrcoef(data.z.T)[0, 1] == pytest.approx(0.8, abs=0.03)
    assert abs(np.corrcoef(x.T)[0, 1]) > 0.9


def test_regimes_that_are_known_do_not_move_batches():
    rng = np.random.default_rng(1009)
    batch = np.repeat([0, 1], 500)
    regime = np.zeros(1000, dtype=int)
    regime[600:] = 1  # most of the second batch
    x = rng.standard_normal((1000, 1)) + 4.0 * regime[:, None] + 2.0 * batch[:, None]
    blind = Dataset.from_table(x, batch=batch).explained(lags=0, periods=())
    seeing = Dataset.from_table(x, batch=batch).explained(
        lags=0, periods=(), responsibilities=np.eye(2)[regime]
    )
    plain = (batch == 1) & (regime == 0)
    assert blind.z[plain].mean() < -1.0
    assert abs(seeing.z[plain].mean()) < 0.3


def test_new_batches_need_rows_and_names():
    rng = np.random.default_rng(1010)
    data = Dataset.from_table(rng.standard_normal((200, 2)), batch=np.repeat(["p", "q"], 100))
    background = data.explained(lags=0, periods=()).background
    new = Circumstances(batch=np.zeros(40, dtype=np.int64), batch_names=("s",))
    expected, unit = background.describe(7.0 + rng.standard_normal((40, 2)), new)
    np.testing.assert_allclose(expected, 7.0, atol=0.7)
    assert (unit > 0.5).all()
    with pytest.raises(ValueError, match=r"batch 's'.*5 rows"):
        background.describe(rng.standard_normal((5, 2)), new.take(np.arange(5)))
    with pytest.raises(ValueError, match="pass the batch"):
        background.describe(rng.standard_normal((5, 2)), Circumstances())


def test_arrays_come_back_and_forgeries_do_not(calm):
    data = Dataset.from_table(calm, time=np.arange(MINUTES)).explained(lags=2, periods=(1440.0,))
    arrays = data.background.to_arrays()
    again = Background.from_arrays(arrays, (), 3)
    z = data.preprocessor.forward(calm)
    for one, other in zip(
        data.background.describe(z, data.where), again.describe(z, data.where), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    for name, value in (
        ("later", np.zeros((2, 3))),
        ("later_scale", -np.ones(3)),
        ("first", np.full_like(arrays["first"], np.nan)),
        ("lags", np.array(7)),
        ("periods", np.array([-1.0])),
        ("root", np.zeros((2, 2))),
    ):
        with pytest.raises(ValueError, match="background"):
            Background.from_arrays({**arrays, name: value}, (), 3)
    with pytest.raises(ValueError, match="not complete"):
        Background.from_arrays({"lags": np.array(0)}, (), 3)


def test_circumstances_that_cannot_be():
    good = Circumstances(time=np.arange(3.0), batch=np.array([0, 1, 1]), batch_names=("p", "q"))
    good.check(3)
    for wrong in (
        replace(good, time=np.arange(2.0)),
        replace(good, time=np.array([0.0, np.nan, 1.0])),
        replace(good, batch=np.array([0, 1, 2])),
        replace(good, series=np.array([0, -1, 0])),
        Circumstances(series=np.zeros(3, dtype=np.int64)),
    ):
        with pytest.raises(ValueError, match=r"time|batch|series"):
            wrong.check(3)


def test_a_batch_of_few_rows_has_the_scale_of_the_others():
    rng = np.random.default_rng(1012)
    x = np.vstack([rng.standard_normal((200, 2)), [[50.0, -50.0]]])
    data = Dataset.from_table(x, batch=["p"] * 200 + ["q"]).explained(lags=0, periods=())
    np.testing.assert_allclose(data.unit[-1], data.unit[0])
    np.testing.assert_allclose(data.z[-1], 0.0, atol=1e-9)


def test_irregular_gaps_leave_most_rows_their_past():
    rng = np.random.default_rng(1013)
    where = Circumstances(time=np.cumsum(rng.exponential(1.0, 2000)))
    before = where.before(1, where.usual_gap())
    assert 0.85 < (before >= 0).mean() < 0.95
