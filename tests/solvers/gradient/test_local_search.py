"""Closed-form scores against brute force, and the climb against enumeration of all DAGs."""

import itertools

import numpy as np
import pytest

from latentdo.graphs import all_dags, is_dag
from latentdo.scm import simulate
from latentdo.solvers.gradient.local_search import LinearScore, climb, search
from latentdo.solvers.gradient.polish import fit_linear, moments_of, polish


def problem(seed: int, intervention: str = "stochastic", d: int = 3):
    s = simulate(d, 1, intervention=intervention, n_samples=400, random_state=seed)
    z = s.X.to_numpy()
    q = np.eye(d + 1)[s.regimes]
    known = np.full((d + 1, d), np.nan)
    known[0] = 0.0
    return s, z, q, known


def score_of(model, z, q, adjacency, targets):
    """Penalised log-likelihood of a fitted model, row by row."""
    loglik = float((q * model.log_density(z)).sum())
    cost = 2 * len(adjacency) + adjacency.sum() + 2 * targets.sum()
    return loglik - 0.5 * np.log(len(z)) * cost


@pytest.mark.parametrize("seed", range(3))
def test_family_scores_are_the_best_over_all_targets(seed):
    _, z, q, known = problem(seed)
    score = LinearScore(moments_of(z, q), known, np.zeros((3, 3)), perfect=True)
    adjacency = np.array([[0, 1, 1], [0, 0, 0], [0, 0, 0]], dtype=np.int8)
    total = sum(score.family(j, tuple(np.flatnonzero(adjacency[:, j])))[0] for j in range(3))
    best = -np.inf
    for j_choices in itertools.product(itertools.product([0, 1], repeat=3), repeat=3):
        targets = np.zeros((4, 3), dtype=np.int8)
        targets[1:] = np.array(j_choices).T
        model = fit_linear(moments_of(z, q), adjacency, targets, perfect=True)
        best = max(best, score_of(model, z, q, adjacency, targets))
    assert total == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("perfect", [True, False])
def test_the_climb_ends_in_a_local_optimum_and_usually_in_the_best_dag(seed, perfect):
    s, z, q, known = problem(seed, "stochastic" if perfect else "imperfect")
    score = LinearScore(moments_of(z, q), known, np.zeros((3, 3)), perfect)
    everything = ~np.eye(3, dtype=bool)
    found, targets, _ = climb(score, np.zeros((3, 3), dtype=np.int8), everything, ~everything & False)
    assert is_dag(found)
    assert not targets[0].any()

    def total(adjacency):
        return sum(score.family(j, tuple(np.flatnonzero(adjacency[:, j])))[0] for j in range(3))

    best = max(total(a) for a in all_dags(3))
    assert total(found) <= best + 1e-9
    neighbours = [a for a in all_dags(3) if np.abs(a - found).sum() == 1]
    assert all(total(a) <= total(found) + 1e-6 for a in neighbours)
    assert total(found) >= total(s.adjacency.to_numpy()) - 20.0


def test_constraints_hold():
    _, z, q, known = problem(1)
    score = LinearScore(moments_of(z, q), known, np.zeros((3, 3)), perfect=True)
    allowed = ~np.eye(3, dtype=bool)
    allowed[0, 1] = False
    required = np.zeros((3, 3), dtype=bool)
    required[2, 0] = True
    found, _, _ = climb(score, required.astype(np.int8), allowed, required)
    assert found[0, 1] == 0
    assert found[2, 0] == 1


def test_polish_raises_the_score_and_keeps_known_targets():
    s, z, q, known = problem(2)
    known[1:] = s.targets.to_numpy()[1:]
    empty = np.zeros((3, 3), dtype=np.int8)
    start = fit_linear(moments_of(z, q), empty, s.targets.to_numpy().astype(np.int8), perfect=True)
    everything = ~np.eye(3, dtype=bool)
    model, moves = polish(
        start, z, s.regimes, known, np.zeros((3, 3)), everything, ~everything & False, perfect=True,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    np.testing.assert_array_equal(model.topology.targets, s.targets.to_numpy())
    before = score_of(start, z, q, empty, start.topology.targets)
    after = score_of(model, z, q, model.topology.adjacency, model.topology.targets)
    assert after >= before
    assert (moves > 0) == (after > before)


@pytest.mark.parametrize("seed", range(4))
def test_kicks_never_make_it_worse_and_find_the_best_small_dag(seed):
    _, z, q, known = problem(seed)
    score = LinearScore(moments_of(z, q), known, np.zeros((3, 3)), perfect=True)
    everything = ~np.eye(3, dtype=bool)
    empty = np.zeros((3, 3), dtype=np.int8)
    found, _ = search(score, empty, everything, ~everything & False, np.random.default_rng(0), 20)

    def total(adjacency):
        return sum(score.family(j, tuple(np.flatnonzero(adjacency[:, j])))[0] for j in range(3))

    assert total(found) == pytest.approx(max(total(a) for a in all_dags(3)))
