"""Which predecessors are parents: backward elimination with warm starts.

Networks have local optima, and a smaller network may happen to fit better than the larger one that contains it. Then
the larger one is refitted from the smaller: otherwise real parents would be dropped because their network was unlucky.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from latentdo.model.relu_network import with_input, without_input
from latentdo.solvers.nonlinear.levenberg import UNITS, fit_network
from latentdo.solvers.nonlinear.mechanism import Mechanism, fit_mechanism
from latentdo.solvers.search.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Family:
    """A variable's parents after elimination.

    Parameters
    ----------
    parents : tuple of int
        Ascending.
    mechanism : Mechanism
        Over these parents.
    probabilities : dict
        For every predecessor how likely it is a parent, the others being as they were when it was last looked at.
    """

    parents: tuple[int, ...]
    mechanism: Mechanism
    probabilities: dict[int, float]


class _Fits:
    """Fits of one variable's mechanism over subsets of its predecessors."""

    def __init__(self, problem: Problem, j: int, weights: Array, n_components: int) -> None:
        rows = np.flatnonzero(weights > 1e-3)
        if (
            rows.size < 3 * UNITS
        ):  # every regime is known to target it: nothing can be said, so say it of all rows
            rows, weights = np.arange(problem.n_rows), np.full(problem.n_rows, 1e-3)
        self.z, self.y, self.weights = problem.z[rows], problem.z[rows, j], weights[rows]
        self.n_components = n_components
        self.total = float(self.weights.sum())

    def x(self, inputs: list[int]) -> Array:
        return np.ascontiguousarray(self.z[:, inputs])

    def fit(self, inputs: list[int], start: Mechanism, iterations: int) -> tuple[Mechanism, float]:
        x = self.x(inputs)
        mechanism = fit_mechanism(
            x, self.y, self.weights, start.network,
            n_components=self.n_components, noise=start.noise, iterations=iterations,
        )  # fmt: skip
        return mechanism, float(self.weights @ mechanism.log_density(x, self.y))


def eliminate(
    problem: Problem,
    j: int,
    inputs: list[int],
    start: Mechanism,
    weights: Array,
    *,
    n_components: int,
    rng: np.random.Generator,
    iterations: int = 15,
) -> Family:
    """Drop inputs of variable ``j`` one by one as long as the score rises (or there are too many)."""
    fits = _Fits(problem, j, weights, n_components)
    inputs = list(inputs)
    current, value = fits.fit(inputs, start, 40)
    if inputs:
        network, _ = fit_network(fits.x(inputs), fits.y, fits.weights, rng, iterations=40)
        other, other_value = fits.fit(inputs, Mechanism(network, current.noise), 10)
        if other_value > value:
            current, value = other, other_value
    required = problem.constraints.required[:, j]
    probabilities: dict[int, float] = {}
    lifts = 0
    while inputs:
        trials = []
        lifted = False
        for place, i in enumerate(inputs):
            fewer = inputs[:place] + inputs[place + 1 :]
            # An input adds a weight to every unit and one to the linear part.
            cost = 0.5 * (UNITS + 1 if fewer else current.network.size - 1) * np.log(max(fits.total, 2.0))
            cost -= problem.penalties.edge_prior[i, j]
            smaller = Mechanism(without_input(current.network, len(inputs), place), current.noise)
            trial, trial_value = fits.fit(fewer, smaller, iterations)
            if fewer and trial_value > value + 0.5 and lifts < 3 * len(inputs):
                larger = Mechanism(with_input(trial.network, len(fewer), place), trial.noise)
                again, again_value = fits.fit(inputs, larger, iterations)
                if again_value > value:
                    current, value, lifted = again, again_value, True
                    lifts += 1
            gain = trial_value + cost - value
            probabilities[i] = 1.0 if required[i] else float(expit(-gain))
            if not required[i]:
                trials.append((gain, place, trial, trial_value))
        if lifted:
            continue
        if not trials:
            break
        gain, place, trial, trial_value = max(trials, key=lambda t: t[0])
        if gain <= 0.0 and len(inputs) <= problem.constraints.max_parents:
            break
        del inputs[place]
        current, value = trial, trial_value
    return Family(tuple(inputs), current, probabilities)
