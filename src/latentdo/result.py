"""The outcome of a fit, frozen: the model, how sure it is, how it went, and where it came from."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, get_args

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latentdo import graphs
from latentdo.data import Background, Circumstances, Kind, is_unknown, is_writable, validate_rows
from latentdo.data.transforms import Preprocessor
from latentdo.graphs.equivalence import essential_graph
from latentdo.model.assignment import SEPARATE, Units
from latentdo.model.fitted import Array, FittedModel
from latentdo.model.mechanisms.noise import SUM_TOLERANCE
from latentdo.notebook import WordyTable, overview

SEGMENTS: Final = ("series", "start", "end", "rows", "regime", "probability", "targets", "followed")
"""Columns of the table of segments; the first one only where there are several series."""

CHECKS: Final = ("check", "statistic", "p_value", "failed", "words")
"""What is kept of a check."""

HINTS: Final = ("first", "second", "correlation", "p_value")
"""What is kept of a pair of variables that may have a hidden cause."""

Status = Literal["converged", "not converged", "interrupted"]

_ROUNDING: Final = 1e-9  # sums over many graphs may leave the unit interval by this much
_TEXTS: Final = ("solver", "density", "intervention", "status", "message", "data_hash")
_MEASURED: Final = (
    "evidence",
    "violation",
    "seconds",
)  # what reports and plots draw of history and comparison


_FAR = 1e15
"""Rows further out than this many standard deviations count as being there: squares of more overflow in float32."""


class Rows(NamedTuple):
    """New rows as a model sees them.

    ``x [n, d]`` are in the user's units, ``z`` standardised, less what their circumstances explain: ``expected`` and
    the ``unit`` of the rest; their offset, if counts have an exposure, is one more column of ``z``. ``units`` says how
    they belong together.
    """

    x: Array
    z: Array
    expected: Array
    unit: Array
    units: Units

    def without(self, cells: NDArray[np.bool_]) -> Array:
        """``z`` with some cells ``[n, d]`` missing."""
        z = self.z.copy()
        z[:, : cells.shape[1]][cells] = np.nan
        return z


@dataclass(frozen=True, eq=False)
class FitResult:
    """Everything a fit found; estimators, reports and plots read it, nothing writes it.

    Parameters
    ----------
    model : FittedModel
        The fitted mixture, in standardised units.
    columns : tuple of str
        Names of the variables.
    preprocessor : Preprocessor
        From the user's units to standardised ones.
    regime_names : tuple
        One name a regime; entry 0 is the reference.
    responsibilities : ndarray [n, n_regimes]
        Posterior probability of every regime for every fitted row.
    edge_probabilities : ndarray [d, d]
        Posterior probability of every directed edge.
    ancestor_probabilities : ndarray [d, d]
        Posterior probability that the row variable causes the column variable, directly or not.
    target_probabilities : ndarray [n_regimes, d]
        Posterior probability that a regime changed a variable's mechanism.
    evidence : float
        Penalised log-likelihood of all rows, in standardised units: what fits are compared by.
    evidence_terms : mapping
        The named parts of ``evidence``.
    status : str
        ``"converged"``, ``"not converged"`` or ``"interrupted"``; ``message`` says more.
    history : tuple of mappings
        One entry per step: what was done, evidence, regimes, edges, seconds since the start.
    comparison : tuple of mappings
        One entry a model that was compared (density, intervention, null), with its evidence.
    configuration : mapping
        Arguments of the estimator, and what "auto" became.
    groups : ndarray [n] of int64, optional
        Group of every fitted row, if rows were grouped: those of a group share their regime, and the weights of the
        model are shares of groups.
    group_names : tuple
        The user's names of the groups; groups with larger numbers are rows on their own.
    where : Circumstances
        When and where the fitted rows were measured, as far as that was said.
    background : Background, optional
        What that explains; the model is then one of what is new in rows.
    lagged : ndarray [lags, d, d] of int8, optional
        Which variables cause which one row later, two rows later.
    explained, moved : ndarray [n_regimes, d], optional
        How much targets explain of their regimes, in nats per row, and by how many standard deviations variables differ
        from the reference; see :mod:`latentdo.segments`.
    segments : DataFrame, optional
        Stretches of time that a regime other than the reference lasted, where rows were in order of time.
    checks : tuple of mappings
        What the rows say against the model, see :mod:`latentdo.checks`: one entry a check.
    model_edge_probabilities : ndarray [d, d], optional
        The posterior given this one fit, where ``edge_probabilities`` are averaged over half-samples, or capped.
    hints : tuple of mappings
        Pairs of variables that may have a hidden cause: ``first``, ``second``, ``correlation``, ``p_value``.
    """

    model: FittedModel
    columns: tuple[str, ...]
    preprocessor: Preprocessor
    regime_names: tuple[Hashable, ...]
    responsibilities: Array
    edge_probabilities: Array
    ancestor_probabilities: Array
    target_probabilities: Array
    evidence: float
    evidence_terms: Mapping[str, float]
    solver: str
    density: str
    intervention: str
    status: Status = "converged"
    message: str = ""
    history: tuple[Mapping[str, Any], ...] = ()
    comparison: tuple[Mapping[str, Any], ...] = ()
    configuration: Mapping[str, Any] = field(default_factory=dict)
    data_hash: str = ""
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    groups: NDArray[np.int64] | None = None
    group_names: tuple[Hashable, ...] = ()
    where: Circumstances = Circumstances()  # noqa: RUF009  (frozen)
    background: Background | None = None
    lagged: NDArray[np.int8] | None = None
    explained: Array | None = None
    moved: Array | None = None
    segments: pd.DataFrame | None = None
    checks: tuple[Mapping[str, Any], ...] = ()
    hints: tuple[Mapping[str, Any], ...] = ()
    model_edge_probabilities: Array | None = None

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What every column is."""
        return self.preprocessor.kinds

    def check(self) -> None:
        """Refuse what no fit could have found: used on what comes from a file, and on what a solver returns.

        Raises
        ------
        ValueError
            Naming the field.
        """
        d, k = len(self.columns), len(self.regime_names)
        topology = self.model.topology
        if (topology.n_variables, topology.n_regimes) != (d, k):
            raise ValueError(
                f"columns and regime_names name {d} variables and {k} regimes, but the model has "
                f"{topology.n_variables} and {topology.n_regimes}"
            )
        _check_texts(self)
        _check_records(self)
        if self.preprocessor.columns != self.columns:
            raise ValueError("preprocessor scales other variables than columns names")
        n = len(self.responsibilities) if self.responsibilities.ndim else 0
        for name, shape in (
            ("responsibilities", (n, k)),
            ("edge_probabilities", (d, d)),
            ("ancestor_probabilities", (d, d)),
            ("target_probabilities", (k, d)),
        ):
            array = getattr(self, name)
            if array.shape != shape or array.size == 0:
                raise ValueError(f"{name} has the shape {array.shape} where {shape} belongs")
            if array.dtype.kind != "f" or not (array.min() >= -_ROUNDING and array.max() <= 1.0 + _ROUNDING):
                raise ValueError(f"{name} holds values that are not probabilities")
        if not (np.abs(self.responsibilities.sum(axis=1) - 1.0) <= SUM_TOLERANCE).all():
            raise ValueError("responsibilities of a row do not sum to one")
        if self.groups is not None and (
            self.groups.shape != (n,) or self.groups.dtype.kind != "i" or self.groups.min() < 0
        ):
            raise ValueError("groups are not one number from 0 per row")
        self.where.check(n)
        self._check_more()
        for name in ("edge_probabilities", "ancestor_probabilities"):
            if getattr(self, name).diagonal().any():
                raise ValueError(f"{name} has a variable that causes itself")
        if self.target_probabilities[0].any():
            raise ValueError("target_probabilities change the reference, whose row must be zero")
        for name, value in {
            "evidence": self.evidence,
            **{f"evidence_terms[{key!r}]": value for key, value in self.evidence_terms.items()},
        }.items():
            if not np.isfinite(value):
                raise ValueError(f"{name} is {value}, not a finite number")
        if not 0.0 <= self.seconds < np.inf:
            raise ValueError(f"seconds is {self.seconds}")

    def _check_more(self) -> None:
        """The part of :meth:`check` that is about what not every fit has."""
        d, k = len(self.columns), len(self.regime_names)
        if self.lagged is not None and (
            self.lagged.ndim != 3 or self.lagged.shape[1:] != (d, d) or not np.isin(self.lagged, (0, 1)).all()
        ):
            raise ValueError("lagged holds other values than 0 and 1 for every pair of variables")
        plain = self.model_edge_probabilities
        if plain is not None and not (
            plain.shape == (d, d)
            and plain.dtype == np.float64
            and ((plain >= -_ROUNDING) & (plain <= 1.0 + _ROUNDING)).all()
        ):
            raise ValueError("model_edge_probabilities hold values that are not probabilities")
        for name in ("explained", "moved"):
            array = getattr(self, name)
            if array is not None and (array.shape != (k, d) or not np.isfinite(array).all()):
                raise ValueError(f"{name} is not one number for every regime and variable")

    def fitted_values(self, X: Any) -> Array:
        """The rows that were fitted as numbers ``[n, d]`` in the user's units, levels as their codes; refuse others."""
        if isinstance(X, pd.DataFrame):
            X = X[list(self.columns)]
        shape, wanted = np.shape(X), (len(self.responsibilities), len(self.columns))
        if shape != wanted:
            raise ValueError(
                f"X has shape {shape}, but the fit saw {wanted}; pass the rows that were fitted."
            )
        if all(not kind.is_discrete for kind in self.kinds):
            return np.asarray(X, dtype=np.float64)
        return validate_rows(X, self.columns, self.kinds, missing="model")  # cells may be missing

    def read(self, x: Array, where: Circumstances, units: Units = SEPARATE) -> Rows:
        """Rows ``x [n, d]`` in the user's units as the model sees them; NaN where a cell is missing.

        Raises
        ------
        ValueError
            If what is to be expected of a row depends on a cell that is missing.
        """
        with np.errstate(over="ignore"):
            z = np.clip(self.preprocessor.forward(x), -_FAR, _FAR)
        if self.background is None:
            offset = self.preprocessor.offset_of(where.offset)
            seen = z if offset is None else np.column_stack([z, offset])
            return Rows(x, seen, np.zeros_like(z), np.ones_like(z), units)
        if self.background.uses_past() and np.isnan(z).any():
            row, j = (int(i) for i in np.argwhere(np.isnan(z))[0])
            raise ValueError(
                f"row {row} (counted from 0) lacks {self.columns[j]!r}, but this model predicts each row from "
                "the rows before it; fill such cells in, or fit with lags=0"
            )
        expected, unit = self.background.describe(z, where)
        if np.isnan(expected).any():
            row, j = (int(i) for i in np.argwhere(np.isnan(expected))[0])
            raise ValueError(
                f"the level of {self.columns[j]!r} in the batch of row {row} (counted from 0), which was not fitted, "
                "cannot be estimated where cells are missing; fill them in, or fit with rows of this batch"
            )
        return Rows(x, np.clip((z - expected) / unit, -_FAR, _FAR), expected, unit, units)

    @property
    def n_regimes(self) -> int:
        """Number of regimes, the reference included."""
        return self.model.topology.n_regimes

    @property
    def adjacency(self) -> pd.DataFrame:
        """The graph as a 0/1 table; row causes column."""
        return self._square(self.model.topology.adjacency.astype(np.int64))

    @property
    def lagged_adjacency(self) -> pd.DataFrame | None:
        """Causes in earlier rows as a 0/1 table ``[lags d, d]``, indexed by lag and cause; None without time."""
        if self.lagged is None or self.where.time is None:
            return None
        lags = range(1, len(self.lagged) + 1)
        index = pd.MultiIndex.from_product([lags, list(self.columns)], names=["lag", "cause"])
        values = self.lagged.reshape(-1, len(self.columns)).astype(np.int64)
        return pd.DataFrame(values, index=index, columns=list(self.columns))

    @property
    def targets(self) -> pd.DataFrame:
        """What each regime changed, as a 0/1 table."""
        return self._by_regime(self.model.topology.targets.astype(np.int64))

    @property
    def regimes(self) -> NDArray[np.int64]:
        """Most probable regime of every fitted row."""
        return np.asarray(self.responsibilities.argmax(axis=1), dtype=np.int64)

    def ranked_targets(self, regime: int) -> list[int]:
        """Targets of a regime, those first that explain most of it: root causes."""
        hit = np.flatnonzero(self.model.topology.targets[regime])
        if self.explained is None:
            return [int(j) for j in hit]
        return [int(j) for j in hit[np.argsort(-self.explained[regime, hit], kind="stable")]]

    def followers(self, regime: int, least: float = 0.5) -> list[int]:
        """Variables that a regime moved by ``least`` standard deviations and that only follow its targets."""
        if self.moved is None:
            return []
        hit = np.flatnonzero(self.model.topology.targets[regime])
        reached = graphs.reachability(self.model.topology.adjacency)[hit]
        after: NDArray[np.bool_] = np.asarray(reached.astype(bool).any(axis=0))
        after[hit] = False
        by_size = np.argsort(-np.abs(self.moved[regime]), kind="stable")
        return [int(j) for j in by_size if after[j] and abs(self.moved[regime, j]) >= least]

    @property
    def n_groups(self) -> int | None:
        """Number of groups of rows, rows on their own included; None if rows were not grouped."""
        return None if self.groups is None else int(np.unique(self.groups).size)

    @property
    def has_observational(self) -> bool:
        """Whether any weight belongs to the reference regime."""
        return bool(self.model.topology.weights[0] > 0.0)

    def edge_table(self) -> pd.DataFrame:
        """Edge probabilities as a table."""
        return self._square(self.edge_probabilities)

    def model_edge_table(self) -> pd.DataFrame:
        """Edge probabilities given this one fit, as a table."""
        plain = self.model_edge_probabilities
        return self._square(self.edge_probabilities if plain is None else plain)

    def adjacency_probability_table(self) -> pd.DataFrame:
        """Probability that two variables are connected, in whatever direction, as a table."""
        return self._square(np.minimum(self.edge_probabilities + self.edge_probabilities.T, 1.0))

    def direction_probability_table(self) -> pd.DataFrame:
        """Probability of each direction if two variables are connected, as a table; a half where they never are."""
        forward = self.edge_probabilities
        either = forward + forward.T
        found = np.where(either > 0.0, forward / np.where(either > 0.0, either, 1.0), 0.5)
        np.fill_diagonal(found, 0.0)
        return self._square(found)

    def target_table(self) -> pd.DataFrame:
        """Target probabilities as a table."""
        return self._by_regime(self.target_probabilities)

    def ancestor_table(self) -> pd.DataFrame:
        """Ancestor probabilities as a table."""
        return self._square(self.ancestor_probabilities)

    def regime_table(self) -> pd.DataFrame:
        """One row a fitted row: group, series, time, batch and weight, if known, its regime and how sure that is."""
        best = self.regimes
        return pd.DataFrame(
            {
                "row": np.arange(len(best)),
                **({} if self.groups is None else {"group": self._group_of_rows()}),
                **self.where.table(),
                "regime": [self.regime_names[k] for k in best],
                "probability": self.responsibilities[np.arange(len(best)), best],
            }
        )

    def check_table(self) -> pd.DataFrame:
        """One row a check, those that failed first: statistic, p-value, whether it failed, and words."""
        found = sorted(self.checks, key=lambda one: not one["failed"])
        return WordyTable(pd.DataFrame(found, columns=list(CHECKS)).set_index("check"))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        failed = [str(one["words"]) for one in self.checks if one["failed"]]
        return overview(self.summary(), list(dict.fromkeys([*failed, *self.warnings])))

    def hint_table(self) -> pd.DataFrame:
        """Pairs of variables that may have a hidden cause, the strongest first."""
        return pd.DataFrame([dict(one) for one in self.hints], columns=list(HINTS))

    def ambiguous_edges(self, low: float = 0.05) -> pd.DataFrame:
        """Pairs of variables whose connection or direction the data leave open, the least certain first.

        A pair is listed when its state (forward, backward, absent) in :attr:`adjacency`, the single best graph, has a
        probability below ``1 - low``, or when the interventional essential graph leaves the edge undirected and its
        probabilities do not tell the direction either. ``graph`` is that state; it need not be the likeliest one
        (:meth:`contested_edges`).
        """
        adjacency, probability = self.model.topology.adjacency, self.edge_probabilities
        present = self.model.topology.targets[self.model.topology.weights > 0]
        essential = essential_graph(adjacency, present)
        records = []
        for i in range(len(self.columns)):
            for j in range(i + 1, len(self.columns)):
                forward, backward = float(probability[i, j]), float(probability[j, i])
                absent = max(1.0 - forward - backward, 0.0)
                # Shapes of noise and curves may tell what the graph alone leaves open.
                told = max(forward, backward) >= (1.0 - low) * (forward + backward)
                undirected = bool(essential[i, j] and essential[j, i]) and not told
                state = "forward" if adjacency[i, j] else "backward" if adjacency[j, i] else "absent"
                certain = {"forward": forward, "backward": backward, "absent": absent}[state]
                if certain < 1.0 - low or undirected:
                    pair = (self.columns[i], self.columns[j])
                    records.append((*pair, forward, backward, absent, undirected, state))
        names = ["source", "target", "forward", "backward", "absent", "undirected", "graph"]
        table = pd.DataFrame(records, columns=names)
        certainty = table[["forward", "backward", "absent"]].max(axis=1)
        return table.loc[certainty.sort_values(kind="stable").index].reset_index(drop=True)

    def contested_edges(self, margin: float = 0.01) -> pd.DataFrame:
        """Edges of the graph that are less probable than their reverse or their absence, the least probable first.

        The graph is the single best-scoring DAG, but probabilities are sums over all DAGs: the two may disagree.
        Differences below ``margin`` are ties, as between directions that no data can tell apart.
        """
        probability = self.edge_probabilities
        records = [
            (self.columns[i], self.columns[j], forward, backward, absent)
            for i, j in np.argwhere(self.model.topology.adjacency)
            for forward, backward in [(float(probability[i, j]), float(probability[j, i]))]
            for absent in [max(1.0 - forward - backward, 0.0)]
            if forward < max(backward, absent) - margin
        ]
        table = pd.DataFrame(records, columns=["cause", "effect", "forward", "backward", "absent"])
        return table.sort_values("forward", kind="stable", ignore_index=True)

    def to_networkx(self) -> nx.DiGraph:
        """The graph with ``probability`` on its edges."""
        graph = graphs.to_networkx(self.model.topology.adjacency, self.columns)
        for i, j in np.argwhere(self.model.topology.adjacency):
            graph.edges[self.columns[i], self.columns[j]]["probability"] = float(
                self.edge_probabilities[i, j]
            )
        return graph

    def summary(self) -> dict[str, Any]:
        """Plain data for ``result.json``: graph, targets, weights, evidence, configuration."""
        topology = self.model.topology
        return {
            "solver": self.solver,
            "density": self.density,
            "intervention": self.intervention,
            "status": self.status,
            "message": self.message,
            "variables": list(self.columns),
            "kinds": {name: kind.kind for name, kind in zip(self.columns, self.kinds, strict=True)},
            "edges": [
                {
                    "from": self.columns[i],
                    "to": self.columns[j],
                    "probability": float(self.edge_probabilities[i, j]),
                }
                for i, j in np.argwhere(topology.adjacency)
            ],
            "regimes": [
                {
                    "name": _plain(self.regime_names[k]),
                    "weight": float(topology.weights[k]),
                    "targets": [self.columns[j] for j in self.ranked_targets(k)],
                    "downstream": [self.columns[j] for j in self.followers(k)],
                }
                for k in range(self.n_regimes)
            ],
            "has_observational": self.has_observational,
            **({} if self.groups is None else {"groups": self.n_groups}),
            **({"duration": topology.duration} if topology.duration else {}),
            "evidence": self.evidence,
            "evidence_terms": dict(self.evidence_terms),
            "comparison": [dict(entry) for entry in self.comparison],
            "configuration": dict(self.configuration),
            "data_hash": self.data_hash,
            "seconds": self.seconds,
            "warnings": list(self.warnings),
            "checks": [dict(one) for one in self.checks],
            "hidden_cause_hints": [dict(one) for one in self.hints],
        }

    def with_names(self, columns: tuple[str, ...]) -> FitResult:
        """The same result under other variable names."""
        return replace(self, columns=columns)

    def _group_of_rows(self) -> pd.Series[Any]:
        """The user's name of every row's group; None for rows on their own."""
        assert self.groups is not None
        named = dict(enumerate(self.group_names))
        return pd.Series([named.get(g) for g in self.groups.tolist()], dtype=object)

    def _square(self, values: NDArray[Any]) -> pd.DataFrame:
        return pd.DataFrame(values, index=list(self.columns), columns=list(self.columns))

    def _by_regime(self, values: NDArray[Any]) -> pd.DataFrame:
        return pd.DataFrame(values, index=list(self.regime_names), columns=list(self.columns))


def _check_texts(result: FitResult) -> None:
    """Names, words and records: the part of :meth:`FitResult.check` that is no array."""
    for name in ("columns", "warnings"):
        if wrong := [value for value in getattr(result, name) if not isinstance(value, str)]:
            raise ValueError(f"{name} holds {wrong[0]!r}, which is not text")
    for name in _TEXTS:
        if not isinstance(getattr(result, name), str):
            raise ValueError(f"{name} is {getattr(result, name)!r}, which is not text")
    for name, what in (("regime_names", "regime"), ("group_names", "group")):
        for label in getattr(result, name):
            if not isinstance(label, Hashable) or not is_writable(label) or is_unknown(label):
                raise ValueError(f"{name} holds what cannot name a {what}")
    for name in ("columns", "regime_names", "group_names"):
        if len(set(getattr(result, name))) != len(getattr(result, name)):
            raise ValueError(f"{name} holds a name twice")
    if result.status not in get_args(Status):
        raise ValueError(f"status is {result.status!r}, which is unknown")
    for name in ("history", "comparison"):
        for key, value in (item for entry in getattr(result, name) for item in entry.items()):
            kind = int | float if key in _MEASURED else str | int | float | None
            if not isinstance(key, str) or not isinstance(value, kind):
                raise ValueError(f"{name} holds {value!r} as {key!r}")
            if isinstance(value, int) and abs(value) >= 2**63:
                raise ValueError(f"{name} holds an integer beyond 64 bits as {key!r}")


def _check_records(result: FitResult) -> None:
    """What checks left: the part of :meth:`FitResult.check` that is about them."""
    for name, fields in (("checks", CHECKS), ("hints", HINTS)):
        for entry in getattr(result, name):
            _check_record(name, entry, fields)
    for pair in ({one["first"], one["second"]} for one in result.hints):
        if len(pair) != 2 or not pair <= set(result.columns):
            raise ValueError("hints name other pairs than variables make")


def _check_record(name: str, entry: Mapping[str, Any], fields: tuple[str, ...]) -> None:
    """Refuse what no check leaves: other fields, or values of another kind than they have."""
    if set(entry) != set(fields):
        raise ValueError(f"{name} hold {', '.join(map(str, entry))} where {', '.join(fields)} belong")
    for key, value in entry.items():
        if key in ("statistic", "correlation", "p_value"):
            fits = isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value)
            fits = fits or (key == "p_value" and value is None)
        else:
            fits = isinstance(value, bool if key == "failed" else str)
        if not fits:
            raise ValueError(f"{name} hold {value!r} as {key!r}")


def _plain(value: Hashable) -> Any:
    """A label as JSON can hold it."""
    try:
        json.dumps(value)
    except TypeError:
        return str(value)
    return value
