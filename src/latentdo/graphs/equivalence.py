"""Which DAGs data cannot tell apart: (interventional) Markov equivalence and essential graphs.

A partially directed graph is a 0/1 matrix in which an undirected edge ``i - j`` has both entries equal to 1.

References
----------
Hauser and Bühlmann (2012), "Characterization and greedy learning of interventional Markov equivalence classes
of directed acyclic graphs", JMLR 13. Yang, Katcoff and Uhler (2018), "Characterizing and learning equivalence
classes of causal DAGs under interventions", ICML. Meek (1995), "Causal inference and causal explanation with
background knowledge", UAI.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from latentdo.graphs import Adjacency, GraphLike, as_adjacency, topological_order, variable_names

Intervention = Literal["imperfect", "perfect"]


def as_targets(targets: ArrayLike | pd.DataFrame, adjacency: GraphLike) -> NDArray[np.int64]:
    """Validate intervention targets for the variables of a graph, in the order of its columns.

    Parameters
    ----------
    targets : array_like or DataFrame, shape (n_regimes, d)
        Entries 0/1. If both arguments are frames, columns are aligned by name.
    adjacency : array_like or DataFrame, shape (d, d)

    Raises
    ------
    ValueError
        If shapes or names do not fit, or an entry is neither 0 nor 1.

    Examples
    --------
    >>> as_targets([[False, False], [True, False]], adjacency=[[0, 1], [0, 0]])
    array([[0, 0],
           [1, 0]])
    """
    if isinstance(targets, pd.DataFrame) and isinstance(adjacency, pd.DataFrame):
        wanted, given = list(adjacency.columns), list(targets.columns)
        if len(given) != len(wanted) or set(given) != set(wanted):
            raise ValueError(
                "targets and adjacency must have the same column names, each once;"
                f" targets: {', '.join(map(str, given))}; adjacency: {', '.join(map(str, wanted))}"
            )
        targets = targets[wanted]
    d = len(as_adjacency(adjacency))
    matrix = np.asarray(targets)
    if matrix.ndim != 2 or matrix.shape[1] != d:
        raise ValueError(
            f"targets must have shape (n_regimes, {d}), one column per variable, not {matrix.shape}"
        )
    if not np.isin(matrix, (0, 1)).all():
        raise ValueError("targets must hold only 0 and 1; threshold probabilities before calling")
    return matrix.astype(np.int64)


def meek_closure(partial: GraphLike) -> Adjacency:
    """Orient all undirected edges whose direction follows from the others, by Meek's four rules.

    A direction follows if the other one would close a directed cycle or make a new v-structure.

    Parameters
    ----------
    partial : array_like or DataFrame, shape (d, d)
        A partially directed graph that already shows every v-structure.

    Returns
    -------
    ndarray of int64, shape (d, d)

    Raises
    ------
    ValueError
        If the rules ask for both directions of an edge, so that no DAG fits.

    Examples
    --------
    ``0 -> 1 - 2`` without an edge between 0 and 2: had ``2 -> 1`` been true, 1 would be a visible collider.

    >>> meek_closure([[0, 1, 0], [0, 0, 1], [0, 1, 0]])
    array([[0, 1, 0],
           [0, 0, 1],
           [0, 0, 0]])
    """
    graph = as_adjacency(partial).astype(bool)
    adjacent = graph | graph.T
    apart = ~(adjacent | np.eye(len(graph), dtype=bool))
    while True:
        undirected = graph & graph.T
        directed = graph & ~graph.T
        # Rule 1: c -> a - b with c, b apart. Rule 2: a -> c -> b.
        follows = undirected & ((directed.T @ apart) | (directed @ directed))
        for a, b in np.argwhere(undirected & ~follows):
            causes = directed[:, b]
            # Rule 3: a - c -> b and a - e -> b with c, e apart.
            pair = undirected[a] & causes
            follows[a, b] = bool(apart[np.ix_(pair, pair)].any())
            # Rule 4: a - e -> c -> b with a, c adjacent and e, b apart.
            first, second = undirected[a] & apart[b], adjacent[a] & causes
            follows[a, b] |= bool(directed[np.ix_(first, second)].any())
        if (follows & follows.T).any():
            raise ValueError(
                "no DAG extends this partially directed graph: its directions contradict each other"
            )
        if not follows.any():
            return graph.astype(np.int64)
        graph &= ~follows.T


def _colliders(graph: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Edges ``i -> k`` that are part of a v-structure ``i -> k <- j`` with i and j not adjacent."""
    apart = ~(graph | graph.T | np.eye(len(graph), dtype=bool))
    return graph & (apart @ graph)


def _split_by_regimes(targets: NDArray[np.int64], intervention: Intervention) -> NDArray[np.bool_]:
    """Pairs ``[a, b]`` that some comparison of regimes separates: a's mechanism changed and b's did not."""
    hit, spared = targets.astype(bool), ~targets.astype(bool)
    some_regime: NDArray[np.bool_] = hit.T @ spared
    if intervention == "imperfect":
        # Regimes I and J agree only on mechanisms outside their *union*. A union that holds a but not b
        # exists if a regime hits a and spares b, and another one spares b, too.
        some_regime &= spared.sum(axis=0) >= 2
        return some_regime
    if intervention != "perfect":
        raise ValueError(f'intervention must be "imperfect" or "perfect", not {intervention!r}')
    return some_regime


def essential_graph(
    adjacency: GraphLike,
    targets: ArrayLike | pd.DataFrame | None = None,
    *,
    intervention: Intervention = "imperfect",
) -> Adjacency:
    r"""Interventional essential graph: what all DAGs of the equivalence class have in common.

    It has the skeleton of the DAG. An edge is directed if it points the same way in every DAG of the class:
    those of v-structures, those that a comparison of regimes orients, and what follows (Meek's rules).

    Parameters
    ----------
    adjacency : array_like or DataFrame, shape (d, d)
        A DAG.
    targets : array_like or DataFrame of 0/1, shape (n_regimes, d), optional
        One row per regime *that was seen*; a row of zeros is an observational regime. None: observational data
        only, which gives the completed partially directed graph (CPDAG). Leave out rows without data, such as
        row 0 of a fit with ``has_observational_ == False``.
    intervention : {"imperfect", "perfect"}
        What interventions do to mechanisms. It matters only without an observational regime; see the notes.

    Returns
    -------
    ndarray of int64, shape (d, d)
        Undirected edges have both entries equal to 1.

    Raises
    ------
    ValueError
        If the graph is cyclic, or interventions are perfect and some variable is a target in every regime.

    Notes
    -----
    Interventions are taken to be generic: two regimes with the same target change its mechanism differently.
    With an observational regime, an edge is oriented if some regime hits exactly one of its ends, whether or
    not interventions are perfect (Yang, Katcoff and Uhler, 2018).

    Without one, regimes can only be compared with each other. Regimes I and J share the mechanisms outside
    :math:`I \cup J`, so for imperfect interventions an edge is oriented if exactly one end lies in the union
    of two different regimes. (The symmetric difference would claim too much: a variable that both hit has in
    general two different mechanisms.) Perfect interventions also show by themselves, because they cut the
    incoming edges: one regime that hits exactly one end is enough (Hauser and Bühlmann, 2012). That theory
    needs a *conservative* family, in which every variable is spared by some regime; otherwise edges into that
    variable are invisible, and an error is raised.

    Examples
    --------
    A single edge is directed only once an intervention hits one end:

    >>> essential_graph([[0, 1], [0, 0]])
    array([[0, 1],
           [1, 0]])
    >>> essential_graph([[0, 1], [0, 0]], targets=[[0, 0], [0, 1]])
    array([[0, 1],
           [0, 0]])

    Without observational rows, imperfect interventions on the two ends leave it open; perfect ones do not:

    >>> essential_graph([[0, 1], [0, 0]], targets=[[1, 0], [0, 1]])
    array([[0, 1],
           [1, 0]])
    >>> essential_graph([[0, 1], [0, 0]], targets=[[1, 0], [0, 1]], intervention="perfect")
    array([[0, 1],
           [0, 0]])
    """
    topological_order(adjacency)  # raises for a cyclic graph, naming the cycle
    graph = as_adjacency(adjacency).astype(bool)
    d = len(graph)
    hit = as_targets(np.zeros((1, d)) if targets is None else targets, adjacency)
    split = _split_by_regimes(hit, intervention)
    always = np.flatnonzero(hit.all(axis=0)) if len(hit) else np.array([], dtype=int)
    if intervention == "perfect" and len(always):
        names = variable_names(adjacency)
        raise ValueError(
            "perfect interventions must spare every variable in some regime, but every regime hits "
            f"{', '.join(names[index] for index in always)}: what causes it cannot be seen"
        )
    oriented = _colliders(graph) | (graph & (split | split.T))
    return meek_closure(graph | (graph.T & ~oriented.T))


def interventionally_equivalent(
    first: GraphLike,
    second: GraphLike,
    targets: ArrayLike | pd.DataFrame | None = None,
    *,
    intervention: Intervention = "imperfect",
) -> bool:
    """Whether data from these regimes cannot tell two DAGs apart (without targets: Markov equivalence).

    Two frames are aligned by name. See :func:`essential_graph` for the parameters and assumptions.

    Examples
    --------
    >>> interventionally_equivalent([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    True
    >>> interventionally_equivalent([[0, 1], [0, 0]], [[0, 0], [1, 0]], targets=[[0, 0], [1, 0]])
    False
    """
    if isinstance(first, pd.DataFrame) and isinstance(second, pd.DataFrame):
        if set(first.columns) != set(second.columns):
            raise ValueError("the two graphs must have the same variable names")
        second = second.loc[list(first.columns), list(first.columns)]
    one = essential_graph(first, targets, intervention=intervention)
    other = essential_graph(second, targets, intervention=intervention)
    return bool(np.array_equal(one, other))
