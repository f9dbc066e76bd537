"""Peers answer in our convention (row causes column), see only what they are told, and fail in words."""

import numpy as np
import pytest
from experiments.baselines.interface import Problem
from experiments.baselines.registry import METHODS, SLOW, Method
from experiments.baselines.solve import favourable, interpreter, solve

COLLIDER = np.array([[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
"""0 -> 2 <- 1 and 2 -> 3: alone in its equivalence class, so that every method can be held to it."""


def table(truth, change="perfect", function=None, n=400, draw=None):
    """One observational regime and one intervention a variable; noise of equal variance, never standardised."""
    rng = np.random.default_rng(0)
    draw = draw or rng.normal
    d = len(truth)
    function = function or (lambda x: 1.2 * x)
    X, regimes = np.zeros((n * (d + 1), d)), np.repeat(np.arange(d + 1), n)
    for k in range(d + 1):
        rows = regimes == k
        for j in range(d):
            noise, cause = draw(size=n), function(X[rows]) @ truth[:, j]
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
USUAL += [
    f"{name}-observational"
    for name in ("ges", "boss", "grasp", "pc", "fci", "notears", "dagma", "var-sort", "topic")
]


@pytest.mark.parametrize("name", USUAL)
def test_a_peer_finds_a_known_graph_the_right_way_round(name):
    outcome = answer(name, table(COLLIDER))
    np.testing.assert_array_equal(outcome.graph, COLLIDER)
    assert outcome.memory_mb > 1
    assert all(package in outcome.versions for package in METHODS[name].packages)


def test_a_mixture_told_nothing_takes_its_largest_cluster_for_observational():
    problem = table(COLLIDER)
    kept = problem.observational | (np.arange(len(problem.X)) % 2 == 0)
    found = answer("gmm-bic-ut-igsp", Problem(problem.X[kept])).graph
    np.testing.assert_array_equal(found, COLLIDER)


def test_gnies_wants_interventions_that_keep_the_parents():
    np.testing.assert_array_equal(answer("gnies", table(COLLIDER, "noise")).graph, COLLIDER)


@pytest.mark.parametrize("name", ["cam", "cam-observational", "cam-targets"])
def test_cam_orients_by_curvature(name):
    problem = table(COLLIDER, "noise" if name == "cam" else "perfect", lambda x: 2 * np.tanh(2 * x) + x)
    if name == "cam":  # without labels it must be shown data without interventions
        problem = Problem(problem.X[problem.observational])
    np.testing.assert_array_equal(answer(name, problem).graph, COLLIDER)


@pytest.mark.parametrize("name", ["lingam", "resit"])
def test_lingam_orients_by_the_shape_of_the_noise(name):
    draw = np.random.default_rng(1).laplace if name == "lingam" else np.random.default_rng(1).uniform
    problem = Problem(table(COLLIDER[:3, :3], n=800, draw=draw).environments()[0])
    np.testing.assert_array_equal(answer(name, problem).graph, COLLIDER[:3, :3])


@pytest.mark.parametrize("name", ["cdnod", "gmm-cdnod"])
def test_cdnod_tells_the_regimes_from_the_variables(name):
    outcome = answer(name, table(COLLIDER, "noise"))
    assert outcome.graph.shape == COLLIDER.shape
    assert outcome.graph.any()


def test_linc_takes_regimes_as_contexts():
    np.testing.assert_array_equal(answer("linc", table(COLLIDER[:3, :3])).graph, COLLIDER[:3, :3])


def test_cmm_finds_a_hidden_mixture_per_variable():
    """Needs R with flexmix beside its environment, so that it is skipped where these are not installed."""
    rng = np.random.default_rng(0)
    cause, switch = rng.normal(size=400), rng.random(400) < 0.5
    effect = np.where(switch, 2 * cause + 2, -cause) + 0.3 * rng.normal(size=400)
    problem = Problem(np.column_stack([cause, effect]))
    if not interpreter("orders").exists():
        pytest.skip("`make baselines` was not run")
    outcome = solve("cmm", problem, seconds=60)
    if outcome.status == "unavailable" or "rpy2" in outcome.message or "flexmix" in outcome.message:
        pytest.skip("R with flexmix is not installed")
    np.testing.assert_array_equal(outcome.graph, [[0, 1], [0, 0]])


@pytest.mark.parametrize(
    "name", ["cdnod-time", "hmm-ut-igsp", pytest.param("spacetime", marks=pytest.mark.slow)]
)
def test_a_method_for_rows_in_time_is_given_their_order(name):
    rng = np.random.default_rng(0)
    cause = rng.normal(size=400) + 6 * (np.arange(400) // 100 % 2)
    X = np.column_stack([cause, 1.5 * cause + rng.normal(size=400), rng.normal(size=400)])
    shuffled = rng.permutation(400)
    problem = Problem(X[shuffled], time=np.arange(400.0)[shuffled])
    graph = answer(name, problem, seconds=300).graph
    assert graph[0, 1] or graph[1, 0]
    assert not graph[2].any()


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
