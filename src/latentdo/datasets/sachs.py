"""Flow cytometry of Sachs et al. (2005): cells under nine conditions, and three reference graphs.

Where the table comes from, and its licence, is told in ``SACHS.md`` beside this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final, Literal, get_args

import numpy as np
import pandas as pd

from latentdo.readers import read_csv

Subset = Literal["full", "dcdi"]
Graph = Literal["17", "18", "20"]

# column of the file -> readable name, in the order of the file
_NAMES: Final = {
    "praf": "Raf",
    "pmek": "Mek",
    "plcg": "Plcg",
    "PIP2": "PIP2",
    "PIP3": "PIP3",
    "p44/42": "Erk",
    "pakts473": "Akt",
    "PKA": "PKA",
    "PKC": "PKC",
    "P38": "P38",
    "pjnk": "Jnk",
}
VARIABLES: Final[tuple[str, ...]] = tuple(_NAMES.values())


@dataclass(frozen=True)
class _Condition:
    """One experiment: its rows are consecutive in the file."""

    n_rows: int
    target: str | None  # what the reagent acts on; None for general stimulation
    in_dcdi: bool


CONDITIONS: Final[dict[str, _Condition]] = {
    "cd3cd28": _Condition(853, None, True),
    "cd3cd28+icam2": _Condition(902, None, True),
    "cd3cd28+aktinhib": _Condition(911, "Akt", True),
    "cd3cd28+g0076": _Condition(723, "PKC", True),
    "cd3cd28+psitect": _Condition(810, "PIP2", True),
    "cd3cd28+u0126": _Condition(799, "Mek", True),
    "cd3cd28+ly": _Condition(848, "PIP3", True),
    "pma": _Condition(913, "PKC", False),
    "b2camp": _Condition(707, "PKA", False),
}

_EFFECTS_20: Final = {
    "Raf": ("Mek",),
    "Mek": ("Erk",),
    "Plcg": ("PIP2", "PKC"),
    "PIP2": ("PKC",),
    "PIP3": ("Akt", "PIP2", "Plcg"),
    "Erk": ("Akt",),
    "PKA": ("Akt", "Erk", "Jnk", "Mek", "P38", "Raf"),
    "PKC": ("Jnk", "Mek", "P38", "PKA", "Raf"),
}
_EDGES_20: Final = frozenset((cause, effect) for cause, effects in _EFFECTS_20.items() for effect in effects)
_EDGES: Final = {
    "20": _EDGES_20,
    "18": _EDGES_20 - {("PKC", "PKA"), ("Erk", "Akt")},
    "17": (_EDGES_20 - {("PIP2", "PKC"), ("PIP3", "Akt"), ("PIP3", "Plcg"), ("Plcg", "PKC")})
    | {("Plcg", "PIP3")},
}


@dataclass(frozen=True, eq=False)
class Sachs:
    """What :func:`load_sachs` returns.

    Parameters
    ----------
    X : pandas.DataFrame [n, 11]
        One row a cell; natural logarithms if ``log``, otherwise raw.
    conditions : pandas.Series [n]
        Name of the experimental condition of each row.
    regimes : pandas.Series [n]
        Label of the regime of each row: the condition (``"full"``), or the intervened variable (``"dcdi"``).
    targets : pandas.DataFrame [n_regimes, 11] of 0/1
        What each regime acts on, indexed by its label; the first row is the observational one.
    adjacency : pandas.DataFrame [11, 11] of 0/1
        Reference graph, row causes column.
    observational : str
        Which label of ``regimes`` is observational.
    subset, graph, log
        What was asked for.
    """

    X: pd.DataFrame
    conditions: pd.Series[Any]
    regimes: pd.Series[Any]
    targets: pd.DataFrame
    adjacency: pd.DataFrame
    observational: str
    subset: Subset
    graph: Graph
    log: bool


def load_sachs(subset: Subset = "full", graph: Graph = "17", *, log: bool | None = None) -> Sachs:
    """Load the cytometry data embedded in the package.

    Parameters
    ----------
    subset : {"full", "dcdi"}
        ``"full"``: all 7466 cells under nine conditions; regimes are the conditions, of which ``cd3cd28`` is
        the observational one and ``cd3cd28+icam2`` has no target. ``"dcdi"``: the first 5846 cells, with six
        regimes as in DCDI (Brouillard et al. 2020): ``observational`` (``cd3cd28`` and ``cd3cd28+icam2``)
        and one inhibitor each of Akt, PKC, PIP2, Mek and PIP3.
    graph : {"17", "18", "20"}
        Reference graph, see :func:`reference_graph`.
    log : bool, optional
        Whether ``X`` holds natural logarithms. By default it is raw for ``"full"`` and logarithmic for
        ``"dcdi"``, as that benchmark uses it. All raw values are at least 1.

    Returns
    -------
    Sachs
        Pass its parts on: ``fit(data.X, regimes=data.regimes, targets=data.targets)`` with
        ``observational=data.observational``.

    Notes
    -----
    Targets are those which the literature states for the reagents, not something the data prove; ``pma`` and
    ``b2camp`` activate their target, and lack the stimulation that all other conditions share.

    References
    ----------
    K. Sachs, O. Perez, D. Pe'er, D. A. Lauffenburger and G. P. Nolan. Causal protein-signaling networks
    derived from multiparameter single-cell data. Science 308(5721), 523-529, 2005.

    Examples
    --------
    >>> data = load_sachs()
    >>> data.X.shape, data.conditions.nunique(), int(data.adjacency.to_numpy().sum())
    ((7466, 11), 9, 17)
    >>> int((load_sachs("dcdi").regimes == "observational").sum())
    1755
    """
    if subset not in get_args(Subset):
        raise ValueError(f'subset={subset!r} is unknown; use "full" or "dcdi".')
    adjacency = reference_graph(graph)
    dcdi = subset == "dcdi"
    used = {name: c for name, c in CONDITIONS.items() if c.in_dcdi or not dcdi}
    sizes = [c.n_rows for c in used.values()]
    X = _raw().iloc[: sum(sizes)].copy()
    as_log = dcdi if log is None else bool(log)
    if as_log:
        X = X.transform(np.log)
    label_of = {name: (c.target or "observational") if dcdi else name for name, c in used.items()}
    target_of = {label_of[name]: c.target for name, c in used.items()}
    conditions = pd.Series(np.repeat(list(used), sizes), index=X.index, name="condition", dtype=object)
    targets = pd.DataFrame(
        [[int(target == variable) for variable in VARIABLES] for target in target_of.values()],
        index=pd.Index(list(target_of), name="regime"),
        columns=list(VARIABLES),
    )
    return Sachs(
        X=X,
        conditions=conditions,
        regimes=conditions.map(label_of).rename("regime"),
        targets=targets,
        adjacency=adjacency,
        observational=next(iter(target_of)),
        subset=subset,
        graph=graph,
        log=as_log,
    )


def reference_graph(graph: Graph = "17") -> pd.DataFrame:
    """One of the graphs that papers compare with; none is certain to be the truth.

    Parameters
    ----------
    graph : {"17", "18", "20"}
        Number of edges: 17 as in DCDI, 18 as in UT-IGSP (acyclic), 20 as in Tetrad. All are acyclic.

    Returns
    -------
    pandas.DataFrame [11, 11] of 0/1
        Row causes column, in the column order of the data.

    Examples
    --------
    >>> int(reference_graph("18").loc["Raf", "Mek"])
    1
    """
    if graph not in _EDGES:
        raise ValueError(f"graph={graph!r} is unknown; use one of {', '.join(map(repr, get_args(Graph)))}.")
    out = pd.DataFrame(0, index=list(VARIABLES), columns=list(VARIABLES), dtype=np.int64)
    for cause, effect in _EDGES[graph]:
        out.loc[cause, effect] = 1
    return out


@cache
def _raw() -> pd.DataFrame:
    """Read the embedded table once a process; callers copy."""
    packed = resources.files(__package__).joinpath("sachs.csv.gz")
    with resources.as_file(packed) as path:
        return read_csv(path).rename(columns=_NAMES)
