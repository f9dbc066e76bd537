"""Nonlinear tables with a known truth, written without the simulator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray


@dataclass(frozen=True)
class Planted:
    """``a -> b -> c`` and ``a -> c``; regime ``j + 1`` replaces variable ``j``, regime 0 nothing."""

    x: NDArray[np.float64]
    regimes: NDArray[np.int64]
    adjacency: NDArray[np.int8]
    targets: NDArray[np.int8]


def plant(n=1200, weights=(0.55, 0.15, 0.15, 0.15), noise=0.1, seed=0) -> Planted:
    rng = np.random.default_rng(seed)
    regimes = rng.choice(4, size=n, p=weights)
    a = np.where(regimes == 1, 4.5 + 0.3 * rng.standard_normal(n), rng.standard_normal(n))
    b = np.abs(a) - 0.5 * a + noise * rng.standard_normal(n)
    b = np.where(regimes == 2, -2.0 + 0.5 * rng.standard_normal(n), b)
    c = np.maximum(b - 0.3, 0.0) * 2.0 - 0.8 * np.abs(a + 0.5) + noise * rng.standard_normal(n)
    c = np.where(regimes == 3, 4.0 + 0.5 * rng.standard_normal(n), c)
    adjacency = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=np.int8)
    targets = np.vstack([np.zeros(3), np.eye(3)]).astype(np.int8)
    return Planted(np.column_stack([a, b, c]), regimes, adjacency, targets)


@pytest.fixture(scope="session")
def make_planted():
    return plant


@pytest.fixture(scope="session")
def planted():
    return plant()
