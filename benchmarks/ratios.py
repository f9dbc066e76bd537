"""How long a few fits take, as ratios to one Gaussian mixture in the same run, and whether that has become worse.

``python -m benchmarks.ratios`` measures and compares with the stored ratios (``make bench-check``); it fails if one of
them has grown by more than :data:`MARGIN`. ``--write`` stores what was measured, and fills the table of
docs/performance.md from it; a test compares that page with the store. All seconds are processor seconds of one thread,
compiled code at hand.
"""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sklearn.mixture import GaussianMixture

from latentdo import LatentInterventionDAG, simulate

STORE: Final = Path(__file__).with_suffix(".json")
PAGE: Final = Path(__file__).parents[1] / "docs" / "performance.md"
MARK: Final = re.compile(r"(<!-- speed -->\n).*?(<!-- end -->)", re.DOTALL)

MARGIN: Final = 1.5
"""Times its stored value that a ratio may reach: other jobs on the machine changed ratios by up to a third."""

_FIELD: Final = {"preset": "field"}

TABLES: Final[Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]]] = {
    "lines, Gaussian noise (asked for)": ({"random_state": 1300}, {"density": "linear", "noise": "gaussian"}),
    "the same table, defaults": ({"random_state": 1300}, {}),
    "the same, four edges per node, imperfect": (
        {"random_state": 1300, "edges_per_node": 4, "intervention": "imperfect"},
        {},
    ),
    "3000 x 8, lines, Laplace noise": (_FIELD | {"noise": "laplace", "random_state": 1301}, {}),
    "3000 x 8, curves, Gaussian noise": (_FIELD | {"mechanism": "smooth", "random_state": 1353}, {}),
    "3000 x 8, curves, gamma noise": (
        _FIELD | {"mechanism": "smooth", "noise": "gamma", "random_state": 1323},
        {},
    ),
}
"""What is simulated, and how it is fitted; the first tables are the paper's, 10 000 rows of 10 variables."""

AIMS: Final = {"`import latentdo`": (0.0, 0.2), "`latentdo --help`": (0.0, 0.5)} | {
    name: (0.0, 10.0) if "preset" in table else (3.0, 1.0) for name, (table, _) in TABLES.items()
}
"""What would be fast: so many mixtures, and so many seconds."""

COMMANDS: Final = {
    "`import latentdo`": ["-c", "import latentdo"],
    "`latentdo --help`": ["-m", "latentdo", "--help"],
}


def seconds(job: Callable[[], object]) -> float:
    """Processor seconds, those of children included."""
    began = time.process_time() + _of_children()
    job()
    return time.process_time() + _of_children() - began


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(say: Callable[[str], object] = print) -> dict[str, Any]:
    """Seconds of everything, with the machine."""
    load = os.getloadavg()[0]
    table = simulate(random_state=1300).X
    mixture = min(seconds(lambda: GaussianMixture(16, n_init=4, random_state=0).fit(table)) for _ in range(2))
    found: dict[str, float] = {"GaussianMixture(16, n_init=4)": round(mixture, 2)}
    for name, command in COMMANDS.items():
        run = [sys.executable, *command]
        found[name] = round(
            min(
                seconds(lambda run=run: subprocess.run(run, check=True, capture_output=True))
                for _ in range(3)
            ),
            2,
        )
        say(f"{name}: {found[name]} s")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small = simulate(preset="field", mechanism="smooth", n_variables=4, n_samples=500, random_state=0).X
        LatentInterventionDAG(max_regimes=3).fit(small)  # code is read from the disk
        for name, (arguments, settings) in TABLES.items():
            rows, model = simulate(**arguments).X, LatentInterventionDAG(**settings)
            found[name] = round(seconds(lambda model=model, rows=rows: model.fit(rows)), 1)
            say(f"{name}: {found[name]} s, {found[name] / mixture:.1f} mixtures")
    return {
        "machine": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "date": datetime.now(UTC).date().isoformat(),
        "load": round(load, 1),
        "seconds": found,
    }


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    names = re.findall(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return names[0] if names else platform.machine()


def ratios(found: Mapping[str, Any]) -> dict[str, float]:
    """Seconds as multiples of those of the mixture, which comes first."""
    first, *others = found["seconds"]
    return {name: found["seconds"][name] / found["seconds"][first] for name in others}


def slower(now: Mapping[str, Any], stored: Mapping[str, Any]) -> list[str]:
    """What has become slower than the margin allows, in words."""
    before = ratios(stored)
    return [
        f"{name}: {ratio:.1f} mixtures, stored are {before[name]:.1f}"
        for name, ratio in ratios(now).items()
        if name in before and ratio > MARGIN * before[name]
    ]


def fill(text: str, stored: Mapping[str, Any]) -> str:
    """The page with its table made anew."""
    first = next(iter(stored["seconds"]))
    where = f"{stored['machine']}, {stored['cores']} cores, Python {stored['python']}"
    lines = [
        f"Measured on {stored['date']}: {where}, one thread, load {stored['load']} when it began.",
        "",
        "| what | processor seconds | times the mixture | aim, in seconds |",
        "| --- | --- | --- | --- |",
        f"| `{first}`, 10 000 x 10 | {stored['seconds'][first]} | 1 | |",
    ]
    for name, ratio in ratios(stored).items():
        took, (times, more) = stored["seconds"][name], AIMS[name]
        aim = times * stored["seconds"][first] + more
        missed = " (missed)" if took > aim else ""
        lines.append(f"| {name} | {took} | {ratio:.1f} | {aim:.1f}{missed} |")
    table = "\n".join(lines)
    return MARK.sub(lambda mark: f"{mark[1]}\n{table}\n\n{mark[2]}", text)


def main(*, write: bool) -> int:
    """Measure, then store or compare."""
    now = measure()
    if write:
        STORE.write_text(json.dumps(now, indent=2) + "\n", "utf-8")
        PAGE.write_text(fill(PAGE.read_text("utf-8"), now), "utf-8")
        return 0
    found = slower(now, json.loads(STORE.read_text("utf-8")))
    print("\n".join(found) if found else f"nothing is more than {MARGIN} times as slow as stored")
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main(write="--write" in sys.argv))
