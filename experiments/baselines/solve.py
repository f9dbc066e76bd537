"""Run one method on one problem, in its own environment and process, for a limited time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.baselines.interface import Graph, Problem
from experiments.baselines.registry import METHODS

ROOT = Path(__file__).parents[2]
PATIENCE = 8
"""Wall time may be this many times the processor time allowed: other jobs share the machine."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came out: ``graph`` is None unless ``status`` is "ok"; otherwise ``message`` says why."""

    status: str
    message: str = ""
    graph: Graph | None = None
    fit_seconds: float = float("nan")
    processor_seconds: float = float("nan")
    memory_mb: float = float("nan")
    versions: str = ""


def interpreter(environment: str) -> Path:
    """Python of an environment; those of peers are made by ``make baselines``."""
    if environment == "main":
        return Path(sys.executable)
    folder = ".venv-baselines" if environment == "baselines" else f".venv-baselines-{environment}"
    return ROOT / folder / "bin" / "python"


def solve(name: str, problem: Problem, *, seconds: float = 180.0) -> Outcome:
    """Show the method what it may see, and wait for its graph, for at most so many seconds of one core."""
    method = METHODS[name]
    python = interpreter(method.environment)
    if not python.exists():
        return Outcome("unavailable", f"no environment {method.environment!r}: run `make baselines`")
    with tempfile.TemporaryDirectory() as folder:
        question, reply = Path(folder) / "problem.npz", Path(folder) / "answer.json"
        problem.showing(method.given).save(question)
        path = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        command = [python, "-m", "experiments.baselines.worker", method.adapter, question, reply]
        try:
            done = subprocess.run(
                [*command, str(seconds), *method.packages],
                cwd=folder,  # some peers leave checkpoints where they stand
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))},
                timeout=PATIENCE * seconds,
                capture_output=True,
                text=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome("time-out", f"stopped after {PATIENCE * seconds:g} s of wall time")
        if done.returncode == -signal.SIGXCPU:
            return Outcome("time-out", f"stopped after {seconds:g} s of one core", processor_seconds=seconds)
        if not reply.exists():
            return Outcome("failed", f"the process died: {done.stderr.strip()[-300:]}")
        answer = json.loads(reply.read_text())
    graph = answer.pop("graph", None)
    return Outcome(**answer, graph=None if graph is None else np.array(graph))


def favourable(true: Graph, found: Graph) -> Graph:
    """The found graph with every undirected edge turned as in the truth, where the truth has that edge."""
    undirected = (found & found.T) == 1
    out = found.copy()
    out[undirected & (true.T == 1)] = 0
    return out
