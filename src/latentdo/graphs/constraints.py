"""What the user knows about the graph beforehand: forbidden and required edges, tiers, number of parents."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from latentdo.graphs import find_cycle
from latentdo.messages import shown

Edge = tuple[str, str]

_MOST: Final = 12  # at most so many names in one message


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

    @property
    def n_open(self) -> int:
        """Largest number of parents that a variable may have or not have."""
        return int((self.allowed & ~self.required).sum(axis=0).max())

    def without(self, impossible: NDArray[np.bool_]) -> Constraints:
        """The same, less edges that were found impossible and are not required."""
        return replace(self, allowed=self.allowed & (~impossible | self.required))

    def holding(self, certain: NDArray[np.bool_]) -> Constraints:
        """The same, and edges that were found certain; these are part of one DAG that keeps the constraints."""
        return replace(self, allowed=self.allowed & ~certain.T, required=self.required | certain)

    @classmethod
    def build(
        cls,
        columns: Sequence[str],
        *,
        forbidden: Collection[Edge] | None = None,
        required: Collection[Edge] | None = None,
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
            If the form is another, a name is unknown, or the wishes contradict each other; the message names the
            entry.
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
        limit = _most_parents(max_parents, d)
        crowded = np.flatnonzero(must.sum(axis=0) > min(limit, d))
        if crowded.size:
            j = int(crowded[0])
            raise ValueError(f"{columns[j]} has {must[:, j].sum()} required parents, but max_parents={limit}")
        return cls(allowed, must, min(limit, d - 1))


def read_edges(value: Any, what: str) -> list[Edge]:
    """Pairs of names; anything else is refused with the entry named.

    The one reader of edges, for arguments in Python, files of knowledge, configuration files, the environment and
    flags.

    Parameters
    ----------
    value
        A list (or other collection) of pairs ``[cause, effect]``; None is none.
    what
        Name of the argument, for messages.

    Examples
    --------
    >>> read_edges([["rain", "wet"]], "required")
    [('rain', 'wet')]
    """
    found = []
    form = 'pairs of names, as in [["cause", "effect"]]'
    for number, entry in enumerate(_entries(value, what, form), start=1):
        pair = _plain(entry)
        if not isinstance(pair, Sequence) or isinstance(pair, str | bytes) or len(pair) != 2:
            raise ValueError(
                f"{what}, entry {number}: {shown(entry)} is not a pair [cause, effect] of variable names"
            )
        cause, effect = (_name(name, f"{what}, entry {number}") for name in pair)
        found.append((cause, effect))
    return found


def read_tiers(value: Any) -> list[list[str]]:
    """Lists of names from early to late; anything else is refused with the entry named.

    The one reader of tiers, as :func:`read_edges` is of edges.

    Examples
    --------
    >>> read_tiers([["rain"], ["wet", "cold"]])
    [['rain'], ['wet', 'cold']]
    """
    form = 'lists of names, as in [["early"], ["late", "later"]]'
    tiers = _entries(value, "tiers", form)
    if isinstance(tiers, Set):
        raise ValueError(f"tiers={shown(value)} is a set, which has no order; write a list of {form}")
    return [
        [_name(name, f"tiers[{level}]") for name in _entries(tier, f"tiers[{level}]", "names")]
        for level, tier in enumerate(tiers)
    ]


def check_name(name: str, names: Collection[str], where: str) -> None:
    """Refuse a name that no variable has, with the nearest that one has."""
    if name not in names:
        raise ValueError(f"{where} names {shown(name)}, which is not a variable{nearest(name, list(names))}")


def nearest(name: str, known: Sequence[str]) -> str:
    """End of a message about an unknown name: the one that was probably meant, or all of them."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; they are {', '.join(known[:_MOST])}" + (", ..." if len(known) > _MOST else "")


def _entries(value: Any, what: str, form: str) -> Collection[Any]:
    """What can be gone through as often as needed, and is not text, which would fall apart into letters."""
    plain = _plain(value)
    if plain is None and value is None:
        return ()
    if isinstance(plain, str | bytes | Mapping) or not isinstance(plain, Collection):
        raise ValueError(f"{what}={shown(value)} must be a list of {form}")
    return plain


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _name(name: Any, where: str) -> str:
    if not isinstance(name, str):
        raise ValueError(f"{where}: {shown(name)} is not the name of a variable; write names in quotes")
    return str(name)


def _pairs(edges: Any, place: dict[str, int], what: str) -> list[tuple[int, int]]:
    out = []
    for cause, effect in read_edges(edges, what):
        for name in (cause, effect):
            check_name(name, place, what)
        if cause == effect:
            raise ValueError(f"{what} has the edge {cause} -> {effect}; a variable cannot cause itself")
        out.append((place[cause], place[effect]))
    return out


def _ranks(tiers: Any, place: dict[str, int]) -> list[int | None]:
    rank: list[int | None] = [None] * len(place)
    for level, names in enumerate(read_tiers(tiers)):
        for name in names:
            check_name(name, place, f"tiers[{level}]")
            if rank[place[name]] is not None:
                raise ValueError(f"{name!r} occurs in two tiers")
            rank[place[name]] = level
    return rank


def _most_parents(value: Any, d: int) -> int:
    if value is None:
        return d - 1
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError(f"max_parents={shown(value)} must be a whole number, or None for no limit")
    if value < 0:
        raise ValueError(f"max_parents={shown(value)} must not be negative")
    return int(value)
