"""Which row belongs to which regime, and how surely."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentdo.names import visible
from latentdo.report.messages import count, percent
from latentdo.result import FitResult

_MOST_ROWS = 20_000


def assignment(result: FitResult) -> str:
    """How surely the rows were assigned, in one sentence."""
    best, what = result.responsibilities.max(axis=1), "row"
    if result.groups is not None:
        best, what = best[np.unique(result.groups, return_index=True)[1]], "group"
    sure = float((best > 0.95).mean())
    if result.n_regimes == 1:
        return "There is one regime, and every row belongs to it."
    text = f"{percent(sure)} of the {what}s belong to their regime with a probability above 95 %"
    close = int((best < 0.6).sum())
    if close:
        text += f"; for {count(close, what)} the likeliest regime has less than 60 %"
    return f"{text}."


def doubtful_rows(result: FitResult, numbers: NDArray[Any], most: int = 12) -> list[dict[str, Any]]:
    """The rows whose regime is least certain, with their two likeliest regimes; one per group, if there are any."""
    if result.n_regimes == 1:
        return []
    probabilities = result.responsibilities
    order = np.argsort(probabilities.max(axis=1), kind="stable")
    if result.groups is not None:
        order = order[np.sort(np.unique(result.groups[order], return_index=True)[1])]
    order = order[:most]
    found = []
    for row in order[probabilities[order].max(axis=1) < 0.95]:
        second, best = np.argsort(probabilities[row], kind="stable")[-2:]
        found.append(
            {
                "row": str(numbers[row]) if result.groups is None else _group(result, row, numbers),
                "best": str(result.regime_names[best]),
                "probability": float(probabilities[row, best]),
                "second": str(result.regime_names[second]),
                "second_probability": float(probabilities[row, second]),
            }
        )
    return found


def _group(result: FitResult, row: int, numbers: NDArray[Any]) -> str:
    """What the user calls the group of a row; rows on their own have only a number."""
    assert result.groups is not None
    group = int(result.groups[row])
    return str(result.group_names[group]) if group < len(result.group_names) else f"row {numbers[row]}"


def row_data(result: FitResult, numbers: NDArray[Any]) -> dict[str, str] | None:
    """The two likeliest regimes of every row as JSON, for looking one up; None for very long tables."""
    n = len(result.responsibilities)
    counted = np.issubdtype(np.asarray(numbers).dtype, np.integer)
    if result.n_regimes == 1 or n > _MOST_ROWS or not counted:
        return None
    order = np.argsort(-result.responsibilities, axis=1, kind="stable")[:, :2]
    share = np.take_along_axis(result.responsibilities, order, axis=1)
    # rounded away from certainty, as everywhere in the report
    whole = np.where(
        share > 0.99, 100, np.where(share < 0.01, 0, np.clip(np.rint(100 * share), 1, 99))
    ).astype(int)
    rows = [
        [int(a), int(p)] if q == 0 else [int(a), int(p), int(b), int(q)]
        for (a, b), (p, q) in zip(order, whole, strict=True)
    ]
    plain = np.array_equal(numbers, np.arange(n))
    return {
        "rows": json.dumps(rows, separators=(",", ":")),
        "labels": "null" if plain else json.dumps([int(v) for v in numbers], separators=(",", ":")),
        "names": json.dumps([visible(name) for name in result.regime_names]),
    }
