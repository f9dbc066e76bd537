"""Peers answer in our convention (row causes column), see only what they are told, and fail in words."""

import numpy as np
import pytest
from experiments.baselines.interface import Problem
from experiments.baselines.registry import METHODS, SLOW, Method
from experiments.baselines.solve import favourable, interpreter, solve

COLLIDER = np.array([[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
"""0 -> 2 <- 1 and 2 -> 3: alone in its equivalence class, so that every method can be held to it."""


def table(truth, change="perfect", function=None, n=400):
    """One observational regime and one intervention a variable; noise of equal variance, never standardised."""
    rng = np.random.default_rng(0)
    d = len(truth)
    function = function or (lambda x: 1.2 * x)
    X, regimes = np.zeros((n * (d + 1), d)), np.repeat(np.arange(d + 1), n)
    for k in range(d + 1):
        rows = regimes == k
        for j in range(d):
            noise, cause = rng.normal(size=n), function(X[rows]) @ truth[:, j]
            if k == j + 1:
                X[rows, j] = 8 + noise / 2 if change == "perfect" else cause + 8 + 2 * noise
            else:
                X[rows, j] = cause + noise
    targets = np.vstack([np.zeros(d, dtype=int), np.eye(d, dtype=int)])
    return Problem(X, regimes, targets, regimes == 0, d + 1)


def answer(name, problem, seconds=60):
    if not interpreter(METHODS[name].environment).exists():
        pytest.skip("`make baselines` was not run")
    outcome = solve(name, problem, seconds=seconds)
    assert outcome.status == "ok", outcome.message
    return outcome


USUAL = ["gies", "gies-uncentred", "igsp", "ut-igsp", "gmm-ut-igsp", "gmm-search", "linear-search-targets"]
USUAL += [f"{name}-observational" for name in ("ges", "pc", "fci", "notears", "dagma", "var-sort")]


@pytest.mark.parametrize("name", USUAL)
def test_a_peer_finds_a_known_graph_the_right_way_round(name):
    outcome = answer(name, table(COLLIDER))
    np.testing.assert_array_equal(outcome.graph, COLLIDER)
    assert outcome.memory_mb > 1
    assert all(package in outcome.versions for package in METHODS[name].packages)


def test_gnies_wants_interventions_that_keep_the_parents():
    np.testing.assert_array_equal(answer("gnies", table(COLLIDER, "noise")).graph, COLLIDER)


@pytest.mark.parametrize("name", ["cam", "cam-observational", "cam-targets"])
def test_cam_orients_by_curvature(name):
    problem = table(COLLIDER, "noise" if name == "cam" else "perfect", lambda x: 2 * np.tanh(2 * x) + x)
    if name == "cam":  # without labels it must be shown data without interventions
        problem = Problem(problem.X[problem.observational])
    np.testing.assert_array_equal(answer(name, problem).graph, COLLIDER)


def test_r2_sorting_puts_what_is_predictable_last():
    collider = COLLIDER[:3, :3]
    np.testing.assert_array_equal(answer("r2-sort-observational", table(collider)).graph, collider)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_a_neural_peer_finds_a_known_graph_the_right_way_round(name):
    np.testing.assert_array_equal(answer(name, table(COLLIDER, n=200), seconds=900).graph, COLLIDER)


def test_every_method_can_be_found():
    for method in METHODS.values():
        module, _, function = method.adapter.partition(":")
        assert hasattr(__import__(f"experiments.baselines.{module}", fromlist=[function]), function)


def test_labels_are_marked():
    assert METHODS["pc"].label_free
    assert METHODS["gmm-search"].label_free
    assert not METHODS["pc-observational"].label_free
    assert not METHODS["ut-igsp"].label_free
    assert METHODS["gies"].told == "regimes, targets"
    assert METHODS["cam"].told == "nothing"


def test_what_is_not_given_is_hidden():
    problem = table(COLLIDER)
    shown = problem.showing(METHODS["ut-igsp"].given)
    assert shown.regimes is not None
    assert shown.targets is shown.observational is shown.n_regimes is None
    assert len(shown.rows()) == len(problem.X) > len(problem.rows())


def test_a_problem_survives_the_way_to_another_process(tmp_path):
    problem = table(COLLIDER).showing(("regimes", "n_regimes"))
    problem.save(tmp_path / "problem.npz")
    again = Problem.load(tmp_path / "problem.npz")
    np.testing.assert_array_equal(again.X, problem.X)
    np.testing.assert_array_equal(again.regimes, problem.regimes)
    assert (again.n_regimes, again.density, again.targets) == (5, "linear", None)


def test_an_undirected_edge_may_be_turned_as_in_the_truth():
    found = np.array([[0, 1, 1], [1, 0, 1], [0, 1, 0]])
    true = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(favourable(true, found), [[0, 1, 1], [0, 0, 1], [0, 1, 0]])


def test_failure_and_time_limit_are_values(monkeypatch):
    methods = {
        "failing": Method("failing", "ours:with_targets", (), "main"),
        "absent": Method("absent", "permutations:igsp", ("regimes", "targets"), "main"),
        "slow": Method("slow", "ours:with_regimes", ("regimes",), "main"),
    }
    for name, method in methods.items():
        monkeypatch.setitem(METHODS, name, method)
    problem = table(COLLIDER)
    failed, absent = solve("failing", Problem(np.full((5, 4), np.nan))), solve("absent", problem)
    assert (failed.status, failed.graph) == ("failed", None)
    assert "NaN in row 0" in failed.message
    assert absent.status == "unavailable"
    assert "graphical_model_learning" in absent.message
    assert solve("slow", problem, seconds=1).status == "time-out"
