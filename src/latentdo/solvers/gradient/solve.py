"""The gradient solvers' entry point: restarts, the choice among them, and the result."""

from __future__ import annotations

import hashlib
import logging
import shutil
import time
import warnings as python_warnings
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from latentdo.data import Dataset
from latentdo.graphs import is_dag, reachability
from latentdo.model.assignments import UNKNOWN
from latentdo.model.fitted import Array, FittedModel
from latentdo.model.linear_mixture import LinearMixture
from latentdo.model.mixture import Architecture, LatentMixture, Priors
from latentdo.model.neural_mixture import NeuralMixture
from latentdo.model.variants import Supervision
from latentdo.result import FitResult, Status
from latentdo.solvers.gradient import checkpoint
from latentdo.solvers.gradient.configuration import GradientConfiguration
from latentdo.solvers.gradient.dag import nearest_dag
from latentdo.solvers.gradient.edges import edge_probabilities, prune_edges
from latentdo.solvers.gradient.finish import Finished, finish, labelled_responsibilities
from latentdo.solvers.gradient.loop import Problem, Progress, Trainer
from latentdo.solvers.gradient.polish import polish
from latentdo.solvers.gradient.progress import TerminalProgress
from latentdo.solvers.gradient.proposal import propose
from latentdo.solvers.gradient.score import penalised_score
from latentdo.solvers.gradient.starts import cluster_rows
from latentdo.solvers.gradient.state import TrainState

logger = logging.getLogger(__name__)


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
    reached : bool
        Whether the constraint reached its tolerance.
    interrupted : bool
        Whether the user stopped it.
    """

    finished: Finished
    state: TrainState
    held_out: Array
    reached: bool
    interrupted: bool


def solve(
    dataset: Dataset, configuration: GradientConfiguration, progress: Progress | None = None
) -> FitResult:
    """Fit the paper's model by gradients.

    Parameters
    ----------
    dataset : Dataset
        Rows and what is known about them; this decides the variant (latent, semi-supervised, unknown, known).
    configuration : GradientConfiguration
        How to fit; ``GradientConfiguration.paper()`` for the published algorithm.
    progress : callable, optional
        Called after every chunk of steps with evidence, violation and time left.

    Returns
    -------
    FitResult
        The restart with the best held-out log-density (the sparsest within one standard error).
    """
    started = time.perf_counter()
    supervision = Supervision.from_dataset(dataset, configuration.max_regimes)
    seeds = np.random.SeedSequence(configuration.random_state).generate_state(configuration.n_init)
    jobs = [(dataset, supervision, configuration, int(seed), number) for number, seed in enumerate(seeds)]
    restarts: list[Restart] = []
    if configuration.n_jobs == 1 or len(jobs) == 1:
        quiet = not configuration.verbose or progress is not None
        with TerminalProgress(disable=quiet) as show:
            for job in jobs:
                restarts.append(run_restart(*job, progress=show if progress is None else progress))
                if restarts[-1].interrupted:
                    break
    else:
        restarts = Parallel(n_jobs=configuration.n_jobs)(delayed(_run_in_worker)(*job) for job in jobs)
    best = choose(restarts)
    result = _assemble(dataset, supervision, configuration, best, restarts, time.perf_counter() - started)
    if result.status == "not converged":
        python_warnings.warn(result.message, ConvergenceWarning, stacklevel=2)
    return result


def choose(restarts: list[Restart]) -> Restart:
    """The best held-out log-density; if others come within one standard error of it, the sparsest of them."""
    best = max(restarts, key=lambda run: run.held_out.mean())

    def is_near(run: Restart) -> bool:
        behind = best.held_out - run.held_out  # the same rows, so their differences are what varies
        return bool(behind.mean() <= behind.std() / np.sqrt(len(behind)))

    def size(run: Restart) -> tuple[int, float]:
        topology = run.finished.model.topology
        return int(topology.adjacency.sum()) + int(topology.targets.sum()), -float(run.held_out.mean())

    return min(filter(is_near, restarts), key=size)


def _run_in_worker(*job: Any) -> Restart:
    """A restart in a process of its own: one thread, or the workers fight for cores."""
    torch.set_num_threads(1)
    return run_restart(*job)


def run_restart(
    dataset: Dataset,
    supervision: Supervision,
    configuration: GradientConfiguration,
    seed: int,
    number: int = 0,
    progress: Progress | None = None,
) -> Restart:
    """One run from one seed, in a fork of torch's generator."""
    c = configuration
    train, held = _split(dataset.n_rows, c.train_fraction, np.random.default_rng(c.random_state))
    rng = np.random.default_rng(seed)
    known = supervision.take(train)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        mixture = build(dataset.n_variables, supervision, c).to(c.device, dtype_of(c))
        if c.compile:
            compile_networks(mixture)
        problem = build_problem(dataset.z[train], known, c, rng)
        if c.propose and not c.closed_form and c.estimator == "exact":
            _start_from_proposal(mixture, problem, dataset.z[train], supervision, c, rng)
        trainer = Trainer(mixture, problem, c)
        path = None if c.checkpoint is None else Path(f"{c.checkpoint}.{number}")
        state, interrupted = _train(trainer, path, _fingerprint(dataset, c, seed), progress)
        reached = _is_acyclic(mixture) or state.violation <= c.tolerance
        if state.adjacency is None:
            state = replace(
                state, adjacency=nearest_dag(mixture.graph.probabilities(), mixture.graph.required)
            )
        adjacency = state.adjacency.cpu().numpy().astype(np.int8)  # type: ignore[union-attr]
        mixture.cpu().eval()
        finished = finish(mixture, adjacency, dataset.z[train], known, c.min_share)
        if c.closed_form and c.prune and isinstance(finished.model, LinearMixture):
            finished = _polish(finished, mixture, dataset.z[train], known, c, rng)
    if c.prune and c.estimator == "exact" and isinstance(finished.model, NeuralMixture):
        place = np.full(supervision.n_regimes + 1, -1)
        place[finished.kept] = np.arange(len(finished.kept))
        pruned = prune_edges(finished.model, dataset.z[held], place[supervision.labels[held]], len(train), c)
        finished = replace(finished, model=pruned)
    score = held_out_log_density(finished, dataset.z[held], supervision.labels[held])
    return Restart(finished, state, score, reached, interrupted)


@torch.no_grad()
def _start_from_proposal(
    mixture: LatentMixture,
    problem: Problem,
    z: Array,
    supervision: Supervision,
    configuration: GradientConfiguration,
    rng: np.random.Generator,
) -> None:
    """Set the logits of edges and targets to what a quick search under additive splines finds."""
    labels = problem.labels
    if problem.warm_labels is not None:
        labels = torch.where(labels == UNKNOWN, problem.warm_labels, labels)
    d = z.shape[1]
    proposal = propose(
        z,
        labels.cpu().numpy(),
        supervision.targets,
        np.broadcast_to(np.asarray(configuration.edge_log_odds, dtype=np.float64), (d, d)),
        mixture.graph.allowed.cpu().numpy(),
        mixture.graph.required.cpu().numpy(),
        perfect=configuration.intervention == "perfect",
        rng=rng,
    )
    for logits, values, size in (
        (mixture.graph.logits, proposal.adjacency, 2.0),
        (mixture.targets.logits, proposal.targets, 3.0),
    ):
        signs = torch.as_tensor(2.0 * values - 1.0, dtype=logits.dtype, device=logits.device)
        logits.add_(size * signs - logits.mean())


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
    configuration: GradientConfiguration,
    rng: np.random.Generator,
) -> Finished:
    """Let the penalised score have the last word on edges and targets."""
    assert isinstance(finished.model, LinearMixture)
    place = np.full(supervision.n_regimes + 1, -1)
    place[finished.kept] = np.arange(len(finished.kept))
    d = z.shape[1]
    model, _ = polish(
        finished.model,
        z,
        place[supervision.labels],
        supervision.targets[finished.kept],
        np.broadcast_to(np.asarray(configuration.edge_log_odds, dtype=np.float64), (d, d)),
        mixture.graph.allowed.numpy(),
        mixture.graph.required.numpy(),
        perfect=configuration.intervention == "perfect",
        rng=rng,
    )
    return Finished(model, finished.kept, np.where(model.topology.targets, 1.0, 0.0))


def held_out_log_density(finished: Finished, z: Array, labels: NDArray[np.int64]) -> Array:
    """Log-density of every row: with its label where there is one, else with the regimes summed out."""
    joint = finished.model.log_joint(z)
    place = np.full(max(int(finished.kept.max()), int(labels.max(initial=0))) + 2, -1)
    place[finished.kept] = np.arange(len(finished.kept))
    own = place[labels]
    top = joint.max(axis=1)
    free = top + np.log(np.exp(joint - top[:, None]).sum(axis=1))
    return np.asarray(np.where(own >= 0, joint[np.arange(len(z)), own], free))


def compile_networks(mixture: LatentMixture) -> bool:
    """Compile the networks' trunk in place, if there are any and a C++ compiler exists; says which in one log line."""
    trunk = getattr(mixture.density, "trunk", None)
    if trunk is None:
        return False
    if not any(shutil.which(name) for name in ("g++", "clang++", "c++")):
        logger.info("No C++ compiler found: networks run uncompiled.")
        return False
    trunk.compile(dynamic=True)
    return True


def dtype_of(configuration: GradientConfiguration) -> torch.dtype:
    """Steps on moments are tiny and cancel, so they run in float64; everything else in float32."""
    moments = configuration.density == "linear" and configuration.estimator == "exact"
    return torch.float64 if moments else torch.float32


def build(n_variables: int, supervision: Supervision, configuration: GradientConfiguration) -> LatentMixture:
    """A fresh model of the configured shape."""
    c = configuration
    shape = Architecture(
        density=c.density,
        perfect=c.intervention == "perfect",
        n_variables=n_variables,
        n_regimes=supervision.n_regimes,
        embedding_size=c.embedding_size,
        width=c.width,
        n_blocks=c.n_blocks,
        dropout=c.dropout,
        flow_layers=c.flow_layers,
        flow_units=c.flow_units,
        amortised=c.estimator == "sampled",
        closed_form=c.closed_form,
    )
    allowed = None if c.forbidden is None else torch.as_tensor(~np.asarray(c.forbidden, dtype=bool))
    required = None if c.required is None else torch.as_tensor(np.asarray(c.required, dtype=bool))
    return LatentMixture(
        shape,
        concentration=c.concentration,
        known_targets=torch.as_tensor(supervision.targets, dtype=torch.float32),
        allowed=allowed,
        required=required,
        edge_logit=c.edge_logit,
        edge_jitter=c.edge_jitter,
        target_logit=c.target_logit,
        embedding_scale=c.embedding_scale,
    )


def build_problem(
    z: Array, supervision: Supervision, configuration: GradientConfiguration, rng: np.random.Generator
) -> Problem:
    """Rows, labels, priors and (for a latent exact fit) a rough clustering to start from."""
    c = configuration
    n = len(z)
    xi = c.edge_log_odds
    priors = Priors(
        edge_log_odds=xi
        if isinstance(xi, float | int)
        else torch.as_tensor(xi, dtype=dtype_of(c), device=c.device),
        target_log_odds=c.target_log_odds,
        per_row=c.per_row_priors,
        per_row_embeddings=c.per_row_embeddings,
        parameter_cost=0.0 if c.per_row_priors else 0.5 * float(np.log(n)),
    )
    warm = None
    if c.estimator == "exact" and bool((supervision.labels == UNKNOWN).any()):
        warm = torch.as_tensor(
            cluster_rows(z, supervision.labels, supervision.n_regimes, rng), device=c.device
        )
    x = torch.as_tensor(z, dtype=dtype_of(c), device=c.device)
    return Problem(x, supervision.label_tensor(c.device), priors, warm)


def _split(n: int, fraction: float, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Training rows in random order, and held-out rows (the training rows again if none are left)."""
    order = rng.permutation(n)
    size = max(1, round(fraction * n))
    return order[:size], order[size:] if size < n else order


def _fingerprint(dataset: Dataset, configuration: GradientConfiguration, seed: int) -> str:
    """Identify data and configuration, so that no checkpoint continues another fit."""
    plain = replace(configuration, checkpoint=None, n_jobs=1, verbose=False).to_dict()
    regimes = b"" if dataset.regimes is None else dataset.regimes.tobytes()
    targets = b"" if dataset.targets is None else dataset.targets.tobytes()
    text = f"{dataset.content_hash()}{sorted(plain.items())}{seed}".encode()
    return hashlib.sha256(text + regimes + targets).hexdigest()


def _train(
    trainer: Trainer, path: Path | None, fingerprint: str, progress: Progress | None
) -> tuple[TrainState, bool]:
    """Run to the end, writing a checkpoint now and then and at an interruption."""
    if path is None:
        return trainer.run(trainer.initial_state(), progress)
    last = time.monotonic()

    def after(state: TrainState) -> None:
        nonlocal last
        if state.phase == "done" or time.monotonic() - last >= trainer.configuration.checkpoint_seconds:
            checkpoint.save(path, state, fingerprint)
            last = time.monotonic()

    state = checkpoint.load(path, fingerprint) or trainer.initial_state()
    state, interrupted = trainer.run(state, progress, after)
    if interrupted:
        checkpoint.save(path, state, fingerprint)
    return state, interrupted


def _names(dataset: Dataset, kept: NDArray[np.int64]) -> tuple[Hashable, ...]:
    """Names of the regimes: the user's labels, then numbered newcomers."""
    labels = dataset.regime_labels
    if not labels:
        return tuple(range(len(kept)))
    return tuple(labels[k] if k < len(labels) else f"latent-{k}" for k in kept)


def _assemble(
    dataset: Dataset,
    supervision: Supervision,
    configuration: GradientConfiguration,
    best: Restart,
    restarts: list[Restart],
    seconds: float,
) -> FitResult:
    """The result of the chosen restart, on all rows."""
    c = configuration
    model: FittedModel = best.finished.model
    place = np.full(supervision.n_regimes + 1, -1)
    place[best.finished.kept] = np.arange(len(best.finished.kept))
    labels = place[supervision.labels]
    terms = penalised_score(model, dataset.z, labels, c)
    edges = edge_probabilities(model, dataset.z, labels, c)
    status: Status = "converged"
    message = f"{supervision.variant}: acyclic after {best.state.subproblem + 1} sub-problems"
    if not best.reached:
        status = "not converged"
        message = (
            f"The acyclicity constraint stopped at {best.state.violation:.1e}, above {c.tolerance:.0e}: "
            "cycles were cut at their least probable edges. Try more sub-problems or another random_state."
        )
    if any(run.interrupted for run in restarts):
        status, message = "interrupted", "Stopped by the user: this is the best state so far. " + message
    return FitResult(
        model=model,
        columns=dataset.columns,
        preprocessor=dataset.preprocessor,
        regime_names=_names(dataset, best.finished.kept),
        responsibilities=labelled_responsibilities(model, dataset.z, labels),
        edge_probabilities=edges,
        ancestor_probabilities=reachability(model.topology.adjacency).astype(np.float64),
        target_probabilities=best.finished.target_probabilities,
        evidence=terms["total"],
        evidence_terms=terms | {"held_out": float(best.held_out.mean())},
        solver="gradient" if c.estimator == "exact" else "paper",
        density=c.density,
        intervention=c.intervention,
        status=status,
        message=message,
        history=best.state.history,
        comparison=tuple(
            {
                "restart": i,
                "held_out": float(run.held_out.mean()),
                "edges": int(run.finished.model.topology.adjacency.sum()),
            }
            for i, run in enumerate(restarts)
        ),
        configuration=c.to_dict(),
        data_hash=dataset.content_hash(),
        seconds=seconds,
        warnings=best.state.warnings,
    )
