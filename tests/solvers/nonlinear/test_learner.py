"""What networks answer to the shared search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit

from latentdo.model.mechanisms.network import evaluate, with_inputs
from latentdo.solvers.nonlinear.learner import fit_from, flexible_noise, with_networks
from latentdo.solvers.search.em import refine
from latentdo.solvers.search.posterior import graph_posterior
from latentdo.solvers.search.regime_moves import Birth
from latentdo.solvers.settings import MIXED_NOISE


@pytest.fixture(scope="module")
def truth(make_problem, planted, one_hot):
    problem = with_networks(make_problem(planted.x))
    state = refine(problem, one_hot(planted.regimes), planted.adjacency, targets=planted.targets)
    return problem, state


def test_odds_of_edges_become_their_probabilities(make_problem, planted):
    """Edges of one order never make a cycle, so every one keeps its own probability."""
    probabilities = np.array([[0.0, 0.9, 0.2], [0.0, 0.0, 0.6], [0.0, 0.0, 0.0]])
    problem = with_networks(make_problem(planted.x), odds=logit(probabilities))
    graph = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], np.int8)
    statistics = problem.learner.statistics(problem, np.ones((problem.n_rows, 1)))
    posterior = graph_posterior(problem.learner.tables(problem, statistics, graph), graph)
    np.testing.assert_allclose(posterior.edges, probabilities, atol=1e-9)
    assert posterior.ancestors[0, 2] == pytest.approx(1.0 - (1.0 - 0.9 * 0.6) * 0.8, abs=0.08)


def test_required_edges_are_certain(make_problem, planted):
    probabilities = np.array([[0.0, 0.1, 0.5], [0.0, 0.0, 0.5], [0.0, 0.0, 0.0]])
    problem = make_problem(planted.x, required=[("a", "b")])
    problem = with_networks(problem, odds=logit(probabilities))
    graph = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]], np.int8)
    statistics = problem.learner.statistics(problem, np.ones((problem.n_rows, 1)))
    edges = graph_posterior(problem.learner.tables(problem, statistics, graph), graph).edges
    np.testing.assert_allclose(edges, [[0.0, 1.0, 0.5], [0.0, 0.0, 0.5], [0.0, 0.0, 0.0]], atol=1e-9)


def test_a_birth_pays_by_the_row_and_not_with_coincidences(truth):
    """A few nats may be what a better network gains; a regime that moves what it does not hit is none."""
    problem, state = truth
    birth = Birth(1.0, 0, 2, np.arange(10), np.ones(10))
    margin = 0.01 * problem.n_rows + flexible_noise(problem, state)[2][1]
    barely, clearly = (replace(state, loglik=state.loglik + margin + extra) for extra in (-1.0, 1.0))
    assert not problem.learner.pays(problem, state, barely, [birth])
    assert problem.learner.pays(problem, state, clearly, [birth])
    assert not problem.learner.pays(problem, state, clearly, [birth, birth])
    strange = replace(state.model.topology, targets=np.zeros_like(state.targets))
    without_cause = replace(clearly, model=replace(state.model, topology=strange))
    assert not problem.learner.pays(problem, state, without_cause, [birth])


def test_unlike_regimes_may_not_share_mixed_noise(make_problem, planted):
    """One peak for each of two regimes would pass for the noise of one."""
    learner = with_networks(make_problem(planted.x), MIXED_NOISE).learner
    assert learner.joining(alike=True).n_gaussians == MIXED_NOISE
    assert learner.joining(alike=False).n_gaussians == 1


def test_a_fit_goes_on_from_given_mechanisms(truth, planted, one_hot):
    problem, state = truth
    rows = one_hot(planted.regimes)
    again = fit_from(problem, rows, planted.adjacency, planted.targets, state.mechanisms, 1)
    assert again.evidence > state.evidence - 5.0
    for j in (1, 2):
        # Weights before and after a unit can be traded for each other: it is the function that stays.
        x = problem.inputs(np.flatnonzero(planted.adjacency[:, j]))
        np.testing.assert_allclose(again.mechanism(j).mean(x), state.mechanism(j).mean(x), atol=0.05)


def test_a_network_of_other_inputs_is_the_same_function_of_those_it_keeps():
    rng = np.random.default_rng(0)
    parameters = rng.standard_normal(1 + 2 + 3 * 4)
    x = rng.standard_normal((50, 4))
    more = with_inputs(parameters, [1, 3], [0, 1, 2, 3])
    np.testing.assert_allclose(evaluate(x, more), evaluate(np.ascontiguousarray(x[:, [1, 3]]), parameters))
    swapped = with_inputs(parameters, [1, 3], [0, 1])
    still = np.column_stack([x[:, 1], np.zeros(50)])
    np.testing.assert_allclose(evaluate(np.ascontiguousarray(x[:, :2]), swapped), evaluate(still, parameters))
