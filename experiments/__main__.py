"""Every experiment in one command: ``python -m experiments`` for a night, ``python -m experiments --smoke`` for a look.

Cells that are stored already are not run again, so this continues where it was stopped. Then
``python -m experiments.report`` makes tables, figures and docs/comparison.md.
"""

from __future__ import annotations

import runpy
import sys
import time

NIGHT: list[tuple[str, str]] = [
    ("scatter", ""),
    ("pairs", ""),
    ("table1", "--mechanisms linear"),
    ("comparison", "--seeds 0:3"),
    ("cytometry", "--variants latent,unknown,known --methods all"),
    ("semi_supervised", "--seeds 0:3"),
    ("scaling", "--seeds 0:1"),
    ("larger", "--seeds 0:3"),
    ("settings", "--seeds 0:3"),
    ("overlap", "--seeds 0:3"),
    ("sensitivity", ""),
    ("nonlinear_latent", "--variants latent,unknown --seeds 0:10"),
    ("table1", "--seeds 0:10"),
    ("linear_latent", "--seeds 0:10"),
    ("false_alarms", ""),
    ("calibration", ""),
    ("bootstrap_support", ""),
    ("diagnosis_forecast", ""),
    ("solvers", "--solvers gradient --mechanisms linear"),
    ("gradient_acyclicity", ""),
    ("solvers", "--solvers paper --mechanisms linear --seeds 0:3"),
    ("solvers", "--solvers gradient --seeds 0:2"),
    ("semi_supervised", ""),
    ("comparison", ""),
    ("comparison", "--methods sdcd,dcdi --seeds 0:2"),
    ("light_tunnel", ""),
    ("real", ""),
    ("rivals", "--seeds 0:5"),
    ("field", "--seeds 0:10"),
    ("together", "--seeds 0:10"),
    ("missing", "--seeds 0:10"),
    ("kinds", "--seeds 0:10"),
    ("trust", "--seeds 0:10"),
]
"""Modules and their arguments, what matters most first; a later line only adds the cells that an earlier one left."""


def main(arguments: list[str]) -> None:
    """Run the night's list with more arguments for all (``--smoke``, ``--n-jobs``, ``--store``)."""
    plan = {name: "" for name, _ in NIGHT}.items() if "--smoke" in arguments else NIGHT
    for name, options in plan:
        began = time.perf_counter()
        print(f"\n== experiments.{name} {options}", flush=True)
        sys.argv = [name, *options.split(), *arguments]
        runpy.run_module(f"experiments.{name}", run_name="__main__")
        print(f"== {name}: {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
