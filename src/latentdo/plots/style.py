"""What all figures share: colours, names that fit, and figures of their own."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from latentdo.names import visible
from latentdo.result import FitResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALETTE: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F5FA8")
"""Colours of the interventions, in turn; the reference regime is grey."""

REFERENCE_COLOUR: Final = "#8A8A8A"
INK: Final = "#222222"
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")


def regime_colour(regime: int) -> str:
    """Colour of a regime by its index; grey for the reference."""
    return REFERENCE_COLOUR if regime == 0 else PALETTE[(regime - 1) % len(PALETTE)]


def shorten(name: object, length: int = 18) -> str:
    """A name that fits into a picture."""
    text = visible(" ".join(str(name).split()))
    return text if len(text) <= length else text[: length - 1] + "…"


def as_result(result: Any) -> FitResult:
    """The result of a fitted estimator, or the result itself."""
    found = getattr(result, "result_", result)
    if not isinstance(found, FitResult):
        raise TypeError(f"Expected a FitResult or a fitted estimator, got {type(result).__name__}.")
    return found


def new_axes(width: float, height: float) -> Axes:
    """Axes on a figure of their own; pyplot, and so the user's session, never hears of it."""
    from matplotlib.figure import Figure

    return Figure(figsize=(float(width), float(height)), layout="constrained").add_subplot()


def evenly(n: int, most: int) -> NDArray[np.int64]:
    """All of ``n`` places, or so many that are evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


def rows_by_regime(result: FitResult, most: int) -> NDArray[np.int64]:
    """Rows sorted by regime, and by its probability within; of many, evenly spaced ones."""
    best = result.regimes
    order = np.lexsort((-result.responsibilities[np.arange(len(best)), best], best))
    return order[evenly(len(order), most)]


def regime_index(result: FitResult, regime: Hashable) -> int:
    """Where a regime stands among the others."""
    if regime not in result.regime_names:
        raise ValueError(
            f"There is no regime {regime!r}; the regimes are {', '.join(map(repr, result.regime_names))}."
        )
    return result.regime_names.index(regime)


def describe(result: FitResult, k: int) -> str:
    """A regime in a few words: its name and its targets."""
    hit = [shorten(result.columns[j], 12) for j in result.ranked_targets(k)]
    name = shorten(result.regime_names[k], 20)
    if k == 0:
        return f"{name} (reference)" if "reference" not in name else name
    return f"{name}: {', '.join(hit[:3])}{', …' if len(hit) > 3 else ''}" if hit else name


def literal(text: str) -> str:
    """Dollar signs would be read as mathematics."""
    return text.replace("$", r"\$")
