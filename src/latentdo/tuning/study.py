"""Where trials are kept: Optuna's studies, opened, continued or refused."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentdo.tuning.space import within
from latentdo.tuning.task import Task

if TYPE_CHECKING:
    import optuna as optuna_types

__all__ = ["import_optuna", "n_done", "open_study", "quiet"]


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
    usable = all(within(task.default[name], choice) for name, choice in task.space.items())
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
    return sum(t.state.is_finished() and not t.user_attrs.get("interrupted") for t in trials)
