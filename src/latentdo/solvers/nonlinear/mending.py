"""Networks fitted better before regimes and targets are blamed for what they leave over."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from latentdo.model.mechanisms import AdditiveNoise
from latentdo.model.penalties import FEWEST_ROWS
from latentdo.solvers.nonlinear.learner import NetworkLearner, fit_from, flexible_noise
from latentdo.solvers.nonlinear.levenberg import Effort, fit_network
from latentdo.solvers.nonlinear.mechanism import fit_mechanism
from latentdo.solvers.search import regime_moves
from latentdo.solvers.search.local_scores import FREE
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import (
    FAINT,
    MOVE_GAIN,
    REFIT_STARTS,
    REFIT_STEPS,
    REFIT_TOLERANCE,
    SIMPLIFY_STARTS,
    SIMPLIFY_STEPS,
    TRIAL_STEPS,
)


def improve(problem: Problem, state: State) -> State:
    """Better networks, then other targets, merges and births until none of them raises the evidence."""
    state = simplify(problem, refit_networks(problem, state))
    return simplify(problem, regime_moves.improve(problem, state, same_graph=True))


def refit_networks(problem: Problem, state: State) -> State:
    """Fit networks better where their residuals are not of one width: longer, and from fresh starts too."""
    mechanisms = state.mechanisms
    for j, (_, gain) in enumerate(flexible_noise(problem, state)):
        if gain <= 0.0 or not state.model.parents[j].size:
            continue
        weights = state.following(j)
        weights[weights < FAINT] = 0.0
        x, y = state.model.inputs(problem.z, j), problem.z[:, j]
        rng = np.random.default_rng(j)
        for starts, start in ((0, mechanisms[j].parameters), (REFIT_STARTS, None)):
            effort = Effort(starts, REFIT_STEPS, REFIT_TOLERANCE)
            network, _ = fit_network(x, y, weights, rng, effort, start=start)
            trial = fit_mechanism(x, y, weights, network, n_components=_n_gaussians(problem))
            if weights @ (trial.log_density(x, y) - mechanisms[j].log_density(x, y)) > MOVE_GAIN:
                mechanisms[j] = trial
    return _with(problem, state, state.targets, mechanisms)


def simplify(problem: Problem, state: State) -> State:
    """Drop targets of regimes with several, where the reference network can learn to fit the regime's rows.

    An intervention takes variables where no other row has been. There the networks of its descendants are off until
    they have seen its rows, which therefore look like targets too.
    """
    fixed = problem.fixed(state.n_regimes)
    targets, mechanisms = state.targets.copy(), state.mechanisms
    resp = state.responsibilities
    counts = resp.sum(axis=0)
    for k, j in np.argwhere((state.targets == 1) & (fixed == FREE)).tolist():
        if targets[k].sum() <= 1 or counts[k] < problem.min_rows:
            continue
        own = state.model.own[k, j]
        others = resp @ (1.0 - targets[:, j])
        weights = others + resp[:, k]
        x, y = state.model.inputs(problem.z, j), problem.z[:, j]
        now = float(others @ mechanisms[j].log_density(x, y) + resp[:, k] @ own.log_density(x, y))
        now += problem.penalties.target_prior - 0.5 * own.n_parameters * np.log(max(counts[k], FEWEST_ROWS))
        weights[weights < FAINT] = 0.0
        rng = np.random.default_rng([k, j])
        effort = Effort(SIMPLIFY_STARTS, SIMPLIFY_STEPS)
        network, _ = fit_network(x, y, weights, rng, effort, start=mechanisms[j].parameters)
        trial = fit_mechanism(x, y, weights, network, n_components=_n_gaussians(problem))
        if float(weights @ trial.log_density(x, y)) > now:
            targets[k, j], mechanisms[j] = 0, trial
    return _with(problem, state, targets, mechanisms)


def _with(
    problem: Problem, state: State, targets: NDArray[np.int8], mechanisms: Mapping[int, AdditiveNoise]
) -> State:
    """The state with other mechanisms and targets, if it is better for it."""
    if all(mechanisms[j] is state.mechanism(j) for j in mechanisms):
        return state
    better = fit_from(problem, state.responsibilities, state.adjacency, targets, mechanisms, TRIAL_STEPS)
    return better if better.evidence > state.evidence else state


def _n_gaussians(problem: Problem) -> int:
    assert isinstance(problem.learner, NetworkLearner)
    return problem.learner.family.n_gaussians
