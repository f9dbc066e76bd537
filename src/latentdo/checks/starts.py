"""Where rivals begin: from several places, and again in the regimes that they have found.

A fit has searched far for its regimes. A rival that climbs from these alone is judged by regimes that were made for
another model: from the true ones it wins where it loses from the fitted ones (trust 19). So every climb begins in the
regimes that the best so far has ended in, and then without one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import NamedTuple

import numpy as np

from latentdo.checks.check import Array
from latentdo.checks.rivals import Climb, Lines, climb, moments_of, without, without_small
from latentdo.model.fitted import FittedModel
from latentdo.solvers.search.learner import Graph
from latentdo.solvers.search.moments import Moments
from latentdo.solvers.settings import RIVAL_CLEAR, RIVAL_CLIMBS, RIVAL_TOLERANCE


class Start(NamedTuple):
    """A rival, and the model of it to begin with in some regimes."""

    rival: Lines
    begin: Callable[[Moments], tuple[FittedModel, Graph]]

    def climb(
        self, z: Array, responsibilities: Array, *, told: bool = False, needed: float = -np.inf
    ) -> Climb:
        """How far it gets from these regimes."""
        shares = without_small(responsibilities)
        return climb(self.rival, z, shares, *self.begin(moments_of(z, shares)), told=told, needed=needed)


class Explored(NamedTuple):
    """Which start led furthest, how far, and by how many nats that is better than arrows."""

    start: Start
    reached: Climb
    gain: float


def explore(
    starts: Sequence[Start], z: Array, responsibilities: Array, plain: float, *, told: bool = False
) -> Explored:
    """The best of several rivals, which have to beat arrows, with the evidence ``plain``.

    Where it is ``told`` which rows belong together, regimes stay as they are, and every start is taken once. So it is
    where the verdict is clear after that.
    """
    best, reached = starts[0], starts[0].climb(z, responsibilities, told=told)
    idle = 1  # starts since the one that led furthest, itself included
    for turn, start in enumerate(islice(cycle(starts), 1, RIVAL_CLIMBS), start=1):
        if turn >= len(starts) and (told or abs(reached.evidence - plain) > RIVAL_CLEAR):
            break
        if turn >= len(starts) and idle >= len(starts):
            fewer = _with_fewer_regimes(best.rival, z, reached)
            if fewer is None:
                break
            reached, idle = fewer, 0
        shares = responsibilities if told else reached.responsibilities
        found = start.climb(z, shares, told=told, needed=reached.evidence)
        idle += 1
        if found.evidence > reached.evidence + RIVAL_TOLERANCE:
            best, reached, idle = start, found, 1
    return Explored(best, reached, reached.evidence - plain)


def _with_fewer_regimes(rival: Lines, z: Array, reached: Climb) -> Climb | None:
    """Without one of its regimes, if that is better; small ones are tried first."""
    _, model, responsibilities = reached
    sizes = responsibilities.sum(axis=0)
    for k in np.argsort(sizes, kind="stable") if sizes.size > 1 else ():
        dropped = np.arange(sizes.size) == k
        found = climb(
            rival,
            z,
            without(responsibilities, dropped),
            model.keep(np.flatnonzero(~dropped)),
            model.topology.adjacency,
            needed=reached.evidence,
        )
        if found.evidence > reached.evidence + RIVAL_TOLERANCE:
            return found
    return None
