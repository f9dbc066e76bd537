import json

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from latentdo import BootstrapDAG, LatentInterventionDAG, interop, metrics, simulate

NAMES = ["a", "b", "c", "d"]
GRAPH = pd.DataFrame(
    [[0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]], index=NAMES, columns=NAMES
)  # a diamond
EDGES = {("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")}


@pytest.fixture(scope="module")
def data():
    return simulate(n_variables=3, n_samples=300, random_state=1)


@pytest.fixture(scope="module")
def est(data):
    return LatentInterventionDAG(density="linear", max_regimes=4, n_init=1).fit(data.X)


def edges_of(est):
    return {(a, b) for a in est.adjacency_ for b in est.adjacency_ if est.adjacency_.loc[a, b]}


def test_networkx_there_and_back(est):
    graph = interop.to_networkx(est)
    assert set(graph.edges) == edges_of(est)
    assert all(0 <= value["probability"] <= 1 for *_, value in graph.edges(data=True))
    pd.testing.assert_frame_equal(interop.from_networkx(graph), est.adjacency_)
    with pytest.raises(ValueError, match="undirected"):
        interop.from_networkx(nx.Graph([("a", "b")]))


def test_text_formats_are_read_by_others(est, tmp_path):
    interop.write_graph(est, tmp_path / "g.graphml")
    assert set(nx.read_graphml(tmp_path / "g.graphml").edges) == edges_of(est)
    interop.write_graph(est, tmp_path / "g.json")
    back = nx.node_link_graph(json.loads((tmp_path / "g.json").read_text()), edges="edges")
    assert set(back.edges) == edges_of(est)
    interop.write_graph(est, tmp_path / "g.csv")
    table = pd.read_csv(tmp_path / "g.csv")
    assert set(zip(table["cause"], table["effect"], strict=True)) == edges_of(est)
    assert table["probability"].is_monotonic_decreasing
    interop.write_graph(est, tmp_path / "g.dot")
    assert '"' + next(iter(edges_of(est)))[0] + '" ->' in (tmp_path / "g.dot").read_text()
    with pytest.raises(ValueError, match=r"use one of the endings .*\.graphml"):
        interop.write_graph(est, tmp_path / "g.png")


def test_a_bootstrap_gives_its_consensus(data):
    boot = BootstrapDAG(LatentInterventionDAG(density="linear", max_regimes=4, n_init=1), 2).fit(data.X)
    graph = interop.to_networkx(boot)
    assert all(value["support"] > 0.5 for *_, value in graph.edges(data=True))


def test_what_has_no_graph_is_refused():
    with pytest.raises(TypeError, match="fitted estimator"):
        interop.to_networkx(LatentInterventionDAG())


def test_graphs_without_edges(tmp_path):
    empty = GRAPH * 0
    assert len(interop.to_frame(empty)) == 0
    assert interop.to_networkx(empty).number_of_nodes() == 4


def test_causal_learn_there_and_back():
    pytest.importorskip("causallearn", reason="causal-learn is not installed; see the extra interop")
    graph = interop.to_causal_learn(GRAPH)
    found = {(e.get_node1().get_name(), e.get_node2().get_name()) for e in graph.get_graph_edges()}
    assert found == EDGES
    pd.testing.assert_frame_equal(interop.from_causal_learn(graph), GRAPH)


def test_causal_learns_own_results_can_be_compared():
    pytest.importorskip("causallearn", reason="causal-learn is not installed; see the extra interop")
    from causallearn.graph.Edge import Edge
    from causallearn.graph.Endpoint import Endpoint
    from causallearn.graph.GeneralGraph import GeneralGraph
    from causallearn.graph.GraphNode import GraphNode

    nodes = [GraphNode(name) for name in NAMES]
    graph = GeneralGraph(nodes)
    graph.add_edge(Edge(nodes[0], nodes[1], Endpoint.TAIL, Endpoint.ARROW))
    graph.add_edge(Edge(nodes[1], nodes[2], Endpoint.TAIL, Endpoint.TAIL))
    found = interop.from_causal_learn(graph)
    assert found.loc["a", "b"] == 1
    assert found.loc["b", "a"] == 0
    assert found.loc["b", "c"] == found.loc["c", "b"] == 1
    assert metrics.shd(GRAPH, found) > 0
    graph.add_edge(Edge(nodes[2], nodes[3], Endpoint.ARROW, Endpoint.ARROW))
    with pytest.raises(ValueError, match="between c and d is neither directed"):
        interop.from_causal_learn(graph)


def test_pgmpy_there_and_back():
    pytest.importorskip("pgmpy", reason="pgmpy is not installed; see the extra interop")
    graph = interop.to_pgmpy(GRAPH)
    assert type(graph).__module__.startswith("pgmpy")
    assert set(graph.edges) == EDGES
    pd.testing.assert_frame_equal(interop.from_pgmpy(graph), GRAPH)


def test_dowhy_takes_our_graph():
    dowhy = pytest.importorskip("dowhy", reason="DoWhy is not installed; see the extra interop")
    gcm = pytest.importorskip("dowhy.gcm")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(50, 4)), columns=NAMES)
    graph = interop.to_dowhy(GRAPH)
    model = dowhy.CausalModel(X, treatment="b", outcome="d", graph=graph)
    assert set(model.get_common_causes()) == {"a"}
    mechanisms = gcm.StructuralCausalModel(graph)
    for name in NAMES:
        root = not GRAPH[name].any()
        linear = gcm.AdditiveNoiseModel(gcm.ml.create_linear_regressor())
        mechanisms.set_causal_mechanism(name, gcm.EmpiricalDistribution() if root else linear)
    gcm.fit(mechanisms, X, return_evaluation_summary=False)
    drawn = gcm.interventional_samples(mechanisms, {"b": lambda _: 2.0}, num_samples_to_draw=5)
    assert (drawn["b"] == 2.0).all()


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pgmpy.base", None)
    with pytest.raises(ImportError, match=r'needs pgmpy; install it with: pip install "latentdo\[interop\]"'):
        interop.to_pgmpy(GRAPH)


@pytest.fixture
def cells():
    anndata = pytest.importorskip("anndata", reason="anndata is not installed; see the extra bio")
    from scipy import sparse

    rng = np.random.default_rng(0)
    raf = rng.normal(size=300)
    values = np.column_stack([rng.normal(size=300), raf, raf + 0.3 * rng.normal(size=300)])
    values[100:200, 2] += 5.0
    labels = ["control"] * 50 + [None] * 50 + ["drug"] * 50 + ["unknown"] * 150
    return anndata.AnnData(
        sparse.csr_matrix(values),
        obs=pd.DataFrame({"perturbation": labels}, index=[f"cell{i}" for i in range(300)]),
        var=pd.DataFrame(index=["Other", "Raf", "Mek"]),
    )


def test_scperturbs_names_are_the_default(cells):
    found = interop.from_anndata(cells, genes=["Mek", "Raf"])
    assert list(found.X.columns) == ["Mek", "Raf"]
    assert found.observational == "control"
    assert found.regimes.isna().sum() == 200  # missing ones, and those that say "unknown"
    assert set(found.regimes.dropna()) == {"control", "drug"}
    other = cells.copy()
    other.obs = other.obs.rename(columns={"perturbation": "guide"}).replace("control", "NT")
    assert interop.from_anndata(other).regimes is None
    named = interop.from_anndata(other, perturbation="guide", control="NT")
    assert named.observational == "NT"


def test_cells_are_fitted_and_written_back(cells, tmp_path):
    found = interop.from_anndata(cells, genes=["Raf", "Mek"])
    fitted = found.X.iloc[:250]
    est = LatentInterventionDAG(density="linear", max_regimes=4, n_init=1, observational=found.observational)
    est.fit(fitted, regimes=found.regimes.iloc[:250])
    out = interop.to_anndata(est, cells, X=fitted)
    assert "latentdo" not in cells.uns  # a copy
    out.write_h5ad(tmp_path / "out.h5ad")
    import anndata

    back = anndata.read_h5ad(tmp_path / "out.h5ad")
    edge = back.varp["latentdo_edge_probabilities"].toarray()
    assert edge[1, 2] == pytest.approx(est.edge_probabilities_.loc["Raf", "Mek"])
    assert not edge[0].any()
    assert back.varp["latentdo_adjacency"].shape == (3, 3)
    shares = back.obsm["latentdo_responsibilities"]
    np.testing.assert_allclose(shares[:250], est.responsibilities_)
    assert np.isnan(shares[250:]).all()
    assert back.obs["latentdo_regime"].isna().sum() == 50
    drug = list(back.uns["latentdo"]["regimes"]).index("drug")
    assert back.varm["latentdo_targets"][2, drug] > 0.5
    assert json.loads(back.uns["latentdo"]["summary"])["data_hash"] == est.result_.data_hash


def test_a_new_object_from_the_table_alone(est, data):
    pytest.importorskip("anndata", reason="anndata is not installed; see the extra bio")
    out = interop.to_anndata(est, X=data.X)
    assert out.shape == data.X.shape


def test_wrong_cells_are_named(cells, est):
    for arguments, message in (
        ({"genes": ["Raf", "Erk"]}, "no gene Erk; they have Other, Raf, Mek"),
        ({"layer": "counts"}, "no layer 'counts'; they have none"),
        ({"perturbation": "guide"}, "no column of obs 'guide'; they have perturbation"),
    ):
        with pytest.raises(ValueError, match=message):
            interop.from_anndata(cells, **arguments)
    with pytest.raises(ValueError, match="not in the data: X1, X2, X3"):
        interop.to_anndata(est, cells)
    with pytest.raises(ValueError, match="300 rows, but there are 10"):
        interop.to_anndata(est, cells[:10])
