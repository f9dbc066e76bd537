"""What the app starts, and whom it answers: nothing in the current folder is run, no foreign page is served."""

import os
import socket
import subprocess
import sys
import time
from contextlib import closing

import pytest

from latentdo.app import serve
from latentdo.app.job import Job
from latentdo.scm import simulate

pytest.importorskip("streamlit", reason="the app extra is not installed")


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """A current folder with a file for every module of Python; whichever is run leaves its name in the list."""
    folder = tmp_path / "down loads"
    (folder / ".streamlit").mkdir(parents=True)
    (folder / ".streamlit" / "config.toml").write_text('[server]\nbaseUrlPath = "elsewhere"\n')
    mark = tmp_path / "ran"
    for name in sys.stdlib_module_names:
        (folder / f"{name}.py").write_text(f"print({name!r}, file=open({str(mark)!r}, 'a'))\n")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if os.path.isabs(entry)])
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    return lambda: mark.read_text().split() if mark.exists() else []


def until(condition, process):
    end = time.monotonic() + 600
    while not condition():
        assert process.poll() is None, "the process ended"
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


def answer(port, host, path="/_stcore/stream", kind="websocket"):
    """Status that the server gives to a page which was opened under a name."""
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: {host}:{port}",
        f"Origin: http://{host}:{port}",
        *((f"Upgrade: {kind}", "Connection: Upgrade") if kind else ("Connection: close",)),
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ]
    with closing(socket.create_connection(("localhost", port), timeout=600)) as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return int(connection.recv(64).split()[1])


def listening(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_planted_modules_would_run(planted):
    """The trap of the tests below works."""
    subprocess.run([sys.executable, "-m", "streamlit", "version"], capture_output=True, check=False)
    assert planted()


def test_the_server_answers_this_computer_only_and_runs_nothing_from_the_current_folder(planted):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with serve(port, browser=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            until(lambda: listening(port), server)
            assert answer(port, "localhost", "/_stcore/health", kind=None) == 200
            assert [answer(port, name) for name in ("localhost", "127.0.0.1", "[::1]")] == [101] * 3
            assert [answer(port, name) for name in ("evil.example", "localhost.evil.example")] == [403] * 2
            assert answer(port, "evil.example", "/_stcore/agent/interact", kind=None) >= 400
        finally:
            server.kill()
    assert planted() == []


def test_a_job_runs_nothing_from_the_current_folder(planted):
    data = simulate(n_variables=3, n_samples=200, random_state=1)
    job = Job(data.X, {"max_regimes": 2, "n_init": 1, "density": "linear"})
    end = time.monotonic() + 600
    while job.state == "running":
        assert time.monotonic() < end
        time.sleep(0.05)
    assert job.state == "done", job.message()
    assert planted() == []


def test_workers_of_the_command_line_run_nothing_from_the_current_folder(planted):
    program = (
        "import subprocess, sys; from latentdo.cli import main; sys.argv = ['latentdo', '--version']; main(); "
        "subprocess.run([sys.executable, '-m', 'platform'], check=True)"
    )
    subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, check=True, timeout=600)
    assert planted() == []
