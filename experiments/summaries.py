"""The tables of docs/comparison.md, each from the stored cells alone."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments import store
from experiments.baselines.registry import METHODS
from experiments.duels import Duel, opponent
from experiments.paper import MECHANISMS, PAIRS, VARIANTS, published
from experiments.tables import Table

TOLD = {"latent": "nothing", "unknown": "regimes", "known": "regimes, targets"}


def number(values: Iterable[float], digits: int = 1) -> str:
    """``mean ± standard error (graphs)``, or a dash."""
    values = pd.Series(values, dtype=float).dropna()
    if values.empty:
        return "-"
    if len(values) == 1:
        return f"{values.iloc[0]:.{digits}f} (1)"
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.{digits}f} ± {error:.{digits}f} ({len(values)})"


def _whole(value: float) -> str:
    return "-" if pd.isna(value) else f"{value:.0f}"


def _few(values: pd.Series, expected: int) -> str:
    """Mean, with the number of graphs where some are missing."""
    if values.empty:
        return "-"
    return f"{values.mean():.1f}" + (f" ({len(values)})" if len(values) < expected else "")


def _both(cells: pd.DataFrame, expected: int) -> str:
    """Mean distance, and after a stroke the favourable one where undirected edges make a difference."""
    plain, kind = _few(store.distances(cells), expected), store.distances(cells, "hamming_favourable")
    if kind.equals(store.distances(cells).rename(kind.name)):
        return plain
    return f"{plain} / {kind.mean():.1f}"


def _groups(frame: pd.DataFrame, by: str | list[str]) -> Iterable[tuple[Any, pd.DataFrame]]:
    """Cells that belong together, in the order in which they were run; none if nothing was."""
    return frame.groupby(by, sort=False) if len(frame) else ()


def headline(folder: Path | None = None) -> Table:
    """Twelve rows: ours in every column, the paper's, the floor and the empty graph."""
    ours = store.ours(folder)
    names = [name for variant in VARIANTS for name in (variant, "paper")]
    table = Table(
        "table1",
        "Hamming distance, mean ± standard error (number of graphs), beside the paper's mean of ten graphs. Oracle: "
        "our search with regimes, targets and the order of the variables given.",
        ("data", *names, "oracle", "empty graph"),
    )
    for row in store.ROWS:
        cells = store.of_row(ours, row)
        line = [str(row)]
        for variant in VARIANTS:
            values, goal = cells.loc[cells["variant"] == variant, "hamming"], published(row, variant)
            text = number(values)
            line += [f"**{text}**" if len(values) and values.mean() < goal else text, f"{goal:.1f}"]
        line.append(number(cells.loc[cells["variant"] == "oracle", "hamming"]))
        line.append(f"{cells.drop_duplicates('seed')['true_edges'].mean():.1f}" if len(cells) else "-")
        table.rows.append(tuple(line))
    return table


def methods(name: str, chosen: list[str], variants: tuple[str, ...], folder: Path | None = None) -> Table:
    """Methods down, rows of Table 1 across; only graphs that peers were run on, and ours on the same ones."""
    ours, peers = store.ours(folder), store.peers(folder)
    peers = peers[peers["method"].isin(chosen)]
    seeds = set(peers["seed"])
    short = [
        f"{row.intervention[:5]}. {MECHANISMS[row.mechanism]} e={row.edges_per_node}" for row in store.ROWS
    ]
    table = Table(
        name,
        f"Mean Hamming distance over seeds {', '.join(map(str, sorted(seeds)))} (in brackets how many "
        "graphs, where some are missing; stop: every cell hit the time limit). An undirected edge of a peer counts as "
        "one error; after the stroke, as none if the truth has that edge in either direction.",
        ("method", "told", *short),
    )
    for variant in variants:
        mine = ours[(ours["variant"] == variant) & ours["seed"].isin(seeds)]
        values = [_few(store.distances(store.of_row(mine, row)), len(seeds)) for row in store.ROWS]
        table.rows.append((f"**latentdo, {variant}**", TOLD[variant], *(f"**{value}**" for value in values)))
    for method in chosen:
        cells = peers[peers["method"] == method]
        if cells.empty:
            continue
        values = []
        for row in store.ROWS:
            here = store.of_row(cells, row)
            stopped = len(here) > 0 and (here["status"] == "time-out").all()
            values.append("stop" if stopped else _both(here, len(seeds)))
        table.rows.append((METHODS[method].title, METHODS[method].told, *values))
    empty = ours[ours["seed"].isin(seeds)].drop_duplicates([*store.ROW, "seed"])
    values = [f"{store.of_row(empty, row)['true_edges'].mean():.1f}" for row in store.ROWS]
    table.rows.append(("empty graph", "nothing", *values))
    return table


def scores(found: list[Duel]) -> Table:
    """Graph by graph: how often ours is closer, level, further."""
    table = Table(
        "duels",
        "Graph by graph over all rows, against our column that is told no more than the method.",
        ("method", "told", "ours", "closer", "level", "further", "mean difference", "rows lost"),
    )
    for name, method in METHODS.items():
        mine = [duel for duel in found if duel.method == name]
        if not mine:
            continue
        difference = pd.concat([duel.difference for duel in mine])
        lost = "; ".join(str(duel.row) for duel in mine if duel.lost) or "none"
        counts = [(difference > 0).sum(), (difference == 0).sum(), (difference < 0).sum()]
        line = [method.title, method.told, opponent(name), *map(str, counts)]
        table.rows.append((*line, f"{difference.mean():+.1f}", lost))
    return table


def costs(folder: Path | None = None) -> Table:
    """Seconds and memory of every method, and what did not come to an end."""
    ours, peers = store.ours(folder), store.peers(folder)
    table = Table(
        "costs",
        "Median seconds (peers: processor seconds of one core; ours: wall time on a machine shared with other jobs, "
        "so too long), largest memory, and cells without an answer.",
        ("method", "cells", "seconds", "memory (MB)", "stopped", "failed"),
    )
    for variant in VARIANTS:
        for mechanism, cells in ours[ours["variant"] == variant].groupby("mechanism", sort=False):
            line = (f"**latentdo, {variant}, {mechanism}**", str(len(cells)))
            seconds, memory = f"{cells['fit_seconds'].median():.1f}", _whole(cells["memory_mb"].max())
            table.rows.append((*line, seconds, memory, "0", "0"))
    for name, method in METHODS.items():
        cells = peers[peers["method"] == name]
        if len(cells):
            bad = [str((cells["status"] == status).sum()) for status in ("time-out", "failed")]
            seconds = f"{cells['processor_seconds'].median():.1f}"
            memory = _whole(cells["memory_mb"].max())
            table.rows.append((method.title, str(len(cells)), seconds, memory, *bad))
    return table


def cytometry(graph: str, folder: Path | None = None) -> Table:
    """Table 2 against one reference graph."""
    frame = store.read("cytometry", folder)
    table = Table(
        f"cytometry-{graph}",
        f"Cytometry against the graph with {graph} edges. HD counts a reversed edge twice (it is in fn, fp and rev), "
        "SHD once; an undirected edge of a peer counts as both directions.",
        ("method", "told", "edges", "HD", "SHD", "tp", "fn", "fp", "rev", "F1"),
    )
    columns = ["edges", *(f"{name}_{graph}" for name in ("hamming", "shd", "tp", "fn", "fp", "rev"))]
    for _, cell in frame.iterrows():
        if cell["method"] == "latentdo":
            line = [f"**latentdo, {cell['intervention']} {cell['density']}**", TOLD[cell["variant"]]]
        elif cell["method"] in METHODS:
            line = [METHODS[cell["method"]].title, METHODS[cell["method"]].told]
        else:
            line = [cell["method"], "nothing"]
        if cell["status"] == "ok":
            line += [*(_whole(cell[name]) for name in columns), f"{cell[f'f1_{graph}']:.2f}"]
        else:
            line += [cell["status"], *["-"] * len(columns)]
        table.rows.append(tuple(line))
    return table


def larger(folder: Path | None = None) -> Table:
    """Twenty variables, and several targets a regime."""
    frame = store.read("larger", folder)
    header = ("variables", "targets a regime", "interventions", "e", "variant")
    table = Table(
        "larger",
        "Linear data: twenty variables, and regimes with one to three targets. Mean ± standard error (graphs).",
        (*header, *MEASURED),
    )
    keys = ["n_variables", "max_targets", "intervention", "edges_per_node", "variant"]
    for values, cells in _groups(frame, keys):
        size, targets, *rest = values
        line = (str(size), "1" if targets == 1 else f"1 to {targets}", *map(str, rest))
        table.rows.append((*line, *_measured(cells)))
    return table


def settings(folder: Path | None = None) -> Table:
    """Interventions unlike the paper's."""
    frame = store.read("settings", folder)
    table = Table(
        "settings",
        "Ten variables, stochastic (or atomic) interventions, no labels. Mean ± standard error (graphs).",
        ("interventions", "mechanism", "e", *MEASURED),
    )
    for values, cells in _groups(frame, ["setting", "mechanism", "edges_per_node"]):
        table.rows.append((*map(str, values), *_measured(cells)))
    return table


MEASURED = ("Hamming", "empty graph", "ARI", "target F1", "seconds")


def _measured(cells: pd.DataFrame) -> tuple[str, ...]:
    """What :data:`MEASURED` names."""
    means = number(cells["hamming"]), f"{cells['true_edges'].mean():.1f}"
    seconds = f"{cells['fit_seconds'].median():.0f}"
    return (*means, number(cells["ari"], 2), number(cells["target_f1"], 2), seconds)


def pairs(folder: Path | None = None) -> Table:
    """Counts of distance 0, 1 and 2 over 60 pairs."""
    frame = store.read("pairs", folder)
    table = Table("pairs", "Pairs at Hamming distance 0 / 1 / 2.", ("variant", "latentdo", "paper"))
    for variant, counts in PAIRS.items() if len(frame) else ():
        found = frame.loc[frame["variant"] == variant, "hamming"]
        ours = " / ".join(str((found == k).sum()) for k in range(3))
        table.rows.append((variant, ours, " / ".join(map(str, counts))))
    return table


def sensitivity(folder: Path | None = None) -> Table:
    """One argument changed at a time."""
    frame = store.read("sensitivity", folder)
    table = Table(
        "sensitivity",
        "Linear, stochastic, no labels, development seeds: mean Hamming distance (graphs) with one argument changed.",
        ("argument", "value", "e=1", "e=4", "regimes found (of 11)"),
    )
    for (argument, value), cells in _groups(frame, ["argument", "value"]):
        sparse, dense = (cells.loc[cells["edges_per_node"] == edges, "hamming"] for edges in (1, 4))
        shown = "" if argument == "default" else f"{value:g}"
        means = (number(sparse), number(dense), f"{cells['regimes'].mean():.1f}")
        table.rows.append((str(argument), shown, *means))
    return table


def solvers(solver: str, folder: Path | None = None) -> Table:
    """Table 1 with another solver; cells of the grid that chooses xi and gamma are on development seeds."""
    frame = store.read("solvers", folder)
    table = Table(
        solver,
        f'`solver="{solver}"`: Hamming distance, mean ± standard error (graphs), beside the paper\'s mean.',
        ("data", *(name for variant in VARIANTS for name in (variant, "paper")), "ARI, latent", "seconds"),
    )
    if frame.empty:
        return table
    frame = frame[(frame["solver"] == solver) & (frame["n_samples"] == store.FULL_SIZE)]
    frame = frame[frame["seed"] < store.DEVELOPMENT]
    presets = frame["preset"].fillna("paper") if "preset" in frame else pd.Series("paper", frame.index)
    for row, preset in product(store.ROWS, ("paper", "released")):
        cells = store.of_row(frame[presets == preset], row)
        if len(cells):
            line = [str(row) if preset == "paper" else f"{row}, as released"]
            for variant in VARIANTS:
                values = cells.loc[cells["variant"] == variant, "hamming"]
                line += [number(values), f"{published(row, variant):.1f}"]
            found = number(cells.loc[cells["variant"] == "latent", "ari"], 2)
            table.rows.append((*line, found, f"{cells['processor_seconds'].median():.0f}"))
    return table


def semi_supervised(folder: Path | None = None) -> Table:
    """The curves in figures."""
    frame = store.read("semi_supervised", folder)
    table = Table(
        "semi-supervised",
        "Linear data, one edge per node: Hamming distance / ARI of rows without a label, by the share of rows with "
        "labels.",
        ("setting", *(f"{fraction:g}" for fraction in sorted(frame["fraction"].unique())))
        if len(frame)
        else (),
    )
    for setting, cells in _groups(frame, "setting"):
        groups = cells.groupby("fraction")
        values = [f"{number(g['hamming'])} / {number(g['ari_unlabelled'], 2).split()[0]}" for _, g in groups]
        table.rows.append((str(setting), *values))
    return table
