r"""Rough scores of every parent set while nothing is known of the regimes.

In every variable all rows but the intervened minority share one mechanism. For a variable *j* and a parent set *P*,

.. math:: p(z_j \mid z_P) = (1 - w)\, N(z_j; \beta^\top \varphi(z_P), \sigma^2) + w\, N(z_j; \mu, \tau^2)

with random rectified features :math:`\varphi` is fitted by EM; its likelihood scores *P*. EM has local optima, but
which rows are the minority is nearly the same for neighbouring parent sets: good answers are handed along the lattice
of subsets: first upwards to larger sets, then downwards to smaller ones. Rows with a known label share one posterior,
which is all that labels change here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit
from latentdo.graphs import topological_order
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR
from latentdo.solvers.search.local_scores import LOG_2PI, REFERENCE, TARGET
from latentdo.solvers.search.parent_sets import ScoreTables
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.settings import (
    FAINT,
    FEATURES,
    FEWEST_CANDIDATES,
    FEWEST_MINORITY,
    HANDED_STEPS,
    LARGEST_LABEL,
    LARGEST_ODDS,
    MAX_PARENT_SETS,
    MINORITY_CERTAINTY,
    MINORITY_DOUBT,
    MINORITY_TAIL,
    MOVED,
    PARAMETERS_AN_EDGE,
    ROUGH_RIDGE,
    ROUGH_ROWS,
    ROUGH_STEPS,
    ROUGH_TOLERANCE,
    ROWS_PER_PARAMETER,
    SMALL_SET,
)

Array = NDArray[np.float64]


@njit
def two_mechanisms(  # type: ignore[no-untyped-def]
    phi, gram, moment, y, groups, pinned, second, iterations, tolerance, floor
):
    """EM for the mixture above; returns its log-likelihood, minus infinity if the first mechanism dies.

    A minority that dies stays dead: the first mechanism then has all rows.

    ``phi [n, q]`` holds the features, ``gram`` and ``moment`` their products with themselves and with ``y`` over all
    rows: a step then only has to subtract the minority. ``groups [n]`` is the label of a row or -1, and ``pinned``
    says for every label whether it must (1), must not (0) or may (-1) be the minority. ``second [n]`` is the posterior
    of the minority: start and result.
    """
    n, q = phi.shape
    n_groups = pinned.shape[0]
    before, loglik = -np.inf, -np.inf
    log_a, log_b = np.empty(n), np.empty(n)
    sum_a, sum_b = np.empty(n_groups), np.empty(n_groups)
    for step in range(iterations):
        share = second.sum()
        rest = n - share
        if rest < ROWS_PER_PARAMETER * q:
            return -np.inf
        alone = share < FEWEST_MINORITY
        if alone:
            second[:] = 0.0
            share, rest = 0.0, float(n)
        # Products over the smaller side alone: what it adds up to, or what is to be taken from the whole.
        few = second if share < rest else 1.0 - second
        rows = np.flatnonzero(few > FAINT)
        part, weight = phi[rows], few[rows]
        scaled = part * np.sqrt(weight).reshape(-1, 1)
        matrix = np.dot(scaled.T, scaled)
        vector = np.dot(part.T, weight * y[rows])
        if share < rest:
            matrix = gram - matrix
            vector = moment - vector
        for a in range(q):
            matrix[a, a] += ROUGH_RIDGE
        beta = np.linalg.solve(matrix, vector)
        residual = y - np.dot(phi, beta)
        mean_b, variance_b, constant_b = 0.0, 1.0, -np.inf
        if not alone:
            mean_b = (second * y).sum() / share
            variance_b = max((second * (y - mean_b) ** 2).sum() / share, floor)
            constant_b = np.log(share / n) - 0.5 * (LOG_2PI + np.log(variance_b))
        constant_a = np.log(rest / n) - 0.5 * LOG_2PI
        square = residual * residual
        first = 1.0 - second
        variance = max((first * square).sum() / rest, floor)
        log_a[:] = constant_a - 0.5 * (np.log(variance) + square / variance)
        log_b[:] = constant_b - 0.5 * (y - mean_b) ** 2 / variance_b
        sum_a[:] = 0.0
        sum_b[:] = 0.0
        for i in range(n):
            if groups[i] >= 0:
                sum_a[groups[i]] += log_a[i]
                sum_b[groups[i]] += log_b[i]
        loglik = 0.0
        for i in range(n):
            a, b = log_a[i], log_b[i]
            if alone:
                loglik += a
                continue
            if groups[i] < 0:
                loglik += max(a, b) + np.log1p(np.exp(-abs(a - b)))
                second[i] = 1.0 / (1.0 + np.exp(min(a - b, LARGEST_ODDS)))
                continue
            g = groups[i]
            hit = sum_b[g] > sum_a[g] if pinned[g] < 0 else pinned[g] == 1
            second[i] = 1.0 if hit else 0.0
            loglik += b if hit else a
        if loglik - before < tolerance and step > 1:
            break
        before = loglik
    return loglik


def random_features(x: Array, count: int, rng: np.random.Generator) -> Array:
    """A one, the inputs and ``count`` rectified projections with kinks at random rows, ``[n, 1 + p + count]``."""
    n, p = x.shape
    if p == 0:
        return np.ones((n, 1))
    directions = rng.standard_normal((p, count))
    inner = x @ (directions / np.linalg.norm(directions, axis=0))
    kinks = inner[rng.integers(0, n, count), np.arange(count)]
    signs = rng.choice([-1.0, 1.0], count)
    return np.column_stack([np.ones(n), x, np.maximum(signs * (inner - kinks), 0.0)])


@dataclass(frozen=True, eq=False)
class RoughGraph:
    """What the lattice says.

    Parameters
    ----------
    order : list of int
        Variables, causes first.
    candidates : ndarray [d, c] of int64
        Candidate parents that were scored, padded with -1.
    rows : ndarray of int64
        The rows it looked at.
    minority : ndarray [len(rows), d]
        Posterior of every variable's minority in these rows, under the best graph.
    tables : ScoreTables
        The scores.
    minorities : dict
        The same posteriors for every (variable, parents) that was scored.
    """

    order: list[int]
    candidates: NDArray[np.int64]
    rows: NDArray[np.int64]
    minority: Array
    tables: ScoreTables
    minorities: dict[tuple[int, tuple[int, ...]], Array | NDArray[np.float32]]


class _Lattice:
    """Scores and minorities of all parent sets, improved in place."""

    def __init__(self, problem: Problem, rows: NDArray[np.int64], seed: int) -> None:
        self.problem = problem
        self.z = np.ascontiguousarray(problem.z[rows])
        self.labels = problem.labels[rows]
        self.seed = seed
        self.loglik: dict[tuple[int, tuple[int, ...]], float] = {}
        self.minority: dict[tuple[int, tuple[int, ...]], Array | NDArray[np.float32]] = {}
        codes = problem.known
        self.pinned = np.where(codes == TARGET, 1, np.where(codes == REFERENCE, 0, -1)).astype(np.int64)
        self.guesses = [self._guesses(j) for j in range(problem.n_variables)]

    def features(self, parents: tuple[int, ...]) -> tuple[Array, Array]:
        """Features of a parent set, the same whenever it is asked for, and their Gram matrix."""
        rng = np.random.default_rng([self.seed, *parents])
        phi = random_features(self.z[:, parents], FEATURES, rng)
        return phi, phi.T @ phi

    def attempt(
        self,
        j: int,
        parents: tuple[int, ...],
        phi: Array,
        gram: Array,
        start: Array | NDArray[np.float32],
        iterations: int,
    ) -> None:
        """EM from one guess; kept if it is the best for this parent set so far."""
        y = self.z[:, j]
        second = np.array(start, dtype=np.float64)
        value = float(
            two_mechanisms(
                phi,
                gram,
                phi.T @ y,
                y,
                self.labels,
                self.pinned[:, j].copy(),
                second,
                iterations,
                ROUGH_TOLERANCE,
                VARIANCE_FLOOR,
            )
        )
        key = (j, parents)
        if key not in self.loglik or value > self.loglik[key]:
            self.loglik[key] = value
            self.minority[key] = second.astype(np.float32)

    def _guesses(self, j: int) -> list[Array]:
        """First guesses of who the minority is: both ends, the middle, the outside; each label, if there are any."""
        rank = np.argsort(np.argsort(self.z[:, j])) / max(len(self.z) - 1, 1)
        distance = np.abs(rank - 0.5)
        guesses = [
            MINORITY_DOUBT + MINORITY_CERTAINTY * mask.astype(np.float64)
            for mask in (
                rank < MINORITY_TAIL,
                rank > 1.0 - MINORITY_TAIL,
                distance < 0.5 * MINORITY_TAIL,
                distance > 0.5 - 0.5 * MINORITY_TAIL,
            )
        ]
        for g in range(self.problem.n_labelled):
            mask = self.labels == g
            if self.pinned[g, j] != 0 and FEWEST_MINORITY <= mask.sum() < LARGEST_LABEL * len(mask):
                guesses.append(MINORITY_DOUBT + MINORITY_CERTAINTY * mask)
        if self.problem.max_regimes == 1:
            return [np.zeros(len(self.z))]
        return [*guesses, np.zeros(len(self.z))] if self.problem.n_labelled else guesses

    def upwards(self, parent_sets: dict[tuple[int, ...], list[int]]) -> None:
        """Score all parent sets, smaller ones first."""
        for parents in sorted(parent_sets, key=len):
            phi, gram = self.features(parents)
            for j in parent_sets[parents]:
                if len(parents) <= SMALL_SET:
                    for guess in self.guesses[j]:
                        self.attempt(j, parents, phi, gram, guess, ROUGH_STEPS)
                if parents:
                    subsets = [tuple(i for i in parents if i != a) for a in parents]
                    best = max(subsets, key=lambda s: self.loglik[j, s])
                    self.attempt(j, parents, phi, gram, self.minority[j, best], HANDED_STEPS)

    def downwards(self, parent_sets: dict[tuple[int, ...], list[int]], candidates: NDArray[np.int64]) -> None:
        """Try the minority of the best superset in every parent set where it is another one."""
        for parents in sorted(parent_sets, key=len, reverse=True):
            trials = []
            for j in parent_sets[parents]:
                others = [int(i) for i in candidates[j] if i >= 0 and i not in parents]
                supersets = [tuple(sorted((*parents, i))) for i in others]
                known = [s for s in supersets if (j, s) in self.loglik]
                if known:
                    best = max(known, key=lambda s: self.loglik[j, s])
                    start = self.minority[j, best]
                    if np.abs(start - self.minority[j, parents]).mean() > MOVED:
                        trials.append((j, start))
            if trials:
                phi, gram = self.features(parents)
                for j, start in trials:
                    self.attempt(j, parents, phi, gram, start, HANDED_STEPS)


def rough_graph(problem: Problem, *, seed: int, lateness: Array | None = None) -> RoughGraph:
    """Score parent sets on some rows, and find the best graph in these scores.

    Where the graph leaves the order open, variables of less ``lateness [d]`` come first.
    """
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(problem.n_rows)[:ROUGH_ROWS])
    lattice = _Lattice(problem, rows, seed)
    candidates = _candidates(lattice)
    parent_sets = _parent_sets(candidates, problem)
    lattice.upwards(parent_sets)
    lattice.downwards(parent_sets, candidates)
    cost = 0.5 * PARAMETERS_AN_EDGE * np.log(rows.size)

    def score(j: int, own: NDArray[np.int64], required: int) -> Array:
        table = np.full(1 << own.size, -np.inf)
        for mask, parents in _subsets(own):
            if (mask & required) == required and (j, parents) in lattice.loglik:
                prior = problem.penalties.edge_prior[list(parents), j].sum()
                table[mask] = lattice.loglik[j, parents] - cost * len(parents) + prior
        return table

    tables = ScoreTables.build(candidates, problem.constraints, score)
    adjacency, _ = tables.best(problem.constraints.required.astype(np.int8), seed)
    minority = np.column_stack(
        [
            lattice.minority[j, tuple(np.flatnonzero(adjacency[:, j]).tolist())]
            for j in range(problem.n_variables)
        ]
    ).astype(np.float64)
    order = topological_order(adjacency) if lateness is None else _earliest_first(adjacency, lateness)
    return RoughGraph(order, candidates, rows, minority, tables, lattice.minority)


def bend(problem: Problem, *, seed: int) -> float:
    """Nats a row that a curve gains over a straight line, minorities set aside, in the clearest pair of variables."""
    rows = np.sort(np.random.default_rng(seed).permutation(problem.n_rows)[:ROUGH_ROWS])
    lattice = _Lattice(problem, rows, seed)
    largest = 0.0
    for i in range(problem.n_variables):
        phi, gram = lattice.features((i,))
        line = np.ascontiguousarray(phi[:, :2])
        for j in range(problem.n_variables):
            if i == j:
                continue
            values = []
            for view, products in ((line, line.T @ line), (phi, gram)):
                lattice.loglik.pop((j, (i,)), None)
                for guess in lattice.guesses[j]:
                    lattice.attempt(j, (i,), view, products, guess, ROUGH_STEPS)
                values.append(lattice.loglik[j, (i,)])
            largest = max(largest, (values[1] - values[0]) / rows.size)
    return largest


def _earliest_first(adjacency: NDArray[np.int8], lateness: Array) -> list[int]:
    """A topological order that always goes on with the earliest variable whose causes are all there."""
    order: list[int] = []
    waiting = list(np.argsort(lateness, kind="stable"))
    while waiting:
        ready = next(j for j in waiting if not adjacency[waiting, j].any())
        waiting.remove(ready)
        order.append(int(ready))
    return order


def _subsets(own: NDArray[np.int64]) -> Iterator[tuple[int, tuple[int, ...]]]:
    for mask in range(1 << own.size):
        yield mask, tuple(int(i) for a, i in enumerate(own) if mask >> a & 1)


def _parent_sets(candidates: NDArray[np.int64], problem: Problem) -> dict[tuple[int, ...], list[int]]:
    """Parent sets, each with the variables that may have it: they share its features."""
    parent_sets: dict[tuple[int, ...], list[int]] = {}
    for j in range(problem.n_variables):
        for _, parents in _subsets(candidates[j][candidates[j] >= 0]):
            if len(parents) <= problem.constraints.max_parents:
                parent_sets.setdefault(parents, []).append(j)
    return parent_sets


def _candidates(lattice: _Lattice) -> NDArray[np.int64]:
    """As many candidate parents as :data:`MAX_PARENT_SETS` allows: those that alone explain a variable best."""
    problem = lattice.problem
    d = problem.n_variables
    limit = min(max(int(np.log2(MAX_PARENT_SETS / d)), FEWEST_CANDIDATES), max(d - 1, 1))
    required = problem.constraints.required
    limit = max(limit, int(required.sum(axis=0).max()))
    allowed = problem.constraints.allowed
    if allowed.sum(axis=0).max() > limit:
        lattice.upwards({(): list(range(d))})
        lattice.upwards({(i,): np.flatnonzero(allowed[i]).tolist() for i in range(d)})
    candidates = np.full((d, limit), -1, dtype=np.int64)
    for j in range(d):
        own = np.flatnonzero(allowed[:, j])
        if own.size > limit:
            gain = np.array([lattice.loglik[j, (int(i),)] for i in own])
            own = own[np.argsort(-np.where(required[own, j], np.inf, gain), kind="stable")][:limit]
        candidates[j, : own.size] = np.sort(own)
    return candidates
