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
    """Names and seeds of the starts, instead of what they lead to: states of given evidence, in nats per row."""
    log = []

    def use(*evidence):
        def begin(run, name, seed):
            log.append((name, seed))
            state = type("S", (), {"evidence": evidence[len(log) - 1] * run.problem.n_rows})()
            return NetworkStanding(state, labels=np.zeros(0, dtype=np.int64), looks=1)

        monkeypatch.setattr(starts, "_begin", begin)
        better = lambda _, new, old, margin: new.evidence > old.evidence + margin  # noqa: E731
        monkeypatch.setattr(starts, "is_better", better)
        return log

    return use


def best(run):
    found = starts.best_start(run)
    return found.state.evidence / run.problem.n_rows, found.looks


def test_there_are_no_more_starts_once_two_agree(make_run, begun):
    log = begun(1.0, 3.0, 1.01, 4.0)
    assert best(make_run()) == (3.0, 2)
    assert log == [("minorities", 0), ("mixture", 1), ("mixture", 2)]


def test_a_little_more_evidence_is_luck(make_run, begun):
    log = begun(1.0, 1.05)
    assert best(make_run()) == (1.0, 2)
    assert len(log) == 2


def test_as_many_as_are_asked_for_if_none_agree(make_run, begun):
    log = begun(1.0, 3.0, 5.0, 2.0)
    assert best(make_run()) == (5.0, 1)
    assert log == [("minorities", 0), ("mixture", 1), ("mixture", 2), ("minorities", 3)]


@pytest.mark.parametrize("options", [{"n_init": 1}, {"labels": "all"}])
def test_a_single_start(make_run, begun, planted, options):
    if "labels" in options:
        options = {"labels": planted.regimes, "known": np.zeros((4, 3), dtype=np.int8)}
    log = begun(1.0)
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
