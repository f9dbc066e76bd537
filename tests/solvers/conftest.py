"""Search problems with a known truth, built without the code under test wherever that is possible."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo.graphs.constraints import Constraints
from latentdo.model.penalties import Penalties
from latentdo.scm import simulate
from latentdo.solvers.search.problem import Problem


def build_problem(
    x,
    *,
    labels=None,
    known=None,
    imperfect=False,
    max_regimes=16,
    edge_prior=None,
    target_prior=None,
    min_rows=10.0,
    **constraints,
) -> Problem:
    """A search problem on standardised rows; variables are called a, b, c ..."""
    x = np.asarray(x, dtype=float)
    n, d = x.shape
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    names = [chr(ord("a") + j) for j in range(d)]
    return Problem(
        design=np.column_stack([np.ones(n), z]),
        labels=np.full(n, -1) if labels is None else np.asarray(labels),
        known=np.zeros((0, d), dtype=np.int8) if known is None else np.asarray(known, dtype=np.int8),
        constraints=Constraints.build(names, **constraints),
        penalties=Penalties.build(d, edge_prior, target_prior),
        imperfect=imperfect,
        max_regimes=max_regimes,
        min_rows=min_rows,
    )


@pytest.fixture(scope="session")
def make_problem():
    return build_problem


@pytest.fixture(scope="session")
def chain():
    """Three variables, four regimes, well separated: the smallest interesting benchmark."""
    return simulate(n_variables=3, edges_per_node=1, n_samples=800, random_state=1)


@pytest.fixture(scope="session")
def one_hot():
    """Labels as hard responsibilities."""

    def build(labels, n_components=None):
        labels = np.asarray(labels)
        return np.eye(n_components or labels.max() + 1)[labels]

    return build
