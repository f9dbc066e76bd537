"""What can only be drawn where the truth is known: calibration, and the figure of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from latentdo.plots.style import PALETTE, REFERENCE_COLOUR, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def calibration(true: Any, probabilities: Any, ax: Axes | None = None, *, bins: int = 9) -> Axes:
    """Show whether probabilities keep their word: how often what was forecast with 70 % is true.

    Bars are 95 % intervals (Wilson's) of the observed share; the larger a dot, the more forecasts it stands for. Edges
    that are plainly absent or present do not count, see :func:`latentdo.metrics.reliability`.

    Parameters
    ----------
    true : array or DataFrame of 0/1
        The truth, for example the adjacency of a simulation; or outcomes of many tables in one row.
    probabilities : array or DataFrame
        The forecasts, for example ``edge_probabilities_``, in the same shape.
    ax : Axes, optional
        Where to draw.
    bins : int
        Number of bins between 5 % and 95 %.
    """
    from latentdo.metrics import reliability

    table = reliability(true, probabilities, bins=bins)
    ax = ax or new_axes(4.4, 4.2)
    ax.plot([0, 1], [0, 1], color=REFERENCE_COLOUR, linewidth=1, linestyle="--", label="perfect")
    frame = table.to_frame()
    frame = frame[frame["count"] > 0]
    if len(frame):
        n, share = frame["count"].to_numpy(), frame["observed"].to_numpy()
        z = 1.96
        centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
        ax.vlines(frame["forecast"], centre - half, centre + half, color=PALETTE[0], linewidth=1.2, alpha=0.7)
        ax.scatter(
            frame["forecast"], share, s=20 + 120 * n / n.max(), color=PALETTE[0], zorder=3, label="observed"
        )
        error = f"{table.expected_calibration_error:.3f}"
        ax.set_title(f"{n.sum()} forecasts, calibration error {error}", fontsize=10)
        ax.legend(fontsize=8, frameon=False, loc="upper left")
    else:
        ax.text(0.5, 0.5, "every forecast is below 5 % or above 95 %", ha="center", va="center", fontsize=9)
    ax.set_xlim(0, 1)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("forecast probability")
    ax.set_ylabel("share that is true")
    return ax


def paper_scatter(
    mechanism: Literal["linear", "nonlinear", "nonadditive"] = "linear",
    intervention: Literal["atomic", "stochastic", "imperfect"] = "stochastic",
    ax: Axes | None = None,
    *,
    n_samples: int = 999,
    random_state: Any = 0,
) -> Axes:
    """One panel of the paper's figure of simulated pairs (its appendix E): cause across, effect up.

    The nine panels are its three mechanisms times three kinds of intervention; colours are vermilion, green and blue,
    as there, in hues that colour-blind readers can tell apart.

    Parameters
    ----------
    mechanism, intervention, n_samples, random_state
        See :func:`latentdo.simulate`.
    ax : Axes, optional
        Where to draw.
    """
    from latentdo.scm import simulate

    data = simulate(
        preset="paper-pairs",
        edge_probability=1.0,
        mechanism=mechanism,
        intervention=intervention,
        n_samples=n_samples,
        random_state=random_state,
    )
    i, j = np.argwhere(data.adjacency.to_numpy())[0]
    cause, effect = data.X.columns[i], data.X.columns[j]
    ax = ax or new_axes(4.2, 3.6)
    looks = (
        ("observational", None, PALETTE[1], "o"),
        ("intervention on the effect", effect, PALETTE[2], "s"),
        ("intervention on the cause", cause, PALETTE[0], "^"),
    )
    for label, hit, colour, marker in looks:
        rows = data.regimes == (0 if hit is None else int(np.flatnonzero(data.targets[hit])[0]))
        ax.scatter(
            data.X.loc[rows, cause],
            data.X.loc[rows, effect],
            s=9,
            alpha=0.6,
            linewidths=0,
            color=colour,
            marker=marker,
            label=label,
        )
    ax.set_xlabel(f"cause ({cause})")
    ax.set_ylabel(f"effect ({effect})")
    ax.legend(fontsize=7, frameon=False)
    return ax
