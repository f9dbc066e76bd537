"""Which variables move between regimes: what an intervention says about the order of the variables.

An intervention changes the distribution of what it hits and of what depends on it. No score of single mechanisms sees
this: a graph with an edge the wrong way round explains every regime too, if the former cause counts as a target
wherever its effect is one, with the very distribution that it has elsewhere. Such coincidences are ruled out here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from latentdo.graphs import reachability
from latentdo.solvers.search.local_scores import FREE, REFERENCE
from latentdo.solvers.search.problem import Problem
from latentdo.solvers.search.state import State
from latentdo.solvers.settings import CRITICAL, EMPTY, LARGE_SHIFT, SMALL_SHIFT

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Changes:
    """What moves in which regime.

    Parameters
    ----------
    still : ndarray [K, d] of bool
        The variable has its most common distribution, as far as the regime's rows can tell.
    moved : ndarray [K, d] of bool
        Its distribution is clearly another one.
    rows : ndarray [K]
        Rows of every regime.
    """

    still: Bools
    moved: Bools
    rows: Array

    @classmethod
    def between(cls, z: Array, responsibilities: Array) -> Changes:
        """Compare all regimes in all variables.

        The most common distribution of a variable is the one that regimes with most rows share: in graphs that are
        not tiny most regimes leave a variable alone. At least two regimes must share it.
        """
        distance, unit = distances(z, responsibilities)
        rows = responsibilities.sum(axis=0)
        d, k = distance.shape[:2]
        equal = (distance < CRITICAL * unit) & (distance + CRITICAL * unit < SMALL_SHIFT)
        equal[:, np.arange(k), np.arange(k)] = True
        centre = (equal @ rows).argmax(axis=1)
        still = equal[np.arange(d), centre]
        moved = (distance - CRITICAL * unit)[np.arange(d), centre] > LARGE_SHIFT
        lonely = still.sum(axis=1) <= 1
        still[lonely], moved[lonely] = False, False
        return cls(still.T, moved.T, rows)

    def known(self, problem: Problem) -> NDArray[np.int8]:
        """What is known of every (regime, variable), and that a variable that did not move is no target."""
        known = problem.fixed(len(self.rows))
        return np.where((known == FREE) & self.still, REFERENCE, known).astype(np.int8)

    @property
    def impossible(self) -> Bools:
        """Edges ``i -> j`` of which a regime says no while none objects to ``j -> i``, ``[d, d]``.

        A regime says no if ``i`` moves in it and ``j`` does not. If both directions have objections the edge may be
        a weak one.
        """
        objections = (self.moved.T.astype(np.int64) @ self.still.astype(np.int64)) > 0
        return np.asarray(objections & ~objections.T)

    def conflicts(self, targets: NDArray[np.int8], adjacency: NDArray[np.int8]) -> int:
        """Coincidences that targets and a graph would need.

        Variables that move without being targets or effects of one, targets that do not move, impossible edges.
        """
        below = reachability(adjacency).astype(np.int64)
        explained = (targets + targets.astype(np.int64) @ below) > 0
        stray = self.moved & ~explained
        return int(
            stray.sum() + (self.still & (targets == 1)).sum() + (self.impossible & (adjacency == 1)).sum()
        )

    @property
    def lateness(self) -> Array:
        """In how many rows a variable is not still: effects move wherever their causes do, ``[d]``."""
        return np.asarray(self.rows @ ~self.still)


def conflicts(problem: Problem, state: State) -> int:
    """Coincidences that a state needs, see :meth:`Changes.conflicts`."""
    changes = Changes.between(problem.z, state.responsibilities)
    return changes.conflicts(state.targets, state.adjacency)


def distances(z: Array, responsibilities: Array) -> tuple[Array, Array]:
    """Largest difference of every two regimes' distribution functions, ``[d, K, K]``, and its unit, ``[K, K]``.

    Rows count by their responsibilities: taking every row for its likeliest regime alone would cut distributions
    off where regimes overlap.
    """
    counts = np.maximum(responsibilities.sum(axis=0), EMPTY)
    effective = counts**2 / np.maximum((responsibilities**2).sum(axis=0), EMPTY)
    k = responsibilities.shape[1]
    out = np.zeros((z.shape[1], k, k))
    for j in range(z.shape[1]):
        order = np.argsort(z[:, j], kind="stable")
        functions = np.cumsum(responsibilities[order] / counts, axis=0)
        last = np.append(np.diff(z[order, j]) > 0.0, True)  # of equal values: an atom is one step
        functions = functions[last]
        for a in range(k):
            out[j, a] = np.abs(functions - functions[:, [a]]).max(axis=0)
    return out, np.sqrt(1.0 / effective[:, None] + 1.0 / effective[None, :])
