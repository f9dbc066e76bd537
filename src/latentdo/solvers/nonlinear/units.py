"""How many units a network needs: as many as evidence pays for.

Networks are searched with units to spare, since fits with few of them have bad local optima. What a mechanism does not
need it should not pay for: :math:`|x|` takes one unit, not eight, and would lose to pieces of lines otherwise.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from latentdo.model.fitted import FittedModel
from latentdo.model.mechanisms import NetworkMechanism
from latentdo.model.mechanisms.base import Array
from latentdo.model.mechanisms.family import evidence
from latentdo.model.mechanisms.network import hidden, n_units, without_unit
from latentdo.solvers.nonlinear.mechanism import fit_mechanism
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import FAINT, ROWS_PER_UNIT, START_RIDGE, UNIT_STEPS, UNIT_TRIES, UNITS


def without_spare_units(problem: Problem, state: State, n_gaussians: int) -> FittedModel:
    """The model of a state with every network fitted anew, its noise of so many Gaussians, and no unit to spare."""
    reference = []
    for j, inputs in enumerate(state.model.parents):
        weights = state.following(j)
        rows = np.flatnonzero(weights > FAINT)
        if rows.size < ROWS_PER_UNIT * UNITS:  # every regime targets it: nothing can be said of it
            reference.append(state.mechanism(j))
            continue
        x, y = np.ascontiguousarray(problem.z[np.ix_(rows, inputs)]), problem.z[rows, j]
        fitted = fit_mechanism(
            x,
            y,
            weights[rows],
            state.mechanism(j).parameters,
            n_components=n_gaussians,
            iterations=UNIT_STEPS,
        )
        reference.append(fewest_units(x, y, weights[rows], fitted))
    return replace(state.model, reference=tuple(reference))


def fewest_units(x: Array, y: Array, weights: Array, mechanism: NetworkMechanism) -> NetworkMechanism:
    """The mechanism without units that its evidence does not pay for, fitted again after each of them."""
    value = evidence(mechanism, x, y, weights)
    while n_units(mechanism.parameters, x.shape[1]):
        for unit in _least_missed(x, y, weights, mechanism)[:UNIT_TRIES].tolist():
            trial = fit_mechanism(
                x,
                y,
                weights,
                without_unit(mechanism.parameters, x.shape[1], unit),
                n_components=mechanism.noise.weights.size,
                noise=mechanism.noise,
                iterations=UNIT_STEPS,
            )
            reached = evidence(trial, x, y, weights)
            if reached > value:
                mechanism, value = trial, reached
                break
        else:
            break
    return mechanism


def _least_missed(x: Array, y: Array, weights: Array, mechanism: NetworkMechanism) -> NDArray[np.intp]:
    """Units by the squares that they alone explain, with the last layer fitted anew without each, least first."""
    design = np.column_stack([np.ones(len(y)), x, hidden(x, mechanism.parameters)])
    weighted = design * weights[:, None]
    gram = weighted.T @ design
    scale = np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    inverse = np.linalg.inv(gram / np.outer(scale, scale) + START_RIDGE * np.eye(len(gram)))
    coefficients = inverse @ (weighted.T @ y / scale)
    lost = coefficients**2 / np.diag(inverse)
    return np.argsort(lost[1 + x.shape[1] :])
