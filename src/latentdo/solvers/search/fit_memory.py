"""A record of the rows to which mechanisms were fitted, and of the rows that were split, so that nothing is repeated.

A fit is a maximum: as long as the weights of rows have hardly changed since, another fit would gain next to nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from latentdo.model.mechanisms.base import Mechanism
from latentdo.solvers.search.splits import Split
from latentdo.solvers.settings import FAMILY_STILL, SAME_REGIME, SPLIT_RECORDS, SPLIT_STILL

Array = NDArray[np.float64]
Place = tuple[int, tuple[int, ...]]
"""A variable and its parents."""


class _Made(NamedTuple):
    """Where a mechanism belongs, and the weights ``[n]`` to which it was fitted and, if so, for which it was chosen."""

    place: Place
    weights: Array
    chosen: Array | None


class FitMemory:
    """A record of the mechanisms still in use, the last splits of every variable, and glances at the same rows."""

    def __init__(self) -> None:
        self._made: WeakKeyDictionary[Mechanism, _Made] = WeakKeyDictionary()
        self._rows: WeakKeyDictionary[Mechanism, Array] = WeakKeyDictionary()
        self._splits: dict[Place, deque[tuple[Array, Split | None]]] = {}
        self._glances: tuple[Array, dict[Any, Any]] = np.empty((0, 0)), {}

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
        past = self._splits.setdefault(place, deque(maxlen=SPLIT_RECORDS))
        for then, found in past:
            if _still(then, weights, SPLIT_STILL * len(weights)):
                return found
        found = make()
        past.appendleft((weights, found))
        return found

    def glances(self, responsibilities: Array) -> dict[Any, Any]:
        """What was seen by glances, which depend on no earlier fit, if rows are assigned exactly as the last time.

        The order of regimes does not matter.
        """
        ordered = responsibilities[:, np.argsort(responsibilities.sum(axis=0), kind="stable")]
        if not np.array_equal(ordered, self._glances[0]):
            self._glances = ordered, {}
        return self._glances[1]


def _still(then: Array | None, now: Array, most: float = FAMILY_STILL) -> bool:
    return then is not None and then.shape == now.shape and float(np.abs(now - then).sum()) < most
