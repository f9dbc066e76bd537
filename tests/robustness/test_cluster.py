"""A real Dask cluster: a scheduler and two workers, each a process of its own that can be killed."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest

from latentdo import BootstrapDAG, LatentInterventionDAG, cluster, simulate
from latentdo.cli import main

distributed = pytest.importorskip("distributed", reason="dask is not installed")


@dataclass
class Cluster:
    """Processes of this test, and where their scheduler listens."""

    folder: Path
    address: str = ""
    scheduler: subprocess.Popen | None = None
    workers: list[subprocess.Popen] = field(default_factory=list)

    def start(self) -> None:
        file = self.folder / "scheduler.json"
        self.scheduler = self._run("dask_scheduler", "--port=0", f"--scheduler-file={file}", "--no-dashboard")
        deadline = time.monotonic() + 600
        while not file.exists():
            assert self.scheduler.poll() is None, "the scheduler ended"
            assert time.monotonic() < deadline, "the scheduler did not start"
            time.sleep(0.05)
        self.address = json.loads(file.read_text())["address"]

    def add_worker(self) -> subprocess.Popen:
        folder = f"--local-directory={self.folder}"
        worker = self._run(
            "dask_worker", self.address, "--nthreads=1", "--no-nanny", "--no-dashboard", folder
        )
        self.workers.append(worker)
        return worker

    def _run(self, module: str, *options: str) -> subprocess.Popen:
        log = (self.folder / "log").open("ab")
        command = [sys.executable, "-m", f"distributed.cli.{module}", "--host=127.0.0.1", *options]
        return subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            if process is not None:
                process.kill()
                process.wait()


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        started.start()
        for _ in range(2):
            started.add_worker()
        with distributed.Client(started.address, timeout=600) as client:  # a busy machine needs its time
            client.wait_for_workers(2, timeout=600)
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="module")
def data():
    return simulate(n_variables=3, n_samples=400, n_regimes=3, random_state=1)


def estimator(**options):
    return LatentInterventionDAG(max_regimes=4, n_init=2, **options)


@pytest.mark.slow
def test_restarts_on_a_cluster_give_the_local_result(two_workers, data):
    local = estimator().fit(data.X)
    with cluster.compute_on(two_workers.address):
        assert joblib.effective_n_jobs(-1) >= 1
        there = estimator(n_jobs=-1).fit(data.X)
    assert there.evidence_ == local.evidence_
    np.testing.assert_array_equal(there.responsibilities_, local.responsibilities_)


@pytest.mark.slow
def test_the_command_line_fits_on_a_cluster(two_workers, data, tmp_path):
    data.X.to_csv(tmp_path / "data.csv", index=False)
    for out, options in (("here", []), ("there", ["--dask", two_workers.address])):
        command = [
            "fit",
            str(tmp_path / "data.csv"),
            "--out",
            str(tmp_path / out),
            "--max-regimes",
            "4",
            *options,
        ]
        assert main(command) == 0
    here, there = (pd.read_csv(tmp_path / out / "adjacency.csv") for out in ("here", "there"))
    pd.testing.assert_frame_equal(here, there)


@pytest.mark.slow
def test_moments_of_a_stream_are_summed_on_a_cluster(two_workers, data, tmp_path):
    """Row groups of a file, and partitions of a Dask table, each read by the worker that sums it up."""
    frames = pytest.importorskip("dask.dataframe", reason="dask.dataframe needs further packages")
    table = data.X.assign(condition=np.where(np.arange(len(data.X)) % 2, data.regimes, -1))
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    local = estimator().fit_stream(tmp_path / "rows.parquet", regimes="condition")
    with cluster.compute_on(two_workers.address):
        for source in (tmp_path / "rows.parquet", frames.from_pandas(table, npartitions=4)):
            there = estimator(n_jobs=-1).fit_stream(source, regimes="condition")
            assert there.evidence_ == pytest.approx(local.evidence_, rel=1e-12)
            pd.testing.assert_frame_equal(there.adjacency_, local.adjacency_)


def test_a_scheduler_that_is_not_there(tmp_path, data, capsys, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    data.X.to_csv(tmp_path / "data.csv", index=False)
    command = ["fit", str(tmp_path / "data.csv"), "--out", str(tmp_path / "out")]
    with socket.socket() as deaf:  # a port that is taken, and at which nobody listens
        deaf.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{deaf.getsockname()[1]}"
        assert main([*command, "--dask", address]) == 1
    assert f"No Dask scheduler answers at '{address}'; start one" in capsys.readouterr().err.replace(
        "\n", " "
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("address", ["", "nonsense", "udp://x:1"])
def test_addresses_that_are_none(address, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    with pytest.raises(ConnectionError, match="No Dask scheduler"), cluster.compute_on(address):
        pass


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(two_workers, data):
    """Last of this file: it leaves one worker only."""
    resampler = BootstrapDAG(estimator(n_jobs=1), n_resamples=12)
    local = resampler.fit(data.X)
    done: list[str] = []

    def kill_after_three(entry):
        done.append(entry["step"])
        if len(done) == 4:
            threading.Thread(target=two_workers.workers[0].kill).start()

    with cluster.compute_on(two_workers.address):
        there = BootstrapDAG(estimator(n_jobs=1), n_resamples=12, n_jobs=-1).fit(
            data.X, progress=kill_after_three
        )
    assert two_workers.workers[0].wait(timeout=600) == -9
    assert [r.number for r in there.resamples_] == list(range(12))
    assert there.failures_ == []
    pd.testing.assert_frame_equal(there.edge_support_, local.edge_support_)
