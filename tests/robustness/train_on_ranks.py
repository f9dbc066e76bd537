"""Run by torchrun (or alone), because ranks need processes of their own.

``python train_on_ranks.py FOLDER linear|nonlinear`` takes twenty steps of a gradient fit and writes the parameters that
they lead to. ``... FOLDER solve [die]`` runs a whole fit with a checkpoint, in which the second rank dies if asked to;
``... FOLDER search [die]`` streams ``FOLDER/rows.parquet`` with the command line.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from latentdo import simulate
from latentdo.cli import main as command_line
from latentdo.data import Dataset
from latentdo.model.variational.supervision import Supervision
from latentdo.ranks import Ranks, joined_ranks
from latentdo.solvers.gradient import GradientConfiguration, solve
from latentdo.solvers.gradient.build import build, training_rows
from latentdo.solvers.gradient.loop import Trainer
from latentdo.solvers.search import out_of_core

STEPS = 20


def train(density: str, batch_size: int | None) -> dict[str, np.ndarray]:
    """Parameters after twenty steps from the same start."""
    drawn = simulate(n_variables=3, n_samples=301, n_regimes=3, random_state=1)
    c = GradientConfiguration(
        density=density,
        max_regimes=3,
        first_steps=STEPS,
        final_steps=0,
        max_subproblems=1,
        refresh=STEPS,
        batch_size=batch_size,
    )
    some = np.where(np.arange(len(drawn.regimes)) % 2, drawn.regimes, -1)
    dataset = Dataset.from_table(drawn.X, regimes=some)
    supervision = Supervision.from_dataset(dataset, c.max_regimes)
    torch.manual_seed(0)
    problem = training_rows(dataset.z, supervision, c, np.random.default_rng(0))
    mixture = build(dataset.n_variables, supervision, c).to(problem.x.dtype)
    trainer = Trainer(mixture, problem, c)
    state, _ = trainer.run(trainer.initial_state())
    return {name: value.numpy().copy() for name, value in state.model.items()}


def whole_fit(folder: Path, ranks: Ranks, *, die: bool) -> None:
    """Fit with a checkpoint that is written only if a rank is lost."""
    drawn = simulate(n_variables=3, n_samples=301, n_regimes=3, random_state=1)
    c = GradientConfiguration(
        density="nonlinear",
        max_regimes=3,
        first_steps=60,
        steps=20,
        final_steps=20,
        max_subproblems=2,
        refresh=10,
        propose=False,
        checkpoint=folder / "state",
        checkpoint_seconds=1e9,
    )
    chunks = 0

    def progress(_: object) -> None:
        nonlocal chunks
        chunks += 1
        if die and ranks.rank == 1 and chunks == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # so few steps
        result = solve(Dataset.from_table(drawn.X, regimes=drawn.regimes), c, progress)
    if ranks.is_first:
        found = {"evidence": result.evidence, "adjacency": result.adjacency.to_numpy().tolist()}
        (folder / "result.json").write_text(json.dumps(found))


def search(folder: Path, *, die: bool) -> int:
    """Stream on the command line; the second rank dies at its first pass over all rows."""
    if die and Ranks.started().rank == 1:
        out_of_core.one_pass = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    options = ["--drop", "condition", "--density", "linear", "--max-regimes", "4", "--n-init", "1"]
    return command_line(
        ["fit", str(folder / "rows.parquet"), "--stream", "--out", str(folder / "out"), *options]
    )


def main(folder: Path, what: str, *, die: bool) -> None:
    torch.set_num_threads(1)
    if what == "search":
        sys.exit(search(folder, die=die))
    with joined_ranks() as ranks:
        if what == "solve":
            whole_fit(folder, ranks, die=die)
            return
        for name, batch_size in (("all", None), ("minibatch", 101)):
            np.savez(folder / f"{name}-{ranks.rank}-of-{ranks.size}.npz", **train(what, batch_size))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], die="die" in sys.argv[3:])
