"""From moments to parameters: scores, targets and mechanisms of a given graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from latentdo.compilation import njit
from latentdo.model.fitted import FittedModel, Topology, own_mechanisms
from latentdo.model.mechanisms import LinearMechanism, Noise
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR
from latentdo.model.penalties import FEWEST_ROWS
from latentdo.model.regression import regression
from latentdo.solvers.search.local_scores import (
    FREE,
    RegimeData,
    gaussian_loglik,
    greedy_parents,
    local_index,
    parent_set_score,
    score_table,
)
from latentdo.solvers.search.moments import Moments
from latentdo.solvers.search.parent_sets import ScoreTables
from latentdo.solvers.settings import EMPTY, ROWS_PER_PARAMETER, SPARE

if TYPE_CHECKING:
    from latentdo.solvers.search.problem import Problem


def target_costs(problem: Problem, target_prior: float | None, n_regimes: int) -> NDArray[np.float64]:
    """Cost of a target in every regime, ``[n_regimes]``; ``target_prior`` replaces that of the problem."""
    prior = problem.penalties.target_prior if target_prior is None else target_prior
    return np.full(n_regimes, -prior)


def score_parent_sets(
    problem: Problem,
    moments: Moments,
    candidates: NDArray[np.int64],
    targets: NDArray[np.int8] | None = None,
    target_prior: float | None = None,
    core: NDArray[np.int64] | None = None,
) -> ScoreTables:
    """Tables of all parent sets among ``candidates``; the choice of targets starts from ``targets``."""
    counts = moments.counts
    fixed = problem.fixed(len(counts))
    cost = target_costs(problem, target_prior, len(counts))
    shares = np.ones_like(fixed, dtype=bool) if targets is None else targets == 0

    def score(j: int, own: NDArray[np.int64], required: int) -> NDArray[np.float64]:
        known = np.ascontiguousarray(fixed[:, j])
        data = RegimeData(moments.matrices, counts, known, cost, problem.imperfect)
        return np.asarray(
            score_table(
                data,
                j,
                own,
                required,
                problem.constraints.max_parents,
                problem.penalties.edge_prior,
                np.ascontiguousarray(shares[:, j]),
                np.empty(0, dtype=np.int64) if core is None else core[j][core[j] >= 0],
            )
        )

    return ScoreTables.build(candidates, problem.constraints, score, core)


def screen_parents(
    problem: Problem,
    moments: Moments,
    adjacency: NDArray[np.int8],
    targets: NDArray[np.int8] | None,
    limit: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Candidate parents of every variable by greedy forward selection on its local score, and its core.

    Both are padded with -1, ``[d, c]`` and ``[d, m]``. Correlations of the pooled rows would not suffice, because
    interventions hide parents there; the score takes regimes and targets into account. Selection continues below the
    best score, because what matters is which parents any good set could contain. Where a variable has so many parents
    that fewer than :data:`SPARE` places are left for others, the most important parents form the core, which all sets
    contain.
    """
    counts, d = moments.counts, problem.n_variables
    fixed, cost = problem.fixed(len(counts)), target_costs(problem, None, len(counts))
    limit = min(max(limit, int(problem.constraints.required.sum(axis=0).max())), d - 1)
    candidates = np.full((d, limit), -1, dtype=np.int64)
    cores: list[NDArray[np.int64]] = []
    for j in range(d):
        allowed = np.flatnonzero(problem.constraints.allowed[:, j])
        must = problem.constraints.required[:, j] | (adjacency[:, j] == 1)
        first = np.flatnonzero(must & problem.constraints.allowed[:, j])
        shares = np.ones(len(counts), dtype=bool) if targets is None else targets[:, j] == 0
        known = np.ascontiguousarray(fixed[:, j])
        data = RegimeData(moments.matrices, counts, known, cost, problem.imperfect, targets is None)
        surplus = max(first.size - max(limit - SPARE, 1), 0)
        if surplus:
            without = [
                parent_set_score(data, j, np.delete(first, a), shares.copy()) for a in range(first.size)
            ]
            core = first[np.argsort(without, kind="stable")[:surplus]]
        else:
            core = first[:0]
        chosen = greedy_parents(data, j, allowed, first, limit + core.size, shares)
        chosen = np.setdiff1d(chosen, core)
        candidates[j, : chosen.size] = chosen
        cores.append(core)
    widest = max(core.size for core in cores)
    return candidates, np.stack([np.pad(core, (0, widest - core.size), constant_values=-1) for core in cores])


def choose_all_targets(
    problem: Problem,
    moments: Moments,
    adjacency: NDArray[np.int8],
    variables: NDArray[np.int64] | None = None,
    target_prior: float | None = None,
) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    """Best targets of every variable (or of some) given the graph, and the local scores, ``[K, d]`` and ``[d]``."""
    counts = moments.counts
    fixed = problem.fixed(len(counts))
    cost = target_costs(problem, target_prior, len(counts))
    targets = np.zeros(fixed.shape, dtype=np.int8)
    scores = np.zeros(problem.n_variables)
    for j in range(problem.n_variables) if variables is None else variables:
        shares = np.ones(len(counts), dtype=bool)
        parents = np.flatnonzero(adjacency[:, j])
        known = np.ascontiguousarray(fixed[:, j])
        data = RegimeData(moments.matrices, counts, known, cost, problem.imperfect)
        scores[j] = problem.penalties.edge_prior[parents, j].sum()
        scores[j] += parent_set_score(data, j, parents, shares)
        targets[:, j] = ~shares
    return targets, scores


@njit
def _fit_mechanism(moments, regimes, parents, variable):  # type: ignore[no-untyped-def]
    """Regression of ``variable`` on ``parents`` in some regimes together: coefficients and residual sum of squares.

    Only the entries of the parent set are summed: whole matrices would cost the square of the number of variables.
    """
    index = local_index(variable, parents)
    size = index.shape[0]
    gram = np.zeros((size, size))
    for k in regimes:
        for a in range(size):
            for b in range(size):
                gram[a, b] += moments[k, index[a], index[b]]
    contrast = np.empty(size)
    residual = regression(gram, size, np.zeros((size, size)), contrast)
    return -contrast[: size - 1], residual


def fit_parameters(
    problem: Problem, moments: Moments, adjacency: NDArray[np.int8], targets: NDArray[np.int8]
) -> FittedModel:
    """Maximum-likelihood mechanisms of a graph with given targets."""
    d = problem.n_variables
    counts = moments.counts
    n = float(counts.sum())
    reference, own = [], []
    none = np.zeros(0, dtype=np.int64)
    for j in range(d):
        parents = np.flatnonzero(adjacency[:, j])
        shared = np.flatnonzero(targets[:, j] == 0)
        count = float(counts[shared].sum())
        coefficients, variance = np.zeros(parents.size + 1), 1.0
        if count > ROWS_PER_PARAMETER * (parents.size + 2):
            coefficients, residual = _fit_mechanism(moments.matrices, shared, parents, j)
            variance = max(residual / count, VARIANCE_FLOOR)
        reference.append(LinearMechanism(coefficients, Noise.gaussian(variance)))
    for k, j in np.argwhere(targets):
        count, alone = float(counts[k]), np.array([k])
        coefficients, residual = _fit_mechanism(moments.matrices, alone, none, j)
        half_log = 0.5 * np.log(max(count, FEWEST_ROWS))
        value = gaussian_loglik(residual, count, VARIANCE_FLOOR)
        parents = np.flatnonzero(adjacency[:, j])
        if problem.imperfect and parents.size and count > ROWS_PER_PARAMETER * (parents.size + 2):
            trial, trial_residual = _fit_mechanism(moments.matrices, alone, parents, j)
            trial_value = gaussian_loglik(trial_residual, count, VARIANCE_FLOOR)
            if trial_value - parents.size * half_log > value:
                coefficients, residual = trial, trial_residual
        variance = max(residual / max(count, EMPTY), VARIANCE_FLOOR)
        own.append(LinearMechanism(coefficients, Noise.gaussian(variance)))
    topology = Topology(adjacency, targets, counts / n)
    return FittedModel(topology, tuple(reference), own_mechanisms(targets, own))


def target_probabilities(
    problem: Problem, moments: Moments, adjacency: NDArray[np.int8], targets: NDArray[np.int8]
) -> NDArray[np.float64]:
    """Posterior probability of every target given the graph and the other targets, ``[K, d]``.

    Known targets have probability 0 or 1; in a regime without rows nothing is a target, as under the prior.
    """
    counts = moments.counts
    known = problem.fixed(len(counts))
    cost = target_costs(problem, None, len(counts))
    probabilities = targets.astype(np.float64)
    for j in range(problem.n_variables):
        parents = np.flatnonzero(adjacency[:, j])
        for k in np.flatnonzero((known[:, j] == FREE) & (counts > EMPTY)):
            scores = np.empty(2)
            for value in (0, 1):
                fixed = targets[:, j].copy()
                fixed[k] = value
                data = RegimeData(moments.matrices, counts, fixed, cost, problem.imperfect, exhaustive=False)
                scores[value] = parent_set_score(data, j, parents, fixed == 0)
            probabilities[k, j] = expit(scores[1] - scores[0]) if np.isfinite(scores).any() else targets[k, j]
    probabilities[0] = 0.0  # the reference, whichever rows belong to it
    return probabilities
