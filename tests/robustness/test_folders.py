"""Output folders: whose they are, who writes them, what cannot be one, and what happens if writing fails."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from latentdo import BootstrapDAG, LatentInterventionDAG, outputs
from latentdo.cli import main
from latentdo.files import Cadence, Keeper, Process, claimed
from latentdo.files.claim import MARK
from latentdo.outputs import write_outputs
from latentdo.persistence import load_result, save_result

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")

fork = multiprocessing.get_context("fork")
QUICK = ("--density", "linear", "--max-regimes", 1, "--n-init", 1)


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def inside(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def mark(folder: Path, process: Process | None = None, **more: object) -> Path:
    """A working folder of ours, with something to resume in it."""
    (folder / "states").mkdir(parents=True)
    (folder / "states" / "bootstrap-resamples.safetensors").write_text("hours of work")
    owner = {} if process is None else {"process": process.tag, "pid": process.pid}
    (folder / MARK).write_text(json.dumps({"program": "latentdo", **owner, **more}))
    return folder


# ----------------------------------------------------------------------------------------------- whose


@pytest.mark.parametrize("flag", ["--overwrite", "--resume"])
@pytest.mark.parametrize("command", ["fit", "bootstrap", "tune", "demo", "simulate"])
def test_what_latentdo_did_not_write_is_never_removed(tmp_path, data, capsys, command, flag):
    thesis = tmp_path / "r.unfinished" / "thesis.txt"
    thesis.parent.mkdir()
    thesis.write_text("years of work")
    source = [data] if command in ("fit", "bootstrap", "tune") else []
    given = flag if source else "--overwrite"
    assert run(command, *source, "--out", tmp_path / "r", given) == 1
    error = capsys.readouterr().err
    assert "r.unfinished" in error
    assert "did not write" in error
    assert content(tmp_path / "r.unfinished") == {"thesis.txt": b"years of work"}
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("foreign", ["a file", "a link", "the mark of another program", "no JSON"])
def test_anything_else_in_the_place_of_unfinished_work_is_left_alone(tmp_path, results, foreign):
    place = tmp_path / "r.unfinished"
    if foreign == "a file":
        place.write_text("mine")
    elif foreign == "a link":
        (tmp_path / "elsewhere").mkdir()
        place.symlink_to(tmp_path / "elsewhere")
    else:
        place.mkdir()
        (place / MARK).write_text("{}" if "program" in foreign else "notes")
    before = content(tmp_path)
    with pytest.raises(FileExistsError, match=r"r\.unfinished.*move it away"):
        write_outputs(results[0], tmp_path / "r", overwrite=True)
    assert content(tmp_path) == before
    assert os.path.lexists(place)


@pytest.mark.parametrize(
    "wrong",
    [
        ("nosuch.csv",),
        ("{data}", "--max-regimes", "0"),
        ("{data}", "--columns", "nobody"),
        ("{data}", "--forbidden", "a", "nobody"),
        ("{data}", "--n-resamples", "0"),
    ],
)
def test_a_mistake_removes_nothing(tmp_path, data, wrong, results, capsys, quick_report):
    write_outputs(results[0], tmp_path / "r")
    mark(tmp_path / "r.unfinished")
    before = content(tmp_path / "r"), content(tmp_path / "r.unfinished" / "states")
    options = [word.format(data=data) for word in wrong]
    assert run("bootstrap", *options, "--out", tmp_path / "r", "--overwrite") == 1
    assert (content(tmp_path / "r"), content(tmp_path / "r.unfinished" / "states")) == before
    assert inside(tmp_path / "r.unfinished") == {"states", MARK}


def test_starting_anew_drops_earlier_states_once_there_are_results(tmp_path, data, capsys):
    mark(tmp_path / "r.unfinished")
    assert run("fit", data, "--out", tmp_path / "r", *QUICK) == 1
    error = capsys.readouterr().err
    assert "--resume" in error
    assert "--overwrite" in error
    assert run("fit", data, "--out", tmp_path / "r", *QUICK, "--overwrite") == 0
    assert inside(tmp_path) == {"data.csv", "r"}


def test_states_of_another_command_are_not_resumed(tmp_path, data, capsys):
    mark(tmp_path / "r.unfinished")
    before = content(tmp_path / "r.unfinished" / "states")
    assert run("tune", data, "--out", tmp_path / "r", *QUICK, "--resume") == 1
    assert "another command" in capsys.readouterr().err
    assert content(tmp_path / "r.unfinished" / "states") == before


def test_a_mistake_leaves_no_empty_folders(tmp_path, capsys):
    assert run("fit", tmp_path / "nosuch.csv", "--out", tmp_path / "deep" / "er" / "r") == 1
    assert inside(tmp_path) == set()


# --------------------------------------------------------------------------------------------- one run


@pytest.mark.parametrize("command", ["fit", "bootstrap", "tune", "demo", "simulate"])
def test_a_second_run_is_refused_at_once_and_named_the_first(tmp_path, data, capsys, command):
    source = [data] if command in ("fit", "bootstrap", "tune") else []
    ready, go = fork.Event(), fork.Event()

    def first() -> None:
        with claimed(tmp_path / "r") as claim:
            claim.state_file("work").write_text("mine")
            ready.set()
            go.wait(timeout=300)

    child = fork.Process(target=first)
    child.start()
    assert ready.wait(timeout=300)
    assert run(command, *source, "--out", tmp_path / "r", "--overwrite") == 1
    assert f"process {child.pid}" in capsys.readouterr().err
    assert (tmp_path / "r.unfinished" / "states" / "work").read_text() == "mine"
    go.set()
    child.join()
    assert child.exitcode == 0


def test_a_second_thread_is_refused_and_the_same_one_is_not(tmp_path):
    refused = []

    def second() -> None:
        try:
            with claimed(tmp_path / "r"):
                pass
        except FileExistsError as error:
            refused.append(str(error))

    with claimed(tmp_path / "r") as outer:
        with claimed(tmp_path / "r") as inner:
            assert inner is outer
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert f"process {os.getpid()}" in refused[0]
    assert inside(tmp_path) == set()


def test_the_claims_of_dead_processes_are_void(tmp_path):
    child = fork.Process(target=lambda: None)
    child.start()
    gone = Process(Process.current().host, child.pid or 0, "12345678")
    child.join()
    me = Process.current()
    reused = Process(me.host, me.pid, "12345678")  # our number, but another beginning or another boot
    for number, process in enumerate((gone, reused, me)):
        place = mark(tmp_path / f"{number}.unfinished", process)
        with claimed(tmp_path / str(number)) as claim:
            assert claim.has_states
        assert "process" not in json.loads((place / MARK).read_text())


def test_a_zombie_is_dead(tmp_path):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has asked
    assert not Process(Process.current().host, pid, "00000000").may_run()
    os.waitpid(pid, 0)


def test_a_run_on_another_machine_may_be_alive(tmp_path):
    mark(tmp_path / "r.unfinished", Process("0" * 8, 4242, "0" * 8), host="node7")
    with pytest.raises(FileExistsError, match=f"4242 on node7.*{MARK}"), claimed(tmp_path / "r"):
        pass


def test_of_many_runs_one_gets_the_folder(tmp_path):
    """All start at once on what a dead run has left, which none may take from another."""
    mark(tmp_path / "r.unfinished", Process(Process.current().host, os.getpid(), "12345678"))
    n = 6
    start, end = fork.Barrier(n + 1), fork.Barrier(n + 1)
    owners = fork.SimpleQueue()

    def compete() -> None:
        start.wait(timeout=300)
        try:
            with claimed(tmp_path / "r"):
                owners.put(os.getpid())
                end.wait(timeout=300)
        except FileExistsError:
            owners.put(0)
            end.wait(timeout=300)

    children = [fork.Process(target=compete) for _ in range(n)]
    for child in children:
        child.start()
    start.wait(timeout=300)
    found = [owners.get() for _ in children]
    end.wait(timeout=300)
    for child in children:
        child.join()
    assert sum(owner > 0 for owner in found) == 1


# ---------------------------------------------------------------------------------------- destinations


@pytest.mark.parametrize(
    "kind", ["file", "pipe", "socket", "device", "here", "above", "below a file", "loop"]
)
@pytest.mark.parametrize("flags", [(), ("--overwrite",)])
def test_what_cannot_be_an_output_folder_is_called_by_its_name(
    tmp_path, data, kind, flags, capsys, monkeypatch
):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    os.symlink("loop", tmp_path / "loop")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("../socket")  # absolute paths of sockets must be short
        out, word = {
            "file": (tmp_path / "file", "a file"),
            "pipe": (tmp_path / "pipe", "pipe"),
            "socket": (tmp_path / "socket", "socket"),
            "device": ("/dev/null", "device"),
            "here": (".", "the current folder"),
            "above": ("..", "the current one lies in"),
            "below a file": (tmp_path / "file" / "r", "not a folder"),
            "loop": (tmp_path / "loop", "loop"),
        }[kind]
        assert run("fit", data, "--out", out, *flags) == 1
    error = capsys.readouterr().err
    assert word in error
    assert str(out) in error
    assert (tmp_path / "file").read_text() == "x"
    assert inside(here) == set()


def test_single_files_never_replace_devices_and_pipes(tmp_path, results):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(OSError, match=r"pipe|device"):
            save_result(results[0], path)
    (tmp_path / "link").symlink_to(tmp_path / "model")
    save_result(results[0], tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "model").is_file()


@pytest.mark.parametrize("command", ["fit", "bootstrap", "tune", "demo", "simulate"])
@pytest.mark.parametrize("obstacle", ["full", "limit"])
def test_a_destination_that_cannot_be_written_is_noticed_before_the_work(
    tmp_path, data, capsys, monkeypatch, command, obstacle
):
    from latentdo import scm

    def never(*_: object, **__: object) -> None:
        pytest.fail("it began to work")

    for kind in (LatentInterventionDAG, BootstrapDAG):
        monkeypatch.setattr(kind, "fit", never)
    monkeypatch.setattr(scm, "simulate", never)
    if obstacle == "full":
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    else:

        def refuse(_: int) -> None:
            raise OSError(122, "Disk quota exceeded")

        monkeypatch.setattr(os, "fsync", refuse)
    source = [data] if command in ("fit", "bootstrap", "tune") else []
    assert run(command, *source, "--out", tmp_path / "r") == 1
    error = capsys.readouterr().err
    assert str(tmp_path / "r") in error
    assert ("free" if obstacle == "full" else "quota") in error
    assert inside(tmp_path) == {"data.csv"}


def test_results_that_cannot_be_written_are_kept_elsewhere(tmp_path, data, capsys, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))

    def full(*_: object, **__: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(outputs, "to_graphml", full)
    assert run("bootstrap", data, "--out", tmp_path / "r", *QUICK, "--n-resamples", 1) == 1
    error = capsys.readouterr().err
    assert str(tmp_path / "r" / "graph.graphml") in error
    (kept,) = elsewhere.iterdir()
    assert str(kept) in error
    assert load_result(kept / "model.safetensors").columns == ("a", "b")
    assert len(BootstrapDAG.load(kept / "bootstrap.safetensors").resamples_) == 1
    monkeypatch.undo()
    assert run("bootstrap", data, "--out", tmp_path / "r", *QUICK, "--n-resamples", 1, "--resume") == 0
    assert inside(tmp_path) == {"data.csv", "elsewhere", "r"}


# ------------------------------------------------------------------------------ checkpoints and Ctrl-C


def test_checkpoints_come_often_at_first_and_then_as_asked():
    now = [0.0]
    cadence, moments = Cadence(60.0, clock=lambda: now[0]), []
    for second in range(3600):
        now[0] = float(second)
        if cadence.is_due():
            cadence.done()
            moments.append(second)
    gaps = np.diff([0, *moments])
    assert gaps[0] <= 5
    assert gaps.max() <= 60
    assert (np.diff(gaps[:-1]) >= -1).all()  # whole seconds
    assert gaps[-2] == 60


def test_slow_checkpoints_come_less_often():
    now = [0.0]
    cadence = Cadence(1.0, clock=lambda: now[0])
    now[0] = 10.0
    assert cadence.is_due()
    now[0] = 15.0
    cadence.done()  # took five seconds
    now[0] = 60.0
    assert not cadence.is_due()
    now[0] = 200.0
    assert cadence.is_due()


def test_a_checkpoint_that_cannot_be_written_is_a_warning(tmp_path):
    def fail(_: Path) -> None:
        raise OSError(28, "No space left on device")

    keeper = Keeper(tmp_path / "state", fail, 0.0)
    with pytest.warns(UserWarning, match=r"state.*No space left"):
        keeper.step()


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), "often", True])
def test_bad_times_between_checkpoints_are_refused(seconds, small_table):
    for kind in (BootstrapDAG, LatentInterventionDAG):
        with pytest.raises(ValueError, match="checkpoint_seconds"):
            kind(checkpoint_seconds=seconds).fit(small_table())


def run_python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the modules of a folder in the place of libraries."""
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "entry", [("-m", "latentdo"), ("-c", "from latentdo.cli import main; raise SystemExit(main())")]
)
def test_an_interrupt_while_the_program_loads_is_one_line(tmp_path, entry):
    """A module that sends the signal takes the place of a library, so that the moment does not depend on the clock."""
    (tmp_path / "cyclopts.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = run_python(tmp_path, *entry, "simulate", "--out", "s")
    assert done.returncode == 130, done.stderr
    assert done.stderr.count("\n") == 1
    assert "interrupted" in done.stderr


def test_an_interrupt_while_a_library_loads_is_answered_after_it(tmp_path):
    """Python loses exceptions in some places, and the machinery of imports has such places."""
    (tmp_path / "library.py").write_text(
        """
import os, signal, weakref
class Thing: pass
thing = Thing()
link = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGINT))
del thing
"""
    )
    script = """
import time
from latentdo.cli import _interrupts
with _interrupts() as interrupts:
    interrupts.loading = False
    import library
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        print("answered")
"""
    done = run_python(tmp_path, "-c", script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "answered\n", "")
