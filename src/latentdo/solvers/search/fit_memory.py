"""A record of the rows to which mechanisms were fitted, and of the rows that were split, so that nothing is repeated.

A fit is a maximum: as long as the weights of rows have hardly changed since, another fit would gain next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from latentdo.model.mechanisms.base import Mechanism
from latentdo.solvers.search.splits import Split
from latentdo.solvers.settings import FAMILY_STILL, SAME_REGIME, SPLIT_STILL

Array = NDArray[np.float64]
Place = tuple[int, tuple[int, ...]]
"""A variable and its parents."""


class _Made(NamedTuple):
    """Where a mechanism belongs, and the weights ``[n]`` to which it was fitted and, if so, for which it was chosen."""

    place: Place
    weights: Array
    chosen: Array | None


class FitMemory:
    """A record of the mechanisms still in use, and of the last split of every variable."""

    def __init__(self) -> None:
        self._made: WeakKeyDictionary[Mechanism, _Made] = WeakKeyDictionary()
        self._rows: WeakKeyDictionary[Mechanism, Array] = WeakKeyDictionary()
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
        """The result of ``make``, or the mechanism with which it would ``start``, if that is still a good fit.

        If not ``settled``, a fit also chooses, for example, how curved a mechanism is; a choice made twice is kept.
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

    def note(self, mechanism: Mechanism, weights: Array) -> None:
        """Keep to which rows a regime's own mechanism was fitted."""
        self._rows[mechanism] = weights

    def has_same_rows(self, mechanism: Mechanism, weights: Array) -> bool:
        """Whether it was fitted to rows most of which these are: regimes may have come, gone, or changed places."""
        then = self._rows.get(mechanism)
        if then is None or then.shape != weights.shape:
            return False
        return bool(np.minimum(then, weights).sum() > SAME_REGIME * max(then.sum(), weights.sum()))

    def split(self, make: Callable[[], Split | None], place: Place, weights: Array) -> Split | None:
        """The result of ``make``, or an earlier one for rows of a mechanism with nearly these weights ``[n]``.

        A new regime that differs elsewhere, and shares the mechanism, leaves these weights unchanged.
        """
        before = self._splits.get(place)
        if before is not None and _still(before[0], weights, SPLIT_STILL * len(weights)):
            return before[1]
        found = make()
        self._splits[place] = weights, found
        return found


def _still(then: Array | None, now: Array, most: float = FAMILY_STILL) -> bool:
    return then is not None and then.shape == now.shape and float(np.abs(now - then).sum()) < most
