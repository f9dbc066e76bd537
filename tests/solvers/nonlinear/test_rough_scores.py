"""Rough scores: the mixture of two mechanisms against numpy, and the order that the scores give."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo.graphs import is_dag
from latentdo.solvers.nonlinear import rough_scores
from latentdo.solvers.nonlinear.rough_scores import random_features, rough_graph
from latentdo.solvers.search.intervened_rows import knowing, two_mechanisms
from latentdo.solvers.search.local_scores import FREE, REFERENCE, TARGET
from latentdo.solvers.settings import FEWEST_MINORITY


@pytest.fixture(scope="module")
def table():
    """400 rows of ``y = |x|``, a quarter of them replaced; features, values and who was replaced."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 1))
    other = np.arange(400) % 4 == 0
    y = np.where(
        other, 2.0 + 0.3 * rng.standard_normal(400), np.abs(x[:, 0]) + 0.1 * rng.standard_normal(400)
    )
    return random_features(x, 10, rng), y, other


def _run(phi, y, start, iterations, *, groups=None, pinned=(), tolerance=-np.inf):
    groups = np.full(len(y), -1) if groups is None else groups
    second, rows = start.copy(), np.column_stack([phi, y])
    known = knowing(products=rows.T @ rows, labels=groups, codes=np.array(pinned, dtype=np.int8))
    value = two_mechanisms(
        rows, phi.shape[1], 1, known, np.ones(len(y)), second, iterations, tolerance, FEWEST_MINORITY
    )
    return value, second


def _start(y):
    return 0.02 + 0.9 * (np.argsort(np.argsort(y)) / len(y) > 0.8)


def _plainly(phi, y, second, iterations, groups, pinned):
    """The same in numpy, from the definition (rows that hardly belong to the smaller side do not count there)."""
    n = len(y)
    loglik = -np.inf
    for _ in range(iterations):
        share = second.mean()
        few = second if share < 0.5 else 1.0 - second
        few = np.where(few > 1e-3, few, 0.0)
        weights = 1.0 - few if share < 0.5 else few
        gram = (phi * weights[:, None]).T @ phi + 1e-7 * np.eye(phi.shape[1])
        residual = y - phi @ np.linalg.solve(gram, phi.T @ (weights * y))
        variance = np.average(residual**2, weights=1.0 - second)
        mean = np.average(y, weights=second)
        other = np.average((y - mean) ** 2, weights=second)
        a = np.log(1.0 - share) - 0.5 * (np.log(2 * np.pi * variance) + residual**2 / variance)
        b = np.log(share) - 0.5 * (np.log(2 * np.pi * other) + (y - mean) ** 2 / other)
        second = 1.0 / (1.0 + np.exp(a - b))
        terms = np.logaddexp(a, b)
        for g, pin in enumerate(pinned):
            rows = groups == g
            gain = (b - a)[rows].sum() - rows.sum() * np.log(share / (1.0 - share))
            hit = gain > 0.0 if pin == FREE else pin == TARGET
            second[rows] = hit
            terms[rows] = b[rows] if hit else a[rows]
        loglik = terms.sum()
    assert 0.0 < second.sum() < n
    return loglik, second


@pytest.mark.parametrize("iterations", [1, 2, 4])
@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_two_mechanisms_equal_a_plain_implementation(table, iterations, labelled, turned):
    phi, y, _ = table
    groups, pinned = np.full(400, -1), ()
    if labelled:
        groups, pinned = np.where(np.arange(400) < 300, np.arange(400) % 4, -1), (-1, 0, -1, -1)
    start = 1.0 - _start(y) if turned else _start(y)
    value, second = _run(phi, y, start, iterations, groups=groups, pinned=pinned)
    expected, posterior = _plainly(phi, y, start, iterations, groups, pinned)
    assert value == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(second, posterior, atol=1e-5)


@pytest.mark.parametrize("labelled", [False, True])
def test_the_likelihood_never_falls(table, labelled):
    phi, y, _ = table
    options = {}
    if labelled:
        options = {
            "groups": np.where(np.arange(400) % 3 == 0, np.arange(400) % 4, -1),
            "pinned": (-1, 0, -1, 0),
        }
    values = [_run(phi, y, _start(y), steps, **options)[0] for steps in range(1, 20)]
    assert np.isfinite(values).all()
    assert (np.diff(values) > -0.05).all(), "up to the rows that hardly count"
    assert values[-1] > values[0] + 10.0


def test_two_mechanisms_find_the_replaced_rows(table):
    phi, y, other = table
    _, second = _run(phi, y, _start(y), 40)
    assert ((second > 0.5) == other).mean() > 0.93


def test_rows_of_a_label_share_their_posterior(table):
    phi, y, other = table
    groups = np.where(np.arange(400) < 350, np.arange(400) % 4, -1)
    _, second = _run(phi, y, _start(y), 10, groups=groups, pinned=(-1, -1, -1, -1))
    for g in range(4):
        np.testing.assert_array_equal(second[groups == g], float(g == 0))
    assert ((second[groups < 0] > 0.5) == other[groups < 0]).mean() > 0.9


def test_what_is_known_of_a_label_holds(table):
    phi, y, _ = table
    groups = np.arange(400) % 4
    _, second = _run(phi, y, _start(y), 10, groups=groups, pinned=(0, 1, -1, 0))
    assert (second[groups == 0] == 0.0).all()
    assert (second[groups == 1] == 1.0).all()
    assert (second[groups == 3] == 0.0).all()


def test_without_a_minority_it_is_one_regression(table):
    phi, y, _ = table
    gram = phi.T @ phi + 1e-7 * np.eye(phi.shape[1])
    variance = np.mean((y - phi @ np.linalg.solve(gram, phi.T @ y)) ** 2)
    value, second = _run(phi, y, np.zeros(400), 5)
    assert value == pytest.approx(-200.0 * (np.log(2 * np.pi * variance) + 1.0), rel=1e-9)
    assert (second == 0.0).all()


def test_a_first_mechanism_without_rows_is_no_answer(table):
    phi, y, _ = table
    assert _run(phi, y, np.ones(400), 5)[0] == -np.inf


def test_random_features():
    x = np.random.default_rng(0).standard_normal((30, 2))
    phi = random_features(x, 6, np.random.default_rng(1))
    assert phi.shape == (30, 9)
    np.testing.assert_array_equal(phi[:, 0], 1.0)
    np.testing.assert_array_equal(phi[:, 1:3], x)
    assert (phi[:, 3:] >= 0.0).all()
    np.testing.assert_array_equal(phi, random_features(x, 6, np.random.default_rng(1)))
    np.testing.assert_array_equal(random_features(x[:, :0], 6, np.random.default_rng(1)), np.ones((30, 1)))


def _agrees(order, adjacency):
    place = np.argsort(order)
    return all(place[i] < place[j] for i, j in np.argwhere(adjacency))


@pytest.mark.parametrize("seed", range(3))
def test_the_order_is_right_while_nothing_is_known(make_problem, make_planted, seed):
    planted = make_planted(seed=seed)
    rough = rough_graph(make_problem(planted.x), seed=seed)
    assert _agrees(rough.order, planted.adjacency)
    assert rough.minority.shape == (len(rough.rows), 3)
    for j in (1, 2):  # a has no parents: which of its mechanisms is the minority nobody can tell
        hit = planted.regimes[rough.rows] == j + 1
        assert ((rough.minority[:, j] > 0.5) == hit).mean() > 0.95


@pytest.mark.parametrize("known", ["labels", "targets"])
def test_the_order_is_right_with_labels(make_problem, planted, known):
    codes = np.full((4, 3), FREE)
    codes[0] = REFERENCE
    if known == "targets":
        codes = np.where(planted.targets == 1, TARGET, REFERENCE)
    problem = make_problem(planted.x, labels=planted.regimes, known=codes)
    rough = rough_graph(problem, seed=0)
    assert _agrees(rough.order, planted.adjacency)
    np.testing.assert_array_equal(rough.minority, planted.targets[planted.regimes[rough.rows]])


@pytest.mark.parametrize("n_regimes", [1, 2])
def test_variables_that_no_label_targets_have_scores(make_problem, planted, n_regimes):
    """One mechanism explains all their rows; that is no reason to know nothing of their parents."""
    keep = planted.regimes < n_regimes
    codes = np.where(planted.targets[:n_regimes] == 1, TARGET, REFERENCE)
    problem = make_problem(planted.x[keep], labels=planted.regimes[keep], known=codes)
    rough = rough_graph(problem, seed=0)
    assert all(np.isfinite(table).any() for table in rough.tables.scores)
    assert _agrees(rough.order, planted.adjacency)


def test_constraints_hold(make_problem, planted):
    """Against the truth: what the user says wins."""
    problem = make_problem(planted.x, forbidden=[("a", "b")], required=[("c", "b")], max_parents=1)
    rough = rough_graph(problem, seed=0)
    assert 0 not in rough.candidates[1]
    place = np.argsort(rough.order)
    assert place[2] < place[1]
    adjacency, _ = rough.tables.best(problem.constraints.required.astype(np.int8), 0)
    assert is_dag(adjacency)
    assert adjacency[2, 1] == 1
    assert adjacency[0, 1] == 0
    assert (adjacency.sum(axis=0) <= 1).all()


def test_few_families_are_scored_where_there_are_many(make_problem, planted, monkeypatch):
    rng = np.random.default_rng(0)
    wide = np.column_stack([planted.x, rng.standard_normal((len(planted.x), 4))])
    monkeypatch.setattr(rough_scores, "MAX_PARENT_SETS", 7 * 2**3)
    problem = make_problem(wide, required=[("g", "c")])
    rough = rough_graph(problem, seed=0)
    assert rough.candidates.shape == (7, 3)
    assert {0, 1, 6} == set(rough.candidates[2]), "the required one and the two that explain most"
    place = np.argsort(rough.order)
    assert place[6] < place[2]


def test_it_is_the_same_every_time(make_problem, planted):
    first, second = (rough_graph(make_problem(planted.x), seed=3) for _ in range(2))
    assert first.order == second.order
    np.testing.assert_array_equal(first.minority, second.minority)
    np.testing.assert_array_equal(first.rows, second.rows)
