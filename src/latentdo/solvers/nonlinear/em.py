"""Expectation-maximisation with networks: assign rows, refit mechanisms, with graph and targets given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
from numpy.typing import NDArray

from latentdo.model.fitted import FittedModel, Topology
from latentdo.model.mechanisms import AdditiveNoise, LinearMechanism, NetworkMechanism, Noise
from latentdo.model.mechanisms.network import hidden
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR
from latentdo.model.penalties import FEWEST_ROWS
from latentdo.solvers.nonlinear.levenberg import fit_network
from latentdo.solvers.nonlinear.mechanism import fit_mechanism, fit_noise
from latentdo.solvers.search.em import drop_small, weigh
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import (
    EMPTY,
    FAINT,
    MECHANISM_STEPS,
    NETWORK_EM_STEPS,
    NETWORK_EM_TOLERANCE,
    OWN_RIDGE,
    OWN_ROWS_PER_GAUSSIAN,
    OWN_ROWS_PER_PARAMETER,
    UNSEEN,
)

Array = NDArray[np.float64]
Targets = NDArray[np.int8]


def fit_own(
    problem: Problem,
    j: int,
    parents: NDArray[np.int64],
    reference: AdditiveNoise,
    weights: Array,
    *,
    n_components: int = 1,
    plain: bool = False,
) -> AdditiveNoise:
    """The mechanism that an intervention put in place of ``j``'s, from the rows (weighted) that underwent it.

    A perfect intervention leaves a constant; an imperfect one may be linear in the parents, or in the hidden units of
    the reference network: the Schwarz criterion decides, unless it must be ``plain``, a constant.
    """
    rows = np.flatnonzero(weights > UNSEEN)
    w, y = weights[rows], problem.z[rows, j]
    count = max(float(w.sum()), EMPTY)
    designs = [np.ones((rows.size, 1))]
    if problem.imperfect and parents.size and not plain:
        x = problem.z[np.ix_(rows, parents)]
        designs.append(np.column_stack([designs[0], x]))
        designs.append(np.column_stack([designs[1], hidden(x, reference.parameters)]))
    best: AdditiveNoise | None = None
    best_score = -np.inf
    for design in designs:
        if design.shape[1] > 1 and count < OWN_ROWS_PER_PARAMETER * design.shape[1]:
            continue
        weighted = design * w[:, None]
        gram = weighted.T @ design + OWN_RIDGE * count * np.eye(design.shape[1])
        coefficients = np.linalg.lstsq(gram, weighted.T @ y, rcond=None)[0]
        residual = y - design @ coefficients
        enough = count > OWN_ROWS_PER_GAUSSIAN * n_components
        noise = fit_noise(residual, w, n_components) if enough else Noise.gaussian(
            max(float(w @ residual**2) / count, VARIANCE_FLOOR)
        )  # fmt: skip
        score = float(w @ noise.log_density(residual)) - 0.5 * design.shape[1] * np.log(
            max(count, FEWEST_ROWS)
        )
        if score > best_score:
            best_score = score
            best = (
                cast("NetworkMechanism", reference).with_last_layer(coefficients, parents.size, noise)
                if design.shape[1] > 1 + parents.size
                else LinearMechanism(coefficients, noise)
            )
    assert best is not None
    return best


def fit_model(
    problem: Problem,
    responsibilities: Array,
    targets: Targets,
    adjacency: NDArray[np.int8],
    start: Mapping[int, AdditiveNoise],
    *,
    n_components: int,
    own_components: int = 1,
    iterations: int = MECHANISM_STEPS,
) -> FittedModel:
    """M-step: reference mechanisms continue from ``start``, intervened ones are fitted afresh."""
    reference = []
    own: dict[tuple[int, int], AdditiveNoise] = {}
    for j in range(problem.n_variables):
        parents = np.flatnonzero(adjacency[:, j])
        x, y = np.ascontiguousarray(problem.z[:, parents]), problem.z[:, j]
        weights = responsibilities @ (1.0 - targets[:, j])
        weights[weights < UNSEEN] = 0.0
        if weights.sum() < 1.0:  # every regime is known to target it: the reference mechanism is never seen
            weights = np.full(problem.n_rows, FAINT)
        if j in start:
            mechanism = fit_mechanism(
                x, y, weights, start[j].parameters,
                n_components=n_components, noise=start[j].noise, iterations=iterations, rounds=1,
            )  # fmt: skip
        else:
            network, _ = fit_network(x, y, weights, np.random.default_rng(j))
            mechanism = fit_mechanism(x, y, weights, network, n_components=n_components)
        reference.append(mechanism)
        for k in np.flatnonzero(targets[:, j]):
            own[int(k), j] = fit_own(
                problem, j, parents, mechanism, responsibilities[:, k], n_components=own_components
            )
    weights = responsibilities.sum(axis=0) / problem.n_rows
    return FittedModel(Topology(adjacency, targets, weights), tuple(reference), own)


def refine(
    problem: Problem,
    responsibilities: Array,
    targets: Targets,
    adjacency: NDArray[np.int8],
    start: Mapping[int, AdditiveNoise],
    *,
    n_components: int,
    iterations: int = NETWORK_EM_STEPS,
    tolerance: float = NETWORK_EM_TOLERANCE,
) -> State:
    """EM with graph and targets fixed; components that lose their rows are dropped."""
    best: State | None = None
    for step in range(iterations):
        responsibilities, keep = drop_small(problem, responsibilities)
        if not keep.all():
            targets = targets[keep]
            best = None  # with another number of components costs are not comparable step by step
        model = fit_model(
            problem, responsibilities, targets, adjacency, start,
            n_components=n_components, own_components=n_components,
        )  # fmt: skip
        state = weigh(problem, model)
        start = state.mechanisms
        responsibilities = state.responsibilities
        if best is not None and state.evidence < best.evidence + tolerance:
            return state if state.evidence > best.evidence else best
        best = state
        if problem.all_labelled and step:
            break
    assert best is not None
    return best
