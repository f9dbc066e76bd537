"""What the user knows about the graph beforehand: forbidden and required edges, tiers, number of parents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from latentdo.graphs import find_cycle

Edge = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Constraints:
    """Which edges may and must be in the graph.

    Parameters
    ----------
    allowed : ndarray [d, d] of bool
        ``allowed[i, j]``: the edge ``i -> j`` may occur.
    required : ndarray [d, d] of bool
        Edges that must occur; acyclic, and allowed.
    max_parents : int
        Largest number of parents of any variable.
    """

    allowed: NDArray[np.bool_]
    required: NDArray[np.bool_]
    max_parents: int

    def without(self, impossible: NDArray[np.bool_]) -> Constraints:
        """The same, less edges that were found impossible and are not required."""
        return replace(self, allowed=self.allowed & (~impossible | self.required))

    @classmethod
    def build(
        cls,
        columns: Sequence[str],
        *,
        forbidden: Iterable[Edge] | None = None,
        required: Iterable[Edge] | None = None,
        tiers: Sequence[Sequence[str]] | None = None,
        max_parents: int | None = None,
    ) -> Constraints:
        """Check prior knowledge given by names, and make it matrices.

        Parameters
        ----------
        columns
            Names of the variables.
        forbidden, required
            Pairs ``(cause, effect)``.
        tiers
            Groups of variables from early to late; nothing later causes anything earlier. Variables in no tier are
            unconstrained.
        max_parents
            None means no limit.

        Raises
        ------
        ValueError
            If a name is unknown, or the wishes contradict each other (the message names the edges).
        """
        d = len(columns)
        place = {name: j for j, name in enumerate(columns)}
        allowed = ~np.eye(d, dtype=bool)
        for i, j in _pairs(forbidden, place, "forbidden"):
            allowed[i, j] = False
        rank = _ranks(tiers, place)
        for i in range(d):
            for j in range(d):
                if rank[i] is not None and rank[j] is not None and rank[i] > rank[j]:  # type: ignore[operator]
                    allowed[i, j] = False
        must = np.zeros((d, d), dtype=bool)
        for i, j in _pairs(required, place, "required"):
            if not allowed[i, j]:
                raise ValueError(
                    f"the required edge {columns[i]} -> {columns[j]} is ruled out by forbidden= or tiers="
                )
            must[i, j] = True
        cycle = find_cycle(must.astype(np.int8))
        if cycle is not None:
            loop = " -> ".join(columns[i] for i in [*cycle, cycle[0]])
            raise ValueError(f"the required edges form a cycle: {loop}; drop at least one of them")
        limit = d - 1 if max_parents is None else int(max_parents)
        if limit < 0:
            raise ValueError(f"max_parents={max_parents} must not be negative")
        crowded = np.flatnonzero(must.sum(axis=0) > limit)
        if crowded.size:
            j = int(crowded[0])
            raise ValueError(f"{columns[j]} has {must[:, j].sum()} required parents, but max_parents={limit}")
        return cls(allowed, must, limit)


def _pairs(edges: Iterable[Edge] | None, place: dict[str, int], what: str) -> list[tuple[int, int]]:
    out = []
    for edge in edges or ():
        if isinstance(edge, str) or len(edge) != 2:
            raise ValueError(f"{what}={edge!r} is not a pair (cause, effect) of variable names")
        for name in edge:
            if name not in place:
                raise ValueError(
                    f"{what} names {name!r}, which is not a variable; they are {', '.join(place)}"
                )
        if edge[0] == edge[1]:
            raise ValueError(f"{what} has the edge {edge[0]} -> {edge[1]}; a variable cannot cause itself")
        out.append((place[edge[0]], place[edge[1]]))
    return out


def _ranks(tiers: Sequence[Sequence[str]] | None, place: dict[str, int]) -> list[int | None]:
    rank: list[int | None] = [None] * len(place)
    for level, names in enumerate(tiers or ()):
        if isinstance(names, str):
            raise ValueError(f"tiers[{level}]={names!r} must be a list of variable names, not one string")
        for name in names:
            if name not in place:
                raise ValueError(
                    f"tiers[{level}] names {name!r}, which is not a variable; they are {', '.join(place)}"
                )
            if rank[place[name]] is not None:
                raise ValueError(f"{name!r} occurs in two tiers")
            rank[place[name]] = level
    return rank
