"""Stretches of time with one regime, and what in them is a cause and what a consequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latentdo.data import Kind
from latentdo.graphs import reachability
from latentdo.model.fitted import Array, FittedModel
from latentdo.model.series import Series
from latentdo.result import SEGMENTS, FitResult, Rows

__all__ = ["Weights", "find_segments", "weigh_targets"]

NOTICEABLE: Final = 1.0
"""Standard deviations of what is new in a variable by which it has to move on average to be said to have followed."""


class Weights(NamedTuple):
    """What regimes do to variables.

    ``explained [K, d]`` are the nats per row of a regime by which its own mechanism of a target is likelier than the
    reference: what breaks first has most. ``moved [K, d]`` is by how many standard deviations of what is new in it a
    variable differs from its mean in the reference, whether it is a target or a consequence; of a category, it is that
    of the level which differs most.
    """

    explained: Array
    moved: Array


def weigh_targets(
    model: FittedModel, rows: Rows, responsibilities: Array, kinds: Sequence[Kind] = ()
) -> Weights:
    """What regimes do to variables, in rows that are assigned so; ``kinds`` if not all are continuous."""
    k, d = model.topology.targets.shape
    responsibilities = rows.units.counted(responsibilities)
    counts = np.maximum(responsibilities.sum(axis=0), 1.0)
    explained = np.zeros((k, d))
    for regime, j in np.argwhere(model.topology.targets).tolist():
        ratio = _ratio(model, rows.z, regime, j)
        explained[regime, j] = float(responsibilities[:, regime] @ ratio) / counts[regime]
    sizes, owner = _sizes(rows.z[:, :d], kinds)
    means = responsibilities.T @ sizes / counts[:, None]
    weights = rows.units.counted(np.ones(len(rows.z)))
    middle = np.average(sizes, axis=0, weights=weights)
    rest = means[0] if responsibilities[:, 0].sum() > 1.0 else middle
    variance = np.average((sizes - middle) ** 2, axis=0, weights=weights)
    spread = np.maximum(np.sqrt(variance), np.finfo(float).tiny)
    shift = (means - rest) / spread
    moved = np.zeros((k, d))
    for j in range(d):
        own = shift[:, owner == j]
        moved[:, j] = own[np.arange(k), np.abs(own).argmax(axis=1)]
    return Weights(explained, moved)


def _sizes(z: Array, kinds: Sequence[Kind]) -> tuple[Array, NDArray[np.int64]]:
    """Columns whose means can be compared, and the variable of each: a category has one column per level."""
    if all(kind.kind != "categorical" for kind in kinds):
        return z, np.arange(z.shape[1])
    parts, owner = [], []
    for j, kind in enumerate(kinds):
        named = kind.kind == "categorical"
        part = (z[:, j, None] == np.arange(len(kind.levels))).astype(np.float64) if named else z[:, j, None]
        parts.append(part)
        owner += [j] * part.shape[1]
    return np.concatenate(parts, axis=1), np.array(owner)


def _ratio(model: FittedModel, z: Array, regime: int, variable: int) -> Array:
    """How much likelier a target's value is under its own mechanism than under the reference, ``[n]``."""
    with np.errstate(over="ignore", invalid="ignore"):
        own = model.variable_log_density(z, variable, regime)
        usual = model.variable_log_density(z, variable, 0)
    return np.nan_to_num(own - usual, nan=0.0, posinf=_MOST, neginf=-_MOST).clip(-_MOST, _MOST)


_MOST: Final = 700.0  # nats that one row may say; the exponential of more is no number


def find_segments(result: FitResult, rows: Rows) -> pd.DataFrame:
    """Stretches of rows in order of time whose likeliest regimes are the same and not the reference.

    The path is the likeliest one of all rows together. ``targets`` are ranked by how much they explain there, with the
    nats they do, and ``followed`` names variables downstream of them that moved, the furthest first.
    """
    where, model = result.where, result.model
    if where.time is None or not isinstance(rows.units, Series):
        raise ValueError("segments are of rows in order of time; this fit had neither time= nor series=")
    path = rows.units.path(model.log_density(rows.z), model.prior)
    order, gaps = where.order()
    ordered = path[order]
    begins = np.flatnonzero(np.isinf(gaps) | (np.diff(ordered, prepend=ordered[:1]) != 0))
    if not begins.size or begins[0] != 0:
        begins = np.concatenate([[0], begins])
    ends = np.append(begins[1:], order.size)
    downstream = reachability(model.topology.adjacency).astype(bool)
    records = [
        _segment(result, rows, order[a:b], int(ordered[a]), downstream)
        for a, b in zip(begins.tolist(), ends.tolist(), strict=True)
        if ordered[a] > 0
    ]
    table = pd.DataFrame.from_records(records, columns=[*SEGMENTS])
    if where.series is None:
        table = table.drop(columns="series")
    for name in ("start", "end"):
        table[name] = where.shown(table[name].to_numpy(dtype=np.float64))
    return table.sort_values("start", kind="stable", ignore_index=True)


def _segment(
    result: FitResult, rows: Rows, members: NDArray[np.int64], regime: int, downstream: NDArray[np.bool_]
) -> dict[str, Any]:
    where, model = result.where, result.model
    assert where.time is not None
    hit = np.flatnonzero(model.topology.targets[regime])
    z = np.ascontiguousarray(rows.z[members])
    said = np.array([_ratio(model, z, regime, int(j)).sum() for j in hit])
    rank = np.argsort(-said, kind="stable")
    moved = np.abs(z.mean(axis=0))
    after: NDArray[np.bool_] = np.asarray(downstream[hit].any(axis=0))
    after[hit] = False
    followed = [j for j in np.argsort(-moved, kind="stable") if after[j] and moved[j] >= NOTICEABLE]
    series = None if where.series is None else int(where.series[members[0]])
    named = dict(enumerate(where.series_names))
    return {
        "series": None if series is None else named.get(series),
        "start": float(where.time[members[0]]),
        "end": float(where.time[members[-1]]),
        "rows": int(members.size),
        "regime": result.regime_names[regime],
        "probability": float(result.responsibilities[members, regime].mean()),
        "targets": ", ".join(f"{result.columns[hit[i]]} ({said[i]:.0f})" for i in rank),
        "followed": ", ".join(result.columns[j] for j in followed),
    }
