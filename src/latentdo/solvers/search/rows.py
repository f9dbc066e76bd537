r"""Learning from weighted rows: any family that can be fitted to them, with no moments to help.

For variable *j*, parents *P* and the set of regimes *S* that share the reference mechanism, the score is that of
:mod:`.local_scores`, with fits of the family instead of regressions from moments:

.. math:: s_j(P, S) = \sum_i w_i \log p(x_{ij} \mid x_{iP}) - c(P) + \sum_{k \notin S} (\ell_k - c_k),
    \qquad w_i = \sum_{k \in S} r_{ik}.

Regimes join or leave *S* by what they gain, from where the last fit left them; the reference is then fitted again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from latentdo.model.fitted import FittedModel, Topology
from latentdo.model.mechanisms.base import Mechanism
from latentdo.model.mechanisms.family import RowFamily
from latentdo.solvers.search.learner import Array, Graph
from latentdo.solvers.search.local_scores import FREE, REFERENCE, TARGET
from latentdo.solvers.search.parameters import screen_parents
from latentdo.solvers.search.parent_sets import ScoreTables, all_candidates

if TYPE_CHECKING:
    from latentdo.solvers.search.problem import Problem

MAX_CANDIDATES = 6
"""Candidate parents per variable: 2^6 parent sets, each of which costs a fit per regime."""

FEWEST_PER_PARAMETER = 2.0
"""Rows that a mechanism needs per parameter to be fitted at all."""

ROUNDS = 3
"""How often regimes may join or leave a reference mechanism, each time with a fit."""

NEGLIGIBLE = 1e-4
"""Rows of less weight are left out of a fit."""


@dataclass(frozen=True, eq=False)
class Local:
    """The best fit of one variable given its parents.

    Parameters
    ----------
    score : float
        Evidence of the variable, without the prior of its edges; minus infinity if too few rows share a mechanism.
    shares : ndarray [K] of bool
        Regimes that share the reference mechanism.
    reference : Mechanism
        That mechanism.
    own : mapping regime -> Mechanism
        What the other regimes have instead.
    """

    score: float
    shares: NDArray[np.bool_]
    reference: Mechanism
    own: Mapping[int, Mechanism]


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows as they are assigned, the model that fits begin at, and the fits made so far."""

    responsibilities: Array
    model: FittedModel | None = None
    fits: dict[tuple[int, tuple[int, ...]], Local] = field(default_factory=dict)

    @cached_property
    def counts(self) -> Array:
        """(Soft) number of rows in every regime."""
        return np.asarray(self.responsibilities.sum(axis=0))

    @cached_property
    def members(self) -> list[tuple[NDArray[np.int64], Array]]:
        """Rows of every regime, without those that hardly count, and how much they do."""
        rows = [np.flatnonzero(column > NEGLIGIBLE) for column in self.responsibilities.T]
        return [(mine, self.responsibilities[mine, k]) for k, mine in enumerate(rows)]


@dataclass(frozen=True, eq=False)
class RowLearner:
    """Fits of a family to weighted rows, see :class:`.learner.Learner`."""

    family: type[RowFamily]

    def statistics(
        self, problem: Problem, responsibilities: Array, model: FittedModel | None = None
    ) -> WeightedRows:
        """See :class:`.learner.Learner`."""
        assert problem.ranks.size == 1  # whoever calls gathers the rows of all ranks before
        return WeightedRows(responsibilities, model)

    def choose_targets(
        self,
        problem: Problem,
        statistics: WeightedRows,
        adjacency: Graph,
        variables: NDArray[np.int64] | None = None,
        target_prior: float | None = None,
    ) -> tuple[Graph, Array]:
        """See :class:`.learner.Learner`."""
        n_regimes = statistics.responsibilities.shape[1]
        targets = np.zeros((n_regimes, problem.n_variables), dtype=np.int8)
        scores = np.zeros(problem.n_variables)
        for j in range(problem.n_variables) if variables is None else variables:
            parents = np.flatnonzero(adjacency[:, j])
            local = self.local(problem, statistics, int(j), parents, target_prior=target_prior)
            scores[j] = local.score + problem.penalties.edge_prior[parents, j].sum()
            targets[:, j] = ~local.shares
        return targets, scores

    def fit(
        self, problem: Problem, statistics: WeightedRows, adjacency: Graph, targets: Graph
    ) -> FittedModel:
        """See :class:`.learner.Learner`."""
        counts = statistics.counts
        reference: list[Mechanism] = []
        own: dict[tuple[int, int], Mechanism] = {}
        for j in range(problem.n_variables):
            parents = np.flatnonzero(adjacency[:, j])
            local = statistics.fits.get((j, tuple(parents)))
            if local is None or not np.array_equal(~local.shares, targets[:, j] == 1):
                local = self.local(problem, statistics, j, parents, fixed=targets[:, j])
            reference.append(local.reference)
            own |= {(k, j): mechanism for k, mechanism in local.own.items()}
        topology = Topology(adjacency, targets, counts / counts.sum())
        return FittedModel(topology, tuple(reference), {key: own[key] for key in sorted(own)})

    def tables(
        self,
        problem: Problem,
        statistics: WeightedRows,
        adjacency: Graph,
        targets: Graph | None = None,
        target_prior: float | None = None,
    ) -> ScoreTables:
        """See :class:`.learner.Learner`; lines screen the candidates, which sees interventions but not all curves."""
        if problem.n_variables - 1 <= MAX_CANDIDATES:
            candidates, core = all_candidates(problem.constraints), None
        else:
            if targets is None and statistics.model is not None:
                targets = statistics.model.topology.targets
                if len(targets) != statistics.responsibilities.shape[1]:
                    targets = None
            moments = problem.moments(statistics.responsibilities)
            candidates, core = screen_parents(problem, moments, adjacency, targets, MAX_CANDIDATES)

        def score(j: int, own: NDArray[np.int64], required: int) -> Array:
            always = np.empty(0, dtype=np.int64) if core is None else core[j][core[j] >= 0]
            table = np.full(1 << own.size, -np.inf)
            for mask in range(1 << own.size):
                parents = np.sort(np.concatenate([always, own[(mask >> np.arange(own.size) & 1) == 1]]))
                if (mask & required) == required and parents.size <= problem.constraints.max_parents:
                    local = self.local(problem, statistics, j, parents, target_prior=target_prior)
                    table[mask] = local.score + problem.penalties.edge_prior[parents, j].sum()
            return table

        return ScoreTables.build(candidates, problem.constraints, score, core)

    def walk(
        self,
        problem: Problem,  # noqa: ARG002
        statistics: WeightedRows,  # noqa: ARG002
        adjacency: Graph,
        targets: Graph | None = None,  # noqa: ARG002
        target_prior: float | None = None,  # noqa: ARG002
    ) -> Graph:
        """See :class:`.learner.Learner`: the tables are all there is."""
        return adjacency

    def merge_changes(
        self, problem: Problem, statistics: WeightedRows, model: FittedModel, pairs: Sequence[tuple[int, int]]
    ) -> list[float]:
        """See :class:`.learner.Learner`: reference mechanisms stay, those of the merged regime are fitted."""
        resp, targets = statistics.responsibilities, model.topology.targets
        prior = problem.penalties.target_prior

        def gain(j: int, rows: NDArray[np.int64], weights: Array) -> float:
            x, y, density = inputs[j]
            found = self._intervened(problem, x[rows], y[rows], weights, model.reference[j], density[rows])
            return found[1] + prior

        inputs = {}
        for j in np.flatnonzero(targets.any(axis=0)).tolist():
            x, y = model.inputs(problem.z, j), np.ascontiguousarray(problem.z[:, j])
            inputs[j] = (x, y, model.reference[j].log_density(x, y))
        alone = {(int(k), int(j)): gain(int(j), *statistics.members[k]) for k, j in np.argwhere(targets)}
        changes = []
        for a, b in pairs:
            both = resp[:, a] + resp[:, b]
            rows = np.flatnonzero(both > NEGLIGIBLE)
            change = 0.0
            for j in np.flatnonzero(targets[a] | targets[b]).tolist():
                change += (
                    max(gain(j, rows, both[rows]), 0.0) - alone.get((a, j), 0.0) - alone.get((b, j), 0.0)
                )
            changes.append(change)
        return changes

    def target_probabilities(
        self, problem: Problem, statistics: WeightedRows, adjacency: Graph, targets: Graph
    ) -> Array:
        """See :class:`.learner.Learner`."""
        counts = statistics.counts
        known = problem.fixed(len(counts))
        probabilities = targets.astype(np.float64)
        for j in range(problem.n_variables):
            parents = np.flatnonzero(adjacency[:, j])
            for k in np.flatnonzero((known[:, j] == FREE) & (counts >= problem.min_rows)):
                scores = np.empty(2)
                for value in (0, 1):
                    fixed = targets[:, j].copy()
                    fixed[k] = value
                    scores[value] = self.local(problem, statistics, j, parents, fixed=fixed).score
                if np.isfinite(scores).any():
                    probabilities[k, j] = expit(scores[1] - scores[0])
        probabilities[0] = 0.0  # the reference, whoever was found to belong to it
        return probabilities

    def local(
        self,
        problem: Problem,
        statistics: WeightedRows,
        j: int,
        parents: NDArray[np.int64],
        *,
        fixed: NDArray[np.int8] | None = None,
        target_prior: float | None = None,
    ) -> Local:
        """The best fit of variable ``j`` given its parents; ``fixed`` says who shares its mechanism, if it is known."""
        key = (j, tuple(parents.tolist()))
        if fixed is None and target_prior is None and key in statistics.fits:
            return statistics.fits[key]
        prior = problem.penalties.target_prior if target_prior is None else target_prior
        n_regimes = statistics.responsibilities.shape[1]
        known = problem.fixed(n_regimes)[:, j] if fixed is None else fixed
        found = self._fit_local(problem, statistics, j, parents, known, prior)
        if fixed is None and target_prior is None:
            statistics.fits[key] = found
        return found

    def _fit_local(
        self,
        problem: Problem,
        statistics: WeightedRows,
        j: int,
        parents: NDArray[np.int64],
        known: NDArray[np.int8],
        target_prior: float,
    ) -> Local:
        resp, counts = statistics.responsibilities, statistics.counts
        x, y = np.ascontiguousarray(problem.z[:, parents]), np.ascontiguousarray(problem.z[:, j])
        shares = self._first_shares(statistics, j, known)
        start = None if statistics.model is None else statistics.model.reference[j]
        tried: dict[bytes, Local] = {}
        for _ in range(ROUNDS):
            if shares.tobytes() in tried:
                break
            weights = resp @ shares
            reference = self._fitted(x, y, weights, start)
            density = reference.log_density(x, y)
            shared = float(weights @ density)
            cost = 0.5 * reference.n_parameters * np.log(max(weights.sum(), 2.0))
            own: dict[int, Mechanism] = {}
            gains = np.full(len(counts), -np.inf)
            worth = self.family.may_differ(x, y, resp, reference) & (counts >= problem.min_rows) | ~shares
            for k in np.flatnonzero(np.where(known == FREE, worth, known == TARGET)).tolist():
                rows, mine = statistics.members[k]
                own[k], gains[k] = self._intervened(problem, x[rows], y[rows], mine, reference, density[rows])
            gains += target_prior
            leaves = np.where(known == TARGET, True, (known == FREE) & (gains > 0.0))
            enough = weights.sum() >= FEWEST_PER_PARAMETER * reference.n_parameters
            score = shared - cost if enough else -np.inf
            # As they share now: those that do not have their own mechanism.
            score += sum(float(resp[:, k] @ density) + gains[k] for k in own if not shares[k])
            tried[shares.tobytes()] = Local(
                score, shares, reference, {k: own[k] for k in own if not shares[k]}
            )
            shares, start = ~leaves, reference
            if not shares.any():
                break
        return max(tried.values(), key=lambda local: local.score)

    def _first_shares(self, statistics: WeightedRows, j: int, known: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Who shares the reference mechanism to begin with: as in the model at hand, or else everybody."""
        shares = known != TARGET
        model = statistics.model
        if model is not None:
            before = shares.copy()
            targets = (
                model.topology.targets[: len(known), j] == 1
            )  # regimes born since begin like the reference
            before[: targets.size] &= ~targets | (known[: targets.size] == REFERENCE)
            shares = before if before.any() else shares
        return np.asarray(shares)

    def _fitted(self, x: Array, y: Array, weights: Array, start: Mechanism | None) -> Mechanism:
        """Fit without the rows that hardly count."""
        rows = weights > NEGLIGIBLE
        if not rows.any():  # its score rules it out, but families need rows
            weights = np.ones(len(y))
        elif not rows.all():
            x, y, weights = x[rows], y[rows], weights[rows]
        found: Mechanism = self.family.fit(x, y, weights, start)
        return found

    def _intervened(
        self, problem: Problem, x: Array, y: Array, weights: Array, reference: Mechanism, density: Array
    ) -> tuple[Mechanism, float]:
        """A regime's own mechanism, and what it gains over the reference, its parameters paid."""
        own = self.family.intervene(x, y, weights, reference, imperfect=problem.imperfect)
        gain = float(weights @ (own.log_density(x, y) - density))
        return own, gain - 0.5 * own.n_parameters * float(np.log(max(weights.sum(), 2.0)))
