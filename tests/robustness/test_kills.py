"""A process that dies before any of its steps leaves things whole: the old or the new, never half of either."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from latentdo import BootstrapDAG, LatentInterventionDAG
from latentdo.cli import main
from latentdo.cli.destination import destination
from latentdo.files import claimed, write_atomically
from latentdo.outputs import FILES, write_outputs
from latentdo.persistence import load_result, save_result

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")

STEPS = ("rename", "replace", "unlink", "rmdir", "mkdir", "open", "write", "fsync")
"""Calls of the system that change files; between two of them nothing happens that a kill could spoil."""
KILLED = 77

fork = multiprocessing.get_context("fork")


def run_in_child(operation: Callable[[], object]) -> int:
    """Exit code of the operation in a process of its own: 0 if it returned, 1 if it raised."""
    child = fork.Process(target=operation)
    child.start()
    child.join()
    return int(child.exitcode or 0)


def kill_before(step: int) -> None:
    """Let this process die just before its call number ``step`` (from 1) of the kinds in ``STEPS``."""
    left = [step]

    def deadly(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os._exit(KILLED)
            return call(*arguments, **options)

        return counted

    for name in STEPS:
        setattr(os, name, deadly(getattr(os, name)))


def kill_at_every_step(
    prepare: Callable[[], object], operation: Callable[[], object], check: Callable[[], object]
) -> int:
    """Prepare, kill the operation before its first step, check; again before its second; until it comes to its end."""

    def doomed(step: int) -> None:
        kill_before(step)
        operation()

    for kills in itertools.count():
        prepare()
        code = run_in_child(partial(doomed, kills + 1))
        if code == 0:
            return kills
        assert code == KILLED, f"the operation failed before step {kills + 1}"
        check()
    raise AssertionError


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def inside(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_kill_at_any_step_of_writing_results_leaves_the_old_or_the_new(tmp_path, results, quick_report):
    old, new = results
    folder = tmp_path / "results"

    def prepare() -> None:
        write_outputs(old, folder, overwrite=True)

    def is_whole() -> float:
        assert inside(folder) == set(FILES)
        return load_result(folder / "model.safetensors").evidence

    seen = set()

    def check() -> None:
        if folder.exists():
            seen.add(is_whole())
        with claimed(folder):  # whatever comes next puts things in order
            seen.add(is_whole())
        assert inside(tmp_path) == {"results"}

    kills = kill_at_every_step(prepare, lambda: write_outputs(new, folder, overwrite=True), check)
    assert kills > 20
    assert seen == {old.evidence, new.evidence}
    assert is_whole() == new.evidence


def test_a_kill_at_any_step_of_a_simulation_leaves_it_whole(tmp_path, monkeypatch, capsys):
    from latentdo import scm

    drawn = scm.simulate(n_variables=3, n_samples=40, random_state=1)
    monkeypatch.setattr(scm, "simulate", lambda **_: drawn)
    folder = tmp_path / "s"
    files = {"data.csv", "adjacency.csv", "targets.csv", "regimes.csv", "simulation.json"}

    def simulate() -> None:
        if run("simulate", "--out", folder, "--overwrite"):
            raise RuntimeError

    def check() -> None:
        with claimed(folder):
            assert inside(folder) == files
        assert inside(tmp_path) == {"s"}

    assert kill_at_every_step(simulate, simulate, check) > 20


@pytest.mark.parametrize("ending", ["results", "states", "a mistake"])
def test_a_kill_at_any_step_of_starting_anew_leaves_states_of_one_run(
    tmp_path, results, ending, quick_report
):
    """Earlier states stay until there are new ones, and never are there half of either."""
    out, place = tmp_path / "r", tmp_path / "r.unfinished"
    earlier, later = ({f"bootstrap-{name}": name.encode() for name in names} for names in ("ab", "xy"))

    def prepare() -> None:
        shutil.rmtree(place, ignore_errors=True)
        with claimed(out) as claim:
            for name, text in earlier.items():
                claim.state_file(name).write_bytes(text)

    def begin_anew() -> None:
        try:
            with destination(out, overwrite=True, state="bootstrap") as work:
                if ending == "a mistake":
                    raise KeyError
                for name, text in later.items():
                    write_atomically(work.state(name), lambda path, text=text: path.write_bytes(text))
                if ending == "results":
                    work.write(results[0])
                work.keep = ending == "states"
        except KeyError:
            pass

    def check() -> None:
        with claimed(out):
            found = content(place / "states") if (place / "states").exists() else {}
            allowed = [earlier] if ending == "a mistake" else [earlier, later, {"bootstrap-x": b"x"}]
            if ending == "results" and out.exists():
                allowed.append({})
            assert found in allowed
        assert inside(tmp_path) <= {"r", "r.unfinished"}
        shutil.rmtree(out, ignore_errors=True)

    assert kill_at_every_step(prepare, begin_anew, check) > 10


def test_a_kill_at_any_step_of_saving_leaves_the_old_file_or_the_new(tmp_path, results, small_table):
    from latentdo.solvers.gradient import checkpoint
    from latentdo.solvers.gradient.lagrangian import AugmentedLagrangian
    from latentdo.solvers.gradient.state import TrainState

    path = tmp_path / "file"
    boots = [BootstrapDAG(LatentInterventionDAG(max_regimes=1), 1).fit(small_table(seed)) for seed in (0, 1)]
    states = [
        TrainState({}, {}, torch.zeros(1, dtype=torch.uint8), AugmentedLagrangian(), step=n) for n in (0, 1)
    ]
    writers = {
        "model": ([lambda r=r: save_result(r, path) for r in results], lambda: load_result(path)),
        "bootstrap": ([lambda b=b: b.save(path) for b in boots], lambda: BootstrapDAG.load(path)),
        "gradient": (
            [lambda s=s: checkpoint.save(path, s, "f") for s in states],
            lambda: checkpoint.load(path, "f"),
        ),
    }
    for (first, second), load in writers.values():

        def check(load=load, first=first) -> None:
            load()
            first()  # sweeps up what the dead process has left
            assert inside(tmp_path) == {"file"}

        assert kill_at_every_step(first, second, check) >= 3


def test_a_kill_while_tuning_changes_no_trial(tmp_path, monkeypatch, small_table):
    """Before every trial begins, and when its values are chosen but not yet tried."""
    pytest.importorskip("optuna", reason="the tune extra is not installed")
    from latentdo.tuning import TunedDAG, meta
    from latentdo.tuning.task import Task

    n = 13  # the sampler draws at random ten times, and learns then

    def evaluate(self: Task, values: dict[str, float]) -> dict[str, Any]:
        score = -sum((value + 3.0) ** 2 for value in values.values())
        return {"held_out": score, "edges": 1, "targets": 0, "regimes": 1, "seconds": 0.0, "blocks": [score]}

    monkeypatch.setattr(Task, "evaluate", evaluate)
    space = {"edge_prior": (-9.0, 0.0), "target_prior": (-9.0, 0.0)}

    def tune(storage: Path | None = None) -> pd.DataFrame:
        tuned = TunedDAG(LatentInterventionDAG(max_regimes=1), n, space=space, storage=storage)
        return tuned.fit(small_table()).trials_

    undisturbed = tune()
    storage = tmp_path / "what?{x}=1%20.db"
    for trial in (0, 4, 11):
        for moment in ("evaluate", "suggest"):

            def die(trial=trial, moment=moment) -> None:
                calls = [0]
                true = Task.evaluate if moment == "evaluate" else meta.suggest

                def deadly(*arguments: Any) -> Any:
                    # two values per trial: die between them
                    last = trial + 1 if moment == "evaluate" else 2 * trial + 2
                    calls[0] += 1
                    if calls[0] == last:
                        os._exit(77)
                    return true(*arguments)

                setattr(*((Task, "evaluate", deadly) if moment == "evaluate" else (meta, "suggest", deadly)))
                tune(storage)

            child = fork.Process(target=die)
            child.start()
            child.join()
            assert child.exitcode == 77
            pd.testing.assert_frame_equal(tune(storage), undisturbed)
            storage.unlink()
    assert inside(tmp_path) == set()


def test_an_interrupted_first_trial_is_tried_again(tmp_path, monkeypatch, small_table):
    pytest.importorskip("optuna", reason="the tune extra is not installed")
    from latentdo.tuning import TunedDAG

    base = LatentInterventionDAG(max_regimes=1, edge_prior=-3.0)
    tuner = TunedDAG(base, 2, space={"edge_prior": (-9.0, 0.0)}, storage=tmp_path / "t")
    with monkeypatch.context() as patch:

        def stop(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        patch.setattr(LatentInterventionDAG, "fit", stop)
        with pytest.raises(KeyboardInterrupt):
            tuner.fit(small_table())
    found = tuner.fit(small_table()).trials_
    assert found["trial"].tolist() == [0, 1]
    assert found["edge_prior"].iloc[0] == -3.0
