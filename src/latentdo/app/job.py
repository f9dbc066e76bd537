"""A fit in a process of its own: it can be watched, stopped with what it has, or given up, and the page stays alive.

Table, arguments, progress and results pass through a temporary folder; nothing is pickled. ``python -m
latentdo.app.job FOLDER`` is the other side.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings
import weakref
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from latentdo.app import start
from latentdo.bootstrap import BootstrapDAG, Progress
from latentdo.diagnosis import Diagnosis
from latentdo.estimator import LatentInterventionDAG
from latentdo.outputs import json_text, write_outputs

State = Literal["running", "done", "failed"]

_TABLE, _TASK, _PROGRESS, _STOP, _ERROR, _RESULTS = (
    "table.npz",
    "task.json",
    "progress.jsonl",
    "stop",
    "error.txt",
    "results",
)
_CODES_OF_FAILURE: Final = (ValueError, TypeError, ImportError, MemoryError, OSError)


class Job:
    """A fit that runs elsewhere.

    The folder and a fit that still runs go when the job is no longer needed: when a user closes the page, or the
    server ends.

    Parameters
    ----------
    X : DataFrame [n, d]
        Rows to fit; the index numbers them.
    arguments : mapping
        Constructor arguments of :class:`~latentdo.LatentInterventionDAG`, as JSON can hold them.
    regimes : sequence of n labels, optional
        What is known of the regimes; None where unknown.
    groups : sequence of n labels, optional
        Which rows share their regime; None for rows on their own.
    where : mapping, optional
        ``time``, ``series``, ``batch``, ``sample_weight`` and ``offset`` of the rows, n values each.
    n_resamples : int
        Resamples of a bootstrap after the fit; 0 for none.
    diagnose : bool
        Whether to simulate from the fit, to say what data of this size can show.
    """

    def __init__(
        self,
        X: pd.DataFrame,
        arguments: Mapping[str, Any],
        regimes: Sequence[str | None] | None = None,
        groups: Sequence[str | None] | None = None,
        *,
        where: Mapping[str, Sequence[Any]] | None = None,
        n_resamples: int = 0,
        diagnose: bool = False,
    ) -> None:
        self._holder = tempfile.TemporaryDirectory(prefix="latentdo-app-", ignore_cleanup_errors=True)
        self.folder = Path(self._holder.name)
        values, levels = _as_numbers(X)
        np.savez(self.folder / _TABLE, values=values, rows=np.asarray(X.index, dtype=np.int64))
        task = {
            "columns": list(X.columns),
            "levels": levels,
            "arguments": dict(arguments),
            "regimes": regimes,
            "groups": groups,
            "where": {name: list(values) for name, values in (where or {}).items()},
            "n_resamples": n_resamples,
            "diagnose": diagnose,
        }
        (self.folder / _TASK).write_text(json.dumps(task), encoding="utf-8")
        self._log = (self.folder / "log.txt").open("wb")
        self._process = start(
            "latentdo.app.job",
            str(self.folder),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in the server's terminal ends the server, which then ends this
        )
        self.gave_up = False
        self._finalizer = weakref.finalize(self, _end, self._process, self._log, self._holder)

    @property
    def state(self) -> State:
        """Whether the fit still runs, has results, or has none."""
        if self._process.poll() is None:
            return "running"
        return "done" if (self.results / "result.json").is_file() else "failed"

    @property
    def results(self) -> Path:
        """The folder that :func:`latentdo.outputs.write_outputs` wrote."""
        return self.folder / _RESULTS

    def progress(self) -> list[dict[str, Any]]:
        """What the solver has said so far, one entry per step."""
        try:
            lines = (self.folder / _PROGRESS).read_text(encoding="utf-8").split("\n")[:-1]
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines if line]

    def message(self) -> str:
        """Why there are no results."""
        if self.gave_up:
            return "The fit was given up; there is no result."
        try:
            return (self.folder / _ERROR).read_text(encoding="utf-8")
        except FileNotFoundError:
            code = self._process.poll()
            reason = (
                "It was ended from outside, perhaps because the machine ran out of memory; try fewer columns."
            )
            tail = (self.folder / "log.txt").read_text(encoding="utf-8", errors="replace")[-600:]
            return f"The fit ended without a result (code {code}). {reason if code and code < 0 else tail}"

    def stop(self) -> None:
        """Ask the solver to end with the best it has; it needs a moment to write that down."""
        if os.name == "posix":
            self._process.send_signal(signal.SIGINT)
        else:  # the solver looks for this after every step
            (self.folder / _STOP).touch()

    def give_up(self) -> None:
        """End at once, without a result."""
        self.gave_up = True
        self._process.kill()
        self._process.wait()

    def archive(self) -> bytes:
        """All files of the results in one zip file."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(self.results.iterdir()):
                archive.write(path, f"latentdo-results/{path.name}")
        return buffer.getvalue()


def _end(
    process: subprocess.Popen[bytes], log: io.BufferedWriter, folder: tempfile.TemporaryDirectory[str]
) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    log.close()
    folder.cleanup()


def work(folder: Path) -> int:
    """Fit what lies in the folder, and write results or the reason why there are none."""
    if os.name == "posix":  # a server in the background may have passed on that interrupts are ignored
        signal.signal(signal.SIGINT, signal.default_int_handler)
    parent = os.getppid()
    task = json.loads((folder / _TASK).read_text(encoding="utf-8"))
    with np.load(folder / _TABLE, allow_pickle=False) as table:
        X = _with_levels(table["values"], table["rows"], task)
    try:
        with (folder / _PROGRESS).open("w", encoding="utf-8") as stream, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the report shows them

            def note(entry: Mapping[str, Any]) -> None:
                stream.write(" ".join(json_text(entry).split()) + "\n")
                stream.flush()
                if os.getppid() != parent or (folder / _STOP).exists():
                    raise KeyboardInterrupt  # the server is gone, or the user has seen enough

            estimator, bootstrap, diagnosis = _compute(X, task, note)
        if os.name == "posix":  # a second click must not spoil what the first one saved
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        write_outputs(estimator.result_, folder / _RESULTS, X=X, bootstrap=bootstrap, diagnosis=diagnosis)
    except KeyboardInterrupt:
        (folder / _ERROR).write_text("The fit was stopped before it had a result.", encoding="utf-8")
        return 130
    except _CODES_OF_FAILURE as error:
        (folder / _ERROR).write_text(str(error) or type(error).__name__, encoding="utf-8")
        return 1
    return 0


def _compute(
    X: pd.DataFrame, task: Mapping[str, Any], note: Progress
) -> tuple[LatentInterventionDAG, BootstrapDAG | None, Diagnosis | None]:
    """The fit and what tests it; once stopped, whatever is there by then."""
    estimator = LatentInterventionDAG(**task["arguments"])
    boot = BootstrapDAG(estimator, task["n_resamples"]) if task["n_resamples"] else None
    try:
        if boot is None:
            estimator.fit(X, regimes=task["regimes"], groups=task["groups"], **task["where"], progress=note)
        else:
            boot.fit(X, regimes=task["regimes"], groups=task["groups"], **task["where"], progress=note)
            estimator = boot.estimator_
    except KeyboardInterrupt:
        if boot is None or not hasattr(boot, "estimator_"):
            raise
        return boot.estimator_, None, None  # stopped before the first resample was done
    diagnosis = None
    if task["diagnose"] and estimator.result_.status != "interrupted":
        try:
            diagnosis = estimator.diagnose(progress=note)
        except KeyboardInterrupt:
            diagnosis = None
    return estimator, boot, diagnosis


def _as_numbers(X: pd.DataFrame) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """A table as numbers, and what they stand for where columns were text or categories: levels by place."""
    columns, levels = [], {}
    for place, (_, column) in enumerate(X.items()):
        if is_numeric_dtype(column):
            columns.append(column.to_numpy(np.float64, na_value=np.nan))
            continue
        named = column if isinstance(column.dtype, pd.CategoricalDtype) else column.astype("category")
        codes = named.cat.codes.to_numpy(np.float64)
        columns.append(np.where(codes < 0, np.nan, codes))
        levels[str(place)] = {
            "names": [str(name) for name in named.cat.categories],
            "ordered": bool(named.cat.ordered),
        }
    return np.column_stack(columns), levels


def _with_levels(
    values: NDArray[np.float64], rows: NDArray[np.int64], task: Mapping[str, Any]
) -> pd.DataFrame:
    """Undo :func:`_as_numbers`."""
    columns: dict[int, Any] = dict(enumerate(values.T))
    for place, known in task["levels"].items():
        codes = np.nan_to_num(columns[int(place)], nan=-1.0).astype(np.int64)
        columns[int(place)] = pd.Categorical.from_codes(
            codes, categories=pd.Index(known["names"]), ordered=known["ordered"]
        )
    return pd.DataFrame(columns, index=rows).set_axis(task["columns"], axis=1)


if __name__ == "__main__":
    raise SystemExit(work(Path(sys.argv[1])))
