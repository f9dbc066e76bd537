"""What each regime changed, and by how much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from latentdo.plots.style import INK, as_result, literal, new_axes, regime_colour, shorten
from latentdo.result import FitResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def regimes(result: Any, ax: Axes | None = None) -> Axes:
    """Show what each regime changed: one row a regime with its share of the rows, darker is more probable.

    A dot marks the targets that were chosen.

    Parameters
    ----------
    result : FitResult or fitted estimator
        What to draw.
    ax : Axes, optional
        Where to draw.
    """
    result = as_result(result)
    k, d = result.target_probabilities.shape
    ax = ax or new_axes(np.clip(2.4 + 0.42 * d, 4, 22), np.clip(1.4 + 0.34 * k, 2, 14))
    image = ax.imshow(result.target_probabilities, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    rows, columns = np.nonzero(result.model.topology.targets)
    ax.plot(columns, rows, "o", color="#D55E00", markersize=4, label="target")
    weights = result.model.topology.weights
    labels = [
        literal(f"{shorten(name, 24)}  ({weight:.0%})")
        for name, weight in zip(result.regime_names, weights, strict=True)
    ]
    ax.set_yticks(range(k), labels)
    ax.set_xticks(
        range(d), [literal(shorten(name)) for name in result.columns], rotation=60, ha="right", fontsize=8
    )
    ax.set_ylabel(f"regime (share of {'rows' if result.groups is None else 'groups'})")
    cast("Any", ax.figure).colorbar(image, ax=ax, label="probability of a changed mechanism")
    return ax


def effects(result: Any, ax: Axes | None = None, *, most: int = 40) -> Axes:
    """Show what each regime did to each of its targets: the middle half and the median, against the reference.

    Positions are in standard units, so that all variables share an axis: 0 is the reference's median, and the grey
    band its middle half. Numbers on the right are the medians before and after, in the user's units.

    Parameters
    ----------
    result : FitResult or fitted estimator
        What to draw.
    ax : Axes, optional
        Where to draw.
    most : int
        Of more targets than this, the most probable ones are shown.
    """
    result = as_result(result)
    quartiles = regime_quartiles(result)
    pairs = np.argwhere(result.model.topology.targets)
    sure = np.argsort([-result.target_probabilities[k, j] for k, j in pairs], kind="stable")[:most]
    pairs = pairs[np.sort(sure)]
    ax = ax or new_axes(6.4, np.clip(1.2 + 0.3 * len(pairs), 2, 14))
    labels = []
    for row, (k, j) in enumerate(pairs):
        name = result.columns[j]
        z = result.preprocessor.forward_column(name, quartiles[[0, k], :, j].ravel()).reshape(2, 3)
        unit = max(float(z[0, 2] - z[0, 0]) / 1.349, 1e-12)  # of a normal distribution, this is its deviation
        z = (z - z[0, 1]) / unit
        colour = regime_colour(int(k))
        ax.plot(z[0, [0, 2]], [row, row], color="#C9C9C9", linewidth=9, solid_capstyle="butt", zorder=1)
        ax.plot(z[1, [0, 2]], [row, row], color=colour, linewidth=3, zorder=2)
        ax.plot(z[1, 1], row, "o", color=colour, markersize=6, zorder=3)
        before, after = quartiles[0, 1, j], quartiles[k, 1, j]
        ax.annotate(
            f"{before:.3g} → {after:.3g}",
            (1.01, row),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=8,
        )
        labels.append(literal(f"{shorten(result.regime_names[k], 20)}: {shorten(name)}"))
    if not len(pairs):
        ax.text(0.5, 0.5, "no regime has a target", ha="center", va="center", transform=ax.transAxes)
    ax.axvline(0.0, color=INK, linewidth=0.6, zorder=0)
    ax.set_yticks(range(len(pairs)), labels, fontsize=8)
    ax.set_ylim(max(len(pairs), 1) - 0.5, -0.5)
    ax.set_xlabel("shift, in standard deviations of the reference")
    return ax


def regime_quartiles(result: FitResult, n_draws: int = 4000) -> NDArray[np.float64]:
    """Quartiles of every variable in every regime, drawn from the fitted model, in the user's units.

    Returns
    -------
    ndarray [n_regimes, 3, d]
        Lower quartile, median, upper quartile.
    """
    rng = np.random.default_rng(0)
    drawn = (result.model.sample(n_draws, k, rng) for k in range(result.n_regimes))
    return np.asarray([np.quantile(result.preprocessor.inverse(z), (0.25, 0.5, 0.75), axis=0) for z in drawn])
