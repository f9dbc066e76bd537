"""What counts of a row are in proportion to: its library size, hours of observation, persons at risk; checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latentdo.data.kinds import Kind
from latentdo.data.weights import numbers_of_rows


def encode_offset(
    offset: Any, rows: NDArray[np.int64], n_rows: int, index: pd.Index[Any] | None = None
) -> NDArray[np.float64]:
    """Sizes of some rows as numbers.

    Parameters
    ----------
    offset : sequence of n_rows numbers
        Above 0: their logarithms are what is added to those of mean counts.
    rows : ndarray of int64
        The rows that are kept.
    n_rows : int
        Rows of the user's table.
    index : Index, optional
        That of the user's table.

    Raises
    ------
    ValueError, TypeError
        If a size is missing, no number, or not above 0, naming the row.

    Examples
    --------
    >>> encode_offset([1200, 800, 950], np.arange(2), 3)
    array([1200.,  800.])
    """
    sizes = numbers_of_rows(offset, "offset", n_rows, index)[rows]
    wrong = np.flatnonzero(~(np.isfinite(sizes) & (sizes > 0.0)))
    if wrong.size:
        raise ValueError(
            f"offset is {sizes[wrong[0]]:g} in row {rows[wrong[0]]} (counted from 0), which is not a size "
            f"({wrong.size} rows in all); pass the size to which counts are proportional, such as hours or library "
            "sizes, finite and above 0 (not its logarithm), and leave out rows that have none."
        )
    return sizes


def check_counted(kinds: Sequence[Kind], columns: Sequence[str]) -> None:
    """Refuse an offset where there is nothing that was counted."""
    if all(kind.kind != "count" for kind in kinds):
        raise ValueError(
            "offset= is the size to which counts are proportional, but no column is a count; use kinds=, as in "
            f"kinds={{{columns[0]!r}: 'count'}}, or leave out offset="
        )
