"""Graphs as networkx objects, tables and text: GraphML, DOT, JSON, CSV."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import networkx as nx
import numpy as np
import pandas as pd

from latentdo import graphs
from latentdo.files import write_atomically
from latentdo.interop.sources import named_graph
from latentdo.names import to_cell, visible

ENDINGS: Final = (".csv", ".dot", ".graphml", ".gv", ".json")
"""What :func:`write_graph` can write."""


def to_networkx(source: Any) -> nx.DiGraph:
    """A ``networkx.DiGraph``; edges carry ``probability`` (of a fit) or ``support`` (of a bootstrap).

    Examples
    --------
    >>> import pandas as pd
    >>> to_networkx(pd.DataFrame([[0, 1], [0, 0]], index=["rain", "wet"], columns=["rain", "wet"])).edges
    OutEdgeView([('rain', 'wet')])
    """
    graph = named_graph(source)
    return graphs.to_networkx(graph.adjacency, graph.names, edge_data=graph.edge_data)


def from_networkx(graph: nx.DiGraph) -> pd.DataFrame:
    """The adjacency of a networkx graph as a DataFrame, which metrics and ``to_`` functions accept.

    Raises
    ------
    ValueError
        If the graph is not directed, or two nodes have the same name as text.
    """
    if not graph.is_directed():
        raise ValueError("the graph is undirected; causes and effects need a networkx.DiGraph")
    names = [str(node) for node in graph.nodes]
    adjacency = graphs.from_edges([(str(a), str(b)) for a, b in graph.edges()], names)
    return pd.DataFrame(adjacency, index=names, columns=names)


def to_frame(source: Any) -> pd.DataFrame:
    """The edges as a table: cause, effect, and what is known of each (probability or support), the surest first."""
    graph = named_graph(source)
    pairs = np.argwhere(graph.adjacency)
    table = pd.DataFrame(
        {
            "cause": [graph.names[i] for i, _ in pairs],
            "effect": [graph.names[j] for _, j in pairs],
            **{key: values[pairs[:, 0], pairs[:, 1]] for key, values in graph.edge_data.items()},
        }
    )
    return table.sort_values(
        [*graph.edge_data][:1] or "cause", ascending=not graph.edge_data, ignore_index=True
    )


def to_graphml(source: Any) -> str:
    """GraphML for Cytoscape, Gephi and igraph; control and invisible characters are escaped."""
    graph = named_graph(source)
    return graphs.to_graphml(graph.adjacency, _visible(graph.names), edge_data=graph.edge_data)


def to_dot(source: Any) -> str:
    """Graphviz's language; control and invisible characters are escaped."""
    graph = named_graph(source)
    return graphs.to_dot(graph.adjacency, _visible(graph.names))


def to_json(source: Any) -> str:
    """Node-link JSON, which D3 and ``networkx.node_link_graph`` read."""
    return json.dumps(nx.node_link_data(to_networkx(source), edges="edges"), indent=2, allow_nan=False) + "\n"


def write_graph(source: Any, path: str | Path) -> None:
    """Write the graph to a file, in the format that its ending names: csv, dot, gv, graphml or json."""
    path = Path(path)
    ending = path.suffix.lower()
    if ending == ".csv":
        edges = to_frame(source)
        names = {key: edges[key].map(to_cell) for key in ("cause", "effect")}
        text = edges.assign(**names).to_csv(index=False, lineterminator="\n")
    elif ending in (".dot", ".gv"):
        text = to_dot(source) + "\n"
    elif ending == ".graphml":
        text = to_graphml(source) + "\n"
    elif ending == ".json":
        text = to_json(source)
    else:
        raise ValueError(f"cannot write {path.name!r}: use one of the endings {', '.join(ENDINGS)}")
    content = text.encode("utf-8", errors="backslashreplace")
    write_atomically(path, lambda temporary: temporary.write_bytes(content))


def _visible(names: Sequence[str]) -> list[str]:
    """Names without hidden characters, still different from each other."""
    found: list[str] = []
    for name in names:
        text = visible(name)
        while text in found:
            text += "\ufffd"
        found.append(text)
    return found
