"""The gradient solvers' entry point: restarts, the choice among them, and the result."""

from __future__ import annotations

import time
import warnings as python_warnings
from collections.abc import Hashable

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from latentdo.data import Dataset
from latentdo.graphs import reachability
from latentdo.model.fitted import FittedModel
from latentdo.model.variants import Supervision
from latentdo.result import FitResult, Status
from latentdo.solvers.gradient.configuration import GradientConfiguration
from latentdo.solvers.gradient.edges import edge_probabilities
from latentdo.solvers.gradient.finish import labelled_responsibilities
from latentdo.solvers.gradient.loop import Progress
from latentdo.solvers.gradient.progress import TerminalProgress
from latentdo.solvers.gradient.proposal import Proposal
from latentdo.solvers.gradient.restart import Restart, choose, run_in_worker, run_restart
from latentdo.solvers.gradient.score import penalised_score


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
        Graph, targets and regimes to start from, for instance what structural search found; the fit may leave them.

    Returns
    -------
    FitResult
        The restart with the best held-out log-density (the sparsest within one standard error).
    """
    started = time.perf_counter()
    supervision = Supervision.from_dataset(dataset, configuration.max_regimes)
    seeds = np.random.SeedSequence(configuration.random_state).generate_state(configuration.n_init)
    jobs = [
        (dataset, supervision, configuration, int(seed), number, start) for number, seed in enumerate(seeds)
    ]
    restarts: list[Restart] = []
    if configuration.n_jobs == 1 or len(jobs) == 1:
        quiet = not configuration.verbose or progress is not None
        with TerminalProgress(disable=quiet) as show:
            for job in jobs:
                restarts.append(run_restart(*job, progress=show if progress is None else progress))
                if restarts[-1].interrupted:
                    break
    else:
        restarts = Parallel(n_jobs=configuration.n_jobs)(delayed(run_in_worker)(*job) for job in jobs)
    best = choose(restarts)
    result = _assemble(dataset, supervision, configuration, best, restarts, time.perf_counter() - started)
    if result.status == "not converged":
        python_warnings.warn(result.message, ConvergenceWarning, stacklevel=2)
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
