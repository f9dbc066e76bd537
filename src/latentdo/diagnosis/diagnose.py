"""Simulate, fit again, compare."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from latentdo.diagnosis.answer import Diagnosis
from latentdo.diagnosis.refits import Known, Refit, refit
from latentdo.diagnosis.tables import confusion, edge_tables, regime_tables
from latentdo.model.series import Series
from latentdo.notices import warn
from latentdo.result import FitResult

Progress = Callable[[Mapping[str, Any]], None]

NEIGHBOURS: Final = 10
"""Rows in order of time that are assigned together where it is asked which regimes could be told apart."""


def diagnose_fit(
    result: FitResult,
    template: Any,
    *,
    labels: Sequence[Hashable | None] | None,
    targets_given: bool,
    n_repeats: int,
    max_rows: int,
    seed: int,
    n_jobs: int | None,
    progress: Progress | None = None,
) -> Diagnosis:
    """Simulate from a fit, fit again, compare; see ``LatentInterventionDAG.diagnose``.

    Parameters
    ----------
    result : FitResult
        The fit.
    template : estimator
        Not fitted, with the settings of the fit; it is cloned.
    labels : sequence of n labels, optional
        What the fit was told of the regimes of its rows, None where nothing; the refits are told as much.
    targets_given : bool
        Whether the fit was told the targets of these labels.
    n_repeats, max_rows : int
        Number of simulated tables, and their largest size.
    seed : int
        Seed of everything; table number *b* is the same whatever the number of tables and jobs.
    n_jobs : int, optional
        Refits that run in parallel.
    progress : callable, optional
        Called with a dict after every refit.

    Raises
    ------
    ValueError
        If no simulated table could be fitted.
    """
    where = replace(result.where, batch=None, batch_names=(), dated=False)
    known = Known(labels, targets_given, result.groups, where)
    groups = result.groups
    if where.time is not None:  # neighbours decide together, for as long as regimes last at least
        groups = Series.by_time(where.time, where.series, NEIGHBOURS).members
    job = delayed(refit)
    jobs = (job(template, result, known, max_rows, seed, b) for b in range(n_repeats))
    refits: list[Refit] = []
    failures: list[str] = []
    for b, outcome in enumerate(Parallel(n_jobs=n_jobs, return_as="generator")(jobs)):
        if isinstance(outcome, str):
            failures.append(outcome)
            continue
        refits.append(outcome)
        if progress is not None:
            counts = {"regimes": outcome.n_regimes, "edges": int(outcome.adjacency.sum())}
            progress({"step": f"refit {b + 1} of {n_repeats}", "evidence": outcome.evidence, **counts})
    if not refits:
        raise ValueError(
            f"none of {n_repeats} simulated tables could be fitted; the last reason: {failures[-1]}"
        )
    if failures:
        message = f"{len(failures)} of {n_repeats} simulated tables could not be fitted and are left out"
        warn(message, ConvergenceWarning, stacklevel=3)
    confused = confusion(result.model, np.random.default_rng([seed, 0, 1]), groups)
    n = len(result.responsibilities)
    edges, extra = edge_tables(result, refits)
    regimes, pairs = regime_tables(result, refits, confused)
    return Diagnosis(
        n_rows=min(n, max_rows),
        n_fitted_rows=n,
        labelled=labels is not None,
        repeats=pd.DataFrame(
            {
                "missing": [r.counts.missing for r in refits],
                "extra": [r.counts.extra for r in refits],
                "reversed": [r.counts.rev for r in refits],
                "hamming": [r.counts.hamming for r in refits],
                "regimes": [r.n_regimes for r in refits],
                "ceiling": [r.ceiling for r in refits],
                "reached": [r.reached for r in refits],
            }
        ),
        edges=edges,
        extra_edges=extra,
        regimes=regimes,
        pairs=pairs,
        failures=tuple(failures),
    )
