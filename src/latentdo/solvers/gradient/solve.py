"""The gradient solvers' entry point: restarts, the choice among them, and the result."""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import replace

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from latentdo.data import Dataset
from latentdo.forks import prepare_torch
from latentdo.graphs import reachability
from latentdo.model.assignments import UNKNOWN
from latentdo.model.fitted import Array, FittedModel
from latentdo.model.linear_mixture import LinearMixture
from latentdo.model.neural_mixture import NeuralMixture
from latentdo.model.variants import Supervision
from latentdo.notices import warn
from latentdo.result import FitResult, Status
from latentdo.solvers.gradient.build import check_device, edge_constraints
from latentdo.solvers.gradient.configuration import GradientConfiguration
from latentdo.solvers.gradient.edges import edge_probabilities, without_edge
from latentdo.solvers.gradient.finish import Finished, labelled_responsibilities
from latentdo.solvers.gradient.loop import Progress
from latentdo.solvers.gradient.progress import TerminalProgress
from latentdo.solvers.gradient.proposal import Proposal
from latentdo.solvers.gradient.restart import Restart, agree, choose, run_in_worker, run_restart
from latentdo.solvers.gradient.score import penalised_score
from latentdo.solvers.gradient.settle import settle
from latentdo.solvers.gradient.starts import search_structure

ROWS_A_REGIME = 10
"""Rows a regime and variable below which the published algorithm is known to return noise."""


def solve(
    dataset: Dataset,
    configuration: GradientConfiguration,
    progress: Progress | None = None,
    start: Proposal | None = None,
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
    start : Proposal, optional
        Graph, targets and regimes to start from, for instance another solver's (:meth:`Proposal.from_result`); the fit
        may leave them. Without one, fits that have to find regimes and fits of networks start from what structural
        search finds: a plain clustering into ``max_regimes`` parts would shatter small tables, and networks are slow
        judges of structure.

    Returns
    -------
    FitResult
        The best restart, see :func:`.restart.choose`.
    """
    started = time.perf_counter()
    c = configuration
    check_device(c.device)
    prepare_torch()
    supervision = Supervision.from_dataset(dataset, c.max_regimes)
    warnings = _too_few_rows(dataset, supervision, c)
    hidden = supervision.n_regimes > 1 and bool((supervision.labels == UNKNOWN).any())
    found = None
    if start is None and (hidden or not c.closed_form) and c.propose and c.estimator == "exact":
        found = search_structure(dataset, c)
        if found.status == "interrupted":
            return replace(
                found, message="Stopped by the user: this is what structural search had found so far."
            )
        start = Proposal.from_result(found)
    if start is not None and hidden:
        supervision = supervision.limit(max(len(start.targets), dataset.n_regimes))
    # the search has made its own starts; more runs from what it found would end where the first does
    n_init = 1 if found is not None else c.n_init
    seeds = np.random.SeedSequence(c.random_state).generate_state(n_init)
    jobs = [(dataset, supervision, c, int(seed), number, start) for number, seed in enumerate(seeds)]
    by_score = hidden or c.closed_form
    restarts: list[Restart] = []
    if c.n_jobs == 1 or len(jobs) == 1:
        quiet = not c.verbose or progress is not None
        with TerminalProgress(disable=quiet) as show:
            for job in jobs:
                restarts.append(run_restart(*job, progress=show if progress is None else progress))
                if restarts[-1].interrupted or (by_score and agree(restarts)):
                    break
    else:
        runs = Parallel(n_jobs=c.n_jobs, return_as="generator")(delayed(run_in_worker)(*job) for job in jobs)
        try:
            for run in runs:
                if not (
                    by_score and agree(restarts)
                ):  # those that a fit in sequence would not have run do not count
                    restarts.append(run)
        except KeyboardInterrupt:
            if not restarts:
                raise
            restarts[-1] = replace(restarts[-1], interrupted=True)
    best = choose(restarts, by_score=by_score)
    result = _assemble(dataset, supervision, c, best, restarts, warnings)
    result = replace(result, seconds=time.perf_counter() - started)
    if result.status == "not converged":
        warn(result.message, ConvergenceWarning, stacklevel=2)
    return result


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
    warnings: tuple[str, ...],
) -> FitResult:
    """The result of the chosen restart, on all rows."""
    c = configuration
    labels = best.finished.own_labels(supervision.labels)
    model, edges, notes = _show(dataset, supervision, c, best.finished)
    terms = penalised_score(model, dataset.z, labels, c)
    targets = best.finished.target_probabilities
    if model is not best.finished.model:
        targets = np.where(model.topology.targets == (targets > 0.5), targets, model.topology.targets)
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
        target_probabilities=targets,
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
                "evidence": run.score,
                "held_out": float(run.held_out.mean()),
                "edges": int(run.finished.model.topology.adjacency.sum()),
            }
            for i, run in enumerate(restarts)
        ),
        configuration=c.to_dict(),
        data_hash=dataset.content_hash(),
        warnings=(*warnings, *notes, *best.state.warnings),
    )


def _show(
    dataset: Dataset, supervision: Supervision, configuration: GradientConfiguration, finished: Finished
) -> tuple[FittedModel, Array, tuple[str, ...]]:
    """The model to show, edge probabilities that do not contradict its graph, and what to warn of."""
    c, model = configuration, finished.model
    labels = finished.own_labels(supervision.labels)
    d = dataset.n_variables
    allowed, required = edge_constraints(d, c)
    if c.closed_form and c.prune and isinstance(model, LinearMixture):
        prior = np.broadcast_to(np.asarray(c.edge_log_odds, dtype=np.float64), (d, d))
        known = supervision.targets[finished.kept]
        perfect = c.intervention == "perfect"
        settled, edges = settle(model, dataset.z, labels, known, prior, allowed, required, perfect=perfect)
        return settled, edges, ()
    edges = edge_probabilities(model, dataset.z, labels, c)
    if c.prune and isinstance(model, NeuralMixture):
        while True:
            doubtful = np.where((model.topology.adjacency == 1) & ~required, edges, np.inf)
            i, j = (int(at) for at in np.unravel_index(doubtful.argmin(), (d, d)))
            if doubtful[i, j] >= 0.5:
                return model, edges, ()
            model = without_edge(model, i, j)
            edges = edge_probabilities(model, dataset.z, labels, c)
    unsupported = int(((model.topology.adjacency == 1) & ~required & (edges < 0.5)).sum())
    note = (
        f"{unsupported} edges of the graph are not worth their parameters (edge probability below one half)"
    )
    return model, edges, (note,) if unsupported else ()


def _too_few_rows(
    dataset: Dataset, supervision: Supervision, configuration: GradientConfiguration
) -> tuple[str, ...]:
    """Warn where a sampled fit cannot mean anything: its networks and per-row weights are made for large tables."""
    needed = ROWS_A_REGIME * supervision.n_regimes * dataset.n_variables
    if configuration.estimator != "sampled" or dataset.n_rows >= needed:
        return ()
    note = (
        f"solver='paper' needs about {needed} rows for {dataset.n_variables} variables and "
        f"{supervision.n_regimes} regimes, and there are {dataset.n_rows}: its graph is not to be relied on. "
        "Use solver='auto' or 'search', or a smaller max_regimes."
    )
    warn(note, UserWarning, stacklevel=3)
    return (note,)
