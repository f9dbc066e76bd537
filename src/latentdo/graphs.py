"""Directed acyclic graphs as 0/1 matrices: checks, orders, random graphs and export.

Everywhere ``adjacency[i, j] == 1`` means ``i -> j`` (the row causes the column), as in networkx. Functions
accept arrays, nested lists or pandas frames; the rows of a frame are first put into the order of its columns,
*by name*. Results are fresh int64 arrays. Essential graphs live in :mod:`latentdo.equivalence`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, Literal

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Adjacency",
    "all_dags",
    "ancestors",
    "as_adjacency",
    "edges",
    "find_cycle",
    "from_edges",
    "is_dag",
    "random_dag",
    "reachability",
    "to_dot",
    "to_graphml",
    "to_networkx",
    "topological_order",
    "variable_names",
]

Adjacency = NDArray[np.int64]
"""A square 0/1 matrix; ``adjacency[i, j] == 1`` means ``i -> j``."""

GraphLike = ArrayLike | pd.DataFrame


def as_adjacency(adjacency: GraphLike, *, what: str = "adjacency") -> Adjacency:
    """Validate a graph and return it as a fresh integer matrix.

    Parameters
    ----------
    adjacency : array_like or DataFrame, shape (d, d)
        Entries 0/1 or booleans. The rows of a frame are reordered to follow its columns.
    what : str
        How error messages call the argument.

    Returns
    -------
    ndarray of int64, shape (d, d)

    Raises
    ------
    ValueError
        If the matrix is not square, holds anything but 0 and 1, or a frame's row and column names differ.

    Examples
    --------
    >>> import pandas as pd
    >>> as_adjacency(pd.DataFrame([[0, 0], [0, 1]], index=["b", "a"], columns=["a", "b"]))
    array([[0, 1],
           [0, 0]])
    """
    if isinstance(adjacency, pd.DataFrame):
        adjacency = _rows_like_columns(adjacency, what)
    matrix = np.asarray(adjacency)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{what} must be a square matrix, but its shape is {matrix.shape}")
    if matrix.dtype.kind not in "biuf":
        try:
            matrix = matrix.astype(float)
        except (TypeError, ValueError):
            raise ValueError(
                f"{what} must hold the numbers 0 and 1, but its type is {matrix.dtype}"
            ) from None
    wrong = np.argwhere(~((matrix == 0) | (matrix == 1)))
    if len(wrong):
        row, column = (int(index) for index in wrong[0])
        raise ValueError(
            f"{what} must hold only 0 and 1, but entry [{row}, {column}] is {matrix[row, column]}"
            f" ({len(wrong)} such entries); threshold probabilities before calling"
        )
    return matrix.astype(np.int64)


def _rows_like_columns(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """Put the rows of a frame into the order of its columns, by name."""
    if frame.shape[0] != frame.shape[1]:
        raise ValueError(f"{what} must be a square matrix, but its shape is {frame.shape}")
    for axis, index in (("row", frame.index), ("column", frame.columns)):
        if not index.is_unique:
            repeated = sorted({str(name) for name in index[index.duplicated()]})
            raise ValueError(f"{what} has repeated {axis} names: {', '.join(repeated)}")
    rows, columns = set(frame.index), set(frame.columns)
    if rows != columns:
        raise ValueError(
            f"{what} must have the same names on rows and columns; only on rows: {_listed(rows - columns)};"
            f" only on columns: {_listed(columns - rows)}"
        )
    return frame.loc[list(frame.columns)]


def _listed(names: Iterable[object]) -> str:
    return ", ".join(sorted(str(name) for name in names)) or "none"


def variable_names(adjacency: GraphLike, names: Sequence[object] | None = None) -> list[str]:
    """Names of the variables, as strings: those given, else a frame's columns, else ``X0, X1, ...``.

    Raises
    ------
    ValueError
        If their number does not fit or a name is repeated.

    Examples
    --------
    >>> variable_names([[0, 1], [0, 0]])
    ['X0', 'X1']
    """
    if names is None and isinstance(adjacency, pd.DataFrame):
        names = list(adjacency.columns)
    d = len(as_adjacency(adjacency))
    if names is None:
        return [f"X{index}" for index in range(d)]
    found = [str(name) for name in names]
    if len(found) != d:
        raise ValueError(f"{len(found)} names given for {d} variables")
    if len(set(found)) != d:
        repeated = {name for name in found if found.count(name) > 1}
        raise ValueError(f"variable names must be unique, but these are repeated: {_listed(repeated)}")
    return found


def _peel(matrix: Adjacency) -> tuple[list[int], NDArray[np.bool_]]:
    """Remove sources until none is left: their order, and a mask of the variables on or below a cycle."""
    incoming = matrix.sum(axis=0)
    remaining = np.ones(len(matrix), dtype=bool)
    order: list[int] = []
    while True:
        sources = np.flatnonzero(remaining & (incoming == 0))
        if not len(sources):
            return order, remaining
        order.extend(sources.tolist())
        remaining[sources] = False
        incoming -= matrix[sources].sum(axis=0)


def is_dag(adjacency: GraphLike) -> bool:
    """Whether the graph has no directed cycle (a loop ``i -> i`` is one, and so is ``i -> j -> i``).

    Examples
    --------
    >>> is_dag([[0, 1], [0, 0]]), is_dag([[0, 1], [1, 0]])
    (True, False)
    """
    return not _peel(as_adjacency(adjacency))[1].any()


def find_cycle(adjacency: GraphLike) -> list[int] | None:
    """Find one directed cycle.

    Returns
    -------
    list of int or None
        Variables ``[a, b, ..., c]`` with ``a -> b -> ... -> c -> a``, the smallest first; None for a DAG.

    Examples
    --------
    >>> find_cycle([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    [0, 1, 2]
    >>> find_cycle([[0, 1], [0, 0]]) is None
    True
    """
    matrix = as_adjacency(adjacency)
    remaining = _peel(matrix)[1]
    if not remaining.any():
        return None
    # Every variable left has a cause that is left, so walking upwards must come back to where it was.
    walk = [int(np.flatnonzero(remaining)[0])]
    while True:
        cause = int(np.flatnonzero(matrix[:, walk[-1]] & remaining)[0])
        if cause in walk:
            cycle = walk[walk.index(cause) :][::-1]
            start = cycle.index(min(cycle))
            return cycle[start:] + cycle[:start]
        walk.append(cause)


def topological_order(adjacency: GraphLike) -> list[int]:
    """Order the variables so that every cause comes before its effects.

    The order is deterministic: layer by layer, by index within a layer.

    Raises
    ------
    ValueError
        If the graph is cyclic; the message names one cycle.

    Examples
    --------
    >>> topological_order([[0, 0, 0], [1, 0, 0], [1, 1, 0]])
    [2, 1, 0]
    """
    order, remaining = _peel(as_adjacency(adjacency))
    if remaining.any():
        names = list(adjacency.columns) if isinstance(adjacency, pd.DataFrame) else None
        cycle = find_cycle(adjacency) or []
        shown = [str(names[index] if names else index) for index in [*cycle, *cycle[:1]]]
        raise ValueError(f"the graph is not acyclic: it has the cycle {' -> '.join(shown)}")
    return order


def reachability(adjacency: GraphLike) -> Adjacency:
    """Matrix of directed paths: ``[i, j] == 1`` if there is a path of at least one edge from i to j.

    In a DAG, row i marks the descendants of i and column j the ancestors of j.

    Examples
    --------
    >>> reachability([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    array([[0, 1, 1],
           [0, 0, 1],
           [0, 0, 0]])
    """
    reach = as_adjacency(adjacency).astype(bool)
    for middle in range(len(reach)):  # Warshall's closure
        reach |= np.outer(reach[:, middle], reach[middle])
    return reach.astype(np.int64)


def ancestors(adjacency: GraphLike, variable: int) -> frozenset[int]:
    """Variables with a directed path of at least one edge into `variable`.

    Examples
    --------
    >>> sorted(ancestors([[0, 1, 0], [0, 0, 1], [0, 0, 0]], 2))
    [0, 1]
    """
    matrix = as_adjacency(adjacency)
    found: set[int] = set()
    todo = [variable]
    while todo:
        causes = set(np.flatnonzero(matrix[:, todo.pop()]).tolist()) - found
        found |= causes
        todo.extend(causes)
    return frozenset(found)


def random_dag(
    n_variables: int,
    *,
    edges_per_node: float | None = None,
    edge_probability: float | None = None,
    kind: Literal["erdos-renyi", "scale-free"] = "erdos-renyi",
    rng: np.random.Generator,
) -> Adjacency:
    """Draw a random DAG with a given expected number of edges.

    Exactly one of `edges_per_node` (``e``) and `edge_probability` (``p``) sets the density. For both kinds
    the expected number of edges is ``e * d``, or ``p * d * (d - 1) / 2``, at most that of a complete DAG.

    Parameters
    ----------
    n_variables : int
        Number of variables ``d``.
    edges_per_node : float, optional
        Expected edges a variable: edge probability ``2 e / (d - 1)``, capped at 1.
    edge_probability : float, optional
        Probability that a pair of variables is connected.
    kind : {"erdos-renyi", "scale-free"}
        "erdos-renyi": every pair below a random order is connected independently. "scale-free": variables
        arrive one after another and receive causes among the earlier ones, chosen without replacement with
        probability proportional to degree + 1 (preferential attachment): hubs are causes, and parent sets
        stay small. Both end with a random permutation, so that an index says nothing about the order.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of int64, shape (d, d)

    Examples
    --------
    >>> graph = random_dag(10, edges_per_node=1, rng=np.random.default_rng(0))
    >>> graph.shape, is_dag(graph)
    ((10, 10), True)
    """
    probability = _edge_probability(n_variables, edges_per_node, edge_probability)
    if kind == "erdos-renyi":
        draws = rng.random((n_variables, n_variables)) < probability
        ordered = np.triu(draws, k=1).astype(np.int64)
    elif kind == "scale-free":
        ordered = _preferential_attachment(n_variables, probability, rng)
    else:
        raise ValueError(f'kind must be "erdos-renyi" or "scale-free", not {kind!r}')
    permutation = rng.permutation(n_variables)
    return ordered[np.ix_(permutation, permutation)]


def _edge_probability(d: int, edges_per_node: float | None, edge_probability: float | None) -> float:
    if d < 1:
        raise ValueError(f"n_variables must be at least 1, not {d}")
    if (edges_per_node is None) == (edge_probability is None):
        raise ValueError("give exactly one of edges_per_node and edge_probability")
    if edges_per_node is not None:
        if not 0 <= edges_per_node < np.inf:
            raise ValueError(f"edges_per_node must be finite and at least 0, not {edges_per_node}")
        return min(1.0, 2 * edges_per_node / (d - 1)) if d > 1 else 0.0
    assert edge_probability is not None
    if not 0 <= edge_probability <= 1:
        raise ValueError(f"edge_probability must be between 0 and 1, not {edge_probability}")
    return float(edge_probability)


def _preferential_attachment(d: int, probability: float, rng: np.random.Generator) -> Adjacency:
    """Draw an upper triangular scale-free graph with ``probability * d * (d - 1) / 2`` expected edges."""
    # Arrival t takes min(t, m) causes on average; m is what makes the total right. The total is piecewise
    # linear in m with knots at the integers, so interpolation inverts it exactly.
    arrivals = np.arange(d)
    totals = np.minimum(arrivals[:, None], arrivals[None, :]).sum(axis=1)
    expected = probability * d * (d - 1) / 2
    means = np.minimum(arrivals, np.interp(expected, totals, arrivals))
    counts = np.floor(means + rng.random(d)).astype(int)
    adjacency = np.zeros((d, d), dtype=np.int64)
    attraction = np.ones(d)
    for arrival in range(1, d):
        weights = attraction[:arrival] / attraction[:arrival].sum()
        causes = rng.choice(arrival, size=counts[arrival], replace=False, p=weights)
        adjacency[causes, arrival] = 1
        attraction[causes] += 1
        attraction[arrival] += len(causes)
    return adjacency


def all_dags(n_variables: int) -> Iterator[Adjacency]:
    """Yield every DAG on at most five labelled variables: 1, 3, 25, 543 or 29 281 of them.

    Meant as an exact oracle for tests.

    Examples
    --------
    >>> sum(1 for _ in all_dags(3))
    25
    """
    if not 1 <= n_variables <= 5:
        raise ValueError(f"all_dags enumerates graphs of 1 to 5 variables, not {n_variables}")
    pairs = list(combinations(range(n_variables), 2))
    states = np.array(list(product(range(3), repeat=len(pairs)))).reshape(3 ** len(pairs), len(pairs))
    graphs = np.zeros((len(states), n_variables, n_variables), dtype=np.int64)
    for column, (first, second) in enumerate(pairs):
        graphs[:, first, second] = states[:, column] == 1
        graphs[:, second, first] = states[:, column] == 2
    walks = graphs
    for _ in range(n_variables - 1):  # a graph is acyclic if and only if no walk has d edges
        walks = walks @ graphs
    for graph in graphs[~walks.any(axis=(1, 2))]:
        yield graph.copy()


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
