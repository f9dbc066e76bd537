"""Nonlinear structural search from end to end; see the package for the way it goes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from latentdo.data import Dataset
from latentdo.graphs import reachability
from latentdo.model.relu_mixture import ReluMixture
from latentdo.model.relu_network import with_input
from latentdo.result import FitResult, Status
from latentdo.solvers.nonlinear.changes import Changes
from latentdo.solvers.nonlinear.divisions import divide
from latentdo.solvers.nonlinear.em import State, Targets, fit_model, refine, settle
from latentdo.solvers.nonlinear.lattice import RoughGraph, rough_graph
from latentdo.solvers.nonlinear.mechanism import Mechanism, fit_mechanism, fit_noise
from latentdo.solvers.nonlinear.moves import Moves, conflicts
from latentdo.solvers.nonlinear.orientation import doubtful_edges, reverse
from latentdo.solvers.nonlinear.parents import Family, eliminate, reconsider
from latentdo.solvers.nonlinear.regimes import find_minority, first_regimes, predecessors
from latentdo.solvers.search.local_scores import FREE
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.reporting import Journal, Progress, canonical, regime_names
from latentdo.solvers.search.solve import SCEPTICISM, SearchConfiguration, make_problem

SEARCH_NOISE = 1
"""Structure is searched with Gaussian noise whatever the density: mixed noise explains bad fits too well (lab book)."""

NOISE_COMPONENTS: Mapping[str, int] = {"nonlinear": 1, "flow": 3}
"""Gaussians in the final mechanisms' noise: one, or enough for what is neither Gaussian nor of one width."""

ANCESTOR_DRAWS = 200
"""Graphs drawn to see who is whose ancestor."""

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

SEARCH_ROWS = 12_000
"""Structure is searched on at most so many rows and refined on all."""


def solve(
    dataset: Dataset, configuration: SearchConfiguration, density: str, progress: Progress | None = None
) -> FitResult:
    """Fit networks by structural search; with density "auto" the evidence decides whether noise is Gaussian.

    Known regimes and targets are held fixed, unknown ones are found. An interrupt (Ctrl-C) returns the best state so
    far with status "interrupted"; before the first state it is passed on.
    """
    problem = make_problem(dataset, configuration)
    rng = np.random.default_rng(configuration.random_state)
    search = problem
    if problem.n_rows > SEARCH_ROWS:
        search = problem.take(np.sort(rng.choice(problem.n_rows, SEARCH_ROWS, replace=False)))
    run = _Search(
        search, configuration, SEARCH_NOISE, Journal(progress), rng, flexible=density != "nonlinear"
    )
    status: Status = "converged"
    # Several threads on matrices this small mostly wait for each other.
    with threadpool_limits(limits=1):
        try:
            run.find()
        except KeyboardInterrupt:
            if run.best is None:
                raise
            status = "interrupted"
            if not run.families:  # all predecessors are still parents, which constraints may not allow
                run.best = run.prune(run.best)
        assert run.best is not None
        best = run.best
        if search is not problem:
            try:
                best = _on_all_rows(problem, best, run.n_components)
                run.journal.note("all rows", best)
            except KeyboardInterrupt:
                best, status = settle(problem, best.model), "interrupted"
        return _result(dataset, problem, configuration, density, best, run, status)


class _Search:
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
        start = {j: state.mechanism(j) for j in range(self.problem.n_variables)}
        model = fit_model(
            self.problem, responsibilities, targets, state.adjacency, start, n_components=SEARCH_NOISE
        )
        finer = replace(settle(self.problem, model), responsibilities=responsibilities)
        other = _Search(
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
        self, known: State, inputs: list[list[int]], fresh: Mapping[int, Mechanism], targets: Targets
    ) -> dict[int, Mechanism]:
        """Mechanisms of an earlier state that fit better than fresh ones whose inputs include theirs."""
        z, better = self.problem.z, {}
        for j, wanted in enumerate(inputs):
            parents = known.model.parents[j].tolist()
            if not parents or not set(parents) <= set(wanted):
                continue
            network = known.model.networks[j]
            for i in sorted(set(wanted) - set(parents)):
                place = int(np.searchsorted(parents, i))
                network = with_input(network, len(parents), place)
                parents.insert(place, i)
            weights = known.responsibilities @ (1.0 - targets[:, j])
            x, y = np.ascontiguousarray(z[:, wanted]), z[:, j]
            before, now = (
                fit_mechanism(x, y, weights, start, n_components=self.n_components)
                for start in (network, fresh[j].network)
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
                state.responsibilities @ (1.0 - state.targets[:, j]),
                n_components=self.n_components, rng=self.rng,
            )
            for j in range(problem.n_variables)
        ]  # fmt: skip
        if self.n_components > 1 or not self.flexible:
            self.families = [
                reconsider(
                    problem, j, family, state.responsibilities @ (1.0 - state.targets[:, j]),
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
        start = {j: state.mechanism(j) for j in range(self.problem.n_variables)}
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
        start = {j: state.mechanism(j) for j in range(problem.n_variables)}
        single = refine(problem, everyone, none, state.adjacency, start, n_components=self.n_components)
        flexible = single.evidence
        for j in range(problem.n_variables):
            residual = problem.z[:, j] - single.model.reference_mean(problem.z, j)
            now = single.model.noises[j]
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
        alone = _Search(
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


def _on_all_rows(problem: Problem, state: State, n_components: int) -> State:
    """Carry a state found on some of the rows to all of them."""
    everywhere = settle(problem, state.model)
    start = {j: state.mechanism(j) for j in range(problem.n_variables)}
    return refine(
        problem, everywhere.responsibilities, state.targets, state.adjacency, start,
        n_components=n_components, iterations=4,
    )  # fmt: skip


def _edge_probabilities(run: _Search, adjacency: NDArray[np.int8]) -> NDArray[np.float64]:
    """Probability of every edge given the order of the variables; the chosen graph if elimination was not reached."""
    probabilities = adjacency.astype(np.float64)
    for j, family in enumerate(run.families):
        for i, probability in family.probabilities.items():
            probabilities[i, j] = probability
    return probabilities


def _ancestor_probabilities(edges: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Share of graphs, drawn edge by edge (one order: never a cycle), in which one variable causes another."""
    rng = np.random.default_rng(seed)
    draws = [reachability((rng.random(edges.shape) < edges).astype(np.int8)) for _ in range(ANCESTOR_DRAWS)]
    return np.asarray(np.mean(draws, axis=0))


def _result(
    dataset: Dataset,
    problem: Problem,
    configuration: SearchConfiguration,
    density: str,
    state: State,
    run: _Search,
    status: Status,
) -> FitResult:
    responsibilities, targets = canonical(problem, state.responsibilities, state.targets)
    start = {j: state.mechanism(j) for j in range(problem.n_variables)}
    finals = {}
    for name in NOISE_COMPONENTS if density == "auto" else (density,):
        components = NOISE_COMPONENTS[name]
        candidate: ReluMixture = fit_model(
            problem, responsibilities, targets, state.adjacency, start,
            n_components=components, own_components=components, iterations=1,
        )  # fmt: skip
        finals[name] = settle(problem, candidate)
    density = max(finals, key=lambda name: finals[name].evidence)
    final = finals[density]
    model = final.model
    gains = Moves(problem, run.n_components, flexible=run.flexible).target_gains(final)
    # What did not move is no target, whatever a misfit of its network would gain.
    known = Changes.between(problem.z, final.responsibilities).known(problem) != FREE
    probabilities = np.asarray(expit(gains))
    # Targets that the search refused although they would gain (their network is at fault) are open, not certain.
    probabilities = np.where(targets == 1, probabilities, np.minimum(probabilities, 0.5))
    target_probabilities = np.where(known, targets, probabilities)
    if problem.n_labelled == 0:
        target_probabilities[0] = 0.0
    edges = _edge_probabilities(run, state.adjacency)
    return FitResult(
        model=model,
        columns=dataset.columns,
        preprocessor=dataset.preprocessor,
        regime_names=regime_names(dataset, responsibilities.shape[1]),
        responsibilities=final.responsibilities,
        edge_probabilities=edges,
        ancestor_probabilities=_ancestor_probabilities(edges, configuration.random_state),
        target_probabilities=target_probabilities,
        evidence=final.evidence,
        evidence_terms={"log_likelihood": final.loglik, "structure_cost": -final.cost},
        solver="search",
        density=density,
        intervention=configuration.intervention,
        status=status,
        message="" if status == "converged" else "this is the best state so far",
        history=tuple(run.journal.entries),
        comparison=run.comparison,
        data_hash=dataset.content_hash(),
        seconds=time.perf_counter() - run.journal.began,
    )
