"""Starts of a search for networks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from latentdo.metrics import adjusted_rand_index
from latentdo.solvers.nonlinear import starts
from latentdo.solvers.nonlinear.learner import with_networks
from latentdo.solvers.nonlinear.order import NetworkRun, NetworkStanding
from latentdo.solvers.search.em import refine
from latentdo.solvers.search.reporting import Journal
from latentdo.solvers.search.solve import SearchConfiguration


@pytest.fixture
def make_run(make_problem, planted):
    def make(n_init=4, curves=None, **options):
        configuration = SearchConfiguration(n_init=n_init, max_regimes=6)
        problem = replace(make_problem(planted.x, **options), max_regimes=6)
        return NetworkRun(problem, configuration, Journal(None), np.random.default_rng(0), False, curves)

    return make


@pytest.fixture
def begun(monkeypatch):
    """Names and seeds of the starts, instead of what they lead to: states with given regimes and evidence."""
    log = []

    def use(outcomes):
        def begin(_, name, seed):
            log.append((name, seed))
            labels, evidence = outcomes[len(log) - 1]
            state = type("S", (), {"responsibilities": np.eye(3)[labels], "evidence": evidence})()
            return NetworkStanding(state, labels=labels, looks=1)

        monkeypatch.setattr(starts, "_begin", begin)
        monkeypatch.setattr(starts, "is_better", lambda _, new, old: new.evidence > old.evidence)
        return log

    return use


ONE, OTHER, THIRD, FOURTH = (np.random.default_rng(seed).integers(0, 3, 50) for seed in range(4))


def test_there_are_no_more_starts_once_two_agree(make_run, begun):
    log = begun([(ONE, 1.0), (OTHER, 3.0), (ONE, 2.0), (THIRD, 4.0)])
    best = starts.best_start(make_run())
    assert (best.state.evidence, best.looks) == (3.0, 2)
    assert log == [("minorities", 0), ("mixture", 1), ("mixture", 2)]


def test_as_many_as_are_asked_for_if_none_agree(make_run, begun):
    log = begun([(ONE, 1.0), (OTHER, 3.0), (THIRD, 5.0), (FOURTH, 2.0)])
    best = starts.best_start(make_run())
    assert (best.state.evidence, best.looks) == (5.0, 1)
    assert log == [("minorities", 0), ("mixture", 1), ("mixture", 2), ("minorities", 3)]


@pytest.mark.parametrize("options", [{"n_init": 1}, {"labels": "all"}])
def test_a_single_start(make_run, begun, planted, options):
    if "labels" in options:
        options = {"labels": planted.regimes, "known": np.zeros((4, 3), dtype=np.int8)}
    log = begun([(ONE, 1.0)])
    starts.best_start(make_run(**options))
    assert log == [("minorities", 0)]


def test_a_mixture_leads_to_the_regimes(make_run, planted):
    found = starts._begin(make_run(), "mixture", 0).state
    assert adjusted_rand_index(planted.regimes, found.responsibilities.argmax(axis=1)) > 0.95


@pytest.mark.parametrize("wide", [False, True])
def test_curves_lead_to_their_regimes_and_if_wide_to_their_graph(
    make_run, planted, one_hot, wide, monkeypatch
):
    problem = make_run().problem
    curves = refine(problem, one_hot(planted.regimes), planted.adjacency, targets=planted.targets).model
    monkeypatch.setattr("latentdo.solvers.nonlinear.order.WIDEST", 2 if wide else 40)
    found = starts._begin(make_run(curves=curves), "curves", 0).state
    assert adjusted_rand_index(planted.regimes, found.responsibilities.argmax(axis=1)) > 0.9
    assert (found.adjacency >= planted.adjacency).all()  # predecessors, before any is dropped
    networks = with_networks(problem)
    truth = refine(networks, one_hot(planted.regimes), planted.adjacency, targets=planted.targets)
    assert found.evidence > truth.evidence - 0.1 * problem.n_rows
