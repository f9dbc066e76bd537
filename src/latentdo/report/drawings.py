"""Inline SVG of the graph and of its probabilities; text is always escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from markupsafe import Markup

from latentdo.graphs.layout import bends, layered_layout
from latentdo.model.fitted import Array
from latentdo.report.content import Edge
from latentdo.report.messages import chance
from latentdo.report.svg import element, px, shortened, svg, text_width
from latentdo.result import FitResult

_MOST_MAYBE = 80
_BOX = 30.0
_MARGIN = 14.0


def graph(result: FitResult, edges: Iterable[Edge]) -> tuple[Markup, float]:
    """The causal graph in layers, and its natural width in pixels.

    A node is a link to the description of its mechanism, and carries the class ``t3`` if regime 3 has it as a target,
    so that style rules can light it up. Probable edges that the graph leaves out are drawn too, and hidden at first.
    """
    short = [shortened(name, 20) for name in result.columns]
    widths = np.array([24.0 + text_width(name) for name in short])
    layout = layered_layout(result.model.topology.adjacency, widths)
    left_open = {(edge.cause, edge.effect) for edge in edges if edge.open_direction}
    parts = [
        *_left_out(result, layout.positions, widths),
        *(_edge(result, edge, route, left_open) for edge, route in layout.routes.items()),
    ]
    targets = result.model.topology.targets
    for j, (x, y) in enumerate(layout.positions):
        hit = np.flatnonzero(targets[:, j])
        classes = " ".join(["node", *(f"t{k}" for k in hit)])
        named = ", ".join(str(result.regime_names[k]) for k in hit)
        kind = f", {result.kinds[j].kind}" if result.kinds[j].is_discrete else ""
        title = result.columns[j] + kind + (f" (target of: {named})" if len(hit) else " (never a target)")
        box = element("rect", x=x - widths[j] / 2, y=y - _BOX / 2, width=widths[j], height=_BOX, rx=9)
        text = element("text", short[j], x=x, y=y + 4.5, text_anchor="middle")
        inside = (element("title", title), box, text)
        parts.append(element("a", *inside, kind=classes, href=f"#m-{j}", data_node=j))
    width, height = layout.width + 2 * _MARGIN, layout.height + _BOX + 2 * _MARGIN
    frame = (-_MARGIN, -_BOX / 2 - _MARGIN, width, height)
    count = int(result.model.topology.adjacency.sum())
    label = f"Causal graph of {len(short)} variables and {count} edges; the table below lists them."
    return svg(frame, label, parts, "graph", role="group"), width


def matrix(result: FitResult) -> tuple[Markup, float]:
    """Probability of every directed edge as a matrix, causes in rows; and its natural width."""
    d = len(result.columns)
    cell = 24.0 if d <= 20 else max(10.0, 720.0 / d)
    font = min(12.0, cell * 0.85)
    short = [shortened(name, 16) for name in result.columns]
    pad = 12.0 + max((text_width(name) for name in short), default=0.0) * font / 13.0
    parts = []
    for j, name in enumerate(short):
        middle = pad + (j + 0.5) * cell
        base = middle + font * 0.35
        parts.append(element("text", name, x=pad - 6, y=base, font_size=font, text_anchor="end"))
        turned = f"translate({px(base)} {px(pad - 6)}) rotate(-60)"
        parts.append(element("text", name, transform=turned, font_size=font))
    size = d * cell
    parts.append(element("rect", kind="grid", x=pad, y=pad, width=size, height=size))
    lines = "".join(
        f"M{px(pad)} {px(pad + at * cell)}h{px(size)}M{px(pad + at * cell)} {px(pad)}v{px(size)}"
        for at in range(1, d)
    )
    parts.append(element("path", kind="grid faint", d=lines))
    for i, j in np.argwhere((result.edge_probabilities >= 0.01) | (result.model.topology.adjacency == 1)):
        probability = float(result.edge_probabilities[i, j])
        chosen = " chosen" if result.model.topology.adjacency[i, j] else ""
        parts.append(
            element(
                "rect",
                element("title", f"{result.columns[i]} → {result.columns[j]}: {chance(probability)}"),
                kind=f"cell{chosen}",
                x=pad + j * cell + 1,
                y=pad + i * cell + 1,
                width=cell - 2,
                height=cell - 2,
                fill_opacity=f"{probability:.2f}",
            )
        )
    width = pad + size + _MARGIN + 0.5 * pad
    label = "Probability of every directed edge; rows are causes, columns are effects."
    return svg((0, 0, width, pad + size + _MARGIN), label, parts, "matrix"), width


def _edge(
    result: FitResult,
    edge: tuple[int, int],
    route: Sequence[tuple[float, float]],
    left_open: set[tuple[str, str]],
) -> Markup:
    cause, effect = (result.columns[v] for v in edge)
    probability = float(result.edge_probabilities[edge])
    width = 0.8 + 2.7 * probability
    tip_x, tip_y = route[-1][0], route[-1][1] - _BOX / 2
    head = 6.0 + 1.2 * width
    points = [(route[0][0], route[0][1] + _BOX / 2), *route[1:-1], (tip_x, tip_y - head + 1)]
    d = f"M{px(points[0][0])} {px(points[0][1])}"
    for curve in bends(points):
        d += "C" + " ".join(f"{px(x)} {px(y)}" for x, y in curve)
    doubtful = " open" if (cause, effect) in left_open else ""
    title = f"{cause} → {effect}: {chance(probability)}" + (
        "; these data cannot tell the direction" if doubtful else ""
    )
    half = head * 0.42
    corners = [(tip_x, tip_y), (tip_x - half, tip_y - head), (tip_x + half, tip_y - head)]
    triangle = " ".join(f"{px(x)},{px(y)}" for x, y in corners)
    return Markup(
        '<g class="edge{}" opacity="{:.2f}" data-p="{:.4f}" data-from="{}" data-to="{}"><title>{}</title>'
        '<path d="{}" stroke-width="{:.2f}"/><polygon points="{}"/></g>'
    ).format(doubtful, 0.3 + 0.65 * probability, probability, *edge, title, d, width, triangle)


def _left_out(result: FitResult, positions: Array, widths: Array) -> list[Markup]:
    """Edges with a probability of 10 % or more that are not in the graph, as straight lines from box to box."""
    probable = (result.edge_probabilities >= 0.1) & (result.model.topology.adjacency == 0)
    likely = np.argwhere(probable).tolist()
    likely.sort(key=lambda edge: -result.edge_probabilities[edge[0], edge[1]])
    parts = []
    for i, j in likely[:_MOST_MAYBE]:
        probability = float(result.edge_probabilities[i, j])
        start, end = (np.asarray(positions[v]) for v in (i, j))
        step = end - start
        length = float(np.hypot(*step)) or 1.0
        a, b = (start + step * _share_inside(step, widths[i]), end - step * _share_inside(step, widths[j]))
        unit = step / length
        side = np.array([-unit[1], unit[0]])
        head = 8.0
        corners = [b, b - head * unit + 0.42 * head * side, b - head * unit - 0.42 * head * side]
        parts.append(
            Markup(
                '<g class="edge maybe" data-p="{:.4f}" data-from="{}" data-to="{}"><title>{}</title>'
                '<path d="M{} {}L{} {}" stroke-width="{:.2f}"/><polygon points="{}"/></g>'
            ).format(
                probability,
                i,
                j,
                f"{result.columns[i]} → {result.columns[j]}: {chance(probability)}; not in the graph",
                *(px(v) for v in (*a, *(b - 0.8 * head * unit))),
                0.8 + 2.7 * probability,
                " ".join(f"{px(x)},{px(y)}" for x, y in corners),
            )
        )
    return parts


def _share_inside(step: Array, width: float) -> float:
    """Which share of the way from a box's centre lies inside it."""
    x, y = np.abs(step)
    return float(min(0.45, width / 2 / x if x else np.inf, _BOX / 2 / y if y else np.inf))
