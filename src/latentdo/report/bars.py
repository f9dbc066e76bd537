"""Bars as inline SVG, where a scatter plot of levels and counts would be lines of dots."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from latentdo.model.fitted import Array
from latentdo.plots.bars import bars
from latentdo.report.messages import number
from latentdo.report.svg import element, palette_class, px, round_ticks, shortened, svg
from latentdo.result import FitResult


def bar_chart(result: FitResult, x: Array, cause: int, effect: int) -> Markup:
    """An effect by levels or ranges of its cause, one bar per regime; ``x`` in the user's units."""
    size, left, bottom = 300.0, 62.0, 46.0
    found = bars(result, x, cause, effect)
    seen = found.heights[np.isfinite(found.heights)]
    low, high = min(0.0, float(seen.min(initial=0.0))), max(0.0, float(seen.max(initial=0.0)))
    high = high if high > low else low + 1.0
    drawn = [k for k in range(result.n_regimes) if np.isfinite(found.heights[:, k]).any()]
    room = (size - left) / max(len(found.groups), 1)
    width = 0.8 * room / max(len(drawn), 1)

    def level(value: float) -> float:
        return (high - value) / (high - low) * (size - bottom - 6) + 6

    parts = [element("rect", kind="grid", x=left, y=0, width=size - left, height=size - bottom)]
    parts += [
        element("text", number(tick), x=left - 5, y=level(tick) + 4, text_anchor="end")
        for tick in round_ticks(low, high, 4)
    ]
    for place, group in enumerate(found.groups):
        middle = left + (place + 0.5) * room
        shown = shortened(group, max(3, int(room / 7)))
        parts.append(element("text", shown, x=middle, y=size - bottom + 16, text_anchor="middle"))
        for order, k in enumerate(drawn):
            value = found.heights[place, k]
            if np.isfinite(value):
                at = middle + (order - (len(drawn) - 1) / 2) * width
                path = f"M{px(at)} {px(level(0.0))}V{px(level(float(value)))}"
                words = f"regime {result.regime_names[k]}, {group}: {number(float(value))}"
                colour = f"dots {palette_class(k).split()[0]}"
                parts.append(
                    element("path", element("title", words), kind=colour, stroke_width=0.9 * width, d=path)
                )
    axis = {"kind": "axis", "text_anchor": "middle"}
    turned = f"translate(10 {px((size - bottom) / 2)}) rotate(-90)"
    cause_name = shortened(result.columns[cause], 30)
    parts.append(element("text", cause_name, x=(size + left) / 2, y=size - 10, **axis))
    parts.append(element("text", shortened(found.words, 34), transform=turned, **axis))
    title = f"Bars: {found.words} by {result.columns[cause]}, one bar per regime."
    return svg((0, 0, size + 4, size), title, parts, "bars")
