"""One gradient fit on two processes: equal parameters, the same fit as one process, and a rank that dies."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from latentdo import simulate
from latentdo.cli import main
from latentdo.solvers.gradient.ranks import Ranks

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


def test_the_search_is_not_for_torchrun(tmp_path, monkeypatch, capsys):
    simulate(n_variables=2, n_samples=50, random_state=0).X.to_csv(tmp_path / "data.csv", index=False)
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main(["fit", str(tmp_path / "data.csv"), "--out", str(tmp_path / "out")]) == 1
    assert "torchrun is for --solver gradient" in capsys.readouterr().err


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
