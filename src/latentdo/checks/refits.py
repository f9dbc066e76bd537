"""Checks that fit again: to halves of the rows, to some of the variables, and without a regime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from latentdo import metrics
from latentdo.checks.check import Check, listed, p_value, z_value
from latentdo.checks.residuals import Residuals
from latentdo.data import Dataset
from latentdo.graphs import reachability
from latentdo.notices import as_part, collecting
from latentdo.result import FitResult
from latentdo.solvers.settings import (
    BROAD,
    CHECK_LEVEL,
    CONTRADICTED,
    FEWEST_FOR_BROAD,
    HELD_OUT_ROWS,
    LEFT_OVER,
    RIVAL_GAIN,
    SAME_REGIMES,
    SUBSETS,
    SURE,
)

Progress = Callable[[Mapping[str, Any]], None]


def check_halves(
    result: FitResult, dataset: Dataset, template: Any, seed: int, progress: Progress | None
) -> Check:
    """Whether two halves of the rows, fitted apart, assign all rows alike."""
    fits = []
    for number, half in enumerate(dataset.split(0.5, seed)):
        fits.append(_fit(template, half, seed))
        _tell(progress, f"half {number + 1} of 2", fits[-1])
    where = dataset.together()
    del where["sample_weight"]
    first, second = (one.predict(dataset.to_frame(), **where) for one in fits)
    index = metrics.adjusted_rand_index(first, second)
    several = max(one.n_regimes_ for one in fits) > 1
    alike = index > SAME_REGIMES or not several
    words = "Two halves of the rows lead to the same regimes."
    if not alike:
        words = (
            f"Two halves of the rows lead to different regimes (adjusted Rand index {index:.2f}; {fits[0].n_regimes_} "
            f"and {fits[1].n_regimes_} of them, {result.n_regimes} in all rows): do not rely on single regimes; pass "
            "groups= or time= if rows belong together, labels for some rows, or more rows."
        )
    return Check("regimes in halves", float(index), None, not alike, words)


def check_subsets(
    result: FitResult, dataset: Dataset, template: Any, seed: int, progress: Progress | None
) -> Check:
    """Whether fits to some of the variables contradict the fit to all: a sure arrow against a sure causal path."""
    d, rng = dataset.n_variables, np.random.default_rng([seed, *b"subsets"])
    passed = "Fits to some of the variables agree with the fit to all."
    if d < FEWEST_FOR_BROAD:
        return Check("self-compatibility", 0.0, None, False, passed)
    # What was found, before what checks have against it: a claim that is withdrawn cannot be contradicted.
    claimed = reachability((result.model_edge_table().to_numpy() > SURE).astype(np.int8))
    sure, against = 0, []
    left_out = np.array_split(rng.permutation(d), max(min(SUBSETS, d // 2), 2))[:SUBSETS]
    for number, out in enumerate(left_out):
        kept = np.setdiff1d(np.arange(d), out)
        part = _fit(template, dataset, seed, kept)
        _tell(progress, f"subset {number + 1} of {len(left_out)}", part)
        for a, b in np.argwhere(part.result_.edge_probabilities > SURE):
            i, j = int(kept[a]), int(kept[b])
            sure += 1
            if claimed[j, i]:
                against.append(f"{dataset.columns[i]} -> {dataset.columns[j]}")
    share = len(against) / max(sure, 1)
    failed = len(against) > 1 and share > CONTRADICTED
    words = passed
    if failed:
        words = (
            f"Fits to some of the variables contradict the fit to all ({listed(list(dict.fromkeys(against)))} there, "
            "the other way here): no graph explains both, so read directions as open; look for hidden causes, or "
            "columns that are sums or copies of others."
        )
    return Check("self-compatibility", share, None, failed, words)


def check_held_out(
    result: FitResult, dataset: Dataset, fitted: Dataset, template: Any, seed: int, progress: Progress | None
) -> Check:
    """Whether the largest regime, left out of a fit, can be explained by changing few of the mechanisms found then."""
    passed = Check("held-out regime", 0.0, None, False, "No regime has enough rows to be left out.")
    counts = np.bincount(result.regimes, minlength=result.n_regimes)
    if result.n_regimes < 2 or result.background is not None:
        return passed
    k = 1 + int(counts[1:].argmax())
    out, rest = np.flatnonzero(result.regimes == k), np.flatnonzero(result.regimes != k)
    if min(out.size, rest.size) < HELD_OUT_ROWS:
        return passed
    told: dict[str, Any] = {
        "labels": [result.regime_names[one] for one in result.regimes[rest]],
        "observational": result.regime_names[0],
    }
    free = _fit(template, dataset.take(rest), seed, **told)
    _tell(progress, f"without regime {result.regime_names[k]}", free)
    # What is left may not tell directions: a graph that explains it as well may need fewer changes.
    same = _fit(template, dataset.take(rest), seed, **told, **_only(result.adjacency))
    _tell(progress, f"the same graph without regime {result.regime_names[k]}", same)
    fits = [free, same] if same.evidence_ > free.evidence_ - RIVAL_GAIN else [free]
    changed = min((_changed(fit, dataset, fitted, out) for fit in fits), key=len)
    share = len(changed) / dataset.n_variables
    failed = share > BROAD and dataset.n_variables >= FEWEST_FOR_BROAD
    words = f"Regime {result.regime_names[k]}, left out, is explained by {len(changed)} changed mechanisms."
    if failed:
        words = (
            f"Regime {result.regime_names[k]}, left out of a fit, would need {len(changed)} of {dataset.n_variables} "
            "mechanisms changed: what was learnt from the other rows does not carry over, so do not predict new "
            "interventions from this fit; try another density or transform."
        )
    return Check("held-out regime", share, None, failed, words)


def _only(adjacency: pd.DataFrame) -> dict[str, Any]:
    """Knowledge that leaves one graph."""
    pairs = [(a, b) for a in adjacency.index for b in adjacency.columns if a != b]
    required = [pair for pair in pairs if adjacency.loc[pair]]
    forbidden = [pair for pair in pairs if not adjacency.loc[pair]]
    return {"required": required, "forbidden": forbidden, "tiers": None, "max_parents": None}


def _changed(fit: Any, dataset: Dataset, fitted: Dataset, rows: NDArray[np.int64]) -> list[str]:
    """Variables whose mechanism, as a fit has it in the reference, does not hold in some rows: in level or in scale."""
    model = fit.result_.model
    z = fit.result_.read(fitted.x[rows], dataset.where.take(rows)).z
    alone = np.zeros((rows.size, model.topology.n_regimes))
    alone[:, 0] = 1.0
    residuals = Residuals.of(model, z, alone)
    found = []
    for j, name in enumerate(dataset.columns):
        score = residuals.scores[0, :, j]
        for values in (score, (score**2 - 1.0) / np.sqrt(2.0)):
            small = p_value(z_value(values), 2 * dataset.n_variables) < CHECK_LEVEL
            if small and abs(float(values.mean())) > LEFT_OVER and name not in found:
                found.append(name)
    return found


def _fit(
    template: Any,
    dataset: Dataset,
    seed: int,
    columns: NDArray[np.int64] | None = None,
    labels: Any = None,
    **parameters: Any,
) -> Any:
    """The template fitted to a part of the data; its warnings are about that part, and of no concern."""
    # A part may look like another kind, or lack a level.
    kinds = dict(zip(dataset.columns, dataset.kinds, strict=True))
    if columns is not None:
        kinds = {dataset.columns[j]: dataset.kinds[j] for j in columns}
    estimator = clone(template).set_params(random_state=seed, kinds=kinds, **parameters)
    X = dataset.to_frame()
    regimes = labels if labels is not None else dataset.labels()
    with as_part(), collecting():
        estimator.fit(
            X if columns is None else X.iloc[:, columns],
            regimes=None if regimes is None else pd.Series(regimes, dtype=object),
            **dataset.together(),
        )
    if estimator.result_.status == "interrupted":  # the solvers answer Ctrl-C with the best state so far
        raise KeyboardInterrupt
    return estimator


def _tell(progress: Progress | None, step: str, fit: Any) -> None:
    if progress is not None:
        edges = int(fit.result_.model.topology.adjacency.sum())
        progress({"step": step, "evidence": fit.evidence_, "regimes": fit.n_regimes_, "edges": edges})
