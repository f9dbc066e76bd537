"""How networks are learnt from rows that are assigned to regimes: as any family, but with more doubt.

A network that does not fit well makes rows look like a hidden regime, and regimes as if they hit its variable. So
targets and regimes have to beat more flexible noise, and what they need in coincidences counts, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from latentdo.graphs import reachability
from latentdo.model.assignment import LIKELY
from latentdo.model.fitted import FittedModel, Topology
from latentdo.model.mechanisms import AdditiveNoise, Mechanism, NetworkMechanism, Noise
from latentdo.model.penalties import FEWEST_ROWS
from latentdo.solvers.nonlinear.family import MixedNetworks, Networks
from latentdo.solvers.nonlinear.marginal_shifts import Changes, conflicts
from latentdo.solvers.nonlinear.mechanism import fit_noise
from latentdo.solvers.nonlinear.misfits import is_common, is_misfit
from latentdo.solvers.search.em import refine, weigh
from latentdo.solvers.search.learner import Array, FreeTargets, Graph
from latentdo.solvers.search.local_scores import FREE, TARGET
from latentdo.solvers.search.parent_sets import ScoreTables
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.regime_moves import Birth
from latentdo.solvers.search.rows import RowLearner
from latentdo.solvers.search.splits import Split, split_by_lines
from latentdo.solvers.search.state import State
from latentdo.solvers.search.weighted_rows import WeightedRows
from latentdo.solvers.settings import (
    BIRTH_PER_ROW,
    BIRTH_WORTH,
    EM_STEPS,
    EMPTY,
    ENOUGH,
    FAMILY_FAINT,
    IMPOSSIBLE,
    MAX_TRIES,
    MIXED_NOISE,
    NETWORK_EM_TOLERANCE,
    SEARCH_NOISE,
    TARGET_GAIN,
    TRIAL_STEPS,
)


@dataclass(frozen=True, eq=False)
class NetworkLearner(RowLearner):
    """Fits of networks to weighted rows, see :class:`.learner.Learner`.

    Parameters
    ----------
    family : subclass of Networks
        What is fitted.
    flexible : bool
        Whether noise need not be Gaussian, in the end.
    odds : ndarray [d, d]
        Log-odds of every edge, once they are known; minus infinity for those that nobody thought of.
    """

    family: type[Networks]
    flexible: bool = False
    odds: Array = field(default_factory=lambda: np.empty((0, 0)))
    tolerance: ClassVar[float] = NETWORK_EM_TOLERANCE
    holds_targets: ClassVar[bool] = True
    trains: ClassVar[bool] = True

    def beginning(self, model: FittedModel, j: int, parents: NDArray[np.int64]) -> Mechanism | None:
        """See :class:`RowLearner`: other parents are a fresh start."""
        return model.reference[j] if np.array_equal(model.parents[j], parents) else None

    def joining(self, *, alike: bool) -> type[Networks]:
        """See :class:`RowLearner`: a mixture could stand for what two regimes do to different variables."""
        return self.family if alike else Networks

    def first_shares(
        self,
        problem: Problem,
        statistics: WeightedRows,
        j: int,
        parents: NDArray[np.int64],
        known: NDArray[np.int8],
    ) -> list[NDArray[np.bool_]]:
        """See :class:`RowLearner`: as the model at hand has it; lines would give most regimes one of their own."""
        return super().first_shares(problem, statistics, j, parents, known)[-1:]

    def tables(
        self,
        problem: Problem,
        statistics: WeightedRows,  # noqa: ARG002
        adjacency: Graph,  # noqa: ARG002
        targets: Graph | None = None,  # noqa: ARG002
        target_prior: float | None = None,  # noqa: ARG002
    ) -> ScoreTables:
        """See :class:`.learner.Learner`: from the odds of single edges; there are too many sets to fit them all."""
        seen = self.odds > -np.inf
        candidates = np.full((len(seen), max(int(seen.sum(axis=0).max()), 1)), -1, dtype=np.int64)
        for j, column in enumerate(seen.T):
            candidates[j, : column.sum()] = np.flatnonzero(column)

        def score(j: int, own: NDArray[np.int64], required: int) -> Array:
            masks = np.arange(1 << own.size)
            total = (masks[:, None] >> np.arange(own.size) & 1) @ self.odds[own, j]
            return np.asarray(np.where(masks & required == required, total, -np.inf))

        return ScoreTables.build(candidates, problem.constraints, score)

    # ------------------------------------------------------------------------------------------------- targets

    def target_gains(self, problem: Problem, state: State) -> Array:
        """What every (regime, variable) would gain by a mechanism of its own, less its cost, ``[K, d]``.

        It has to beat the reference mechanism with flexible noise.
        """
        resp = state.responsibilities
        gains = np.full(state.targets.shape, -np.inf)
        counts = resp.sum(axis=0)
        for j, (noise, misfit) in enumerate(flexible_noise(problem, state)):
            reference = noise.log_density(state.residual(problem.z, j))
            # Where the network does not fit, a function of the parents may just mend it; a constant cannot.
            imperfect = problem.imperfect and misfit <= 0.0
            for k in np.flatnonzero(counts >= problem.min_rows).tolist():
                rows = np.flatnonzero(resp[:, k] > FAMILY_FAINT)
                x, y, weights = state.model.inputs(problem.z[rows], j), problem.z[rows, j], resp[rows, k]
                own = state.model.own.get((k, j)) or self.family.intervene(
                    x, y, weights, state.mechanism(j), imperfect=imperfect
                )
                gains[k, j] = float(weights @ (own.log_density(x, y) - reference[rows]))
                gains[k, j] -= 0.5 * own.n_parameters * np.log(max(counts[k], FEWEST_ROWS))
        return gains + problem.penalties.target_prior

    def retarget(self, problem: Problem, state: State) -> State:
        """See :class:`.learner.Learner`: targets that do not pay are dropped, those that would are added."""
        fixed = Changes.between(problem.z, state.responsibilities).known(problem)
        gains = self.target_gains(problem, state)
        wanted = np.where(fixed == FREE, gains > 0.0, fixed == TARGET).astype(np.int8)
        # The reference mechanism is what most rows share. If most want their own, it is the network that is bad.
        weights = state.responsibilities.sum(axis=0) / problem.n_rows
        crowded = (weights @ wanted > LIKELY) & (weights @ wanted > weights @ state.targets)
        wanted[:, crowded] = state.targets[:, crowded]
        if self.flexible:
            # An intervention takes its effects to where noise that passes through the networks may be of another
            # width. That is no second intervention, however much one would gain.
            effects = state.targets.astype(np.int64) @ reachability(state.adjacency).astype(np.int64) > 0
            wanted[effects & (state.targets == 0) & (fixed == FREE)] = 0
        changed = wanted != state.targets
        trials = [wanted]
        # If all at once is too much: the most promising ones alone.
        promise = np.where(changed, np.abs(np.nan_to_num(gains, neginf=-IMPOSSIBLE)), -1.0)
        for place in np.argsort(-promise, axis=None)[: min(MAX_TRIES, int(changed.sum()))]:
            one = state.targets.copy()
            one.flat[place] = wanted.flat[place]
            if not one[:, place % problem.n_variables].all():
                trials.append(one)
        for targets in trials if changed.any() else []:
            trial = fit_from(
                problem, state.responsibilities, state.adjacency, targets, state.mechanisms, TRIAL_STEPS
            )
            if trial.evidence > state.evidence + TARGET_GAIN:
                return trial
        return state

    def target_probabilities(
        self, problem: Problem, statistics: WeightedRows, adjacency: Graph, targets: Graph
    ) -> Array:
        """See :class:`.learner.Learner`."""
        fitted = self.fit(problem, statistics, adjacency, targets)
        state = weigh(problem, problem.weighted(fitted, statistics.responsibilities))
        probabilities = np.asarray(expit(self.target_gains(problem, state)))
        # Targets that the search refused although they would gain (their network is at fault) are open, not certain.
        probabilities = np.where(targets == 1, probabilities, np.minimum(probabilities, LIKELY))
        # What did not move is no target, whatever a misfit of its network would gain.
        known = Changes.between(problem.z, state.responsibilities).known(problem) != FREE
        probabilities = np.where(known, targets, probabilities)
        probabilities[0] = 0.0  # the reference, whoever was found to belong to it
        return probabilities

    # ------------------------------------------------------------------------------------------------- births

    split_followers = FreeTargets.split_followers
    split_exception = FreeTargets.split_exception

    def split(
        self, problem: Problem, state: State, regime: int, variable: int, rows: NDArray[np.int64]
    ) -> Split | None:
        """See :class:`.learner.Learner`: those who leave have a constant, which cannot mend a network."""
        hit = state.targets[regime] == 1
        if self.flexible and not hit[variable] and reachability(state.adjacency)[hit, variable].any():
            return None  # an effect of a target, see retarget
        usual = self._usual_noise(problem, state, regime, variable)
        mechanism = NetworkMechanism(state.mechanism(variable).parameters, usual)
        reference = list(state.model.reference)
        reference[variable] = mechanism
        doubted = replace(state, model=replace(state.model, reference=tuple(reference)))
        found = split_by_lines(replace(problem, imperfect=False), doubted, regime, variable, rows)
        if found is None or found.gain < BIRTH_WORTH * np.log(problem.n_rows):
            return None
        doubtful = is_misfit(problem, state, variable, rows, found.share > LIKELY, flexible=self.flexible)
        return None if doubtful or is_common(problem, state, regime, variable, rows, found.share) else found

    def _usual_noise(self, problem: Problem, state: State, k: int, j: int) -> Noise:
        """Noise that a split must beat: where it is flexible, that of other regimes, if they show it well enough.

        Hidden rows of ``k`` have shaped the mechanism's noise as well and would not stand out against it.
        """
        noise = flexible_noise(problem, state)[j][0]
        sharing = 1.0 - state.targets[:, j]
        sharing[k] = 0.0
        weights = state.responsibilities @ sharing
        if not self.flexible or state.targets[k, j] or weights.sum() < ENOUGH:
            return noise
        return fit_noise(state.residual(problem.z, j), weights, noise.weights.size, noise)

    def pays(self, problem: Problem, before: State, after: State, births: Sequence[Birth]) -> bool:
        """See :class:`.learner.Learner`.

        Networks are never perfect: regimes must not mend them bit by bit, nor explain what flexible noise explains.
        Rows on which a network is off come from one corner of the parents' space: as a regime of their own they would
        move the parents, which no intervention on their effect does.
        """
        noises = flexible_noise(problem, before)
        to_beat = BIRTH_PER_ROW * problem.n_rows * len(births)
        to_beat += sum(
            noises[j][1] for j in {b.variable for b in births if not before.targets[b.regime, b.variable]}
        )
        return after.evidence > before.evidence + to_beat and conflicts(problem, after) <= conflicts(
            problem, before
        )


@lru_cache(maxsize=4)
def flexible_noise(problem: Problem, state: State) -> list[tuple[Noise, float]]:
    """For every variable more flexible noise, and what it would gain.

    Where a network does not fit well its residuals look like those of a hidden regime. Noise of several widths explains
    them as well; a regime must explain them better.
    """
    found = []
    for j in range(problem.n_variables):
        now, weights = state.mechanism(j).noise, state.following(j)
        if now.weights.size >= MIXED_NOISE:
            found.append((now, 0.0))
            continue
        residual = state.residual(problem.z, j)
        flexible = fit_noise(residual, np.maximum(weights, EMPTY), MIXED_NOISE)
        gain = float(weights @ (flexible.log_density(residual) - now.log_density(residual)))
        gain -= 0.5 * (flexible.n_parameters - now.n_parameters) * np.log(max(weights.sum(), FEWEST_ROWS))
        found.append((flexible, gain) if gain > 0.0 else (now, 0.0))
    return found


def with_networks(problem: Problem, n_gaussians: int = SEARCH_NOISE, **options: Any) -> Problem:
    """The same problem, for networks whose noise has so many Gaussians; options are those of the learner."""
    family = MixedNetworks if n_gaussians == MixedNetworks.n_gaussians else Networks
    return replace(problem, learner=NetworkLearner(family, **options))


def fit_from(
    problem: Problem,
    responsibilities: Array,
    adjacency: Graph,
    targets: Graph,
    mechanisms: Mapping[int, AdditiveNoise],
    iterations: int = EM_STEPS,
) -> State:
    """EM with graph and targets held, beginning at given reference mechanisms."""
    reference = tuple(mechanisms[j] for j in range(problem.n_variables))
    start = FittedModel(Topology(adjacency, targets, np.empty(0)), reference, {})
    return refine(problem, responsibilities, adjacency, targets=targets, model=start, iterations=iterations)
