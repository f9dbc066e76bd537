"""Fits of what is new in rows: what time, the past and batches explain is taken away first.

Noise that resembles itself and a regime that lasts both make neighbours alike. The past is trusted where it explains
*all* of that: what is left is then white, as it never is where regimes with independent noise come and go. Otherwise
regimes are searched without the past, and once more with it if neighbours still resemble each other within regimes;
evidence decides, in the units that all fits share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2
from threadpoolctl import threadpool_limits

from latentdo.data import Dataset
from latentdo.data.background import MOST_LAGS
from latentdo.data.circumstances import LONGEST_GAP, Circumstances
from latentdo.result import FitResult
from latentdo.solvers.search.driver import SearchConfiguration, make_problem
from latentdo.solvers.search.em import search_graph
from latentdo.solvers.settings import (
    CONFOUNDED,
    DEPENDENT,
    MOST_STRETCHES,
    RESETTLED,
    WHITE_LAGS,
    WHITE_LEVEL,
)

Array = NDArray[np.float64]
Fit = Callable[[Dataset], FitResult]
Again = Callable[[Dataset, FitResult], FitResult]
Graph = Callable[[Dataset], NDArray[np.int8]]


def solve(
    dataset: Dataset, lags: int | str, seasonality: object, fit: Fit, again: Again, graph: Graph
) -> FitResult:
    """Fit rows less what their circumstances explain.

    Parameters
    ----------
    dataset : Dataset
        Rows that know when and where they were measured, or do not.
    lags : int or "auto"
        Rows back that a row may depend on.
    seasonality
        Cycles, see :meth:`.Circumstances.cycles`.
    fit : callable
        Fits rows.
    again : callable
        Fits rows less another background, given an earlier fit.
    graph : callable
        A rough graph of rows, see :func:`rough_graph`.
    """
    where = dataset.where
    periods = where.cycles(seasonality)  # type: ignore[arg-type]
    if where.time is None and where.batch is None:
        return fit(dataset)
    most = 0 if where.time is None else MOST_LAGS if lags == "auto" else int(lags)
    known = _known(dataset)
    alone = dataset.explained(lags=0, periods=periods, responsibilities=known)
    after = dataset.explained(lags=most, periods=periods, responsibilities=known) if most else alone
    if not _uses_past(after):
        return _again(dataset, alone, _fit(dataset, alone, fit), again)
    # Levels that are shifted for a while are those of few equations, once it is known which there are.
    after = dataset.explained(lags=most, periods=periods, responsibilities=known, adjacency=graph(after))
    if lags != "auto" or is_white(after.settled.z, where):
        return _again(dataset, after, _fit(dataset, after, fit), again)
    first = _again(dataset, alone, _fit(dataset, alone, fit), again)
    after = dataset.explained(lags=most, periods=periods, responsibilities=first.responsibilities)
    if first.status == "interrupted" or _explained(after) < DEPENDENT:
        return first
    second = _fit(dataset, after, fit)
    best = second if second.evidence > first.evidence else first
    tried = tuple(
        {"model": name, "evidence": one.evidence, "chosen": one is best}
        for name, one in (
            ("rows independent given their regimes", first),
            ("rows that depend on the past", second),
        )
    )
    return replace(
        best,
        comparison=(*tried, *best.comparison),
        status=second.status,
        seconds=first.seconds + second.seconds,
        history=(*first.history, *second.history),
    )


def rough_graph(dataset: Dataset, configuration: SearchConfiguration) -> NDArray[np.int8]:
    """The best graph if lines with Gaussian noise describe rows, and regimes are the stretches whose level is shifted.

    What shifts at a cause shows in its effects, and not the other way round: this tells directions.
    """
    free = replace(dataset, regimes=None, regime_labels=(), targets=None)
    with threadpool_limits(limits=1):  # as in a search
        problem = make_problem(free, configuration)
        return search_graph(problem, np.eye(MOST_STRETCHES + 1)[_stretches(dataset)])


def _stretches(dataset: Dataset) -> NDArray[np.int64]:
    """Number of the stretch of time that every row is in, from 1; 0 for all others, and the last for many."""
    assert dataset.background is not None
    shift = dataset.background.shifts(dataset.preprocessor.forward(dataset.x), dataset.where)
    order, _ = dataset.where.order()
    size = np.abs(shift[order]).sum(axis=1)
    begins = (np.diff(size, prepend=0.0) != 0.0) & (size > 0.0)
    found = np.zeros(order.size, dtype=np.int64)
    found[order] = np.where(size > 0.0, np.minimum(np.cumsum(begins), MOST_STRETCHES), 0)
    return found


def _known(dataset: Dataset) -> Array | None:
    """Responsibilities of rows that all have labels."""
    if dataset.regimes is None or dataset.n_regimes < 2 or (dataset.regimes < 0).any():  # noqa: PLR2004
        return None
    return np.eye(dataset.n_regimes)[dataset.regimes]


def _uses_past(dataset: Dataset) -> bool:
    assert dataset.background is not None
    return dataset.background.uses_past()


def _explained(dataset: Dataset) -> float:
    """Nats per row that the past explains."""
    background = dataset.background
    assert background is not None
    return float(np.log(background.first_scale / background.later_scale).sum()) if background.lags else 0.0


def _fit(raw: Dataset, dataset: Dataset, fit: Fit) -> FitResult:
    """A fit to what is new in rows, with the evidence of the rows themselves."""
    background, unit = dataset.background, dataset.unit
    assert background is not None
    assert unit is not None
    result = fit(dataset)
    stretched = float(np.log(dataset.preprocessor.scale / raw.preprocessor.scale).sum())
    scales = np.log(unit)
    extra = -float(scales.sum() if raw.weight is None else raw.weight @ scales.sum(axis=1))
    extra -= raw.total * stretched
    extra -= 0.5 * background.n_parameters * float(np.log(max(raw.total, 2.0)))
    return replace(
        result,
        evidence=result.evidence + extra,
        evidence_terms={**result.evidence_terms, "circumstances": extra},
        comparison=tuple({**one, "evidence": one["evidence"] + extra} for one in result.comparison),
        background=background,
        lagged=background.lagged(
            dataset.preprocessor.forward(dataset.x), dataset.where, result.model.topology.adjacency
        ),
    )


def _again(raw: Dataset, before: Dataset, first: FitResult, again: Again) -> FitResult:
    """Once more, if regimes and a graph were found that move what was thought to be the background."""
    if first.n_regimes == 1 or first.status == "interrupted" or _known(raw) is not None:
        return first
    background = before.background
    assert background is not None
    after = raw.explained(
        lags=background.lags,
        periods=background.periods,
        responsibilities=first.responsibilities,
        adjacency=first.model.topology.adjacency if background.lags else None,
    )
    if float(np.sqrt(np.mean((after.z - before.z) ** 2))) < RESETTLED:
        return first
    second = _fit(raw, after, lambda rows: again(rows, first))
    best = second if second.evidence > first.evidence else first
    return replace(
        best,
        comparison=best.comparison or first.comparison,
        status=second.status,
        seconds=first.seconds + second.seconds,
        history=(*first.history, *second.history),
    )


def is_white(z: Array, where: Circumstances) -> bool:
    """Whether rows ``z [n, d]`` in order of time resemble those before no more than chance would have it.

    The test is that of Ljung and Box, of every variable.
    """
    order, gaps = where.order()
    run = np.cumsum(~((gaps > 0.0) & (gaps <= LONGEST_GAP * where.usual_gap())))
    values = z[order] - z.mean(axis=0)
    variance = (values**2).mean(axis=0)
    statistic, tests = np.zeros(z.shape[1]), 0
    for lag in range(1, min(WHITE_LAGS, len(z) - 1) + 1):
        pairs = np.flatnonzero(run[lag:] == run[:-lag])
        if pairs.size <= WHITE_LAGS:
            break
        correlation = (values[lag:][pairs] * values[:-lag][pairs]).mean(axis=0) / variance
        statistic += pairs.size * correlation**2
        tests += 1
    return bool((chi2.sf(statistic, max(tests, 1)) > WHITE_LEVEL / z.shape[1]).all())


def confounded(result: FitResult, where: Circumstances) -> list[str]:
    """What to say of regimes that only one batch has: nobody can tell whether they are more than that batch."""
    if where.batch is None:
        return []
    said = []
    regimes = result.regimes
    for k in range(1, result.n_regimes):
        rows = np.flatnonzero(regimes == k)
        if not rows.size:
            continue
        counts = np.bincount(where.batch[rows], minlength=len(where.batch_names))
        batch = int(counts.argmax())
        share, usual = counts[batch] / rows.size, float((where.batch == batch).mean())
        if share >= CONFOUNDED and usual < CONFOUNDED * share:
            of_batch = rows.size * share / max((where.batch == batch).sum(), 1)
            said.append(
                f"Regime {result.regime_names[k]!r} lies in batch {where.batch_names[batch]!r} alone ({share:.0%} of "
                f"its rows; it is {of_batch:.0%} of that batch): these rows cannot show whether it is an intervention "
                "or an effect of the batch."
            )
    return said
