"""What can be taken to another package: anything that knows a graph over named variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latentdo.graphs import Adjacency, as_adjacency, variable_names
from latentdo.result import FitResult


@dataclass(frozen=True, eq=False)
class NamedGraph:
    """A directed graph, and numbers about its edges.

    Parameters
    ----------
    names : tuple of str
        The variables.
    adjacency : ndarray [d, d]
        ``adjacency[i, j] == 1``: i causes j.
    edge_data : mapping from str to ndarray [d, d]
        For example the probability of every edge.
    """

    names: tuple[str, ...]
    adjacency: Adjacency
    edge_data: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)


def named_graph(source: Any) -> NamedGraph:
    """The graph of a fitted estimator, a fitted bootstrap, a result or a DataFrame.

    Raises
    ------
    TypeError
        If the source is nothing of the kind, or an estimator that was not fitted.
    """
    if isinstance(source, pd.DataFrame):
        return NamedGraph(tuple(variable_names(source)), as_adjacency(source))
    result = source if isinstance(source, FitResult) else getattr(source, "result_", None)
    if isinstance(result, FitResult):
        probabilities = {"probability": np.asarray(result.edge_probabilities, dtype=np.float64)}
        return NamedGraph(tuple(result.columns), as_adjacency(result.adjacency), probabilities)
    support = getattr(source, "edge_support_", None)
    if support is not None:
        names = tuple(variable_names(source.adjacency_))
        return NamedGraph(names, as_adjacency(source.adjacency_), {"support": support.to_numpy(np.float64)})
    raise TypeError(
        f"{type(source).__name__} has no graph; pass a fitted estimator or bootstrap, a result, or an adjacency as a "
        "DataFrame."
    )
