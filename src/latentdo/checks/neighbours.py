"""Rows that resemble the row before: then there are fewer independent ones than there are rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from latentdo.checks.check import Array, Check, listed, p_value, touching, z_value
from latentdo.checks.residuals import Residuals, in_order
from latentdo.data import Dataset
from latentdo.model.series import Series
from latentdo.solvers.settings import CHECK_LEVEL, LASTING_ROUNDS, RESEMBLING


def row_before(dataset: Dataset) -> NDArray[np.int64]:
    """Which row comes right before each, ``[n]``: in time, or in the table that the user passed; -1 where none does."""
    where = dataset.where
    if where.time is not None:
        return np.asarray(where.before(1, where.usual_gap())[0])
    return np.where(np.diff(dataset.row_index, prepend=-1) == 1, np.arange(dataset.n_rows) - 1, -1)


def remedy_for(dataset: Dataset) -> str:
    """What to do about dependent rows, given what was told of them."""
    if dataset.where.time is not None:
        return "pass lags=2, or every second row"
    if dataset.groups is not None:
        return "pass batch= if groups differ in level, or the mean of every group as one row"
    return "pass time= or series= if rows are in order, groups= if they belong together"


def given_neighbours(residuals: Residuals) -> Array:
    """Responsibilities ``[n, K]`` given the rows around, too, as if regimes tended to last.

    In a table that is sorted by regime, a row on its own is doubtful again and again for the same reason: those of one
    regime lie on the side of the other that they are taken for, so that products of their residuals are not zero on
    average. Given its neighbours it is not doubtful. In a table that is not sorted regimes do not last.
    """
    if residuals.model.topology.n_regimes == 1:
        return residuals.responsibilities
    n, order = len(residuals.z), in_order(residuals.before)
    times, series = np.empty(n), np.empty(n, dtype=np.int64)
    times[order], series[order] = np.arange(n), np.cumsum(residuals.before[order] < 0)
    units = Series.by_time(times, series, n)
    log_density = residuals.model.log_density(residuals.z)
    prior = units.prior(residuals.responsibilities)
    for _ in range(LASTING_ROUNDS):
        prior = units.settle(log_density, prior, None)
    return units.assign(log_density, prior).responsibilities


def check_neighbours(residuals: Residuals, q: Array, names: Sequence[str], remedy: str) -> Check:
    """Whether neighbouring rows of one regime are correlated: given their regimes, rows should be independent.

    ``q [n, K]`` says how probably rows belong to regimes. A table that is sorted by regime has neighbours that are
    alike, and passes.
    """
    later = np.flatnonzero(residuals.before >= 0)
    earlier, scores = residuals.before[later], residuals.centred
    both = (q[later] * q[earlier]).T[:, :, None]
    now, before = scores[:, later], scores[:, earlier]
    products = (both * now * before).sum(axis=0)
    spread = (both * now**2).sum(axis=(0, 1)) * (both * before**2).sum(axis=(0, 1))
    sizes = products.sum(axis=0) / np.sqrt(np.maximum(spread, np.finfo(float).tiny))
    z = np.array([z_value(column) for column in products.T])
    places = np.flatnonzero(
        (np.array([p_value(one, len(names)) for one in z]) < CHECK_LEVEL) & (np.abs(sizes) > RESEMBLING)
    )
    words = "Rows do not resemble the previous row more than their regimes explain."
    if places.size:
        shown = [f"{names[j]} ({sizes[j]:+.2f})" for j in places[np.argsort(-np.abs(sizes[places]))]]
        words = (
            f"Neighbouring rows of the same regime resemble each other ({listed(shown)}), but count as independent "
            f"evidence, so that everything looks too sure: {remedy}."
        )
    return Check(
        "dependent rows",
        float(np.abs(sizes).max(initial=0.0)),
        p_value(float(np.abs(z).max(initial=0.0)), len(names)),
        bool(places.size),
        words,
        touching([names[j] for j in places.tolist()], names),
    )
