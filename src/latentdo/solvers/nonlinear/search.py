"""One run of the search, from nothing to the best state; see the package for the way it goes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from latentdo.model.mechanisms import NetworkMechanism
from latentdo.model.mechanisms.network import with_input
from latentdo.solvers.nonlinear.changes import Changes
from latentdo.solvers.nonlinear.divisions import divide
from latentdo.solvers.nonlinear.em import Targets, fit_model, refine
from latentdo.solvers.nonlinear.lattice import RoughGraph, rough_graph
from latentdo.solvers.nonlinear.mechanism import fit_mechanism, fit_noise
from latentdo.solvers.nonlinear.moves import Moves, conflicts
from latentdo.solvers.nonlinear.orientation import doubtful_edges, reverse
from latentdo.solvers.nonlinear.parents import Family, eliminate, reconsider
from latentdo.solvers.nonlinear.regimes import find_minority, first_regimes, predecessors
from latentdo.solvers.search.em import weigh
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.reporting import Journal
from latentdo.solvers.search.solve import SCEPTICISM, SearchConfiguration
from latentdo.solvers.search.state import State

SEARCH_NOISE = 1
"""Structure is searched with Gaussian noise whatever the density: mixed noise explains bad fits too well (lab book)."""

NOISE_COMPONENTS: Mapping[str, int] = {"nonlinear": 1, "flow": 3}
"""Gaussians in the final mechanisms' noise: one, or enough for what is neither Gaussian nor of one width."""

PASSES = 2
"""Further looks for the order, each with the regimes that the last one led to."""

MISFIT = 0.25
"""Nats a row by which evidence may be wrong because noise is not what the networks assume."""

LUCK = 0.1
"""Nats a row that networks with mixed noise may gain by an edge the wrong way round, or a target too many."""

REMAINING: Mapping[str, float] = {
    "regimes": 1.7, "moves": 1.5, "parents": 0.8, "noise": 0.7, "births": 0.4, "final": 0.0,
}  # fmt: skip
"""Time left after a step as a share of the time until regimes were first found; from traces of ten variables."""

SETTLED = 0.97
"""Agreement (adjusted Rand index) of the regimes with those that the order was found with, at which it stands."""


class Search:
    """One run: what is fixed, and the best state so far."""

    def __init__(
        self,
        problem: Problem,
        configuration: SearchConfiguration,
        n_components: int,
        journal: Journal,
        rng: np.random.Generator,
        *,
        flexible: bool,
    ) -> None:
        self.problem = problem
        self.configuration = configuration
        self.n_components = n_components
        self.journal = journal
        self.rng = rng
        self.flexible = flexible
        self.best: State | None = None
        self.families: list[Family] = []
        self.rough: RoughGraph | None = None
        self.comparison: tuple[Mapping[str, Any], ...] = ()
        self.looks = 0
        self.labels = np.zeros(problem.n_rows, dtype=np.int64)

    def note(self, step: str, state: State) -> None:
        """Keep a step in the history, told apart from the same step of an earlier look, with the time that is left."""
        name = f"{step}, look {self.looks}" if self.looks > 1 and step in {"regimes", "moves"} else step
        entries = self.journal.entries
        first = entries[0]["seconds"] if entries else time.perf_counter() - self.journal.began
        self.journal.note(name, state, REMAINING[step] * first)

    def find(self) -> None:
        """From nothing to the best state."""
        problem = self.problem
        if problem.all_labelled and problem.n_labelled > 1:
            changes = Changes.between(problem.z, np.eye(problem.n_labelled)[problem.labels])
            problem = self.problem = replace(problem, known=changes.known(problem))
            state, self.rough = self.start(problem, changes)
        else:
            state, self.rough = self.start(problem)
        self.best = state
        for _ in range(PASSES):
            if problem.all_labelled or state.n_components == 1:
                break
            better = self.again(state)
            if better is state:
                break
            state = better
        state = self.finish(state)
        if self.flexible and not problem.all_labelled and state.n_components > 1:
            state = self.rethink(state)
        self.best = state
        self.note("final", state)
        if problem.n_labelled == 0 and state.n_components > 1:
            self.best = self.doubt(state)

    def finish(self, state: State) -> State:
        """From predecessors as inputs to parents, and to what good networks make possible."""
        state = self.prune(state)
        self.best = state
        self.note("parents", state)
        state = self.improve(state)
        turned = self.turn(state)
        if turned is not state:
            state = self.moves.improve(turned)
        self.best = state
        return state

    def rethink(self, state: State) -> State:
        """All over again with better regimes, if they are no longer those that the order was found with."""
        responsibilities, targets = divide(self.problem, state)
        settled = adjusted_rand_score(self.labels, responsibilities.argmax(axis=1)) > SETTLED
        if settled and not conflicts(self.problem, state):
            return state
        start = state.mechanisms
        model = fit_model(
            self.problem, responsibilities, targets, state.adjacency, start, n_components=SEARCH_NOISE
        )
        finer = replace(weigh(self.problem, model), responsibilities=responsibilities)
        other = Search(
            self.problem, self.configuration, SEARCH_NOISE, self.journal, self.rng, flexible=self.flexible
        )
        other.looks = self.looks
        fresh, other.rough = other.look(finer)
        fresh = other.finish(fresh)
        # Mixed noise makes evidence a poor judge; interventions that hit one variable more must be worth it.
        surplus = int(fresh.targets.sum()) - int(state.targets.sum())
        if not self._is_better(fresh, state, LUCK * self.problem.n_rows * surplus):
            return state
        self.families, self.rough = other.families, other.rough
        return fresh

    @property
    def moves(self) -> Moves:
        """Changes of regimes with the noise of this stage."""
        return Moves(self.problem, self.n_components, flexible=self.flexible)

    def start(
        self,
        problem: Problem,
        changes: Changes | None = None,
        known: State | None = None,
    ) -> tuple[State, RoughGraph]:
        """An order of the variables, everybody's predecessors as inputs, regimes, and targets.

        With a ``known`` state regimes are not looked for: the problem's labels stand for them.
        """
        self.looks += 1
        lateness = None
        if changes is not None:
            lateness = changes.lateness
            problem = replace(problem, constraints=problem.constraints.without(changes.impossible))
        rough = rough_graph(problem, seed=self.configuration.random_state, lateness=lateness)
        inputs = predecessors(rough, problem)
        found = [
            find_minority(
                problem, j, inputs[j], rough.rows, rough.minority[:, j], self.n_components, self.rng
            )
            for j in range(problem.n_variables)
        ]
        start = {j: mechanism for j, (_, mechanism) in enumerate(found)}
        if problem.max_regimes == 1:
            first = np.ones((problem.n_rows, 1))
            targets = np.zeros((1, problem.n_variables), dtype=np.int8)
        else:
            first, targets = first_regimes(problem, np.column_stack([second for second, _ in found]))
        if known is not None:
            # A regime without targets would lose its rows; it was told apart by something.
            first = known.responsibilities
            lost = ~targets.any(axis=1) & known.targets.any(axis=1)
            targets[lost] = known.targets[lost]
            start |= self._better_before(known, inputs, start, targets)
        state = refine(
            self.problem, first, targets, _matrix(inputs),
            start, n_components=self.n_components, iterations=12,
        )  # fmt: skip
        if self.best is None:  # something to return if interrupted
            self.best = state
        self.note("regimes", state)
        # Births wait until the networks fit well: a bad fit looks like a hidden regime.
        state = self.moves.improve(state, births=False)
        self.note("moves", state)
        return state, rough

    def _better_before(
        self,
        known: State,
        inputs: list[list[int]],
        fresh: Mapping[int, NetworkMechanism],
        targets: Targets,
    ) -> dict[int, NetworkMechanism]:
        """Mechanisms of an earlier state that fit better than fresh ones whose inputs include theirs."""
        z, better = self.problem.z, {}
        for j, wanted in enumerate(inputs):
            parents = known.model.parents[j].tolist()
            if not parents or not set(parents) <= set(wanted):
                continue
            network = known.mechanism(j).parameters
            for i in sorted(set(wanted) - set(parents)):
                place = int(np.searchsorted(parents, i))
                network = with_input(network, len(parents), place)
                parents.insert(place, i)
            weights = known.responsibilities @ (1.0 - targets[:, j])
            x, y = np.ascontiguousarray(z[:, wanted]), z[:, j]
            before, now = (
                fit_mechanism(x, y, weights, start, n_components=self.n_components)
                for start in (network, fresh[j].parameters)
            )
            if weights @ (before.log_density(x, y) - now.log_density(x, y)) > 0.0:
                better[j] = before
        return better

    def _is_better(self, state: State, before: State, margin: float = 1.0) -> bool:
        """Whether a state needs fewer coincidences than the one before, or no more and has ``margin`` more evidence.

        Evidence alone is no judge between orders: where noise is not what the networks assume it may prefer a wrong
        one. Large differences count all the same.
        """
        gain = state.evidence - before.evidence
        now, then = conflicts(self.problem, state), conflicts(self.problem, before)
        allowed = (2.0 * MISFIT if self.flexible else MISFIT) * self.problem.n_rows
        return bool(gain > margin + allowed * np.sign(now - then))

    def look(self, state: State) -> tuple[State, RoughGraph]:
        """Look for the order with regimes that are known well enough to serve as labels."""
        changes = Changes.between(self.problem.z, state.responsibilities)
        self.labels = state.responsibilities.argmax(axis=1)
        labelled = replace(self.problem, labels=self.labels, known=changes.known(self.problem))
        return self.start(labelled, changes, state)

    def again(self, state: State) -> State:
        """Look once more, and keep the better state."""
        fresh, rough = self.look(state)
        if not self._is_better(fresh, state):
            return state
        self.best, self.rough = fresh, rough
        return fresh

    def prune(self, state: State) -> State:
        """Keep the inputs that are parents, and settle the rows again."""
        problem = self.problem
        inputs = [parents.tolist() for parents in state.model.parents]
        self.families = [
            eliminate(
                problem, j, inputs[j], state.mechanism(j),
                state.following(j),
                n_components=self.n_components, rng=self.rng,
            )
            for j in range(problem.n_variables)
        ]  # fmt: skip
        if self.n_components > 1 or not self.flexible:
            self.families = [
                reconsider(
                    problem, j, family, state.following(j),
                    n_components=self.n_components, rng=self.rng,
                )
                for j, family in enumerate(self.families)
            ]  # fmt: skip
        adjacency = _matrix([list(family.parents) for family in self.families])
        start = {j: family.mechanism for j, family in enumerate(self.families)}
        return refine(
            problem, state.responsibilities, state.targets, adjacency, start, n_components=self.n_components
        )

    def improve(self, state: State) -> State:
        """Regimes again, now that networks fit well; with flexible noise parents too."""
        if not self.flexible:
            return self.moves.improve(state)
        self.n_components = NOISE_COMPONENTS["flow"]
        start = state.mechanisms
        state = refine(
            self.problem, state.responsibilities, state.targets, state.adjacency, start,
            n_components=self.n_components,
        )  # fmt: skip
        self.best = state
        self.note("noise", state)
        state = self.moves.improve(state)
        self.best = state
        self.note("births", state)
        families = self.families
        pruned = self.prune(state)
        if self._is_better(pruned, state):
            return pruned
        self.families = families
        return state

    def turn(self, state: State) -> State:
        """Try edges that regimes object to, and those that the rough scores are least sure of, the other way round."""
        assert self.rough is not None
        changes = Changes.between(self.problem.z, state.responsibilities)
        objections = np.argwhere(changes.impossible & (state.adjacency == 1))
        edges = [(int(i), int(j)) for i, j in objections]
        edges += [edge for edge in doubtful_edges(self.rough, state.adjacency) if edge not in edges]
        margin = LUCK * self.problem.n_rows if self.flexible else 1.0
        for i, j in edges:
            if state.adjacency[i, j]:
                turned = reverse(self.problem, state, self.rough, i, j, self.n_components, self.rng)
                if turned is not None and self._is_better(turned.state, state, margin):
                    state = turned.state
                    self.families[i], self.families[j] = turned.cause, turned.effect
        return state

    def doubt(self, state: State) -> State:
        """One regime with flexible noise, if hidden interventions do not explain the rows much better."""
        problem = self.problem
        everyone = np.ones((problem.n_rows, 1))
        none = np.zeros((1, problem.n_variables), dtype=np.int8)
        start = state.mechanisms
        single = refine(problem, everyone, none, state.adjacency, start, n_components=self.n_components)
        flexible = single.evidence
        for j in range(problem.n_variables):
            residual = single.residual(problem.z, j)
            now = single.mechanism(j).noise
            mixed = fit_noise(residual, everyone[:, 0], 3)
            gain = float(mixed.log_density(residual).sum() - now.log_density(residual).sum())
            gain -= 0.5 * (mixed.n_parameters - now.n_parameters) * np.log(problem.n_rows)
            flexible += max(gain, 0.0)
        # Both sides may use flexible noise, or the comparison would be about noise.
        found = state.evidence + sum(gain for _, gain in self.moves.flexible_noise(state))
        hidden = bool(found > flexible + SCEPTICISM * np.log(problem.n_rows))
        self.comparison = (
            {"model": "hidden interventions", "evidence": float(found), "chosen": hidden},
            {"model": "one regime, flexible noise", "evidence": float(flexible), "chosen": not hidden},
        )
        if hidden:
            return state
        # The graph was found with minorities set aside; without them it is another question.
        alone = Search(
            replace(problem, max_regimes=1), self.configuration, SEARCH_NOISE, self.journal, self.rng,
            flexible=self.flexible,
        )  # fmt: skip
        alone.find()
        assert alone.best is not None
        self.families = alone.families
        return alone.best


def _matrix(inputs: list[list[int]]) -> NDArray[np.int8]:
    adjacency = np.zeros((len(inputs), len(inputs)), dtype=np.int8)
    for j, parents in enumerate(inputs):
        adjacency[parents, j] = 1
    return adjacency
