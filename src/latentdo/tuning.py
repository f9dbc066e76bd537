r"""TunedDAG: priors and rates chosen by the log-likelihood of rows that the fit has not seen.

Every trial fits the estimator on a part of the rows with other values of its parameters, and scores the rest. The
trials are kept by Optuna (``pip install "latentdo[tune]"``): in memory, in an SQLite file from which a later call goes
on, or in any storage that Optuna reaches by a URL, where several processes or machines may share the work.

Held-out likelihood is generous about structure: an edge too many costs it next to nothing. So the best trial does not
simply win. Among the trials within one standard error of it (of the paired differences over blocks of held-out rows),
the one with the fewest edges and targets does.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from latentdo.data import Dataset
from latentdo.estimator import LatentInterventionDAG
from latentdo.estimator.arguments import make_request
from latentdo.solvers.search.penalties import Penalties

if TYPE_CHECKING:
    import optuna as optuna_types

__all__ = ["TunedDAG", "default_space", "held_out_log_likelihood"]

Array = NDArray[np.float64]
Space = Mapping[str, Sequence[Any]]
Progress = Callable[[Mapping[str, Any]], None]

_RATES: Final = ("concentration", "learning_rate")
_BLOCKS: Final = 20
_FLOOR: Final = 1e-300  # a label that the model rules out costs 690 nats, not infinity
_IRRELEVANT: Final = (
    "n_jobs",
    "verbose",
    "device",
    "checkpoint",
    "random_state",
)  # do not change what a score means

_SPACES: Final[Mapping[str, Space]] = {
    "search": {"edge_prior": (-10.0, 1.0), "target_prior": (-20.0, 0.0)},
    "gradient": {
        "edge_prior": (-10.0, 1.0),
        "target_prior": (-20.0, 0.0),
        "concentration": (0.5, 50.0, "log"),
        "learning_rate": (1e-3, 3e-2, "log"),
    },
    # the paper counts the priors once a row: its grid is xi in -0.1 .. 0.1 and gamma in -0.1 .. -0.01
    "paper": {
        "edge_prior": (-0.1, 0.1),
        "target_prior": (-0.1, -0.01),
        "concentration": (0.5, 50.0, "log"),
        "learning_rate": (1e-3, 3e-2, "log"),
    },
}


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
        Share of the rows that score. Known regimes are spread proportionally.
    storage : str or Path, optional
        Where trials are kept: a file (SQLite; created if absent), or any storage URL of Optuna. A later fit with the
        same data and settings goes on from there. None: in memory.
    study_name : str
        Name of the study in the storage.
    timeout : float, optional
        Start no further trial after so many seconds.
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
        progress : callable, optional
            Called with a dict after every trial.
        """
        optuna = _optuna()
        if isinstance(self.n_trials, bool) or not isinstance(self.n_trials, int) or self.n_trials < 1:
            raise ValueError(f"n_trials={self.n_trials!r} must be a whole number of at least 1")
        base = LatentInterventionDAG() if self.estimator is None else self.estimator
        task = _Task.build(self, base, X, regimes, targets)
        with _quiet(optuna):
            study = _open_study(optuna, self, task)
            self._run(optuna, study, task, progress)
            finished = [t for t in study.get_trials(deepcopy=False) if t.state.name == "COMPLETE"]
        if not finished:
            errors = [t.user_attrs.get("error", "") for t in study.get_trials(deepcopy=False)]
            last = next((error for error in reversed(errors) if error), "no reason was kept")
            raise ValueError(
                f"None of the trials in study {self.study_name!r} succeeded; the last error: {last}"
            )
        self.study_ = study
        self.trials_ = _choose(finished, list(task.space))
        chosen = self.trials_.loc[self.trials_["chosen"]].iloc[0]
        number = int(chosen["trial"])
        self.best_params_ = dict(next(t for t in finished if t.number == number).params)
        self.best_score_ = float(chosen["held_out"])
        self.best_estimator_: LatentInterventionDAG = clone(base).set_params(**self.best_params_)
        self.best_estimator_.fit(X, regimes=regimes, targets=targets)
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Most probable regime of new rows under the chosen estimator, ``[n]``."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    def predict_proba(self, X: Any) -> Array:
        """Posterior probability of every regime under the chosen estimator, ``[n, n_regimes_]``."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002
        """Mean log-density a row under the chosen estimator, in the user's units."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.score(X)

    def _run(self, optuna: Any, study: optuna_types.Study, task: _Task, progress: Progress | None) -> None:
        """Ask, fit, tell, until the study holds enough trials, whoever ran them."""
        began = time.perf_counter()
        seed = int(check_random_state(self.random_state).randint(2**31))
        while (done := _n_done(study)) < self.n_trials:
            if self.timeout is not None and done and time.perf_counter() - began > self.timeout:
                return
            count = f"trial {done + 1} of {self.n_trials}"
            trial = study.ask()
            # A sampler of its own for every trial: interrupted and resumed studies then take the same steps, and a
            # resumed one does not repeat the first draws.
            study.sampler = optuna.samplers.TPESampler(seed=(seed + 1009 * trial.number) % 2**32)
            values = {name: _suggest(trial, name, choice) for name, choice in task.space.items()}
            try:
                outcome = task.evaluate(values)
            except KeyboardInterrupt:
                trial.set_user_attr("interrupted", True)
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
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


@dataclass(frozen=True, eq=False)
class _Task:
    """What every trial does, and what has to be the same for trials to be comparable."""

    estimator: LatentInterventionDAG
    space: Mapping[str, Sequence[Any]]
    default: Mapping[str, Any]
    train: Dataset
    test: Dataset
    targets: Any
    fingerprint: Mapping[str, str]

    @classmethod
    def build(cls, tuner: TunedDAG, base: LatentInterventionDAG, X: Any, regimes: Any, targets: Any) -> _Task:
        parameters = base.get_params()
        dataset = Dataset.from_table(
            X,
            regimes=regimes,
            targets=targets,
            observational=parameters["observational"],
            transform=parameters["transform"],
            missing=parameters["missing"],
        )
        given = default_space(base, dataset.n_variables) if tuner.space is None else tuner.space
        space = {name: _checked(name, choice, base, dataset.n_variables) for name, choice in given.items()}
        if not space:
            raise ValueError("space is empty; name at least one parameter to vary")
        train, test = dataset.split(1.0 - tuner.validation_fraction, tuner.random_state)
        fixed = {k: v for k, v in parameters.items() if k not in space and k not in _IRRELEVANT}
        parts = {
            "data": (dataset.content_hash(), _digest(dataset.regimes), _digest(dataset.targets)),
            "estimator": sorted(fixed.items()),
            "space": sorted(space.items()),
            "validation_fraction": tuner.validation_fraction,
            "random_state": tuner.random_state,
        }
        fingerprint = {name: _digest(json.dumps(part, default=_plain)) for name, part in parts.items()}
        default = _own_values(base, list(space), dataset.n_variables)
        own = clone(base).set_params(checkpoint=None)  # that of the chosen fit
        return cls(own, space, default, train, test, targets, fingerprint)

    def evaluate(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Fit the training rows and score the others."""
        began = time.perf_counter()
        estimator = clone(self.estimator).set_params(**values)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit to all rows will say it once
            estimator.fit(self.train.to_frame(), regimes=self.train.labels(), targets=self.targets)
        if estimator.result_.status == "interrupted":  # the solvers answer Ctrl-C with the best state so far
            raise KeyboardInterrupt
        scores = held_out_log_likelihood(estimator, self.test.to_frame(), self.test.labels())
        if not np.isfinite(scores.mean()):
            raise ArithmeticError("the held-out log-likelihood is not finite")
        blocks = max(min(_BLOCKS, len(scores) // 5), 1)
        return {
            "held_out": float(scores.mean()),
            "edges": int(estimator.adjacency_.to_numpy().sum()),
            "targets": int(estimator.targets_.to_numpy().sum()),
            "regimes": int(estimator.n_regimes_),
            "seconds": time.perf_counter() - began,
            "blocks": [float(scores[b::blocks].mean()) for b in range(blocks)],
        }


def held_out_log_likelihood(estimator: LatentInterventionDAG, X: Any, regimes: Any = None) -> Array:
    """Log-density of rows that a fitted estimator has not seen, in the user's units, ``[n]``.

    Parameters
    ----------
    estimator : LatentInterventionDAG
        A fitted estimator.
    X : table or array [n, d]
        New rows.
    regimes : sequence of n labels, optional
        Their labels; None where unknown. A row with a label that the estimator knows counts ``log p(x, label)``, any
        other ``log p(x)``.

    Examples
    --------
    >>> import numpy as np
    >>> from latentdo import LatentInterventionDAG
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> estimator = LatentInterventionDAG(max_regimes=1).fit(rows[:200])
    >>> held_out_log_likelihood(estimator, rows[200:]).shape
    (100,)
    """
    scores = estimator.score_samples(X)
    if regimes is None:
        return scores
    position = {name: k for k, name in enumerate(estimator.regime_names_)}
    index = np.array([-1 if label is None else position.get(label, -1) for label in regimes])
    known = np.flatnonzero(index >= 0)
    probability = estimator.predict_proba(X)[known, index[known]]
    scores[known] += np.log(np.maximum(probability, _FLOOR))
    return scores


def default_space(estimator: LatentInterventionDAG, n_variables: int) -> Space:
    """What is varied unless the user says otherwise: what the estimator's solver has of the four.

    A matrix of prior log-odds is the user's knowledge and stays.
    """
    solver = _solver(estimator, n_variables)
    space = dict(_SPACES.get(solver, _SPACES["search"]))
    if np.ndim(estimator.edge_prior if estimator.edge_prior is not None else 0.0):
        del space["edge_prior"]
    return space


def _solver(estimator: LatentInterventionDAG, n_variables: int) -> str:
    return make_request(estimator.get_params(), n_variables).chosen_solver


def _own_values(estimator: LatentInterventionDAG, names: list[str], n_variables: int) -> dict[str, Any]:
    """The estimator's values of some parameters, with numbers where None stands for a default."""
    parameters = estimator.get_params()
    values = {name: parameters[name] for name in names}
    if _solver(estimator, n_variables) == "search":
        penalties = Penalties.build(n_variables, None, None)
        defaults = {"edge_prior": float(penalties.edge_prior.flat[0]), "target_prior": penalties.target_prior}
    else:
        from latentdo.solvers.gradient import GradientConfiguration

        paper = estimator.solver == "paper"
        configuration = GradientConfiguration.paper() if paper else GradientConfiguration()
        defaults = {
            "edge_prior": float(np.asarray(configuration.edge_log_odds).flat[0]),
            "target_prior": configuration.target_log_odds,
            "concentration": configuration.concentration,
            "learning_rate": configuration.learning_rate,
        }
    return {name: defaults.get(name) if value is None else value for name, value in values.items()}


def _checked(
    name: str, choice: Sequence[Any], estimator: LatentInterventionDAG, n_variables: int
) -> Sequence[Any]:
    """A choice of the search space, or what is wrong with it."""
    parameters = estimator.get_params()
    if name not in parameters:
        raise ValueError(f"space names {name!r}, which is not a parameter of {type(estimator).__name__}")
    if name in _RATES and _solver(estimator, n_variables) == "search":
        raise ValueError(f"space names {name!r}, which solver='search' does not have; use solver='gradient'")
    if name == "edge_prior" and np.ndim(parameters[name] if parameters[name] is not None else 0.0):
        raise ValueError(
            "space varies edge_prior, but the estimator has a matrix of them; leave it out of space"
        )
    if isinstance(choice, list) and choice:
        return choice
    numeric = isinstance(choice, tuple) and len(choice) in (2, 3)
    if numeric and (len(choice) == 2 or choice[2] == "log"):
        low, high = choice[:2]
        if all(isinstance(end, int | float) and np.isfinite(end) for end in (low, high)) and low < high:
            if len(choice) == 3 and low <= 0:
                raise ValueError(f"space: {name} is on a log scale, so its lower end {low} must be positive")
            return choice
    raise ValueError(
        f'space: {name}={choice!r} must be (low, high) or (low, high, "log") with low < high, or a list of values'
    )


def _suggest(trial: optuna_types.Trial, name: str, choice: Sequence[Any]) -> Any:
    if isinstance(choice, list):
        return trial.suggest_categorical(name, choice)
    low, high, log = choice[0], choice[1], len(choice) == 3
    if isinstance(low, int) and isinstance(high, int):
        return trial.suggest_int(name, low, high, log=log)
    return trial.suggest_float(name, float(low), float(high), log=log)


def _within(value: Any, choice: Sequence[Any]) -> bool:
    if isinstance(choice, list):
        return value in choice
    return isinstance(value, int | float) and bool(choice[0] <= value <= choice[1])


def _optuna() -> Any:
    try:
        return importlib.import_module("optuna")
    except ImportError as error:
        raise ImportError('Tuning needs optuna; install it with: pip install "latentdo[tune]"') from error


def _open_study(optuna: Any, tuner: TunedDAG, task: _Task) -> optuna_types.Study:
    """Create the study, or go on with it if it was made for the same rows and settings."""
    url = _url(tuner.storage)
    shown = "memory" if url is None else repr(str(tuner.storage))
    try:
        study: optuna_types.Study = optuna.create_study(
            study_name=tuner.study_name, storage=url, direction="maximize", load_if_exists=True
        )
    except ImportError as error:
        raise ImportError(f"The storage {shown} needs a driver: {error}") from error
    except Exception as error:  # whatever SQLAlchemy and the drivers raise
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"The storage {shown} cannot be opened ({reason}); give a file that does not exist yet, one that an "
            "earlier tuning wrote, or a storage URL of Optuna such as mysql://user@host/name."
        ) from error
    before = study.user_attrs.get("latentdo")
    if before is None:
        study.set_user_attr("latentdo", dict(task.fingerprint))
    elif other := [name for name, digest in task.fingerprint.items() if before.get(name) != digest]:
        raise ValueError(
            f"The study {tuner.study_name!r} in {shown} was made with another {' and '.join(other)}; its trials "
            "cannot be compared with new ones. Give another study_name or another storage."
        )
    usable = all(_within(task.default[name], choice) for name, choice in task.space.items())
    kept = [t for t in study.get_trials(deepcopy=False) if t.state.name in ("COMPLETE", "WAITING", "FAIL")]
    if usable and not any(t.user_attrs.get("default") for t in kept):
        study.enqueue_trial(dict(task.default), user_attrs={"default": True})
    return study


def _url(storage: str | Path | None) -> str | None:
    """Optuna's URL of a storage; a plain name is an SQLite file."""
    if storage is None or "://" in str(storage):
        return None if storage is None else str(storage)
    path = Path(storage)
    if path.is_dir():
        raise ValueError(f"storage {str(path)!r} is a folder; give the name of a file, such as tune.db")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(
            f"storage: there is no folder {str(path.absolute().parent)!r}; create it first"
        )
    return f"sqlite:///{path.absolute()}"


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Without Optuna's own log lines; its verbosity is restored."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def _n_done(study: optuna_types.Study) -> int:
    """Trials that count: finished ones, not those of a killed or interrupted process."""
    trials = study.get_trials(deepcopy=False)
    return sum(t.state.is_finished() and not t.user_attrs.get("interrupted") for t in trials)


def _choose(trials: Sequence[optuna_types.trial.FrozenTrial], names: list[str]) -> pd.DataFrame:
    """All trials as a table; the sparsest within one standard error of the best is marked as chosen."""
    best = max(trials, key=lambda t: (t.user_attrs["held_out"], -t.number))
    top = np.asarray(best.user_attrs["blocks"])
    records = []
    for t in sorted(trials, key=lambda t: t.number):
        lag = top - np.asarray(t.user_attrs["blocks"])
        error = float(lag.std(ddof=1) / np.sqrt(len(lag))) if len(lag) > 1 else 0.0
        attributes = {
            key: t.user_attrs[key] for key in ("held_out", "edges", "targets", "regimes", "seconds")
        }
        close = bool(best.user_attrs["held_out"] - t.user_attrs["held_out"] <= error)
        records.append(
            {"trial": t.number, **{n: t.params[n] for n in names}, **attributes, "within_one_error": close}
        )
    table = pd.DataFrame(records)
    near = table[table["within_one_error"]]
    sparse = near.assign(size=near["edges"] + near["targets"], rank=-near["held_out"])
    winner = sparse.sort_values(["size", "rank", "trial"], kind="stable").index[0]
    return table.assign(chosen=table.index == winner)


def _digest(value: Any) -> str:
    content = (
        value.encode() if isinstance(value, str) else b"" if value is None else np.asarray(value).tobytes()
    )
    return hashlib.sha256(content).hexdigest()[:16]


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)
