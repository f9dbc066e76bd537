"""Graphs as matrices: what is accepted, and what the variables are called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

__all__ = ["Adjacency", "GraphLike", "as_adjacency", "variable_names"]

Adjacency = NDArray[np.int64]
"""A square 0/1 matrix; ``adjacency[i, j] == 1`` means ``i -> j``."""

GraphLike = ArrayLike | pd.DataFrame


def as_adjacency(adjacency: GraphLike, *, what: str = "adjacency") -> Adjacency:
    """Validate a graph and return it as a fresh integer matrix.

    Parameters
    ----------
    adjacency : array_like or DataFrame, shape (d, d)
        Entries 0/1 or booleans. The rows of a frame are reordered to follow its columns.
    what : str
        How error messages call the argument.

    Returns
    -------
    ndarray of int64, shape (d, d)

    Raises
    ------
    ValueError
        If the matrix is not square, holds anything but 0 and 1, or a frame's row and column names differ.

    Examples
    --------
    >>> import pandas as pd
    >>> as_adjacency(pd.DataFrame([[0, 0], [0, 1]], index=["b", "a"], columns=["a", "b"]))
    array([[0, 1],
           [0, 0]])
    """
    if isinstance(adjacency, pd.DataFrame):
        adjacency = _rows_like_columns(adjacency, what)
    matrix = np.asarray(adjacency)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{what} must be a square matrix, but its shape is {matrix.shape}")
    if matrix.dtype.kind not in "biuf":
        try:
            matrix = matrix.astype(float)
        except (TypeError, ValueError):
            raise ValueError(
                f"{what} must hold the numbers 0 and 1, but its type is {matrix.dtype}"
            ) from None
    wrong = np.argwhere(~((matrix == 0) | (matrix == 1)))
    if len(wrong):
        row, column = (int(index) for index in wrong[0])
        raise ValueError(
            f"{what} must hold only 0 and 1, but entry [{row}, {column}] is {matrix[row, column]}"
            f" ({len(wrong)} such entries); threshold probabilities before calling"
        )
    return matrix.astype(np.int64)


def _rows_like_columns(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """Put the rows of a frame into the order of its columns, by name."""
    if frame.shape[0] != frame.shape[1]:
        raise ValueError(f"{what} must be a square matrix, but its shape is {frame.shape}")
    for axis, index in (("row", frame.index), ("column", frame.columns)):
        if not index.is_unique:
            repeated = sorted({str(name) for name in index[index.duplicated()]})
            raise ValueError(f"{what} has repeated {axis} names: {', '.join(repeated)}")
    rows, columns = set(frame.index), set(frame.columns)
    if rows != columns:
        raise ValueError(
            f"{what} must have the same names on rows and columns; only on rows: {_listed(rows - columns)};"
            f" only on columns: {_listed(columns - rows)}"
        )
    return frame.loc[list(frame.columns)]


def _listed(names: Iterable[object]) -> str:
    return ", ".join(sorted(str(name) for name in names)) or "none"


def variable_names(adjacency: GraphLike, names: Sequence[object] | None = None) -> list[str]:
    """Names of the variables, as strings: those given, else a frame's columns, else ``X0, X1, ...``.

    Raises
    ------
    ValueError
        If their number does not fit or a name is repeated.

    Examples
    --------
    >>> variable_names([[0, 1], [0, 0]])
    ['X0', 'X1']
    """
    if names is None and isinstance(adjacency, pd.DataFrame):
        names = list(adjacency.columns)
    d = len(as_adjacency(adjacency))
    if names is None:
        return [f"X{index}" for index in range(d)]
    found = [str(name) for name in names]
    if len(found) != d:
        raise ValueError(f"{len(found)} names given for {d} variables")
    if len(set(found)) != d:
        repeated = {name for name in found if found.count(name) > 1}
        raise ValueError(f"variable names must be unique, but these are repeated: {_listed(repeated)}")
    return found
