"""To which rows mechanisms were fitted, and which rows were split, so that nothing is done twice.

A fit is a maximum: while hardly a row has come or gone since, another would not be better by anything to speak of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from latentdo.model.mechanisms.base import Mechanism
from latentdo.solvers.search.splits import Split
from latentdo.solvers.settings import FAMILY_STILL, SPLIT_STILL

Array = NDArray[np.float64]
Place = tuple[int, tuple[int, ...]]
"""A variable and its parents."""


class _Made(NamedTuple):
    """Where a mechanism belongs, and the weights ``[n]`` it was fitted to, and was chosen for, if it was."""

    place: Place
    weights: Array
    chosen: Array | None


class FitMemory:
    """What is remembered of the mechanisms that are still around, and of the last split of every variable."""

    def __init__(self) -> None:
        self._made: WeakKeyDictionary[Mechanism, _Made] = WeakKeyDictionary()
        self._splits: dict[Place, tuple[Array, Split | None]] = {}

    def __reduce__(self) -> tuple[type[FitMemory], tuple[()]]:
        return FitMemory, ()  # another process has other mechanisms

    def fit(
        self,
        make: Callable[[], Mechanism],
        start: Mechanism | None,
        place: Place,
        weights: Array,
        *,
        settled: bool,
    ) -> Mechanism:
        """What ``make`` gives, or the mechanism that it would ``start`` with, if that still fits.

        If not ``settled``, a fit also chooses how bent a mechanism is, say; one that chose the same again has chosen
        for good.
        """
        before = None if start is None else self._made.get(start)
        if start is None or before is None or before.place != place:
            found, chosen = make(), None
        elif _still(before.weights, weights) and (settled or _still(before.chosen, weights)):
            return start
        else:
            found = make()
            again = weights if found.n_parameters == start.n_parameters else None
            chosen = before.chosen if settled else again
        self._made[found] = _Made(place, weights, chosen)
        return found

    def split(self, make: Callable[[], Split | None], place: Place, weights: Array) -> Split | None:
        """What ``make`` gives, or gave when the rows that follow a mechanism had nearly these weights ``[n]``.

        A regime that is born elsewhere, and keeps to the mechanism, leaves them as they were.
        """
        before = self._splits.get(place)
        if before is not None and _still(before[0], weights, SPLIT_STILL * len(weights)):
            return before[1]
        found = make()
        self._splits[place] = weights, found
        return found


def _still(then: Array | None, now: Array, most: float = FAMILY_STILL) -> bool:
    return then is not None and then.shape == now.shape and float(np.abs(now - then).sum()) < most
