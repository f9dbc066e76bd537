"""Curves of one variable: natural cubic splines, rotated so that the smoothest functions come first.

The first function is the variable itself, so that a line is the case of one function; every further one bends more.
Because the functions are nested, one regression on all of them says what fewer would do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from scipy.linalg import eigh

from latentdo.compilation import njit
from latentdo.model.mechanisms.base import Array
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR

FUNCTIONS: Final = 8
"""Functions of a variable at most: waves within the range of the rows need seven or eight, and with five regimes were
needed to draw them."""

EDGE, FAR_EDGE = 0.01, 0.003
"""Share of the rows beyond the outermost knots on either side, where curves go on as lines: the larger one where knots
follow the rows."""

_ROUGHNESS_GRID: Final = 200  # points at which bends are measured; second derivatives are piecewise linear
_RIDGE: Final = 1e-9  # of functions that a variable of few values cannot tell apart


@dataclass(frozen=True, eq=False)
class Basis:
    """Functions of one variable.

    Parameters
    ----------
    knots : ndarray [FUNCTIONS + 1]
        Ascending.
    rotation : ndarray [FUNCTIONS, FUNCTIONS]
        From the functions of :func:`expand` to those that are fitted, the smoothest first.
    most : int
        How many of them the values can tell apart: all, or only the line.
    """

    knots: Array
    rotation: Array
    most: int

    @classmethod
    def of(cls, values: Array, others: Array) -> Self:
        """The basis for the values ``[n]`` of a variable, of those whose curves explain most of others ``[n, m]``.

        Knots as far apart as each other suit curves that are as bent everywhere; raw concentrations want them where the
        rows are. One regression of all others tells.
        """
        places = _places(values)
        if not all((np.diff(knots) > 0.0).all() for knots in places):
            return cls(np.arange(FUNCTIONS + 1.0), np.eye(FUNCTIONS), 1)
        bases = [cls._with(values, knots) for knots in places]
        return max(bases, key=lambda basis: basis._explains(values, others))

    @classmethod
    def _with(cls, values: Array, knots: Array) -> Self:
        functions = expand(values[:, None], knots[None])
        line = np.column_stack([np.ones(len(values)), values])
        slopes = np.linalg.lstsq(line, functions[:, 1:], rcond=None)[0]
        bends = functions[:, 1:] - line @ slopes
        size = bends.T @ bends / len(values)
        rough = _roughness(knots)
        _, order = eigh(rough, size + _RIDGE * np.diag(np.diag(size)))
        rotation = np.zeros((FUNCTIONS, FUNCTIONS))
        rotation[0, 0] = 1.0
        rotation[1:, 1:] = order
        rotation[0, 1:] = -slopes[1] @ order
        return cls(knots, rotation, FUNCTIONS)

    def _explains(self, values: Array, others: Array) -> float:
        """Log-likelihood of all others, each a curve of the variable with Gaussian noise, up to a constant."""
        rows = np.column_stack([np.ones(len(values)), self.functions(values)])
        coefficients = np.linalg.lstsq(rows, others, rcond=None)[0]
        left = ((others - rows @ coefficients) ** 2).mean(axis=0)
        return -0.5 * len(values) * float(np.log(np.maximum(left, VARIANCE_FLOOR)).sum())

    def functions(self, values: Array) -> Array:
        """The functions at some values, ``[n, FUNCTIONS]``, those that cannot be told apart zero."""
        if self.most == 1:
            return np.column_stack([values, np.zeros((len(values), FUNCTIONS - 1))])
        return np.asarray(expand(values[:, None], self.knots[None]) @ self.rotation)


def _places(values: Array) -> list[Array]:
    """Knots that might do: where the rows are, more of them in the tails, or as far apart as each other."""
    even = np.linspace(0.0, 1.0, FUNCTIONS + 1)
    low, high = np.quantile(values, [FAR_EDGE, 1.0 - FAR_EDGE])
    return [
        np.quantile(values, EDGE + (1.0 - 2.0 * EDGE) * even),
        np.quantile(values, FAR_EDGE + (1.0 - 2.0 * FAR_EDGE) * np.sin(0.5 * np.pi * even) ** 2),
        low + (high - low) * even,
    ]


def _roughness(knots: Array) -> Array:
    """Integrals of products of the second derivatives of all functions but the line, ``[L - 1, L - 1]``."""
    grid = np.linspace(knots[0], knots[-1], _ROUGHNESS_GRID)
    second = np.gradient(np.gradient(expand(grid[:, None], knots[None])[:, 1:], axis=0), axis=0)
    return np.asarray(second.T @ second)


@njit
def _cube(u):  # type: ignore[no-untyped-def]
    return u * u * u if u > 0.0 else 0.0


@njit
def expand(x, knots):  # type: ignore[no-untyped-def]
    """Values of the functions of every parent, ``[n, p L]``, for ``x [n, p]`` and ``knots [p, L + 1]``."""
    n, p = x.shape
    level = knots.shape[1] - 1
    out = np.empty((n, p * level))
    for a in range(p):
        low, width = knots[a, 0], knots[a, level] - knots[a, 0]
        place = (knots[a] - low) / width
        for i in range(n):
            u = (x[i, a] - low) / width
            out[i, a * level] = x[i, a]
            last = _cube(u - 1.0)
            before = (_cube(u - place[level - 1]) - last) / (1.0 - place[level - 1])
            for m in range(level - 1):
                bend = (_cube(u - place[m]) - last) / (1.0 - place[m])
                out[i, a * level + m + 1] = bend - before
    return out


@njit
def sum_of_curves(x, knots, constant, coefficients):  # type: ignore[no-untyped-def]
    """The same summed with coefficients ``[p, L]``, ``[n]``: cubes of distances from knots, each computed once."""
    n, p = x.shape
    level = knots.shape[1] - 1
    out = np.full(n, constant)
    cubes = np.empty(level)
    for a in range(p):
        low, width = knots[a, 0], knots[a, level] - knots[a, 0]
        place = (knots[a] - low) / width
        cubes[:] = 0.0
        for m in range(level - 1):
            cubes[m] = coefficients[a, m + 1] / (1.0 - place[m])
            cubes[level - 1] -= coefficients[a, m + 1] / (1.0 - place[level - 1])
        end = (cubes[:level] * (1.0 - place[:level]) ** 3).sum()
        slope = 3.0 * (cubes[:level] * (1.0 - place[:level]) ** 2).sum()
        for i in range(n):
            u = (x[i, a] - low) / width
            value = coefficients[a, 0] * x[i, a]
            if u > 1.0:  # a line from here on: cubes of what is far out would leave nothing but rounding
                value += end + slope * (u - 1.0)
            else:
                for m in range(level):
                    if u <= place[m]:
                        break
                    off = u - place[m]
                    value += cubes[m] * off * off * off
            out[i] += value
    return out


@njit
def _inverse(gram, levels, length):  # type: ignore[no-untyped-def]
    """Covariance and coefficients of a regression on so many functions of every parent; zeros for the others."""
    p, last = levels.shape[0], gram.shape[0] - 1
    used = np.empty(1 + levels.sum(), dtype=np.int64)
    used[0], count = 0, 1
    for a in range(p):
        for b in range(levels[a]):
            used[count] = 1 + a * length + b
            count += 1
    some, values = np.empty((count, count)), np.empty(count)
    for a in range(count):
        values[a] = gram[last, used[a]]
        for b in range(a + 1):
            some[a, b] = gram[used[a], used[b]]
            some[b, a] = some[a, b]
        some[a, a] = some[a, a] * (1.0 + _RIDGE) + _RIDGE
    inverse = np.linalg.inv(some)
    found = inverse @ values
    covariance, coefficients = np.zeros((last, last)), np.zeros(last)
    for a in range(count):
        coefficients[used[a]] = found[a]
        for b in range(count):
            covariance[used[a], used[b]] = inverse[a, b]
    return covariance, coefficients


@njit
def explained(gram, levels, length):  # type: ignore[no-untyped-def]
    """Sum of squares that so many functions of every parent explain, the constant included."""
    _, coefficients = _inverse(gram, levels, length)
    last, total = gram.shape[0] - 1, 0.0
    for a in range(last):
        total += coefficients[a] * gram[last, a]
    return total


@njit
def choose_levels(gram, levels, least, length, price):  # type: ignore[no-untyped-def]
    """How many functions of every parent evidence pays for, ``[p]``, from one regression on ``levels [p]`` of them.

    ``gram`` is the lower half of sums of squares and products, its last row the values, of a problem with unit
    variance: ones first, then ``length`` functions of every parent, the smoothest first. A function costs ``price``.
    Parents lose their roughest functions in turn, whoever gains most by it first, but keep ``least [p]`` of them.
    """
    p, last = levels.shape[0], gram.shape[0] - 1
    kept = levels.copy()
    if length == 1 or p == 0:
        return kept
    covariance, coefficients = _inverse(gram, levels, length)
    block, own = np.empty((length, length)), np.empty(length)
    while True:
        best, who, to = 0.0, -1, 0
        for a in range(p):
            first, size = 1 + a * length, kept[a]
            block[:size, :size] = covariance[first : first + size, first : first + size]
            own[:size] = coefficients[first : first + size]
            loss = 0.0
            for top in range(size - 1, least[a] - 1, -1):
                loss += 0.5 * own[top] ** 2 / block[top, top]
                for c in range(top):
                    share = block[c, top] / block[top, top]
                    own[c] -= share * own[top]
                    block[c, :top] -= share * block[top, :top]
                net = price * (size - top) - loss
                if net > best:
                    best, who, to = net, a, top
        if who < 0:
            return kept
        first = 1 + who * length
        for top in range(first + kept[who] - 1, first + to - 1, -1):
            pivot = covariance[top, top]
            for c in range(last):
                share = covariance[c, top] / pivot
                if c != top and share != 0.0:
                    coefficients[c] -= share * coefficients[top]
                    covariance[c] -= share * covariance[top]
            covariance[top] = 0.0
            covariance[:, top] = 0.0
        kept[who] = to
