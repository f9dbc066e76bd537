"""Graph objects of causal-learn, pgmpy and DoWhy."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from latentdo.data.optional import need
from latentdo.interop.formats import from_networkx, to_networkx
from latentdo.interop.sources import named_graph


def to_causal_learn(source: Any) -> Any:
    """A ``causallearn.graph.Dag``, for example to compare with graphs that causal-learn found."""
    purpose = "Converting to causal-learn"
    dag = need("causallearn.graph.Dag", "causal-learn", "interop", purpose)
    node = need("causallearn.graph.GraphNode", "causal-learn", "interop", purpose)
    graph = named_graph(source)
    nodes = [node.GraphNode(name) for name in graph.names]
    out = dag.Dag(nodes)
    for i, j in np.argwhere(graph.adjacency):
        out.add_directed_edge(nodes[i], nodes[j])
    return out


def from_causal_learn(graph: Any) -> pd.DataFrame:
    """The adjacency of a graph of causal-learn.

    Undirected edges, as PC and GES leave them in an equivalence class, become a 1 in both directions, which
    :mod:`latentdo.metrics` understands as an edge of unknown direction. What these methods say about hidden common
    causes (bidirected edges and circles) has no counterpart here and is refused.
    """
    names = [node.get_name() for node in graph.get_nodes()]
    marks = np.asarray(graph.graph)
    # causal-learn: marks[j, i] is the mark at j of the edge between i and j; -1 a tail, 1 an arrowhead, 2 a circle
    tail_here, arrow_there = marks == -1, marks.T == 1
    undirected = (marks == -1) & (marks.T == -1)
    strange = (marks != 0) & ~(tail_here & arrow_there) & ~(tail_here & arrow_there).T & ~undirected
    if strange.any():
        i, j = np.argwhere(strange)[0]
        raise ValueError(
            f"the edge between {names[i]} and {names[j]} is neither directed nor undirected; graphs with hidden common "
            "causes cannot be converted"
        )
    adjacency = ((tail_here & arrow_there) | undirected).astype(np.int64)
    return pd.DataFrame(adjacency, index=names, columns=names)


def to_pgmpy(source: Any) -> Any:
    """A ``pgmpy.base.DAG``."""
    base = need("pgmpy.base", "pgmpy", "interop", "Converting to pgmpy")
    graph = named_graph(source)
    out = base.DAG()
    out.add_nodes_from(list(graph.names))
    out.add_edges_from((graph.names[i], graph.names[j]) for i, j in np.argwhere(graph.adjacency))
    return out


def from_pgmpy(graph: nx.DiGraph) -> pd.DataFrame:
    """The adjacency of a ``pgmpy.base.DAG``, which is a networkx graph."""
    plain = nx.DiGraph()
    plain.add_nodes_from(graph.nodes)
    plain.add_edges_from(graph.edges)
    return from_networkx(plain)


def to_dowhy(source: Any) -> nx.DiGraph:
    """A graph for ``dowhy.CausalModel(..., graph=...)`` and ``dowhy.gcm``, which take networkx graphs."""
    graph = to_networkx(source)
    plain = nx.DiGraph()
    plain.add_nodes_from(graph.nodes)
    plain.add_edges_from(graph.edges)  # without numbers on edges: DoWhy writes its own there
    return plain
