"""One run from one seed: split, train, harden, and end where the structural search would."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from latentdo.data import Dataset
from latentdo.files import CHECKPOINT_SECONDS, Keeper
from latentdo.graphs import is_dag
from latentdo.model.assignment import LIKELY
from latentdo.model.fitted import Array
from latentdo.model.variational.assignments import UNKNOWN
from latentdo.model.variational.densities import LinearDensity
from latentdo.model.variational.mixture import LatentMixture
from latentdo.model.variational.supervision import Supervision
from latentdo.ranks import LostRankError
from latentdo.solvers.gradient import checkpoint
from latentdo.solvers.gradient.build import (
    build,
    compile_networks,
    dtype_of,
    recipes_of,
    start_from,
    training_rows,
)
from latentdo.solvers.gradient.configuration import GradientConfiguration
from latentdo.solvers.gradient.dag import nearest_dag
from latentdo.solvers.gradient.edges import prune_edges
from latentdo.solvers.gradient.harden import finish
from latentdo.solvers.gradient.loop import Progress, Trainer, TrainingRows
from latentdo.solvers.gradient.proposal import Proposal
from latentdo.solvers.gradient.state import TrainState
from latentdo.solvers.search.em import relearn, weigh
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import AGREEMENT


@dataclass(frozen=True, eq=False)
class Restart:
    """One finished run.

    Parameters
    ----------
    end : State
        Its fitted model, with its evidence on all rows.
    target_probabilities : ndarray [n_regimes, d]
        What training ended with, of the regimes that were left then.
    state : TrainState
        Where training ended.
    held_out : ndarray [n_held_out]
        Log-density of every held-out row; all restarts hold out the same.
    reached : bool
        Whether the constraint reached its tolerance.
    interrupted : bool
        Whether the user stopped it.
    """

    end: State
    target_probabilities: Array
    state: TrainState
    held_out: Array
    reached: bool
    interrupted: bool


def choose(restarts: list[Restart], *, by_evidence: bool) -> Restart:
    """The best evidence, or the best held-out log-density.

    Held-out log-density is too generous for structure: if others come within one standard error of the best, the
    sparsest of them is taken. Where regimes had to be found, and where mechanisms are at their optimum given the
    structure, the evidence decides: it charges for every regime, target and edge.
    """
    if by_evidence:
        return max(restarts, key=lambda run: run.end.evidence)
    best = max(restarts, key=lambda run: run.held_out.mean())

    def is_near(run: Restart) -> bool:
        behind = best.held_out - run.held_out  # the same rows, so their differences are what varies
        return bool(behind.mean() <= behind.std() / np.sqrt(len(behind)))

    def size(run: Restart) -> tuple[int, float]:
        topology = run.end.model.topology
        return int(topology.adjacency.sum()) + int(topology.targets.sum()), -float(run.held_out.mean())

    return min(filter(is_near, restarts), key=size)


def agree(restarts: list[Restart]) -> bool:
    """Whether the last run reached the best evidence of those before it: more would find the same again."""
    *others, last = [run.end.evidence for run in restarts] or [np.nan]
    return bool(others) and abs(last - max(others)) < AGREEMENT


@dataclass(frozen=True, eq=False)
class Job:
    """What one restart needs.

    Parameters
    ----------
    dataset, problem, supervision
        Rows, and what is known of them.
    configuration : GradientConfiguration
        How to fit.
    seed, number : int
        Its randomness, and which of the restarts it is: the name of its checkpoint.
    start : Proposal, optional
        Where it starts, if anything is proposed.
    progress : callable, optional
        Called after every chunk of steps.
    """

    dataset: Dataset
    problem: Problem
    supervision: Supervision
    configuration: GradientConfiguration
    seed: int
    number: int = 0
    start: Proposal | None = None
    progress: Progress | None = None


def run_in_worker(job: Job) -> Restart:
    """A restart in a process of its own: one thread, or the workers fight for cores."""
    torch.set_num_threads(1)
    return run_restart(job)


def run_restart(job: Job) -> Restart:
    """The best run from one seed.

    Networks can repair a proposal and can spoil it. So fresh networks are trained on both graphs, each held fixed: the
    same training for both, unlike the run that found one of them. The evidence decides.
    """
    c, start = job.configuration, job.start
    train, _ = split(job.dataset.n_rows, c.train_fraction, c.random_state)
    rng = np.random.default_rng(job.seed)
    known = job.supervision.take(train)
    here = None if start is None else start.take(train)
    guess = None if here is None else here.labels
    rows = training_rows(job.dataset.z[train], known, c, rng, guess, recipes_of(job.dataset))
    networks = c.estimator == "exact" and not c.closed_form
    first = _run(job, rows, here)
    if here is None or not (networks and c.propose):
        return first
    runs = [first]
    found = _structure(first, job.supervision.n_regimes)
    for number_of_run, kept in enumerate((here, found)):
        if runs[-1].interrupted or (number_of_run and np.array_equal(kept.adjacency, here.adjacency)):
            break
        runs.append(_run(job, rows, kept, keep=f".{number_of_run}"))
    return max(runs, key=lambda run: run.end.evidence)


def _structure(run: Restart, n_regimes: int) -> Proposal:
    """Graph and targets of a run, with a row for every regime that it was offered."""
    topology = run.end.model.topology
    targets = np.zeros((n_regimes, len(topology.adjacency)), dtype=np.int8)
    targets[: topology.n_regimes] = topology.targets
    return Proposal(topology.adjacency, targets)


def _run(job: Job, rows: TrainingRows, proposal: Proposal | None, *, keep: str = "") -> Restart:
    """Train in a fork of torch's generator, harden, climb where mechanisms are linear, and weigh.

    With ``keep`` the proposal's graph is held fixed; the value names the run's checkpoint.
    """
    dataset, problem, supervision = job.dataset, job.problem, job.supervision
    c, start = job.configuration, job.start
    if keep:
        c = replace(c, final_steps=c.first_steps + c.final_steps)
    train, held = split(dataset.n_rows, c.train_fraction, c.random_state)
    known = supervision.take(train)
    z = dataset.z[train]
    path = None if c.checkpoint is None else Path(f"{c.checkpoint}.{job.number}{keep}")
    with torch.random.fork_rng(devices=[]):
        trainer, first, interrupted = _first_state(job, c, rows, proposal, path, keep=bool(keep))
        mixture, state = trainer.model, first
        if not interrupted:
            state, interrupted = _train(
                trainer, first, path, _fingerprint(dataset, c, job.seed, start), job.progress
            )
        reached = bool(keep) or _is_acyclic(mixture) or state.violation <= c.tolerance
        if state.adjacency is None:
            state = replace(
                state, adjacency=nearest_dag(mixture.graph.probabilities(), mixture.graph.required)
            )
        adjacency = state.adjacency.cpu().numpy().astype(np.int8)  # type: ignore[union-attr]
        mixture.cpu().eval()
        finished = finish(mixture, adjacency, z, known, c.min_share, problem.n_labelled)
    if c.prune and not isinstance(mixture.density, LinearDensity):
        own = finished.own_labels(supervision.labels[held])
        shares = finished.model.assign(dataset.z[held], own).responsibilities
        finished = replace(finished, model=prune_edges(problem, finished.model, dataset.z[held], shares))
    end = weigh(problem, finished.model)
    if c.closed_form and c.prune:
        starts = [(end.responsibilities, end.adjacency)]
        if proposal is not None and start is not None and start.labels is not None:
            starts.append((problem.clamp(np.eye(len(start.targets))[start.labels]), start.adjacency))
        end = climb(problem, starts)
    labels = supervision.labels[held]
    known_rows = np.where(labels < end.n_regimes, labels, UNKNOWN)
    held_out = end.model.assign(dataset.z[held], known_rows).log_likelihood
    return Restart(end, finished.target_probabilities, state, held_out, reached, interrupted)


def _first_state(
    job: Job,
    configuration: GradientConfiguration,
    rows: TrainingRows,
    proposal: Proposal | None,
    path: Path | None,
    *,
    keep: bool,
) -> tuple[Trainer, TrainState, bool]:
    """Where training starts, and whether the user stopped it before.

    If rows have to form regimes first, they do so from several starts, and the best bound goes on. Not where a
    checkpoint does: it is of the start that was chosen.
    """
    c = configuration

    def trainer_of(seed: int) -> Trainer:
        torch.manual_seed(seed)
        supervision = job.supervision
        mixture = build(job.dataset.n_variables, supervision, c, recipes_of(job.dataset))
        mixture = mixture.to(c.device, dtype_of(c))
        if c.compile:
            compile_networks(mixture)
        if proposal is not None:
            start_from(mixture, proposal, c.proposal_strength)
        return Trainer(mixture, rows, c)

    trainer = trainer_of(job.seed)
    if keep and proposal is not None:
        kept = torch.as_tensor(proposal.adjacency, dtype=dtype_of(c), device=c.device)
        return trainer, trainer.initial_state(kept), False
    state, interrupted = trainer.initial_state(), False
    if not trainer.regime_steps or c.regime_starts == 1 or (path is not None and path.exists()):
        return trainer, state, False
    tried = []
    for seed in (job.seed, *np.random.SeedSequence(job.seed).generate_state(c.regime_starts - 1)):
        trainer = trainer_of(int(seed))
        state, interrupted = trainer.run(trainer.initial_state(), job.progress, until=trainer.regime_steps)
        tried.append((trainer, state))
        if interrupted:
            break
    trainer, state = max(tried, key=lambda start: start[1].evidence)
    trainer.restore(state)
    return trainer, state, interrupted


@torch.no_grad()
def _is_acyclic(mixture: LatentMixture) -> bool:
    """Whether the edges above one half already form a DAG, so that nothing has to be cut."""
    likely = (mixture.graph.probabilities() > LIKELY).cpu().numpy()
    return is_dag(likely.astype(np.int8))


def climb(problem: Problem, starts: Iterable[tuple[Array, NDArray[np.int8]]]) -> State:
    """Where structural EM ends from responsibilities and a graph: the best of several such starts."""
    ends = [relearn(problem, shares, adjacency=graph, thorough=True) for shares, graph in starts]
    return max(ends, key=lambda state: state.evidence)


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
