"""What moves between regimes, and what that says about the graph."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from latentdo.data import Dataset
from latentdo.solvers.nonlinear.marginal_shifts import Changes, distances
from latentdo.solvers.search.local_scores import FREE, REFERENCE
from latentdo.solvers.search.solve import SearchConfiguration, make_problem


def chain(n=500, seed=0):
    """Rows of a -> b -> c under no intervention, one on a, one on c, and none again; and responsibilities."""
    rng = np.random.default_rng(seed)
    regimes = np.repeat([0, 1, 2, 3], n)
    a = rng.normal(size=4 * n) + 4.0 * (regimes == 1)
    b = np.abs(a) + 0.3 * rng.normal(size=4 * n)
    c = np.where(regimes == 2, -3.0, b) + 0.3 * rng.normal(size=4 * n)
    return np.column_stack([a, b, c]), np.eye(4)[regimes]


def test_distances_are_those_of_kolmogorov_and_smirnov():
    z, resp = chain()
    found, unit = distances(z, resp)
    for j in range(3):
        for k in range(4):
            for m in range(4):
                expected = ks_2samp(z[resp[:, k] == 1, j], z[resp[:, m] == 1, j]).statistic
                assert found[j, k, m] == pytest.approx(expected, abs=1e-12)
    assert unit[0, 1] == pytest.approx(np.sqrt(2 / 500))


def test_equal_values_are_one_step():
    z = np.repeat([[0.0], [1.0]], 10, axis=0)
    resp = np.eye(2)[np.tile([0, 1], 10)]
    assert distances(z, resp)[0].max() == pytest.approx(0.0)


def test_doubtful_rows_count_by_their_responsibilities():
    """Two overlapping components with exact responsibilities: neither is cut off."""
    rng = np.random.default_rng(1)
    n = 4000
    hit = rng.random(n) < 0.5
    x = rng.normal(size=n) + 1.0 * hit
    posterior = 1.0 / (1.0 + np.exp(-(x - 0.5)))
    soft = np.column_stack([1.0 - posterior, posterior])
    hard = np.eye(2)[(posterior > 0.5).astype(int)]
    assert distances(x[:, None], soft)[0][0, 0, 1] == pytest.approx(
        ks_2samp(x[hit], x[~hit]).statistic, abs=0.04
    )
    assert distances(x[:, None], hard)[0][0, 0, 1] == pytest.approx(1.0, abs=0.01)


def test_what_moves_in_a_chain():
    z, resp = chain()
    changes = Changes.between(z, resp)
    assert changes.still.tolist() == [[True] * 3, [False] * 3, [True, True, False], [True] * 3]
    assert changes.moved.tolist() == [[False] * 3, [True] * 3, [False, False, True], [False] * 3]
    assert changes.lateness.tolist() == [500.0, 500.0, 1000.0]


def test_only_the_wrong_direction_is_impossible():
    z, resp = chain()
    impossible = Changes.between(z, resp).impossible
    assert impossible.tolist() == [[False] * 3, [False] * 3, [True, True, False]]


def test_objections_to_both_directions_leave_the_edge_open():
    """An effect too weak to move its child looks like no effect at all."""
    still = np.array([[True, True], [False, True], [True, False]])
    changes = Changes(still, ~still, np.ones(3))
    assert not changes.impossible.any()


def test_conflicts_are_counted():
    z, resp = chain()
    changes = Changes.between(z, resp)
    graph = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=np.int8)
    right = np.array([[0, 0, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]], dtype=np.int8)
    assert changes.conflicts(right, graph) == 0
    assert changes.conflicts(right, graph.T) == 2 + 1  # b and c move with a alone; c -> b cannot be
    idle = right.copy()
    idle[2, 0] = 1
    assert changes.conflicts(idle, graph) == 1


def test_a_still_variable_is_no_target_and_the_users_word_counts_more():
    z, resp = chain()
    regimes = resp.argmax(axis=1)
    changes = Changes.between(z, resp)
    known = changes.known(make_problem(Dataset.from_table(z, regimes=regimes), SearchConfiguration()))
    assert known[2].tolist() == [REFERENCE, REFERENCE, FREE]
    assert known[1].tolist() == [FREE, FREE, FREE]
    targets = np.array([[0, 0, 0], [1, 0, 0], [1, 0, 1], [0, 0, 0]])
    told = make_problem(Dataset.from_table(z, regimes=regimes, targets=targets), SearchConfiguration())
    assert changes.known(told).tolist() == told.known.tolist()


def test_few_rows_say_nothing():
    z, resp = chain(n=30)
    changes = Changes.between(z, resp)
    assert not changes.still.any()
    assert not changes.impossible.any()


def test_one_component_says_nothing():
    z, _ = chain()
    changes = Changes.between(z, np.ones((len(z), 1)))
    assert not changes.still.any()
    assert not changes.moved.any()
