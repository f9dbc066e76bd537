r"""What data of this size can show, if the fitted model were the truth.

The fitted model is a simulator whose graph and regimes are known. Tables of the same size are drawn from it and fitted
again with the same settings (a parametric bootstrap; Efron and Tibshirani, 1993, chapter 6), and what comes back is
compared with what was put in: edges that are lost, turned round or added, regimes that are merged, rows that change
sides. Beside what the refits reach stands what nobody could beat: the assignment
:math:`\hat k(z) = \arg\max_k \log \pi_k + \log p(z \mid k)` by the very model that drew the rows. Where that ceiling is
low, regimes overlap and no method can tell their rows apart; where refits stay below it, the fit falls short.

All of it is a best case: the family of densities is right by construction, and effects that were found because noise
made them look larger are drawn as large as they look. Edges too weak to enter the fitted graph are not in the simulator
either, so nothing is said about them.

Only the interface of :class:`FittedModel` is used (drawing, and the log joint density), so any family will do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from latentdo import metrics
from latentdo.equivalence import essential_graph
from latentdo.model.fitted import Array, FittedModel
from latentdo.result import FitResult

__all__ = ["CONFUSED", "FOUND", "Diagnosis", "diagnose_fit"]

Progress = Callable[[Mapping[str, Any]], None]

CONFUSED: Final = 0.2
"""Two regimes are too close if at least this share of the rows of one is assigned to the other."""

FOUND: Final = 0.5
"""An edge is shown by data of this size if more than this share of the refits has it."""

_CONFUSION_ROWS = 2000
_MOST_NAMED = 8
_SPURIOUS = 0.5


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What a fit of this size can be expected to get right; ``print`` it.

    Parameters
    ----------
    n_rows, n_fitted_rows : int
        Rows of every simulated table, and of the fitted one.
    labelled : bool
        Whether the fit, and so every refit, was given regimes of rows.
    repeats : DataFrame
        One row a refit: ``missing``, ``extra`` and ``reversed`` edges, their ``hamming`` distance, the number of
        ``regimes`` found, the adjusted Rand index of the Bayes-optimal assignment (``ceiling``) and of the refit's
        (``reached``), both from values alone.
    edges : DataFrame
        One row an edge of the fitted graph, the least often found first: the shares of refits that ``found`` it, have
        it ``reversed`` or ``missing``, and whether its direction is ``open`` because equivalent graphs disagree on it.
    extra_edges : DataFrame
        Edges of refits between variables that the fitted graph does not connect, with the share that ``found`` them.
    regimes : DataFrame
        One row a regime with rows: ``weight``, the share of its rows that the Bayes-optimal assignment
        ``recognised``, and the mean Jaccard overlap with the matched regime of the refits (``refound``).
    pairs : DataFrame
        One row a pair of regimes, the closest first: the larger share of the rows of one that the Bayes-optimal
        assignment gives to the other (``confused``), and the share of refits that put most rows of both into one
        regime (``merged``).
    failures : tuple of str
        Why refits were impossible; they are left out.
    """

    n_rows: int
    n_fitted_rows: int
    labelled: bool
    repeats: pd.DataFrame
    edges: pd.DataFrame
    extra_edges: pd.DataFrame
    regimes: pd.DataFrame
    pairs: pd.DataFrame
    failures: tuple[str, ...] = ()

    @property
    def expected_error(self) -> dict[str, float]:
        """Mean number of edges that a refit gets wrong, by kind; ``hamming`` counts a reversal twice."""
        names = ("missing", "extra", "reversed", "hamming")
        return {name: float(self.repeats[name].mean()) for name in names}

    @property
    def ceiling(self) -> float:
        """Adjusted Rand index of the Bayes-optimal assignment: what no method can beat by more than luck."""
        return float(self.repeats["ceiling"].mean())

    @property
    def reached(self) -> float:
        """Adjusted Rand index that the refits reached."""
        return float(self.repeats["reached"].mean())

    @property
    def close_regimes(self) -> pd.DataFrame:
        """Pairs of regimes too close to separate: their rows are confused, or most refits merge them."""
        return self.pairs[(self.pairs["confused"] >= CONFUSED) | (self.pairs["merged"] > 0.5)]

    @property
    def lost_edges(self) -> pd.DataFrame:
        """Edges of the fitted graph that data of this size cannot show: at most half of the refits have them."""
        return self.edges[self.edges["found"] <= FOUND]

    def sentences(self) -> dict[str, list[str]]:
        """What to tell a reader, by subject."""
        return {
            "Expected edge error": self._about_edges(),
            "Assignment ceiling": self._about_rows(),
            "Regimes too close to separate": self._about_regimes(),
            "Edges that data of this size cannot show": self._about_lost_edges(),
            "How this was found": self._about_method(),
        }

    def summary(self) -> str:
        """The sentences as text, one subject a line."""
        return "\n".join(f"{heading}: {' '.join(said)}" for heading, said in self.sentences().items())

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "n_rows": self.n_rows,
            "n_fitted_rows": self.n_fitted_rows,
            "n_repeats": len(self.repeats),
            "labelled": self.labelled,
            "expected_error": self.expected_error,
            "ceiling": self.ceiling,
            "reached": self.reached,
            "repeats": _records(self.repeats),
            "edges": _records(self.edges),
            "lost_edges": [list(pair) for pair in _pairs(self.lost_edges, "cause", "effect")],
            "extra_edges": _records(self.extra_edges),
            "regimes": _records(self.regimes.reset_index()),
            "pairs": _records(self.pairs),
            "close_regimes": [list(pair) for pair in _pairs(self.close_regimes, "first", "second")],
            "failures": list(self.failures),
            "sentences": self.sentences(),
        }

    def _about_edges(self) -> list[str]:
        error = self.expected_error
        wrong = error["missing"] + error["extra"] + error["reversed"]
        kinds = ", ".join(f"{error[name]:.1f} {name}" for name in ("missing", "extra", "reversed"))
        size = f"{len(self.edges)} edge{'' if len(self.edges) == 1 else 's'}"
        said = [f"A refit gets {wrong:.1f} wrong on average ({kinds}); the fitted graph has {size}."]
        often = self.extra_edges[self.extra_edges["found"] > _SPURIOUS]
        if len(often):
            said.append(f"Extra in most refits: {_arrows(often)}.")
        return said

    def _about_rows(self) -> list[str]:
        if len(self.regimes) < 2:
            return ["There is one regime only, so nothing to assign."]
        subject = "rows without a label" if self.labelled else "rows"
        best = f"The best possible assignment of {subject} has an adjusted Rand index of {self.ceiling:.2f}"
        said = [f"{best}; the refits reached {self.reached:.2f}."]
        weak = self.regimes[self.regimes["refound"] <= 0.5]
        if len(weak) and not self.labelled:
            said.append(f"Regimes that the refits did not find again: {_listed(map(str, weak.index))}.")
        return said

    def _about_regimes(self) -> list[str]:
        close = self.close_regimes
        if close.empty:
            return ["None."]
        return [
            f"{first} and {second} ({_percent(confused)} of the rows of one look like the other; merged in "
            f"{_percent(merged)} of the refits)."
            for first, second, confused, merged in close.head(_MOST_NAMED).itertuples(index=False, name=None)
        ] + ([f"And {len(close) - _MOST_NAMED} more pairs."] if len(close) > _MOST_NAMED else [])

    def _about_lost_edges(self) -> list[str]:
        lost = self.lost_edges
        said = []
        gone = lost[lost["missing"] >= lost["reversed"]]
        turned = lost[lost["missing"] < lost["reversed"]]
        if len(gone):
            said.append(f"Lost in most refits: {_arrows(gone)}.")
        if len(turned):
            said.append(f"Connected, but turned round: {_arrows(turned)}.")
        left_open = self.edges[self.edges["open"]]
        if len(left_open):
            said.append(f"The direction is open whatever the number of rows: {_arrows(left_open)}.")
        return said or ["None of the fitted graph."]

    def _about_method(self) -> list[str]:
        size = f"{self.n_rows} rows"
        if self.n_rows < self.n_fitted_rows:
            size += f" (of {self.n_fitted_rows}, so the errors are somewhat too large)"
        count = f"{len(self.repeats)} table{'' if len(self.repeats) == 1 else 's'} of {size}"
        said = [
            f"{count} drawn from the fitted model, each fitted again with the same settings.",
            "This is a best case: it takes the fitted model for the truth.",
            "It says nothing about edges too weak to be in it.",
        ]
        if self.failures:
            said.append(
                f"{len(self.failures)} more could not be fitted; the last reason: {self.failures[-1]}"
            )
        return said


@dataclass(frozen=True, eq=False)
class _Refit:
    """What is kept of one refit; ``merged`` and ``refound`` are by regimes of the fitted model."""

    counts: metrics.EdgeCounts
    adjacency: NDArray[np.int8]
    n_regimes: int
    ceiling: float
    reached: float
    refound: Array
    home: NDArray[np.int64]
    evidence: float


@dataclass(frozen=True, eq=False)
class _Known:
    """What the fit was told: a label a row (None where unknown), and whether targets were given."""

    labels: Sequence[Hashable | None] | None
    targets: bool


def diagnose_fit(
    result: FitResult,
    template: Any,
    *,
    labels: Sequence[Hashable | None] | None,
    targets_given: bool,
    n_repeats: int,
    max_rows: int,
    seed: int,
    n_jobs: int | None,
    progress: Progress | None = None,
) -> Diagnosis:
    """Simulate from a fit, fit again, compare; see ``LatentInterventionDAG.diagnose``.

    Parameters
    ----------
    result : FitResult
        The fit.
    template : estimator
        Not fitted, with the settings of the fit; it is cloned.
    labels : sequence of n labels, optional
        What the fit was told of the regimes of its rows, None where nothing; the refits are told as much.
    targets_given : bool
        Whether the fit was told the targets of these labels.
    n_repeats, max_rows : int
        Number of simulated tables, and their largest size.
    seed : int
        Seed of everything; table number *b* is the same whatever the number of tables and jobs.
    n_jobs : int, optional
        Refits that run in parallel.
    progress : callable, optional
        Called with a dict after every refit.

    Raises
    ------
    ValueError
        If no simulated table could be fitted.
    """
    known = _Known(labels, targets_given)
    job = delayed(_refit)
    jobs = (job(template, result, known, max_rows, seed, b) for b in range(n_repeats))
    refits: list[_Refit] = []
    failures: list[str] = []
    for b, outcome in enumerate(Parallel(n_jobs=n_jobs, return_as="generator")(jobs)):
        if isinstance(outcome, str):
            failures.append(outcome)
            continue
        refits.append(outcome)
        if progress is not None:
            counts = {"regimes": outcome.n_regimes, "edges": int(outcome.adjacency.sum())}
            progress({"step": f"refit {b + 1} of {n_repeats}", "evidence": outcome.evidence, **counts})
    if not refits:
        raise ValueError(
            f"none of {n_repeats} simulated tables could be fitted; the last reason: {failures[-1]}"
        )
    if failures:
        message = f"{len(failures)} of {n_repeats} simulated tables could not be fitted and are left out"
        warnings.warn(message, ConvergenceWarning, stacklevel=3)
    confusion = _confusion(result.model, np.random.default_rng([seed, 0, 1]))
    n = len(result.responsibilities)
    edges, extra = _edge_tables(result, refits)
    regimes, pairs = _regime_tables(result, refits, confusion)
    return Diagnosis(
        n_rows=min(n, max_rows),
        n_fitted_rows=n,
        labelled=labels is not None,
        repeats=pd.DataFrame(
            {
                "missing": [r.counts.missing for r in refits],
                "extra": [r.counts.extra for r in refits],
                "reversed": [r.counts.rev for r in refits],
                "hamming": [r.counts.hamming for r in refits],
                "regimes": [r.n_regimes for r in refits],
                "ceiling": [r.ceiling for r in refits],
                "reached": [r.reached for r in refits],
            }
        ),
        edges=edges,
        extra_edges=extra,
        regimes=regimes,
        pairs=pairs,
        failures=tuple(failures),
    )


def _simulate(
    result: FitResult, known: _Known, max_rows: int, rng: np.random.Generator
) -> tuple[pd.DataFrame, Array, NDArray[np.int64], _Known]:
    """A table in the user's units, the same standardised, the regime of every row, and what may be told of it.

    Rows that had a label keep its regime; the others draw theirs.
    """
    model, n = result.model, len(result.responsibilities)
    weights = model.topology.weights / model.topology.weights.sum()
    if known.labels is not None:
        rows = np.arange(n) if n <= max_rows else np.sort(rng.choice(n, max_rows, replace=False))
        known = replace(known, labels=[known.labels[i] for i in rows])
    regimes = rng.choice(len(weights), size=min(n, max_rows), p=weights)
    if known.labels is not None:
        place = {name: k for k, name in enumerate(result.regime_names)}
        for i, label in enumerate(known.labels):
            if label is not None:
                regimes[i] = place[label]
    z = np.empty((len(regimes), len(result.columns)))
    for k in np.unique(regimes):
        own = regimes == k
        z[own] = model.sample(int(own.sum()), int(k), rng)
    X = pd.DataFrame(result.preprocessor.inverse(z), columns=list(result.columns))
    return X, z, np.asarray(regimes, dtype=np.int64), known


def _refit(
    template: Any, result: FitResult, known: _Known, max_rows: int, seed: int, number: int
) -> _Refit | str:
    """Simulate and fit once; a message instead if that was impossible. Runs in a worker."""
    rng = np.random.default_rng([seed, number])
    X, z, regimes, told = _simulate(result, known, max_rows, rng)
    estimator = clone(template).set_params(random_state=int(rng.integers(2**31)))
    arguments: dict[str, Any] = {}
    if told.labels is not None:
        arguments["regimes"] = pd.Series(told.labels, dtype=object)
        if told.targets:
            table = result.targets
            arguments["targets"] = {
                name: [c for c in table.columns if table.loc[name, c]] for name in table.index[1:]
            }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit to the user's rows has spoken
        try:
            estimator.fit(X, **arguments)
            found = estimator.predict(X)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            return str(error)
    if estimator.result_.status == "interrupted":  # the solvers answer Ctrl-C with the best state so far
        raise KeyboardInterrupt
    fit: FitResult = estimator.result_
    best = result.model.log_joint(z).argmax(axis=1)
    adjacency = np.asarray(fit.model.topology.adjacency, dtype=np.int8)
    refound, home = _matched(regimes, found, result.n_regimes, fit.n_regimes)
    return _Refit(
        counts=metrics.edge_counts(result.model.topology.adjacency, adjacency),
        adjacency=adjacency,
        n_regimes=fit.n_regimes,
        ceiling=metrics.adjusted_rand_index(regimes, best),
        reached=metrics.adjusted_rand_index(regimes, found),
        refound=refound,
        home=home,
        evidence=fit.evidence,
    )


def _matched(
    true: NDArray[np.int64], found: NDArray[np.int64], n_true: int, n_found: int
) -> tuple[Array, NDArray[np.int64]]:
    """For every true regime the Jaccard overlap with its match, and the found regime that holds most of its rows.

    Both are missing (NaN and -1) for a regime that drew no rows.
    """
    table = np.zeros((n_true, n_found), dtype=np.int64)
    np.add.at(table, (true, found), 1)
    sizes = table.sum(axis=1)
    overlap = np.where(sizes > 0, 0.0, np.nan)
    for k, other in zip(*linear_sum_assignment(table, maximize=True), strict=True):
        if sizes[k]:
            overlap[k] = table[k, other] / (sizes[k] + table[:, other].sum() - table[k, other])
    return overlap, np.where(sizes > 0, table.argmax(axis=1), -1)


def _confusion(model: FittedModel, rng: np.random.Generator) -> Array:
    """Share of the rows of each regime that the Bayes-optimal assignment gives to each, ``[n_regimes, n_regimes]``."""
    n_regimes = model.topology.n_regimes
    shares = np.zeros((n_regimes, n_regimes))
    for k in np.flatnonzero(model.topology.weights > 0):
        best = model.log_joint(model.sample(_CONFUSION_ROWS, int(k), rng)).argmax(axis=1)
        shares[k] = np.bincount(best, minlength=n_regimes) / _CONFUSION_ROWS
    return shares


def _edge_tables(result: FitResult, refits: Sequence[_Refit]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What became of the fitted edges, and which others appeared."""
    topology = result.model.topology
    share = np.mean([r.adjacency for r in refits], axis=0)
    essential = essential_graph(topology.adjacency, topology.targets[topology.weights > 0])
    names = result.columns
    edges = [
        {
            "cause": names[i],
            "effect": names[j],
            "found": float(share[i, j]),
            "reversed": float(share[j, i]),
            "missing": float(max(1.0 - share[i, j] - share[j, i], 0.0)),
            "open": bool(essential[j, i]),
        }
        for i, j in np.argwhere(topology.adjacency)
    ]
    connected = topology.adjacency | topology.adjacency.T
    extra = [
        {"cause": names[i], "effect": names[j], "found": float(share[i, j])}
        for i, j in np.argwhere((share > 0) & (connected == 0))
    ]
    table = pd.DataFrame(edges, columns=["cause", "effect", "found", "reversed", "missing", "open"])
    others = pd.DataFrame(extra, columns=["cause", "effect", "found"])
    return (
        table.astype({"open": bool}).sort_values("found", kind="stable", ignore_index=True),
        others.sort_values("found", ascending=False, kind="stable", ignore_index=True),
    )


def _regime_tables(
    result: FitResult, refits: Sequence[_Refit], confusion: Array
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """How well each regime is recognised and found again, and how close each pair is."""
    names, weights = result.regime_names, result.model.topology.weights
    present = np.flatnonzero(weights > 0)
    refound = np.array([r.refound for r in refits])[:, present]
    drawn = ~np.isnan(refound)
    mean = np.where(drawn, refound, 0.0).sum(axis=0) / np.maximum(drawn.sum(axis=0), 1)
    regimes = pd.DataFrame(
        {"weight": weights[present], "recognised": confusion[present, present], "refound": mean},
        index=pd.Index([names[k] for k in present], name="regime", dtype=object),
    )
    records = [
        {
            "first": names[a],
            "second": names[b],
            "confused": float(max(confusion[a, b], confusion[b, a])),
            "merged": float(np.mean([r.home[a] == r.home[b] >= 0 for r in refits])),
        }
        for a, b in combinations(present, 2)
    ]
    pairs = pd.DataFrame(records, columns=["first", "second", "confused", "merged"])
    pairs = pairs.sort_values(["confused", "merged"], ascending=False, kind="stable", ignore_index=True)
    return regimes, pairs


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


def _pairs(table: pd.DataFrame, first: str, second: str) -> list[tuple[Any, Any]]:
    return list(zip(table[first], table[second], strict=True))


def _arrows(table: pd.DataFrame) -> str:
    return _listed(f"{cause} -> {effect}" for cause, effect in _pairs(table, "cause", "effect"))


def _listed(names: Any) -> str:
    names = list(names)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _percent(share: float) -> str:
    return f"{round(100 * share)} %"
