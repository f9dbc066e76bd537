"""Components come apart where the values of their targets do, and only there."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo.metrics import adjusted_rand_index
from latentdo.solvers.nonlinear.learner import with_networks
from latentdo.solvers.nonlinear.separated_peaks import divide
from latentdo.solvers.search.em import refine
from latentdo.solvers.search.local_scores import FREE


def _table(distance: float) -> tuple[np.ndarray, np.ndarray]:
    """Two regimes put ``b`` at two places; ``a`` is its cause in the others."""
    rng = np.random.default_rng(0)
    regimes = rng.choice(3, size=1500, p=(0.6, 0.2, 0.2))
    a = rng.standard_normal(1500)
    b = np.abs(a) + 0.2 * rng.standard_normal(1500)
    put = np.where(regimes == 1, 5.0, 5.0 + distance) + 0.3 * rng.standard_normal(1500)
    return np.column_stack([a, np.where(regimes > 0, put, b)]), regimes


def _joined(problem, regimes, targets=(0, 1)):
    """Both regimes as one component, with mixed noise."""
    rows = np.eye(2)[(regimes > 0).astype(int)]
    wanted = np.array([[0, 0], targets], dtype=np.int8)
    adjacency = np.array([[0, 1], [0, 0]], dtype=np.int8)
    return refine(with_networks(problem, 3), rows, adjacency, targets=wanted, iterations=2)


def test_two_peaks_are_two_components(make_problem):
    x, regimes = _table(distance=4.0)
    problem = make_problem(x)
    responsibilities, targets = divide(problem, _joined(problem, regimes))
    assert responsibilities.shape == (1500, 3)
    np.testing.assert_array_equal(targets, [[0, 0], [0, 1], [0, 1]])
    np.testing.assert_allclose(responsibilities.sum(axis=1), 1.0, atol=1e-9)
    assert adjusted_rand_index(regimes, responsibilities.argmax(axis=1)) > 0.98


@pytest.mark.parametrize("distance", [0.0, 0.6])
def test_one_peak_stays_one(make_problem, distance):
    x, regimes = _table(distance)
    problem = make_problem(x)
    state = _joined(problem, regimes)
    responsibilities, targets = divide(problem, state)
    np.testing.assert_allclose(responsibilities, state.responsibilities, atol=1e-9)
    np.testing.assert_array_equal(targets, state.targets)


def test_labelled_components_are_left_alone(make_problem):
    x, regimes = _table(distance=4.0)
    labels = (regimes > 0).astype(np.int64)
    problem = make_problem(x, labels=labels, known=np.full((2, 2), FREE))
    responsibilities, _ = divide(problem, _joined(problem, regimes))
    assert responsibilities.shape[1] == 2


def test_what_is_no_target_divides_nothing(make_problem):
    """The peaks of ``b`` are there, but nobody says that it was hit."""
    x, regimes = _table(distance=4.0)
    problem = make_problem(x)
    responsibilities, _ = divide(problem, _joined(problem, regimes, targets=(1, 0)))
    assert responsibilities.shape[1] == 2
