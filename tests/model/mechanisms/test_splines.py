"""Functions of one variable: what they span, their order, and how many of them evidence asks for."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline

from latentdo.model.mechanisms.splines import (
    FUNCTIONS,
    Basis,
    choose_levels,
    expand,
    explained,
    sum_of_curves,
)


@given(level=st.integers(2, FUNCTIONS), seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_the_basis_spans_every_natural_cubic_spline_on_its_knots(level, seed):
    rng = np.random.default_rng(seed)
    knots = np.sort(rng.normal(size=level + 1)) + 0.1 * np.arange(level + 1)
    spline = CubicSpline(knots, rng.normal(size=level + 1), bc_type="natural")
    inside = np.linspace(knots[0], knots[-1], 200)
    design = np.column_stack([np.ones(200), expand(inside[:, None], knots[None])])
    coefficients, *_ = np.linalg.lstsq(design, spline(inside), rcond=None)
    np.testing.assert_allclose(
        design @ coefficients, spline(inside), atol=1e-6 * np.ptp(spline(inside)) + 1e-7
    )


def test_curves_go_on_as_lines_beyond_the_outermost_knots():
    knots = np.array([[-1.0, -0.3, 0.4, 1.0]])
    far = expand(np.array([[2.0], [3.0], [4.0], [-2.0], [-3.0], [-4.0]]), knots)
    np.testing.assert_allclose(far[1] - far[0], far[2] - far[1])
    np.testing.assert_allclose(far[4] - far[3], far[5] - far[4])


def test_the_variable_itself_comes_first_and_functions_get_rougher():
    rng = np.random.default_rng(0)
    values = rng.gamma(2.0, size=2000)
    basis = Basis.of(values, np.sin(values)[:, None] + rng.standard_normal((2000, 1)))
    grid = np.linspace(basis.knots[0], basis.knots[-1], 500)
    functions = basis.functions(grid)
    np.testing.assert_allclose(functions[:, 0], grid)
    seen = basis.functions(values)[:, 1:]
    seen -= seen.mean(axis=0)
    line = np.column_stack([np.ones(2000), values])
    np.testing.assert_allclose(
        line.T @ seen / 2000, 0.0, atol=1e-8
    )  # nothing of a line is left in the others
    np.testing.assert_allclose(seen.T @ seen / 2000, np.eye(FUNCTIONS - 1), atol=0.05)  # but for the ridge
    roughness = (np.diff(functions[:, 1:], 2, axis=0) ** 2).sum(axis=0)
    assert (np.diff(roughness) > 0.0).all()


def test_knots_are_where_curves_need_them():
    rng = np.random.default_rng(0)
    waves = rng.standard_normal(3000)
    apart = Basis.of(waves, np.sin(3.0 * waves)[:, None] + 0.1 * rng.standard_normal((3000, 1)))
    np.testing.assert_allclose(np.diff(apart.knots), np.diff(apart.knots)[0])
    raw = np.exp(1.5 * waves)
    near = Basis.of(raw, np.tanh(waves)[:, None] + 0.1 * rng.standard_normal((3000, 1)))
    assert np.diff(near.knots)[0] < 0.1 * np.diff(near.knots)[-1]


def test_few_values_make_a_line():
    values = np.repeat([0.0, 1.0, 2.0], 50)
    basis = Basis.of(values, values[:, None] ** 2)
    assert basis.most == 1
    np.testing.assert_array_equal(basis.functions(np.array([0.5]))[0, 1:], 0.0)


@pytest.mark.parametrize("seed", range(8))
def test_levels_are_those_that_trying_all_of_them_finds(seed):
    rng = np.random.default_rng(seed)
    n, length, price = 400, 4, 3.0
    functions = rng.standard_normal((n, 2 * length)) @ (np.eye(8) + 0.2 * rng.standard_normal((8, 8)))
    rows = np.column_stack([np.ones(n), functions])
    coefficients = np.where(rng.random(9) < 0.5, 0.0, rng.normal(0.0, 0.3, 9))
    rows = np.column_stack([rows, rows @ coefficients + rng.standard_normal(n)])
    gram = rows.T @ rows

    def evidence(levels):
        return 0.5 * explained(gram, np.array(levels), length) - price * sum(levels)

    best = max(product(range(1, length + 1), repeat=2), key=evidence)
    found = choose_levels(gram, np.array([length, length]), np.array([1, 1]), length, price)
    assert evidence(found.tolist()) == pytest.approx(evidence(best))


def test_what_functions_explain_is_what_a_regression_leaves():
    rng = np.random.default_rng(3)
    rows = np.column_stack([np.ones(200), rng.standard_normal((200, 6))])
    y = rng.standard_normal(200) + rows[:, 2]
    gram = np.column_stack([rows, y]).T @ np.column_stack([rows, y])
    used = rows[:, [0, 1, 2, 4]]  # two functions of the first variable, one of the second
    residual = y - used @ np.linalg.lstsq(used, y, rcond=None)[0]
    assert explained(gram, np.array([2, 1]), 3) == pytest.approx(y @ y - residual @ residual)


def test_sums_of_curves_are_sums_of_functions_and_lines_far_out():
    rng = np.random.default_rng(0)
    knots = np.sort(rng.standard_normal((2, FUNCTIONS + 1)), axis=1)
    coefficients = rng.standard_normal((2, FUNCTIONS))
    x = 3.0 * rng.standard_normal((500, 2))
    found = sum_of_curves(x, knots, 0.3, coefficients)
    np.testing.assert_allclose(found, 0.3 + expand(x, knots) @ coefficients.ravel(), rtol=1e-9, atol=1e-8)
    far = np.array([[1.0, -1.0], [2.0, -2.0], [3.0, -3.0]]) * 1e30
    at = sum_of_curves(far, knots, 0.3, coefficients)
    np.testing.assert_allclose(at[2] - at[1], at[1] - at[0], rtol=1e-9)
