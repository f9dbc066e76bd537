"""Numbers, shares, names and records as people write them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

MINUS = "\N{MINUS SIGN}"


def number(value: float) -> str:
    """Three significant digits, without an exponent where people would not write one.

    Examples
    --------
    >>> number(1234.5), number(0.012345), number(-3.0), number(1.2e9)
    ('1230', '0.0123', '−3', '1.2e+09')
    """
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: f"{MINUS}∞"}.get(value, "?")
    if 1e3 <= abs(value) < 1e6:
        text = str(round(value, 2 - math.floor(math.log10(abs(value))))).removesuffix(".0")
    else:
        text = f"{value:.3g}"
    return f"{MINUS}{text[1:]}" if text.startswith("-") else text


def percent(value: float) -> str:
    """A share of the whole.

    Examples
    --------
    >>> percent(0.5), percent(0.999), percent(0.0001), percent(1.0)
    ('50 %', '> 99 %', '< 1 %', '100 %')
    """
    return chance(value) if 0.0 < value < 1.0 else f"{round(100 * value)} %"


def chance(value: float) -> str:
    """A probability that never claims certainty, which only rounding could suggest.

    Examples
    --------
    >>> chance(0.5), chance(1.0), chance(0.0)
    ('50 %', '> 99 %', '< 1 %')
    """
    if value > 0.99:
        return "> 99 %"
    return "< 1 %" if value < 0.01 else f"{round(100 * value)} %"


def table(entries: tuple[Mapping[str, Any], ...]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of records that need not have the same keys; what was chosen and its evidence stand last."""
    keys = sorted({str(key) for entry in entries for key in entry})
    keys.sort(key=lambda key: (key == "chosen", "evidence" in key, key not in ("model", "density")))
    return keys, [[cell(entry.get(key, "")) for key in keys] for entry in entries]


def settings(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Configuration as pairs of text, by name (a saved file does not keep the order)."""
    return sorted((str(key), cell(value)) for key, value in values.items())


def cell(value: Any) -> str:
    """A value of a configuration or of a comparison, as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.1f}" if 1e3 <= abs(value) < 1e9 else number(value)
    if isinstance(value, str):
        return value
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = str(value)
    return text if len(text) <= 300 else text[:299] + "…"


def count(value: int, noun: str) -> str:
    """A number of things, with the noun in its number."""
    return f"{'no' if value == 0 else value} {noun}{'' if value == 1 else 's'}"


def listed(names: list[str], most: int = 8) -> str:
    """Names in a sentence; of many, the first."""
    shown = [short(name) for name in names]
    if len(shown) > most:
        return f"{', '.join(shown[:most])} and {len(shown) - most} more variables"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def unbroken(text: str) -> str:
    """Text whose arrows neither fall apart at their hyphen nor begin a line.

    Examples
    --------
    >>> unbroken("a -> b").split()
    ['a', '→', 'b']
    """
    return text.replace(" -> ", "\N{NO-BREAK SPACE}→ ")


def short(name: str, length: int = 40) -> str:
    """A name that fits into a line."""
    return name if len(name) <= length else name[: length - 1] + "…"
