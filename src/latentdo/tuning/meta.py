"""The meta-estimator: run the trials that are missing, choose, fit all rows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from latentdo.estimator import LatentInterventionDAG
from latentdo.estimator.meta import check_count
from latentdo.solvers.dispatch import Progress
from latentdo.tuning.choice import choose
from latentdo.tuning.space import Space, suggest
from latentdo.tuning.study import give_up, import_optuna, n_done, next_trial, open_study, place_of, quiet
from latentdo.tuning.task import Array, Task

if TYPE_CHECKING:
    import optuna as optuna_types


class TunedDAG(BaseEstimator):  # type: ignore[misc]
    """Choose parameters of an estimator by held-out log-likelihood, then fit it to all rows.

    Parameters
    ----------
    estimator : LatentInterventionDAG, optional
        What is tuned; its other parameters stay as they are. The default estimator if None.
    n_trials : int
        Number of fits, those found in ``storage`` included. The first one uses the estimator's own values.
    space : dict, optional
        What to vary: from the name of a parameter to ``(low, high)``, ``(low, high, "log")``, or a list of values.
        By default the priors of edges (the paper's xi) and targets (gamma) and, for the gradient solvers, the
        concentration (alpha) and the learning rate.
    validation_fraction : float
        Share of the rows (of the groups, if there are any) that score. Known regimes are spread proportionally.
    storage : str or Path, optional
        Where trials are kept: a file (SQLite; created if absent), or any storage URL of Optuna. A later fit with the
        same data and settings goes on from there. None: in memory.
    study_name : str
        Name of the study in the storage.
    timeout : float, optional
        Start no further trial after this many seconds.
    random_state : int
        Source of randomness of split and sampler.

    Attributes
    ----------
    best_estimator_ : LatentInterventionDAG
        Fitted to all rows with the chosen values.
    best_params_ : dict
        The chosen values.
    best_score_ : float
        Held-out log-likelihood a row, in the user's units, of the chosen trial.
    trials_ : DataFrame
        One row a trial: values, held-out log-likelihood, edges, targets, regimes, seconds, whether it lies within one
        standard error of the best, and which one was chosen.
    study_ : optuna.Study

    Examples
    --------
    >>> from latentdo import LatentInterventionDAG, simulate
    >>> data = simulate(n_variables=3, n_samples=400, random_state=1)
    >>> tuned = TunedDAG(LatentInterventionDAG(max_regimes=5, n_init=1), n_trials=2).fit(data.X)
    >>> sorted(tuned.best_params_), len(tuned.trials_)
    (['edge_prior', 'target_prior'], 2)
    """

    def __init__(
        self,
        estimator: LatentInterventionDAG | None = None,
        n_trials: int = 20,
        *,
        space: Space | None = None,
        validation_fraction: float = 0.2,
        storage: str | Path | None = None,
        study_name: str = "latentdo",
        timeout: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_trials = n_trials
        self.space = space
        self.validation_fraction = validation_fraction
        self.storage = storage
        self.study_name = study_name
        self.timeout = timeout
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
        """Run the trials that are still missing, choose, and fit to all rows.

        Parameters
        ----------
        X : table or array [n, d]
            Rows in the user's units.
        y
            Ignored.
        regimes, targets
            See :meth:`LatentInterventionDAG.fit`. Rows with a label are scored together with it.
        groups
            See :meth:`LatentInterventionDAG.fit`. Groups are held out, and scored, whole.
        offset
            See :meth:`LatentInterventionDAG.fit`.
        time, series, batch
            See :meth:`LatentInterventionDAG.fit`. With times, stretches of rows are held out whole.
        sample_weight
            See :meth:`LatentInterventionDAG.fit`. Rows that are held out count by their weights, too.
        progress : callable, optional
            Called with a dict after every trial.
        """
        optuna = import_optuna()
        check_count("n_trials", self.n_trials)
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
        task = Task.build(
            base,
            X,
            known,
            space=self.space,
            validation_fraction=self.validation_fraction,
            random_state=self.random_state,
        )
        with quiet(optuna):
            study = open_study(optuna, self.storage, self.study_name, task)
            self._run(optuna, study, task, progress)
            finished = [t for t in study.get_trials(deepcopy=False) if t.state.name == "COMPLETE"]
        if not finished:
            errors = [t.user_attrs.get("error", "") for t in study.get_trials(deepcopy=False)]
            last = next((error for error in reversed(errors) if error), "no reason was kept")
            raise ValueError(
                f"None of the trials in study {self.study_name!r} succeeded; the last error: {last}"
            )
        self.study_ = study
        self.trials_ = choose(finished, list(task.space))
        chosen = self.trials_.loc[self.trials_["chosen"]].iloc[0]
        number = int(chosen["trial"])
        self.best_params_ = dict(next(t for t in finished if place_of(t) == number).params)
        self.best_score_ = float(chosen["held_out"])
        self.best_estimator_: LatentInterventionDAG = clone(base).set_params(**self.best_params_)
        self.best_estimator_.fit(X, **known)
        return self

    def predict(self, X: Any, **where: Any) -> NDArray[np.int64]:
        """Most probable regime of new rows under the chosen estimator, ``[n]``; ``where`` as for its ``predict``."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X, **where)

    def predict_proba(self, X: Any, **where: Any) -> Array:
        """Posterior probability of every regime under the chosen estimator, ``[n, n_regimes_]``."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X, **where)

    def score(self, X: Any, y: Any = None, **where: Any) -> float:  # noqa: ARG002
        """Mean log-density a row under the chosen estimator, in the user's units."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.score(X, **where)

    def _run(self, optuna: Any, study: optuna_types.Study, task: Task, progress: Progress | None) -> None:
        """Ask, fit, tell, until the study holds enough trials, whoever ran them."""
        began = time.perf_counter()
        seed = int(check_random_state(self.random_state).randint(2**31))
        while (done := n_done(study)) < self.n_trials:
            if self.timeout is not None and done and time.perf_counter() - began > self.timeout:
                return
            count = f"trial {done + 1} of {self.n_trials}"
            trial = next_trial(optuna, study, task, seed)
            values = {name: suggest(trial, name, choice) for name, choice in task.space.items()}
            try:
                outcome = task.evaluate(values)
            except KeyboardInterrupt:
                give_up(optuna, study, trial)
                raise
            except (ValueError, ArithmeticError, RuntimeError, np.linalg.LinAlgError) as error:
                trial.set_user_attr("error", str(error)[:500])
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
                entry: dict[str, Any] = {"step": f"{count} failed: {error}"}
            else:
                for name, value in outcome.items():
                    trial.set_user_attr(name, value)
                study.tell(trial, outcome["held_out"])
                entry = {"step": count, "evidence": outcome["held_out"], **outcome}
            if progress is not None:
                progress(entry | values)
