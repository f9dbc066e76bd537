"""How much rows count: ``sample_weight`` in scikit-learn's sense, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latentdo.data.labels import is_reordered
from latentdo.data.remarks import DataWarning
from latentdo.data.tensors import without_gradient
from latentdo.notices import warn

FEWEST: Final = 2.0
"""Rows that have to be left, as where rows are not weighted."""

HEAVY: Final = 10.0
"""Rows that a regime needs: one that counts as many times could be a regime by itself."""


def encode_weights(
    sample_weight: Any, n_rows: int, index: pd.Index[Any] | None = None
) -> NDArray[np.float64]:
    """Weights of all rows as numbers, ``[n_rows]``; one number is the weight of each.

    Parameters
    ----------
    sample_weight : sequence of n_rows numbers, or a number
        How often each row counts, from 0.
    n_rows : int
        Rows of the user's table.
    index : Index, optional
        That of the user's table.

    Raises
    ------
    ValueError, TypeError
        If a weight is missing, negative or no number, naming the row; or if all are zero.

    Examples
    --------
    >>> encode_weights([2, 0, 0.5], 3)
    array([2. , 0. , 0.5])
    """
    weights = numbers_of_rows(sample_weight, "sample_weight", n_rows, index)
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0.0)))
    if wrong.size:
        raise ValueError(
            f"sample_weight is {weights[wrong[0]]:g} in row {wrong[0]} (counted from 0), which is not a weight "
            f"({wrong.size} rows in all); a weight says how often a row counts: pass finite numbers from 0, and 0 for "
            "rows that should not count."
        )
    if not weights.any():
        raise ValueError(
            "sample_weight is zero in every row; give the rows that should count a positive weight."
        )
    return weights


def numbers_of_rows(
    given: Any, name: str, n_rows: int, index: pd.Index[Any] | None = None
) -> NDArray[np.float64]:
    """One number per row, ``[n_rows]``, whatever the user's form, NaN where it is none; one number is that of each.

    Raises
    ------
    ValueError, TypeError
        If there are not as many, or they are in another order; ``name`` is what the argument is called.
    """
    given = without_gradient(given, name)
    if isinstance(given, str | bytes | Mapping):
        raise TypeError(f"{name} must be a sequence with one number per row, got {type(given).__name__}.")
    if index is not None and isinstance(given, pd.Series) and is_reordered(given.index, index):
        raise ValueError(
            f"{name} has the index of X in another order; pass {name}.loc[X.index], or {name}.to_numpy() if its order "
            "is right."
        )
    numbers = _numbers(given)
    if numbers.ndim == 0:
        numbers = np.full(n_rows, numbers)
    if numbers.shape != (n_rows,):
        raise ValueError(f"{name} must be 1D with one entry per row ({n_rows}); got shape {numbers.shape}.")
    return np.asarray(numbers, dtype=np.float64)


def check_weights(weights: NDArray[np.float64], rows: NDArray[np.int64]) -> None:
    """Refuse to fit less than two rows, and say which rows count so often that one alone could be a regime."""
    if weights.sum() < FEWEST:
        raise ValueError(
            f"sample_weight adds up to {weights.sum():.3g} rows. A row of weight 2 counts like two rows, so weights "
            "whose ratios alone matter have to be scaled: pass sample_weight * n_rows / sample_weight.sum()."
        )
    heavy = np.flatnonzero(weights >= HEAVY)
    if heavy.size:
        message = (
            f"sample_weight is {weights[heavy[0]]:.4g} in row {rows[heavy[0]]} (counted from 0), and {HEAVY:g} or more "
            f"in {heavy.size} rows in all. They count like that many equal rows, which look like a regime that sets a "
            "variable. If only the ratios of weights matter, pass sample_weight * n_rows / sample_weight.sum()."
        )
        warn(message, DataWarning, stacklevel=3)


def _numbers(given: Any) -> NDArray[np.float64]:
    """Whatever the user's form; what is no number is NaN."""
    if isinstance(given, pd.Series) or hasattr(given, "to_pylist"):
        given = pd.Series(given.to_pylist() if hasattr(given, "to_pylist") else given)
        return np.asarray(pd.to_numeric(given, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan))
    values = np.asarray(given)
    if values.dtype.kind in "OSU" and values.ndim == 1:
        return np.asarray(pd.to_numeric(pd.Series(values), errors="coerce"), dtype=np.float64)
    return np.asarray(values, dtype=np.float64)
