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
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from latentdo.model.assignment import Groups, Units, Weighted
from latentdo.model.fitted import FittedModel
from latentdo.solvers.search.em import relearn, weigh
from latentdo.solvers.search.posterior import graph_posterior
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.settings import RESAMPLED_DAGS, RESAMPLED_ROUNDS

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


def average(problem: Problem, model: FittedModel, count: int, seed: int) -> Averages:
    """Posteriors averaged over ``count`` half-samples, each begun at a fitted model."""
    rng = np.random.default_rng([seed, *b"halves"])
    edges, ancestors, targets = [], [], []
    with threadpool_limits(limits=1):
        for number, half in zip(range(count), _halves(problem, rng), strict=False):
            begin = weigh(half, model)
            state = relearn(
                half,
                begin.responsibilities,
                adjacency=begin.adjacency,
                rounds=RESAMPLED_ROUNDS,
                model=begin.model,
            )
            statistics = half.learner.statistics(half, state.responsibilities, state.model)
            tables = half.learner.tables(half, statistics, state.adjacency, state.targets)
            posterior = graph_posterior(tables, state.adjacency, n_samples=RESAMPLED_DAGS, seed=seed + number)
            edges.append(posterior.edges)
            ancestors.append(posterior.ancestors)
            if state.n_regimes == model.topology.n_regimes:
                targets.append(
                    half.learner.target_probabilities(half, statistics, state.adjacency, state.targets)
                )
    return Averages(
        np.mean(edges, axis=0),
        np.mean(ancestors, axis=0),
        np.mean(targets, axis=0) if targets else None,
    )


def _halves(problem: Problem, rng: np.random.Generator) -> Iterator[Problem]:
    """Halves of the rows, every row counted twice; of groups, whole ones. Two in a row have no row in common."""
    members = problem.units.numbers()
    n = int(members.max()) + 1 if members.size else problem.n_rows
    while True:
        order = rng.permutation(n)
        for chosen in (order[: n // 2], order[n // 2 :]):
            if not members.size:
                yield _doubled(problem, np.sort(chosen))
                continue
            yield _doubled(problem, np.flatnonzero(np.isin(members, chosen)))


def _doubled(problem: Problem, rows: NDArray[np.int64]) -> Problem:
    """Some of the rows, each twice: by its weight, or in a group of its own, since a group has one regime."""
    members = problem.units.numbers()
    if not members.size:
        units: Units = Weighted(2.0 * problem.repeats[rows])
    else:
        rows = np.concatenate([rows, rows])
        again = np.repeat([0, members.max() + 1], rows.size // 2)
        weights = None if not problem.units.repeats().size else problem.units.repeats()[rows]
        units = Groups.of(members[rows] + again, weights)
    half = problem.take(rows)
    return replace(half, units=units, learner=problem.learner.take(rows))
