"""Inline SVG for the report: no style attributes (a strict policy forbids them), text always escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from latentdo.layout import layered_layout
from latentdo.model.fitted import Array
from latentdo.report.content import Edge
from latentdo.report.mechanisms import Cause
from latentdo.report.wording import chance, number
from latentdo.result import FitResult

__all__ = [
    "curve",
    "evidence_chart",
    "graph",
    "matrix",
    "palette_class",
    "responsibilities",
    "scatter",
    "violation_chart",
]

_COLOURS = 7
_SHAPES = 3
_MOST_MAYBE = 80
_MOST_ROWS = 500
_BOX = 30.0
_MARGIN = 14.0


def palette_class(regime: int) -> str:
    """Class that colours a regime: grey for the reference, then seven colours in turn, in other shapes beyond.

    Examples
    --------
    >>> palette_class(0), palette_class(1), palette_class(8)
    ('k0', 'k1', 'k1 s1')
    """
    if regime == 0:
        return "k0"
    lap, colour = divmod(regime - 1, _COLOURS)
    return f"k{colour + 1}" + (f" s{lap % _SHAPES}" if lap % _SHAPES else "")


def graph(result: FitResult, edges: Iterable[Edge]) -> tuple[Markup, float]:
    """The causal graph in layers, and its natural width in pixels.

    A node is a link to the description of its mechanism, and carries the class ``t3`` if regime 3 has it as a target,
    so that style rules can light it up. Probable edges that the graph leaves out are drawn too, and hidden at first.
    """
    short = [_short(name, 20) for name in result.columns]
    widths = np.array([24.0 + _text_width(name) for name in short])
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
        title = result.columns[j] + (f" (target of: {named})" if len(hit) else " (never a target)")
        parts.append(
            Markup(
                '<a class="{}" href="#m-{}" data-node="{}"><title>{}</title>'
                '<rect x="{}" y="{}" width="{}" height="{}" rx="9"/>'
                '<text x="{}" y="{}" text-anchor="middle">{}</text></a>'
            ).format(
                classes,
                j,
                j,
                title,
                _px(x - widths[j] / 2),
                _px(y - _BOX / 2),
                _px(widths[j]),
                _px(_BOX),
                _px(x),
                _px(y + 4.5),
                short[j],
            )
        )
    width, height = layout.width + 2 * _MARGIN, layout.height + _BOX + 2 * _MARGIN
    frame = (-_MARGIN, -_BOX / 2 - _MARGIN, width, height)
    count = int(result.model.topology.adjacency.sum())
    label = f"Causal graph of {len(short)} variables and {count} edges; the table below lists them."
    return _svg(frame, label, parts, "graph", role="group"), width


def matrix(result: FitResult) -> tuple[Markup, float]:
    """Probability of every directed edge as a matrix, causes in rows; and its natural width."""
    d = len(result.columns)
    cell = 24.0 if d <= 20 else max(10.0, 720.0 / d)
    font = min(12.0, cell * 0.85)
    short = [_short(name, 16) for name in result.columns]
    pad = 12.0 + max((_text_width(name) for name in short), default=0.0) * font / 13.0
    parts = []
    for j, name in enumerate(short):
        middle = pad + (j + 0.5) * cell
        parts.append(
            Markup('<text x="{}" y="{}" font-size="{}" text-anchor="end">{}</text>').format(
                _px(pad - 6), _px(middle + font * 0.35), _px(font), name
            )
        )
        parts.append(
            Markup('<text transform="translate({} {}) rotate(-60)" font-size="{}">{}</text>').format(
                _px(middle + font * 0.35), _px(pad - 6), _px(font), name
            )
        )
    size = d * cell
    parts.append(
        Markup('<rect class="grid" x="{0}" y="{0}" width="{1}" height="{1}"/>').format(_px(pad), _px(size))
    )
    lines = "".join(
        f"M{_px(pad)} {_px(pad + at * cell)}h{_px(size)}M{_px(pad + at * cell)} {_px(pad)}v{_px(size)}"
        for at in range(1, d)
    )
    parts.append(Markup('<path class="grid faint" d="{}"/>').format(lines))
    for i, j in np.argwhere((result.edge_probabilities >= 0.01) | (result.model.topology.adjacency == 1)):
        probability = float(result.edge_probabilities[i, j])
        chosen = " chosen" if result.model.topology.adjacency[i, j] else ""
        parts.append(
            Markup(
                '<rect class="cell{}" x="{}" y="{}" width="{}" height="{}" fill-opacity="{:.2f}">'
                "<title>{}</title></rect>"
            ).format(
                chosen,
                _px(pad + j * cell + 1),
                _px(pad + i * cell + 1),
                _px(cell - 2),
                _px(cell - 2),
                probability,
                f"{result.columns[i]} → {result.columns[j]}: {chance(probability)}",
            )
        )
    width = pad + size + _MARGIN + 0.5 * pad
    label = "Probability of every directed edge; rows are causes, columns are effects."
    return _svg((0, 0, width, pad + size + _MARGIN), label, parts, "matrix"), width


def evidence_chart(seconds: Array, values: Array) -> Markup:
    """Evidence of every step over time, with the best so far as a line."""
    best = np.maximum.accumulate(values)
    # the first steps are often so bad that nothing else would be seen
    low, high = float(np.quantile(values, 0.1)), float(values.max())
    # less than a nat says nothing, and should not look like a climb
    low, high = (
        (low - 0.06 * (high - low), high + 0.06 * (high - low)) if high > low + 1 else (high - 1, high + 1)
    )
    steps = [(float(seconds[0]), float(best[0]))]
    for s, v in zip(seconds[1:], best[1:], strict=True):
        steps += [(float(s), steps[-1][1]), (float(s), float(v))]
    label = f"Evidence over {seconds[-1]:.3g} seconds, from {number(float(values[0]))} to {number(float(best[-1]))}."
    return _chart(seconds, values, steps, (low, high), [(t, f"{t:,.6g}") for t in _ticks(low, high)], label)


def violation_chart(seconds: Array, values: Array) -> Markup:
    """How far the relaxed graph was from a DAG over time, on a logarithmic scale."""
    logs = np.log10(np.maximum(values, 1e-16))
    low, high = math.floor(logs.min()), max(math.ceil(logs.max()), math.floor(logs.min()) + 1)
    every = max(1, round((high - low) / 5))
    ticks = [(float(t), f"1e{t:d}") for t in range(low, high + 1, every)]
    line = list(zip(seconds.tolist(), logs.tolist(), strict=True))
    label = f"Acyclicity constraint over {seconds[-1]:.3g} seconds, from {values[0]:.2g} to {values[-1]:.2g}."
    return _chart(seconds, logs, line, (low - 0.1, high + 0.1), ticks, label)


def _chart(
    seconds: Array,
    values: Array,
    line: Sequence[tuple[float, float]],
    limits: tuple[float, float],
    ticks: Iterable[tuple[float, str]],
    label: str,
) -> Markup:
    """Dots and a line over time; what lies below the limits stands on the lower one."""
    width, height, left, bottom = 620.0, 240.0, 84.0, 36.0
    low, high = limits
    start, end = float(seconds[0]), float(max(seconds[-1], seconds[0] + 1e-9))

    def place(s: float, v: float) -> tuple[float, float]:
        return (
            left + (s - start) / (end - start) * (width - left - 16),
            12 + (high - max(v, low)) / (high - low) * (height - bottom - 12),
        )

    parts = []
    for tick, text in ticks:
        _, y = place(start, tick)
        parts.append(
            Markup(
                '<line class="grid" x1="{}" y1="{}" x2="{}" y2="{}"/><text x="{}" y="{}" text-anchor="end">{}</text>'
            ).format(_px(left), _px(y), _px(width - 16), _px(y), _px(left - 8), _px(y + 4), text)
        )
    for tick in _ticks(start, end):
        x, _ = place(tick, low)
        parts.append(
            Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(
                _px(x), _px(height - 16), f"{tick:g} s"
            )
        )
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(s, v) for s, v in line))
    parts.append(Markup('<polyline class="best" points="{}"/>').format(points))
    shown = np.unique(np.linspace(0, len(values) - 1, min(len(values), 400)).round().astype(np.int64))
    for at in shown:
        x, y = place(float(seconds[at]), float(values[at]))
        parts.append(Markup('<circle class="step" cx="{}" cy="{}" r="2.6"/>').format(_px(x), _px(y)))
    return _svg((0, 0, width, height), label, parts, "chart")


def curve(result: FitResult, cause: Cause, effect: int) -> Markup:
    """A cause's effect as a small curve: median, and the band that holds 80 % of the draws."""
    width, height, pad = 150.0, 62.0, 5.0
    x, values = cause.curve[:, 0], cause.curve[:, 1:]
    low, span = values.min(), max(float(np.ptp(values)), 1e-9)
    xs = pad + (x - x[0]) / max(float(x[-1] - x[0]), 1e-9) * (width - 2 * pad)
    ys = pad + (1 - (values - low) / span) * (height - 2 * pad)
    points = [
        " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(xs, ys[:, column], strict=True)) for column in range(3)
    ]
    upper = " ".join(reversed(points[2].split()))
    label = f"{result.columns[effect]} over {cause.name}: {cause.before} at {cause.low}, {cause.after} at {cause.high}."
    parts = [
        Markup('<rect class="grid" x="0.5" y="0.5" width="{}" height="{}" rx="4"/>').format(
            _px(width - 1), _px(height - 1)
        ),
        Markup('<polygon class="band" points="{} {}"/>').format(points[0], upper),
        Markup('<polyline class="best" points="{}"/>').format(points[1]),
    ]
    return _svg((0, 0, width, height), label, parts, "curve")


def responsibilities(result: FitResult) -> Markup:
    """How sure each row's regime is: one column a row, sorted by regime; the fuller the colour, the more probable."""
    values, best = result.responsibilities, result.regimes
    order = np.lexsort((-values[np.arange(len(best)), best], best))
    shown = order[np.unique(np.linspace(0, len(order) - 1, min(len(order), _MOST_ROWS)).round().astype(int))]
    names = [_short(str(name), 16) for name in result.regime_names]
    left = 14.0 + max(_text_width(name) for name in names) * 12 / 13
    band, width = 18.0, 760.0
    step = (width - left) / len(shown)
    parts = []
    levels = np.ceil(values[shown] * 5 - 1e-9).clip(0, 5).astype(int)  # few enough to draw runs, not cells
    levels[values[shown] < 0.01] = 0
    for k, name in enumerate(names):
        y = k * band
        parts.append(
            Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(_px(left - 8), _px(y + 13), name)
        )
        for level in range(1, 6):
            inside = np.flatnonzero(levels[:, k] == level)
            if not len(inside):
                continue
            runs = np.split(inside, np.flatnonzero(np.diff(inside) > 1) + 1)
            path = "".join(
                f"M{_px(left + run[0] * step)} {_px(y + band / 2)}h{_px(len(run) * step)}" for run in runs
            )
            parts.append(
                Markup('<path class="run {}" stroke-opacity="{}" d="{}"/>').format(
                    palette_class(k).split()[0], f"{level / 5:.1f}", path
                )
            )
    height = len(names) * band
    parts.append(
        Markup('<rect class="grid" x="{}" y="0.5" width="{}" height="{}"/>').format(
            _px(left), _px(width - left - 0.5), _px(height - 1)
        )
    )
    label = f"Probability of each of {len(names)} regimes for {len(shown)} rows, sorted by regime."
    return _svg((0, 0, width, height), label, parts, "rows")


def scatter(
    result: FitResult, z: Array, cause: int, effect: int, rows: NDArray[np.int64], title: str
) -> Markup:
    """Two variables, coloured by regime; axes are those of the fit, their labels in the user's units."""
    size, left, bottom = 300.0, 62.0, 46.0
    names = result.columns
    low, high = np.quantile(z[:, [cause, effect]], (0.002, 0.998), axis=0)
    span = np.maximum(high - low, 1e-9)
    low, span = low - 0.05 * span, 1.1 * span

    def place(values: Array, axis: int) -> Array:
        share = np.clip((values - low[axis]) / span[axis], 0.0, 1.0)
        return np.asarray(left + share * (size - left) if axis == 0 else (1.0 - share) * (size - bottom))

    parts = [
        Markup('<rect class="grid" x="{}" y="0" width="{}" height="{}"/>').format(
            _px(left), _px(size - left), _px(size - bottom)
        )
    ]
    for axis, variable in enumerate((cause, effect)):
        for tick, text in _round_numbers(result, variable, low[axis], low[axis] + span[axis]):
            at = float(place(np.array([tick]), axis)[0])
            x, y, anchor = (at, size - bottom + 16, "middle") if axis == 0 else (left - 5, at + 4, "end")
            parts.append(
                Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(_px(x), _px(y), anchor, text)
            )
    parts.append(
        Markup('<text class="axis" x="{}" y="{}" text-anchor="middle">{}</text>').format(
            _px((size + left) / 2), _px(size - 10), _short(names[cause], 30)
        )
    )
    parts.append(
        Markup(
            '<text class="axis" transform="translate(10 {}) rotate(-90)" text-anchor="middle">{}</text>'
        ).format(_px((size - bottom) / 2), _short(names[effect], 26))
    )
    best = result.regimes
    xs, ys = place(z[rows, cause], 0), place(z[rows, effect], 1)
    for k in np.unique(best[rows]):
        own = best[rows] == k
        cross = "s2" in palette_class(int(k))
        mark = (
            "m-2 0h4m-2 -2v4" if cross else "h0"
        )  # a line without length is drawn as its cap: round or square
        dots = "".join(f"M{x:.1f} {y:.1f}{mark}" for x, y in zip(xs[own], ys[own], strict=True))
        parts.append(
            Markup('<path class="dots {}" d="{}"><title>{}</title></path>').format(
                palette_class(int(k)), dots, f"regime {result.regime_names[k]}"
            )
        )
    return _svg((0, 0, size + 4, size), title, parts, "scatter")


def _round_numbers(result: FitResult, variable: int, low: float, high: float) -> list[tuple[float, str]]:
    """Places between two standardised values whose numbers in the user's units are short."""
    prep, name = result.preprocessor, result.columns[variable]
    ends = prep.inverse_column(name, np.array([low, high]))
    if prep.transform == "none":
        values = np.array(_ticks(float(ends[0]), float(ends[1]), 4) or ends)
    else:
        between = prep.inverse_column(name, np.linspace(low, high, 6)[1:-1])
        values = np.array([float(f"{value:.1g}") for value in between])
        values = np.unique(values[(values > ends[0]) & (values < ends[1])])
        values = values if len(values) > 1 else between[[0, -1]]
    return [
        (float(z), number(float(v))) for z, v in zip(prep.forward_column(name, values), values, strict=True)
    ]


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
    d = f"M{_px(points[0][0])} {_px(points[0][1])}"
    for (ax, ay), (bx, by) in pairwise(points):
        bend = (by - ay) / 2
        d += f"C{_px(ax)} {_px(ay + bend)} {_px(bx)} {_px(by - bend)} {_px(bx)} {_px(by)}"
    doubtful = " open" if (cause, effect) in left_open else ""
    title = f"{cause} → {effect}: {chance(probability)}" + (
        "; these data cannot tell the direction" if doubtful else ""
    )
    half = head * 0.42
    corners = [(tip_x, tip_y), (tip_x - half, tip_y - head), (tip_x + half, tip_y - head)]
    triangle = " ".join(f"{_px(x)},{_px(y)}" for x, y in corners)
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
                *(_px(v) for v in (*a, *(b - 0.8 * head * unit))),
                0.8 + 2.7 * probability,
                " ".join(f"{_px(x)},{_px(y)}" for x, y in corners),
            )
        )
    return parts


def _share_inside(step: Array, width: float) -> float:
    """Which share of the way from a box's centre lies inside it."""
    x, y = np.abs(step)
    return float(min(0.45, width / 2 / x if x else np.inf, _BOX / 2 / y if y else np.inf))


def _svg(
    frame: tuple[float, float, float, float],
    label: str,
    parts: Iterable[Markup],
    kind: str,
    *,
    role: str = "img",
) -> Markup:
    return Markup('<svg class="{}" viewBox="{}" width="{}" role="{}" aria-label="{}">{}</svg>').format(
        kind, " ".join(_px(value) for value in frame), _px(frame[2]), role, label, Markup("").join(parts)
    )


def _px(value: float) -> str:
    return f"{float(value):.1f}".removesuffix(".0")


def _short(text: str, length: int) -> str:
    shown = " ".join(str(text).split()) or "(no name)"
    return shown if len(shown) <= length else shown[: length - 1] + "…"


def _text_width(text: str) -> float:
    """A generous guess at 13 px; wide scripts count double."""
    return sum(14.0 if ord(letter) > 0x2E7F else 7.6 for letter in text)


def _ticks(low: float, high: float, most: int = 5) -> list[float]:
    raw = (high - low) / most
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw)
    first = math.ceil(low / step)
    return [round(step * at, 10) for at in range(first, math.floor(high / step) + 1)]
