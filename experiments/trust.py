"""Checks and probabilities where assumptions hold and where they do not: false alarms, power, promises kept.

``python -m experiments.trust --tables linear-gaussian,common-factor --seeds 1000:1010`` fits tables of the field
benchmark, clean rows by their name and violations by theirs, and prints which checks fail, how many of the arrows that
are claimed with more than 90 % are right (plain posterior, averaged over half-samples, and as shown, capped where a
hidden cause is hinted at), and what resampling and checks cost. With ``--columns`` only those checks run that need no
fit, in a fraction of a second per table. Seeds from 1000 up are for development.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd

from experiments import runner
from experiments.field import ROWS, SMALL, SURE, estimator
from experiments.tables import Table
from latentdo import simulate
from latentdo.checks import capped, check_fit
from latentdo.checks.columns import check_atoms, check_copies, check_skew
from latentdo.checks.neighbours import check_neighbours
from latentdo.checks.residuals import Residuals
from latentdo.checks.rivals import Lines, moments_of
from latentdo.data import Dataset
from latentdo.notices import as_part
from latentdo.scm import Simulation
from latentdo.scm.violations import VIOLATIONS
from latentdo.solvers.search.driver import SearchConfiguration, make_problem
from latentdo.solvers.search.resampling import average

COUNTS: Final = (4, 8, 16)
"""Numbers of half-samples that are compared; lines with Gaussian noise only, where all are cheap."""


def cell(table: str, density: str, seed: int, small: bool) -> Mapping[str, Any]:
    """Fit one table, check it, and average its probabilities."""
    data = _drawn(table, seed, small=small)
    model = estimator(density)
    with warnings.catch_warnings(), as_part():
        warnings.simplefilter("ignore")
        began = time.process_time()
        model.fit(data.X)
        seconds = time.process_time() - began
        dataset = Dataset.from_table(data.X)
    result = model.result_
    began = time.process_time()
    found = check_fit(result, dataset, model._fitted, 0)
    checking = time.process_time() - began
    truth, off = data.adjacency.to_numpy(), ~np.eye(len(data.adjacency), dtype=bool)
    out: dict[str, Any] = {
        "failed": ";".join(one.check for one in found.checks if one.failed) or "none",
        "hints": len(found.hints),
        "fit_processor": round(seconds, 2),
        "check_processor": round(checking, 2),
        **_promises("plain", truth[off], result.edge_probabilities[off]),
    }
    if density == "linear/gaussian":
        problem = make_problem(dataset.spread(0), SearchConfiguration())
        for count in COUNTS:
            began = time.process_time()
            edges = average(problem, result.model, count, seed).edges
            out[f"half_processor_{count}"] = round(time.process_time() - began, 2)
            out |= _promises(f"half{count}", truth[off], edges[off])
            if count == COUNTS[0]:
                shown = capped(replace(result, edge_probabilities=edges), found.hints)
                out |= _promises("shown", truth[off], shown[off])
    return out


def _drawn(table: str, seed: int, *, small: bool, **more: Any) -> Simulation:
    """A clean row of the field benchmark, or a violation, by name."""
    about = ROWS.get(table, {"violation": table})
    # Rows that depend on each other can be seen to only in their order.
    about = about | ({"shuffle": False} if table == "dependent-rows" else {})
    return simulate(preset="field", random_state=seed, **about | more | (SMALL if small else {}))


def _promises(name: str, truth: Any, probability: Any) -> dict[str, Any]:
    sure = probability > SURE
    return {
        f"{name}_sure": int(sure.sum()),
        f"{name}_right": int(truth[sure].sum()),
        f"{name}_brier": float(((probability - truth) ** 2).mean()),
    }


def column_failures(table: str, seed: int) -> list[str]:
    """Which checks fail that look at columns and the order of rows alone."""
    # Rows in order are sorted by regime, which makes neighbours alike by itself: one regime for that check.
    data = _drawn(table, seed, small=False, **({"n_regimes": 1} if table == "dependent-rows" else {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset = Dataset.from_table(data.X)
    x, z, names = dataset.x, dataset.z, dataset.columns
    everyone = np.ones((len(z), 1))
    alone = np.zeros((z.shape[1], z.shape[1]), dtype=np.int8)
    residuals = Residuals.of(Lines(z.shape[1]).fit(moments_of(z, everyone), alone), z, everyone)
    checks = (
        check_skew(x, names, dataset.preprocessor),
        check_copies(z, names),
        check_atoms(x, dataset.atoms, names),
        check_neighbours(residuals, everyone, names, ""),
    )
    return [one.check for one in checks if one.failed]


def column_summary(tables: list[str], seeds: list[int]) -> Table:
    """How often each of them fails."""
    names = ("skew", "near copies", "shared values", "dependent rows")
    found = Table("trust_columns", "Tables on which a check fails.", ("table", "tables", *names))
    for table in tables:
        failed = [name for seed in seeds for name in column_failures(table, seed)]
        found.rows.append((table, f"{len(seeds)}", *(f"{failed.count(name)}" for name in names)))
    return found


def summary(frame: pd.DataFrame) -> Table:
    """One line per kind of table and density."""
    names = [name.removesuffix("_sure") for name in frame.columns if name.endswith("_sure")]
    header = (
        "table",
        "density",
        "tables",
        "checks that failed",
        *(f"{name} right (Brier)" for name in names),
    )
    found = Table("trust", "Checks, and arrows with p > 0.9.", (*header, "fit s", "checks s", "4 halves s"))
    for (table, density), part in frame.groupby(["table", "density"], sort=False):
        failed = part["failed"].str.split(";").explode().value_counts().drop("none", errors="ignore")
        promises = [
            f"{part[f'{name}_right'].sum():.0f}/{part[f'{name}_sure'].sum():.0f} ({part[f'{name}_brier'].mean():.3f})"
            for name in names
        ]
        spent = [part[name].mean() for name in ("fit_processor", "check_processor")]
        halves = part["half_processor_4"].mean() if "half_processor_4" in part else float("nan")
        words = ", ".join(f"{name} {count}" for name, count in failed.items()) or "none"
        found.rows.append(
            (
                str(table),
                str(density),
                f"{len(part)}",
                words,
                *promises,
                *(f"{one:.1f}" for one in [*spent, halves]),
            )
        )
    return found


def main() -> None:
    usual = "linear-gaussian,soft,rows-600," + ",".join(VIOLATIONS)
    options = runner.arguments(__doc__, tables=usual, densities="linear/gaussian", columns=False)
    seeds = [1000] if options.smoke else runner.seeds_of(options.seeds, range(1000, 1003))
    tables = ["linear-gaussian"] if options.smoke else options.tables.split(",")
    if unknown := [name for name in tables if name not in ROWS and name not in VIOLATIONS]:
        raise SystemExit(f"--tables {unknown[0]}: there are {', '.join([*ROWS, *VIOLATIONS])}")
    if options.columns:
        print(column_summary(tables, seeds).markdown())
        return
    cells = [
        {"table": table, "density": density, "seed": seed, "small": options.smoke}
        for seed in seeds
        for table in tables
        for density in options.densities.split(",")
    ]
    frame = runner.run("trust", cells, cell, n_jobs=options.n_jobs, store=options.store)
    print(f"\n{runner.machine()}; seeds {seeds[0]} to {seeds[-1]}\n\n{summary(frame).markdown()}")


if __name__ == "__main__":
    main()
