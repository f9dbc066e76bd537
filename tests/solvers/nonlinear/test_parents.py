"""Backward elimination: what a network can do without is no parent."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo.model.mechanisms import NetworkMechanism, Noise
from latentdo.solvers.nonlinear.levenberg import Effort, fit_network
from latentdo.solvers.nonlinear.mechanism import fit_mechanism
from latentdo.solvers.nonlinear.parents import ParentSet, eliminate, reconsider
from latentdo.solvers.settings import UNITS


@pytest.fixture(scope="module")
def rows():
    """``d = |a| - max(b, 0) + noise``; c follows a but does not matter to d."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 900))
    c = a + 0.5 * rng.standard_normal(900)
    d = np.abs(a) - np.maximum(b, 0.0) + 0.1 * rng.standard_normal(900)
    return np.column_stack([a, b, c, d])


def _eliminate(problem, weights=None, n_components=1, inputs=(0, 1, 2)):
    inputs = list(inputs)
    rng = np.random.default_rng(0)
    weights = np.ones(problem.n_rows) if weights is None else weights
    x, y = np.ascontiguousarray(problem.z[:, inputs]), problem.z[:, 3]
    network, _ = fit_network(x, y, weights, rng)
    start = fit_mechanism(x, y, weights, network, n_components=n_components)
    return eliminate(problem, 3, inputs, start, weights, n_components=n_components, rng=rng)


@pytest.mark.parametrize("n_components", [1, 3])
def test_an_irrelevant_input_is_dropped(make_problem, rows, n_components):
    problem = make_problem(rows)
    family = _eliminate(problem, n_components=n_components)
    assert family.parents == (0, 1)
    assert family.probabilities[0] > 0.99
    assert family.probabilities[1] > 0.99
    assert family.probabilities[2] < 0.05
    noise = family.mechanism.noise
    assert np.sqrt(noise.weights @ (noise.variances + noise.means**2)) * rows[:, 3].std() == pytest.approx(
        0.1, rel=0.1
    )


def test_what_is_required_stays(make_problem, rows):
    family = _eliminate(make_problem(rows, required=[("c", "d")]))
    assert family.parents == (0, 1, 2)
    assert family.probabilities[2] == 1.0


def test_there_are_never_more_than_max_parents(make_problem, rows):
    family = _eliminate(make_problem(rows, max_parents=1))
    assert family.parents == (0,), "the one that explains most"
    family = _eliminate(make_problem(rows, max_parents=0))
    assert family.parents == ()
    assert family.mechanism.noise.variances[0] == pytest.approx(1.0, rel=1e-6)


def test_required_and_max_parents_together(make_problem, rows):
    family = _eliminate(make_problem(rows, required=[("c", "d")], max_parents=2))
    assert len(family.parents) == 2
    assert 2 in family.parents


def test_no_inputs_no_parents(make_problem, rows):
    family = _eliminate(make_problem(rows), inputs=())
    assert family.parents == ()
    assert family.probabilities == {}


def test_rows_that_do_not_count_say_nothing(make_problem, rows):
    """In the second half d depends on c alone; the weights leave that half out."""
    other = rows.copy()
    other[450:, 3] = 2.0 * other[450:, 2]
    weights = np.where(np.arange(900) < 450, 1.0, 0.0)
    assert _eliminate(make_problem(other), weights).parents == (0, 1)


def test_a_prior_can_decide(make_problem, rows):
    prior = np.zeros((4, 4))
    prior[2, 3] = 200.0
    assert _eliminate(make_problem(rows, edge_prior=prior)).parents == (0, 1, 2)
    prior[2, 3], prior[1, 3] = 0.0, -1e5
    assert 1 not in _eliminate(make_problem(rows, edge_prior=prior)).parents


def test_where_nothing_can_be_said_there_are_no_parents(make_problem, rows):
    """Every regime targets it, or there are fewer rows than a network has units: costs stay costs."""
    assert _fits_nothing(make_problem(rows), np.zeros(900)).parents == ()
    noise = np.random.default_rng(1).standard_normal((12, 4))
    assert _fits_nothing(make_problem(noise), np.ones(12)).parents == ()


def _fits_nothing(problem, weights):
    start = NetworkMechanism(np.zeros(1 + 3 + UNITS * 5), Noise.gaussian(1.0))
    return eliminate(problem, 3, [0, 1, 2], start, weights, n_components=1, rng=np.random.default_rng(0))


def _reconsider(problem, parents, n_components=1):
    """A family whose network has got used to all of its parents."""
    parents = list(parents)
    weights, rng = np.ones(problem.n_rows), np.random.default_rng(0)
    x, y = np.ascontiguousarray(problem.z[:, parents]), problem.z[:, 3]
    network, _ = fit_network(x, y, weights, rng, Effort(starts=1))
    mechanism = fit_mechanism(x, y, weights, network, n_components=n_components)
    family = ParentSet(tuple(parents), mechanism, dict.fromkeys(parents, 1.0))
    return family, reconsider(problem, 3, family, weights, n_components=n_components, rng=rng)


@pytest.mark.parametrize("n_components", [1, 3])
def test_proxies_of_a_parent_are_not_needed(make_problem, n_components):
    """``b`` and ``c`` are what a network makes of ``a``, with very little noise; only ``a`` is a parent."""
    rng = np.random.default_rng(1)
    a = rng.standard_normal(900)
    b = np.maximum(a, 0.0) + 0.01 * rng.standard_normal(900)
    c = np.abs(a - 0.5) + 0.01 * rng.standard_normal(900)
    d = np.sin(2.0 * a) + 0.1 * rng.standard_normal(900)
    problem = make_problem(np.column_stack([a, b, c, d]))
    _, after = _reconsider(problem, (0, 1, 2), n_components)
    assert after.parents == (0,)
    assert max(after.probabilities[1], after.probabilities[2]) < 0.5


def test_real_parents_stay_however_weak(make_problem):
    rng = np.random.default_rng(2)
    a, b, c = rng.standard_normal((3, 900))
    d = np.abs(a) + 0.08 * b + 0.06 * np.maximum(c, 0.0) + 0.1 * rng.standard_normal(900)
    problem = make_problem(np.column_stack([a, b, c, d]))
    _, after = _reconsider(problem, (0, 1, 2))
    assert after.parents == (0, 1, 2)


def test_required_parents_are_not_reconsidered(make_problem, rows):
    _, after = _reconsider(make_problem(rows, required=[("c", "d")]), (0, 1, 2))
    assert 2 in after.parents


@pytest.mark.parametrize("parents", [(), (0,)])
def test_one_parent_is_not_reconsidered(make_problem, rows, parents):
    """Whether there is one at all is what elimination has just decided."""
    before, after = _reconsider(make_problem(rows), parents)
    assert after is before
