"""Graphs and results in the objects of other packages, and back.

Every ``to_`` function takes a fitted estimator, a :class:`~latentdo.BootstrapDAG` (its consensus), a result, or an
adjacency as a DataFrame. Other packages are imported when they are needed; if one is missing, the message names the
extra that brings it.
"""

from latentdo.interop.formats import (
    from_networkx,
    to_dot,
    to_frame,
    to_graphml,
    to_json,
    to_networkx,
    write_graph,
)
from latentdo.interop.peers import from_causal_learn, from_pgmpy, to_causal_learn, to_dowhy, to_pgmpy
from latentdo.interop.single_cell import Cells, from_anndata, to_anndata

__all__ = [
    "Cells",
    "from_anndata",
    "from_causal_learn",
    "from_networkx",
    "from_pgmpy",
    "to_anndata",
    "to_causal_learn",
    "to_dot",
    "to_dowhy",
    "to_frame",
    "to_graphml",
    "to_json",
    "to_networkx",
    "to_pgmpy",
    "write_graph",
]
