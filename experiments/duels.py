"""Ours against every peer, paired over graphs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from experiments import store
from experiments.baselines.registry import METHODS
from experiments.paper import Row


@dataclass(frozen=True, eq=False)
class Duel:
    """One peer on one row of Table 1, and our column that is told no more; distances by seed.

    ``favoured`` says that the peer's undirected edges count as turned the right way, not as one error each.
    """

    row: Row
    method: str
    ours: pd.Series
    peer: pd.Series
    favoured: bool = False

    @property
    def difference(self) -> pd.Series:
        """One value a graph that both have; positive where ours is closer to the truth."""
        return (self.peer - self.ours).dropna()

    @property
    def lost(self) -> bool:
        """Whether ours is further away on average."""
        return bool(self.difference.mean() < 0)

    def __str__(self) -> str:
        method, graphs = METHODS[self.method], self.difference.index
        means = f"{self.peer[graphs].mean():.1f} against our {opponent(self.method)} {self.ours[graphs].mean():.1f}"
        count = "1 graph" if len(graphs) == 1 else f"{len(graphs)} graphs"
        return f"{method.title} (told {method.told}) {means} on {count}"


def opponent(method: str) -> str:
    """Our column that is told no more than the method."""
    given = METHODS[method].given
    if "regimes" not in given:
        return "latent"
    return "known" if "targets" in given else "unknown"


def duels(folder: Path | None = None, *, favoured: bool = False) -> list[Duel]:
    """Every peer on every row where both were run on some graph."""
    column = "hamming_favourable" if favoured else "hamming"
    ours, peers = store.ours(folder), store.peers(folder)
    out = []
    for row in store.ROWS:
        mine, theirs = store.of_row(ours, row), store.of_row(peers, row)
        for method in METHODS:
            left = store.distances(mine[mine["variant"] == opponent(method)])
            right = store.distances(theirs[theirs["method"] == method], column)
            if len(left.index.intersection(right.index)):
                out.append(Duel(row, method, left, right, favoured))
    return out
