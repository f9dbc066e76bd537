"""Two mechanisms in one variable: the likelihood rises, and a planted minority is found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from latentdo.solvers.search.intervened_rows import knowing, minority_table, two_mechanisms
from latentdo.solvers.search.local_scores import FREE

NOTHING = knowing()
EACH, ONCE = np.empty(0, dtype=np.int64), np.empty(0)  # rows on their own, that count once


def _planted(seed=0, n=1500, share=0.15, gap=4.0, imperfect=False):
    """``y = 1.5 a - b + noise``, but a minority follows a mechanism of its own."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    y = x @ np.array([1.5, -1.0]) + 0.3 * rng.normal(size=n)
    minority = rng.random(n) < share
    other = gap + (x @ np.array([-2.0, 1.0]) if imperfect else 0.0) + 0.5 * rng.normal(size=n)
    y[minority] = other[minority]
    return np.column_stack([np.ones(n), x, y]), minority


def _start(rows):
    values = rows[:, -1]
    return 0.9 * (values > np.quantile(values, 0.9))


@pytest.mark.parametrize("imperfect", [False, True])
def test_loglik_never_falls(imperfect):
    rows, _ = _planted(gap=1.0, imperfect=imperfect)
    second, weights = _start(rows), np.ones(len(rows))
    n_second = 3 if imperfect else 1
    values = [two_mechanisms(rows, 3, n_second, NOTHING, weights, second, 1, 0.0, 0.0) for _ in range(40)]
    assert np.diff(values).min() > -1e-8 * abs(values[-1])
    assert values[-1] > values[0] + 10.0


@pytest.mark.parametrize("imperfect", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_planted_minority_is_recovered(imperfect, seed):
    rows, minority = _planted(seed, imperfect=imperfect)
    second = _start(rows)
    loglik = two_mechanisms(
        rows, 3, 3 if imperfect else 1, NOTHING, np.ones(len(rows)), second, 200, 1e-6, 0.0
    )
    assert np.isfinite(loglik)
    assert ((second > 0.5) == minority).mean() > 0.98


def test_loglik_is_that_of_the_mixture():
    """At a fixed point, recompute everything from the posterior with numpy and scipy."""
    rows, _ = _planted()
    second = _start(rows)
    loglik = two_mechanisms(rows, 3, 1, NOTHING, np.ones(len(rows)), second, 2000, 1e-12, 0.0)
    y, design, first = rows[:, -1], rows[:, :3], 1.0 - second
    root = np.sqrt(first)
    beta = np.linalg.lstsq(design * root[:, None], y * root, rcond=None)[0]
    sigma = np.sqrt(first @ (y - design @ beta) ** 2 / first.sum())
    mean = second @ y / second.sum()
    tau = np.sqrt(second @ (y - mean) ** 2 / second.sum())
    expected = np.logaddexp(
        np.log(first.mean()) + norm(design @ beta, sigma).logpdf(y),
        np.log(second.mean()) + norm(mean, tau).logpdf(y),
    ).sum()
    assert loglik == pytest.approx(expected, rel=1e-9)


def test_weights_count_like_repeated_rows():
    rows, _ = _planted(n=300)
    weights = np.where(np.arange(300) % 3 == 0, 2.0, 1.0)
    one = _start(rows)
    repeated = np.repeat(np.arange(300), weights.astype(int))
    two = one[repeated].copy()
    value = two_mechanisms(rows, 3, 1, NOTHING, weights, one, 20, 0.0, 0.0)
    again = two_mechanisms(
        np.ascontiguousarray(rows[repeated]), 3, 1, NOTHING, np.ones(400), two, 20, 0.0, 0.0
    )
    assert value == pytest.approx(again, rel=1e-10)
    np.testing.assert_allclose(one[repeated], two, atol=1e-9)


def test_the_first_mechanism_may_be_given():
    rows, minority = _planted()
    base = norm(rows[:, 1:3] @ np.array([1.5, -1.0]), 0.3).logpdf(rows[:, -1])
    second = _start(rows)
    view = np.ascontiguousarray(rows[:, [0, -1]])
    two_mechanisms(view, 0, 1, knowing(log_density=base), np.ones(len(rows)), second, 200, 1e-6, 0.0)
    assert ((second > 0.5) == minority).mean() > 0.98


def test_a_dying_component_is_said_so():
    rows, _ = _planted()
    second = np.zeros(len(rows))
    assert two_mechanisms(rows, 3, 1, NOTHING, np.ones(len(rows)), second, 20, 0.1, 0.0) == -np.inf


@pytest.mark.parametrize("imperfect", [False, True])
def test_minorities_do_not_hide_the_parents(imperfect):
    """A third of the rows are intervened on; the parents of the rest still win, and the limits hold."""
    rng = np.random.default_rng(4)
    rows, _ = _planted(4, n=800, share=0.3, imperfect=imperfect)
    z = np.column_stack([rows[:, 1:], rng.normal(size=(800, 1))])
    rank = np.argsort(np.argsort(z[:, 2])) / 800
    starts = 0.9 * np.column_stack([rank < 0.1, rank > 0.9])
    candidates, edge_prior = np.array([0, 1, 3]), np.zeros((4, 4))
    table, posterior = minority_table(z, 2, candidates, imperfect, 0, 3, edge_prior, starts, 40, EACH, ONCE)
    assert table.argmax() == 0b011
    assert posterior.shape == (8, 800)
    limited, _ = minority_table(z, 2, candidates, imperfect, 0b100, 2, edge_prior, starts, 40, EACH, ONCE)
    assert np.isfinite(limited[[0b100, 0b101, 0b110]]).all()
    assert (limited[[0b000, 0b001, 0b010, 0b011, 0b111]] == -np.inf).all()
    prior = edge_prior.copy()
    prior[0, 2] = -1e6
    assert (
        minority_table(z, 2, candidates, imperfect, 0, 3, prior, starts, 40, EACH, ONCE)[0].argmax() & 1 == 0
    )


def test_rows_of_which_nothing_is_known_are_assigned_as_by_labels_that_say_nothing():
    rng = np.random.default_rng(3)
    x = rng.normal(size=400)
    y = np.where(rng.random(400) < 0.2, rng.normal(3.0, 0.5, 400), x + 0.3 * rng.normal(size=400))
    y[0] = 1e3  # so far out that its odds are beyond the range of numbers
    rows = np.column_stack([np.ones(400), x, y])
    codes = np.full(1, FREE, dtype=np.int8)
    found = []
    for known in (knowing(), knowing(labels=np.full(400, -1), codes=codes)):
        second = 0.9 * (y > 2.0)
        value = two_mechanisms(rows, 2, 1, known, np.ones(400), second, 15, 0.0, 0.0)
        found.append((value, second))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-12)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-12)
