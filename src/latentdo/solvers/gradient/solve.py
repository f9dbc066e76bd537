"""The gradient solvers' entry point: restarts, the choice among them, and the result."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from latentdo.data import Dataset
from latentdo.forks import prepare_torch
from latentdo.graphs import reachability
from latentdo.model.assignment import LIKELY
from latentdo.model.mechanisms.neural import NeuralMechanism
from latentdo.model.variational.assignments import UNKNOWN
from latentdo.model.variational.supervision import Supervision
from latentdo.notices import warn
from latentdo.result import FitResult, Status
from latentdo.solvers.gradient.build import check_device
from latentdo.solvers.gradient.configuration import GradientConfiguration
from latentdo.solvers.gradient.edges import edge_probabilities, without_edge
from latentdo.solvers.gradient.loop import Progress
from latentdo.solvers.gradient.progress import TerminalProgress
from latentdo.solvers.gradient.proposal import Proposal
from latentdo.solvers.gradient.restart import Job, Restart, agree, choose, run_in_worker, run_restart
from latentdo.solvers.gradient.starts import as_search, search_structure
from latentdo.solvers.search.driver import Conclusion, make_problem, make_result
from latentdo.solvers.search.em import weigh
from latentdo.solvers.search.posterior import graph_posterior
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.reporting import Journal, canonical
from latentdo.solvers.search.solve import conclude
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import PAPER_ROWS


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
    journal = Journal(None)
    c = configuration
    if dataset.is_mixed and c.closed_form:
        raise ValueError(
            "probabilities have no closed form; use mechanisms='networks' for tables with discrete columns"
        )
    prepare_torch()
    check_device(c.device)
    if c.max_regimes == 1:  # every row is observational, whatever its label
        dataset = replace(dataset, regimes=None, regime_labels=(), targets=None)
    supervision = Supervision.from_dataset(dataset, c.max_regimes)
    problem = make_problem(dataset, as_search(c))
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
    by_evidence = c.estimator == "exact" and (hidden or c.closed_form)
    jobs = _jobs(dataset, problem, supervision, c, n_init, start)
    restarts = _restarts(jobs, c, progress, by_evidence=by_evidence)
    best = choose(restarts, by_evidence=by_evidence)
    c = jobs[restarts.index(best)].configuration
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
    comparison = tuple(
        {
            "restart": i,
            "evidence": run.end.evidence,
            "held_out": float(run.held_out.mean()),
            "edges": int(run.end.adjacency.sum()),
            **(
                {
                    "edge_log_odds": job.configuration.edge_log_odds,
                    "target_log_odds": job.configuration.target_log_odds,
                }
                if c.prior_grid
                else {}
            ),
        }
        for i, (job, run) in enumerate(zip(jobs, restarts, strict=False))  # some may not have been needed
    )
    notes: tuple[str, ...] = ()
    if c.closed_form and c.prune:
        regimes = canonical(problem, best.end.responsibilities, best.end.targets)
        conclusion = conclude(problem, as_search(c), best.end.adjacency, *regimes)
    else:
        conclusion, notes = _as_trained(problem, c, best)
    result = make_result(dataset, problem, as_search(c), conclusion, journal, status, comparison)
    if status == "not converged":
        warn(message, ConvergenceWarning, stacklevel=2)
    return replace(
        result,
        evidence_terms={**result.evidence_terms, "held_out": float(best.held_out.mean())},
        solver="gradient" if c.estimator == "exact" else "paper",
        message=message,
        history=best.state.history,
        configuration=c.to_dict(),
        warnings=(*warnings, *notes, *best.state.warnings),
    )


def _jobs(
    dataset: Dataset,
    problem: Problem,
    supervision: Supervision,
    configuration: GradientConfiguration,
    n_init: int,
    start: Proposal | None,
) -> list[Job]:
    """One run per seed and pair of prior log-odds."""
    c = configuration
    seeds = np.random.SeedSequence(c.random_state).generate_state(n_init)
    choices = [replace(c, edge_log_odds=xi, target_log_odds=gamma) for xi, gamma in c.prior_grid] or [c]
    return [
        Job(dataset, problem, supervision, choice, int(seed), number, start)
        for number, (choice, seed) in enumerate(product(choices, seeds))
    ]


def _restarts(
    jobs: list[Job], configuration: GradientConfiguration, progress: Progress | None, *, by_evidence: bool
) -> list[Restart]:
    """Runs of all jobs, as many as it takes for two to agree; in parallel the same ones count as in sequence."""
    c = configuration
    restarts: list[Restart] = []
    if c.n_jobs == 1 or len(jobs) == 1:
        quiet = not c.verbose or progress is not None
        with TerminalProgress(disable=quiet) as show:
            for job in jobs:
                restarts.append(run_restart(replace(job, progress=show if progress is None else progress)))
                if restarts[-1].interrupted or (by_evidence and agree(restarts)):
                    break
        return restarts
    runs = Parallel(n_jobs=c.n_jobs, return_as="generator")(delayed(run_in_worker)(job) for job in jobs)
    try:
        for run in runs:
            if not (by_evidence and agree(restarts)):
                restarts.append(run)
    except KeyboardInterrupt:
        if not restarts:
            raise
        restarts[-1] = replace(restarts[-1], interrupted=True)
    return restarts


def _as_trained(
    problem: Problem, configuration: GradientConfiguration, best: Restart
) -> tuple[Conclusion, tuple[str, ...]]:
    """Mechanisms as training left them, how sure their structure is, and what to warn of."""
    c, end = configuration, best.end
    if not isinstance(end.model.reference[0], NeuralMechanism):
        moments = problem.moments(end.responsibilities)
        tables = problem.learner.tables(problem, moments, end.adjacency, end.targets)
        posterior = graph_posterior(tables, end.adjacency, seed=c.random_state)
        edges, ancestors = posterior.edges, posterior.ancestors
    else:
        if c.prune:
            end = _without_doubtful_edges(problem, end)
        edges = edge_probabilities(problem, end.model)
        ancestors = reachability(end.adjacency).astype(np.float64)
    unsupported = int(((end.adjacency == 1) & ~problem.constraints.required & (edges < LIKELY)).sum())
    note = (
        f"{unsupported} edges of the graph are not worth their parameters (edge probability below one half)"
    )
    found = Conclusion(end, c.density, edges, ancestors, best.target_probabilities)
    return found, (note,) if unsupported else ()


def _without_doubtful_edges(problem: Problem, state: State) -> State:
    """Cut the least probable edge as long as it is less probable than not, so that no shown edge contradicts itself."""
    while True:
        edges = edge_probabilities(problem, state.model)
        doubtful = np.where((state.adjacency == 1) & ~problem.constraints.required, edges, np.inf)
        i, j = (int(at) for at in np.unravel_index(doubtful.argmin(), doubtful.shape))
        if doubtful[i, j] >= LIKELY:
            return state
        state = weigh(problem, without_edge(state.model, i, j))


def _too_few_rows(
    dataset: Dataset, supervision: Supervision, configuration: GradientConfiguration
) -> tuple[str, ...]:
    """Warn where a sampled fit cannot mean anything: its networks and per-row weights are made for large tables."""
    needed = PAPER_ROWS * supervision.n_regimes * dataset.n_variables
    if configuration.estimator != "sampled" or dataset.n_rows >= needed:
        return ()
    note = (
        f"solver='paper' needs about {needed} rows for {dataset.n_variables} variables and "
        f"{supervision.n_regimes} regimes, and there are {dataset.n_rows}: its graph is not to be relied on. "
        "Use solver='auto' or 'search', or a smaller max_regimes."
    )
    warn(note, UserWarning, stacklevel=3)
    return (note,)
