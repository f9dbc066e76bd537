"""Pieces of SVG that all drawings of the report share: no style attributes (a strict policy forbids them)."""

from __future__ import annotations

import math
from collections.abc import Iterable

from markupsafe import Markup

_COLOURS = 7
_SHAPES = 3


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


def svg(
    frame: tuple[float, float, float, float],
    label: str,
    parts: Iterable[Markup],
    kind: str,
    *,
    role: str = "img",
) -> Markup:
    """One drawing; ``label`` is what a screen reader says."""
    return Markup('<svg class="{}" viewBox="{}" width="{}" role="{}" aria-label="{}">{}</svg>').format(
        kind, " ".join(px(value) for value in frame), px(frame[2]), role, label, Markup("").join(parts)
    )


def element(name: str, *content: str, **attributes: str | float) -> Markup:
    """One element around its content; ``kind`` is its class, and an underscore stands for a hyphen.

    Examples
    --------
    >>> print(element("text", "a < b", kind="axis", x=1.25, text_anchor="end"))
    <text class="axis" x="1.2" text-anchor="end">a &lt; b</text>
    """
    given = Markup("").join(
        Markup(' {}="{}"').format(
            "class" if key == "kind" else key.replace("_", "-"),
            value if isinstance(value, str) else px(value),
        )
        for key, value in attributes.items()
    )
    if not content:
        return Markup("<{}{}/>").format(name, given)
    return Markup("<{}{}>{}</{}>").format(name, given, Markup("").join(content), name)


def px(value: float) -> str:
    """A length with at most one decimal."""
    return f"{float(value):.1f}".removesuffix(".0")


def shortened(text: str, length: int) -> str:
    """On one line, cut off with an ellipsis beyond ``length`` letters."""
    shown = " ".join(str(text).split()) or "(no name)"
    return shown if len(shown) <= length else shown[: length - 1] + "…"


def text_width(text: str) -> float:
    """A generous guess at 13 px; wide scripts count double."""
    return sum(14.0 if ord(letter) > 0x2E7F else 7.6 for letter in text)


def round_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between two values, about as many as asked for."""
    raw = (high - low) / most
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw)
    first = math.ceil(low / step)
    return [round(step * at, 10) for at in range(first, math.floor(high / step) + 1)]
