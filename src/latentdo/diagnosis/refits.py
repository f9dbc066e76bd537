"""One table drawn from the fitted model, fitted again and compared with what drew it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone

from latentdo import metrics
from latentdo.data import Circumstances
from latentdo.model.assignment import Groups, Units
from latentdo.model.fitted import Array
from latentdo.model.series import Series
from latentdo.notices import as_part, collecting
from latentdo.result import FitResult


@dataclass(frozen=True, eq=False)
class Refit:
    """What is kept of one refit; ``merged`` and ``refound`` are by regimes of the fitted model."""

    counts: metrics.EdgeCounts
    adjacency: NDArray[np.int8]
    n_regimes: int
    ceiling: float
    reached: float
    refound: Array
    home: NDArray[np.int64]
    evidence: float


@dataclass(frozen=True, eq=False)
class Known:
    """What the fit was told: a label per row (None where unknown), whether targets were given, and groups of rows.

    ``where`` has the times of rows, if they were in order, and their weights.
    """

    labels: Sequence[Hashable | None] | None
    targets: bool
    groups: NDArray[np.int64] | None = None
    where: Circumstances = Circumstances()  # noqa: RUF009  (frozen)

    def units(self) -> Units:
        """How the rows belong together."""
        if self.where.time is None:
            return Groups.of(self.groups)
        return Series.by_time(self.where.time, self.where.series, self.where.time.size)


def refit(
    template: Any, result: FitResult, known: Known, max_rows: int, seed: int, number: int
) -> Refit | str:
    """Simulate and fit once; a message instead if that was impossible. Runs in a worker."""
    rng = np.random.default_rng([seed, number])
    X, z, regimes, told = _simulate(result, known, max_rows, rng)
    kinds = dict(zip(result.columns, result.kinds, strict=True))
    estimator = clone(template).set_params(random_state=int(rng.integers(2**31)), kinds=kinds)
    arguments: dict[str, Any] = {}
    if told.labels is not None:
        arguments["regimes"] = pd.Series(told.labels, dtype=object)
        if told.targets:
            table = result.targets
            arguments["targets"] = {
                name: [c for c in table.columns if table.loc[name, c]] for name in table.index[1:]
            }
    together: dict[str, Any] = {
        "groups": told.groups,
        "time": told.where.time,
        "series": told.where.series,
        "offset": told.where.offset,
    }
    with as_part(), collecting():  # the fit to the user's rows has spoken
        try:
            estimator.fit(X, **arguments, **together, sample_weight=told.where.weight)
            found = estimator.predict(X, **together)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            return str(error)
    if estimator.result_.status == "interrupted":  # the solvers answer Ctrl-C with the best state so far
        raise KeyboardInterrupt
    fit: FitResult = estimator.result_
    best = result.model.responsibilities(z, told.units()).argmax(axis=1)
    adjacency = np.asarray(fit.model.topology.adjacency, dtype=np.int8)
    refound, home = _matched(regimes, found, result.n_regimes, fit.n_regimes)
    return Refit(
        counts=metrics.edge_counts(result.model.topology.adjacency, adjacency),
        adjacency=adjacency,
        n_regimes=fit.n_regimes,
        ceiling=metrics.adjusted_rand_index(regimes, best),
        reached=metrics.adjusted_rand_index(regimes, found),
        refound=refound,
        home=home,
        evidence=fit.evidence,
    )


def _simulate(
    result: FitResult, known: Known, max_rows: int, rng: np.random.Generator
) -> tuple[pd.DataFrame, Array, NDArray[np.int64], Known]:
    """A table in the user's units, the same standardised, the regime of every row, and what may be told of it.

    Rows that had a label keep its regime; the others draw theirs, or that of their group, or keep that of the row
    before for as long as regimes last. Rows are what is new in them: what time, the past and batches explain is taken
    for known.
    """
    model, n = result.model, len(result.responsibilities)
    weights = model.topology.weights / model.topology.weights.sum()
    units, size = Groups.of(known.groups), min(n, max_rows)
    told = (known.labels, known.groups, known.where.time, known.where.weight, known.where.offset)
    if any(one is not None for one in told):
        rows = np.arange(n) if n <= max_rows else units.draw(n, max_rows, rng)
        if known.where.time is not None:  # neighbours
            rows = np.sort(known.where.order()[0][:size])
        units, size = units.take(rows), rows.size
        known = replace(
            known,
            labels=None if known.labels is None else [known.labels[i] for i in rows],
            groups=None if known.groups is None else known.groups[rows],
            where=known.where.take(rows),
        )
    regimes = units.spread(rng.choice(len(weights), size=int(units.number(size)), p=weights))
    if known.where.time is not None:
        regimes = _lasting(regimes, known.where, model.topology.duration, rng)
    if known.labels is not None:
        place = {name: k for k, name in enumerate(result.regime_names)}
        for i, label in enumerate(known.labels):
            if label is not None:
                regimes[i] = place[label]
    z, offset = model.blank(len(regimes)), result.preprocessor.offset_of(known.where.offset)
    for k in np.unique(regimes):
        own = regimes == k
        z[own] = model.sample(int(own.sum()), int(k), rng, offset=0.0 if offset is None else offset[own])
    X = result.preprocessor.to_frame(result.preprocessor.inverse(z[:, : len(result.columns)]))
    return X, z, np.asarray(regimes, dtype=np.int64), known


def _lasting(
    regimes: NDArray[np.int64], where: Circumstances, duration: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Regimes that stay what they are from row to row, with a chance that falls with the gap between them."""
    order, gaps = where.order()
    stays = rng.random(order.size) < np.exp(-gaps / max(duration, np.finfo(float).tiny))
    stays[0] = False
    drawn = np.maximum.accumulate(np.where(stays, 0, np.arange(order.size)))
    out = np.empty_like(regimes)
    out[order] = regimes[order][drawn]
    return out


def _matched(
    true: NDArray[np.int64], found: NDArray[np.int64], n_true: int, n_found: int
) -> tuple[Array, NDArray[np.int64]]:
    """For every true regime the Jaccard overlap with its match, and the found regime that holds most of its rows.

    Both are missing (NaN and -1) for a regime that drew no rows.
    """
    table = np.zeros((n_true, n_found), dtype=np.int64)
    np.add.at(table, (true, found), 1)
    sizes = table.sum(axis=1)
    overlap = np.where(sizes > 0, 0.0, np.nan)
    for k, other in zip(*linear_sum_assignment(table, maximize=True), strict=True):
        if sizes[k]:
            overlap[k] = table[k, other] / (sizes[k] + table[:, other].sum() - table[k, other])
    return overlap, np.where(sizes > 0, table.argmax(axis=1), -1)
