"""From minorities to regimes: every variable's intervened rows, and the patterns in which they come together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from latentdo.model.assignment import LIKELY, assign
from latentdo.model.mechanisms import NetworkMechanism, Noise
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR
from latentdo.solvers.nonlinear.levenberg import Effort, fit_network
from latentdo.solvers.nonlinear.mechanism import fit_mechanism
from latentdo.solvers.nonlinear.rough_scores import RoughGraph
from latentdo.solvers.search.local_scores import REFERENCE, TARGET
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.starts import patterns, with_labels
from latentdo.solvers.settings import EMPTY, FAINT, MINORITY_ROUNDS, RAREST_MINORITY, UNDECIDED

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
    few = rows
    second = np.zeros(problem.n_rows)
    second[few] = start
    weights = np.clip(1.0 - start, FAINT, 1.0)
    network, _ = fit_network(np.ascontiguousarray(x[few]), y[few], weights, rng, Effort(start_rows=few.size))
    mechanism = fit_mechanism(
        np.ascontiguousarray(x[few]), y[few], weights, network, n_components=n_components
    )
    share, values = start, y[few]
    if start.sum() < 1.0:  # nobody, as where no regime may target the variable
        return second, fit_mechanism(
            x, y, np.ones(problem.n_rows), mechanism.parameters, n_components=n_components
        )
    for _ in range(MINORITY_ROUNDS):
        count = max(share.sum(), EMPTY)
        mean = float(share @ values / count)
        other = Noise.gaussian(max(float(share @ (values - mean) ** 2 / count), VARIANCE_FLOOR))
        odds = float(np.clip(share.mean(), RAREST_MINORITY, 1.0 - RAREST_MINORITY))
        gain = other.log_density(y - mean) - mechanism.log_density(x, y)
        second = _posterior(problem, j, gain + np.log(odds / (1.0 - odds)), gain)
        share, values = second, y
        mechanism = fit_mechanism(
            x, y, np.clip(1.0 - second, EMPTY, 1.0), mechanism.parameters,
            n_components=n_components, noise=mechanism.noise,
        )  # fmt: skip
    return second, mechanism


def _posterior(problem: Problem, j: int, log_odds: Array, gain: Array) -> Array:
    """Rows for themselves; rows with a label together."""
    second = np.asarray(expit(log_odds))
    for g in range(problem.n_labelled):
        rows = problem.labels == g
        if rows.any():
            code = problem.known[g, j]
            hit = gain[rows].sum() > 0.0 if code not in (REFERENCE, TARGET) else code == TARGET
            second[rows] = float(hit)
    return second


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
