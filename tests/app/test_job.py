"""The fit in a process of its own."""

import gc
import os
import time

import pytest

from latentdo import load_sachs
from latentdo.app import launch, server_arguments
from latentdo.app.job import Job, work
from latentdo.scm import simulate

SMALL = {"max_regimes": 3, "n_init": 1}


def until(condition, seconds=600):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture(scope="module")
def long_table():
    return load_sachs(subset="full").X.iloc[::10]


def test_stopping_keeps_the_best_so_far(long_table):
    job = Job(long_table, {"transform": "log"})
    assert job.state == "running"
    until(job.progress)
    job.stop()
    until(lambda: job.state != "running")
    assert job.state == "done", job.message()
    assert "interrupted" in (job.results / "result.json").read_text("utf-8")


def test_giving_up_ends_it_at_once_and_nothing_stays_behind(long_table):
    job = Job(long_table, {"transform": "log"})
    folder, pid = job.folder, job._process.pid
    job.give_up()
    assert job.state == "failed"
    assert "given up" in job.message()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    del job
    gc.collect()
    assert not folder.exists()


def test_a_forgotten_job_ends(long_table):
    job = Job(long_table, {"transform": "log"})
    process, folder = job._process, job.folder
    assert process.poll() is None
    del job  # what happens when a user closes the page
    gc.collect()
    assert process.poll() is not None
    assert not folder.exists()


class Idle(Job):
    """A job whose work the test does itself."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._process.kill()
        self._process.wait()


def test_row_numbers_and_odd_names_survive_the_way():
    data = simulate(n_variables=3, n_samples=200, random_state=1)
    X = data.X.set_axis(["a\nb", "<x>", "日本"], axis=1).set_axis(range(1000, 1000 + len(data.X)), axis=0)
    job = Idle(X, SMALL)
    assert work(job.folder) == 0
    assert job.state == "done"
    lines = (job.results / "regimes.csv").read_text("utf-8").splitlines()
    assert lines[1].startswith("1000,")
    assert '"a\nb"' in (job.results / "adjacency.csv").read_text("utf-8")


def test_what_is_wrong_is_written_down():
    X = simulate(n_variables=2, n_samples=50, random_state=1).X
    job = Idle(X, {**SMALL, "transform": "log"})
    assert work(job.folder) == 1
    assert "log" in job.message()
    assert job.state == "failed"


def test_a_death_from_outside_is_explained():
    job = Idle(simulate(n_variables=2, n_samples=50, random_state=1).X, SMALL)
    assert "ran out of memory" in job.message()


def test_the_server_listens_here_only_and_tells_nobody():
    command = " ".join(server_arguments(8600, browser=False))
    assert "--server.address=localhost" in command
    assert "--server.port=8600" in command
    assert "--browser.gatherUsageStats=false" in command
    assert "--server.headless=true" in command


def test_without_streamlit_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"latentdo\[app\]"):
        launch()


def test_the_command_starts_it_and_explains_a_failure(monkeypatch, capsys):
    from latentdo.cli import main

    asked = []

    def launch(port, browser):
        asked.append((port, browser))
        return len(asked) - 1

    monkeypatch.setattr("latentdo.app.launch", launch)
    assert main(["app", "--port", "8700", "--no-browser"]) == 0
    assert asked == [(8700, False)]
    assert main(["app"]) == 1
    assert "--port" in capsys.readouterr().err
