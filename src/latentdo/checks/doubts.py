r"""Which statements a failed check puts in doubt, and how sure they may then be.

An arrow is two statements: that two variables are connected, and which of them is the cause. A posterior is as sure of
both as its model is true. Where a check has refuted the model, both are capped, so that nothing is said for sure that
the same rows contradict:

.. math:: p'(i \to j) = \min\{p(i - j), c / r\} \cdot \min\{p(i \to j \mid i - j), r\},

where :math:`c` is the share of such arrows that were right in development, and :math:`r` that of right directions among
those that connect the right pair (``CAPPED`` and ``CAPPED_DIRECTION`` in the settings). What a user
knows beforehand, required arrows and directions that tiers or forbidden arrows fix, is no finding of the model and
stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentdo.checks.check import Array, Check, listed
from latentdo.graphs import reachability
from latentdo.graphs.constraints import Constraints
from latentdo.result import FitResult
from latentdo.solvers.settings import CAPPED, CAPPED_DIRECTION, SURE


class Doubt(NamedTuple):
    """What a failed check means for arrows: a reason, what would help, and how sure they may be at most."""

    reason: str
    remedy: str
    connected: float = CAPPED / CAPPED_DIRECTION
    directed: float = CAPPED_DIRECTION


_SHARED: Final = "a column that measures what the variables share"

DOUBTS: Final[Mapping[str, Doubt]] = MappingProxyType(
    {
        "hidden factor": Doubt(
            "a hidden variable explains the rows as well as arrows do, or better", _SHARED
        ),
        "hidden causes": Doubt("hidden variables seem to move several columns at once", _SHARED),
        "measurement error": Doubt(
            "measurement error explains the rows as well as arrows alone, or better", "repeated measurements"
        ),
        "dependent rows": Doubt(
            "neighbouring rows are not independent",
            "the order of the rows (time=, series=), or which of them belong together (groups=)",
        ),
        "skew": Doubt("columns are skewed", "a logarithm of the skewed columns (transform=)"),
        "broad regimes": Doubt(
            "regimes change most variables, which suggests other populations or a wrong model, not interventions",
            "labels of populations (regimes=, batch=), a transform (transform=), or another density (density=)",
        ),
        "levels only": Doubt(
            "hidden interventions hardly show in yes/no answers and categories",
            "labels (regimes=), groups of rows (groups=), or a column that is a measurement or a count",
        ),
        # That two copies are connected is certain; which of them comes first cannot be decided.
        "near copies": Doubt(
            "columns are copies of each other", "one column of each pair of copies", 1.0, 0.5
        ),
    }
)
"""Checks whose failure puts arrows in doubt, all of them or those between the pairs that the check names. Others only
warn: shared values are allowed for in the fit, and "local Markov" and "invariant mechanisms" are about arrows and
targets that are missing."""


def doubted(
    result: FitResult, checks: Iterable[Check], constraints: Constraints | None = None
) -> tuple[Array, Array]:
    """Probabilities of edges and of causal paths ``[d, d]``, at most what checks allow.

    A check that failed is certain, unless it weighed explanations: then probabilities are means over these.
    """
    d = len(result.columns)
    caps = np.ones((2, d, d))
    weighed = list[tuple[float, Array]]()
    for one in checks:
        if one.check not in DOUBTS or not (one.failed or one.weight):
            continue
        limits = np.ones((2, d, d))
        limits[:, _places(one, result.columns)] = np.array(DOUBTS[one.check][2:])[:, None]
        if one.weight is None:
            caps = np.minimum(caps, limits)
        else:
            weighed.append((one.weight, limits))
    edges, ancestors = before = _capped(result, caps, constraints)
    for weight, limits in weighed:
        less = _capped(result, np.minimum(caps, limits), constraints)
        edges = edges - weight * (before[0] - less[0])
        ancestors = ancestors - weight * (before[1] - less[1])
    return edges, ancestors


def _capped(result: FitResult, caps: Array, constraints: Constraints | None) -> tuple[Array, Array]:
    """Probabilities with connections and directions capped, ``caps [2, d, d]``.

    A path is as doubtful as an arrow if the graph has none that consists of arrows beyond doubt.
    """
    connected, directed = caps.copy()
    if constraints is not None:
        required = constraints.required | constraints.required.T
        connected[required] = 1.0
        directed[required | (constraints.allowed != constraints.allowed.T)] = 1.0
    doubtful = (connected < 1.0) | (directed < 1.0)
    edges, ancestors = result.edge_probabilities.copy(), result.ancestor_probabilities.copy()
    either = edges + edges.T
    forward = np.divide(edges, either, out=np.full(edges.shape, 0.5), where=either > 0.0)
    capped = np.minimum(either, connected) * np.clip(forward, 1.0 - directed, directed)
    edges[doubtful] = capped[doubtful]
    if doubtful.any():
        sure = reachability(result.model.topology.adjacency * ~doubtful)
        ancestors = np.where(sure, ancestors, np.minimum(ancestors, CAPPED))
    return edges, np.maximum(ancestors, edges)


def _places(one: Check, columns: tuple[str, ...]) -> NDArray[np.bool_]:
    """Pairs that a check puts in doubt, either way round, ``[d, d]``."""
    if one.pairs is None:
        return ~np.eye(len(columns), dtype=bool)
    found = np.zeros((len(columns), len(columns)), dtype=bool)
    for first, second in one.pairs:
        found[columns.index(first), columns.index(second)] = True
    return found | found.T


def abstention(result: FitResult) -> list[str]:
    """What comes before all else if these data do not support arrows, with what would help; nothing if they do.

    They do not where the graph has arrows, and none of them is surer than :data:`SURE`.
    """
    graph = result.model.topology.adjacency.astype(bool)
    if not graph.any() or (graph & (result.edge_probabilities > SURE)).any():
        return []
    failed = {one["check"] for one in result.checks if one["failed"]}
    doubts = [doubt for name, doubt in DOUBTS.items() if name in failed]
    if not (graph & (result.model_edge_table().to_numpy() > SURE)).any() or not doubts:
        unsure = Doubt(
            f"none of the {int(graph.sum())} arrows found is more probable than {SURE:.0%}",
            "more rows, labels of interventions (regimes=), or knowledge of the order (tiers=)",
        )
        doubts.append(unsure)
    reasons = [doubt.reason for doubt in doubts]
    remedies = list(dict.fromkeys(doubt.remedy for doubt in doubts))
    because = f"These data do not support arrows: {listed(reasons, len(reasons))}."
    return [f"{because} Read the graph as a list of questions. What would help: {'; '.join(remedies)}."]
