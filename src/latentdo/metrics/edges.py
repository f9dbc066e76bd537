"""Distances between graphs. A reversed edge counts twice in the Hamming distance and once in the SHD."""

from __future__ import annotations

import importlib
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from latentdo.graphs import Adjacency, GraphLike, find_cycle, is_dag
from latentdo.graphs.equivalence import Intervention, as_targets, essential_graph
from latentdo.metrics.inputs import Scores, align_graphs


@dataclass(frozen=True)
class EdgeCounts(Scores):
    """Right, wrong and reversed edges; see :func:`edge_counts` for the rule.

    Examples
    --------
    The paper's row "Perfect Normalizing Flow" of Table 2:

    >>> counts = EdgeCounts(tp=7, fn=11, fp=12, rev=2)
    >>> print(counts)
    tp 7, fn 11, fp 12, rev 2
    >>> counts.hamming, round(counts.f1, 2), (counts.missing, counts.extra)
    (23, 0.38, (9, 10))
    """

    rev: int

    @property
    def hamming(self) -> int:
        """Hamming distance, ``fn + fp``."""
        return self.fn + self.fp

    @property
    def missing(self) -> int:
        """True edges that were found in neither direction, ``fn - rev``."""
        return self.fn - self.rev

    @property
    def extra(self) -> int:
        """Found edges that are true in neither direction, ``fp - rev``."""
        return self.fp - self.rev

    def as_dict(self) -> dict[str, float]:
        """Return the four counts by name."""
        return {"tp": self.tp, "fn": self.fn, "fp": self.fp, "rev": self.rev}

    def __str__(self) -> str:
        return f"tp {self.tp}, fn {self.fn}, fp {self.fp}, rev {self.rev}"


def _differing_pairs(first: Adjacency, second: Adjacency) -> int:
    differs = first != second
    return int(np.triu(differs | differs.T).sum())


def hamming_distance(true: GraphLike, found: GraphLike) -> int:
    """Count the entries in which two adjacency matrices differ: a reversal counts 2 (the paper's distance).

    Parameters
    ----------
    true, found : array_like or DataFrame of 0/1, shape (d, d)
        Two frames are aligned by name. Cycles are allowed, loops are not.

    Examples
    --------
    >>> hamming_distance([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    2
    """
    one, other = align_graphs(true, found)
    return int((one != other).sum())


def shd(true: GraphLike, found: GraphLike) -> int:
    """Structural Hamming distance: the pairs of variables connected differently. A reversal counts 1.

    Also between partially directed graphs, where an undirected edge has both entries 1: every pair whose edge
    is missing, extra, reversed, or directed in only one of the two counts 1. Parameters as in
    :func:`hamming_distance`.

    Examples
    --------
    >>> shd([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    1
    """
    return _differing_pairs(*align_graphs(true, found))


def edge_counts(true: GraphLike, found: GraphLike) -> EdgeCounts:
    """Count true, missed, false and reversed edges, as the paper's own rows of its Table 2 do.

    The rule: ``tp`` are directed edges in both graphs, ``fn`` true edges not found *in that direction*,
    ``fp`` found edges not true *in that direction*, and ``rev`` the pairs with only ``i -> j`` in one graph
    and only ``j -> i`` in the other. A reversed edge is therefore in ``fn``, in ``fp`` *and* in ``rev``:
    ``tp + fn`` is the number of true edges, ``fn + fp`` the Hamming distance and
    ``f1 = 2 tp / (2 tp + fn + fp)``. All six of the paper's rows obey this.

    The other rows of that table, but its FCI, were copied from DCDI's and count differently: there a reversed
    edge is *only* in ``rev``, so that ``tp + fn + rev`` is the number of true edges (17), and the column "HD"
    is the SHD, ``fn + fp + rev`` (the GIES row does not add up). To compare with those, use
    :attr:`EdgeCounts.missing` and :attr:`EdgeCounts.extra` in place of ``fn`` and ``fp``.

    Examples
    --------
    >>> edge_counts([[0, 1, 1], [0, 0, 0], [0, 0, 0]], [[0, 0, 1], [1, 0, 1], [0, 0, 0]])
    EdgeCounts(tp=1, fn=1, fp=2, rev=1)
    """
    one, other = align_graphs(true, found)
    missed, false = one & ~other & 1, other & ~one & 1
    return EdgeCounts(
        tp=int((one & other).sum()),
        fn=int(missed.sum()),
        fp=int(false.sum()),
        rev=int((missed & false.T).sum()),
    )


def edge_scores(true: GraphLike, found: GraphLike) -> Scores:
    """Precision, recall and F1 of directed edges (a reversed edge is one miss and one false edge).

    Examples
    --------
    >>> print(edge_scores([[0, 1], [0, 0]], [[0, 0], [1, 0]]))
    precision 0.00, recall 0.00, F1 0.00
    """
    counts = edge_counts(true, found)
    return Scores(tp=counts.tp, fn=counts.fn, fp=counts.fp)


def skeleton_scores(true: GraphLike, found: GraphLike) -> Scores:
    """Precision, recall and F1 of connected pairs, whatever the direction.

    Examples
    --------
    >>> print(skeleton_scores([[0, 1], [0, 0]], [[0, 0], [1, 0]]))
    precision 1.00, recall 1.00, F1 1.00
    """
    one, other = (np.triu(graph | graph.T) for graph in align_graphs(true, found))
    tp = int((one & other).sum())
    return Scores(tp=tp, fn=int(one.sum()) - tp, fp=int(other.sum()) - tp)


def essential_graph_distance(
    true: GraphLike,
    found: GraphLike,
    targets: ArrayLike | pd.DataFrame | None = None,
    *,
    intervention: Intervention = "imperfect",
) -> int:
    """SHD between the (interventional) essential graphs: 0 if and only if data cannot tell the DAGs apart.

    Parameters
    ----------
    true, found : array_like or DataFrame, shape (d, d)
        DAGs.
    targets : array_like or DataFrame of 0/1, shape (n_regimes, d), optional
        Targets of the regimes that were seen, the observational one (zeros) included; columns in the order of
        `true`, or aligned to it by name. None: plain Markov equivalence.
    intervention : {"imperfect", "perfect"}
        See :func:`latentdo.graphs.equivalence.essential_graph`.

    Examples
    --------
    >>> chain, fork = [[0, 1, 0], [0, 0, 1], [0, 0, 0]], [[0, 0, 0], [1, 0, 1], [0, 0, 0]]
    >>> essential_graph_distance(chain, fork), essential_graph_distance(chain, fork, [[0, 0, 0], [1, 0, 0]])
    (0, 2)
    """
    one, other = align_graphs(true, found)
    regimes = None if targets is None else as_targets(targets, true)
    return _differing_pairs(
        *(essential_graph(graph, regimes, intervention=intervention) for graph in (one, other))
    )


def _adjustment_distance(name: str, true: GraphLike, found: GraphLike, *, normalized: bool) -> float:
    """Call a distance of gadjid, after the checks whose failure would abort with a panic there."""
    one, other = align_graphs(true, found)
    for side, graph in (("true", one), ("found", other)):
        cycle = find_cycle(graph)
        if cycle:
            names = list(true.columns) if isinstance(true, pd.DataFrame) else list(range(len(one)))
            shown = " -> ".join(str(names[index]) for index in [*cycle, cycle[0]])
            raise ValueError(f"{name} is defined for DAGs, but the {side} graph has the cycle {shown}")
    library = _gadjid(name)
    if len(one) < 2:
        return 0
    share, mistakes = getattr(library, name)(
        one.astype(np.int8), other.astype(np.int8), edge_direction="from row to column"
    )
    return float(share) if normalized else int(mistakes)


def _gadjid(name: str) -> Any:
    try:
        return importlib.import_module("gadjid")
    except ImportError as error:
        raise ImportError(f"{name} needs the package gadjid: pip install latentdo[metrics]") from error


def sid(true: GraphLike, found: GraphLike, *, normalized: bool = False) -> float:
    """Structural intervention distance: ordered pairs whose effect is wrong, adjusting for *found* parents.

    Peters and Bühlmann (2015), computed by `gadjid` (extra ``latentdo[metrics]``). It is not symmetric, and 0
    for a found DAG that only adds edges to the true one.

    Parameters
    ----------
    true, found : array_like or DataFrame, shape (d, d)
        DAGs; two frames are aligned by name.
    normalized : bool
        Divide by the number of ordered pairs, ``d (d - 1)``.

    Raises
    ------
    ValueError
        If a graph is cyclic.
    ImportError
        If gadjid is not installed.

    Examples
    --------
    >>> sid([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    2
    """
    return _adjustment_distance("sid", true, found, normalized=normalized)


def parent_aid(true: GraphLike, found: GraphLike, *, normalized: bool = False) -> float:
    """Parent adjustment distance of Henckel et al. (2024); between DAGs it is :func:`sid`, which see.

    Examples
    --------
    >>> parent_aid([[0, 1], [0, 0]], [[0, 1], [0, 0]])
    0
    """
    return _adjustment_distance("parent_aid", true, found, normalized=normalized)


def ancestor_aid(true: GraphLike, found: GraphLike, *, normalized: bool = False) -> float:
    """Ancestor adjustment distance of Henckel et al. (2024): like :func:`sid`, adjusting for ancestors.

    An effect is adjusted for all *found* ancestors of the cause, and taken to be zero on whatever is not
    found among its descendants. Parameters as for :func:`sid`.

    Examples
    --------
    >>> ancestor_aid([[0, 1], [0, 0]], [[0, 0], [1, 0]], normalized=True)
    1.0
    """
    return _adjustment_distance("ancestor_aid", true, found, normalized=normalized)


def compare_graphs(
    true: GraphLike,
    found: GraphLike,
    targets: ArrayLike | pd.DataFrame | None = None,
    *,
    intervention: Intervention = "imperfect",
) -> dict[str, float]:
    """Compare two graphs in every way, as one row of a table.

    Parameters as in :func:`essential_graph_distance`. What needs two DAGs (essential graphs, SID, ancestor
    distance) is NaN if a graph is cyclic, and so are SID and ancestor distance if `gadjid` is not installed;
    rows therefore always have the same columns.

    Examples
    --------
    >>> row = compare_graphs([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    >>> row["hamming"], row["shd"], row["skeleton_f1"], row["essential_graph_distance"]
    (2, 1, 1.0, 0)
    """
    one, other = align_graphs(true, found)
    counts = edge_counts(one, other)
    row: dict[str, float] = {
        "true_edges": int(one.sum()),
        "found_edges": int(other.sum()),
        "hamming": counts.hamming,
        "shd": shd(one, other),
        **counts.as_dict(),
        **edge_scores(one, other).as_dict(),
        **{f"skeleton_{key}": value for key, value in skeleton_scores(one, other).as_dict().items()},
        "essential_graph_distance": float("nan"),
        "sid": float("nan"),
        "ancestor_aid": float("nan"),
    }
    if is_dag(one) and is_dag(other):
        row["essential_graph_distance"] = essential_graph_distance(
            true, found, targets, intervention=intervention
        )
        with suppress(ImportError):  # an optional extra: without it, its columns stay NaN
            row["sid"], row["ancestor_aid"] = sid(one, other), ancestor_aid(one, other)
    return row
