"""Killed processes, full disks, forbidden folders, foreign checkpoints: nothing is lost, nothing half-written.

The victims are forked from this process, so that a kill costs milliseconds and not the import of a scientific stack.
"""

from __future__ import annotations

import ctypes
import errno
import json
import multiprocessing
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from latentdo import BootstrapDAG, LatentInterventionDAG
from latentdo.data import Dataset
from latentdo.outputs import FILES, write_outputs
from latentdo.persistence import load_result, save_result
from latentdo.solvers.gradient import GradientConfiguration
from latentdo.solvers.gradient import solve as solve_by_gradient

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")

KILLS = [pytest.param(2, id="2-kills"), pytest.param(14, id="14-kills", marks=pytest.mark.slow)]
"""How often every operation is killed: five operations make 10 kills in the fast suite, and 70 more in the slow one."""

CAPABILITIES_VERSION_3, CAP_DAC_OVERRIDE = 0x20080522, 1  # <linux/capability.h>

fork = multiprocessing.get_context("fork")


def table(n: int = 150, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    x[:, 1] += 1.5 * x[:, 0]
    x[:, 2] -= x[:, 1]
    x[: n // 3, 2] = 7.0 + rng.normal(size=n // 3)
    return pd.DataFrame(x, columns=["a", "b", "c"])


def estimator(**options: Any) -> LatentInterventionDAG:
    return LatentInterventionDAG(max_regimes=3, n_init=1, **options)


def gradient_configuration(path: Path) -> GradientConfiguration:
    return GradientConfiguration(
        max_regimes=2,
        first_steps=30,
        steps=10,
        final_steps=10,
        max_subproblems=3,
        checkpoint=path,
        checkpoint_seconds=0.0,
    )


def run_in_child(operation: Callable[[], object]) -> int:
    """Exit code of the operation in a process of its own: 0 if it returned, 1 if it raised."""
    child = fork.Process(target=operation)
    child.start()
    child.join()
    return int(child.exitcode or 0)


def kill_at_random(
    operation: Callable[[], object],
    kills: int,
    check: Callable[[], object] = lambda: None,
    forget: Callable[[], object] = lambda: None,
) -> int:
    """Start the operation and kill it, again and again, at moments spread over the time it takes; count the kills.

    ``check`` looks at what is left after every kill; ``forget`` removes the work of a victim that came to its end, so
    that the next one has something to do. In the end the operation runs undisturbed.
    """
    rng = np.random.default_rng(0)
    began = time.perf_counter()
    assert run_in_child(operation) == 0
    duration = time.perf_counter() - began
    forget()
    done = 0
    for _ in range(20 * kills):
        if done == kills:
            break
        child = fork.Process(target=operation)
        began = time.perf_counter()
        child.start()
        child.join(timeout=float(rng.uniform(0.0, duration)))
        finished = not child.is_alive()
        if not finished:
            child.kill()
            child.join()
            done += 1
        check()
        if finished:
            duration = min(duration, time.perf_counter() - began)  # the first may have met a busier machine
            forget()
    assert run_in_child(operation) == 0
    check()
    return done


@pytest.mark.parametrize("kills", KILLS)
def test_a_killed_save_leaves_the_old_file_or_the_new(tmp_path, kills):
    path = tmp_path / "model.safetensors"
    first, second = (estimator().fit(table(seed=seed)).result_ for seed in (0, 1))
    save_result(first, path)

    def save_often() -> None:
        for _ in range(10):
            save_result(second, path)
            save_result(first, path)

    def check() -> None:
        assert load_result(path).evidence in (first.evidence, second.evidence)

    assert kill_at_random(save_often, kills, check) == kills


@pytest.mark.parametrize("kills", KILLS)
def test_a_killed_command_leaves_a_whole_folder(tmp_path, kills):
    result = estimator().fit(table()).result_
    folder = tmp_path / "results"

    def write() -> None:
        write_outputs(result, folder, overwrite=True)

    def check() -> None:
        if folder.exists():
            assert {path.name for path in folder.iterdir()} == set(FILES)
            json.loads((folder / "result.json").read_text())
            assert load_result(folder / "model.safetensors").evidence == result.evidence

    assert kill_at_random(write, kills, check) == kills
    assert folder.is_dir()


@pytest.mark.parametrize("kills", KILLS)
def test_a_killed_bootstrap_goes_on_to_the_same_result(tmp_path, kills):
    path = tmp_path / "checkpoint"

    def bootstrap() -> BootstrapDAG:
        boot = BootstrapDAG(estimator(), n_resamples=10, checkpoint=path, checkpoint_seconds=0.0)
        return boot.fit(table())

    undisturbed = bootstrap()
    path.unlink()
    kept = [0]

    def check() -> None:
        kept.append(len(BootstrapDAG.load(path).resamples_) if path.exists() else 0)
        assert kept[-1] >= kept[-2]  # what was finished stays finished

    def forget() -> None:
        path.unlink()
        kept.append(0)

    assert kill_at_random(bootstrap, kills, check, forget) == kills
    resumed = bootstrap()
    pd.testing.assert_frame_equal(resumed.edge_support_, undisturbed.edge_support_)
    pd.testing.assert_frame_equal(resumed.regime_stability_, undisturbed.regime_stability_)
    assert [r.evidence for r in resumed.resamples_] == [r.evidence for r in undisturbed.resamples_]


@pytest.mark.parametrize("kills", KILLS)
def test_a_killed_gradient_fit_goes_on_to_the_same_result(tmp_path, kills):
    dataset = Dataset.from_table(table(), regimes=np.where(np.arange(150) < 50, 1, 0))
    path = tmp_path / "state"
    configuration = gradient_configuration(path)

    def fit() -> Any:
        return solve_by_gradient(dataset, configuration)

    def forget() -> None:
        for file in tmp_path.iterdir():
            file.unlink()

    undisturbed = fit()
    forget()
    assert kill_at_random(fit, kills, forget=forget) == kills
    resumed = fit()
    assert resumed.evidence == undisturbed.evidence
    np.testing.assert_array_equal(resumed.model.topology.adjacency, undisturbed.model.topology.adjacency)
    np.testing.assert_array_equal(resumed.responsibilities, undisturbed.responsibilities)


def measure(number: int) -> dict[str, float]:
    """A cell of an experiment."""
    time.sleep(0.01)
    return {"square": float(number**2), **({"late": 1.0} if number > 5 else {})}


@pytest.fixture
def runner(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    from experiments import runner

    monkeypatch.setattr(runner, "versions", lambda: "fixed")
    return runner


@pytest.mark.parametrize("kills", KILLS)
def test_a_killed_experiment_goes_on_to_the_same_table(tmp_path, runner, kills, capsys):
    def experiment() -> pd.DataFrame:
        cells = [{"number": number} for number in range(10)]
        return runner.run("squares", cells, measure, n_jobs=1, store=tmp_path)

    def check() -> None:
        stored = tmp_path / "squares.csv"
        rows = pd.read_csv(stored) if stored.exists() and stored.stat().st_size else pd.DataFrame()
        assert len(rows) == 0 or (rows["square"] == rows["number"] ** 2).all()

    assert kill_at_random(experiment, kills, check, (tmp_path / "squares.csv").unlink) == kills
    final = experiment()
    assert sorted(final["number"]) == list(range(10))
    assert (final["square"] == final["number"] ** 2).all()
    assert final["key"].is_unique


def test_half_a_row_of_an_experiment_is_run_again(tmp_path, runner, capsys):
    cells = [{"number": number} for number in range(3)]
    runner.run("squares", cells, measure, n_jobs=1, store=tmp_path)
    stored = tmp_path / "squares.csv"
    stored.write_bytes(stored.read_bytes()[:-30])
    again = runner.run("squares", cells, measure, n_jobs=1, store=tmp_path)
    assert sorted(again["square"]) == [0.0, 1.0, 4.0]
    stored.write_bytes(b"key,num")
    assert len(runner.run("squares", cells, measure, n_jobs=1, store=tmp_path)) == 3


def message_in_child(operation: Callable[[], object], folder: Path, prepare: Callable[[], object]) -> str:
    """What an operation raises in a process of its own, after ``prepare`` made its life hard."""
    note = folder / "note"
    with note.open("w") as said:  # opened before anything is forbidden

        def run() -> None:
            prepare()
            try:
                operation()
            except OSError as error:
                said.write(f"{errno.errorcode[error.errno or 0]} {error}")
            except BaseException:
                said.write(traceback.format_exc())
            said.flush()

        run_in_child(run)
    return note.read_text()


@pytest.mark.parametrize("kind", ["save", "outputs", "bootstrap"])
def test_a_full_disk_leaves_what_was_there(tmp_path, kind):
    """A limit on the size of files stops writing in the middle, as a full disk does."""
    est = estimator().fit(table())
    folder = tmp_path / "kept"
    path = folder / "model.safetensors"
    write_outputs(est.result_, folder)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    boot = BootstrapDAG(estimator(), n_resamples=2).fit(table())
    operation = {
        "save": lambda: est.save(path),
        "outputs": lambda: write_outputs(est.result_, folder, overwrite=True),
        "bootstrap": lambda: boot.save(folder / "fresh"),
    }[kind]
    note = message_in_child(
        operation, tmp_path, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))
    )
    assert note.startswith("EFBIG")
    assert str(folder) in note
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert {file.name for file in tmp_path.iterdir()} == {"kept", "note"}


def heed_modes() -> None:
    """Let the superuser of Linux be refused, too, where the mode of a folder forbids to write.

    It keeps the right to read and enter everything: wherever package and interpreter lie, they go on working.
    """
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        header = (ctypes.c_uint32 * 2)(CAPABILITIES_VERSION_3, 0)  # 0: this process
        held = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; then the same for higher numbers
        assert libc.capget(header, held) == 0, os.strerror(ctypes.get_errno())
        held[0] &= ~(1 << CAP_DAC_OVERRIDE)
        assert libc.capset(header, held) == 0, os.strerror(ctypes.get_errno())


@pytest.mark.skipif(
    sys.platform != "linux" and os.geteuid() == 0, reason="nothing is forbidden to this user here"
)
@pytest.mark.parametrize("kind", ["save", "outputs"])
def test_a_folder_that_may_not_be_written(tmp_path, kind):
    est = estimator().fit(table())
    folder = tmp_path / "forbidden"
    folder.mkdir()
    folder.chmod(0o555)
    operation = {
        "save": lambda: est.save(folder / "model.safetensors"),
        "outputs": lambda: write_outputs(est.result_, folder / "results"),
    }[kind]
    note = message_in_child(operation, tmp_path, heed_modes)
    assert note.startswith("EACCES"), note
    assert str(folder) in note
    assert list(folder.iterdir()) == []


def test_a_checkpoint_of_other_data_is_refused(tmp_path):
    path = tmp_path / "checkpoint"
    options: dict[str, Any] = {"n_resamples": 1, "checkpoint": path}
    BootstrapDAG(estimator(), **options).fit(table())
    with pytest.raises(ValueError, match="made with other rows; give another checkpoint"):
        BootstrapDAG(estimator(), **options).fit(table(seed=1))
    with pytest.raises(ValueError, match="other estimator"):
        BootstrapDAG(estimator(edge_prior=-3.0), **options).fit(table())


def test_a_deleted_checkpoint_means_a_fresh_start(tmp_path):
    path = tmp_path / "checkpoint"
    first = BootstrapDAG(estimator(), n_resamples=2, checkpoint=path).fit(table())
    path.unlink()
    again = BootstrapDAG(estimator(), n_resamples=2, checkpoint=path).fit(table())
    pd.testing.assert_frame_equal(first.edge_support_, again.edge_support_)
    assert path.exists()


@pytest.mark.parametrize("damage", ["cut", "empty", "foreign"])
def test_a_damaged_checkpoint_is_refused(tmp_path, damage):
    path = tmp_path / "checkpoint"
    BootstrapDAG(estimator(), n_resamples=1, checkpoint=path).fit(table())
    content = path.read_bytes()
    path.write_bytes({"cut": content[:-9], "empty": b"", "foreign": b"PK\x03\x04" * 99}[damage])
    with pytest.raises(ValueError, match="damaged, truncated, or not"):
        BootstrapDAG(estimator(), n_resamples=1, checkpoint=path).fit(table())


def test_a_gradient_checkpoint_of_other_data_or_damaged_is_refused(tmp_path):
    labels = np.where(np.arange(150) < 50, 1, 0)
    solve_by_gradient(Dataset.from_table(table(), regimes=labels), gradient_configuration(tmp_path / "state"))
    files = sorted(tmp_path.iterdir())
    with pytest.raises(ValueError, match="belongs to other data or another configuration; delete it"):
        solve_by_gradient(
            Dataset.from_table(table(seed=1), regimes=labels), gradient_configuration(tmp_path / "state")
        )
    for file in files:
        file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ValueError, match="delete it"):
        solve_by_gradient(
            Dataset.from_table(table(), regimes=labels), gradient_configuration(tmp_path / "state")
        )
