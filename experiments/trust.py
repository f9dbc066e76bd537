"""Checks and probabilities where assumptions hold and where they do not: false alarms, power, promises kept.

``python -m experiments.trust --tables linear-gaussian,common-factor --seeds 1000:1010`` fits tables of the field
benchmark, clean rows by their name and violations by theirs, and prints which checks fail, and how many of the arrows
that are claimed with more than 90 % are right: by the plain posterior, and as shown, averaged over half-samples and
no surer than checks that failed allow. ``--size five`` makes tables smaller, 1500 rows of 5 variables. ``--costs``
prints what checks and half-samples cost instead, ``--reliability`` what probabilities in the store were worth. Seeds
from 1000 up are for development.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pandas as pd

from experiments import runner
from experiments.field import ROWS, SMALL, SURE, estimator
from experiments.tables import Table
from latentdo import simulate
from latentdo.checks import DOUBTS
from latentdo.notices import as_part
from latentdo.scm import Simulation
from latentdo.scm.violations import VIOLATIONS

SIZES: Final[Mapping[str, Mapping[str, Any]]] = {
    "benchmark": {},
    "five": {"n_variables": 5, "n_samples": 1500},
    "smoke": SMALL,
}
"""Arguments of ``simulate``: tables of the field benchmark, or smaller ones."""

OTHERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "field": {},
    "dcdi": {"n_regimes": 4, "edges_per_node": 1.5},
    "paper": {"edges_per_node": 1.5},
}
"""Presets, and how they are made as dense as the field benchmark."""

EDGES: Final = (0.05, 0.25, 0.45, 0.58, 0.62, 0.75, 0.9)
"""Bounds of the probabilities that are compared with shares of arrows; what is capped has its own."""

RIVALS: Final = {"factor": "hidden factor", "errors": "measurement error"}

FLOOR: Final = 1e-3
"""Probability below which the log score no longer falls: one true arrow in a thousand is what tables can tell."""

ORDERED: Final = "dependent-rows"
"""Rows that depend on each other can be seen to only in their order, in which regimes follow one another too."""


def cell(table: str, preset: str, density: str, size: str, seed: int) -> Mapping[str, Any]:
    """Fit one table as users do."""
    data = _drawn(table, seed, size, preset)
    model = estimator(density)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.process_time()
        model.fit(data.X)
        seconds = time.process_time() - began
    result = model.result_
    truth, off = data.adjacency.to_numpy(), ~np.eye(len(data.adjacency), dtype=bool)
    plain = model.model_edge_probabilities_.to_numpy()
    gains = {one["check"]: one["statistic"] for one in result.checks}
    return {
        "failed": ";".join(one["check"] for one in result.checks if one["failed"]) or "none",
        "hints": len(result.hints),
        **{f"{name}_gain": round(gains[check], 1) for name, check in RIVALS.items() if check in gains},
        "density_found": result.density,
        "fit_processor": round(seconds, 2),
        **_promises("plain", truth[off], plain[off]),
        **_promises("shown", truth[off], result.edge_probabilities[off]),
    }


def _drawn(table: str, seed: int, size: str, preset: str) -> Simulation:
    """A clean row of the field benchmark, or a violation, by name; with ``-sorted`` after it, sorted by regime."""
    name = table.removesuffix("-sorted")
    about = ROWS.get(name, {"violation": name})
    about = about | ({"shuffle": False} if name == ORDERED or name != table else {})
    return simulate(preset=preset, random_state=seed, **about | OTHERS[preset] | SIZES[size])


def _promises(name: str, truth: Any, probability: Any) -> dict[str, Any]:
    sure = probability > SURE
    place = np.searchsorted(EDGES, probability)
    bins = [(place == at).nonzero()[0] for at in range(len(EDGES) + 1)]
    return {
        f"{name}_sure": int(sure.sum()),
        f"{name}_right": int(truth[sure].sum()),
        f"{name}_brier": float(((probability - truth) ** 2).mean()),
        f"{name}_log": float(
            np.log(np.clip(np.where(truth == 1, probability, 1.0 - probability), FLOOR, 1.0)).mean()
        ),
        f"{name}_bins": ";".join(f"{at.size}/{probability[at].sum():.3f}/{truth[at].sum()}" for at in bins),
    }


def reliability(frame: pd.DataFrame) -> Table:
    """Of pairs said with some probability, how many are arrows: plain and shown, where arrows are in doubt and not."""
    kept = frame[frame["shown_bins"].notna()]
    doubtful = kept["failed"].str.split(";").map(lambda names: bool(set(names) & set(DOUBTS)))
    bounds = [0.0, *EDGES, 1.0]
    header = (
        "probability",
        *(f"{way}, {name}" for name in ("no doubt", "in doubt") for way in ("plain", "shown")),
    )
    about = "Share of pairs that are arrows, of how many, beside the mean probability."
    found = Table("trust_reliability", about, header)
    parts = [part[f"{way}_bins"] for part in (kept[~doubtful], kept[doubtful]) for way in ("plain", "shown")]
    counts = np.array([_pooled(part) for part in parts])
    for at, (low, high) in enumerate(pairwise(bounds)):
        shares = [
            f"{right / n:.2f} of {n:.0f} ({total / n:.2f})" if n else "-" for n, total, right in counts[:, at]
        ]
        found.rows.append((f"{low:g} to {high:g}", *shares))
    return found


def _pooled(cells: pd.Series) -> Any:
    """Pairs, their probabilities added up, and arrows among them, by bin ``[bins, 3]``."""
    found = np.zeros((len(EDGES) + 1, 3))
    for cell in cells:
        found += [[float(number) for number in one.split("/")] for one in cell.split(";")]
    return found


def costs(tables: Mapping[str, pd.DataFrame]) -> Table:
    """Processor seconds of fits alone, with checks, and with checks and four half-samples, after a fit to warm up."""
    header = ("table", "density", "fit", "with checks", "with four half-samples", "halves", "all")
    found = Table("trust_costs", "Processor seconds, and how many times those of less.", header)
    for name, X in tables.items():
        for density in ("linear/gaussian", "auto"):
            spent = [_seconds(X, density, way) for way in ("part", "checks", "halves")]
            ratios = [spent[2] / spent[1], spent[2] / spent[0]]
            found.rows.append(
                (name, density, *(f"{one:.1f}" for one in spent), *(f"{one:.2f}" for one in ratios))
            )
    return found


def _seconds(X: pd.DataFrame, density: str, way: str) -> float:
    model = estimator(density).set_params(resamples=4 if way == "halves" else 0)
    with warnings.catch_warnings(), as_part() if way == "part" else nullcontext():
        warnings.simplefilter("ignore")
        began = time.process_time()
        model.fit(X)
        return time.process_time() - began


def summary(frame: pd.DataFrame) -> Table:
    """One line per kind of table and density."""
    names = [name.removesuffix("_sure") for name in frame.columns if name.endswith("_sure")]
    header = (
        "table",
        "density",
        "tables",
        "checks that failed",
        *(f"{name} right (Brier)" for name in names),
        "tables wrong above 0.9",
    )
    found = Table("trust", "Checks, and arrows with p > 0.9.", (*header, "fit s"))
    for (table, density), part in frame.groupby(["table", "density"], sort=False):
        failed = part["failed"].str.split(";").explode().value_counts().drop("none", errors="ignore")
        promises = [
            f"{part[f'{name}_right'].sum():.0f}/{part[f'{name}_sure'].sum():.0f} ({part[f'{name}_brier'].mean():.3f})"
            for name in names
        ]
        words = ", ".join(f"{name} {count}" for name, count in failed.items()) or "none"
        found.rows.append(
            (
                str(table),
                str(density),
                f"{len(part)}",
                words,
                *promises,
                f"{(part['shown_right'] < part['shown_sure']).sum()}",
                f"{part['fit_processor'].mean():.1f}",
            )
        )
    return found


def main() -> None:
    usual = "linear-gaussian,soft,rows-600," + ",".join(VIOLATIONS)
    options = runner.arguments(
        __doc__,
        tables=usual,
        presets="field",
        densities="linear/gaussian",
        size="benchmark",
        costs=False,
        reliability=False,
    )
    seeds = [1000] if options.smoke else runner.seeds_of(options.seeds, range(1000, 1003))
    if options.costs:
        warm_up = simulate(preset="field", random_state=seeds[0], **SMALL).X
        costs({"warm-up": warm_up})
        tables = {}
        for seed in seeds:
            tables[f"field {seed}"] = simulate(preset="field", random_state=seed).X
            tables[f"smooth {seed}"] = simulate(preset="field", mechanism="smooth", random_state=seed).X
            tables[f"default {seed}"] = simulate(random_state=seed).X
        print(costs(tables).markdown())
        return
    if options.reliability:
        stored = pd.read_csv((options.store or runner.RESULTS) / "trust.csv")
        print(reliability(stored[stored["seed"].isin(seeds)]).markdown())
        return
    names = ["linear-gaussian"] if options.smoke else options.tables.split(",")
    known = [*ROWS, *VIOLATIONS]
    if unknown := [name for name in names if name.removesuffix("-sorted") not in known]:
        raise SystemExit(f"--tables {unknown[0]}: there are {', '.join(known)}, each with -sorted after it")
    cells = [
        {
            "table": table,
            "preset": preset,
            "density": density,
            "size": "smoke" if options.smoke else options.size,
            "seed": seed,
        }
        for seed in seeds
        for table in names
        for preset in options.presets.split(",")
        for density in options.densities.split(",")
    ]
    frame = runner.run("trust", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh)
    print(f"\n{runner.machine()}; seeds {seeds[0]} to {seeds[-1]}\n\n{summary(frame).markdown()}")


if __name__ == "__main__":
    main()
