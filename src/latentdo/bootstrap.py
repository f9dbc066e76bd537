r"""BootstrapDAG: how much of a result survives if the rows had been drawn anew.

An estimator is fitted to all rows, and then again to many resamples of them. What is counted is how often an edge, its
direction, a target or a regime returns. Regimes have no names that all fits share, so those of a resample are matched
with those of the fit to all rows: by label where rows are labelled, otherwise by the assignment that maximises the
overlap of responsibilities over the original rows, targets breaking ties. The overlap of a matched pair is the Jaccard
coefficient of soft sets, :math:`\sum_i \min(r_{ik}, r'_{il}) / \sum_i \max(r_{ik}, r'_{il})`; its mean over the
resamples is the stability of the regime (Hennig, 2007, does the same for hard clusters: below 0.6 do not trust it,
above 0.85 it is stable).

Support is not the probability of an edge. It answers "would this come out again?", the posterior of one fit answers "is
it there, given the assumptions and these rows?". The documentation compares the two.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from latentdo.data import Dataset
from latentdo.estimator import LatentInterventionDAG
from latentdo.graphs import reachability
from latentdo.persistence import ResultFileError, load_arrays, pack_result, save_arrays
from latentdo.result import FitResult

__all__ = ["BootstrapDAG", "Resample", "consensus_dag", "match_regimes"]

Array = NDArray[np.float64]
Progress = Callable[[Mapping[str, Any]], None]

KINDS: Final = ("half", "bootstrap")
_ENTRY: Final = "latentdo-bootstrap"
_NOT_THE_RESULT: Final = (
    "n_jobs",
    "verbose",
    "device",
    "checkpoint",
)  # arguments that do not decide what is found
_TARGET_WEIGHT: Final = 0.1  # targets only decide between regimes whose rows overlap about equally


@dataclass(frozen=True, eq=False)
class Resample:
    """What is kept of one fit to a resample; regimes are those of the fit to all rows.

    Parameters
    ----------
    number : int
        Which resample; it decides the rows and the seed.
    adjacency : ndarray [d, d] of int8
        The graph.
    targets : ndarray [n_regimes, d] of int8
        Targets of the matched regimes; zero where nothing matched.
    overlap : ndarray [n_regimes]
        Jaccard coefficient of each regime with its match; 0 where nothing matched.
    n_regimes : int
        Regimes that this fit found.
    evidence : float
        Its evidence, which is not comparable between resamples.
    """

    number: int
    adjacency: NDArray[np.int8]
    targets: NDArray[np.int8]
    overlap: Array
    n_regimes: int
    evidence: float


class BootstrapDAG(BaseEstimator):  # type: ignore[misc]
    """Fit an estimator to resamples of the rows, and count what returns.

    Parameters
    ----------
    estimator : LatentInterventionDAG, optional
        What is fitted; the default estimator if None.
    n_resamples : int
        Number of resamples. The standard error of a support near one half is ``0.5 / sqrt(n_resamples)``.
    resample : {"half", "bootstrap"}
        Half of the rows, drawn without replacement; or as many as there are, drawn with it. To first order both vary as
        much as the estimate itself, but the latter repeats rows, which look like very narrow regimes: where regimes are
        hidden, it may find too many of them. Halves lose regimes of few rows instead. Use "bootstrap" where all rows
        are labelled, where regimes are small, or with ``max_regimes=1``.
    threshold : float
        Edges enter the consensus graph if their support is larger.
    warm_start : bool
        Keep the resamples of an earlier ``fit`` to the same rows, and add those that are missing.
    checkpoint : str or Path, optional
        File to which finished resamples are written every ``checkpoint_seconds``, and from which a later fit to the
        same rows goes on.
    checkpoint_seconds : float
        Time between two writes.
    n_jobs : int
        Resamples fitted in parallel (joblib).
    random_state : int
        Seed. Resample number ``b`` is the same whatever ``n_resamples`` and ``n_jobs`` are.

    Attributes
    ----------
    estimator_ : LatentInterventionDAG
        The fit to all rows.
    edge_support_ : DataFrame [d, d]
        Share of the resamples whose graph has the edge.
    direction_support_ : DataFrame [d, d]
        The same among resamples that connect the two variables at all; NaN where none does.
    path_support_ : DataFrame [d, d]
        Share of the resamples in which the row variable causes the column variable, directly or not.
    target_support_ : DataFrame [n_regimes, d]
        Share of the resamples in which the matched regime has the target; regimes are those of ``estimator_``.
    regime_stability_ : DataFrame
        For every regime, the mean overlap with its match and the share of resamples with an overlap above one half.
    n_regimes_ : Series
        How many resamples found how many regimes.
    adjacency_ : DataFrame [d, d]
        Consensus graph, a DAG: edges above the threshold, best supported first, without those that would close a cycle.
    edges_ : DataFrame
        Every edge that occurred: support, direction, the probability by the fit to all rows, and which graphs have it.
    resamples_ : list of Resample
    failures_ : list of str
        Messages of resamples that could not be fitted.

    Examples
    --------
    >>> from latentdo import BootstrapDAG, LatentInterventionDAG, simulate
    >>> data = simulate(n_variables=3, n_samples=600, random_state=1)
    >>> boot = BootstrapDAG(LatentInterventionDAG(max_regimes=5, n_init=1), n_resamples=2).fit(data.X)
    >>> bool((boot.edge_support_ + boot.edge_support_.T).to_numpy().max() <= 1.0)
    True
    """

    def __init__(
        self,
        estimator: LatentInterventionDAG | None = None,
        n_resamples: int = 50,
        *,
        resample: str = "half",
        threshold: float = 0.5,
        warm_start: bool = False,
        checkpoint: str | Path | None = None,
        checkpoint_seconds: float = 60.0,
        n_jobs: int = 1,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_resamples = n_resamples
        self.resample = resample
        self.threshold = threshold
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002  (scikit-learn's convention)
        *,
        regimes: Any = None,
        targets: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit all rows, then the resamples that are still missing.

        Parameters
        ----------
        X : table or array [n, d]
            Rows in the user's units.
        y
            Ignored.
        regimes, targets
            See :meth:`LatentInterventionDAG.fit`. Rows are drawn within their labels.
        progress : callable, optional
            Called with a dict after every fit.
        """
        self._check_arguments()
        base = LatentInterventionDAG() if self.estimator is None else self.estimator
        parameters = base.get_params()
        dataset = Dataset.from_table(
            X,
            regimes=regimes,
            targets=targets,
            observational=parameters["observational"],
            transform=parameters["transform"],
            missing=parameters["missing"],
        )
        fingerprint = self._fingerprint(base, dataset)
        if not self._continues(fingerprint):
            self.fingerprint_ = fingerprint
            self.resamples_: list[Resample] = []
            self.failures_: list[str] = []
            self.estimator_ = clone(base).fit(X, regimes=regimes, targets=targets, progress=progress)
            if self.estimator_.result_.status == "interrupted":  # the user wants no resamples either
                raise KeyboardInterrupt
            _tell(progress, "all rows", self.estimator_.result_)
        self._draw(base, dataset, targets, progress)
        if not self.resamples_:
            reason = self.failures_[-1] if self.failures_ else "interrupted before the first one ended"
            raise ValueError(f"None of the resamples could be fitted; the last reason: {reason}")
        self._summarise()
        return self

    def save(self, path: str | Path) -> None:
        """Write fit and resamples to one file (safetensors and JSON, no pickle)."""
        check_is_fitted(self, "estimator_")
        d, k = len(self.estimator_.result_.columns), self.estimator_.n_regimes_
        kept = self.resamples_
        arrays: dict[str, NDArray[Any]] = {
            "fit": _as_bytes(self.estimator_.result_),
            "number": np.array([r.number for r in kept], dtype=np.int64),
            "adjacency": np.array([r.adjacency for r in kept], dtype=np.int8).reshape(-1, d, d),
            "targets": np.array([r.targets for r in kept], dtype=np.int8).reshape(-1, k, d),
            "overlap": np.array([r.overlap for r in kept], dtype=np.float64).reshape(-1, k),
            "n_regimes": np.array([r.n_regimes for r in kept], dtype=np.int64),
            "evidence": np.array([r.evidence for r in kept], dtype=np.float64),
        }
        own = {name: value for name, value in self.get_params(deep=False).items() if name != "estimator"}
        state = {
            "parameters": {name: str(v) if isinstance(v, Path) else v for name, v in own.items()},
            "fingerprint": self.fingerprint_,
            "failures": self.failures_,
        }
        save_arrays(path, _ENTRY, arrays, state)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Restore what :meth:`save` wrote; with ``warm_start=True`` a fit to the same rows goes on from there."""
        state, arrays = load_arrays(path, _ENTRY)
        try:
            with tempfile.TemporaryDirectory() as folder:
                inner = Path(folder) / "model.safetensors"
                inner.write_bytes(arrays["fit"].tobytes())
                fit = LatentInterventionDAG.load(inner)
            d, k = len(fit.result_.columns), fit.n_regimes_
            count = len(arrays["number"])
            shapes = {
                "adjacency": (d, d),
                "targets": (k, d),
                "overlap": (k,),
                "n_regimes": (),
                "evidence": (),
            }
            for name, shape in shapes.items():
                if arrays[name].shape != (count, *shape):
                    raise ResultFileError(f"it has {name} of shape {arrays[name].shape}")
            known = {name: v for name, v in state["parameters"].items() if name in cls._get_param_names()}
            loaded = cls(**known)
            loaded.estimator = LatentInterventionDAG(**fit.get_params())
            loaded.estimator_ = fit
            loaded.fingerprint_ = {str(name): str(v) for name, v in state["fingerprint"].items()}
            loaded.failures_ = [str(message) for message in state["failures"]]
        except (KeyError, TypeError, AttributeError, ResultFileError) as error:
            raise ResultFileError(f"{str(path)!r} does not hold a consistent bootstrap ({error}).") from error
        parts = zip(*(arrays[name] for name in ("number", *shapes)), strict=True)
        loaded.resamples_ = [
            Resample(int(number), adjacency, targets, overlap, int(n_regimes), float(evidence))
            for number, adjacency, targets, overlap, n_regimes, evidence in parts
        ]
        if loaded.resamples_:
            loaded._summarise()
        return loaded

    def _check_arguments(self) -> None:
        n = self.n_resamples
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"n_resamples={n!r} must be a whole number of at least 1")
        if self.resample not in KINDS:
            raise ValueError(
                f"resample={self.resample!r} is unknown; use one of {', '.join(map(repr, KINDS))}"
            )
        if not 0.0 <= self.threshold < 1.0:
            raise ValueError(f"threshold={self.threshold!r} must lie in [0, 1)")

    def _fingerprint(self, base: LatentInterventionDAG, dataset: Dataset) -> dict[str, str]:
        """What must be the same for resamples of two calls to belong together."""
        parameters = {k: v for k, v in base.get_params().items() if k not in _NOT_THE_RESULT}
        known = [None if part is None else part.tolist() for part in (dataset.regimes, dataset.targets)]
        return {
            "rows": dataset.content_hash(),
            "labels or targets": _digest([known, [str(label) for label in dataset.regime_labels]]),
            "estimator": _digest(parameters),
            "resample": self.resample,
            "random_state": str(self.random_state),
        }

    def _continues(self, fingerprint: Mapping[str, str]) -> bool:
        """Whether earlier resamples are kept; those of a checkpoint are taken over."""
        kept: BootstrapDAG | None = self if self.warm_start and hasattr(self, "resamples_") else None
        if self.checkpoint is not None and Path(self.checkpoint).is_file():
            stored = type(self).load(self.checkpoint)
            if kept is None or len(stored.resamples_) > len(kept.resamples_):
                kept = stored
        if kept is None:
            return False
        other = [name for name, value in fingerprint.items() if kept.fingerprint_.get(name) != value]
        if other:
            where = f"The checkpoint {str(self.checkpoint)!r}" if kept is not self else "This bootstrap"
            remedy = "give another checkpoint" if kept is not self else "pass warm_start=False to start anew"
            raise ValueError(f"{where} was made with other {' and '.join(other)}; {remedy}.")
        for name in ("fingerprint_", "resamples_", "failures_", "estimator_"):
            setattr(self, name, getattr(kept, name))
        return True

    def _draw(
        self, base: LatentInterventionDAG, dataset: Dataset, targets: Any, progress: Progress | None
    ) -> None:
        """Fit the resamples that are missing, keeping each as soon as it is there."""
        first = len(self.resamples_) + len(self.failures_)
        template = clone(base).set_params(checkpoint=None)  # that of the fit to all rows
        if self.n_jobs not in (None, 1):
            template.set_params(n_jobs=1)
        job = delayed(_fit_resample)
        jobs = (
            job(template, dataset, targets, self.estimator_.result_, self.resample, self.random_state, b)
            for b in range(first, self.n_resamples)
        )
        saved = time.perf_counter()
        try:
            for outcome in Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs):
                if isinstance(outcome, str):
                    self.failures_.append(outcome)
                    continue
                self.resamples_.append(outcome)
                step = {"step": f"resample {outcome.number + 1} of {self.n_resamples}"}
                counts = {"regimes": outcome.n_regimes, "edges": int(outcome.adjacency.sum())}
                if progress is not None:
                    progress({**step, "evidence": outcome.evidence, **counts})
                if self.checkpoint is not None and time.perf_counter() - saved > self.checkpoint_seconds:
                    self.save(self.checkpoint)
                    saved = time.perf_counter()
        except KeyboardInterrupt:
            if not self.resamples_:
                raise
            message = f"interrupted after {len(self.resamples_)} of {self.n_resamples} resamples"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        if self.checkpoint is not None:
            self.save(self.checkpoint)
        if self.failures_:
            message = (
                f"{len(self.failures_)} of {self.n_resamples} resamples could not be fitted and are left out; the "
                f"last reason: {self.failures_[-1]}"
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=3)

    def _summarise(self) -> None:
        """Counts over the resamples, as tables."""
        result = self.estimator_.result_
        names = list(result.columns)

        def square(values: NDArray[Any]) -> pd.DataFrame:
            return pd.DataFrame(values, index=names, columns=names)

        graphs = np.array([r.adjacency for r in self.resamples_], dtype=np.float64)
        support = graphs.mean(axis=0)
        connected = support + support.T
        with np.errstate(invalid="ignore"):
            direction = np.where(connected > 0, support / connected, np.nan)
        overlap = np.array([r.overlap for r in self.resamples_])
        regimes = list(result.regime_names)
        consensus = consensus_dag(support, self.threshold)
        self.edge_support_ = square(support)
        self.direction_support_ = square(direction)
        self.path_support_ = square(np.mean([reachability(r.adjacency) for r in self.resamples_], axis=0))
        self.target_support_ = pd.DataFrame(
            np.mean([r.targets for r in self.resamples_], axis=0), index=regimes, columns=names
        )
        self.regime_stability_ = pd.DataFrame(
            {"stability": overlap.mean(axis=0), "found": (overlap > 0.5).mean(axis=0)}, index=regimes
        )
        counts = pd.Series([r.n_regimes for r in self.resamples_], name="resamples")
        self.n_regimes_ = counts.value_counts().sort_index().rename_axis("regimes")
        self.adjacency_ = square(consensus)
        single = result.model.topology.adjacency
        records = [
            {
                "cause": names[i],
                "effect": names[j],
                "support": support[i, j],
                "direction": direction[i, j],
                "probability": result.edge_probabilities[i, j],
                "best_graph": bool(single[i, j]),
                "consensus": bool(consensus[i, j]),
            }
            for i, j in np.argwhere((support > 0) | (single > 0))
        ]
        columns = ["cause", "effect", "support", "direction", "probability", "best_graph", "consensus"]
        table = pd.DataFrame(records, columns=columns)
        self.edges_ = table.sort_values("support", ascending=False, kind="stable", ignore_index=True)
        self.n_features_in_ = len(names)


def consensus_dag(support: Array, threshold: float = 0.5) -> NDArray[np.int64]:
    """A DAG of well supported edges, ``[d, d]``: best first, leaving out what would close a cycle.

    A majority of acyclic graphs may prefer a cycle (each of its edges is in most of them, all never); its least
    supported edge is then left out.

    Examples
    --------
    >>> import numpy as np
    >>> consensus_dag(np.array([[0.0, 0.9, 0.0], [0.1, 0.0, 0.6], [0.55, 0.0, 0.0]]))
    array([[0, 1, 0],
           [0, 0, 1],
           [0, 0, 0]])
    """
    d = len(support)
    chosen = np.zeros((d, d), dtype=np.int64)
    reach = np.eye(d, dtype=bool)
    order = np.argsort(-support, axis=None, kind="stable")
    for i, j in zip(*np.unravel_index(order, support.shape), strict=True):
        if support[i, j] <= threshold or i == j:
            continue
        if not reach[j, i]:
            chosen[i, j] = 1
            reach |= np.outer(reach[:, i], reach[j])
    return chosen


def match_regimes(
    reference: FitResult, other: FitResult, responsibilities: Array, *, labelled: bool = False
) -> tuple[NDArray[np.int64], Array]:
    """Which regime of another fit is which of the reference.

    Parameters
    ----------
    reference : FitResult
        Gives the regimes, and the responsibilities ``[n, n_regimes]`` of the rows.
    other : FitResult
        A fit to other rows.
    responsibilities : ndarray [n, n_other]
        Its responsibilities for the rows of ``reference``.
    labelled : bool
        Regimes with the same name are the same because the user named them.

    Returns
    -------
    match : ndarray [n_regimes] of int64
        Regime of ``other``, -1 where nothing overlaps. The two reference regimes always match.
    overlap : ndarray [n_regimes]
        Jaccard coefficient of the soft sets of rows; 1 for two regimes without rows.
    """
    own = reference.responsibilities
    sums = own.sum(axis=0)[:, None] + responsibilities.sum(axis=0)[None]
    # min(a, b) = (a + b - |a - b|) / 2, a regime at a time to keep memory in n
    difference = np.stack([np.abs(own[:, [k]] - responsibilities).sum(axis=0) for k in range(own.shape[1])])
    shared = 0.5 * (sums - difference)
    union = np.maximum(sums - shared, 1e-12)
    jaccard = np.where(sums > 1e-9, shared / union, 1.0)
    targets, others = (r.model.topology.targets.astype(np.float64) for r in (reference, other))
    common = targets @ others.T
    size = np.maximum(targets.sum(axis=1)[:, None] + others.sum(axis=1)[None] - common, 1.0)
    score = jaccard + _TARGET_WEIGHT * common / size
    match = np.full(len(targets), -1, dtype=np.int64)
    match[0] = 0
    taken = {0}
    if labelled:
        place = {name: k for k, name in enumerate(other.regime_names)}
        for k, name in enumerate(reference.regime_names[1:], start=1):
            if name in place and place[name] not in taken:
                match[k] = place[name]
                taken.add(place[name])
    rows = np.flatnonzero(match < 0)
    columns = np.array([k for k in range(len(others)) if k not in taken], dtype=np.int64)
    for a, b in zip(*linear_sum_assignment(-score[np.ix_(rows, columns)]), strict=True):
        if shared[rows[a], columns[b]] > 1e-6:
            match[rows[a]] = columns[b]
    overlap = np.where(match >= 0, jaccard[np.arange(len(match)), match], 0.0)
    return match, overlap


def _fit_resample(
    template: LatentInterventionDAG,
    dataset: Dataset,
    targets: Any,
    reference: FitResult,
    kind: str,
    seed: int,
    number: int,
) -> Resample | str:
    """Fit one resample; a message instead if that was impossible. Runs in a worker."""
    rng = np.random.default_rng([seed, number])
    part = dataset.take(_rows(dataset, kind, rng))
    estimator = clone(template).set_params(random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about repeated rows and the like; the fit to all rows has spoken
        try:
            estimator.fit(part.to_frame(), regimes=part.labels(), targets=targets)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            return str(error)
    if estimator.result_.status == "interrupted":  # the solvers answer Ctrl-C with the best state so far
        raise KeyboardInterrupt
    found: FitResult = estimator.result_
    responsibilities = estimator.predict_proba(dataset.to_frame())
    if dataset.regimes is not None:  # what is known of a row is not to be guessed again
        place = [
            found.regime_names.index(label) for label in dataset.regime_labels if label in found.regime_names
        ]
        known = np.flatnonzero(dataset.regimes >= 0)
        if len(place) == len(dataset.regime_labels):
            responsibilities[known] = np.eye(found.n_regimes)[np.array(place)[dataset.regimes[known]]]
    match, overlap = match_regimes(reference, found, responsibilities, labelled=dataset.regimes is not None)
    own = found.model.topology.targets[np.maximum(match, 0)]
    return Resample(
        number=number,
        adjacency=np.asarray(found.model.topology.adjacency, dtype=np.int8),
        targets=np.where(match[:, None] >= 0, own, 0).astype(np.int8),
        overlap=overlap,
        n_regimes=found.n_regimes,
        evidence=found.evidence,
    )


def _rows(dataset: Dataset, kind: str, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows of a resample, drawn within each label so that none is lost."""
    labels = np.zeros(dataset.n_rows, dtype=np.int64) if dataset.regimes is None else dataset.regimes
    drawn = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        if kind == "bootstrap":
            drawn.append(rng.choice(members, len(members), replace=True))
        else:
            drawn.append(rng.choice(members, max(len(members) // 2, 1), replace=False))
    return np.sort(np.concatenate(drawn))


def _as_bytes(result: FitResult) -> NDArray[np.uint8]:
    """A saved result as an array, so that one file holds everything."""
    return np.frombuffer(pack_result(result), dtype=np.uint8)


def _digest(content: Any) -> str:
    def plain(value: Any) -> Any:
        return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)

    return hashlib.sha256(json.dumps(content, default=plain, sort_keys=True).encode()).hexdigest()


def _tell(progress: Progress | None, step: str, result: FitResult) -> None:
    if progress is not None:
        edges = int(result.model.topology.adjacency.sum())
        progress({"step": step, "evidence": result.evidence, "regimes": result.n_regimes, "edges": edges})
