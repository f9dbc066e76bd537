"""Which predecessors are parents: backward elimination with warm starts.

Networks have local optima, and a smaller network may happen to fit better than the larger one that contains it. Then
the larger one is refitted from the smaller: otherwise real parents would be dropped because their network was unlucky.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from latentdo.model.mechanisms import AdditiveNoise, NetworkMechanism
from latentdo.model.mechanisms.network import evaluate, with_input, without_input
from latentdo.model.penalties import FEWEST_ROWS
from latentdo.solvers.nonlinear.levenberg import Effort, descend, fit_network, random_start
from latentdo.solvers.nonlinear.mechanism import fit_mechanism, narrowest
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.settings import (
    ELIMINATION_STEPS,
    FAINT,
    FINALISTS,
    FRESH_STARTS,
    FRESH_STEPS,
    FULL_NOISE_STEPS,
    FULL_STEPS,
    GLANCE_ROWS,
    GLANCE_STARTS,
    GLANCE_STEPS,
    LIFT_GAIN,
    LIFTS_PER_INPUT,
    ROWS_PER_PARAMETER,
    ROWS_PER_UNIT,
    UNITS,
    WIDTHS,
    WORTH,
)

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ParentSet:
    """A variable's parents after elimination.

    Parameters
    ----------
    parents : tuple of int
        Ascending.
    mechanism : NetworkMechanism
        Over these parents.
    probabilities : dict
        For every predecessor how likely it is a parent, the others being as they were when it was last looked at.
    """

    parents: tuple[int, ...]
    mechanism: NetworkMechanism
    probabilities: dict[int, float]


class _Fits:
    """Fits of one variable's mechanism over subsets of its predecessors."""

    def __init__(self, problem: Problem, j: int, weights: Array, n_components: int) -> None:
        rows = np.flatnonzero(weights > FAINT)
        if rows.size < ROWS_PER_UNIT * UNITS:
            # Every regime is known to target it: nothing can be said, so say it of all rows.
            rows, weights = np.arange(problem.n_rows), np.full(problem.n_rows, FAINT)
        self.z, self.y, self.weights = problem.z[rows], problem.z[rows, j], weights[rows]
        self.n_components = n_components
        self.total = float(self.weights.sum())
        self.prior = problem.penalties.edge_prior[:, j]
        self.floor: float | None = None

    def score(self, inputs: list[int], mechanism: NetworkMechanism) -> float:
        """Log-likelihood less cost."""
        loglik = self.weights @ mechanism.log_density(self.x(inputs), self.y)
        return float(loglik) - self.cost(mechanism, inputs)

    def hold(self, mechanism: NetworkMechanism, inputs: list[int]) -> None:
        """Compare all parent sets with the same smallest width of noise, that of this mechanism.

        Otherwise a parent that explains a few outliers would make an atom narrower, and gain in every row of it.
        """
        self.floor = narrowest(self.mean_square(mechanism, inputs))

    def mean_square(self, mechanism: NetworkMechanism, inputs: list[int]) -> float:
        """Mean square of the residuals."""
        residual = self.y - evaluate(self.x(inputs), mechanism.parameters)
        return float(self.weights @ residual**2) / self.total

    def cost(self, mechanism: NetworkMechanism, inputs: list[int]) -> float:
        """What a mechanism with these inputs costs, in nats."""
        parameters = 0.5 * mechanism.n_parameters * np.log(max(self.total, FEWEST_ROWS))
        return float(parameters - self.prior[inputs].sum())

    def supports(self, mechanism: NetworkMechanism) -> bool:
        """Whether there are rows enough for so many parameters; fewer could be fitted whatever they are."""
        return self.total >= ROWS_PER_PARAMETER * mechanism.n_parameters

    def x(self, inputs: list[int]) -> Array:
        return np.ascontiguousarray(self.z[:, inputs])

    def fit(self, inputs: list[int], start: AdditiveNoise, iterations: int) -> tuple[NetworkMechanism, float]:
        x = self.x(inputs)
        mechanism = fit_mechanism(
            x, self.y, self.weights, start.parameters,
            n_components=self.n_components, noise=start.noise, iterations=iterations, floor=self.floor,
        )  # fmt: skip
        return mechanism, float(self.weights @ mechanism.log_density(x, self.y))

    def glance(self, inputs: list[int], rng: np.random.Generator) -> float:
        """Mean square that a few quick fits leave of some rows."""
        rows = rng.permutation(len(self.y))[:GLANCE_ROWS]
        x, y, weights = self.x(inputs)[rows], self.y[rows], self.weights[rows]
        starts = (random_start(x, y, weights, rng) for _ in range(GLANCE_STARTS))
        fits = [descend(x, y, weights, start, GLANCE_STEPS)[1] for start in starts]
        return float(min(fits) / weights.sum())

    def fresh(self, inputs: list[int], rng: np.random.Generator) -> tuple[NetworkMechanism, float]:
        """The best of fits from scratch with different numbers of units, by what is left after its cost."""
        x = self.x(inputs)
        best, best_score = None, -np.inf
        for units in WIDTHS if inputs else WIDTHS[:1]:
            effort = Effort(FRESH_STARTS, FRESH_STEPS, finalists=FINALISTS, units=units)
            network, _ = fit_network(x, self.y, self.weights, rng, effort)
            mechanism = fit_mechanism(
                x, self.y, self.weights, network,
                n_components=self.n_components, iterations=ELIMINATION_STEPS, floor=self.floor,
            )  # fmt: skip
            score = self.score(inputs, mechanism)
            if score > best_score:
                best, best_score = mechanism, score
        assert best is not None
        return best, best_score

    def grow(self, inputs: list[int], mechanism: NetworkMechanism, parent_set: ParentSet) -> ParentSet:
        """Take back those of a set's parents that this mechanism can still use, the one that gains most first."""
        value = self.score(inputs, mechanism)
        probabilities = dict(parent_set.probabilities)
        while True:
            trials = []
            for i in sorted(set(parent_set.parents) - set(inputs)):
                more = sorted([*inputs, i])
                wider = with_input(mechanism.parameters, len(inputs), more.index(i))
                trial, loglik = self.fit(
                    more, NetworkMechanism.of(wider, mechanism.noise, len(more)), ELIMINATION_STEPS
                )
                gain = loglik - self.cost(trial, more) - value
                probabilities[i] = float(expit(gain))
                trials.append((gain, more, trial))
            gain, more, trial = max(trials, key=lambda one: one[0], default=(0.0, inputs, mechanism))
            if gain <= 0.0:
                return ParentSet(tuple(inputs), mechanism, probabilities)
            inputs, mechanism, value = more, trial, value + gain


def eliminate(
    problem: Problem,
    j: int,
    inputs: list[int],
    start: AdditiveNoise,
    weights: Array,
    *,
    n_components: int,
    rng: np.random.Generator,
    iterations: int = ELIMINATION_STEPS,
) -> ParentSet:
    """Drop inputs of variable ``j`` one by one as long as the score rises (or there are too many)."""
    fits = _Fits(problem, j, weights, n_components)
    inputs = list(inputs)
    current, value = fits.fit(inputs, start, FULL_STEPS)
    fits.hold(current, inputs)
    if inputs:
        network, _ = fit_network(fits.x(inputs), fits.y, fits.weights, rng, Effort(steps=FULL_STEPS))
        other, other_value = fits.fit(
            inputs, NetworkMechanism.of(network, current.noise, len(inputs)), FULL_NOISE_STEPS
        )
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
            smaller = NetworkMechanism.of(
                without_input(current.parameters, len(inputs), place), current.noise, len(fewer)
            )
            cost = fits.cost(current, inputs) - fits.cost(smaller, fewer)
            trial, trial_value = fits.fit(fewer, smaller, iterations)
            if fewer and trial_value > value + LIFT_GAIN and lifts < LIFTS_PER_INPUT * len(inputs):
                larger = NetworkMechanism.of(
                    with_input(trial.parameters, len(fewer), place), trial.noise, len(inputs)
                )
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
        allowed = len(inputs) <= problem.constraints.max_parents and fits.supports(current)
        if gain <= 0.0 and allowed:
            break
        del inputs[place]
        current, value = trial, trial_value
    return ParentSet(tuple(inputs), current, probabilities)


def reconsider(
    problem: Problem,
    j: int,
    parent_set: ParentSet,
    weights: Array,
    *,
    n_components: int,
    rng: np.random.Generator,
) -> ParentSet:
    """The parents that fits from scratch choose among a set's, if they do as well as all of them.

    Elimination goes on from a network that has got used to all of its inputs. Effects of a parent, and other proxies,
    have taken over a part of its work, and none of them can be spared alone. Here parents come one by one.
    """
    fits = _Fits(problem, j, weights, n_components)
    required = [int(i) for i in np.flatnonzero(problem.constraints.required[:, j])]
    fits.hold(parent_set.mechanism, list(parent_set.parents))
    best = parent_set
    value = fits.score(list(parent_set.parents), parent_set.mechanism)
    # Sets that leave much more than all parents do cannot win, and need no closer look.
    enough = WORTH * fits.mean_square(parent_set.mechanism, list(parent_set.parents))
    chosen = required
    for _ in range(len(parent_set.parents) - len(required) - 1):
        trials = [sorted([*chosen, i]) for i in parent_set.parents if i not in chosen]
        left, chosen = min((fits.glance(inputs, rng), inputs) for inputs in trials)
        if left > enough:
            continue
        mechanism, score = fits.fresh(chosen, rng)
        if score > value:
            best, value = fits.grow(chosen, mechanism, parent_set), score
            break
    return best


def find_parents_of(
    problem: Problem,
    j: int,
    inputs: list[int],
    start: AdditiveNoise,
    weights: Array,
    n_components: int,
    thorough: bool,
    rng: np.random.Generator,
) -> ParentSet:
    """Who of the inputs are parents: what elimination leaves and, if ``thorough``, what fits from scratch choose."""
    found = eliminate(problem, j, inputs, start, weights, n_components=n_components, rng=rng)
    if not thorough:
        return found
    return reconsider(problem, j, found, weights, n_components=n_components, rng=rng)
