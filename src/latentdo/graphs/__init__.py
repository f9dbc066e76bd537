"""Directed acyclic graphs as 0/1 matrices: checks, orders, random graphs and export.

Everywhere ``adjacency[i, j] == 1`` means ``i -> j`` (the row causes the column), as in networkx. Functions
accept arrays, nested lists or pandas frames; the rows of a frame are first put into the order of its columns,
*by name*. Results are fresh int64 arrays. Essential graphs live in :mod:`latentdo.graphs.equivalence`.
"""

from latentdo.graphs.export import edges, from_edges, to_dot, to_graphml, to_networkx
from latentdo.graphs.generate import all_dags, random_dag
from latentdo.graphs.matrix import Adjacency, GraphLike, as_adjacency, variable_names
from latentdo.graphs.orders import ancestors, find_cycle, is_dag, reachability, topological_order

__all__ = [
    "Adjacency",
    "GraphLike",
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
