r"""Rough scores of every parent set while nothing is known of the regimes.

In every variable all rows but the intervened minority share one mechanism. For a variable *j* and a parent set *P*,

.. math:: p(z_j \mid z_P) = (1 - w)\, N(z_j; \beta^\top \varphi(z_P), \sigma^2) + w\, N(z_j; \mu, \tau^2)

with random rectified features :math:`\varphi` is fitted by EM (:mod:`latentdo.solvers.search.intervened_rows`); its
likelihood scores *P*. EM has local optima, but
which rows are the minority is nearly the same for neighbouring parent sets: good answers are handed along the lattice
of subsets: first upwards to larger sets, then downwards to smaller ones. Rows with a known label share one posterior,
which is all that labels change here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from latentdo.graphs import topological_order
from latentdo.solvers.search.intervened_rows import knowing, two_mechanisms
from latentdo.solvers.search.local_scores import REFERENCE
from latentdo.solvers.search.parent_sets import ScoreTables
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.settings import (
    FEATURES,
    FEWEST_CANDIDATES,
    FEWEST_MINORITY,
    HANDED_STEPS,
    LARGEST_LABEL,
    MAX_PARENT_SETS,
    MINORITY_CERTAINTY,
    MINORITY_DOUBT,
    MINORITY_TAIL,
    MOVED,
    PARAMETERS_AN_EDGE,
    PERHAPS_BENT,
    ROUGH_ROWS,
    ROUGH_STEPS,
    ROUGH_TOLERANCE,
    SMALL_SET,
)

Array = NDArray[np.float64]


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
    """

    order: list[int]
    candidates: NDArray[np.int64]
    rows: NDArray[np.int64]
    minority: Array
    tables: ScoreTables


class _Lattice:
    """Scores and minorities of all parent sets, improved in place."""

    def __init__(self, problem: Problem, rows: NDArray[np.int64], seed: int) -> None:
        self.problem = problem
        self.z = np.ascontiguousarray(problem.z[rows])
        self.labels = problem.labels[rows]
        self.units = problem.units.pooled.take(rows)
        self.seed = seed
        self.loglik: dict[tuple[int, tuple[int, ...]], float] = {}
        self.minority: dict[tuple[int, tuple[int, ...]], Array | NDArray[np.float32]] = {}
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
        rows = np.ascontiguousarray(np.column_stack([phi, self.z[:, j]]))
        n, q = phi.shape
        moments = rows.T @ rows[:, -1]
        products = np.empty((q + 1, q + 1))
        products[:q, :q], products[-1], products[:, -1] = gram, moments, moments
        codes = np.ascontiguousarray(self.problem.known[:, j])
        known = knowing(products=products, labels=self.labels, codes=codes, groups=self.units.numbers())
        second = np.array(start, dtype=np.float64)
        value = float(
            two_mechanisms(
                rows, q, 1, known, np.ones(n), second, iterations, ROUGH_TOLERANCE, FEWEST_MINORITY
            )
        )
        key = (j, parents)
        if key not in self.loglik or value > self.loglik[key]:
            self.loglik[key] = value
            self.minority[key] = second.astype(np.float32)

    def _guesses(self, j: int) -> list[Array]:
        """First guesses of who the minority is: both ends, the middle, the outside; each label, if there are any."""
        means = self.units.means(self.z[:, j])
        rank = np.argsort(np.argsort(means)) / max(len(means) - 1, 1)
        distance = np.abs(rank - 0.5)
        guesses: list[Array] = [
            self.units.spread(MINORITY_DOUBT + MINORITY_CERTAINTY * mask.astype(np.float64))
            for mask in (
                rank < MINORITY_TAIL,
                rank > 1.0 - MINORITY_TAIL,
                distance < 0.5 * MINORITY_TAIL,
                distance > 0.5 - 0.5 * MINORITY_TAIL,
            )
        ]
        for g in range(self.problem.n_labelled):
            mask = self.labels == g
            if self.problem.known[g, j] != REFERENCE and FEWEST_MINORITY <= mask.sum() < LARGEST_LABEL * len(
                mask
            ):
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
    rows = np.sort(problem.units.first(rng.permutation(problem.n_rows), ROUGH_ROWS))
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
    return RoughGraph(order, candidates, rows, minority, tables)


def bend(problem: Problem, *, seed: int) -> float:
    """Nats per row that a curve gains over a straight line, minorities set aside, in the clearest pair of variables.

    The minority beside the line is nearly that beside the curve; only where that promises something are all guesses
    tried.
    """
    rng = np.random.default_rng(seed)
    rows = np.sort(problem.units.first(rng.permutation(problem.n_rows), ROUGH_ROWS))
    lattice = _Lattice(problem, rows, seed)
    largest = 0.0
    for i in range(problem.n_variables):
        phi, gram = lattice.features((i,))
        line = np.ascontiguousarray(phi[:, :2])
        for j in range(problem.n_variables):
            if i == j:
                continue
            place = (j, (i,))
            lattice.loglik.pop(place, None)
            for guess in lattice.guesses[j]:
                lattice.attempt(*place, line, line.T @ line, guess, ROUGH_STEPS)
            straight = lattice.loglik.pop(place)
            lattice.attempt(*place, phi, gram, lattice.minority[place], HANDED_STEPS)
            if lattice.loglik[place] - straight > PERHAPS_BENT * rows.size:
                for guess in lattice.guesses[j]:
                    lattice.attempt(*place, phi, gram, guess, ROUGH_STEPS)
            largest = max(largest, (lattice.loglik[place] - straight) / rows.size)
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
