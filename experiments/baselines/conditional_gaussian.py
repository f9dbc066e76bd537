"""Greedy equivalence search of pgmpy with a conditional Gaussian score, for tables with columns of several kinds."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from experiments.baselines.interface import Graph

CLASS = "class"


def equivalence_search(X: pd.DataFrame, classes: np.ndarray[Any, np.dtype[np.int64]] | None) -> Graph:
    """Graph over the columns of ``X``, undirected edges both ways; classes are one more column, left out at the end.

    Counts must have been made continuous; binary columns and categories are discrete to the score.
    """
    from pgmpy.causal_discovery import GES

    table = X.copy()
    for name in table.columns:
        if table[name].dtype.kind != "f":
            table[name] = table[name].astype(str).astype("category")
    if classes is not None and np.unique(classes).size > 1:
        table[CLASS] = pd.Categorical([f"class {k}" for k in classes])
    discrete = [name for name in table.columns if isinstance(table[name].dtype, pd.CategoricalDtype)]
    score = "bic-d" if len(discrete) == table.shape[1] else "bic-cg" if discrete else "bic-g"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = GES(scoring_method=score, return_type="pdag").fit(table).causal_graph_
    graph = np.zeros((X.shape[1],) * 2, dtype=np.int64)
    place = {name: j for j, name in enumerate(X.columns)}
    both = [(b, a) for a, b in found.undirected_edges]
    for cause, effect in [*found.directed_edges, *found.undirected_edges, *both]:
        if cause in place and effect in place:
            graph[place[cause], place[effect]] = 1
    return graph
