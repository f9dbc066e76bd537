"""From minorities to regimes: every variable's intervened rows, and the patterns in which they come together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latentdo.model.assignment import LIKELY, assign
from latentdo.model.mechanisms import NetworkMechanism
from latentdo.solvers.nonlinear.levenberg import Effort, fit_network
from latentdo.solvers.nonlinear.mechanism import fit_mechanism
from latentdo.solvers.nonlinear.rough_scores import RoughGraph
from latentdo.solvers.search.intervened_rows import knowing, two_mechanisms
from latentdo.solvers.search.local_scores import REFERENCE, TARGET
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.starts import patterns, with_labels
from latentdo.solvers.settings import EMPTY, FAINT, FEWEST_MINORITY, MINORITY_ROUNDS, UNDECIDED

Array = NDArray[np.float64]


def predecessors(rough: RoughGraph, problem: Problem) -> list[list[int]]:
    """Inputs that a variable may have: candidates that come before it."""
    place = {j: a for a, j in enumerate(rough.order)}
    return [
        sorted(int(i) for i in rough.candidates[j] if i >= 0 and place[int(i)] < place[j])
        for j in range(problem.n_variables)
    ]


def find_minority(
    problem: Problem,
    j: int,
    inputs: list[int],
    rows: NDArray[np.int64],
    start: Array,
    n_components: int,
    rng: np.random.Generator,
) -> tuple[Array, NetworkMechanism]:
    """Posterior of the minority of variable ``j`` in all rows, and the mechanism of the others.

    ``start`` is the posterior in some ``rows``, found with rougher means.
    """
    x = np.ascontiguousarray(problem.z[:, inputs])
    y = problem.z[:, j]
    first = np.clip(1.0 - start, FAINT, 1.0)
    some = np.ascontiguousarray(x[rows])
    network, _ = fit_network(some, y[rows], first, rng, Effort(start_rows=rows.size))
    mechanism = fit_mechanism(some, y[rows], first, network, n_components=n_components)
    second, weights = np.zeros(problem.n_rows), np.zeros(problem.n_rows)
    second[rows], weights[rows] = start, 1.0
    values = np.column_stack([np.ones(problem.n_rows), y])
    codes = np.ascontiguousarray(problem.known[:, j])
    for _ in range(MINORITY_ROUNDS):
        known = knowing(
            log_density=mechanism.log_density(x, y),
            labels=problem.labels,
            codes=codes,
            groups=problem.units.numbers(),
        )
        two_mechanisms(values, 0, 1, known, weights, second, 1, 0.0, FEWEST_MINORITY)
        weights[:] = 1.0
        mechanism = fit_mechanism(
            x, y, np.clip(1.0 - second, EMPTY, 1.0), mechanism.parameters,
            n_components=n_components, noise=mechanism.noise,
        )  # fmt: skip
        if not second.any():  # as where no regime may target the variable
            break
    return second, mechanism


def first_regimes(problem: Problem, minority: Array) -> tuple[Array, NDArray[np.int8]]:
    """Responsibilities and targets from all variables' minorities.

    A variable whose majority and minority were found the wrong way round (nothing tells which is which when it has no
    parents) is turned round first.
    """
    turned = np.where(minority.mean(axis=0) > LIKELY, 1.0 - minority, minority)
    labelled = np.zeros((problem.n_labelled, problem.n_variables), dtype=np.int8)
    for g in range(problem.n_labelled):
        rows = problem.labels == g
        if rows.any():
            labelled[g] = turned[rows].mean(axis=0) > LIKELY
    labelled[problem.known == TARGET] = 1
    labelled[problem.known == REFERENCE] = 0
    if problem.all_labelled:
        return np.eye(problem.n_labelled)[problem.labels], labelled
    free = patterns(problem, turned)
    odds = np.log(np.maximum(turned, UNDECIDED)) - np.log(np.maximum(1.0 - turned, UNDECIDED))
    responsibilities = assign(odds @ free.T, np.full(len(free), 1.0 / len(free))).responsibilities
    if problem.n_labelled == 0:
        return responsibilities, free.astype(np.int8)
    joined = with_labels(problem, responsibilities)
    # Clusters that no label claims stay free regimes; they keep the pattern of their rows.
    extra = joined[:, problem.n_labelled :]
    found = (extra.T @ turned / np.maximum(extra.sum(axis=0)[:, None], EMPTY) > LIKELY).astype(np.int8)
    return joined, np.vstack([labelled, found])
