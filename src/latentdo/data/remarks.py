"""What deserves a look about a table: its shape, copies, repeats, and columns that are no variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latentdo.notices import warn

Array = NDArray[np.float64]

_SHOWN = 8  # at most so many names in one message
_SCALE_RATIO = 1e6
_FEWEST_ROW_NUMBERS = 10  # a few measurements may rise in steps of one by chance
_BLOCK = 512  # columns compared with all others at once
COPY = 1e-4
"""Columns whose correlation is nearer to one than this are copies, maybe with an error: of one per cent it is 5e-5."""

_LABEL_NAMES = frozenset(
    {"batch", "cluster", "cohort", "condition", "drug", "environment", "experiment", "genotype", "group",
     "intervention", "label", "perturbation", "regime", "sgrna", "strain", "target", "treatment"}
)  # fmt: skip


class DataWarning(UserWarning):
    """The data can be used, but something about them deserves a look."""


class ColumnsWarning(DataWarning):
    """About columns as they are; a check at the end of the fit comes back to it."""


def warn_about_shape(n: int, spread: Array, names: Sequence[str], stacklevel: int = 2) -> None:
    """Warn of too few rows, and of columns whose standard deviations hint at a wrong unit."""
    d = len(names)
    if n <= d:
        message = f"There are only {n} rows for {d} variables; a graph found in so few rows means little."
        warn(message, DataWarning, stacklevel=stacklevel + 1)
    varying = np.flatnonzero(spread > 0.0)
    if varying.size == 0:
        return
    low, high = (int(varying[pick(spread[varying])]) for pick in (np.argmin, np.argmax))
    if spread[high] > _SCALE_RATIO * spread[low]:
        message = (
            f"Columns differ hugely in scale: the standard deviation of {names[high]!r} is "
            f"{spread[high]:.3g}, that of {names[low]!r} is {spread[low]:.3g}. Each column is standardised, "
            "so this does no harm if the units are right; check them."
        )
        warn(message, DataWarning, stacklevel=stacklevel + 1)


def warn_about_copies(z: Array, names: Sequence[str], stacklevel: int = 2) -> None:
    """Warn of columns that are linear copies of each other, or nearly: no data can tell which of them causes anything.

    ``z`` are standardised columns, ``[n, d]``. Only rows without missing cells are looked at.
    """
    missing = np.isnan(z).any(axis=1)
    if missing.any():  # each column was standardised by the rows that have it
        z = z[~missing] - z[~missing].mean(axis=0) if not missing.all() else z[:0]
        z = z / np.maximum(np.sqrt((z**2).mean(axis=0)), np.finfo(float).tiny) if len(z) else z
    if len(z) < 3:
        return
    copies: list[tuple[int, int]] = []
    for first in range(0, z.shape[1], _BLOCK):  # all pairs at once would fill gigabytes in wide tables
        correlation = np.abs(z[:, first : first + _BLOCK].T @ z[:, first:]) / len(z)
        found = np.argwhere(np.triu(correlation > 1.0 - COPY, 1)) + first
        copies += [(int(i), int(j)) for i, j in found]
    if copies:
        pairs = "; ".join(f"{names[i]!r} and {names[j]!r}" for i, j in copies[:_SHOWN])
        message = (
            f"Columns that are copies of each other up to scale, or nearly: {pairs}. Causes and effects of such a pair "
            "cannot be told apart; drop one of each pair."
        )
        warn(message, ColumnsWarning, stacklevel=stacklevel + 1)


def warn_about_repeats(values: Array, stacklevel: int = 2) -> None:
    """Warn of rows that occur more than once: they count as independent evidence, which copies are not.

    ``values`` are rows in the user's units, ``[n, d]``. A single variable, or whole numbers, repeat by nature; so do
    rows of which little is seen, and those with missing cells are not looked at.
    """
    values = values[~np.isnan(values).any(axis=1)]
    n, d = values.shape
    if n < 3 or d < 2 or not (values % 1.0).any(axis=0).all():
        return
    # Equal rows have equal hashes (zeros lose their sign); unequal ones differ but for one in 2**64 pairs.
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)
    multipliers = np.random.default_rng(0).integers(1, 2**63, d, dtype=np.uint64) * np.uint64(2) + np.uint64(
        1
    )
    mixed = (bits ^ (bits >> np.uint64(29))) * multipliers
    hashes = (mixed ^ (mixed >> np.uint64(32))).sum(axis=1, dtype=np.uint64)
    copies = n - len(np.unique(hashes))
    if copies:
        message = (
            f"{copies} of {n} rows repeat an earlier row exactly. If they were copied by mistake, for instance when "
            "files were joined, remove them (pandas: X.drop_duplicates()): copies make all results look too certain."
        )
        warn(message, DataWarning, stacklevel=stacklevel + 1)


def looks_like_labels(name: str, column: pd.Series[Any]) -> bool:
    """Whether a column seems to hold the condition of each row: by its name, or because its entries recur.

    Examples
    --------
    >>> import pandas as pd
    >>> looks_like_labels("x", pd.Series(["drug", "none"] * 10)), looks_like_labels("x", pd.Series(["a", "b", "c"]))
    (True, False)
    """
    try:
        distinct = column.nunique()
    except TypeError:  # lists and other things without a hash
        return False
    return 2 <= distinct <= (max(0.5 * len(column), 3) if is_label_name(name) else 0.2 * len(column))


def is_label_name(name: str) -> bool:
    """Whether a column is called as columns with the condition of each row often are."""
    return name.strip().lower().removesuffix("s") in _LABEL_NAMES


def _number_rows(steps: Array) -> bool:
    """Whether a column rises by one from row to row, but for rows that were left out."""
    return bool((steps >= 1.0).all() and not (steps % 1.0).any() and np.median(steps) == 1.0)


def warn_about_labels(values: Array, names: Sequence[str], remedy: str, stacklevel: int = 2) -> None:
    """Warn of row numbers, and of whole numbers under a name like "condition": neither is a variable of a graph."""
    for j, name in enumerate(names):
        column = values[~np.isnan(values[:, j]), j]
        if len(column) >= _FEWEST_ROW_NUMBERS and _number_rows(np.diff(column)):
            message = (
                f"Column {name!r} is used as a variable, but numbers the rows: drop=[{name!r}] leaves it out."
            )
            warn(message, DataWarning, stacklevel=stacklevel + 1)
        if is_label_name(name) and not (column % 1.0).any() and looks_like_labels(name, pd.Series(column)):
            message = (
                f"Column {name!r} is used as a variable, but looks like the condition of each row. If it is, "
                f"{remedy.format(name=repr(name))}."
            )
            warn(message, DataWarning, stacklevel=stacklevel + 1)
