"""Graphs: checks, orders, random DAGs, export. Oracles: networkx, and enumeration of all small DAGs."""

import xml.etree.ElementTree as ElementTree

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentdo import graphs


@st.composite
def digraphs(draw, max_variables=6):
    d = draw(st.integers(1, max_variables))
    bits = draw(st.lists(st.booleans(), min_size=d * d, max_size=d * d))
    return np.array(bits, dtype=int).reshape(d, d)


class TestValidation:
    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            ([[0, 1, 0], [0, 0, 1]], "square"),
            ([0, 1], "square"),
            ([[0, 2], [0, 0]], r"entry \[0, 1\] is 2"),
            ([[0, 0.5], [0, 0]], r"entry \[0, 1\] is 0.5"),
            ([[0, 0], [np.nan, 0]], r"entry \[1, 0\] is nan"),
            ([[0, -1], [0, 0]], r"entry \[0, 1\] is -1"),
            ([["a", "b"], ["c", "d"]], "numbers 0 and 1"),
        ],
    )
    def test_refuses_what_is_not_a_graph(self, bad, message):
        with pytest.raises(ValueError, match=message):
            graphs.as_adjacency(bad)

    def test_result_is_a_copy(self):
        original = np.zeros((2, 2), dtype=np.int64)
        graphs.as_adjacency(original)[0, 1] = 1
        assert original[0, 1] == 0

    @pytest.mark.parametrize("dtype", [bool, np.int8, float, object])
    def test_accepts_any_dtype(self, dtype):
        found = graphs.as_adjacency(np.array([[0, 1], [0, 0]], dtype=dtype))
        assert found.dtype == np.int64
        assert found.tolist() == [[0, 1], [0, 0]]

    def test_rows_of_a_frame_follow_its_columns_by_name(self):
        frame = pd.DataFrame([[0, 0, 0], [1, 0, 0], [0, 1, 0]], index=list("abc"), columns=list("abc"))
        shuffled = frame.loc[list("cab"), list("bca")]
        assert graphs.edges(shuffled) == [("b", "a"), ("c", "b")]

    def test_refuses_frames_with_other_or_repeated_names(self):
        with pytest.raises(ValueError, match=r"rows of adjacency: b;.* columns: c"):
            graphs.as_adjacency(pd.DataFrame(0, index=["a", "b"], columns=["a", "c"]))
        with pytest.raises(ValueError, match=r"square matrix, but its shape is \(1, 2\)"):
            graphs.as_adjacency(pd.DataFrame(0, index=["a"], columns=["a", "b"]))
        with pytest.raises(ValueError, match=r"repeated names in its columns: a"):
            graphs.as_adjacency(pd.DataFrame(0, index=["a", "b"], columns=["a", "a"]))

    def test_names(self):
        assert graphs.variable_names(pd.DataFrame(0, index=[3, 4], columns=[3, 4])) == ["3", "4"]
        with pytest.raises(ValueError, match="1 names given for 2"):
            graphs.variable_names(np.zeros((2, 2)), ["a"])
        with pytest.raises(ValueError, match="repeated: a"):
            graphs.variable_names(np.zeros((2, 2)), ["a", "a"])


class TestOrders:
    @given(digraphs())
    def test_agree_with_networkx(self, adjacency):
        oracle = nx.from_numpy_array(adjacency, create_using=nx.DiGraph)
        acyclic = nx.is_directed_acyclic_graph(oracle)
        assert graphs.is_dag(adjacency) == acyclic
        cycle = graphs.find_cycle(adjacency)
        if acyclic:
            assert cycle is None
            order = graphs.topological_order(adjacency)
            assert sorted(order) == list(range(len(adjacency)))
            assert all(order.index(i) < order.index(j) for i, j in np.argwhere(adjacency))
        else:
            assert len(set(cycle)) == len(cycle)
            assert cycle[0] == min(cycle)
            assert all(adjacency[i, j] for i, j in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
            with pytest.raises(ValueError, match=" -> ".join(str(index) for index in [*cycle, cycle[0]])):
                graphs.topological_order(adjacency)

    @given(digraphs())
    def test_reachability_and_ancestors(self, adjacency):
        d = len(adjacency)
        walks = sum(np.linalg.matrix_power(adjacency, length) for length in range(1, d + 1))
        reach = graphs.reachability(adjacency)
        assert np.array_equal(reach, walks > 0)
        for j in range(d):
            assert graphs.ancestors(adjacency, j) == set(np.flatnonzero(reach[:, j]))

    def test_cycle_is_named_by_the_columns_of_a_frame(self):
        frame = pd.DataFrame([[0, 1, 0], [0, 0, 1], [1, 0, 0]], index=list("abc"), columns=list("abc"))
        with pytest.raises(ValueError, match="a -> b -> c -> a"):
            graphs.topological_order(frame)


class TestEnumeration:
    @pytest.mark.parametrize(("d", "number"), [(1, 1), (2, 3), (3, 25), (4, 543), (5, 29281)])
    def test_counts_of_robinson(self, d, number):
        found = list(graphs.all_dags(d))
        assert len(found) == number
        assert len({graph.tobytes() for graph in found}) == number
        assert all(graphs.is_dag(graph) for graph in found[:: max(1, number // 500)])

    def test_refuses_large(self):
        with pytest.raises(ValueError, match="1 to 5"):
            next(graphs.all_dags(6))


class TestRandomDag:
    @pytest.mark.parametrize("kind", ["erdos-renyi", "scale-free"])
    @pytest.mark.parametrize(
        "density", [{"edges_per_node": 1}, {"edges_per_node": 2.7}, {"edge_probability": 0.3}]
    )
    def test_expected_number_of_edges(self, kind, density):
        d, repeats = 10, 400
        rng = np.random.default_rng(3)
        counts = [graphs.random_dag(d, kind=kind, rng=rng, **density).sum() for _ in range(repeats)]
        expected = density["edges_per_node"] * d if "edges_per_node" in density else 0.3 * d * (d - 1) / 2
        tolerance = 4 * np.std(counts) / np.sqrt(repeats) + 1e-9
        assert abs(np.mean(counts) - expected) < tolerance

    @given(
        st.integers(1, 12),
        st.floats(0, 20),
        st.sampled_from(["erdos-renyi", "scale-free"]),
        st.integers(0, 2**32 - 1),
    )
    def test_always_acyclic_and_reproducible(self, d, edges_per_node, kind, seed):
        first, second = (
            graphs.random_dag(d, edges_per_node=edges_per_node, kind=kind, rng=np.random.default_rng(seed))
            for _ in range(2)
        )
        assert first.shape == (d, d)
        assert graphs.is_dag(first)
        assert np.array_equal(first, second)
        if edges_per_node >= (d - 1) / 2:  # capped at the complete DAG
            assert first.sum() == d * (d - 1) / 2

    @pytest.mark.parametrize("kind", ["erdos-renyi", "scale-free"])
    def test_index_says_nothing_about_the_order(self, kind):
        rng = np.random.default_rng(0)
        total = sum(graphs.random_dag(6, edge_probability=0.5, kind=kind, rng=rng) for _ in range(3000))
        off_diagonal = total[~np.eye(6, dtype=bool)] / 3000
        assert np.abs(off_diagonal - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 3000)

    def test_erdos_renyi_pairs_are_equally_likely_graphs(self):
        rng = np.random.default_rng(
            1
        )  # edge probability 2/3: empty, ->, <- one third each (the paper's pairs)
        drawn = [graphs.random_dag(2, edge_probability=2 / 3, rng=rng) for _ in range(3000)]
        shares = [np.mean([graph[i, j] for graph in drawn]) for i, j in ((0, 1), (1, 0))]
        assert shares == pytest.approx([1 / 3, 1 / 3], abs=0.035)

    def test_scale_free_has_hubs_that_are_causes_and_small_parent_sets(self):
        rng = np.random.default_rng(0)
        scale_free = [graphs.random_dag(100, edges_per_node=2, kind="scale-free", rng=rng) for _ in range(20)]
        plain = [graphs.random_dag(100, edges_per_node=2, rng=rng) for _ in range(20)]
        hub = [np.mean([graph.sum(axis=1).max() for graph in sample]) for sample in (scale_free, plain)]
        assert hub[0] > 1.5 * hub[1]
        assert max(graph.sum(axis=0).max() for graph in scale_free) <= 3

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({}, "exactly one"),
            ({"edges_per_node": 1, "edge_probability": 0.1}, "exactly one"),
            ({"edge_probability": 1.2}, "between 0 and 1"),
            ({"edges_per_node": -1}, "at least 0"),
            ({"edges_per_node": float("nan")}, "at least 0"),
            ({"edges_per_node": 1, "kind": "ring"}, "ring"),
            ({"edges_per_node": 1, "n_variables": 0}, "at least 1, not 0"),
        ],
    )
    def test_refuses(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            graphs.random_dag(rng=np.random.default_rng(0), **{"n_variables": 4, **arguments})


class TestExport:
    names = ("p44/42", 'a "quoted" <b> & c\\', "ünï")
    adjacency = np.array([[0, 1, 1], [0, 0, 0], [0, 1, 0]])

    def test_edges_round_trip(self):
        pairs = graphs.edges(self.adjacency, self.names)
        assert pairs == [
            (self.names[0], self.names[1]),
            (self.names[0], self.names[2]),
            (self.names[2], self.names[1]),
        ]
        assert np.array_equal(graphs.from_edges(pairs, self.names), self.adjacency)
        backwards = self.names[::-1]
        assert np.array_equal(graphs.from_edges(pairs, backwards), self.adjacency[::-1, ::-1])

    def test_unknown_names_are_refused(self):
        with pytest.raises(ValueError, match=r"a -> z has unknown names: z; known: a, b"):
            graphs.from_edges([("a", "z")], ["a", "b"])

    def test_networkx_keeps_names_order_and_numbers(self):
        probabilities = np.arange(9).reshape(3, 3) / 10
        graph = graphs.to_networkx(self.adjacency, self.names, edge_data={"probability": probabilities})
        assert list(graph.nodes) == list(self.names)
        assert np.array_equal(nx.to_numpy_array(graph, weight=None), self.adjacency)
        assert graph.edges[self.names[0], self.names[2]]["probability"] == 0.2
        with pytest.raises(ValueError, match="probability"):
            graphs.to_networkx(self.adjacency, edge_data={"probability": [0.1]})

    def test_networkx_aligns_a_frame(self):
        frame = pd.DataFrame(self.adjacency, index=list("abc"), columns=list("abc")).loc[list("cba")]
        assert set(graphs.to_networkx(frame).edges) == {("a", "b"), ("a", "c"), ("c", "b")}

    def test_graphml_can_be_read_back(self):
        text = graphs.to_graphml(self.adjacency, self.names, edge_data={"probability": np.full((3, 3), 0.25)})
        ElementTree.fromstring(text)
        back = nx.parse_graphml(text)
        assert list(back.nodes) == list(self.names)
        assert set(back.edges) == set(graphs.edges(self.adjacency, self.names))
        assert {data["probability"] for _, _, data in back.edges(data=True)} == {0.25}

    def test_dot_escapes_names_and_draws_undirected_edges_once(self):
        text = graphs.to_dot([[0, 1, 1], [1, 0, 0], [0, 0, 0]], self.names)
        assert text.splitlines() == [
            "digraph {",
            '  "p44/42";',
            '  "a \\"quoted\\" <b> & c\\\\";',
            '  "ünï";',
            '  "p44/42" -> "a \\"quoted\\" <b> & c\\\\" [dir=none];',
            '  "p44/42" -> "ünï";',
            "}",
        ]
