"""Changes of regimes judged by evidence: targets come and go, regimes merge and are born."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from latentdo.graphs import reachability
from latentdo.model.assignment import LIKELY
from latentdo.model.mechanisms import AdditiveNoise, Noise
from latentdo.model.penalties import FEWEST_ROWS
from latentdo.solvers.nonlinear.family import Networks
from latentdo.solvers.nonlinear.learner import beginning, family_of, with_networks
from latentdo.solvers.nonlinear.levenberg import Effort, fit_network
from latentdo.solvers.nonlinear.marginal_shifts import Changes
from latentdo.solvers.nonlinear.mechanism import fit_mechanism, fit_noise
from latentdo.solvers.nonlinear.split_proposals import propose
from latentdo.solvers.search.em import refine
from latentdo.solvers.search.local_scores import FREE, TARGET
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import (
    BIRTH_PER_ROW,
    BIRTH_STEPS,
    EMPTY,
    FAINT,
    FAMILY_FAINT,
    MAX_TRIES,
    MERGE_TRIES,
    MIXED_NOISE,
    MOVE_GAIN,
    MOVE_ROUNDS,
    NETWORK_MERGE_STEPS,
    ONE_TARGET_STEPS,
    REFIT_STARTS,
    REFIT_STEPS,
    REFIT_TOLERANCE,
    REFITTED_STEPS,
    RETARGET_STEPS,
    SIMPLER_STEPS,
    SIMPLIFY_STARTS,
    SIMPLIFY_STEPS,
    TARGET_GAIN,
    TINY,
)

Array = NDArray[np.float64]


def conflicts(problem: Problem, state: State) -> int:
    """Coincidences that a state needs, see :meth:`Changes.conflicts`."""
    changes = Changes.between(problem.z, state.responsibilities)
    return changes.conflicts(state.targets, state.adjacency)


class Moves:
    """Improves a state until no move raises its evidence."""

    def __init__(self, problem: Problem, n_components: int, *, flexible: bool = False) -> None:
        self.problem = with_networks(problem, n_components)
        self.family = family_of(n_components)
        self.n_components = n_components
        self.flexible = flexible

    def improve(self, state: State, *, births: bool = True, rounds: int = MOVE_ROUNDS) -> State:
        """Retarget, merge and (if wanted) give birth, in turns."""
        if births:
            state = self.refit_networks(state)
        state = self.simplify(state)
        for _ in range(rounds):
            before = state.evidence
            state = self.retarget(state)
            state = self.merge(state)
            if births and not self.problem.all_labelled and self.problem.max_regimes > 1:
                state = self.split(state)
            if state.evidence < before + MOVE_GAIN:
                break
        return self.simplify(state) if births else state

    def _refine(
        self, state: State, responsibilities: Array, targets: NDArray[np.int8], iterations: int
    ) -> State:
        return refine(
            self.problem,
            responsibilities,
            state.adjacency,
            targets=targets,
            model=state.model,
            iterations=iterations,
        )

    def _own(
        self, state: State, j: int, weights: Array, family: type[Networks], imperfect: bool
    ) -> AdditiveNoise:
        rows = weights > FAMILY_FAINT
        x, y = state.model.inputs(self.problem.z[rows], j), self.problem.z[rows, j]
        return family.intervene(x, y, weights[rows], state.mechanism(j), imperfect=imperfect)

    # ------------------------------------------------------------------------------------------------- networks

    def refit_networks(self, state: State) -> State:
        """Fit networks better where their residuals are not of one width: longer, and from fresh starts too."""
        problem = self.problem
        mechanisms = state.mechanisms
        refitted = False
        for j, (_, gain) in enumerate(self.flexible_noise(state)):
            parents = state.model.parents[j]
            if gain <= 0.0 or not parents.size:
                continue
            weights = state.following(j)
            weights[weights < FAINT] = 0.0
            x, y = np.ascontiguousarray(problem.z[:, parents]), problem.z[:, j]
            rng = np.random.default_rng(j)
            for start in (mechanisms[j].parameters, None):
                starts = REFIT_STARTS if start is None else 0
                effort = Effort(starts, REFIT_STEPS, REFIT_TOLERANCE)
                network, _ = fit_network(x, y, weights, rng, effort, start=start)
                trial = fit_mechanism(x, y, weights, network, n_components=self.n_components)
                if weights @ (trial.log_density(x, y) - mechanisms[j].log_density(x, y)) > MOVE_GAIN:
                    mechanisms[j], refitted = trial, True
        if not refitted:
            return state
        better = refine(
            problem,
            state.responsibilities,
            state.adjacency,
            targets=state.targets,
            model=beginning(state.adjacency, state.targets, mechanisms),
            iterations=REFITTED_STEPS,
        )
        return better if better.evidence > state.evidence else state

    # ------------------------------------------------------------------------------------------------- targets

    def target_gains(self, state: State) -> Array:
        """What every (regime, variable) would gain by a mechanism of its own, less its cost, ``[K, d]``.

        It has to beat the reference mechanism with flexible noise.
        """
        problem, resp = self.problem, state.responsibilities
        gains = np.full(state.targets.shape, -np.inf)
        noises = self.flexible_noise(state)
        counts = resp.sum(axis=0)
        for j in range(problem.n_variables):
            reference = noises[j][0].log_density(state.residual(problem.z, j))
            # Where the network does not fit, a function of the parents may just mend it; a constant cannot.
            doubtful = noises[j][1] > 0.0
            for k in range(state.n_regimes):
                if counts[k] < problem.min_rows:
                    continue
                own = state.model.own.get((k, j)) or self._own(
                    state, j, resp[:, k], self.family, problem.imperfect and not doubtful
                )
                density = state.model.log_density_under(problem.z, j, own)
                gains[k, j] = float(resp[:, k] @ (density - reference)) - 0.5 * own.n_parameters * np.log(
                    max(counts[k], FEWEST_ROWS)
                )
        return gains + problem.penalties.target_prior

    def retarget(self, state: State) -> State:
        """Drop targets that do not pay and add those that would, as long as the evidence rises."""
        fixed = Changes.between(self.problem.z, state.responsibilities).known(self.problem)
        gains = self.target_gains(state)
        wanted = np.where(fixed == FREE, gains > 0.0, fixed == TARGET).astype(np.int8)
        # The reference mechanism is what most rows share. If most want their own, it is the network that is bad.
        weights = state.responsibilities.sum(axis=0) / self.problem.n_rows
        crowded = (weights @ wanted > LIKELY) & (weights @ wanted > weights @ state.targets)
        wanted[:, crowded] = state.targets[:, crowded]
        if self.flexible:
            # An intervention takes its effects to where noise that passes through the networks may be of another
            # width. That is no second intervention, however much one would gain.
            effects = state.targets.astype(np.int64) @ reachability(state.adjacency).astype(np.int64) > 0
            wanted[effects & (state.targets == 0) & (fixed == FREE)] = 0
        changed = wanted != state.targets
        if not changed.any():
            return state
        trial = self._refine(state, state.responsibilities, wanted, RETARGET_STEPS)
        if trial.evidence > state.evidence + TARGET_GAIN:
            return trial
        # All at once was too much: the most promising ones alone.
        order = np.argsort(-np.abs(np.where(changed, np.nan_to_num(gains, neginf=-1e9), 0.0)).ravel())
        for place in order[: min(MAX_TRIES, int(changed.sum()))]:
            k, j = np.unravel_index(place, gains.shape)
            one = state.targets.copy()
            one[k, j] = wanted[k, j]
            if one[:, j].all():
                continue
            trial = self._refine(state, state.responsibilities, one, ONE_TARGET_STEPS)
            if trial.evidence > state.evidence + TARGET_GAIN:
                return trial
        return state

    def simplify(self, state: State) -> State:
        """Drop targets of regimes with several, where the reference network can learn to fit the regime's rows.

        An intervention takes variables where no other row has been. There the networks of its descendants are off
        until they have seen its rows, which therefore look like targets too.
        """
        problem = self.problem
        fixed = problem.fixed(state.n_regimes)
        targets = state.targets.copy()
        mechanisms = state.mechanisms
        resp = state.responsibilities
        counts = resp.sum(axis=0)
        for k, j in np.argwhere((state.targets == 1) & (fixed == FREE)):
            if targets[k].sum() <= 1 or counts[k] < problem.min_rows:
                continue
            own = state.model.own[int(k), int(j)]
            others = resp @ (1.0 - targets[:, j])
            weights = others + resp[:, k]
            x, y = np.ascontiguousarray(problem.z[:, state.model.parents[j]]), problem.z[:, j]
            now = float(others @ mechanisms[j].log_density(x, y))
            now += float(resp[:, k] @ state.model.log_density_under(problem.z, int(j), own))
            now += problem.penalties.target_prior - 0.5 * own.n_parameters * np.log(
                max(counts[k], FEWEST_ROWS)
            )
            weights[weights < FAINT] = 0.0
            rng = np.random.default_rng([int(k), int(j)])
            effort = Effort(SIMPLIFY_STARTS, SIMPLIFY_STEPS)
            network, _ = fit_network(x, y, weights, rng, effort, start=mechanisms[j].parameters)
            trial = fit_mechanism(x, y, weights, network, n_components=self.n_components)
            if float(weights @ trial.log_density(x, y)) > now:
                targets[k, j], mechanisms[j] = 0, trial
        if np.array_equal(targets, state.targets):
            return state
        simpler = refine(
            problem,
            resp,
            state.adjacency,
            targets=targets,
            model=beginning(state.adjacency, targets, mechanisms),
            iterations=SIMPLER_STEPS,
        )
        return simpler if simpler.evidence > state.evidence else state

    # ------------------------------------------------------------------------------------------------- merges

    def _merges(self, state: State) -> Iterator[tuple[float, int, int, NDArray[np.int8]]]:
        """Pairs with the change of the variational bound if they become one, and the targets it would have."""
        problem, resp = self.problem, state.responsibilities
        n = problem.n_rows
        counts = np.maximum(resp.sum(axis=0), EMPTY)
        entropy = -(resp * np.log(np.maximum(resp, TINY))).sum(axis=0)
        density = np.stack(
            [
                state.model.log_density_under(problem.z, j, state.model.reference[j])
                for j in range(problem.n_variables)
            ]
        )
        for a, b in combinations(range(state.n_regimes), 2):
            if b < problem.n_labelled:
                continue
            both = resp[:, a] + resp[:, b]
            # A mixture could stand for what two regimes do to different variables, so it may not join them.
            alike = np.array_equal(state.targets[a], state.targets[b])
            touched = np.flatnonzero(state.targets[a] | state.targets[b])
            change = 0.5 * np.log(n)
            change += float(-(both * np.log(np.maximum(both, TINY))).sum()) - entropy[a] - entropy[b]
            total = counts[a] + counts[b]
            change += total * np.log(total) - counts[a] * np.log(counts[a]) - counts[b] * np.log(counts[b])
            targets = np.zeros(problem.n_variables, dtype=np.int8)
            for j in touched:
                now = 0.0
                for k in (a, b):
                    own = state.model.own.get((k, int(j)))
                    if own is None:
                        now += float(resp[:, k] @ density[j])
                    else:
                        now += float(resp[:, k] @ state.model.variable_log_density(problem.z, int(j), k))
                        now += problem.penalties.target_prior - 0.5 * own.n_parameters * np.log(
                            max(counts[k], FEWEST_ROWS)
                        )
                own = self._own(state, int(j), both, self.family if alike else Networks, problem.imperfect)
                alone = state.model.log_density_under(problem.z, int(j), own)
                kept = (
                    float(both @ alone)
                    + problem.penalties.target_prior
                    - 0.5 * own.n_parameters * np.log(total)
                )
                dropped = float(both @ density[j])
                targets[j] = kept > dropped
                change += max(kept, dropped) - now
            if a < problem.n_labelled:
                fixed = problem.known[a]
                targets = np.where(fixed == FREE, targets, state.targets[a]).astype(np.int8)
            yield change, a, b, targets

    def merge(self, state: State) -> State:
        """Merge regimes as long as the evidence rises, or there are too many."""
        while state.n_regimes > max(self.problem.n_labelled, 1):
            merges = sorted(self._merges(state), key=lambda m: -m[0])
            excess = state.n_regimes > self.problem.max_regimes
            for change, a, b, targets in merges[:1] if excess else merges[:MERGE_TRIES]:
                if change <= 0.0 and not excess:
                    return state
                responsibilities = state.responsibilities.copy()
                responsibilities[:, a] += responsibilities[:, b]
                joined = state.targets.copy()
                joined[a] = targets
                trial = self._refine(
                    state,
                    np.delete(responsibilities, b, axis=1),
                    np.delete(joined, b, axis=0),
                    NETWORK_MERGE_STEPS,
                )
                if excess or trial.evidence > state.evidence:
                    state = trial
                    break
            else:
                return state
        return state

    # ------------------------------------------------------------------------------------------------- births

    def flexible_noise(self, state: State) -> list[tuple[Noise, float]]:
        """For every variable more flexible noise, and what it would gain.

        Where a network does not fit well its residuals look like those of a hidden regime. Noise of several widths
        explains them as well; a regime must explain them better.
        """
        problem = self.problem
        found = []
        for j in range(problem.n_variables):
            if self.n_components >= MIXED_NOISE:
                found.append((state.mechanism(j).noise, 0.0))
                continue
            weights = state.following(j)
            residual = state.residual(problem.z, j)
            now = state.mechanism(j).noise
            flexible = fit_noise(residual, np.maximum(weights, EMPTY), MIXED_NOISE)
            gain = float(weights @ (flexible.log_density(residual) - now.log_density(residual)))
            gain -= 0.5 * (flexible.n_parameters - now.n_parameters) * np.log(max(weights.sum(), FEWEST_ROWS))
            found.append((flexible, gain) if gain > 0.0 else (now, 0.0))
        return found

    def _is_stranger(self, state: State, trial: State) -> bool:
        """Whether the trial needs more coincidences than the state before.

        Rows on which a network is off come from one corner of the parents' space: as a regime of their own they would
        move the parents, which no intervention on their effect does.
        """
        return conflicts(self.problem, trial) > conflicts(self.problem, state)

    def split(self, state: State) -> State:
        """Split a regime where that raises the evidence."""
        noises = self.flexible_noise(state)
        for birth in propose(self.problem, state, noises, spare_effects=self.flexible):
            moved = state.responsibilities[:, birth.regime] * birth.leaving
            responsibilities = np.column_stack([state.responsibilities, moved])
            responsibilities[:, birth.regime] -= moved
            trial = self._refine(
                state, responsibilities, np.vstack([state.targets, birth.targets]), BIRTH_STEPS
            )
            if trial.n_regimes > self.problem.max_regimes:
                trial = self.merge(trial)
            to_beat = birth.to_beat + BIRTH_PER_ROW * self.problem.n_rows
            if trial.evidence > state.evidence + to_beat and not self._is_stranger(state, trial):
                return trial
        return state
