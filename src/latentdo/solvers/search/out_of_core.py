"""The search for tables that do not fit into memory: structure from a sample of rows, parameters from all of them.

Given the mixture, one pass over the rows gives responsibilities block by block, and of those only their moments are
kept: one ``(d + 1) x (d + 1)`` matrix a regime. Moments of parts add up, so the parts may be row groups of a file or
partitions of a cluster, here or on other ranks; graph, targets and mechanisms follow from the sum.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from latentdo.data import Dataset
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
Part = Callable[[], tuple[Array, NDArray[np.int64]]]
"""Reads some of the rows, standardised, ``[n, d]``, and their labels, -1 where unknown, ``[n]``; called once a pass,
wherever it is sent."""


def solve_in_parts(
    sample: Dataset,
    parts: Sequence[Part],
    configuration: SearchConfiguration,
    progress: Progress | None = None,
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

    Returns
    -------
    FitResult
        Responsibilities are those of the sample; everything else is about all rows.
    """
    began = time.perf_counter()
    ranks = configuration.ranks
    found = ranks.from_first(solve(sample, configuration, progress))
    problem = make_problem(sample, configuration)
    model, adjacency = found.model, found.model.topology.adjacency
    history = list(found.history)
    moments, loglik = one_pass(parts, model, configuration.n_jobs, ranks)
    evidence = -np.inf
    for number in range(1, MAX_PASSES + 1):
        if number <= GRAPH_PASSES:  # all rows may show edges that the sample left open
            adjacency = problem.learner.best_graph(problem, moments, adjacency, thorough=True)
        targets, _ = choose_all_targets(problem, moments, adjacency)
        moments, targets = _canonical(problem, moments, targets)
        # The moments that the parameters come from are kept: probabilities must belong to the model that is returned.
        fitted_to = moments
        model = fit_parameters(problem, fitted_to, adjacency, targets)
        moments, loglik = one_pass(parts, model, configuration.n_jobs, ranks)
        cost = problem.penalties.cost(model, float(fitted_to.counts.sum()))
        entry = {
            "step": f"all rows, pass {number}",
            "evidence": loglik - cost,
            "regimes": len(targets),
            "edges": int(adjacency.sum()),
            "seconds": time.perf_counter() - began,
        }
        history.append(entry)
        if progress is not None:
            progress(entry)
        if number > GRAPH_PASSES and loglik - cost < evidence + ALL_ROWS_TOLERANCE:
            break
        evidence = loglik - cost
    tables = problem.learner.tables(problem, fitted_to, adjacency, targets)
    posterior = graph_posterior(tables, adjacency, seed=configuration.random_state)
    status, message = found.status, found.message  # an interrupted search stays one
    if status == "converged" and number == MAX_PASSES:
        status, message = "not converged", f"the evidence still rises after {MAX_PASSES} passes over all rows"
    return replace(
        found,
        model=model,
        regime_names=regime_names(sample, len(targets)),
        responsibilities=problem.clamp(model.responsibilities(sample.z)),
        edge_probabilities=posterior.edges,
        ancestor_probabilities=posterior.ancestors,
        target_probabilities=target_probabilities(problem, fitted_to, adjacency, targets),
        evidence=loglik - cost,
        evidence_terms={"log_likelihood": loglik, "structure_cost": -cost},
        status=status,
        message=message,
        history=tuple(history),
        seconds=time.perf_counter() - began,
    )


def one_pass(
    parts: Sequence[Part], model: FittedModel, n_jobs: int, ranks: Ranks | None = None
) -> tuple[Moments, float]:
    """E-step over all rows, those of other ranks included: the moments of every regime, and the log-likelihood."""
    width, n_regimes = model.topology.n_variables + 1, model.topology.n_regimes
    total, loglik = Moments(np.zeros((n_regimes, width, width))), 0.0
    jobs = (delayed(_part_moments)(part, model) for part in parts)
    for moments, part_loglik in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
        total, loglik = total + moments, loglik + part_loglik
    if ranks is not None:
        total, loglik = Moments(ranks.sum(total.matrices)), float(ranks.sum(loglik))
    return total, loglik


def _part_moments(part: Part, model: FittedModel) -> tuple[Moments, float]:
    z, labels = part()
    width = z.shape[1] + 1
    total, loglik = Moments(np.zeros((model.topology.n_regimes, width, width))), 0.0
    for first in range(0, len(z), BLOCK):
        block = np.ascontiguousarray(z[first : first + BLOCK])
        found = model.assign(block, labels[first : first + BLOCK])
        loglik += float(found.log_likelihood.sum())
        total += Moments.of(np.column_stack([np.ones(len(block)), block]), found.responsibilities)
    return total, loglik


def _canonical(
    problem: Problem, moments: Moments, targets: NDArray[np.int8]
) -> tuple[Moments, NDArray[np.int8]]:
    """As :func:`.canonical`: regimes without targets and label join the first, an empty one if there are none."""
    plain = targets.sum(axis=1) == 0
    if problem.n_labelled:  # which keep their places
        plain[: problem.n_labelled] = False
        matrices = moments.matrices[~plain]
        matrices[0] += moments.matrices[plain].sum(axis=0)
        return Moments(matrices), targets[~plain]
    others = [int(k) for k in np.argsort(-moments.counts, kind="stable") if not plain[k]]
    reference = moments.matrices[plain].sum(axis=0, keepdims=True)
    zero = np.zeros((1, targets.shape[1]), dtype=np.int8)
    return Moments(np.concatenate([reference, moments.matrices[others]])), np.vstack([zero, targets[others]])
