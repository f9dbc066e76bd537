r"""Learning from weighted rows: any family that can be fitted to them, with no moments to help.

For variable *j*, parents *P* and the set of regimes *S* that share the reference mechanism, the score is that of
:mod:`.local_scores`, with fits of the family instead of regressions from moments:

.. math:: s_j(P, S) = \sum_i w_i \log p(x_{ij} \mid x_{iP}) - c(P) + \sum_{k \notin S} (\ell_k - c_k),
    \qquad w_i = \sum_{k \in S} r_{ik}.

Regimes join or leave *S* by what they gain, from where the last fit left them; the reference is then fitted again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from latentdo.model.fitted import FittedModel, Topology
from latentdo.model.mechanisms.base import Mechanism
from latentdo.model.mechanisms.family import Families, FamilyOfVariable, Fits
from latentdo.solvers.search.edge_climb import climb_edges
from latentdo.solvers.search.fit_memory import FitMemory
from latentdo.solvers.search.glances import who_shares
from latentdo.solvers.search.learner import Array, FreeTargets, Graph
from latentdo.solvers.search.local_scores import FREE, REFERENCE, TARGET
from latentdo.solvers.search.parameters import screen_parents
from latentdo.solvers.search.parent_sets import ScoreTables, open_candidates
from latentdo.solvers.search.row_splits import split_by_exception, split_by_family
from latentdo.solvers.search.set_scores import SetScores, fit_what_matters, quick_screen
from latentdo.solvers.search.splits import Split, split_by_lines
from latentdo.solvers.search.weighted_rows import Local, WeightedRows, rows_that_count
from latentdo.solvers.settings import (
    FAMILY_CANDIDATES,
    FAMILY_FAINT,
    FAMILY_GAIN,
    FAMILY_ROUNDS,
    FAMILY_TABLES,
    ROWS_PER_PARAMETER,
)

if TYPE_CHECKING:
    from latentdo.solvers.search.problem import Problem
    from latentdo.solvers.search.state import State


@dataclass(frozen=True, eq=False)
class RowLearner(FreeTargets):
    """Fits of a family to weighted rows, see :class:`.learner.Learner`."""

    family: Families
    prepared: Any = None
    design: Array = field(default_factory=lambda: np.empty((0, 0)))
    memory: FitMemory = field(default_factory=FitMemory)
    trains: ClassVar[bool] = False
    """Whether a fit to the same rows goes on where the last one stopped."""

    @classmethod
    def of(cls, family: Families, z: Array) -> Self:
        """A learner that knows the variables of some rows."""
        prepared = family.prepare(z)
        return cls(family, prepared, np.column_stack([np.ones(len(z)), family.functions(prepared, z)]))

    def take(self, rows: NDArray[np.int64]) -> Self:
        """See :class:`.learner.Learner`; curves keep their knots."""
        return replace(
            self, design=self.design[rows] if self.design.size else self.design, memory=FitMemory()
        )

    def fits(self, variable: int, parents: NDArray[np.int64]) -> Fits:
        """Fits of a variable to rows with these parents."""
        return self.family.of(variable).given(self.prepared, parents)

    def statistics(
        self,
        problem: Problem,
        responsibilities: Array,
        model: FittedModel | None = None,
        *,
        settled: bool = False,
    ) -> WeightedRows:
        """See :class:`.learner.Learner`."""
        assert problem.ranks.size == 1  # whoever calls gathers the rows of all ranks before
        design = self.design if self.design.size else problem.design
        counted = problem.counted(responsibilities)
        return WeightedRows(counted, model, settled, design, glances=self.memory.glances(counted))

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
        """See :class:`.learner.Learner`: sets of a few candidate parents, fitted where they may matter."""
        scores = [SetScores(self, problem, statistics, j, target_prior) for j in range(problem.n_variables)]
        if problem.constraints.n_open <= FAMILY_CANDIDATES:
            candidates, core = open_candidates(problem.constraints)
        else:
            candidates, core = self._screen(problem, statistics, adjacency, targets, scores)

        sets: list[dict[int, NDArray[np.int64]]] = []

        def score(j: int, own: NDArray[np.int64], required: int) -> Array:
            always = core[j][core[j] >= 0]
            table, named = np.full(1 << own.size, -np.inf), {}
            scores[j].fit(np.flatnonzero(adjacency[:, j]))
            for mask in range(1 << own.size):
                parents = np.sort(np.concatenate([always, own[(mask >> np.arange(own.size) & 1) == 1]]))
                if (mask & required) == required and parents.size <= problem.constraints.max_parents:
                    named[mask], table[mask] = parents, scores[j].rough(parents)
            sets.append(named)
            return table

        tables = ScoreTables.build(candidates, problem.constraints, score, core)
        fit_what_matters(tables, sets, scores, adjacency)
        return tables

    def _screen(
        self,
        problem: Problem,
        statistics: WeightedRows,
        adjacency: Graph,
        targets: Graph | None,
        scores: Sequence[SetScores],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Candidate parents of every variable, and those it has in any case, see :func:`.screen_parents`.

        By the scores that one fit says of all sets; where a family says nothing, as lines would have it.
        """
        if targets is None and statistics.model is not None:
            targets = statistics.model.topology.targets
            if len(targets) != statistics.responsibilities.shape[1]:
                targets = None
        graphs = [np.flatnonzero(column) for column in adjacency.T]
        for one, parents in zip(scores, graphs, strict=True):
            one.fit(parents)
        if any(one.glance(parents) is None for one, parents in zip(scores, graphs, strict=True)):
            moments = statistics.line_moments(problem.n_variables)
            return screen_parents(problem, moments, adjacency, targets, FAMILY_CANDIDATES)
        return quick_screen(problem, adjacency, [one.rough for one in scores], FAMILY_CANDIDATES)

    def best_graph(
        self,
        problem: Problem,
        statistics: WeightedRows,
        adjacency: Graph,
        target_prior: float | None = None,
        *,
        thorough: bool = False,
    ) -> Graph:
        """See :class:`.learner.Learner`: uphill edge by edge; if ``thorough``, then the best graph of the tables."""
        scores = [SetScores(self, problem, statistics, j, target_prior) for j in range(problem.n_variables)]
        found = climb_edges(adjacency, problem.constraints, scores, FAMILY_GAIN)
        for _ in range(FAMILY_TABLES if self._is_mixed(problem) else 1) if thorough else ():
            best, value = self.tables(problem, statistics, found, target_prior=target_prior).best(found)
            if not np.isfinite(value) or np.array_equal(best, found):
                break
            found = best  # whose neighbours are fitted next, where tables are rough
        return found

    def _is_mixed(self, problem: Problem) -> bool:
        return any(self.family.of(j).is_discrete for j in range(problem.n_variables))

    def split(
        self, problem: Problem, state: State, regime: int, variable: int, rows: NDArray[np.int64]
    ) -> Split | None:
        """See :class:`.learner.Learner`: a line will do, since the family looks at all followers.

        Lines say nothing of discrete variables; a regime that follows the reference there is looked at with the others.
        """
        if not self.family.of(variable).is_discrete:
            return split_by_lines(problem, state, regime, variable, rows)
        if not state.targets[regime, variable]:
            return None
        return split_by_family(problem, state, variable, rows, self, regime)

    def split_followers(
        self, problem: Problem, state: State, variable: int, rows: NDArray[np.int64]
    ) -> Split | None:
        """See :class:`.learner.Learner`."""

        def split() -> Split | None:
            found = split_by_family(problem, state, variable, rows, self)
            return None if found is None else found.among(problem.n_rows, rows)

        place = (variable, tuple(np.flatnonzero(state.adjacency[:, variable]).tolist()))
        found = self.memory.split(split, place, state.following(variable))
        return None if found is None else found._replace(share=found.share[rows])

    def split_exception(
        self, problem: Problem, state: State, variable: int, regime: int
    ) -> tuple[Split, NDArray[np.int64], tuple[int, ...]] | None:
        """See :class:`.learner.Learner`."""
        return split_by_exception(problem, state, variable, regime, self)

    def merge_changes(
        self, problem: Problem, statistics: WeightedRows, model: FittedModel, pairs: Sequence[tuple[int, int]]
    ) -> list[tuple[float, Graph]]:
        """See :class:`.learner.Learner`: reference mechanisms stay, those of the merged regime are fitted."""
        resp, targets = statistics.responsibilities, model.topology.targets
        prior = problem.penalties.target_prior

        def gain(j: int, rows: NDArray[np.int64], weights: Array, families: Families) -> float:
            (x, y, density), own = inputs[j], families.of(j)
            found = _intervened(problem, x[rows], y[rows], weights, model.reference[j], density[rows], own)
            return found[1] + prior

        inputs = {}
        for j in np.flatnonzero(targets.any(axis=0)).tolist():
            x, y = model.inputs(problem.z, j), np.ascontiguousarray(problem.z[:, j])
            inputs[j] = (x, y, model.reference[j].log_density(x, y))
        alone: dict[tuple[int, int], float] = {}
        for k, j in np.argwhere(targets).tolist():
            mine, weights = statistics.members[k]
            alone[k, j] = gain(j, mine, weights, self.family)
        changes = []
        for a, b in pairs:
            both = resp[:, a] + resp[:, b]
            rows = np.flatnonzero(both > FAMILY_FAINT)
            family = self.joining(alike=np.array_equal(targets[a], targets[b]))
            change, merged = 0.0, np.zeros(problem.n_variables, dtype=np.int8)
            for j in np.flatnonzero(targets[a] | targets[b]).tolist():
                together = gain(j, rows, both[rows], family)
                merged[j] = together > 0.0
                change += max(together, 0.0) - alone.get((a, j), 0.0) - alone.get((b, j), 0.0)
            changes.append((change, merged))
        return changes

    def joining(self, *, alike: bool) -> Families:  # noqa: ARG002
        """What two regimes may have in common where they are targeted, ``alike`` or in different variables."""
        return self.family

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
        x, y = problem.inputs(parents), np.ascontiguousarray(problem.z[:, j])
        start = None if statistics.model is None else self.beginning(statistics.model, j, parents)
        fits, place = self.fits(j, parents), (j, tuple(parents.tolist()))
        settled = statistics.settled and start is not None
        fit: Callable[..., Any] = fits.refit if settled else fits.fit
        tried: dict[bytes, Local] = {}
        for shares in self.first_shares(problem, statistics, j, parents, known):
            for _ in range(FAMILY_ROUNDS):
                if shares.tobytes() in tried:
                    break
                weights = statistics.responsibilities @ shares
                # A mechanism that nobody shares is not known; any will do, and has no say.
                nobody = float(weights.sum()) < problem.min_rows
                rows = (x, y, np.ones(len(y))) if nobody else rows_that_count(x, y, weights)
                make = partial(fit, *rows, start)
                reference = (
                    make() if self.trains else self.memory.fit(make, start, place, weights, settled=settled)
                )
                found, better = self.score_shares(
                    problem, statistics, j, (x, y), known, target_prior, shares, reference
                )
                tried[shares.tobytes()] = found
                if not better.any():
                    break
                shares = better  # noqa: PLW2901
        return max(tried.values(), key=lambda local: local.score)

    def beginning(self, model: FittedModel, j: int, parents: NDArray[np.int64]) -> Mechanism | None:  # noqa: ARG002
        """Where the fit of ``j`` with some parents begins, maybe at a mechanism of other parents."""
        return model.reference[j]

    def score_shares(
        self,
        problem: Problem,
        statistics: WeightedRows,
        j: int,
        rows: tuple[Array, Array],
        known: NDArray[np.int8],
        target_prior: float,
        shares: NDArray[np.bool_],
        reference: Mechanism,
    ) -> tuple[Local, NDArray[np.bool_]]:
        """The fit with given regimes sharing a reference mechanism, and who had better share it."""
        (x, y), resp, counts = rows, statistics.responsibilities, statistics.counts
        family = self.family.of(j)
        weights = resp @ shares
        count = float(weights.sum())
        density = reference.log_density(x, y)
        own: dict[int, Mechanism] = {}
        gains = np.full(len(counts), -np.inf)
        intervened = known == TARGET
        if (known == FREE).any():
            worth = family.may_differ(x, y, resp, reference) | ~shares
            intervened |= (known == FREE) & worth & (counts >= problem.min_rows)
        for k in np.flatnonzero(intervened).tolist():
            mine, weight = statistics.members[k]
            if mine.size <= 1:
                own[k], gains[k] = reference, 0.0
                continue
            before = statistics.before(k, j)
            if before is not None and not self.memory.has_same_rows(before, resp[:, k]):
                before = None
            own[k], gains[k] = _intervened(
                problem, x[mine], y[mine], weight, reference, density[mine], family, before
            )
            self.memory.note(own[k], resp[:, k])
        gains += target_prior
        leaves = np.where(known == TARGET, True, (known == FREE) & (gains > 0.0))
        own = {k: mechanism for k, mechanism in own.items() if not shares[k]}
        score = float(weights @ density) - 0.5 * reference.n_parameters * float(np.log(max(count, 2.0)))
        if count < ROWS_PER_PARAMETER * reference.n_parameters:
            score = -np.inf
        score += sum(float(resp[:, k] @ density) + gains[k] for k in own)
        return Local(score, shares, reference, own), ~leaves

    def first_shares(
        self,
        problem: Problem,
        statistics: WeightedRows,
        j: int,
        parents: NDArray[np.int64],
        known: NDArray[np.int8],
    ) -> list[NDArray[np.bool_]]:
        """Who shares the reference mechanism to begin with: as moments would have it, and as the model has it."""
        if (known != FREE).all():
            return [known != TARGET]
        starts, model = [], statistics.model
        if model is None or not statistics.settled:
            starts.append(who_shares(self, problem, statistics, j, parents, known))
        if model is not None:
            shares = known != TARGET
            # Regimes born since begin like the reference.
            targets = model.topology.targets[: len(known), j] == 1
            shares[: targets.size] &= ~targets | (known[: targets.size] == REFERENCE)
            starts.append(shares)
            if not statistics.settled and 2 * np.count_nonzero(~shares) > shares.size:
                # The few may have been taken for the rule, and the rule for as many exceptions.
                starts.append(np.where(known == FREE, ~shares, shares))
        return [np.ascontiguousarray(shares) for shares in starts if shares.any()] or [known != TARGET]


def _intervened(
    problem: Problem,
    x: Array,
    y: Array,
    weights: Array,
    reference: Mechanism,
    density: Array,
    family: FamilyOfVariable,
    before: Mechanism | None = None,
) -> tuple[Mechanism, float]:
    """A regime's own mechanism, and what it gains over the reference, its parameters paid.

    It follows the one that the regime had ``before``, if that was chosen for nearly the same rows.
    """
    if before is None:
        own = family.intervene(x, y, weights, reference, imperfect=problem.imperfect)
    else:
        own = family.follow(x, y, weights, reference, before, imperfect=problem.imperfect)
    gain = float(weights @ (own.log_density(x, y) - density))
    return own, gain - 0.5 * own.n_parameters * float(np.log(max(weights.sum(), 2.0)))
