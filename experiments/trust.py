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

WAYS: Final = ("plain", "shown")

NAMED: Final[Mapping[str, str]] = {
    "common-factor": "hidden factor",
    "measurement-error": "measurement error",
    "dependent-rows": "dependent rows",
    "detection-limit": "shared values",
    "zeros": "shared values",
    "rounding": "shared values",
    "copies": "near copies",
    "log-normal": "skew",
}
"""The check that names each violation."""

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
    doubtful = frame["failed"].map(_doubtful)
    bounds = [0.0, *EDGES, 1.0]
    header = (
        "probability",
        *(f"{way}, {name}" for name in ("no doubt", "in doubt") for way in WAYS),
    )
    about = "Share of pairs that are arrows, of how many, beside the mean probability."
    found = Table("trust_reliability", about, header)
    parts = [part[f"{way}_bins"] for part in (frame[~doubtful], frame[doubtful]) for way in WAYS]
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
    header = ("tables", "how many", "checks that failed", "plain", "shown", "tables wrong above 0.9",
              "Brier skill", "log skill", "seconds")  # fmt: skip
    found = Table("trust", "Checks, and right arrows among those with p > 0.9.", header)
    for (preset, size, density, table), part in frame.groupby(
        ["preset", "size", "density", "table"], sort=False
    ):
        failed = part["failed"].str.split(";").explode().value_counts().drop("none", errors="ignore")
        found.rows.append(
            (
                f"{table}, {preset} {_size(size)}, {density}",
                f"{len(part)}",
                ", ".join(f"{name} {count}" for name, count in failed.items()) or "none",
                *(_right(part, way) for way in WAYS),
                f"{_wrong(part).sum()}",
                *(f"{skill:.2f}" for skill in _skills(part)),
                f"{part['fit_processor'].mean():.1f}",
            )
        )
    return found


def totals(frame: pd.DataFrame) -> Table:
    """What all tables say together: alarms where nothing is wrong, power where something is, promises."""
    found = Table("trust_total", "Checks and promises on all tables.", ("of all these tables", "count"))
    if frame.empty:
        return found
    clean = ~frame["table"].isin(NAMED)
    good, bad = frame[clean], frame[~clean]
    alarms = good["failed"].str.split(";").explode().value_counts().drop("none", errors="ignore")
    often = ", ".join(f"{name} {count}" for name, count in alarms.items()) or "none"
    kept, said = good["shown_right"].sum(), good["plain_right"].sum()
    found.rows.extend(
        [
            ("clean tables", f"{len(good)}"),
            ("clean tables in which a check fails, by check", often),
            ("of the clean tables in doubt, the fit has a wrong arrow above 0.9", _wrong_fits(good)),
            ("right arrows above 0.9 on clean tables: shown, of plain", f"{kept:.0f} of {said:.0f}"),
            ("arrows shown above 0.9 on clean tables that are right", _right(good, "shown")),
        ]
    )
    for name, part in bad.groupby("table", sort=False):
        own = part["failed"].str.split(";").map(lambda failed, check=NAMED[name]: check in failed)
        doubted = part["failed"].map(_doubtful).sum()
        found.rows.append(
            (
                f"{name}: named by its own check; arrows in doubt by any",
                f"{own.sum()} of {len(part)}; {doubted} of {len(part)}",
            )
        )
    silent = ~bad["failed"].map(_doubtful)
    found.rows.extend(
        [
            ("arrows above 0.9 on violated tables that are right, plain", _right(bad, "plain")),
            ("arrows above 0.9 on violated tables that are right, shown", _right(bad, "shown")),
            ("violated tables that show a wrong arrow above 0.9", f"{_wrong(bad).sum()} of {len(bad)}"),
            ("of these, no check puts any arrow in doubt", f"{(_wrong(bad) & silent).sum()}"),
            (
                "calibration error of pairs between 0.05 and 0.9, plain",
                f"{calibration_error(frame, 'plain'):.3f}",
            ),
            (
                "calibration error of pairs between 0.05 and 0.9, shown",
                f"{calibration_error(frame, 'shown'):.3f}",
            ),
        ]
    )
    return found


def calibration_error(frame: pd.DataFrame, way: str) -> float:
    """Mean distance of probabilities from shares of arrows, over bins from the second to the last but one."""
    count, total, right = _pooled(frame[f"{way}_bins"])[1:-1].T
    return float(np.abs(total - right).sum() / max(count.sum(), 1.0))


def _size(size: str) -> str:
    known = {"benchmark": "3000 x 8", "five": "1500 x 5"}
    return known.get(size, size)


def _right(part: pd.DataFrame, way: str) -> str:
    sure = part[f"{way}_sure"].sum()
    return f"{part[f'{way}_right'].sum():.0f} of {sure:.0f}" if sure else "none shown"


def _wrong(part: pd.DataFrame) -> pd.Series:
    return part["shown_right"] < part["shown_sure"]


def _wrong_fits(good: pd.DataFrame) -> str:
    some = good[good["failed"].map(_doubtful)]
    return f"{(some['plain_right'] < some['plain_sure']).sum()} of {len(some)}"


def _doubtful(failed: str) -> bool:
    return bool(set(failed.split(";")) & set(DOUBTS))


def _skills(part: pd.DataFrame) -> tuple[float, float]:
    """By how much what is shown beats the share of arrows: squared error, and logarithm."""
    count, _, right = _pooled(part["shown_bins"]).sum(axis=0)
    share = right / count
    entropy = -(share * np.log(share) + (1.0 - share) * np.log(1.0 - share))
    brier, logarithm = part["shown_brier"].mean(), -part["shown_log"].mean()
    return 1.0 - brier / (share * (1.0 - share)), 1.0 - logarithm / entropy


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
