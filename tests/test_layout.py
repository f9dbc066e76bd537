import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from latentdo.graphs import random_dag
from latentdo.graphs.layout import _crossings, layered_layout


@settings(max_examples=30)
@given(st.integers(1, 25), st.floats(0, 0.5), st.integers(0, 10**6))
def test_causes_stand_above_effects_and_nothing_overlaps(d, density, seed):
    adjacency = random_dag(d, edge_probability=density, rng=np.random.default_rng(seed))
    widths = np.random.default_rng(seed).uniform(30, 140, d)
    layout = layered_layout(adjacency, widths)
    x, y = layout.positions.T
    for i, j in np.argwhere(adjacency):
        assert y[i] < y[j]
        route = layout.routes[int(i), int(j)]
        for (px, py), v in ((route[0], i), (route[-1], j)):
            assert py == y[v]
            assert abs(px - x[v]) <= widths[v] / 2
        assert np.all(np.diff([py for _, py in route]) > 0)
    for i in range(d):
        for j in range(i):
            assert y[i] != y[j] or abs(x[i] - x[j]) >= (widths[i] + widths[j]) / 2
    assert (x - widths / 2).min() >= -0.02
    assert (x + widths / 2).max() <= layout.width + 0.02


def test_a_planar_graph_has_no_crossings():
    adjacency = np.zeros((7, 7), dtype=int)
    for child in range(1, 7):
        adjacency[(child - 1) // 2, child] = 1
    shuffled = np.random.default_rng(3).permutation(7)
    layout = layered_layout(adjacency[np.ix_(shuffled, shuffled)])
    edges = sorted((*layout.routes[e][0], *layout.routes[e][-1]) for e in layout.routes)
    for ax, ay, bx, _ in edges:
        for cx, cy, dx, _ in edges:
            if ay == cy and ax < cx:
                assert bx <= dx


def test_crossings_are_counted():
    assert _crossings([[0, 1], [2, 3]], {0: [3], 1: [2], 2: [], 3: []}) == 1
    assert _crossings([[0, 1], [2, 3]], {0: [2], 1: [3], 2: [], 3: []}) == 0


def test_many_roots_are_spread_over_layers():
    adjacency = np.zeros((50, 50), dtype=int)
    adjacency[:49, 49] = 1
    layout = layered_layout(adjacency)
    assert layout.width < 5 * layout.height


def test_no_variables():
    assert layered_layout(np.zeros((0, 0), dtype=int)).routes == {}
