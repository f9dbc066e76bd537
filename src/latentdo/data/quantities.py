"""What is said of a variable in one number: a mean or a median, a mean count, or the probability of a level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentdo.data.kinds import Kind

Array = NDArray[np.float64]


class Quantity(NamedTuple):
    """One number of a variable.

    Parameters
    ----------
    variable : int
        Which variable.
    name : str
        What it is called in a table: the variable, or a level of it.
    words : str
        What is measured.
    level : int, optional
        Of binary and categorical variables, the level whose probability it is.
    is_ratio : bool
        Whether changes of it are better told by a factor.
    """

    variable: int
    name: str
    words: str
    level: int | None = None
    is_ratio: bool = False

    def of(self, x: Array) -> float:
        """The number for rows ``x [n, d]``, levels as their codes."""
        column = x[:, self.variable]
        if self.level is not None:
            return float((column == self.level).mean())
        return float(np.median(column) if self.words == "median" else column.mean())


def quantities(
    columns: Sequence[str], kinds: Sequence[Kind], variables: Iterable[int], statistic: str = "mean"
) -> list[Quantity]:
    """What is said of some of the variables; a categorical one has as many quantities as levels.

    Examples
    --------
    >>> [one.words for one in quantities(["x", "clicks"], [Kind(), Kind("count")], [0, 1], "median")]
    ['median', 'mean count']
    >>> [one.name for one in quantities(["organ"], [Kind("categorical", ("liver", "lung", "skin"))], [0])]
    ['organ = liver', 'organ = lung', 'organ = skin']
    """
    found = []
    for j in variables:
        name, kind = columns[j], kinds[j]
        if kind.kind == "binary":
            found.append(Quantity(j, name, f"probability of {kind.levels[1]}", 1))
        elif kind.kind == "categorical":
            found += [
                Quantity(j, f"{name} = {level}", "probability", code)
                for code, level in enumerate(kind.levels)
            ]
        elif kind.kind == "count":
            found.append(Quantity(j, name, "mean count", is_ratio=True))
        else:
            found.append(Quantity(j, name, statistic))
    return found
