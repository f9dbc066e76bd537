"""IGSP and UT-IGSP (package ``graphical_model_learning``): greedy search over orders with Gaussian tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.baselines.hidden_markov import states
from experiments.baselines.interface import Graph, Problem
from experiments.baselines.mixture import clusters, clusters_by_bic

ALPHA = 1e-3
"""Level of all tests: there are hundreds of rows a regime, and nothing is tuned on the truth."""


def igsp(problem: Problem) -> Graph:
    """Known targets; the first environment is observational."""
    from graphical_model_learning import igsp as search

    settings = [{"interventions": hit} for hit in problem.target_lists()[1:]]
    nodes, independence, invariance = _tests(problem.environments())
    return _read(search(settings, nodes, independence, invariance, depth=4, nruns=5))


def ut_igsp(problem: Problem) -> Graph:
    """Unknown targets; the first environment is observational."""
    return _ut_igsp(problem.environments())


def gmm_then_ut_igsp(problem: Problem) -> Graph:
    """Gaussian mixture told the number of regimes; its cluster richest in observational rows is told to be so."""
    labels = clusters(problem)
    reference = int(np.bincount(labels[problem.observational]).argmax())
    return _from_clusters(problem.X, labels, reference)


def gmm_bic_then_ut_igsp(problem: Problem) -> Graph:
    """The same for a user who is told nothing: number of clusters by BIC, the largest taken for observational."""
    labels = clusters_by_bic(problem.X)
    return _from_clusters(problem.X, labels, int(np.bincount(labels).argmax()))


def hmm_then_ut_igsp(problem: Problem) -> Graph:
    """States of a hidden Markov model, for rows in order of time; the commonest is taken for observational."""
    labels = states(problem.X[np.argsort(problem.time)])
    return _from_clusters(problem.X[np.argsort(problem.time)], labels, int(np.bincount(labels).argmax()))


def _from_clusters(X: NDArray[np.float64], labels: NDArray[np.int64], reference: int) -> Graph:
    others = [X[labels == k] for k in np.unique(labels) if k != reference]
    enough = X.shape[1] + 5  # the regressions of the invariance test need more rows than columns
    return _ut_igsp([X[labels == reference], *(rows for rows in others if len(rows) >= enough)])


def _ut_igsp(environments: list) -> Graph:
    from graphical_model_learning import unknown_target_igsp as search

    settings = [{"known_interventions": []} for _ in environments[1:]]
    nodes, independence, invariance = _tests(environments)
    dag, _ = search(settings, nodes, independence, invariance, depth=4, nruns=5)
    return _read(dag)


def _tests(environments: list) -> tuple[set[int], Any, Any]:
    import conditional_independence as ci

    observational, interventional = environments[0], environments[1:]
    independence = ci.MemoizedCI_Tester(
        ci.partial_correlation_test, ci.partial_correlation_suffstat(observational), alpha=ALPHA
    )
    invariance = ci.MemoizedInvarianceTester(
        ci.gauss_invariance_test, ci.gauss_invariance_suffstat(observational, interventional), alpha=ALPHA
    )
    return set(range(observational.shape[1])), independence, invariance


def _read(dag: Any) -> Graph:
    return np.asarray(dag.to_amat(sorted(dag.nodes))[0] != 0, dtype=np.int64)
