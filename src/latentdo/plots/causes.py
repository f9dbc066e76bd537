"""The causal graph."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from latentdo.graphs.layout import bends, layered_layout
from latentdo.plots.style import INK, as_result, literal, new_axes, regime_colour, regime_index, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_BOX = "#EEF2F7"


def graph(
    result: Any, ax: Axes | None = None, *, regime: Hashable | None = None, min_probability: float = 0.0
) -> Axes:
    """Draw the causal graph in layers, causes above effects; likelier edges are wider and darker.

    Parameters
    ----------
    result : FitResult or fitted estimator
        What to draw.
    ax : Axes, optional
        Where to draw.
    regime : label, optional
        Fill the targets of this regime with its colour.
    min_probability : float
        Leave out edges with a smaller probability.
    """
    result = as_result(result)
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    names = [shorten(name) for name in result.columns]
    widths = np.array([22.0 + 7.5 * len(name) for name in names])
    layout = layered_layout(result.model.topology.adjacency, widths)
    if ax is None:
        ax = new_axes(np.clip((layout.width + 60) / 85, 3, 18), np.clip((layout.height + 60) / 85, 2, 14))
    hit = set()
    if regime is not None:
        hit = set(np.flatnonzero(result.model.topology.targets[regime_index(result, regime)]))
    ax.set_xlim(-15, layout.width + 15)
    ax.set_ylim(layout.height + 35, -35)
    ax.set_axis_off()
    points_per_unit = ax.get_window_extent().height * 72.0 / ax.figure.dpi / (layout.height + 70)
    half_box = 11.0 / points_per_unit  # boxes have the size of their text, whatever the size of the axes
    for j, (name, (x, y)) in enumerate(zip(names, layout.positions, strict=True)):
        colour = regime_colour(regime_index(result, regime)) if j in hit else _BOX
        ax.text(
            x,
            y,
            literal(name),
            ha="center",
            va="center",
            fontsize=9,
            zorder=3,
            color="white" if j in hit else INK,
            bbox={"boxstyle": "round,pad=0.45", "facecolor": colour, "edgecolor": INK, "linewidth": 0.7},
        )
    for (i, j), route in layout.routes.items():
        probability = float(result.edge_probabilities[i, j])
        if probability < min_probability:
            continue
        vertices, codes = _curve(route, half_box)
        ax.add_patch(
            FancyArrowPatch(
                path=Path(vertices, codes),
                arrowstyle="-|>",
                mutation_scale=11,
                linewidth=0.6 + 2.2 * probability,
                alpha=0.25 + 0.7 * probability,
                color=INK,
                zorder=2,
            )
        )
    return ax


def _curve(
    route: tuple[tuple[float, float], ...], half: float
) -> tuple[list[tuple[float, float]], list[Any]]:
    """A smooth path through the points of a route that leaves and enters the boxes vertically."""
    from matplotlib.path import Path

    points = [
        (route[0][0], route[0][1] + half),
        *route[1:-1],
        (route[-1][0], route[-1][1] - half),
    ]
    curves = bends(points)
    vertices = [points[0], *(vertex for curve in curves for vertex in curve)]
    return vertices, [Path.MOVETO, *[Path.CURVE4] * (3 * len(curves))]
