"""Random graphs, and all graphs of a few variables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Literal

import numpy as np

from latentdo.graphs.matrix import Adjacency


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
        Expected edges per variable: edge probability ``2 e / (d - 1)``, capped at 1.
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
    >>> from latentdo.graphs import is_dag
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
