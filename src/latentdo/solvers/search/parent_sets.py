"""Family tables: the scores of every parent set among each variable's candidates, and the best DAG in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from latentdo.graphs import topological_order
from latentdo.graphs.constraints import Constraints
from latentdo.solvers.search.exact import best_dag
from latentdo.solvers.search.orders import best_dag_by_order
from latentdo.solvers.settings import EXACT_LIMIT, PARTIAL_RIDGE, TINY


def _nobody() -> NDArray[np.int64]:
    return np.empty((0, 0), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ScoreTables:
    """Scores of parent sets, as bit masks over a few candidate parents of every variable.

    Parameters
    ----------
    candidates : ndarray [d, c] of int64
        Candidate parents of every variable, padded with -1.
    scores : ndarray [d, 2^c]
        ``scores[j, mask]``; minus infinity where not allowed.
    core : ndarray [d, m] of int64
        Further parents in every set, padded with -1: the most certain ones of variables with more parents than
        candidates.
    """

    candidates: NDArray[np.int64]
    scores: NDArray[np.float64]
    core: NDArray[np.int64] = field(default_factory=_nobody)

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return int(self.candidates.shape[0])

    @classmethod
    def build(
        cls,
        candidates: NDArray[np.int64],
        constraints: Constraints,
        score: Callable[[int, NDArray[np.int64], int], NDArray[np.float64]],
        core: NDArray[np.int64] | None = None,
    ) -> ScoreTables:
        """Fill the tables; ``score(variable, candidates, required mask)`` returns ``[2^c]``."""
        scores = np.full((len(candidates), 1 << candidates.shape[1]), -np.inf)
        for j in range(len(candidates)):
            own = candidates[j][candidates[j] >= 0]
            required = sum(1 << int(a) for a in np.flatnonzero(constraints.required[own, j]))
            scores[j, : 1 << own.size] = score(j, own, required)
        return cls(candidates, scores, _nobody() if core is None else core)

    def full(self) -> NDArray[np.float64]:
        """The same scores as masks over all variables, ``[d, 2^d]``; small problems only."""
        d = self.n_variables
        table = np.full((d, 1 << d), -np.inf)
        for j in range(d):
            own = self.candidates[j][self.candidates[j] >= 0]
            local = np.arange(1 << own.size)
            masks = np.full_like(local, sum(1 << int(i) for i in self.core_of(j)))
            for a, i in enumerate(own):
                masks |= (local >> a & 1) << int(i)
            table[j, masks] = self.scores[j, : 1 << own.size]
        return table

    def settled(self, adjacency: NDArray[np.int8]) -> ScoreTables:
        """The same tables, except that variables with too few rows to score any parent set keep their parents."""
        scores = self.scores.copy()
        for j in np.flatnonzero(~np.isfinite(scores).any(axis=1)):
            scores[j, self._mask(adjacency, int(j))] = 0.0
        return ScoreTables(self.candidates, scores, self.core)

    def best(self, start: NDArray[np.int8], seed: int = 0) -> tuple[NDArray[np.int8], float]:
        """Best DAG: exact where subsets can be enumerated, otherwise by order search from the order of ``start``."""
        if self.n_variables <= EXACT_LIMIT:
            return best_dag(self.full())
        order = np.array(topological_order(start), dtype=np.int64)
        return best_dag_by_order(self.scores, self.candidates, order, core=self.core, seed=seed)

    def score_of(self, adjacency: NDArray[np.int8]) -> float:
        """Score of one DAG; minus infinity unless its parents are the core and candidates."""
        total = 0.0
        for j in range(self.n_variables):
            core = self.core_of(j)
            mask = self._mask(adjacency, j)
            if not adjacency[core, j].all() or adjacency[:, j].sum() != mask.bit_count() + core.size:
                return -np.inf
            total += self.scores[j, mask]
        return float(total)

    def core_of(self, j: int) -> NDArray[np.int64]:
        """Parents that every set of ``j`` has."""
        if not self.core.size:
            return np.empty(0, dtype=np.int64)
        return np.asarray(self.core[j][self.core[j] >= 0])

    def _mask(self, adjacency: NDArray[np.int8], j: int) -> int:
        """Those parents of ``j`` that are candidates, as bits."""
        return sum(1 << a for a, i in enumerate(self.candidates[j]) if i >= 0 and adjacency[i, j])


def all_candidates(constraints: Constraints) -> NDArray[np.int64]:
    """Every allowed parent of every variable, ``[d, c]``, padded with -1."""
    return _listed(constraints.allowed, least=1)


def open_candidates(constraints: Constraints) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every parent that is allowed and not required, and as the core those required; ``[d, c]``, padded with -1."""
    return _listed(constraints.allowed & ~constraints.required, least=1), _listed(constraints.required)


def _listed(parents: NDArray[np.bool_], least: int = 0) -> NDArray[np.int64]:
    """The parents of every variable, ascending, padded with -1 to the ``least`` width at least."""
    width = max(int(parents.sum(axis=0).max()), least)
    found = np.full((len(parents), width), -1, dtype=np.int64)
    for j, own in enumerate(parents.T):
        found[j, : own.sum()] = np.flatnonzero(own)
    return found


def correlated_candidates(
    covariance: NDArray[np.float64], constraints: Constraints, limit: int
) -> NDArray[np.int64]:
    """The allowed parents with the largest partial correlation given all other variables, ``[d, c]``, padded with -1.

    A rough screen for the time before regimes are known. Required parents are always candidates.
    """
    d = len(covariance)
    limit = min(max(limit, int(constraints.required.sum(axis=0).max())), d - 1)
    ridge = covariance + PARTIAL_RIDGE * np.trace(covariance) / d * np.eye(d)
    precision = np.linalg.pinv(ridge, hermitian=True)
    scale = np.sqrt(np.maximum(np.diag(precision), TINY))
    partial = np.abs(precision) / np.outer(scale, scale)
    candidates = np.full((d, max(limit, 1)), -1, dtype=np.int64)
    for j in range(d):
        allowed = np.flatnonzero(constraints.allowed[:, j])
        rank = partial[allowed, j] + 2.0 * constraints.required[allowed, j]
        chosen = np.sort(allowed[np.argsort(-rank, kind="stable")][:limit])
        candidates[j, : chosen.size] = chosen
    return candidates
