"""Moment matrices: what they are, and that they add up."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo.solvers.search.moments import Moments


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    design = np.column_stack([np.ones(300), rng.normal(size=(300, 4))])
    return design, rng.dirichlet(np.full(3, 0.2), 300)


def test_moments_are_weighted_sums_of_outer_products(rows):
    design, responsibilities = rows
    expected = np.einsum("nk,na,nb->kab", responsibilities, design, design)
    moments = Moments.of(design, responsibilities)
    np.testing.assert_allclose(
        moments.matrices, expected, atol=1e-4
    )  # up to 300 negligible shares are left out
    np.testing.assert_allclose(moments.counts, responsibilities.sum(axis=0), atol=1e-4)


def test_hard_assignments_are_exact(rows):
    design, responsibilities = rows
    hard = np.eye(3)[responsibilities.argmax(axis=1)]
    moments = Moments.of(design, hard)
    for k in range(3):
        part = design[hard[:, k] == 1]
        np.testing.assert_allclose(moments.matrices[k], part.T @ part, rtol=1e-12)


def test_moments_of_parts_add_up(rows):
    design, responsibilities = rows
    whole = Moments.of(design, responsibilities)
    parts = Moments.of(design[:100], responsibilities[:100]) + Moments.of(
        design[100:], responsibilities[100:]
    )
    np.testing.assert_allclose(parts.matrices, whole.matrices, rtol=1e-12)


@pytest.mark.parametrize(("first", "second"), [(0, 1), (0, 2), (1, 2), (2, 0), (1, 0)])
def test_merging_moments_is_merging_regimes(rows, first, second):
    design, responsibilities = rows
    joined = responsibilities.copy()
    joined[:, first] += joined[:, second]
    joined = np.delete(joined, second, axis=1)
    merged = Moments.of(design, responsibilities).merged(first, second)
    np.testing.assert_allclose(merged.matrices, Moments.of(design, joined).matrices, atol=1e-4)


def test_empty_regime_has_zero_moments(rows):
    design, _ = rows
    moments = Moments.of(design, np.column_stack([np.ones(300), np.zeros(300)]))
    assert not moments.matrices[1].any()
    np.testing.assert_allclose(moments.matrices[0], design.T @ design)
