"""Topic, LINC, CMM and SpaceTime (package ``causalchange``): causes in topological order, by description length.

CMM is the nearest relative of this package: one table without labels, and a mixture of regressions per variable, whose
switches are independent of each other. It needs R with flexmix (Debian: ``r-base-core``, ``r-cran-flexmix``).
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import pandas as pd

from experiments.baselines.interface import Graph, Problem

CONTEXT = "context"


def topic(problem: Problem) -> Graph:
    """One population."""
    from causalchange import Topic

    return _fit(Topic(score_type=_score(problem), seed=0), _table(problem.rows()))


def linc(problem: Problem) -> Graph:
    """True regimes as contexts. Its default, random Fourier features, needs minutes for three variables."""
    from causalchange import Linc

    return _fit(
        Linc(score_type=_score(problem), seed=0), _table(problem.X).assign(**{CONTEXT: problem.regimes})
    )


def cmm(problem: Problem) -> Graph:
    """A hidden mixture per variable, linear, up to five components (the package's defaults)."""
    os.environ.setdefault(
        "R_LIBS_SITE", "/usr/lib/R/site-library:/usr/lib/R/library"
    )  # where Debian has flexmix
    from causalchange import CMM

    return _fit(CMM(seed=0), _table(problem.X))


def spacetime(problem: Problem) -> Graph:
    """One series with change points; the quicker of its two ways to compare segments. Effects at once are the graph."""
    from causalchange import SpaceTime

    ordered = _table(problem.X[np.argsort(problem.time)])
    model = SpaceTime(
        score_type=_score(problem),
        data_mode="time",
        clustering_scope="regimes",
        clustering_method="mechanism-clustering",
        seed=0,
    )
    return _fit(model, ordered)


def _score(problem: Problem) -> str:
    """Straight lines where the data have them, else the additive splines that the package takes by default."""
    return "lin" if problem.density == "linear" else "gam"


def _table(X: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


def _fit(model: Any, table: pd.DataFrame) -> Graph:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(table)
    names = [name for name in table.columns if name != CONTEXT]
    graph = np.zeros((len(names),) * 2, dtype=np.int64)
    for edge in model.graph_.edges():
        # Nodes are names, or a name with a lag.
        ends = [end if isinstance(end, tuple) else (end, 0) for end in edge]
        if all(name in names and lag == 0 for name, lag in ends):
            graph[names.index(ends[0][0]), names.index(ends[1][0])] = 1
    return graph
