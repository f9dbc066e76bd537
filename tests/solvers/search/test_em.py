"""E-step, M-step and their alternation: monotone, clamped where labelled, the same in blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from latentdo.graphs import is_dag
from latentdo.scm import simulate
from latentdo.solvers.search import em
from latentdo.solvers.search.local_scores import FREE, REFERENCE, TARGET
from latentdo.solvers.search.moments import Moments
from latentdo.solvers.search.parameters import choose_all_targets, fit_parameters, target_probabilities


def _blurred(regimes, n_components, seed=0, strength=0.5):
    rng = np.random.default_rng(seed)
    hard = np.eye(n_components)[regimes]
    return (1 - strength) * hard + strength * rng.dirichlet(np.ones(n_components), len(hard))


@pytest.fixture(scope="module")
def overlapping():
    """Regimes that EM has to work for."""
    return simulate(n_variables=4, edges_per_node=1, n_samples=1000, preset="dcdi", random_state=5)


def test_loglik_never_falls_with_fixed_structure(make_problem, overlapping):
    problem = make_problem(overlapping.X)
    adjacency = overlapping.adjacency.to_numpy().astype(np.int8)
    targets = overlapping.targets.to_numpy().astype(np.int8)
    responsibilities = _blurred(overlapping.regimes, 5, strength=0.9)
    logliks = []
    for _ in range(30):
        state = em.refine(problem, responsibilities, adjacency, iterations=1, targets=targets)
        responsibilities = state.responsibilities
        logliks.append(state.loglik)
    assert np.diff(logliks).min() > -1e-6 * abs(logliks[-1])
    assert logliks[-1] > logliks[0] + 10.0, "EM had something to gain here"


def test_refine_with_fixed_targets_is_the_same_as_single_steps(make_problem, overlapping):
    problem = make_problem(overlapping.X)
    adjacency = overlapping.adjacency.to_numpy().astype(np.int8)
    targets = overlapping.targets.to_numpy().astype(np.int8)
    start = _blurred(overlapping.regimes, 5)
    at_once = em.refine(problem, start, adjacency, iterations=8, tolerance=-np.inf, targets=targets)
    responsibilities = start
    for _ in range(8):
        state = em.refine(problem, responsibilities, adjacency, iterations=1, targets=targets)
        responsibilities = state.responsibilities
    assert state.loglik == pytest.approx(at_once.loglik, rel=1e-10)


def test_state_evidence_is_confirmed_by_recomputation(make_problem, overlapping, equations):
    """Log-likelihood by scipy from the model's own mechanisms; cost from the table in penalties.py."""
    problem = make_problem(overlapping.X, edge_prior=-0.7, target_prior=-1.5)
    state = em.relearn(problem, _blurred(overlapping.regimes, 5, strength=0.2))
    model, topology = state.model, state.model.topology
    d = 4
    density = np.zeros(problem.n_rows)
    for k in range(topology.n_regimes):
        slopes, constants, variances = equations(model, k)
        inverse = np.linalg.inv(np.eye(d) - slopes)
        density += topology.weights[k] * multivariate_normal(
            inverse @ constants, inverse @ np.diag(variances) @ inverse.T
        ).pdf(problem.z)
    assert state.loglik == pytest.approx(np.log(density).sum(), rel=1e-9)
    assert state.evidence == state.loglik - state.cost

    # The cost belongs to the assignment the parameters were fitted to: redo that M-step from a fresh assignment.
    moments = Moments.of(problem.design, state.responsibilities)
    cost = problem.penalties.cost(
        fit_parameters(problem, moments, state.adjacency, state.targets), problem.n_rows
    )
    counts = state.responsibilities.sum(axis=0)
    expected = 0.5 * (len(counts) - 1) * np.log(problem.n_rows) + 0.7 * state.adjacency.sum()
    for j in range(d):
        size = state.adjacency[:, j].sum() + 2
        expected += 0.5 * size * np.log(counts[state.targets[:, j] == 0].sum())
    for k, _ in np.argwhere(state.targets):
        expected += 0.5 * 2 * np.log(counts[k]) + 1.5
    assert cost == pytest.approx(expected, rel=1e-6)
    assert state.cost == pytest.approx(cost, abs=1.0)


def test_local_scores_and_evidence_are_one_currency(make_problem, one_hot, chain):
    """With hard labels, the sum of local scores is the complete-data log-likelihood less the costs of structure."""
    labels = chain.regimes
    problem = make_problem(chain.X, labels=labels, known=np.full((4, 3), FREE))
    adjacency = chain.adjacency.to_numpy().astype(np.int8)
    moments = Moments.of(problem.design, one_hot(labels))
    targets, scores = choose_all_targets(problem, moments, adjacency)
    state = em.weigh(problem, fit_parameters(problem, moments, adjacency, targets))
    counts = np.bincount(labels)
    weights = float(counts @ np.log(counts / counts.sum())) - 0.5 * 3 * np.log(len(labels))
    assert state.evidence == pytest.approx(scores.sum() + weights, rel=1e-9)


def test_responsibilities_sum_to_one_and_labelled_rows_are_clamped(make_problem, chain):
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(len(chain.regimes)) < 0.3, chain.regimes, -1)
    problem = make_problem(chain.X, labels=labels, known=np.full((4, 3), FREE))
    state = em.relearn(problem, problem.clamp(_blurred(chain.regimes, 4)))
    np.testing.assert_allclose(state.responsibilities.sum(axis=1), 1.0, atol=1e-12)
    assert state.responsibilities.min() >= 0.0
    known = labels >= 0
    np.testing.assert_array_equal(state.responsibilities[known], np.eye(state.n_regimes)[labels[known]])


def test_wrong_labels_are_believed(make_problem, chain):
    """A label is knowledge, even where the density would say otherwise."""
    labels = np.full(len(chain.regimes), -1)
    labels[:20] = (chain.regimes[:20] + 1) % 4
    problem = make_problem(chain.X, labels=labels, known=np.full((4, 3), FREE))
    state = em.refine(
        problem, problem.clamp(_blurred(chain.regimes, 4)), chain.adjacency.to_numpy().astype(np.int8)
    )
    np.testing.assert_array_equal(state.responsibilities[:20].argmax(axis=1), labels[:20])


def test_loglik_of_labelled_rows_is_taken_at_their_label(make_problem, one_hot, chain):
    problem = make_problem(chain.X)
    adjacency = chain.adjacency.to_numpy().astype(np.int8)
    moments = Moments.of(problem.design, one_hot(chain.regimes))
    model = fit_parameters(problem, moments, adjacency, chain.targets.to_numpy().astype(np.int8))
    joint = model.log_joint(problem.z)
    labels = np.where(np.arange(problem.n_rows) % 2 == 0, chain.regimes, -1)
    labelled = replace(problem, labels=labels, known=np.full((4, 3), FREE, dtype=np.int8))
    _, loglik = em.assign_rows(labelled, model)
    even = labels >= 0
    expected = joint[even, labels[even]].sum() + np.logaddexp.reduce(joint[~even], axis=1).sum()
    assert loglik == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("block", [1, 7, 100])
def test_blocks_change_nothing(make_problem, one_hot, chain, monkeypatch, block):
    rng = np.random.default_rng(1)
    labels = np.where(rng.random(len(chain.regimes)) < 0.1, chain.regimes, -1)
    problem = make_problem(chain.X, labels=labels, known=np.full((4, 3), FREE))
    moments = Moments.of(problem.design, one_hot(chain.regimes))
    model = fit_parameters(
        problem, moments, chain.adjacency.to_numpy().astype(np.int8), chain.targets.to_numpy().astype(np.int8)
    )
    whole, loglik = em.assign_rows(problem, model)
    monkeypatch.setattr(em, "BLOCK", block)
    parts, again = em.assign_rows(problem, model)
    np.testing.assert_allclose(parts, whole, atol=1e-14)
    assert again == pytest.approx(loglik, rel=1e-12)


@pytest.mark.parametrize("label", [-1, 0, 1])
def test_a_row_that_underflows_everywhere_stays_harmless(make_problem, one_hot, chain, label):
    problem = make_problem(chain.X)
    moments = Moments.of(problem.design, one_hot(chain.regimes))
    model = fit_parameters(
        problem, moments, chain.adjacency.to_numpy().astype(np.int8), chain.targets.to_numpy().astype(np.int8)
    )
    design = problem.design.copy()
    design[0, 1:] = 1e200
    labels = np.full(problem.n_rows, -1)
    labels[0] = label
    known = np.full((4, 3), FREE, dtype=np.int8)
    with np.errstate(over="ignore", invalid="ignore"):
        responsibilities, loglik = em.assign_rows(
            replace(problem, design=design, labels=labels, known=known), model
        )
    assert np.isfinite(responsibilities).all()
    assert np.isfinite(loglik)
    np.testing.assert_allclose(responsibilities.sum(axis=1), 1.0)
    if label >= 0:
        assert responsibilities[0, label] == 1.0


def test_small_regimes_are_dropped_but_labelled_ones_never(make_problem, chain):
    n = len(chain.X)
    responsibilities = np.zeros((n, 3))
    responsibilities[:, 0] = 1.0
    responsibilities[:5] = [0.0, 0.0, 1.0]
    responsibilities[5:8] = [0.0, 1.0, 0.0]
    free, _ = em.drop_small(make_problem(chain.X), responsibilities)
    assert free.shape == (n, 1)
    np.testing.assert_allclose(free.sum(axis=1), 1.0)
    labels = np.full(n, -1)
    labels[5] = 1
    problem = make_problem(chain.X, labels=labels, known=np.full((2, 3), FREE))
    kept, who = em.drop_small(problem, responsibilities)
    assert who.tolist() == [True, True, False]
    assert kept.shape == (n, 2)
    np.testing.assert_allclose(kept.sum(axis=1), 1.0)
    everything_small, _ = em.drop_small(make_problem(chain.X, min_rows=1e9), responsibilities)
    assert everything_small.shape == (n, 1)


def test_known_targets_stay(make_problem, one_hot, chain):
    """The user says regime 1 hit the wrong variable; the search must not know better."""
    known = np.full((4, 3), FREE, dtype=np.int8)
    known[0] = REFERENCE
    hit = int(np.flatnonzero(chain.targets.to_numpy()[1])[0])
    known[1] = REFERENCE
    known[1, (hit + 1) % 3] = TARGET
    problem = make_problem(chain.X, labels=chain.regimes, known=known)
    state = em.relearn(problem, one_hot(chain.regimes))
    np.testing.assert_array_equal(state.targets[0], 0)
    np.testing.assert_array_equal(state.targets[1], known[1])
    probabilities = target_probabilities(
        problem, Moments.of(problem.design, state.responsibilities), state.adjacency, state.targets
    )
    np.testing.assert_array_equal(probabilities[:2], known[:2])


@pytest.mark.parametrize("seed", range(3))
def test_known_regimes_give_graph_and_targets(make_problem, one_hot, seed):
    data = simulate(n_variables=6, edges_per_node=1, n_samples=2000, random_state=3000 + seed)
    problem = make_problem(data.X, labels=data.regimes, known=np.full((7, 6), FREE))
    state = em.relearn(problem, one_hot(data.regimes))
    assert is_dag(state.adjacency)
    np.testing.assert_array_equal(state.adjacency, data.adjacency)
    np.testing.assert_array_equal(state.targets, data.targets)


def test_target_probabilities_compare_having_and_not_having_each_target(make_problem, one_hot):
    """One variable, a shift of growing size: the log-odds are the difference of two penalised likelihoods."""
    rng = np.random.default_rng(3)
    for shift in (0.0, 0.25, 1.0):
        x = np.concatenate([rng.normal(size=200), shift + rng.normal(size=100)])[:, None]
        labels = np.repeat([0, 1], [200, 100])
        problem = make_problem(
            x, labels=labels, known=[[REFERENCE], [FREE]], target_prior=-2.0, edge_prior=0.0
        )
        moments = Moments.of(problem.design, one_hot(labels))
        empty = np.zeros((1, 1), dtype=np.int8)
        targets, _ = choose_all_targets(problem, moments, empty)
        found = target_probabilities(problem, moments, empty, targets)
        z = problem.z[:, 0]

        def loglik(values):
            return norm(values.mean(), values.std()).logpdf(values).sum()

        together = loglik(z) - np.log(300)
        apart = loglik(z[:200]) - np.log(200) + loglik(z[200:]) - np.log(100) - 2.0
        assert found[0, 0] == 0.0
        assert found[1, 0] == pytest.approx(1 / (1 + np.exp(together - apart)), rel=1e-6)
