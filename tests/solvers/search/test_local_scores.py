"""Local scores against numpy, against slow recomputations, and against all target sets."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentdo.model.mechanisms.noise import VARIANCE_FLOOR
from latentdo.model.regression import cholesky_residual, regression
from latentdo.solvers.search.local_scores import (
    FREE,
    REFERENCE,
    TARGET,
    RegimeData,
    gaussian_loglik,
    parent_set_score,
    score_table,
)
from latentdo.solvers.search.moments import Moments

TARGET_PRIOR = -2.0

# Slow, plain versions of the local scores, written from the table in penalties.py and nothing else.


def slow_loglik(values, regressors, weights, floor):
    """Maximised log-likelihood of a weighted regression with intercept, on the rows themselves."""
    design = np.column_stack([np.ones(len(values)), regressors])
    root = np.sqrt(weights)[:, None]
    beta = np.linalg.lstsq(design * root, values * root[:, 0], rcond=None)[0]
    residual = float(weights @ (values - design @ beta) ** 2)
    count = float(weights.sum())
    variance = max(residual / count, floor)
    return -0.5 * (count * np.log(2 * np.pi * variance) + residual / variance)


def slow_own_score(z, responsibility, variable, parents, target_prior, floor, *, imperfect):
    """Log-likelihood less cost of one regime's own mechanism; minus infinity never, the regime has rows."""
    count = responsibility.sum()
    half_log = 0.5 * np.log(max(count, 2.0))
    values = z[:, variable]
    best = slow_loglik(values, z[:, []], responsibility, floor) - 2 * half_log
    n_parameters = len(parents) + 2
    if imperfect and parents and count > 2 * n_parameters:
        other = slow_loglik(values, z[:, parents], responsibility, floor) - n_parameters * half_log
        best = max(best, other)
    return best + target_prior


def slow_local_score(z, responsibilities, variable, parents, shares, target_prior, floor, *, imperfect):
    """``s_j(P, S)`` without the parents' prior, for one set of sharing regimes."""
    parents = list(parents)
    pooled = responsibilities[:, shares].sum(axis=1)
    n_parameters = len(parents) + 2
    if pooled.sum() < 2 * n_parameters:
        return -np.inf
    score = slow_loglik(z[:, variable], z[:, parents], pooled, floor)
    score -= 0.5 * n_parameters * np.log(pooled.sum())
    for k in np.flatnonzero(~np.asarray(shares)):
        if responsibilities[:, k].sum() > 1e-9:
            score += slow_own_score(
                z, responsibilities[:, k], variable, parents, target_prior, floor, imperfect=imperfect
            )
    return score


def slow_best_targets(z, responsibilities, variable, parents, target_prior, floor, *, imperfect, fixed=None):
    """The best sharing set by trying all of them."""
    n_regimes = responsibilities.shape[1]
    fixed = np.full(n_regimes, FREE) if fixed is None else fixed
    best, found = -np.inf, None
    for choice in product((True, False), repeat=n_regimes):
        shares = np.array(choice)
        if (shares & (fixed == TARGET)).any() or (~shares & (fixed == REFERENCE)).any():
            continue
        score = slow_local_score(
            z, responsibilities, variable, parents, shares, target_prior, floor, imperfect=imperfect
        )
        if score > best:
            best, found = score, shares
    return best, found


def _gram(design, values, weights=None):
    rows = np.column_stack([design, values])
    weights = np.ones(len(rows)) if weights is None else weights
    return (rows * weights[:, None]).T @ rows


def _fit(gram):
    size = len(gram)
    contrast = np.empty(size)
    residual = regression(gram, size, np.zeros((size, size)), contrast)
    return -contrast[:-1], residual


def _family(z, responsibilities, variable, parents, *, imperfect=False, fixed=None, prior=TARGET_PRIOR):
    """Score and sharing regimes as the package finds them."""
    moments = Moments.of(np.column_stack([np.ones(len(z)), z]), responsibilities)
    n_regimes = responsibilities.shape[1]
    fixed = np.full(n_regimes, FREE, dtype=np.int8) if fixed is None else fixed
    shares = np.ones(n_regimes, dtype=bool)
    data = RegimeData(moments.matrices, moments.counts, fixed, np.full(n_regimes, -prior), imperfect)
    score = parent_set_score(data, variable, np.array(parents, dtype=np.int64), shares)
    return score, shares


def _instance(rng, *, imperfect, n_regimes=None, soft=True):
    """Variable 2 with two parents; a random part of the regimes has another mechanism, sometimes barely so."""
    n_regimes = n_regimes or int(rng.integers(2, 7))
    sizes = rng.integers(12, 120, n_regimes)
    shifted = rng.random(n_regimes) < 0.4
    parts = []
    beta = rng.normal(size=2)
    noise = 10.0 ** rng.uniform(-2, 0)
    for k in range(n_regimes):
        x = rng.normal(size=(sizes[k], 2)) + rng.normal(size=2)
        mean = x @ beta
        if shifted[k]:
            mean = rng.normal() * rng.choice([0.2, 1.0, 3.0]) * np.ones(sizes[k])
            if imperfect and rng.random() < 0.5:
                mean = mean + x @ rng.normal(size=2)
        parts.append(np.column_stack([x, mean + noise * rng.normal(size=sizes[k])]))
    z = np.concatenate(parts)
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    responsibilities = np.eye(n_regimes)[np.repeat(np.arange(n_regimes), sizes)]
    if soft:
        blur = rng.dirichlet(np.full(n_regimes, 0.3), len(z))
        responsibilities = 0.9 * responsibilities + 0.1 * blur
    return z, responsibilities


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("noise", [1.0, 1e-3, 1e-6])
def test_regression_agrees_with_least_squares(weighted, noise):
    rng = np.random.default_rng(0)
    n = 500
    x = rng.normal(size=(n, 4)) + np.array([0.0, 1.0, -2.0, 0.5])
    y = 0.3 + x @ np.array([1.0, -0.5, 0.2, 0.0]) + noise * rng.normal(size=n)
    weights = rng.uniform(0, 1, n) if weighted else np.ones(n)
    design = np.column_stack([np.ones(n), x])
    root = np.sqrt(weights)
    expected = np.linalg.lstsq(design * root[:, None], y * root, rcond=None)[0]
    residual = float(weights @ (y - design @ expected) ** 2)

    coefficients, found = _fit(_gram(design, y, weights))

    np.testing.assert_allclose(coefficients, expected, atol=1e-9 * max(1.0, noise / 1e-3))
    # Moments of order n round at about 1e-16 n, whatever the noise.
    np.testing.assert_allclose(found, residual, rtol=1e-9, atol=1e-14 * n)
    assert cholesky_residual(_gram(design, y, weights), 6, np.zeros((6, 6))) == pytest.approx(
        found, rel=1e-12
    )


def test_collinear_parents_are_harmless():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 300))
    y = a - b + 0.1 * rng.normal(size=300)
    design = np.column_stack([np.ones(300), a, b, a + b, np.full(300, 2.0)])
    coefficients, residual = _fit(_gram(design, y))
    assert np.isfinite(coefficients).all()
    expected = np.linalg.lstsq(design, y, rcond=None)
    np.testing.assert_allclose(design @ coefficients, design @ expected[0], atol=1e-6)
    np.testing.assert_allclose(residual, ((y - design @ expected[0]) ** 2).sum(), rtol=1e-6)


def test_nearly_collinear_parents_still_count():
    """Two parents that differ by a thousandth: their difference carries the effect."""
    rng = np.random.default_rng(1)
    a, tiny = rng.normal(size=(2, 400))
    b = a + 1e-3 * tiny
    y = 1000.0 * (b - a) + 0.1 * rng.normal(size=400)
    _, residual = _fit(_gram(np.column_stack([np.ones(400), a, b]), y))
    assert residual == pytest.approx(0.01 * 400, rel=0.2)


def test_perfect_fit_has_no_negative_residual():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(50, 3))
    _, residual = _fit(_gram(np.column_stack([np.ones(50), x]), x @ np.array([1.0, 2.0, 3.0])))
    assert 0.0 <= residual < 1e-10


def test_gaussian_loglik_is_the_density_at_its_maximum():
    rng = np.random.default_rng(3)
    values = rng.normal(scale=0.3, size=200)
    residual = float((values**2).sum())
    variance = residual / 200
    expected = (-0.5 * np.log(2 * np.pi * variance) - 0.5 * values**2 / variance).sum()
    assert gaussian_loglik(residual, 200.0, 1e-12) == pytest.approx(expected)
    # below the floor the floor counts, not the data
    assert gaussian_loglik(0.0, 10.0, 1e-12) == pytest.approx(-5.0 * np.log(2 * np.pi * 1e-12))
    assert gaussian_loglik(0.0, 0.0, 1e-12) == 0.0


@pytest.mark.parametrize("imperfect", [False, True])
@pytest.mark.parametrize("parents", [[], [0], [1, 0]])
def test_reported_scores_are_confirmed_by_recomputation(imperfect, parents):
    for seed in range(25):
        z, responsibilities = _instance(np.random.default_rng(seed), imperfect=imperfect)
        score, shares = _family(z, responsibilities, 2, parents, imperfect=imperfect)
        again = slow_local_score(
            z,
            responsibilities,
            2,
            parents,
            shares,
            TARGET_PRIOR,
            VARIANCE_FLOOR,
            imperfect=imperfect,
        )
        assert score == pytest.approx(again, rel=1e-8, abs=1e-5), (seed, shares)


@pytest.mark.parametrize("imperfect", [False, True])
def test_targets_are_the_best_of_all_target_sets(imperfect):
    optimal, gaps = 0, []
    n_instances = 120
    for seed in range(n_instances):
        rng = np.random.default_rng(1000 + seed)
        z, responsibilities = _instance(rng, imperfect=imperfect, soft=bool(seed % 2))
        parents = [[], [0], [0, 1]][seed % 3]
        score, _ = _family(z, responsibilities, 2, parents, imperfect=imperfect)
        best, _ = slow_best_targets(
            z, responsibilities, 2, parents, TARGET_PRIOR, VARIANCE_FLOOR, imperfect=imperfect
        )
        assert score <= best + 1e-5, "a score above the optimum cannot be real"
        optimal += score >= best - 1e-5
        gaps.append(best - score)
    assert optimal >= 0.95 * n_instances, (optimal, max(gaps))


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), imperfect=st.booleans())
def test_known_targets_are_respected(seed, imperfect):
    rng = np.random.default_rng(seed)
    z, responsibilities = _instance(rng, imperfect=imperfect, n_regimes=4)
    fixed = rng.choice(np.array([FREE, REFERENCE, TARGET], dtype=np.int8), 4)
    fixed[rng.integers(4)] = REFERENCE
    score, shares = _family(z, responsibilities, 2, [0, 1], imperfect=imperfect, fixed=fixed)
    assert shares[fixed == REFERENCE].all()
    assert not shares[fixed == TARGET].any()
    best, _ = slow_best_targets(
        z,
        responsibilities,
        2,
        [0, 1],
        TARGET_PRIOR,
        VARIANCE_FLOOR,
        imperfect=imperfect,
        fixed=fixed,
    )
    assert score <= best + 1e-4


def test_a_regime_without_rows_changes_nothing():
    rng = np.random.default_rng(5)
    z, responsibilities = _instance(rng, imperfect=False, n_regimes=4)
    padded = np.column_stack([responsibilities, np.zeros(len(z))])
    expected, shares = _family(z, responsibilities, 2, [0, 1])
    for known in (FREE, REFERENCE, TARGET):
        fixed = np.array([FREE, FREE, FREE, FREE, known], dtype=np.int8)
        score, found = _family(z, padded, 2, [0, 1], fixed=fixed)
        assert score == pytest.approx(expected)
        np.testing.assert_array_equal(found[:4], shares)
        assert found[4] == (known != TARGET)


def test_a_regime_smaller_than_its_parents_does_not_break_the_score():
    rng = np.random.default_rng(6)
    z = rng.normal(size=(203, 3))
    z[200:, 2] += 30.0
    responsibilities = np.eye(2)[(np.arange(203) >= 200).astype(int)]
    score, shares = _family(z, responsibilities, 2, [0, 1], imperfect=True)
    assert np.isfinite(score)
    np.testing.assert_array_equal(shares, [True, False])


def test_one_stray_pooled_regression_does_not_drag_in_the_rest():
    """Most regimes are intervened: alternation from "nobody is" fails here, every single start does not."""
    rng = np.random.default_rng(7)
    parts, labels = [], []
    for k in range(6):
        x = rng.normal(size=(100, 2))
        y = x @ np.array([1.0, -1.0]) if k < 2 else np.full(100, 4.0 * (-1) ** k + k)
        parts.append(np.column_stack([x, y + 0.05 * rng.normal(size=100)]))
        labels += [k] * 100
    z = np.concatenate(parts)
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    _, shares = _family(z, np.eye(6)[labels], 2, [0, 1])
    np.testing.assert_array_equal(shares, [True, True, False, False, False, False])


def test_target_prior_buys_and_sells_targets():
    rng = np.random.default_rng(8)
    z = rng.normal(size=(400, 2))
    z[200:, 1] += 0.4
    responsibilities = np.eye(2)[np.repeat([0, 1], 200)]
    _, expensive = _family(z, responsibilities, 1, [], prior=-50.0)
    _, cheap = _family(z, responsibilities, 1, [], prior=10.0)
    assert expensive.all()
    assert not cheap.all()


@pytest.mark.parametrize("imperfect", [False, True])
def test_family_table_lists_what_family_score_says(imperfect):
    rng = np.random.default_rng(9)
    z, responsibilities = _instance(rng, imperfect=imperfect, n_regimes=4)
    z = np.column_stack([z, rng.normal(size=len(z))])
    moments = Moments.of(np.column_stack([np.ones(len(z)), z]), responsibilities)
    edge_prior = rng.normal(size=(4, 4))
    candidates = np.array([0, 1, 3])
    free, cost = np.full(4, FREE, dtype=np.int8), np.full(4, -TARGET_PRIOR)
    table = score_table(
        RegimeData(moments.matrices, moments.counts, free, cost, imperfect),
        2,
        candidates,
        0b010,
        2,
        edge_prior,
        np.ones(4, dtype=bool),
        np.empty(0, dtype=np.int64),
    )
    for mask in range(8):
        parents = [int(candidates[a]) for a in range(3) if mask >> a & 1]
        if 1 not in parents or len(parents) > 2:
            assert table[mask] == -np.inf
        else:
            expected, _ = _family(z, responsibilities, 2, parents, imperfect=imperfect)
            assert table[mask] == pytest.approx(expected + edge_prior[parents, 2].sum())
