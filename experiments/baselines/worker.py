"""The process in which an adapter runs: ``python -m experiments.baselines.worker module:function in out seconds``.

The limit is processor time, because wall time on a busy machine says nothing about a method; the system ends the
process when it is used up.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import resource
import sys
import time
import traceback
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from experiments.baselines.interface import Problem


def main(adapter: str, problem_file: str, answer_file: str, seconds: str, *packages: str) -> None:
    """Call the adapter; whatever happens is written down."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(float(seconds)), resource.RLIM_INFINITY))
    problem = Problem.load(Path(problem_file))
    random.seed(0)  # peers draw from global generators; this process is theirs alone
    np.random.seed(0)  # noqa: NPY002
    answer: dict[str, object] = {"status": "ok", "message": ""}
    began, processor = time.perf_counter(), time.process_time()
    try:
        module, _, name = adapter.partition(":")
        with contextlib.redirect_stdout(sys.stderr):
            graph = getattr(importlib.import_module(f"experiments.baselines.{module}"), name)(problem)
        answer["graph"] = np.asarray(graph).astype(int).tolist()
    except ModuleNotFoundError as error:
        answer |= {"status": "unavailable", "message": str(error)}
    except Exception as error:
        traceback.print_exc()
        answer |= {"status": "failed", "message": f"{type(error).__name__}: {error}"}
    answer |= {
        "fit_seconds": round(time.perf_counter() - began, 2),
        "processor_seconds": round(time.process_time() - processor, 2),
        "memory_mb": _peak_memory_mb(),
        "versions": " ".join([f"python-{sys.version.split()[0]}", *map(_version, packages)]),
    }
    Path(answer_file).write_text(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)  # some peers leave threads behind that would keep the process alive


def _peak_memory_mb() -> float:
    """Largest resident memory; the system's own count would start at that of the process which started this one."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/status").read_text().splitlines()
        (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
        return round(int(peak) / 1024, 1)
    return float("nan")


def _version(package: str) -> str:
    try:
        return f"{package}-{version(package)}"
    except PackageNotFoundError:
        return f"{package}-missing"


if __name__ == "__main__":
    main(*sys.argv[1:])
