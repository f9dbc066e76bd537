"""Graphs as matrices: what is accepted, and what the variables are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

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
    if isinstance(adjacency, pd.DataFrame) and adjacency.shape[0] == adjacency.shape[1]:
        check_same_names(adjacency.index, adjacency.columns, f"the rows of {what}", "its columns")
        adjacency = adjacency.loc[list(adjacency.columns)]
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


def check_same_names(given: Iterable[Any], wanted: Iterable[Any], of_given: str, of_wanted: str) -> None:
    """Refuse names that are repeated or differ from those wanted, whatever their order."""
    given, wanted = list(given), list(wanted)
    for names, where in ((given, of_given), (wanted, of_wanted)):
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise ValueError(f"repeated names in {where}: {_listed(repeated)}")
    if set(given) != set(wanted):
        raise ValueError(
            f"names differ: only in {of_given}: {_listed(set(given) - set(wanted))};"
            f" only in {of_wanted}: {_listed(set(wanted) - set(given))}"
        )


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
