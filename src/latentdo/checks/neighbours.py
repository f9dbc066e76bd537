"""Rows that resemble the row before: then there are fewer independent ones than there are rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from latentdo.checks.check import Check, listed, p_value, z_value
from latentdo.checks.residuals import Residuals
from latentdo.solvers.settings import CHECK_LEVEL, RESEMBLING


def check_neighbours(residuals: Residuals, names: Sequence[str], *, told: bool) -> Check:
    """Whether neighbouring rows are correlated.

    If it was ``told`` how rows belong together (time, groups, labels), the model has its share of that, and what it
    leaves over is looked at. Otherwise it is the columns themselves: where nothing else could explain stretches of
    alike rows, regimes did, and left nothing over.
    """
    later = np.flatnonzero(residuals.follows)
    values = residuals.expected if told else residuals.ranks
    now, before = values[later], values[later - 1]
    sizes = np.einsum("nj,nj->j", now, before) / np.maximum(
        np.sqrt((now**2).sum(axis=0) * (before**2).sum(axis=0)), np.finfo(float).tiny
    )
    z = np.array([z_value(products) for products in (now * before).T])
    places = np.flatnonzero(
        (np.array([p_value(one, len(names)) for one in z]) < CHECK_LEVEL) & (np.abs(sizes) > RESEMBLING)
    )
    words = "Rows do not resemble the row before more than chance would have it."
    if places.size:
        shown = [f"{names[j]} ({sizes[j]:+.2f})" for j in places[np.argsort(-np.abs(sizes[places]))]]
        words = (
            f"Neighbouring rows resemble each other ({listed(shown)}), but count as independent evidence, so that "
            "everything looks too sure: pass time= or series= if rows are in order, groups= if they belong together."
        )
    return Check(
        "dependent rows",
        float(np.abs(sizes).max(initial=0.0)),
        p_value(float(np.abs(z).max(initial=0.0)), len(names)),
        bool(places.size),
        words,
    )
