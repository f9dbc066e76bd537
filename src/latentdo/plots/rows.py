"""Rows and their regimes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latentdo.plots.bars import bars, is_leveled
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

    from latentdo.result import FitResult


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

    Where one of them is binary, a count or categorical, bars take the place of dots: the mean of ``y``, or the share of
    one of its levels, by levels or ranges of ``x``, one bar per regime.

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
    values = result.fitted_values(X)
    ax = ax or new_axes(5.2, 4.4)
    if is_leveled(result, columns.index(x), columns.index(y)):
        return _bars(result, values, x, y, ax)
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


def _bars(result: FitResult, values: NDArray[np.float64], x: str, y: str, ax: Axes) -> Axes:
    """The same as bars."""
    found = bars(result, values, result.columns.index(x), result.columns.index(y))
    drawn = [k for k in range(result.n_regimes) if np.isfinite(found.heights[:, k]).any()]
    width = 0.8 / max(len(drawn), 1)
    for order, k in enumerate(drawn):
        places = np.arange(len(found.groups)) + (order - (len(drawn) - 1) / 2) * width
        heights = np.nan_to_num(found.heights[:, k])
        ax.bar(places, heights, 0.9 * width, color=regime_colour(k), label=literal(describe(result, k)))
    ax.set_xticks(range(len(found.groups)), [literal(shorten(group)) for group in found.groups])
    ax.set_xlabel(literal(shorten(x, 40)))
    ax.set_ylabel(literal(shorten(found.words, 40)))
    ax.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax
