"""Probabilities averaged over half-samples: what a posterior given one table and one model cannot know.

The posterior of a graph is as wide as the model says. Where the model is wrong, it changes from half of the rows to the
other by far more than its width; its average does not (Huggins and Miller, 2023). Every row of a half counts twice, so
that each posterior is as narrow as that of all rows. Half-samples begin where the fit ended. Regimes, targets, graph
and mechanisms may move from there, but no regime is born, so that each costs a small part of the fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from latentdo.model.fitted import FittedModel
from latentdo.solvers.search.em import refine, weigh
from latentdo.solvers.search.posterior import graph_posterior
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.settings import RELEARN_STEPS, RESAMPLED_DAGS, RESAMPLED_ROUNDS

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Averages:
    """Means over half-samples.

    Parameters
    ----------
    edges, ancestors : ndarray [d, d]
        Probabilities of edges and of causal paths.
    targets : ndarray [K, d] or None
        Probabilities of targets; None if the number of regimes never stayed the same.
    """

    edges: Array
    ancestors: Array
    targets: Array | None


def average(
    problem: Problem,
    model: FittedModel,
    count: int,
    seed: int,
    blocks: NDArray[np.int64] | None = None,
    measured: float = 1.0,
    n_jobs: int = 1,
) -> Averages:
    """Posteriors averaged over half-samples, each begun at a fitted model.

    Parameters
    ----------
    problem : Problem
        All rows.
    model : FittedModel
        What was found in them.
    count : int
        Number of half-samples.
    seed : int
        Seed of the draws.
    blocks : ndarray [n] of int64, optional
        What is drawn as a whole, by rows: groups, or stretches of time.
    measured : float
        How much every row counts, see :class:`.SearchConfiguration`.
    n_jobs : int
        Half-samples at a time.
    """
    rng = np.random.default_rng([seed, *b"halves"])
    with threadpool_limits(limits=1):
        found = Parallel(n_jobs=n_jobs)(
            delayed(_posterior)(half, model, seed + number, measured)
            for number, half in zip(range(count), _halves(problem, blocks, rng), strict=False)
        )
    targets = [one.targets for one in found if one.targets is not None]
    return Averages(
        np.mean([one.edges for one in found], axis=0),
        np.mean([one.ancestors for one in found], axis=0),
        np.mean(targets, axis=0) if targets else None,
    )


def _posterior(half: Problem, model: FittedModel, seed: int, measured: float) -> Averages:
    """The posterior of one half-sample, begun at a fitted model; no targets if its number of regimes is another."""
    state, graph = weigh(half, model), model.topology.adjacency
    for _ in range(RESAMPLED_ROUNDS):
        state = refine(half, state.responsibilities, graph, iterations=RELEARN_STEPS, model=state.model)
        statistics = half.learner.statistics(half, measured * state.responsibilities, state.model)
        tables = half.learner.tables(half, statistics, graph, state.targets)
        best, _ = tables.settled(graph).best(graph)
        if np.array_equal(best, graph):
            break
        graph = best
    found = graph_posterior(tables, state.adjacency, n_samples=RESAMPLED_DAGS, seed=seed)
    targets = None
    if state.n_regimes == model.topology.n_regimes:
        targets = half.learner.target_probabilities(half, statistics, state.adjacency, state.targets)
    return Averages(found.edges, found.ancestors, targets)


def _halves(
    problem: Problem, blocks: NDArray[np.int64] | None, rng: np.random.Generator
) -> Iterator[Problem]:
    """Halves of the rows, every row counted twice; of blocks, whole ones. Two in a row have no row in common."""
    members = np.arange(problem.n_rows) if blocks is None else np.unique(blocks, return_inverse=True)[1]
    n = int(members.max()) + 1
    while True:
        first = np.zeros(n, dtype=bool)
        first[rng.permutation(n)[: n // 2]] = True
        for chosen in (first, ~first):
            rows, units = problem.units.twice(np.flatnonzero(chosen[members]))
            yield replace(problem.take(rows), units=units, learner=problem.learner.take(rows))
