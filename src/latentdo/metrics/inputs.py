"""What the metrics share: alignment by name, and precision / recall / F1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from latentdo.graphs import Adjacency, GraphLike, as_adjacency
from latentdo.graphs.matrix import check_same_names


@dataclass(frozen=True)
class Scores:
    """Counts of right and wrong answers, with precision, recall and F1.

    Where nothing was to be found and nothing was found, all three are 1; any other 0 / 0 is 0.

    Parameters
    ----------
    tp, fn, fp : int
        Found and true; true but not found; found but not true.

    Examples
    --------
    >>> print(Scores(tp=3, fn=1, fp=2))
    precision 0.60, recall 0.75, F1 0.67
    """

    tp: int
    fn: int
    fp: int

    @property
    def precision(self) -> float:
        """Share of what was found that is true."""
        return self._ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float:
        """Share of what is true that was found."""
        return self._ratio(self.tp, self.tp + self.fn)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, ``2 tp / (2 tp + fn + fp)``."""
        return self._ratio(2 * self.tp, 2 * self.tp + self.fn + self.fp)

    def _ratio(self, part: int, whole: int) -> float:
        if whole:
            return part / whole
        return 0.0 if self.fn or self.fp else 1.0

    def as_dict(self) -> dict[str, float]:
        """Return the three scores by name."""
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1}

    def __str__(self) -> str:
        return f"precision {self.precision:.2f}, recall {self.recall:.2f}, F1 {self.f1:.2f}"


def align_matrices(
    true: ArrayLike | pd.DataFrame, found: ArrayLike | pd.DataFrame, *, what: str = "graph"
) -> tuple[ArrayLike | pd.DataFrame, ArrayLike | pd.DataFrame]:
    """Put two square frames into the column order of the first; leave arrays as they are.

    Raises
    ------
    ValueError
        If the frames do not have the same names, listing those that only one of them has.
    """
    if not (isinstance(true, pd.DataFrame) and isinstance(found, pd.DataFrame)):
        return true, found
    check_same_names(true.index, true.columns, f"the rows of the true {what}", "its columns")
    check_same_names(found.index, found.columns, f"the rows of the found {what}", "its columns")
    check_same_names(found.columns, true.columns, f"the found {what}", f"the true {what}")
    names = list(true.columns)
    return true.loc[names, names], found.loc[names, names]


def align_graphs(true: GraphLike, found: GraphLike) -> tuple[Adjacency, Adjacency]:
    """Validate two graphs over the same variables, in the column order of the first.

    An array has no names: beside a frame, it is read in the order of the frame's columns.

    Raises
    ------
    ValueError
        If names or shapes differ, a matrix is not square and 0/1, or a variable causes itself.
    """
    first, second = align_matrices(true, found)
    one, other = as_adjacency(first, what="the true graph"), as_adjacency(second, what="the found graph")
    if one.shape != other.shape:
        raise ValueError(f"the true graph has {len(one)} variables, the found one {len(other)}")
    for side, matrix in (("true", one), ("found", other)):
        loops = np.flatnonzero(np.diag(matrix))
        if len(loops):
            names = list(true.columns) if isinstance(true, pd.DataFrame) else list(range(len(one)))
            raise ValueError(f"in the {side} graph a variable causes itself: {names[loops[0]]}")
    return one, other
