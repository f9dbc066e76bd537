"""Other packages outside the paper's benchmark: realistic tables, small ones, and rows in order of time.

``python -m experiments.rivals --rows linear-laplace --seeds 0:5`` runs every method that is made for such tables; each
is told what it assumes (``experiments/baselines/registry.py``). Our own figures on realistic tables and on incidents
are read from the stores of `field` and `together`; on the others our search is one of the methods. Rows called
``small`` and ``switches`` have the sizes that CMM was published with, 4 to 8 variables and 100 to 1000 rows: in the
former some rows share a hidden regime, in the latter three variables have a hidden switch each, independent of one
another, as CMM assumes. ``incidents`` are those of `together`, ``incidents-small`` are of a size that SpaceTime can
finish. A method that fails or needs more than ``--limit`` seconds of one core leaves a row that says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from experiments import runner, store
from experiments.baselines.interface import Problem
from experiments.baselines.registry import METHODS, SLOW, methods_for
from experiments.baselines.solve import solve
from experiments.comparison import installed, score
from experiments.field import ROWS as FIELD
from experiments.tables import Table
from latentdo import simulate
from latentdo.scm import simulate_service

SMALL: Final[dict[str, dict[str, int]]] = {
    "small-5": {"n_variables": 5, "n_samples": 500, "n_regimes": 3},
    "small-8": {"n_variables": 8, "n_samples": 1000, "n_regimes": 3},
}
SERVICES: Final[dict[str, dict[str, int]]] = {
    "incidents": {"n_metrics": 15, "n_minutes": 20_160, "n_incidents": 12, "n_causes": 6},
    "incidents-small": {"n_metrics": 4, "n_minutes": 400, "n_incidents": 3, "n_causes": 3},
}
ROWS: Final = {
    **dict.fromkeys(("linear-gaussian", "linear-laplace", "linear-gamma", "smooth-student"), "field"),
    **dict.fromkeys((*SMALL, "switches"), "small"),
    **dict.fromkeys(SERVICES, "time"),
}
"""Rows, and the family of tables by which methods are chosen."""


class Switched(NamedTuple):
    """A table in which some variables have a hidden switch of their own."""

    X: pd.DataFrame
    adjacency: pd.DataFrame


def switches(seed: int, *, n_variables: int = 5, n_samples: int = 1000, n_switches: int = 3) -> Switched:
    """Lines with Gaussian noise; where a variable's switch is on, its weights and level are others.

    Switches are on in half of the rows, independently of each other, so that rows share no regime but the combination.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(n_variables)
    later = np.triu(rng.random((n_variables, n_variables)) < 2 / (n_variables - 1), 1)
    truth = np.zeros((n_variables,) * 2, dtype=int)
    truth[np.ix_(order, order)] = later
    switched = rng.permutation(n_variables)[:n_switches]
    X = np.zeros((n_samples, n_variables))
    for j in order:
        weights = (
            truth[:, j] * rng.uniform(0.5, 1.5, (2, n_variables)) * rng.choice([-1, 1], (2, n_variables))
        )
        on = (rng.random(n_samples) < 0.5) if j in switched else np.zeros(n_samples, dtype=bool)
        means = np.where(on, X @ weights[1] + 3, X @ weights[0])
        X[:, j] = means + rng.normal(size=n_samples)
    names = [f"X{j + 1}" for j in range(n_variables)]
    return Switched(pd.DataFrame(X, columns=names), pd.DataFrame(truth, names, names))


def question(row: str, seed: int) -> tuple[Problem, pd.DataFrame]:
    """One table with all that may be told of it, and its graph."""
    if row == "switches":
        table = switches(seed)
        return Problem(_scaled(table.X)), table.adjacency
    if row in SERVICES:
        service = simulate_service(**SERVICES[row], noise="gaussian", random_state=seed)
        order = np.arange(len(service.X), dtype=float)
        return Problem(_scaled(service.X), time=order), service.adjacency
    data = simulate(preset="field", random_state=seed, **(FIELD[row] if row in FIELD else SMALL[row]))
    regimes = np.asarray(data.regimes)
    problem = Problem(
        X=_scaled(data.X),
        regimes=regimes,
        targets=data.targets.to_numpy(),
        observational=regimes == 0,
        n_regimes=data.n_regimes,
        density="additive" if row.startswith("smooth") else "linear",
    )
    return problem, data.adjacency


def _scaled(X: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Standardised, as the paper's tables are."""
    return np.asarray((X - X.mean()) / X.std(), dtype=np.float64)


def cell(row: str, method: str, seed: int, limit: float) -> Mapping[str, Any]:
    """One method on one table."""
    problem, truth = question(row, seed)
    return score(truth, solve(method, problem, seconds=limit))


def ours(frame: pd.DataFrame, told: str = "nothing") -> pd.DataFrame:
    """Our distances, by row and seed: from other stores where they are kept there, else from the frame."""
    parts = [frame.loc[frame["method"].isin(["latentdo", "latentdo-time"]), ["row", "seed", "hamming"]]]
    field = store.read("field")
    if len(field):
        field = field[(field["density"] == "auto") & (field["told"] == told) & ~field["small"].astype(bool)]
        parts.append(field.loc[field["row"].isin(ROWS), ["row", "seed", "hamming"]])
    service = store.read("together")
    if len(service) and told == "nothing":
        service = service[(service["what"] == "incidents") & (service["method"] == "time")]
        service = service[(service["noise"] == "gaussian") & (service["n_minutes"] == 20_160)]
        parts.append(service.assign(row="incidents")[["row", "seed", "hamming"]])
    found = pd.concat(parts).dropna()
    return found[found["seed"] < store.DEVELOPMENT].drop_duplicates(["row", "seed"], keep="last")


def paired(frame: pd.DataFrame) -> pd.DataFrame:
    """Every answer of a method beside ours on the same table, told no more; ``favourable`` turns undirected edges."""
    own = {told: ours(frame, told).rename(columns={"hamming": "ours"}) for told in ("nothing", "regimes")}
    parts = []
    for method, cells in frame.groupby("method", sort=False):
        told = "regimes" if "regimes" in METHODS[method].given else "nothing"
        if method not in {"latentdo", "latentdo-time"}:
            parts.append(cells.merge(own[told], on=["row", "seed"], how="left"))
    return pd.concat(parts) if parts else frame.assign(ours=np.nan).iloc[:0]


def summary(frame: pd.DataFrame, family: str) -> Table:
    """Methods down, rows across; ours on the same tables first."""
    rows = [row for row in ROWS if ROWS[row] == family and (frame["row"] == row).any()]
    names = {"field": "rivals-field", "small": "rivals-small", "time": "rivals-time"}
    table = Table(
        names[family],
        "Mean Hamming distance (tables). An undirected edge of a peer counts as one error; after the stroke, as none "
        "if the truth has that edge in either direction. Stop: no answer within the limit on any table.",
        ("method", "told", *rows, "seconds"),
    )
    if not rows:
        return table
    here = frame[frame["row"].isin(rows)]
    for told in ("nothing", "regimes") if family == "field" else ("nothing",):
        own = ours(frame, told)
        values = []
        for row in rows:
            seeds = set(here.loc[here["row"] == row, "seed"])
            found = own.loc[(own["row"] == row) & own["seed"].isin(seeds), "hamming"]
            values.append(f"**{found.mean():.1f} ({len(found)})**" if len(found) else "-")
        words = "order in time" if family == "time" else told
        table.rows.append(("**latentdo**", words, *values, _own_seconds(here)))
    for method in METHODS:
        cells = here[here["method"] == method]
        if cells.empty or method in {"latentdo", "latentdo-time"}:
            continue
        values = [_entry(cells[cells["row"] == row]) for row in rows]
        seconds = f"{cells['processor_seconds'].median():.1f}"
        table.rows.append((METHODS[method].title, METHODS[method].told, *values, seconds))
    empty = [
        f"{here.loc[here['row'] == row].drop_duplicates('seed')['true_edges'].mean():.1f}" for row in rows
    ]
    table.rows.append(("empty graph", "nothing", *empty, ""))
    return table


def _own_seconds(cells: pd.DataFrame) -> str:
    own = cells[cells["method"].isin(["latentdo", "latentdo-time"])]
    return f"{own['processor_seconds'].median():.1f}" if len(own) else ""


def _entry(cells: pd.DataFrame) -> str:
    if cells.empty:
        return ""
    if (cells["status"] != "ok").all():
        return "stop" if (cells["status"] == "time-out").all() else "failed"
    done = cells[cells["status"] == "ok"]
    text = f"{done['hamming'].mean():.1f}"
    if (done["hamming"] != done["hamming_favourable"]).any():
        text += f" / {done['hamming_favourable'].mean():.1f}"
    return f"{text} ({len(done)})" + (f", {len(cells) - len(done)} stopped" if len(done) < len(cells) else "")


def chosen(options: Any) -> list[tuple[str, str]]:
    """Rows, each with the methods that are made for it or were asked for."""
    rows = options.rows.split(",") if options.rows else list(ROWS)
    if unknown := [row for row in rows if row not in ROWS]:
        raise SystemExit(f"--rows {','.join(unknown)}: there are {', '.join(ROWS)}")
    asked = options.methods.split(",") if options.methods else None
    out = []
    for row in rows:
        suited = [name for name in methods_for(ROWS[row]) if name not in SLOW]
        if row == "switches":  # nothing can be told of it: there are no regimes
            suited = [name for name in suited if not METHODS[name].given]
        out += [(row, name) for name in installed([n for n in suited if asked is None or n in asked])]
    return out


def main() -> None:
    options = runner.arguments(__doc__, rows="", methods="", limit=300.0)
    seeds = [1000] if options.smoke else runner.seeds_of(options.seeds, range(5))
    pairs = [("small-5", "linear-search")] if options.smoke else chosen(options)
    cells = [
        {"row": row, "method": method, "seed": seed, "limit": options.limit}
        for seed in seeds
        for row, method in pairs
    ]
    frame = runner.run("rivals", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh)
    print(f"\n{runner.machine()}; seeds {seeds[0]} to {seeds[-1]}")
    for family in dict.fromkeys(ROWS[row] for row, _ in pairs):
        print(f"\n{summary(frame, family).markdown()}")


if __name__ == "__main__":
    main()
