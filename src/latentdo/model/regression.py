"""Least squares from sums of squares and products, compiled: the innermost loop of everything linear."""

from __future__ import annotations

import numpy as np

from latentdo.compilation import njit, vectorised

BLOCK = 256
"""Rows that are added up at a time, column by column, so that several are taken at once from the fastest memory."""

WIDE = 32
"""Columns from which on a product of matrices is faster than that."""

COLLINEAR = 1e-13
"""Share of a regressor's square below which what others do not explain of it is rounding."""


@vectorised
def weighted_gram(rows, size, values, weights, gram):  # type: ignore[no-untyped-def]
    """Fill the lower half of ``gram [size + 1, size + 1]``: first ``size`` columns of ``rows``, then ``values``."""
    gram[:] = 0.0
    columns, scaled = np.empty((size + 1, BLOCK)), np.empty(BLOCK)
    for first in range(0, rows.shape[0], BLOCK):
        some = rows[first : min(first + BLOCK, rows.shape[0])]
        own, heavy, m = values[first : first + len(some)], weights[first : first + len(some)], len(some)
        for i in range(m):
            for a in range(size):
                columns[a, i] = some[i, a]
            columns[size, i] = own[i]
        for a in range(size + 1):
            for i in range(m):
                scaled[i] = heavy[i] * columns[a, i]
            for b in range(a + 1):
                total = 0.0
                for i in range(m):
                    total += scaled[i] * columns[b, i]
                gram[a, b] += total


@njit
def wide_gram(rows, size, values, weights, gram):  # type: ignore[no-untyped-def]
    """The same for contiguous arrays, which may have many columns."""
    if size < WIDE:
        weighted_gram(rows, size, values, weights, gram)
        return
    columns = np.ascontiguousarray(rows[:, :size])
    scaled = columns * weights.reshape(-1, 1)
    gram[:size, :size] = scaled.T @ columns
    gram[size, :size] = values @ scaled
    gram[size, size] = (weights * values * values).sum()


@njit
def cholesky_residual(gram, size, factor):  # type: ignore[no-untyped-def]
    """Residual sum of squares of the last column of ``gram`` on the others, by an in-place Cholesky factor.

    Directions that carry nothing beyond rounding (collinear parents) are skipped: their pivot is set to infinity.
    """
    for a in range(size):
        for b in range(a + 1):
            total = gram[a, b]
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            if a != b:
                factor[a, b] = total / factor[b, b] if factor[b, b] < np.inf else 0.0
            elif a == size - 1:
                return max(total, 0.0)
            elif total > COLLINEAR * gram[a, a] and total > 0.0:
                factor[a, a] = np.sqrt(total)
            else:
                factor[a, a] = np.inf
    return 0.0


@njit
def regression(gram, size, factor, contrast):  # type: ignore[no-untyped-def]
    """Fill ``contrast`` with [-coefficients, 1] of the last column on the others; return the residual sum."""
    residual = cholesky_residual(gram, size, factor)
    last = size - 1
    for a in range(last - 1, -1, -1):
        if factor[a, a] == np.inf:
            contrast[a] = 0.0
            continue
        total = factor[last, a]
        for b in range(a + 1, last):
            total += factor[b, a] * contrast[b]
        contrast[a] = -total / factor[a, a]
    contrast[last] = 1.0
    return residual
