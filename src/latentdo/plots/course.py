"""How a fit went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from latentdo.plots.style import PALETTE, as_result, new_axes
from latentdo.result import FitResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def evidence(result: Any, ax: Axes | None = None) -> Axes:
    """Show how the evidence grew: every step, and the best so far.

    Parameters
    ----------
    result : FitResult or fitted estimator
        What to draw.
    ax : Axes, optional
        Where to draw.
    """
    result = as_result(result)
    seconds, values = history_curve(result, "evidence")
    ax = ax or new_axes(5.2, 3.4)
    if len(values):
        ax.plot(seconds, values, "o", color=PALETTE[0], markersize=3.5, alpha=0.6, label="step")
        ax.step(
            seconds,
            np.maximum.accumulate(values),
            where="post",
            color=PALETTE[1],
            linewidth=1.4,
            label="best so far",
        )
        ax.legend(fontsize=8, frameon=False, loc="lower right")
        ax.ticklabel_format(axis="y", useOffset=False, style="plain")
        if np.ptp(values) < 1.0:  # less than a nat says nothing, and should not look like a climb
            ax.set_ylim(values.max() - 1.0, values.max() + 1.0)
    else:
        ax.text(0.5, 0.5, "no history was recorded", ha="center", va="center", transform=ax.transAxes)
    ax.set_xlabel("seconds")
    ax.set_ylabel("evidence (nats)")
    return ax


def history_curve(result: FitResult, quantity: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Seconds and values of the steps in the history that have a finite value of a quantity."""
    steps = [
        (float(entry.get("seconds", index)), float(entry[quantity]))
        for index, entry in enumerate(result.history)
        if isinstance(entry.get(quantity), int | float) and np.isfinite(entry[quantity])
    ]
    table = np.array(steps, dtype=np.float64).reshape(-1, 2)
    table = table[np.argsort(table[:, 0], kind="stable")]
    return table[:, 0], table[:, 1]
