"""One run from one seed: split, train, harden, polish, score on held-out rows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from latentdo.data import Dataset
from latentdo.files import CHECKPOINT_SECONDS, Keeper
from latentdo.graphs import is_dag
from latentdo.model.fitted import Array
from latentdo.model.linear_mixture import LinearMixture
from latentdo.model.mixture import LatentMixture
from latentdo.model.neural_mixture import NeuralMixture
from latentdo.model.variants import Supervision
from latentdo.ranks import LostRankError
from latentdo.solvers.gradient import checkpoint
from latentdo.solvers.gradient.build import (
    build,
    build_problem,
    compile_networks,
    dtype_of,
    start_from,
)
from latentdo.solvers.gradient.configuration import GradientConfiguration
from latentdo.solvers.gradient.dag import nearest_dag
from latentdo.solvers.gradient.edges import prune_edges
from latentdo.solvers.gradient.finish import Finished, finish
from latentdo.solvers.gradient.loop import Problem, Progress, Trainer
from latentdo.solvers.gradient.polish import fit_linear, moments_of, polish
from latentdo.solvers.gradient.proposal import Proposal
from latentdo.solvers.gradient.score import penalised_score
from latentdo.solvers.gradient.state import TrainState

AGREEMENT = 0.5
"""Two runs whose scores differ by fewer nats have found the same optimum."""


@dataclass(frozen=True, eq=False)
class Restart:
    """One finished run.

    Parameters
    ----------
    finished : Finished
        Its fitted model.
    state : TrainState
        Where training ended.
    held_out : ndarray [n_held_out]
        Log-density of every held-out row; all restarts hold out the same.
    score : float
        Penalised score of all rows.
    reached : bool
        Whether the constraint reached its tolerance.
    interrupted : bool
        Whether the user stopped it.
    """

    finished: Finished
    state: TrainState
    held_out: Array
    score: float
    reached: bool
    interrupted: bool


def choose(restarts: list[Restart], *, by_score: bool) -> Restart:
    """The best penalised score, or the best held-out log-density.

    Held-out log-density is too generous for structure: if others come within one standard error of the best, the
    sparsest of them is taken. Where regimes had to be found, and where mechanisms are at their optimum given the
    structure, the penalised score decides: it charges for every regime, target and edge.
    """
    if by_score:
        return max(restarts, key=lambda run: run.score)
    best = max(restarts, key=lambda run: run.held_out.mean())

    def is_near(run: Restart) -> bool:
        behind = best.held_out - run.held_out  # the same rows, so their differences are what varies
        return bool(behind.mean() <= behind.std() / np.sqrt(len(behind)))

    def size(run: Restart) -> tuple[int, float]:
        topology = run.finished.model.topology
        return int(topology.adjacency.sum()) + int(topology.targets.sum()), -float(run.held_out.mean())

    return min(filter(is_near, restarts), key=size)


def agree(restarts: list[Restart]) -> bool:
    """Whether the last run reached the best score of those before it: then more of them would find the same again."""
    *others, last = [run.score for run in restarts] or [np.nan]
    return bool(others) and abs(last - max(others)) < AGREEMENT


def run_in_worker(*job: Any) -> Restart:
    """A restart in a process of its own: one thread, or the workers fight for cores."""
    torch.set_num_threads(1)
    return run_restart(*job)


def run_restart(
    dataset: Dataset,
    supervision: Supervision,
    configuration: GradientConfiguration,
    seed: int,
    number: int = 0,
    start: Proposal | None = None,
    progress: Progress | None = None,
) -> Restart:
    """The best run from one seed; ``start`` is where it starts, if anything is proposed.

    Networks can repair a proposal and can spoil it. So fresh networks are trained on both graphs, each held fixed: the
    same training for both, unlike the run that found one of them. The penalised score decides.
    """
    c = configuration
    train, _ = split(dataset.n_rows, c.train_fraction, c.random_state)
    rng = np.random.default_rng(seed)
    known = supervision.take(train)
    here = None if start is None else start.take(train)
    problem = build_problem(dataset.z[train], known, c, rng, None if here is None else here.labels)
    networks = c.estimator == "exact" and not c.closed_form
    run = partial(_run, dataset, supervision, c, problem, seed, number, start, rng, progress)
    first = run(here)
    if here is None or not (networks and c.propose):
        return first
    runs = [first]
    found = _structure(first.finished, supervision.n_regimes)
    for number_of_run, kept in enumerate((here, found)):
        if runs[-1].interrupted or (number_of_run and np.array_equal(kept.adjacency, here.adjacency)):
            break
        runs.append(run(kept, keep=f".{number_of_run}"))
    return max(runs, key=lambda run: run.score)


def _structure(finished: Finished, n_regimes: int) -> Proposal:
    """Graph and targets of a run, with a row for every regime that it was offered."""
    topology = finished.model.topology
    targets = np.zeros((n_regimes, len(topology.adjacency)), dtype=np.int8)
    targets[finished.kept] = topology.targets
    return Proposal(topology.adjacency, targets)


def _run(
    dataset: Dataset,
    supervision: Supervision,
    configuration: GradientConfiguration,
    problem: Problem,
    seed: int,
    number: int,
    start: Proposal | None,
    rng: np.random.Generator,
    progress: Progress | None,
    proposal: Proposal | None,
    *,
    keep: str = "",
) -> Restart:
    """Train in a fork of torch's generator, harden, polish and score.

    With ``keep`` the proposal's graph is held fixed; the value names the run's checkpoint.
    """
    c = configuration
    if keep:
        c = replace(c, final_steps=c.first_steps + c.final_steps)
    train, held = split(dataset.n_rows, c.train_fraction, c.random_state)
    known = supervision.take(train)
    z = dataset.z[train]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        mixture = build(dataset.n_variables, supervision, c).to(c.device, dtype_of(c))
        if c.compile:
            compile_networks(mixture)
        if proposal is not None:
            start_from(mixture, proposal, c.proposal_strength)
        trainer = Trainer(mixture, problem, c)
        first = trainer.initial_state()
        if keep and proposal is not None:
            kept = torch.as_tensor(proposal.adjacency, dtype=dtype_of(c), device=c.device)
            first = trainer.initial_state(kept)
        path = None if c.checkpoint is None else Path(f"{c.checkpoint}.{number}{keep}")
        state, interrupted = _train(trainer, first, path, _fingerprint(dataset, c, seed, start), progress)
        reached = bool(keep) or _is_acyclic(mixture) or state.violation <= c.tolerance
        if state.adjacency is None:
            state = replace(
                state, adjacency=nearest_dag(mixture.graph.probabilities(), mixture.graph.required)
            )
        adjacency = state.adjacency.cpu().numpy().astype(np.int8)  # type: ignore[union-attr]
        mixture.cpu().eval()
        finished = finish(mixture, adjacency, z, known, c.min_share)
        if c.closed_form and c.prune:
            finished = _polish(finished, mixture, z, known, proposal, c, rng)
    if c.prune and c.estimator == "exact" and isinstance(finished.model, NeuralMixture):
        own = finished.own_labels(supervision.labels[held])
        pruned = prune_edges(finished.model, dataset.z[held], own, len(train), c)
        finished = replace(finished, model=pruned)
    score = penalised_score(finished.model, dataset.z, finished.own_labels(supervision.labels), c)["total"]
    held_out = held_out_log_density(finished, dataset.z[held], supervision.labels[held])
    return Restart(finished, state, held_out, score, reached, interrupted)


@torch.no_grad()
def _is_acyclic(mixture: LatentMixture) -> bool:
    """Whether the edges above one half already form a DAG, so that nothing has to be cut."""
    likely = (mixture.graph.probabilities() > 0.5).cpu().numpy()
    return is_dag(likely.astype(np.int8))


def _polish(
    finished: Finished,
    mixture: LatentMixture,
    z: Array,
    supervision: Supervision,
    proposal: Proposal | None,
    configuration: GradientConfiguration,
    rng: np.random.Generator,
) -> Finished:
    """Let the penalised score have the last word on edges and targets, and on whether to leave the proposal at all."""
    c = configuration
    perfect = c.intervention == "perfect"
    d = z.shape[1]
    starts = [finished]
    fits = proposal is not None and len(proposal.targets) <= supervision.n_regimes
    if fits and proposal is not None and proposal.labels is not None:
        everything = np.arange(len(proposal.targets))
        shares = np.eye(len(everything))[proposal.labels]
        model = fit_linear(moments_of(z, shares), proposal.adjacency, proposal.targets, perfect=perfect)
        starts.append(Finished(model, everything, proposal.targets.astype(np.float64)))
    ends = []
    for start in starts:
        assert isinstance(start.model, LinearMixture)
        labels = start.own_labels(supervision.labels)
        model, _ = polish(
            start.model,
            z,
            labels,
            supervision.targets[start.kept],
            np.broadcast_to(np.asarray(c.edge_log_odds, dtype=np.float64), (d, d)),
            mixture.graph.allowed.numpy(),
            mixture.graph.required.numpy(),
            perfect=perfect,
            rng=rng,
            n_kicks=None if start is finished else 0,  # the proposal is an optimum of a search already
        )
        end = Finished(model, start.kept, np.where(model.topology.targets, 1.0, 0.0))
        ends.append((penalised_score(model, z, labels, c)["total"], end))
    return max(ends, key=lambda end: end[0])[1]


def held_out_log_density(finished: Finished, z: Array, labels: NDArray[np.int64]) -> Array:
    """Log-density of every row: with its label where there is one, else with the regimes summed out."""
    joint = finished.model.log_joint(z)
    own = finished.own_labels(labels)
    top = joint.max(axis=1)
    free = top + np.log(np.exp(joint - top[:, None]).sum(axis=1))
    return np.asarray(np.where(own >= 0, joint[np.arange(len(z)), own], free))


def split(n: int, fraction: float, random_state: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Training rows in random order, and held-out rows (the training rows again if none are left)."""
    order = np.random.default_rng(random_state).permutation(n)
    size = max(1, round(fraction * n))
    return order[:size], order[size:] if size < n else order


def _fingerprint(
    dataset: Dataset, configuration: GradientConfiguration, seed: int, start: Proposal | None
) -> str:
    """Identify data and configuration, so that no checkpoint continues another fit."""
    plain = replace(
        configuration, checkpoint=None, checkpoint_seconds=CHECKPOINT_SECONDS, n_jobs=1, verbose=False
    ).to_dict()
    regimes = b"" if dataset.regimes is None else dataset.regimes.tobytes()
    targets = b"" if dataset.targets is None else dataset.targets.tobytes()
    text = f"{dataset.content_hash()}{sorted(plain.items())}{seed}".encode()
    proposed = b"" if start is None else start.content()
    return hashlib.sha256(text + regimes + targets + proposed).hexdigest()


def _train(
    trainer: Trainer, first: TrainState, path: Path | None, fingerprint: str, progress: Progress | None
) -> tuple[TrainState, bool]:
    """Run to the end, writing a checkpoint now and then and at an interruption."""
    if path is None:
        return trainer.run(first, progress)
    latest = checkpoint.load(path, fingerprint, trainer.restore) or first
    trainer.ranks.wait()  # or a rank that is late would find what this run has written
    keeper = Keeper(
        path,
        lambda place: checkpoint.save(place, latest, fingerprint),
        trainer.configuration.checkpoint_seconds,
    )

    def after(state: TrainState) -> None:
        nonlocal latest
        latest = state
        if trainer.ranks.is_first:
            (keeper.keep if state.phase == "done" else keeper.step)()

    try:
        state, interrupted = trainer.run(latest, progress, after)
    except LostRankError as error:
        checkpoint.save(path, latest, fingerprint)
        raise LostRankError(
            f"{error}; what was computed up to step {latest.step} is kept, and the same command with --resume goes on"
        ) from error
    if interrupted:
        latest = state
        keeper.keep()
    return state, interrupted
