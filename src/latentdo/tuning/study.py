"""Where trials are kept: Optuna's studies, opened, continued or refused."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from latentdo.files import Process
from latentdo.tuning.space import within
from latentdo.tuning.task import Task

if TYPE_CHECKING:
    import optuna as optuna_types


def import_optuna() -> Any:
    """The optional package, or how to get it."""
    try:
        return importlib.import_module("optuna")
    except ImportError as error:
        raise ImportError('Tuning needs optuna; install it with: pip install "latentdo[tune]"') from error


def open_study(optuna: Any, storage: str | Path | None, study_name: str, task: Task) -> optuna_types.Study:
    """Create the study, or go on with it if it was made for the same rows and settings."""
    url = _url(storage)
    shown = "memory" if url is None else repr(str(storage))
    try:
        study: optuna_types.Study = optuna.create_study(
            study_name=study_name, storage=url, direction="maximize", load_if_exists=True
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
            f"The study {study_name!r} in {shown} was made with another {' and '.join(other)}; its trials "
            "cannot be compared with new ones. Give another study_name or another storage."
        )
    return study


def next_trial(optuna: Any, study: optuna_types.Study, task: Task, seed: int) -> optuna_types.Trial:
    """The next trial of a study, in whichever process: one that was interrupted comes again, with the same values.

    Every trial has a place in the order of an undisturbed run. Its sampler depends on nothing but that place and the
    trials that are complete, so interrupted and resumed studies take the same steps.
    """
    _give_up_dead(optuna, study)
    while True:
        trials = study.get_trials(deepcopy=False)
        waiting = next((t for t in trials if t.state.name == "WAITING"), None)
        place = _first_free(trials) if waiting is None else place_of(waiting)
        # set before asking: samplers choose several values at once, and do so when asked
        study.sampler = optuna.samplers.TPESampler(seed=(seed + 1009 * place) % 2**32)
        if waiting is None:
            # with place and owner from the beginning, so that no kill can leave a trial without
            owned = {"place": place, "process": Process.current().tag}
            study.enqueue_trial(_known_values(trials, place, task), user_attrs=owned)
        trial = study.ask()
        rivals = (t for t in study.get_trials(deepcopy=False) if t.number < trial.number and _counts(t))
        if place_of(trial) == place and all(place_of(t) != place for t in rivals):
            trial.set_user_attr("process", Process.current().tag)
            return trial
        give_up(optuna, study, trial)  # another machine was faster


def give_up(optuna: Any, study: optuna_types.Study, trial: Any) -> None:
    """Call a trial interrupted: it does not count, and its place is free again."""
    study._storage.set_trial_user_attr(trial._trial_id, "interrupted", True)
    study.tell(trial.number, state=optuna.trial.TrialState.FAIL)


def place_of(trial: Any) -> int:
    """Place of a trial in the order of an undisturbed run."""
    return int(trial.user_attrs.get("place", trial.number))


def _counts(trial: optuna_types.trial.FrozenTrial) -> bool:
    return not trial.user_attrs.get("interrupted")


def _first_free(trials: Sequence[optuna_types.trial.FrozenTrial]) -> int:
    taken = {place_of(t) for t in trials if _counts(t)}
    return next(place for place in range(len(taken) + 1) if place not in taken)


def _known_values(trials: Sequence[optuna_types.trial.FrozenTrial], place: int, task: Task) -> dict[str, Any]:
    """Values that a trial must have: those it had before it was interrupted; the estimator's own for the first one."""
    for trial in reversed(trials):
        # values that were chosen only in part come again from the sampler, which needs to choose them in order
        if not _counts(trial) and place_of(trial) == place and trial.params.keys() == task.space.keys():
            return dict(trial.params)
    usable = all(within(task.default[name], choice) for name, choice in task.space.items())
    return dict(task.default) if place == 0 and usable else {}


def _give_up_dead(optuna: Any, study: optuna_types.Study) -> None:
    """Call trials interrupted whose process has died; those of other machines may still run."""
    for trial in study.get_trials(deepcopy=False):
        if trial.state.name == "RUNNING":
            process = Process.parse(str(trial.user_attrs.get("process")))
            if process is not None and not process.may_run():
                give_up(optuna, study, trial)


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
    return _sqlite_url(str(path.absolute()))


def _sqlite_url(path: str) -> str:
    """The URL of an SQLite file of any name: Optuna fills in braces, SQLAlchemy reads the rest."""
    from sqlalchemy import make_url

    for written in (path, quote(path)):
        url = f"sqlite:///{written}"
        if make_url(url).database == path:
            return url.replace("{", "{{").replace("}", "}}")
    raise ValueError(f"storage: {path!r} has characters that SQLAlchemy cannot read; choose another name")


@contextmanager
def quiet(optuna: Any) -> Iterator[None]:
    """Without Optuna's own log lines; its verbosity is restored."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def n_done(study: optuna_types.Study) -> int:
    """Trials that count: finished ones, not those of a killed or interrupted process."""
    trials = study.get_trials(deepcopy=False)
    return sum(t.state.is_finished() and _counts(t) for t in trials)
