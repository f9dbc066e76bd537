"""The meta-estimator: fit all rows, fit the resamples that are missing, count."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from latentdo.bootstrap import storage
from latentdo.bootstrap.effects import resampled_effects
from latentdo.bootstrap.resample import KINDS, Resample, fit_resample
from latentdo.bootstrap.summary import summarise
from latentdo.data import ROWS, Dataset
from latentdo.estimator import LatentInterventionDAG
from latentdo.estimator.meta import check_count, plain, read_rows
from latentdo.files import CHECKPOINT_SECONDS, Keeper, check_seconds, check_target
from latentdo.notices import warn
from latentdo.result import FitResult
from latentdo.solvers.dispatch import Progress

# arguments that do not decide what is found
_NOT_THE_RESULT: Final = ("n_jobs", "verbose", "device", "checkpoint", "checkpoint_seconds")


class BootstrapDAG(BaseEstimator):  # type: ignore[misc]
    """Fit an estimator to resamples of the rows, and count what returns.

    Parameters
    ----------
    estimator : LatentInterventionDAG, optional
        What is fitted; the default estimator if None.
    n_resamples : int
        Number of resamples. The standard error of a support near one half is ``0.5 / sqrt(n_resamples)``.
    resample : {"half", "bootstrap"}
        Half of the rows (of the groups, if there are any), drawn without replacement; or as many as there are, drawn
        with it. To first order both vary as
        much as the estimate itself, but the latter repeats rows, which look like very narrow regimes: where regimes are
        hidden, it may find too many of them. Halves lose regimes of few rows instead. Use "bootstrap" where all rows
        are labelled, where regimes are small, or with ``max_regimes=1``.
    threshold : float
        Edges enter the consensus graph if their support is larger.
    warm_start : bool
        Keep the resamples of an earlier ``fit`` to the same rows, and add those that are missing.
    checkpoint : str or Path, optional
        File to which finished resamples are written now and then, and from which a later fit to the same rows goes on.
    checkpoint_seconds : float
        Longest time between two writes, which come every few seconds at first; 0 for one after every resample.
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
        Consensus graph, a DAG: edges above the threshold, best supported first, without those that would close a cycle
        and those which the fit to all rows gives a probability below 1 %.
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
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
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
        groups: Any = None,
        time: Any = None,
        series: Any = None,
        batch: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
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
        groups
            See :meth:`LatentInterventionDAG.fit`. Groups are drawn whole.
        offset
            See :meth:`LatentInterventionDAG.fit`.
        time, series, batch
            See :meth:`LatentInterventionDAG.fit`. With times, stretches of rows are drawn whole.
        sample_weight
            See :meth:`LatentInterventionDAG.fit`. Rows are drawn with their weights, whatever these are.
        progress : callable, optional
            Called with a dict after every fit.
        """
        self._check_arguments()
        base = LatentInterventionDAG() if self.estimator is None else self.estimator
        known = {
            "regimes": regimes,
            "targets": targets,
            "groups": groups,
            "time": time,
            "series": series,
            "batch": batch,
            "sample_weight": sample_weight,
            "offset": offset,
        }
        dataset = read_rows(base, X, **known)
        fingerprint = self._fingerprint(base, dataset)
        if not self._continues(fingerprint):
            self.fingerprint_ = fingerprint
            self.resamples_: list[Resample] = []
            self.failures_: list[str] = []
            self.estimator_ = clone(base).fit(X, **known, progress=progress)
            if self.estimator_.result_.status == "interrupted":  # the user wants no resamples either
                raise KeyboardInterrupt
            _tell(progress, "all rows", self.estimator_.result_)
        self._draw(base, dataset, targets, progress)
        if not self.resamples_:
            reason = self.failures_[-1] if self.failures_ else "interrupted before the first one ended"
            raise ValueError(f"None of the resamples could be fitted; the last reason: {reason}")
        self._summarise()
        return self

    def effect(
        self,
        cause: str,
        on: str | Sequence[str] | None = None,
        *,
        do: tuple[Any, Any] | None = None,
        shift: float | None = None,
        regime: Hashable = 0,
        level: float = 0.9,
        statistic: str = "mean",
        n: int = 4000,
        random_state: int = 0,
    ) -> pd.DataFrame:
        """Total effect of changing one variable on others, with intervals over the resamples.

        Unlike the intervals of :meth:`LatentInterventionDAG.effect`, which hold given the graph and exist for linear
        mechanisms only, these also take graph and regimes as uncertain, and exist for every family of densities. They
        need enough resamples: with 20, an interval of 90 % is nearly the range.

        Parameters
        ----------
        cause, on, do, shift, regime, level, statistic, n, random_state
            See :meth:`LatentInterventionDAG.effect`; regimes are those of ``estimator_``.

        Returns
        -------
        DataFrame
            One row per variable. ``change`` is by the fit to all rows, ``low`` and ``high`` are quantiles over the
            resamples, zero included where they see no path; ``support`` is the share that see one, and ``resamples``
            how many have the regime at all.
        """
        check_is_fitted(self, "edges_")
        result = self.estimator_.result_
        contrast = self.estimator_._contrast(cause, on, do, shift, regime, level, statistic, n, random_state)
        return resampled_effects(result, self.resamples_, contrast, seed=random_state)

    def save(self, path: str | Path) -> None:
        """Write fit and resamples to one file (safetensors and JSON, no pickle)."""
        check_is_fitted(self, "estimator_")
        own = {name: value for name, value in self.get_params(deep=False).items() if name != "estimator"}
        storage.write(
            path, storage.Stored(self.estimator_, self.resamples_, own, self.fingerprint_, self.failures_)
        )

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Restore what :meth:`save` wrote; with ``warm_start=True`` a fit to the same rows goes on from there."""
        stored = storage.read(path)
        loaded = cls(**{name: v for name, v in stored.parameters.items() if name in cls._get_param_names()})
        loaded.estimator = LatentInterventionDAG(**stored.fit.get_params())
        loaded.estimator_ = stored.fit
        loaded.fingerprint_ = dict(stored.fingerprint)
        loaded.resamples_, loaded.failures_ = stored.resamples, stored.failures
        if loaded.resamples_:
            loaded._summarise()
        return loaded

    def _check_arguments(self) -> None:
        check_count("n_resamples", self.n_resamples)
        if self.resample not in KINDS:
            raise ValueError(
                f"resample={self.resample!r} is unknown; use one of {', '.join(map(repr, KINDS))}"
            )
        if not 0.0 <= self.threshold < 1.0:
            raise ValueError(f"threshold={self.threshold!r} must lie in [0, 1)")
        check_seconds(self.checkpoint_seconds)
        if self.checkpoint is not None:
            check_target(Path(self.checkpoint))

    def _fingerprint(self, base: LatentInterventionDAG, dataset: Dataset) -> dict[str, str]:
        """What must be the same for resamples of two calls to belong together."""
        parameters = {k: v for k, v in base.get_params().items() if k not in _NOT_THE_RESULT}
        known = [None if part is None else part.tolist() for part in (dataset.regimes, dataset.targets)]
        return {
            "rows": dataset.content_hash(),
            "labels or targets": _digest([known, [str(label) for label in dataset.regime_labels]]),
            **({} if dataset.groups is None else {"groups": _digest(dataset.groups.tolist())}),
            **{
                name: _digest(held.tolist())
                for name in ROWS
                if (held := getattr(dataset.where, name)) is not None
            },
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
        names = dict.fromkeys([*fingerprint, *kept.fingerprint_])  # groups may be in one of them only
        other = [name for name in names if kept.fingerprint_.get(name) != fingerprint.get(name)]
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
        # The checkpoint is that of the fit to all rows; its family of densities holds for the resamples too.
        template = clone(base).set_params(checkpoint=None, density=self.estimator_.result_.density)
        if self.n_jobs not in (None, 1):
            template.set_params(n_jobs=1)
        job = delayed(fit_resample)
        keeper = Keeper(self.checkpoint, self.save, self.checkpoint_seconds)
        keeper.keep()  # the fit to all rows
        jobs = (
            job(template, dataset, targets, self.estimator_.result_, self.resample, self.random_state, b)
            for b in range(first, self.n_resamples)
        )
        try:
            for outcome in Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs):
                if isinstance(outcome, str):
                    self.failures_.append(outcome)
                else:
                    self.resamples_.append(outcome)
                keeper.step()
                if progress is not None and not isinstance(outcome, str):
                    step = {"step": f"resample {outcome.number + 1} of {self.n_resamples}"}
                    counts = {"regimes": outcome.n_regimes, "edges": int(outcome.adjacency.sum())}
                    progress({**step, "evidence": outcome.evidence, **counts})
        except KeyboardInterrupt:
            if not self.resamples_:
                raise
            message = f"interrupted after {len(self.resamples_)} of {self.n_resamples} resamples"
            warn(message, ConvergenceWarning, stacklevel=3)
        keeper.keep()
        if self.failures_:
            message = (
                f"{len(self.failures_)} of {self.n_resamples} resamples could not be fitted and are left out; the "
                f"last reason: {self.failures_[-1]}"
            )
            warn(message, ConvergenceWarning, stacklevel=3)

    def _summarise(self) -> None:
        """Show counts over the resamples as attributes."""
        tables = summarise(self.estimator_.result_, self.resamples_, self.threshold)
        self.edge_support_ = tables.edge_support
        self.direction_support_ = tables.direction_support
        self.path_support_ = tables.path_support
        self.target_support_ = tables.target_support
        self.regime_stability_ = tables.regime_stability
        self.n_regimes_ = tables.n_regimes
        self.adjacency_ = tables.adjacency
        self.edges_ = tables.edges
        self.n_features_in_ = len(self.adjacency_)


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, default=plain, sort_keys=True).encode()).hexdigest()


def _tell(progress: Progress | None, step: str, result: FitResult) -> None:
    if progress is not None:
        edges = int(result.model.topology.adjacency.sum())
        progress({"step": step, "evidence": result.evidence, "regimes": result.n_regimes, "edges": edges})
