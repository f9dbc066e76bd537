"""Graphs to and from lists of edges, networkx, Graphviz and GraphML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from latentdo.graphs.matrix import Adjacency, GraphLike, as_adjacency, variable_names


def from_edges(edges: Iterable[tuple[object, object]], names: Sequence[object]) -> Adjacency:
    """Build an adjacency matrix, in the order of `names`, from pairs ``(cause, effect)`` of names.

    Examples
    --------
    >>> from_edges([("raf", "mek"), ("mek", "erk")], names=["erk", "mek", "raf"])
    array([[0, 0, 0],
           [1, 0, 0],
           [0, 1, 0]])
    """
    adjacency = np.zeros((len(names), len(names)), dtype=np.int64)
    place = {name: index for index, name in enumerate(variable_names(adjacency, names))}
    for cause, effect in edges:
        unknown = [str(name) for name in (cause, effect) if str(name) not in place]
        if unknown:
            raise ValueError(
                f"edge {cause} -> {effect} has unknown names: {', '.join(unknown)}; known: {', '.join(place)}"
            )
        adjacency[place[str(cause)], place[str(effect)]] = 1
    return adjacency


def edges(adjacency: GraphLike, names: Sequence[object] | None = None) -> list[tuple[str, str]]:
    """List the edges as pairs ``(cause, effect)`` of names, by row and then column.

    Examples
    --------
    >>> edges([[0, 1], [0, 0]], ["rain", "wet"])
    [('rain', 'wet')]
    """
    labels = variable_names(adjacency, names)
    return [(labels[i], labels[j]) for i, j in np.argwhere(as_adjacency(adjacency)).tolist()]


def to_networkx(
    adjacency: GraphLike,
    names: Sequence[object] | None = None,
    *,
    edge_data: Mapping[str, ArrayLike] | None = None,
) -> Any:
    """Convert to a ``networkx.DiGraph`` whose nodes are the names, in the order of the columns.

    Parameters
    ----------
    adjacency : array_like or DataFrame, shape (d, d)
    names : sequence, optional
        Names of the variables; see :func:`variable_names`.
    edge_data : mapping from str to array_like of shape (d, d), optional
        Numbers to attach to the edges, in the order of the columns: ``{"probability": probabilities}``.

    Examples
    --------
    >>> to_networkx([[0, 1], [0, 0]], ["rain", "wet"]).edges
    OutEdgeView([('rain', 'wet')])
    """
    matrix = as_adjacency(adjacency)
    labels = variable_names(adjacency, names)
    tables = {key: np.asarray(table, dtype=float) for key, table in (edge_data or {}).items()}
    for key, table in tables.items():
        if table.shape != matrix.shape:
            raise ValueError(f"edge_data[{key!r}] has shape {table.shape}, but the graph {matrix.shape}")
    graph = nx.DiGraph()
    graph.add_nodes_from(labels)
    for i, j in np.argwhere(matrix).tolist():
        graph.add_edge(labels[i], labels[j], **{key: float(table[i, j]) for key, table in tables.items()})
    return graph


def to_dot(adjacency: GraphLike, names: Sequence[object] | None = None) -> str:
    r"""Write the graph in Graphviz's language; a pair with both directions becomes one undirected edge.

    Examples
    --------
    >>> print(to_dot([[0, 1], [0, 0]], ["rain", "wet"]))
    digraph {
      "rain";
      "wet";
      "rain" -> "wet";
    }
    """
    matrix = as_adjacency(adjacency)
    quoted = [
        '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
        for name in variable_names(adjacency, names)
    ]
    lines = [f"  {name};" for name in quoted]
    for i, j in np.argwhere(matrix).tolist():
        if not matrix[j, i]:
            lines.append(f"  {quoted[i]} -> {quoted[j]};")
        elif i < j:
            lines.append(f"  {quoted[i]} -> {quoted[j]} [dir=none];")
    return "\n".join(["digraph {", *lines, "}"])


def to_graphml(
    adjacency: GraphLike,
    names: Sequence[object] | None = None,
    *,
    edge_data: Mapping[str, ArrayLike] | None = None,
) -> str:
    """Write the graph as GraphML (Cytoscape, Gephi, igraph, ...); arguments as for :func:`to_networkx`.

    Examples
    --------
    >>> text = to_graphml([[0, 1], [0, 0]], ["rain", "wet"])
    >>> '<edge source="rain" target="wet" />' in text
    True
    """
    return "\n".join(nx.generate_graphml(to_networkx(adjacency, names, edge_data=edge_data)))
