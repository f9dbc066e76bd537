"""Rows and their regimes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latentdo.plots.style import (
    MARKERS,
    PALETTE,
    as_result,
    describe,
    evenly,
    literal,
    new_axes,
    regime_colour,
    rows_by_regime,
    shorten,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def responsibilities(result: Any, ax: Axes | None = None, *, max_rows: int = 2000) -> Axes:
    """Show how sure each row's regime is: rows sorted by regime, and by probability within it.

    Parameters
    ----------
    result : FitResult or fitted estimator
        What to draw.
    ax : Axes, optional
        Where to draw.
    max_rows : int
        Of larger tables, evenly spaced rows of the sorted order are shown.
    """
    result = as_result(result)
    values, order = result.responsibilities, rows_by_regime(result, max_rows)
    ax = ax or new_axes(np.clip(2.5 + 0.4 * values.shape[1], 4, 14), 5)
    image = ax.imshow(values[order], vmin=0, vmax=1, cmap="Blues", aspect="auto", interpolation="nearest")
    names = [literal(shorten(name)) for name in result.regime_names]
    ax.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=8)
    ax.set_xlabel("regime")
    ax.set_ylabel("rows, sorted by regime")
    ax.set_yticks([])
    cast("Any", ax.figure).colorbar(image, ax=ax, label="posterior probability")
    return ax


def pair(
    result: Any,
    X: pd.DataFrame | NDArray[Any],
    x: str,
    y: str,
    ax: Axes | None = None,
    *,
    max_rows: int = 3000,
) -> Axes:
    """Scatter two variables in the user's units, coloured by the regime of each row (the paper's figure 1).

    Parameters
    ----------
    result : FitResult or fitted estimator
        What to draw.
    X : DataFrame or array [n, d]
        The rows that were fitted.
    x, y : str
        Names of two variables.
    ax : Axes, optional
        Where to draw.
    max_rows : int
        Of larger tables, evenly spaced rows are shown.
    """
    result = as_result(result)
    columns = list(result.columns)
    for name in (x, y):
        if name not in columns:
            raise ValueError(f"There is no variable {name!r}; the variables are {', '.join(columns)}.")
    values = np.asarray(X[columns] if isinstance(X, pd.DataFrame) else X, dtype=np.float64)
    if values.shape != (len(result.responsibilities), len(columns)):
        raise ValueError(
            f"X has shape {values.shape}, but the fit saw {(len(result.responsibilities), len(columns))}; "
            "pass the rows that were fitted."
        )
    ax = ax or new_axes(5.2, 4.4)
    shown = evenly(len(values), max_rows)
    best = result.regimes[shown]
    for k in np.unique(best):
        at = shown[best == k]
        ax.scatter(
            values[at, columns.index(x)],
            values[at, columns.index(y)],
            s=9,
            alpha=0.6,
            linewidths=0,
            color=regime_colour(int(k)),
            marker=MARKERS[0 if k == 0 else (int(k) - 1) // len(PALETTE) % len(MARKERS)],
            label=literal(describe(result, int(k))),
            zorder=1 if k == 0 else 2,
        )
    if result.preprocessor.transform == "log":
        ax.set_xscale("log")
        ax.set_yscale("log")
    ax.set_xlabel(literal(shorten(x, 40)))
    ax.set_ylabel(literal(shorten(y, 40)))
    ax.legend(fontsize=7, markerscale=1.6, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax
