"""The training loop: chunks of Adam steps inside sub-problems of the augmented Lagrangian."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from latentdo.model.variational.assignments import UNKNOWN
from latentdo.model.variational.densities import LinearDensity
from latentdo.model.variational.evidence import Evidence
from latentdo.model.variational.graph import GraphSample
from latentdo.model.variational.mixture import Draws, LatentMixture, Priors
from latentdo.model.variational.moments import Moments
from latentdo.ranks import Ranks
from latentdo.solvers.gradient.acyclicity import MEASURES
from latentdo.solvers.gradient.configuration import GradientConfiguration
from latentdo.solvers.gradient.dag import nearest_dag
from latentdo.solvers.gradient.pairs import current_moments, likely_pairs
from latentdo.solvers.gradient.state import KNOWN_TARGETS, TrainState
from latentdo.solvers.settings import (
    ANNEALED_TEMPERATURE,
    BROKEN_LOSS,
    BROKEN_SHARE,
    IMPROVEMENT,
    LARGEST_TARGET_LOGIT,
    MAX_BACK_OFFS,
    SETTLING,
)

Progress = Callable[[dict[str, Any]], None]
"""Called after every chunk with the last entry of the history."""


class DivergedError(FloatingPointError, ValueError):
    """Training broke down for good; a ValueError too, because a smaller learning rate or other units mend it."""


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The rows a run trains on.

    Parameters
    ----------
    x : Tensor [n, d]
        Standardised rows, in random order.
    labels : Tensor [n] of int64
        Known regimes, ``UNKNOWN`` elsewhere.
    priors : Priors
        Prior knowledge.
    warm_labels : Tensor [n] of int64, optional
        Guesses that stand in for unknown labels while the graph is relaxed (closed-form mechanisms), or during the
        first half of the first sub-problem (networks).
    """

    x: Tensor
    labels: Tensor
    priors: Priors
    warm_labels: Tensor | None = None


class Trainer:
    """Advances a state chunk by chunk; holds nothing that the state does not.

    Parameters
    ----------
    model : LatentMixture
        The model; its weights are overwritten by those of the state.
    problem : TrainingRows
        Rows and priors.
    configuration : GradientConfiguration
        How to fit.
    """

    def __init__(
        self, model: LatentMixture, problem: TrainingRows, configuration: GradientConfiguration
    ) -> None:
        self.model = model
        self.problem = problem
        self.configuration = configuration
        self.measure = MEASURES[configuration.acyclicity]
        self.optimizer = self._make_optimizer()
        n_regimes = model.architecture.n_regimes
        known = problem.labels[problem.labels != UNKNOWN]
        unknown = len(problem.labels) - len(known)
        self.regime_steps = configuration.regime_steps if unknown and n_regimes > 1 else 0
        self.first_edges = self._first_edges()
        self.built = copy.deepcopy(model.density.state_dict()) if configuration.fresh_start else {}
        self.held = [model.embeddings.mean]  # what says which rows form a regime
        if model.assignments is not None:
            self.held += model.assignments.parameters()
        self.regime_counts = torch.bincount(known, minlength=n_regimes) + unknown / n_regimes
        self.started = time.perf_counter()
        self.ranks = Ranks.current()

    def _make_optimizer(self) -> torch.optim.Adam:
        c = self.configuration
        networks: list[Tensor] = []
        structure: list[Tensor] = []
        for name, parameter in self.model.named_parameters():
            if name == "targets.logits" and c.estimator == "exact":
                continue  # they follow natural gradients, see _update_targets
            if name == "embeddings.log_scale" and c.fixed_embedding_scale:
                parameter.requires_grad_(False)
            (structure if name in ("graph.logits", "targets.logits") else networks).append(parameter)
        groups = [
            {"params": networks, "weight_decay": c.weight_decay, "share": 1.0},
            {"params": structure, "weight_decay": 0.0, "share": c.structure_rate},
        ]
        return torch.optim.Adam(groups, lr=c.learning_rate, fused=c.device == "cpu")

    def _first_edges(self) -> Tensor:
        """The graph under which regimes form: the required edges, or as many as a random DAG can have."""
        graph = self.model.graph
        if not self.regime_steps or self.configuration.regime_graph == "empty":
            return graph.required
        likely = graph.allowed.cpu() * (1.0 + torch.rand(graph.allowed.shape)) / 2.0
        return nearest_dag(likely, graph.required).to(graph.logits.device)

    def initial_state(self, adjacency: Tensor | None = None) -> TrainState:
        """The state before the first step; with a DAG to be kept, straight in the phase "fixed"."""
        if self.configuration.fresh_start and not self.regime_steps:
            self._start_anew()
        return TrainState(
            model=copy.deepcopy(self.model.state_dict()),
            optimizer=copy.deepcopy(self.optimizer.state_dict()),
            rng=torch.get_rng_state(),
            lagrangian=self.configuration.lagrangian,
            phase="relaxed" if adjacency is None else "fixed",
            adjacency=adjacency,
        )

    def restore(self, state: TrainState) -> None:
        """Put model, optimiser and generator back to where the state says."""
        self.model.load_state_dict(state.model)
        self.optimizer.load_state_dict(copy.deepcopy(dict(state.optimizer)))
        torch.set_rng_state(state.rng)

    def run(
        self,
        state: TrainState,
        progress: Progress | None = None,
        after: Callable[[TrainState], None] | None = None,
        until: float = math.inf,
    ) -> tuple[TrainState, bool]:
        """Advance until done or to a step; returns the last good state, and whether the user interrupted.

        Raises
        ------
        DivergedError
            If the loss stays broken after repeated back-offs.
        """
        self.restore(state)
        back_offs = 0
        try:
            while state.phase != "done" and state.step < until:
                new = self._advance(state)
                if self._is_broken(new, state):
                    back_offs += 1
                    if back_offs > MAX_BACK_OFFS:
                        raise DivergedError(
                            f"The loss is not finite or explodes at step {state.step}, even at learning rate "
                            f"{self.configuration.learning_rate * state.rate_scale:.1e}. Try a smaller "
                            "learning_rate, or transform='rank-gaussian' for heavy tails."
                        )
                    note = f"step {state.step}: loss broke down, learning rate halved"
                    # another draw of the noise, or the same step would break in the same way
                    torch.manual_seed(state.step + 7919 * back_offs)
                    state = replace(
                        state,
                        rate_scale=0.5 * state.rate_scale,
                        rng=torch.get_rng_state(),
                        warnings=(*state.warnings, note),
                    )
                    self.restore(state)
                    continue
                state = new
                if progress is not None:
                    progress(dict(state.history[-1]))
                if after is not None:
                    after(state)
        except KeyboardInterrupt:
            self.restore(state)
            return state, True
        return state, False

    def _is_broken(self, new: TrainState, old: TrainState) -> bool:
        finite = math.isfinite(new.evidence) and all(
            bool(value.isfinite().all()) for name, value in new.model.items() if name != KNOWN_TARGETS
        )
        if not finite:
            return True
        limit = old.best - max(BROKEN_LOSS, BROKEN_SHARE * abs(old.best))
        return math.isfinite(old.best) and new.evidence < limit

    def _learning_rate(self, state: TrainState) -> float:
        """The configured rate; in the phase "fixed" it falls to a hundredth, to settle."""
        c = self.configuration
        rate = c.learning_rate * state.rate_scale
        if state.phase == "fixed" and c.final_steps:
            rate *= SETTLING ** (state.phase_step / c.final_steps)
        return rate

    def _phase_length(self, state: TrainState) -> int:
        c = self.configuration
        if state.phase == "fixed":
            return c.final_steps
        return self.regime_steps + c.first_steps if state.subproblem == 0 else c.steps

    def _targets_are_free(self, step: int) -> bool:
        """Whether targets cost nothing yet; they then learn as slowly as networks do."""
        return step < min(self.configuration.free_target_steps, self.regime_steps)

    def _regimes_are_held(self, step: int) -> bool:
        """Whether rows stay where the regime steps have put them."""
        return self.configuration.hold_regimes and 0 < self.regime_steps <= step

    @torch.no_grad()
    def _start_anew(self) -> None:
        """Targets without a hint, mechanisms as they were built, and nothing that the optimiser remembers of them."""
        logits, density = self.model.targets.logits, self.model.density
        logits.fill_(self.configuration.target_logit)
        density.load_state_dict(self.built)
        for parameter in (logits, *density.parameters()):
            self.optimizer.state.pop(parameter, None)

    def _labels(self, state: TrainState) -> Tensor:
        """Known labels, with guesses for the others while the run warms up."""
        warm = self.problem.warm_labels
        # relaxed edges blur every density; closed-form fits leave regimes to the polish that follows
        if self.configuration.closed_form:
            warming = state.phase == "relaxed"
        else:
            warming = state.step < self.configuration.first_steps // 2
        if warm is None or not warming:
            return self.problem.labels
        return torch.where(self.problem.labels == UNKNOWN, warm, self.problem.labels)

    def _advance(self, state: TrainState) -> TrainState:
        """One chunk of steps, then whatever is due: early stop, Lagrangian update, next phase."""
        c = self.configuration
        length = self._phase_length(state)
        half = c.first_steps // 2 if state.subproblem == 0 and state.phase == "relaxed" else 0
        marks = (
            (half, c.free_target_steps, self.regime_steps) if half else ()
        )  # where steps change their kind
        end = min((mark for mark in marks if state.phase_step < mark < length), default=length)
        n_steps = min(c.refresh, end - state.phase_step)
        labels = self._labels(state)
        moments = None
        if self.uses_moments:
            own = self.ranks.share(len(self.problem.x))
            moments = current_moments(self.model, self.problem.x[own], labels[own])
            self.ranks.sum_tensors(moments.second, moments.entropy)
        candidates = (
            None
            if self.uses_moments
            else likely_pairs(self.model, self.problem.x, labels, self.configuration.candidate_threshold)
        )
        graph = None if state.adjacency is None else GraphSample(state.adjacency[None])
        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate(state) * (
                1.0 if self._targets_are_free(state.step) else group["share"]
            )
        total, terms = 0.0, {}
        self.model.train()
        for i in range(n_steps):
            evidence, reached = self._step(state, state.step + i, labels, candidates, graph, moments)
            total += reached
            if i == n_steps - 1:
                terms = evidence.to_floats()
        with torch.no_grad():
            violation = float(self.measure(self.model.graph.probabilities()))
        mean = total / max(n_steps, 1) / len(self.problem.x)
        improved = mean > state.best + IMPROVEMENT * max(1.0, abs(state.best))
        entry = {
            "phase": state.phase,
            "step": state.step + n_steps,
            "subproblem": state.subproblem,
            "evidence": mean,
            "violation": violation,
            "regimes": self._n_regimes(moments),
            "penalty": state.lagrangian.penalty,
            "seconds": time.perf_counter() - self.started,
            "left": self._time_left(state, n_steps, violation),
            **{f"terms.{name}": value for name, value in terms.items()},
        }
        new = replace(
            state,
            model=copy.deepcopy(self.model.state_dict()),
            optimizer=copy.deepcopy(self.optimizer.state_dict()),
            rng=torch.get_rng_state(),
            step=state.step + n_steps,
            phase_step=state.phase_step + n_steps,
            best=max(mean, state.best),
            stale=0 if improved else state.stale + 1,
            evidence=mean,
            violation=violation,
            history=(*state.history, entry),
        )
        return self._move_on(new, length)

    @torch.no_grad()
    def _n_regimes(self, moments: Moments | None) -> int:
        """How many regimes a run that ended now would keep: the reference, those with labels, and no tiny others."""
        if moments is None:
            shares = torch.softmax(self.model.sticks.expected_log_weights(), 0)
        else:
            shares = moments.counts / moments.n_rows
        kept = shares >= self.configuration.min_share
        kept[0] = True
        kept[self.problem.labels[self.problem.labels != UNKNOWN]] = True
        return int(kept.sum())

    def _move_on(self, state: TrainState, length: int) -> TrainState:
        """Start the next sub-problem or phase if this one is over."""
        c = self.configuration
        if c.fresh_start and 0 < state.step == self.regime_steps:
            self._start_anew()
            return replace(
                state,
                model=copy.deepcopy(self.model.state_dict()),
                optimizer=copy.deepcopy(self.optimizer.state_dict()),
                best=float("-inf"),  # of other targets and mechanisms
                stale=0,
            )
        impatient = 0 < c.patience <= state.stale * c.refresh and state.phase_step > length // 2
        if state.phase_step < length and not impatient:
            return state
        state = replace(state, phase_step=0, best=float("-inf"), stale=0)
        if state.phase == "fixed":
            return replace(state, phase="done")
        finished = state.violation <= c.tolerance
        if not finished and state.subproblem + 1 < c.max_subproblems:
            return replace(
                state,
                subproblem=state.subproblem + 1,
                lagrangian=state.lagrangian.update(state.violation),
            )
        probabilities = self.model.graph.probabilities().detach()
        adjacency = nearest_dag(probabilities, self.model.graph.required).to(probabilities.dtype)
        return replace(state, phase="fixed" if c.final_steps else "done", adjacency=adjacency)

    def _step(
        self,
        state: TrainState,
        step: int,
        labels: Tensor,
        candidates: Tensor | None,
        graph: GraphSample | None,
        moments: Moments | None,
    ) -> tuple[Evidence, float]:
        """One gradient step on minus the bound a row, plus the Lagrangian's cost of cycles; the bound of all rows.

        With several ranks a step sees this rank's rows, and the weighted sum of all ranks' gradients is followed.
        """
        n = len(self.problem.x)
        edgeless = graph is None and step < self.regime_steps
        if edgeless:
            graph = GraphSample(self.first_edges[None].to(self.problem.x.dtype))
        self.optimizer.zero_grad(set_to_none=True)
        for parameter in self.held:
            parameter.requires_grad_(not self._regimes_are_held(step))
        weight = 1.0
        if moments is not None:
            evidence = self.model.moment_evidence(moments, self.problem.priors, graph)
        else:
            self.ranks.share_randomness()
            evidence, weight = self._row_evidence(step, labels, candidates, graph)
        cost = evidence.total.new_zeros(())
        if graph is None:
            cost = state.lagrangian.cost(self.measure(self.model.graph.probabilities()))
        (weight * (cost - evidence.total / n)).backward()  # type: ignore[no-untyped-call]
        reached = weight * evidence.total.detach()
        if moments is None:
            self.ranks.sum_gradients(self.model.parameters(), reached)
        if edgeless:
            self.model.graph.logits.grad = None  # or edges would follow their prior alone
        self.optimizer.step()
        if self.configuration.estimator == "exact":
            self._update_targets(state, step)
        return evidence, float(reached)

    @torch.no_grad()
    def _update_targets(self, state: TrainState, step: int) -> None:
        r"""A natural-gradient step on the target posterior, with an extra cost that fades.

        The bound is linear in :math:`\pi`, so its maximiser is :math:`\mathrm{logit}\, \pi_{kj} =
        \Delta_{kj} + \gamma - c` with the gain
        :math:`\Delta_{kj}` of an own mechanism; the gradient by the logits, divided by :math:`\pi (1 -
        \pi)`, is the way to it and does
        not vanish. Early on the reference mechanisms are still poor, and every regime would rather have its
        own: a cost a
        row, and a temperature with it, make the regimes with the largest gain leave first.
        """
        logits = self.model.targets.logits
        if logits.grad is None or not bool(self.model.targets.free.any()):
            return
        c = self.configuration
        p = torch.sigmoid(logits)
        way = -logits.grad * len(self.problem.x) / (p * (1.0 - p))
        first = state.subproblem == 0 and state.phase == "relaxed"
        proposed = c.propose and not c.closed_form  # then targets start from a good guess
        share = step / (c.anneal_share * c.first_steps) if first and not proposed else 1.0
        extra = 0.0
        if share < 1.0:
            extra = c.anneal_cost * (c.anneal_floor / c.anneal_cost) ** share
        counts = self.regime_counts[:, None]
        wanted = (way + logits - extra * counts) / (1.0 + ANNEALED_TEMPERATURE * extra * counts)
        logits.add_(c.target_step * (wanted.clamp(-LARGEST_TARGET_LOGIT, LARGEST_TARGET_LOGIT) - logits))
        logits.grad = None

    def _row_evidence(
        self, step: int, labels: Tensor, candidates: Tensor | None, graph: GraphSample | None
    ) -> tuple[Evidence, float]:
        """The configured bound on this rank's share of all rows or of a minibatch, and what that share weighs."""
        c = self.configuration
        x, n = self.problem.x, len(self.problem.x)
        draws = Draws(c.graph_samples, c.temperature_at(step))
        if c.batch_size is not None and c.batch_size < n:
            rows = torch.randint(n, (c.batch_size,), device=x.device)
            x, labels = x[rows], labels[rows]
            candidates = None if candidates is None else candidates[rows]
        if graph is None and self.ranks.size > 1:
            graph = self.model.sample_graph(draws, exact=c.estimator == "exact")
        own, graph = self._own_rows(len(x), graph)
        weight = (own.stop - own.start) / len(x)
        x, labels = x[own], labels[own]
        candidates = None if candidates is None else candidates[own]
        bound = self.model.exact_evidence
        if c.estimator == "sampled":
            bound = partial(self.model.sampled_evidence, kappa=c.kappa)
        priors = self.problem.priors
        if self._targets_are_free(step):
            priors = replace(priors, target_log_odds=0.0)
        evidence = bound(
            x,
            labels,
            priors,
            n,
            candidates=candidates,
            graph=graph,
            draws=draws,
        )
        return evidence, weight

    def _own_rows(self, n: int, graph: GraphSample | None) -> tuple[slice, GraphSample | None]:
        """Rows of this rank, and their graphs: whole groups, so that a row has the graph that it has in one process."""
        if graph is None or graph.n_groups == 1 or self.ranks.size == 1:
            return self.ranks.share(n), graph
        size = graph.group_size(n)
        groups = self.ranks.share(-(-n // size))
        rows = slice(groups.start * size, min(groups.stop * size, n))
        return rows, replace(graph, values=graph.values[groups])

    @property
    def uses_moments(self) -> bool:
        """Whether steps see moments instead of rows: linear densities with exact expectations."""
        return isinstance(self.model.density, LinearDensity) and self.configuration.estimator == "exact"

    def _time_left(self, state: TrainState, n_steps: int, violation: float) -> float:
        """Rough seconds left, if the violation keeps falling as the schedule intends."""
        c = self.configuration
        spent = time.perf_counter() - self.started
        done = state.step + n_steps
        left = float(c.final_steps) if state.phase == "relaxed" else 0.0
        left += self._phase_length(state) - state.phase_step - n_steps
        if state.phase == "relaxed" and violation > c.tolerance:
            left += c.steps * min(c.max_subproblems - state.subproblem, math.log2(violation / c.tolerance))
        return max(left, 0.0) * spent / max(done, 1)
