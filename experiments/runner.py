"""Grids of cells: run in parallel, store each finished cell as one row, continue where a run stopped."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import csv
import hashlib
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

import latentdo
from latentdo.cluster import compute_on
from latentdo.files import write_atomically

RESULTS = Path(__file__).parent / "results"
UNINTERESTING = {"key", "version", "versions", "date"}
Cell = Mapping[str, Any]


def cell_key(cell: Cell) -> str:
    """Short hash of a cell's configuration: the identity under which it is stored."""
    return hashlib.sha256(json.dumps(dict(cell), sort_keys=True).encode()).hexdigest()[:12]


def run(
    name: str,
    cells: Iterable[Cell],
    function: Callable[..., Mapping[str, Any]],
    *,
    n_jobs: int = 2,
    store: Path | None = None,
    fresh: bool = False,
) -> pd.DataFrame:
    """Run ``function(**cell)`` for every cell that is not stored yet, or for all if ``fresh``; one row per cell.

    Rows are appended as they finish, so an interrupted run loses only the cells in flight. The last row of a cell
    counts.
    """
    cells = list(cells)
    path = (store or RESULTS) / f"{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    _drop_torn_row(path)
    done = pd.read_csv(path, dtype={"key": str}) if path.exists() else pd.DataFrame({"key": []})
    stored = done[done["key"].isin({cell_key(cell) for cell in cells})]
    todo = [cell for cell in cells if fresh or cell_key(cell) not in set(stored["key"])]
    print(f"{name}: {len(cells)} cells, {len(todo)} to run on {n_jobs} processes", flush=True)
    if len(todo) < len(cells):
        print(_where_from(len(cells) - len(todo), stored, path), flush=True)
    began = time.perf_counter()
    jobs = (joblib.delayed(_run_cell)(function, cell) for cell in todo)
    rows = []
    for count, row in enumerate(joblib.Parallel(n_jobs=n_jobs, return_as="generator")(jobs), start=1):
        rows.append(row)
        _append(path, row)
        left = (time.perf_counter() - began) / count * (len(todo) - count)
        print(f"  {count}/{len(todo)}  {left:6.0f} s left  {_brief(row)}", flush=True)
    wanted = {cell_key(cell) for cell in cells}
    stored = pd.read_csv(path, dtype={"key": str})
    return stored[stored["key"].isin(wanted)].drop_duplicates("key", keep="last")


def _where_from(count: int, stored: pd.DataFrame, path: Path) -> str:
    """That figures are printed as they were stored, since when, and how to have them computed."""
    dates = sorted(set(stored["date"].dropna())) if "date" in stored else []
    when = f" on {dates[0]}" if len(dates) == 1 else f" from {dates[0]} to {dates[-1]}" if dates else ""
    return (
        f"  {count} of them are not computed now but read from {path.name}, where they were stored{when}; "
        "--fresh runs them again"
    )


def _run_cell(function: Callable[..., Mapping[str, Any]], cell: Cell) -> dict[str, Any]:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    forget_peak_memory()
    began = time.perf_counter()
    outcome = function(**cell)
    stamp = {"seconds": round(time.perf_counter() - began, 2), "version": latentdo.__version__}
    # What a cell measured itself (a peer in a process of its own, say) is worth more than what is seen from here.
    stamp |= {"memory_mb": peak_memory_mb(), "versions": versions(), "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    return {"key": cell_key(cell), **cell, **stamp, **outcome}


def forget_peak_memory() -> None:
    """Start the high-water mark of this process's memory afresh, where the system can (Linux)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_mb() -> float:
    """Largest resident memory of this process, in MB, libraries included."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/status").read_text().splitlines()
        (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
        return round(int(peak) / 1024, 1)
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)


@cache
def versions() -> str:
    """Commit (with a plus if its files were changed) and the libraries that decide figures."""
    root = Path(__file__).parents[1]

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    commit = git("rev-parse", "--short=10", "HEAD") or "no-repository"
    changed = "+" if git("status", "--porcelain", "--untracked-files=no", "src") else ""
    libraries = " ".join(f"{name}-{version(name)}" for name in ("numpy", "scipy", "scikit-learn", "torch"))
    return f"{commit}{changed} python-{platform.python_version()} {libraries}"


def _append(path: Path, row: Mapping[str, Any]) -> None:
    """Add a row; a new column (a newer version of the experiment) rewrites the file with it."""
    if path.exists():
        with path.open(newline="") as file:
            header = next(csv.reader(file))
        if set(row) - set(header):
            stored = pd.read_csv(path, dtype={"key": str})  # a key of digits alone is still text
            wider = pd.concat([stored, pd.DataFrame([row])])
            write_atomically(path, lambda temporary: wider.to_csv(temporary, index=False))
            return
    else:
        header = list(row)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, header)
        if file.tell() == 0:
            writer.writeheader()
        writer.writerow(row)


def _drop_torn_row(path: Path) -> None:
    """Forget a last line without an end: a full disk cut it off, and half a row would pass for a finished cell."""
    content = path.read_bytes() if path.exists() else b""
    whole = content[: content.rfind(b"\n") + 1]
    if not whole:
        path.unlink(missing_ok=True)
    elif whole != content:
        write_atomically(path, lambda temporary: temporary.write_bytes(whole))


def _brief(row: Mapping[str, Any]) -> str:
    return "  ".join(f"{name}={_short(value)}" for name, value in row.items() if name not in UNINTERESTING)


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def mean_and_error(values: pd.Series) -> str:
    """``mean ± standard error`` for tables."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{values.mean():.2f} ± {error:.2f}"


def machine() -> str:
    """One line on where figures come from."""
    return f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def arguments(description: str | None, **options: Any) -> argparse.Namespace:
    """Flags that every experiment shares, and its own with their defaults."""
    parser = argparse.ArgumentParser(description=(description or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--smoke", action="store_true", help="a tiny version that only shows that it runs")
    parser.add_argument("--seeds", default=None, help="range of seeds, for example 0:10")
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--fresh", action="store_true", help="run stored cells again; the new figures count")
    parser.add_argument("--store", type=Path, default=None, help="folder of the results")
    parser.add_argument("--dask", default=None, help="address of a Dask scheduler that runs the cells")
    for name, default in options.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(default, bool):
            parser.add_argument(flag, action="store_true")
        else:
            parser.add_argument(flag, default=default, type=type(default))
    given = parser.parse_args()
    if given.dask is not None:
        connection = contextlib.ExitStack()
        connection.enter_context(compute_on(given.dask))
        atexit.register(connection.close)
        given.n_jobs = -1
    return given


def seeds_of(text: str | None, default: Iterable[int]) -> list[int]:
    """``"0:10,100:130"`` as a list of numbers."""
    if text is None:
        return list(default)
    out: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition(":")
        out += range(int(first), int(last)) if last else [int(first)]
    return out
