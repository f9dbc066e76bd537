"""One fit on two processes: the same as on one, and what happens if one dies."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from latentdo import LatentInterventionDAG, simulate
from latentdo.data import Dataset
from latentdo.ranks import Ranks
from latentdo.solvers.search.out_of_core import solve_in_parts
from latentdo.solvers.search.solve import SearchConfiguration, solve
from latentdo.streaming import open_stream

SCRIPT = Path(__file__).with_name("train_on_ranks.py")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
ALONE = {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize(("n", "size"), [(10, 2), (7, 3), (1, 2), (0, 2), (5, 1)])
def test_shares_cover_all_rows_once(n, size):
    rows = np.concatenate([np.arange(n)[Ranks(rank, size).share(n)] for rank in range(size)])
    np.testing.assert_array_equal(rows, np.arange(n))
    assert max(len(range(n)[Ranks(rank, size).share(n)]) for rank in range(size)) <= -(-n // size)


def test_one_process_changes_nothing():
    alone = Ranks.current()
    assert (alone.rank, alone.size, alone.is_first) == (0, 1, True)
    weight = torch.ones(2, requires_grad=True)
    weight.grad = torch.full((2,), 3.0)
    before = torch.get_rng_state()
    alone.sum_gradients([weight])
    alone.share_randomness()
    alone.wait()
    assert weight.grad.tolist() == [3.0, 3.0]
    assert torch.equal(before, torch.get_rng_state())


class Room:
    """Where two threads meet that stand for two ranks."""

    def __init__(self) -> None:
        self.barrier = threading.Barrier(2, timeout=600)
        self.held = [None, None]

    def exchange(self, rank, own):
        self.held[rank] = own
        self.barrier.wait()
        held = list(self.held)
        self.barrier.wait()
        return held


@dataclass(frozen=True)
class Threads(Ranks):
    """Ranks that exchange through a room instead of torch."""

    size: int = 2
    room: Room | None = None

    def sum(self, values):
        return sum(self.gather(np.asarray(values, dtype=float)))

    def gather(self, own):
        return self.room.exchange(self.rank, own)

    def from_first(self, own):
        return self.gather(own)[0]


def on_two_ranks(work):
    """What ``work(ranks)`` returns on each."""
    room = Room()
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, [Threads(rank, room=room) for rank in range(2)]))


def same_findings(found, alone):
    pd.testing.assert_frame_equal(found.adjacency, alone.adjacency)
    pd.testing.assert_frame_equal(found.targets, alone.targets)
    assert found.evidence == pytest.approx(alone.evidence, rel=1e-9)
    np.testing.assert_allclose(found.responsibilities, alone.responsibilities, atol=1e-6)


@pytest.fixture(scope="module")
def drawn():
    """An odd number of rows, every other one with its label."""
    found = simulate(n_variables=3, n_samples=3000, n_regimes=3, separation=6.0, random_state=1)
    return found.X.iloc[1:], np.where(np.arange(2999) % 2, found.regimes[1:], -1)


@pytest.mark.parametrize("labels", ["none", "some"])
def test_the_search_sums_moments_over_ranks(drawn, labels):
    table, some = drawn
    dataset = Dataset.from_table(table, regimes=some if labels == "some" else None)
    c = SearchConfiguration(max_regimes=4, n_init=1, search_rows=1500)
    alone = solve(dataset, c)
    for found in on_two_ranks(lambda ranks: solve(dataset, replace(c, ranks=ranks))):
        same_findings(found, alone)
        assert found.responsibilities.shape == (2999, len(alone.targets))


def test_a_stream_is_shared_by_ranks(drawn):
    table, some = drawn
    parts = [table.assign(z=some).iloc[at : at + 700] for at in range(0, 2999, 700)]
    c = SearchConfiguration(max_regimes=4, n_init=1)

    def fit(ranks):
        stream = open_stream(parts, regimes="z", n_sample=1500, ranks=ranks)
        return stream, solve_in_parts(stream.sample, stream.parts, replace(c, ranks=ranks))

    whole, alone = fit(Ranks())
    shares = []
    for stream, found in on_two_ranks(fit):
        assert (stream.n_rows, stream.content_hash) == (whole.n_rows, whole.content_hash)
        np.testing.assert_array_equal(stream.sample.x, whole.sample.x)
        np.testing.assert_array_equal(stream.sample.row_index, whole.sample.row_index)
        same_findings(found, alone)
        shares.append(len(stream.parts))
    assert shares == [2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("density", ["linear", "nonlinear"])
def test_two_ranks_follow_the_steps_of_one_process(tmp_path, density):
    for command in (TORCHRUN, (sys.executable,)):
        subprocess.run([*command, SCRIPT, tmp_path, density], env=ALONE, check=True, capture_output=True)
    for name in ("all", "minibatch"):
        first, second, alone = (
            dict(np.load(tmp_path / f"{name}-{which}.npz")) for which in ("0-of-2", "1-of-2", "0-of-1")
        )
        assert {k: v.tobytes() for k, v in first.items()} == {k: v.tobytes() for k, v in second.items()}
        for key, value in alone.items():
            np.testing.assert_allclose(first[key], value, atol=1e-4, err_msg=f"{name} {key}")


@pytest.fixture
def table(tmp_path):
    drawn = simulate(n_variables=3, n_samples=400, n_regimes=3, random_state=1)
    drawn.X.assign(condition=drawn.regimes).to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


def fit_command(table: Path, out: Path, *more: str) -> list[str]:
    known = ["--regime-column", "condition", "--solver", "gradient", "--n-init", "1"]
    return ["-m", "latentdo", "fit", str(table), "--out", str(out), *known, *more]


@pytest.mark.slow
def test_the_command_line_fits_on_two_ranks(table, tmp_path):
    for out, program in (("alone", (sys.executable,)), ("both", TORCHRUN)):
        command = [*program, *fit_command(table, tmp_path / out)]
        done = subprocess.run(command, env=ALONE, check=True, capture_output=True, text=True)
        assert done.stdout.count("report.html") == 1
    alone, both = (pd.read_csv(tmp_path / out / "adjacency.csv") for out in ("alone", "both"))
    pd.testing.assert_frame_equal(alone, both)
    assert not (tmp_path / "both.unfinished").exists()


@pytest.mark.slow
def test_a_rank_that_dies_ends_the_run_with_a_checkpoint(tmp_path):
    died, undisturbed = tmp_path / "died", tmp_path / "undisturbed"
    for folder in (died, undisturbed):
        folder.mkdir()

    def run(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
        command = [*TORCHRUN, SCRIPT, folder, "solve", *more]
        return subprocess.run(command, env=ALONE, check=False, capture_output=True, text=True)

    first = run(died, "die")
    assert first.returncode != 0
    assert re.search(
        r"(has died|torchrun ends this process).* is kept, and the same command with --resume", first.stderr
    )
    assert not (died / "result.json").exists()
    assert list(died.iterdir())  # the checkpoint
    assert run(died).returncode == 0
    assert run(undisturbed).returncode == 0
    resumed, straight = (json.loads((folder / "result.json").read_text()) for folder in (died, undisturbed))
    assert resumed == straight


@pytest.fixture
def rows(tmp_path):
    """More rows than are searched at once, some with labels."""
    found = simulate(n_variables=3, n_samples=24_000, n_regimes=3, separation=6.0, random_state=1)
    labels = np.where(np.arange(24_000) % 3 == 0, found.regimes, -1)
    found.X.assign(condition=labels).to_parquet(tmp_path / "rows.parquet", row_group_size=5000)
    return tmp_path / "rows.parquet"


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--stream",), ("--stream", "--regime-column", "condition")])
def test_the_command_line_searches_on_two_ranks(rows, tmp_path, options):
    more = [*options, "--density", "linear", "--max-regimes", "4", "--n-init", "1"]
    more += [] if "--regime-column" in options else ["--drop", "condition"]
    found = []
    for out, program in (("alone", (sys.executable,)), ("both", TORCHRUN)):
        command = [*program, "-m", "latentdo", "fit", str(rows), "--out", str(tmp_path / out), *more]
        done = subprocess.run(command, env=ALONE, check=True, capture_output=True, text=True)
        assert done.stdout.count("report.html") == 1
        found.append(LatentInterventionDAG.load(tmp_path / out / "model.safetensors").result_)
    same_findings(found[1], found[0])


@pytest.mark.slow
def test_a_rank_that_dies_ends_the_search(rows, tmp_path):
    command = [*TORCHRUN, SCRIPT, tmp_path, "search", "die"]
    done = subprocess.run(command, env=ALONE, check=False, capture_output=True, text=True, timeout=600)
    assert done.returncode != 0
    assert re.search(r"error: (another of the 2 processes of this fit has died|torchrun ends)", done.stderr)
    assert not (tmp_path / "out").exists()
