"""The search for tables that do not fit into memory: structure from a sample of rows, parameters from all of them.

Given the mixture, one pass over the rows computes responsibilities block by block, of which only the moments are kept:
one ``(d + 1) x (d + 1)`` matrix per regime. Moments of parts add up, so the parts may be row groups of a file or
partitions of a cluster, here or on other ranks; graph, targets and mechanisms follow from the sum.

The rows of a group may lie anywhere. Their log-densities also add up over the parts, so a first pass determines the
regimes of groups, and a second one the moments.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from latentdo.data import Dataset
from latentdo.model.assignment import Pooled, Prior
from latentdo.model.fitted import FittedModel
from latentdo.ranks import Ranks
from latentdo.result import FitResult
from latentdo.solvers.search.moments import Moments
from latentdo.solvers.search.parameters import choose_all_targets, fit_parameters, target_probabilities
from latentdo.solvers.search.posterior import graph_posterior
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.reporting import Progress, regime_names
from latentdo.solvers.search.solve import SearchConfiguration, make_problem, solve
from latentdo.solvers.settings import ALL_ROWS_TOLERANCE, BLOCK, GRAPH_PASSES, MAX_PASSES

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Part = Callable[[], tuple[Array, Codes, Codes]]
"""Reads some of the rows, standardised, ``[n, d]``, their labels, -1 where unknown, ``[n]``, and their groups, -1 for
rows without a group, ``[n]``; called once or twice per pass, in any process."""

NO_GROUPS: Codes = np.empty(0, dtype=np.int64)


def solve_in_parts(
    sample: Dataset,
    parts: Sequence[Part],
    configuration: SearchConfiguration,
    progress: Progress | None = None,
    group_regimes: Codes = NO_GROUPS,
) -> FitResult:
    """Fit the linear model to all rows of ``parts``, in memory that does not grow with their number.

    Parameters
    ----------
    sample
        Rows drawn from all parts, with the preprocessor that standardises these. Some of every label are among them.
    parts
        All rows; with several ranks, those of this one.
    configuration
        As for :func:`.solve`; ``n_jobs`` parts are read at a time.
    progress
        Called with a dict after every step.
    group_regimes : ndarray [n_groups] of int64
        Known regime of every group of rows, -1 where unknown.

    Returns
    -------
    FitResult
        Responsibilities are those of the sample; everything else is about all rows.
    """
    began = time.perf_counter()
    ranks, n_jobs = configuration.ranks, configuration.n_jobs
    found = ranks.from_first(solve(sample, configuration, progress))
    problem = make_problem(sample, configuration)
    model, adjacency = found.model, found.model.topology.adjacency
    history = list(found.history)
    seen = one_pass(parts, model, n_jobs, ranks, group_regimes)
    evidence = -np.inf
    for number in range(1, MAX_PASSES + 1):
        if number <= GRAPH_PASSES:  # all rows may show edges that the sample left open
            adjacency = problem.learner.best_graph(problem, seen.moments, adjacency, thorough=True)
        targets, _ = choose_all_targets(problem, seen.moments, adjacency)
        joined = _canonical(problem, seen.moments, targets)
        # The moments that the parameters come from are kept: probabilities must belong to the model that is returned.
        fitted_to, targets = (
            Moments(np.tensordot(joined, seen.moments.matrices, 1)),
            _targets(joined, targets),
        )
        model = fit_parameters(problem, fitted_to, adjacency, targets)
        model = model.with_prior(Prior(joined @ seen.units / seen.units.sum()))
        seen = one_pass(parts, model, n_jobs, ranks, group_regimes)
        cost = problem.penalties.cost(model, float(fitted_to.counts.sum()))
        entry = {
            "step": f"all rows, pass {number}",
            "evidence": seen.log_likelihood - cost,
            "regimes": len(targets),
            "edges": int(adjacency.sum()),
            "seconds": time.perf_counter() - began,
        }
        history.append(entry)
        if progress is not None:
            progress(entry)
        if number > GRAPH_PASSES and seen.log_likelihood - cost < evidence + ALL_ROWS_TOLERANCE:
            break
        evidence = seen.log_likelihood - cost
    tables = problem.learner.tables(problem, fitted_to, adjacency, targets)
    posterior = graph_posterior(tables, adjacency, seed=configuration.random_state)
    status, message = found.status, found.message  # an interrupted search remains interrupted
    if status == "converged" and number == MAX_PASSES:
        status, message = "not converged", f"the evidence still rises after {MAX_PASSES} passes over all rows"
    return replace(
        found,
        model=model,
        regime_names=regime_names(sample, len(targets)),
        responsibilities=_of_sample(problem, sample, model, seen.groups),
        edge_probabilities=posterior.edges,
        ancestor_probabilities=posterior.ancestors,
        target_probabilities=target_probabilities(problem, fitted_to, adjacency, targets),
        evidence=seen.log_likelihood - cost,
        evidence_terms={"log_likelihood": seen.log_likelihood, "structure_cost": -cost},
        status=status,
        message=message,
        history=tuple(history),
        seconds=time.perf_counter() - began,
    )


def _of_sample(problem: Problem, sample: Dataset, model: FittedModel, groups: Array) -> Array:
    """Responsibilities of the rows of the sample; those of groups are known from all their rows."""
    found = problem.clamp(model.responsibilities(sample.z))
    if sample.groups is not None:
        grouped = sample.groups < len(groups)
        found[grouped] = groups[sample.groups[grouped]]
    return found


@dataclass(frozen=True, eq=False)
class Pass:
    """The result of an E-step over all rows.

    Parameters
    ----------
    moments : Moments
        Of every regime.
    units : ndarray [K]
        Number of groups, and of rows without a group, in every regime.
    log_likelihood : float
        Of all rows.
    groups : ndarray [n_groups, K]
        Responsibilities of the groups.
    """

    moments: Moments
    units: Array
    log_likelihood: float
    groups: Array


def one_pass(
    parts: Sequence[Part],
    model: FittedModel,
    n_jobs: int,
    ranks: Ranks | None = None,
    group_regimes: Codes = NO_GROUPS,
) -> Pass:
    """E-step over all rows, those of other ranks included."""
    ranks = Ranks() if ranks is None else ranks
    parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    weights = model.topology.weights
    units, loglik = np.zeros(weights.size), 0.0
    groups = np.empty((0, weights.size))
    if group_regimes.size:
        looks = parallel(delayed(_pooled)(part, model, group_regimes.size) for part in parts)
        nothing = Pooled.of(groups, weights, NO_GROUPS, group_regimes.size, np.empty(0))
        pooled = Pooled(*(ranks.sum(values) for values in reduce(Pooled.plus, looks, nothing)))
        groups, of_groups = pooled.assign(weights, group_regimes)
        units, loglik = groups.sum(axis=0), float(of_groups.sum())
    width = model.topology.n_variables + 1
    moments, own_units, own_loglik = (
        Moments(np.zeros((weights.size, width, width))),
        np.zeros(weights.size),
        0.0,
    )
    for part in parallel(delayed(_part_pass)(part, model, groups) for part in parts):
        moments, own_units, own_loglik = moments + part[0], own_units + part[1], own_loglik + part[2]
    return Pass(
        Moments(ranks.sum(moments.matrices)),
        units + ranks.sum(own_units),
        loglik + float(ranks.sum(own_loglik)),
        groups,
    )


def _pooled(part: Part, model: FittedModel, n_groups: int) -> Pooled:
    """Log-densities of the groups, from the rows of a part."""
    z, _, members = part()
    rows = np.flatnonzero(members >= 0)
    blocks = [rows[first : first + BLOCK] for first in range(0, max(rows.size, 1), BLOCK)]
    return reduce(
        Pooled.plus,
        (
            Pooled.of(
                model.log_density(z[block]), model.topology.weights, members[block], n_groups, np.empty(0)
            )
            for block in blocks
        ),
    )


def _part_pass(part: Part, model: FittedModel, groups: Array) -> tuple[Moments, Array, float]:
    """Moments of a part, and what its rows without a group add to units and log-likelihood."""
    z, labels, members = part()
    width, n_regimes = z.shape[1] + 1, model.topology.n_regimes
    moments, units, loglik = Moments(np.zeros((n_regimes, width, width))), np.zeros(n_regimes), 0.0
    for first in range(0, len(z), BLOCK):
        here = slice(first, first + BLOCK)
        block, alone = np.ascontiguousarray(z[here]), members[here] < 0
        found = model.assign(block, labels[here])
        responsibilities = found.responsibilities
        units += responsibilities[alone].sum(axis=0)
        loglik += float(found.log_likelihood[alone].sum())
        responsibilities[~alone] = groups[members[here][~alone]]
        moments += Moments.of(np.column_stack([np.ones(len(block)), block]), responsibilities)
    return moments, units, loglik


def _canonical(problem: Problem, moments: Moments, targets: NDArray[np.int8]) -> Array:
    """Which regimes become which, ``[K, K before]``, as in :func:`.canonical`.

    Regimes without targets and label join the first, an empty one if there are none.
    """
    each: Array = np.eye(len(targets))
    plain: NDArray[np.bool_] = targets.sum(axis=1) == 0
    if problem.n_labelled:  # which keep their places
        plain[: problem.n_labelled] = False
        each[0] += each[plain].sum(axis=0)
        return each[~plain]
    others = [int(k) for k in np.argsort(-moments.counts, kind="stable") if not plain[k]]
    reference: Array = each[plain].sum(axis=0, keepdims=True)
    return np.concatenate([reference, each[others]])


def _targets(joined: Array, targets: NDArray[np.int8]) -> NDArray[np.int8]:
    """Targets after regimes were relabelled; those that joined another have none."""
    return (joined @ targets).astype(np.int8)
