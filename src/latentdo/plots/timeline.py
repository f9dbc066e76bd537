"""When regimes were there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from latentdo.plots.style import as_result, describe, literal, new_axes, regime_colour
from latentdo.result import FitResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Stretch(NamedTuple):
    """A segment in numbers: its regime, and when it began and ended."""

    regime: int
    start: float
    end: float


def stretches(result: FitResult) -> list[Stretch]:
    """Segments of a result in the unit of its times; seconds since 1970, if they are dates."""
    table = result.segments
    if table is None:
        raise ValueError("a timeline needs rows in order of time: fit with time= or series=")
    index = {name: k for k, name in enumerate(result.regime_names)}
    ends = [_numbers(table[name]) for name in ("start", "end")]
    return [
        Stretch(index[name], float(a), float(b)) for name, a, b in zip(table["regime"], *ends, strict=True)
    ]


def _numbers(column: pd.Series[Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    if column.dtype.kind != "M":
        return column.to_numpy(dtype=np.float64)
    return np.array([one.timestamp() for one in column], dtype=np.float64)


def timeline(result: Any, ax: Axes | None = None) -> Axes:
    """Show when regimes other than the reference were there: one line per regime, time from left to right.

    Parameters
    ----------
    result : FitResult or fitted estimator
        A fit with ``time`` or ``series``.
    ax : Axes, optional
        Where to draw.
    """
    result = as_result(result)
    found, time = stretches(result), result.where.time
    assert time is not None
    others = list(range(1, result.n_regimes))
    ax = ax or new_axes(9, np.clip(1.2 + 0.35 * len(others), 2, 14))
    width = float(np.ptp(time)) or 1.0
    usual = result.where.usual_gap()

    def place(value: float) -> Any:
        return pd.Timestamp(value, unit="s") if result.where.dated else value

    for one in found:
        end = max(one.end + usual, one.start + 0.002 * width)  # the last row lasts, too; and all can be seen
        ax.plot(
            [place(one.start), place(end)],
            [one.regime, one.regime],
            linewidth=8,
            solid_capstyle="butt",
            color=regime_colour(one.regime),
        )
    ax.set_xlim(place(float(time.min())), place(float(time.max()) + usual))
    ax.set_yticks(others, [literal(describe(result, k)) for k in others], fontsize=8)
    ax.set_ylim(result.n_regimes - 0.4, 0.4)
    ax.set_xlabel("time (UTC)" if result.where.dated else "row" if result.where.counted else "time")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(axis="x", alpha=0.3)
    if result.where.dated:
        ax.tick_params(axis="x", labelrotation=30)
    return ax
