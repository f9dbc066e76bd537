"""Further looks for the order of the variables: nothing that was right before is lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from latentdo.metrics import adjusted_rand_index
from latentdo.model.mechanisms import NetworkMechanism, Noise
from latentdo.solvers.nonlinear import order, stages
from latentdo.solvers.nonlinear.learner import with_networks
from latentdo.solvers.nonlinear.order import NetworkRun, NetworkStanding
from latentdo.solvers.nonlinear.separated_peaks import divide
from latentdo.solvers.search.em import refine
from latentdo.solvers.search.reporting import Journal
from latentdo.solvers.search.solve import SearchConfiguration
from latentdo.solvers.settings import MISFIT


@pytest.fixture
def search(make_problem, planted):
    return NetworkRun(
        make_problem(planted.x),
        SearchConfiguration(),
        Journal(None),
        np.random.default_rng(0),
        flexible=False,
    )


def standing(state, **parts):
    """A state as a stage would hand it on."""
    rest = {"labels": np.zeros(len(state.responsibilities), dtype=np.int64), "looks": 1}
    return NetworkStanding(state=state, **rest | parts)


@pytest.fixture
def truth(search, planted, one_hot):
    rows = one_hot(planted.regimes)
    return refine(with_networks(search.problem), rows, planted.adjacency, targets=planted.targets)


def test_a_look_from_the_truth_stays_there(search, truth, planted):
    again = order.look_again(search, standing(truth)).state
    assert again.n_regimes == truth.n_regimes
    assert adjusted_rand_index(planted.regimes, again.responsibilities.argmax(axis=1)) > 0.95
    assert (again.adjacency >= planted.adjacency).all()  # predecessors, before any is dropped


def test_a_regime_whose_targets_are_not_found_again_keeps_its_own(search, truth, monkeypatch):
    module = "latentdo.solvers.nonlinear.order"

    def blind(problem, minority):
        k = problem.n_labelled
        return np.eye(k)[problem.labels], np.zeros((k, problem.n_variables), dtype=np.int8)

    monkeypatch.setattr(f"{module}.first_regimes", blind)
    again = order.look_again(search, standing(truth)).state
    assert again.n_regimes == truth.n_regimes
    np.testing.assert_array_equal(again.targets, truth.targets)


def test_earlier_networks_serve_where_fresh_ones_fit_worse(search, truth, planted):
    """``c`` may use both parents as before; ``b`` not its own, so its fresh network stays whatever it is."""
    flat = NetworkMechanism(np.zeros(1), Noise.gaussian(1.0))
    wide = NetworkMechanism(np.zeros(3), Noise.gaussian(1.0))  # constant in two inputs
    fresh = {0: flat, 1: flat, 2: wide}
    better = order.better_before(search.problem, truth, [[], [], [0, 1]], fresh, planted.targets)
    assert set(better) == {2}
    x, y = np.ascontiguousarray(search.problem.z[:, :2]), search.problem.z[:, 2]
    untouched = planted.regimes != 3
    gain = (
        better[2].log_density(x, y)[untouched].mean() - truth.mechanism(2).log_density(x, y)[untouched].mean()
    )
    assert gain > -0.05


@pytest.mark.parametrize("flexible", [False, True])
def test_coincidences_count_more_than_some_evidence(search, truth, flexible, monkeypatch):
    """Fewer are better unless they cost more than a misfit explains; more only if evidence gains more than that."""
    search = replace(search, flexible=flexible)
    limit = MISFIT * (2.0 if flexible else 1.0) * search.problem.n_rows
    counts = {}
    monkeypatch.setattr("latentdo.solvers.nonlinear.order.conflicts", lambda _, state: counts[id(state)])

    def state(evidence, coincidences):
        made = type("S", (), {"evidence": evidence})()
        counts[id(made)] = coincidences
        kept.append(made)  # identities must not be used again
        return made

    kept = []
    before = state(0.0, 2)
    assert order.is_better(search, state(2.0, 2), before)
    assert not order.is_better(search, state(0.5, 2), before)
    assert order.is_better(search, state(2.0 - limit, 1), before)
    assert not order.is_better(search, state(-limit, 1), before)
    assert order.is_better(search, state(2.0 + limit, 3), before)
    assert not order.is_better(search, state(limit, 3), before)


@pytest.fixture
def wrong_way_round(make_problem):
    """``b`` follows ``a``, each is hit in a regime; a state with ``b -> a`` takes both for a hit on ``b``."""
    rng = np.random.default_rng(0)
    regimes = rng.choice(3, size=1200, p=(0.6, 0.2, 0.2))
    a = np.where(regimes == 1, 4.5 + 0.3 * rng.standard_normal(1200), rng.standard_normal(1200))
    b = np.abs(a) + 0.1 * rng.standard_normal(1200)
    b = np.where(regimes == 2, -4.0 + 0.3 * rng.standard_normal(1200), b)
    problem = make_problem(np.column_stack([a, b]))
    run = NetworkRun(problem, SearchConfiguration(), Journal(None), np.random.default_rng(0), flexible=True)
    rows = np.eye(2)[np.minimum(regimes, 1)]
    targets = np.array([[0, 0], [0, 1]], dtype=np.int8)
    adjacency = np.array([[0, 0], [1, 0]], dtype=np.int8)
    return run, refine(with_networks(run.problem, 3), rows, adjacency, targets=targets), regimes


def test_joined_regimes_are_thought_over(wrong_way_round):
    run, joined, regimes = wrong_way_round
    assert joined.n_regimes == 2
    labels = joined.responsibilities.argmax(axis=1)
    found = stages.divide_regimes(run, standing(joined, labels=labels))
    after = found.state
    assert after.n_regimes == 3
    assert adjusted_rand_index(regimes, after.responsibilities.argmax(axis=1)) > 0.95
    np.testing.assert_array_equal(after.adjacency, [[0, 1], [0, 0]])
    assert found.parents[1].parents == (0,)


def test_regimes_that_the_order_was_found_with_are_not_thought_over(wrong_way_round, monkeypatch):
    run, joined, _ = wrong_way_round
    parts, _ = divide(run.problem, joined)
    monkeypatch.setattr(stages, "look", None)
    before = standing(joined, labels=parts.argmax(axis=1))
    assert stages.divide_regimes(run, before) is before
