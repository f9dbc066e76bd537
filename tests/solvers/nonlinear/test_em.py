"""EM with networks: costs by hand, mechanisms in closed form, evidence that rises."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from latentdo.metrics import adjusted_rand_index
from latentdo.model.fitted import FittedModel, Topology
from latentdo.model.mechanisms import LinearMechanism, NetworkMechanism, Noise
from latentdo.solvers.nonlinear.family import Networks
from latentdo.solvers.nonlinear.learner import with_networks
from latentdo.solvers.search.em import refine
from latentdo.solvers.settings import UNITS


def _own(problem, j, parents, reference, weights, imperfect=True):
    """What an intervention on ``j`` left in these rows."""
    x, y = problem.z[:, parents], problem.z[:, j]
    return Networks.intervene(x, y, weights, reference, imperfect=imperfect)


def _truth(problem, planted, one_hot, n_components=1, **options):
    return refine(
        with_networks(problem, n_components),
        one_hot(planted.regimes),
        planted.adjacency,
        targets=planted.targets,
        **options,
    )


def test_structure_costs_by_hand(make_problem):
    """``a -> b``; 60 rows of the reference, 40 that target b."""
    rng = np.random.default_rng(0)
    prior = np.array([[0.0, -0.7], [-0.2, 0.0]])
    problem = make_problem(rng.standard_normal((100, 2)), edge_prior=prior, target_prior=-3.0)
    adjacency, targets = np.array([[0, 1], [0, 0]], np.int8), np.array([[0, 0], [0, 1]], np.int8)
    mixed = Noise(np.full(3, 1 / 3), np.zeros(3), np.ones(3))
    model = FittedModel(
        Topology(adjacency, targets, np.array([0.6, 0.4])),
        (
            NetworkMechanism(np.zeros(1), Noise.gaussian(1.0)),
            NetworkMechanism(np.zeros(1 + 1 + 2 * 3), mixed),
        ),
        {(1, 1): LinearMechanism(np.zeros(2), Noise.gaussian(1.0))},
    )
    weights = 0.5 * np.log(100)
    first = 0.5 * 2 * np.log(100)  # mean and variance of a, from all rows
    second = 0.5 * (8 + 7) * np.log(60)  # network and noise of b, from the reference
    own = 0.5 * 3 * np.log(40)
    assert problem.penalties.cost(model, 100) == pytest.approx(weights + first + second + own + 0.7 + 3.0)


def test_weighing_is_bayes_rule(make_problem, planted, one_hot):
    problem = make_problem(planted.x)
    state = refine(
        with_networks(problem),
        one_hot(planted.regimes),
        planted.adjacency,
        targets=planted.targets,
        iterations=1,
    )
    model = state.model
    joint = model.log_joint(problem.z)
    assert state.loglik == pytest.approx(logsumexp(joint, axis=1).sum())
    np.testing.assert_allclose(state.responsibilities, softmax(joint, axis=1), atol=1e-10)
    assert state.evidence == state.loglik - state.cost
    assert state.n_regimes == 4


def test_labelled_rows_stay_where_they_are(make_problem, planted, one_hot):
    labels = np.where(np.arange(len(planted.x)) % 4 == 0, (planted.regimes + 1) % 4, -1)  # all wrong
    problem = make_problem(planted.x, labels=labels, known=np.full((4, 3), -1))
    state = _truth(problem, planted, one_hot, iterations=2)
    known = labels >= 0
    np.testing.assert_array_equal(state.responsibilities[known], np.eye(4)[labels[known]])


@pytest.mark.parametrize("n_components", [1, 3])
def test_the_truth_is_a_fixed_point(make_problem, planted, one_hot, n_components):
    state = _truth(make_problem(planted.x), planted, one_hot, n_components)
    assert adjusted_rand_index(planted.regimes, state.responsibilities.argmax(axis=1)) > 0.97
    noises = [mechanism.noise for mechanism in state.model.reference]
    assert all(noise.weights.size == n_components for noise in noises)
    variances = [noise.weights @ (noise.variances + noise.means**2) for noise in noises]
    for j in (1, 2):
        assert np.sqrt(variances[j]) * planted.x[:, j].std() == pytest.approx(0.1, rel=0.12)
        assert state.mechanism(j).parameters.size == 1 + j + UNITS * (j + 2)


def test_more_rounds_never_lower_the_evidence(make_problem, planted):
    rng = np.random.default_rng(0)
    problem = make_problem(planted.x)
    start = 0.4 * np.eye(4)[planted.regimes] + 0.6 * rng.dirichlet(np.ones(4), len(planted.x))
    values = [
        refine(
            with_networks(problem), start, planted.adjacency, targets=planted.targets, iterations=rounds
        ).evidence
        for rounds in (1, 2, 4, 8)
    ]
    assert (np.diff(values) >= 0.0).all()
    assert values[-1] > values[0]


def test_components_without_rows_are_dropped(make_problem, planted, one_hot):
    problem = make_problem(planted.x)
    crowded = np.column_stack([one_hot(planted.regimes), np.zeros(len(planted.x))])
    crowded[:3, 4], crowded[:3, :4] = 1.0, 0.0
    targets = np.vstack([planted.targets, [1, 1, 0]]).astype(np.int8)
    state = refine(with_networks(problem), crowded, planted.adjacency, targets=targets)
    assert state.n_regimes == 4
    np.testing.assert_array_equal(state.targets, planted.targets)
    np.testing.assert_allclose(state.responsibilities.sum(axis=1), 1.0)


def test_labelled_components_without_rows_are_kept(make_problem, planted):
    labels = np.where(planted.regimes == 3, -1, planted.regimes)
    labels[labels == 2] = 0
    problem = make_problem(planted.x, labels=labels, known=np.full((3, 3), -1))
    start = np.eye(4)[np.where(labels >= 0, labels, 3)]
    targets = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.int8)
    state = refine(with_networks(problem), start, planted.adjacency, targets=targets, iterations=3)
    assert state.n_regimes == 4
    assert np.isfinite(state.evidence)


@pytest.mark.parametrize("imperfect", [False, True])
def test_a_perfect_intervention_leaves_a_constant(make_problem, planted, imperfect):
    problem = make_problem(planted.x, imperfect=imperfect)
    weights = (planted.regimes == 3).astype(float)
    reference = NetworkMechanism(np.ones(1 + 2 + 3 * 4), Noise.gaussian(1.0))
    own = _own(problem, 2, [0, 1], reference, weights, imperfect)
    values = problem.z[planted.regimes == 3, 2]
    np.testing.assert_allclose(own.linear_form.coefficients, [values.mean()], atol=1e-6)
    np.testing.assert_allclose(own.noise.variances, [values.var()], rtol=1e-6)


def test_an_imperfect_intervention_may_use_parents_and_hidden_units(make_problem):
    rng = np.random.default_rng(0)
    a = rng.standard_normal(400)
    linear = 2.0 * a + 0.1 * rng.standard_normal(400)
    bent = 3.0 * np.maximum(a - 0.2, 0.0) + 0.1 * rng.standard_normal(400)
    problem = make_problem(np.column_stack([a, linear, bent]), imperfect=True)
    a, linear, bent = problem.z.T
    kink = (0.2 - 0.0) / 1.0
    reference = NetworkMechanism(np.array([0.0, 0.0, 1.0, -kink, 1.0]), Noise.gaussian(1.0))
    everyone = np.ones(400)
    of_parents = _own(problem, 1, [0], reference, everyone)
    assert of_parents.linear_form.coefficients.size == 2
    of_units = _own(problem, 2, [0], reference, everyone)
    assert of_units.n_parameters == 3 + 1, (
        "the last layer and a variance; the hidden units are the reference's"
    )
    np.testing.assert_array_equal(of_units.parameters[3:], reference.parameters[3:])
    plain = _own(problem, 2, [0], reference, everyone, imperfect=False)
    assert plain.linear_form.coefficients.size == 1
    constant = NetworkMechanism(np.zeros(1), Noise.gaussian(1.0))
    alone = _own(problem, 2, [], constant, everyone)
    assert alone.linear_form.coefficients.size == 1


def test_a_variable_that_every_regime_targets_still_has_a_mechanism(make_problem, planted, one_hot):
    targets = planted.targets.copy()
    targets[:, 1] = 1
    problem = make_problem(planted.x)
    state = refine(
        with_networks(problem), one_hot(planted.regimes), planted.adjacency, targets=targets, iterations=2
    )
    assert np.isfinite(
        state.mechanism(1).log_density(state.model.inputs(problem.z, 1), problem.z[:, 1])
    ).all()
    assert np.isfinite(state.evidence)
