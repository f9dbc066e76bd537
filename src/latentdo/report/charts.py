"""Inline SVG of rows and of the course of a fit; text is always escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from latentdo.data import Circumstances
from latentdo.model.fitted import Array
from latentdo.plots import stretches
from latentdo.plots.style import describe, evenly, rows_by_regime
from latentdo.report.mechanisms import Cause
from latentdo.report.messages import number
from latentdo.report.svg import element, palette_class, px, round_ticks, shortened, svg, text_width
from latentdo.result import FitResult

_MOST_ROWS = 500
_MOST_STEPS = 400


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
    return _chart(
        seconds, values, steps, (low, high), [(t, f"{t:,.6g}") for t in round_ticks(low, high)], label
    )


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
        parts.append(element("line", kind="grid", x1=left, y1=y, x2=width - 16, y2=y))
        parts.append(element("text", text, x=left - 8, y=y + 4, text_anchor="end"))
    for tick in round_ticks(start, end):
        x, _ = place(tick, low)
        parts.append(element("text", f"{tick:g} s", x=x, y=height - 16, text_anchor="middle"))
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(s, v) for s, v in line))
    parts.append(element("polyline", kind="best", points=points))
    for at in evenly(len(values), _MOST_STEPS):
        x, y = place(float(seconds[at]), float(values[at]))
        parts.append(element("circle", kind="step", cx=x, cy=y, r=2.6))
    return svg((0, 0, width, height), label, parts, "chart")


def curve(result: FitResult, cause: Cause, effect: int) -> Markup:
    """A cause's effect as a small curve: median, and the band that holds 80 % of the draws; bars, if it has levels."""
    width, height, pad = 150.0, 62.0, 5.0
    x, values = cause.curve[:, 0], cause.curve[:, 1:]
    label = f"{result.columns[effect]} over {cause.name}: {cause.before} at {cause.low}, {cause.after} at {cause.high}."
    frame = element("rect", kind="grid", x=0.5, y=0.5, width=width - 1, height=height - 1, rx=4)
    low, span = values.min(), max(float(np.ptp(values)), 1e-9)
    if cause.has_levels:  # nothing lies between levels
        low = min(0.0, float(low))
        tall = (values[:, 1] - low) / max(float(values.max()) - low, 1e-9) * (height - 2 * pad)
        room = (width - 2 * pad) / len(x)
        columns = [
            element(
                "rect",
                kind="band",
                x=pad + (at + 0.15) * room,
                y=height - pad - size,
                width=0.7 * room,
                height=size,
            )
            for at, size in enumerate(tall)
        ]
        return svg((0, 0, width, height), label, [frame, *columns], "curve")
    xs = pad + (x - x[0]) / max(float(x[-1] - x[0]), 1e-9) * (width - 2 * pad)
    ys = pad + (1 - (values - low) / span) * (height - 2 * pad)
    points = [
        " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(xs, ys[:, column], strict=True)) for column in range(3)
    ]
    upper = " ".join(reversed(points[2].split()))
    parts = [
        frame,
        element("polygon", kind="band", points=f"{points[0]} {upper}"),
        element("polyline", kind="best", points=points[1]),
    ]
    return svg((0, 0, width, height), label, parts, "curve")


def responsibilities(result: FitResult) -> Markup:
    """How sure each row's regime is: one column per row, sorted by regime; the fuller the colour, the more probable."""
    values, shown = result.responsibilities, rows_by_regime(result, _MOST_ROWS)
    names = [shortened(str(name), 16) for name in result.regime_names]
    left = 14.0 + max(text_width(name) for name in names) * 12 / 13
    band, width = 18.0, 760.0
    step = (width - left) / len(shown)
    parts = []
    levels = np.ceil(values[shown] * 5 - 1e-9).clip(0, 5).astype(int)  # few enough to draw runs, not cells
    levels[values[shown] < 0.01] = 0
    for k, name in enumerate(names):
        y = k * band
        parts.append(element("text", name, x=left - 8, y=y + 13, text_anchor="end"))
        for level in range(1, 6):
            inside = np.flatnonzero(levels[:, k] == level)
            if not len(inside):
                continue
            runs = np.split(inside, np.flatnonzero(np.diff(inside) > 1) + 1)
            path = "".join(
                f"M{px(left + run[0] * step)} {px(y + band / 2)}h{px(len(run) * step)}" for run in runs
            )
            colour = palette_class(k).split()[0]
            parts.append(element("path", kind=f"run {colour}", stroke_opacity=f"{level / 5:.1f}", d=path))
    height = len(names) * band
    parts.append(element("rect", kind="grid", x=left, y=0.5, width=width - left - 0.5, height=height - 1))
    label = f"Probability of each of {len(names)} regimes for {len(shown)} rows, sorted by regime."
    return svg((0, 0, width, height), label, parts, "rows")


def timeline(result: FitResult) -> Markup:
    """When regimes other than the reference were there: one line per regime, time from left to right."""
    found, where = stretches(result), result.where
    assert where.time is not None
    names = [shortened(describe(result, k), 40) for k in range(1, result.n_regimes)]
    left = 14.0 + max(text_width(name) for name in names) * 12 / 13
    band, width, foot = 22.0, 940.0, 26.0
    first, last = float(where.time.min()), float(where.time.max()) + where.usual_gap()
    step = (width - left) / max(last - first, 1e-9)
    height = len(names) * band
    parts = [element("rect", kind="grid", x=left, y=0.5, width=width - left - 0.5, height=height - 1)]
    parts += [
        element("text", name, x=left - 8, y=place * band + 15, text_anchor="end")
        for place, name in enumerate(names)
    ]
    for one in found:
        length = max((one.end + where.usual_gap() - one.start) * step, 1.5)
        path = f"M{px(left + (one.start - first) * step)} {px((one.regime - 0.5) * band)}h{px(length)}"
        words = f"{result.regime_names[one.regime]}: {_moment(where, one.start)} to {_moment(where, one.end)}"
        colour = palette_class(one.regime).split()[0]
        parts.append(element("path", element("title", words), kind=f"run {colour}", d=path))
    for anchor, at in (("start", first), ("end", last)):
        x = left + (at - first) * step
        parts.append(element("text", _moment(where, at), x=x, y=height + 18, text_anchor=anchor))
    label = f"{len(found)} segments of {len(names)} regimes over time."
    return svg((0, 0, width, height + foot), label, parts, "rows")


def _moment(where: Circumstances, time: float) -> str:
    """A time in the user's form."""
    if not where.dated:
        return f"{time:.6g}"
    return str(where.shown(np.array([time]))[0].strftime("%Y-%m-%d %H:%M"))


def scatter(
    result: FitResult, z: Array, cause: int, effect: int, rows: NDArray[np.int64], title: str
) -> Markup:
    """Two variables, coloured by regime; axes are those of the fit, their labels in the user's units."""
    size, left, bottom = 300.0, 62.0, 46.0
    names = result.columns
    rows = rows[~np.isnan(z[rows, cause] + z[rows, effect])]
    low, high = np.nanquantile(z[:, [cause, effect]], (0.002, 0.998), axis=0)
    span = np.maximum(high - low, 1e-9)
    low, span = low - 0.05 * span, 1.1 * span

    def place(values: Array, axis: int) -> Array:
        share = np.clip((values - low[axis]) / span[axis], 0.0, 1.0)
        return np.asarray(left + share * (size - left) if axis == 0 else (1.0 - share) * (size - bottom))

    parts = [element("rect", kind="grid", x=left, y=0, width=size - left, height=size - bottom)]
    for axis, variable in enumerate((cause, effect)):
        for tick, text in _round_numbers(result, variable, low[axis], low[axis] + span[axis]):
            at = float(place(np.array([tick]), axis)[0])
            x, y, anchor = (at, size - bottom + 16, "middle") if axis == 0 else (left - 5, at + 4, "end")
            parts.append(element("text", text, x=x, y=y, text_anchor=anchor))
    middle = {"kind": "axis", "text_anchor": "middle"}
    turned = f"translate(10 {px((size - bottom) / 2)}) rotate(-90)"
    parts.append(element("text", shortened(names[cause], 30), x=(size + left) / 2, y=size - 10, **middle))
    parts.append(element("text", shortened(names[effect], 26), transform=turned, **middle))
    best = result.regimes
    xs, ys = place(z[rows, cause], 0), place(z[rows, effect], 1)
    for k in np.unique(best[rows]):
        own = best[rows] == k
        cross = "s2" in palette_class(int(k))
        mark = (
            "m-2 0h4m-2 -2v4" if cross else "h0"
        )  # a line without length is drawn as its cap: round or square
        dots = "".join(f"M{x:.1f} {y:.1f}{mark}" for x, y in zip(xs[own], ys[own], strict=True))
        title_of = element("title", f"regime {result.regime_names[k]}")
        parts.append(element("path", title_of, kind=f"dots {palette_class(int(k))}", d=dots))
    return svg((0, 0, size + 4, size), title, parts, "scatter")


def _round_numbers(result: FitResult, variable: int, low: float, high: float) -> list[tuple[float, str]]:
    """Places between two standardised values whose numbers in the user's units are short."""
    prep, name = result.preprocessor, result.columns[variable]
    ends = prep.inverse_column(name, np.array([low, high]))
    if prep.transform == "none":
        values = np.array(round_ticks(float(ends[0]), float(ends[1]), 4) or ends)
    else:
        between = prep.inverse_column(name, np.linspace(low, high, 6)[1:-1])
        values = np.array([float(f"{value:.1g}") for value in between])
        values = np.unique(values[(values > ends[0]) & (values < ends[1])])
        values = values if len(values) > 1 else between[[0, -1]]
    return [
        (float(z), number(float(v))) for z, v in zip(prep.forward_column(name, values), values, strict=True)
    ]
