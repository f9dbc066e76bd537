"""The tables of README.md and docs/results.md, each from the stored cells alone; ``blocks`` puts them there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from experiments import real as real_tables
from experiments import store, trust
from experiments.baselines.registry import METHODS
from experiments.calibration import pooled
from experiments.field import summary as field_summary
from experiments.paper import MECHANISMS, TABLE_1, Row, published
from experiments.summaries import number
from experiments.tables import Table
from latentdo import metrics

GOALS: Mapping[Row, float] = {
    Row("stochastic", "nonlinear", 1): 1.5,
    Row("stochastic", "nonadditive", 1): 1.0,
    Row("stochastic", "nonlinear", 4): 8.0,
    Row("stochastic", "nonadditive", 4): 10.0,
    Row("imperfect", "nonlinear", 1): 2.0,
    Row("imperfect", "nonadditive", 1): 1.5,
    Row("imperfect", "nonlinear", 4): 10.0,
    Row("imperfect", "nonadditive", 4): 14.0,
}
"""Distances without labels that we set ourselves before the seeds were run."""

LABELLED_GOALS = {1: 1.0, 4: 4.0}
"""The same with the true regimes given, by edges per node."""


def _cells(row: Row, variant: str, preset: str, folder: Path | None) -> pd.DataFrame:
    frame = store.read("nonlinear_latent", folder)
    frame = frame[(frame["variant"] == variant) & (frame["preset"] == preset)]
    return store.of_row(frame[frame["n_samples"] == store.FULL_SIZE], row).sort_values("seed")


def _distance(cells: pd.DataFrame, goal: float) -> str:
    """Mean, standard error and every graph; bold where the goal is met."""
    values = cells["hamming"]
    if values.empty:
        return "not run"
    text = f"{values.mean():.1f}"
    if len(values) > 1:
        text += f" ± {values.std(ddof=1) / len(values) ** 0.5:.1f}"
    each = " ".join(f"{value:.0f}" for value in values)
    return f"**{text}** ({each})" if values.mean() <= goal + 1e-9 else f"{text} ({each}; missed)"


def _mean(values: pd.Series, digits: int = 2) -> str:
    return "-" if values.isna().all() else f"{values.mean():.{digits}f}"


def without_labels(preset: str, folder: Path | None = None) -> Table:
    """Every row that is not linear, ours beside the goal and the paper."""
    header = ("data", "distance, no labels", "goal", "paper latent / known", "empty graph", "ARI", "ceiling",
              "target F1", "regimes off by", "seconds")  # fmt: skip
    table = Table("nonlinear-latent", "Nonlinear data without labels", header)
    for row, goal in GOALS.items():
        cells = _cells(row, "latent", preset, folder)
        if cells.empty:
            continue
        table.rows.append(
            (
                str(row),
                _distance(cells, goal),
                f"{goal:g}",
                f"{published(row, 'latent')} / {published(row, 'known')}" if preset == "paper" else "-",
                _mean(cells["true_edges"], 1),
                _mean(cells["ari"]),
                _mean(cells["ari_ceiling"]),
                _mean(cells["target_f1"]),
                _mean(cells["regime_error"], 1),
                f"{cells['fit_seconds'].median():.0f}",
            )
        )
    return table


def with_regimes(folder: Path | None = None) -> Table:
    """The same rows with the true regimes given and their targets unknown."""
    table = Table(
        "nonlinear-unknown", "True regimes given", ("data", "distance", "goal", "paper unknown / known")
    )
    for row in GOALS:
        goal = LABELLED_GOALS[row.edges_per_node]
        paper = f"{published(row, 'unknown')} / {published(row, 'known')}"
        table.rows.append(
            (str(row), _distance(_cells(row, "unknown", "paper", folder), goal), f"{goal:g}", paper)
        )
    return table


def headline(folder: Path | None = None) -> Table:
    """Table 1 in short: all twelve rows without labels."""
    header = ("interventions", "mechanism", "edges per node", "latentdo, no labels", "paper, no labels",
              "paper, everything known", "nearest other package, no labels", "empty graph")  # fmt: skip
    table = Table("headline", "Hamming distance without labels", header)
    latent = store.ours(folder)
    latent = latent[latent["variant"] == "latent"]
    others = [name for name, method in METHODS.items() if method.label_free and not method.own]
    peers = store.peers(folder)
    peers = peers[peers["method"].isin(others)].dropna(subset="hamming")
    for row in TABLE_1:
        cells = store.of_row(latent, row)
        table.rows.append(
            (
                row.intervention,
                MECHANISMS[row.mechanism],
                str(row.edges_per_node),
                f"**{cells['hamming'].mean():.1f}**",
                f"{published(row, 'latent')}",
                f"{published(row, 'known')}",
                _nearest(store.of_row(peers, row)),
                _mean(cells["true_edges"], 1),
            )
        )
    return table


def _nearest(cells: pd.DataFrame) -> str:
    """The method with the smallest mean distance, with its name and number of graphs."""
    if cells.empty:
        return "-"
    groups = cells.groupby("method")["hamming"]
    best = str(groups.mean().idxmin())
    return f"{groups.mean()[best]:.1f} ({METHODS[best].title}; {groups.size()[best]} graphs)"


def linear(first: int, last: int, folder: Path | None = None) -> Table:
    """Linear data without labels, seeds from ``first`` to before ``last``; two bounds on the regimes where both ran."""
    frame = store.read("linear_latent", folder)
    frame = frame[(frame["seed"] >= first) & (frame["seed"] < last)]
    header = ("preset", "interventions", "edges per node", "graphs", "`max_regimes`", "Hamming", "ARI", "ceiling",
              "target F1", "regimes off by")  # fmt: skip
    table = Table("linear", "Linear data without labels", header)
    keys = ["preset", "intervention", "edges_per_node"]
    for setting, cells in frame.groupby(keys, sort=False):
        bounds = [part for _, part in cells.groupby("max_regimes")]
        distances = (f"{number(part['hamming'], 2).rsplit(' (', 1)[0]}" for part in bounds)
        table.rows.append(
            (
                *map(str, setting),
                str(cells["seed"].nunique()),
                " / ".join(f"{part['max_regimes'].iloc[0]}" for part in bounds),
                " / ".join(distances),
                *(_mean(bounds[-1][name]) for name in ("ari", "ari_ceiling", "target_f1")),
                " / ".join(_mean(part["regime_error"], 1) for part in bounds),
            )
        )
    return table


def overlap(n_variables: int, folder: Path | None = None) -> Table:
    """Regimes that overlap less and less."""
    frame = store.read("overlap", folder)
    frame = frame[frame["n_variables"] == n_variables]
    header = (
        "separation",
        "graphs",
        "latent",
        "two-step",
        "oracle",
        "observational",
        "ARI",
        "ARI two-step",
        "ceiling",
    )
    table = Table("overlap", "Overlapping regimes", header)
    for separation, cells in frame.groupby("separation"):
        distances = (number(cells[name], 2) for name in ("latent", "two_step", "oracle", "observational"))
        table.rows.append(
            (
                f"{separation:g}",
                str(len(cells)),
                *(text.rsplit(" (", 1)[0] for text in distances),
                *(_mean(cells[name]) for name in ("ari", "ari_two_step", "ari_ceiling")),
            )
        )
    return table


def false_alarms(folder: Path | None = None) -> Table:
    """How often nothing was found where there is nothing."""
    table = Table("false-alarms", "Observational tables", ("noise", "one regime found"))
    for noise, cells in store.read("false_alarms", folder).groupby("noise", sort=False):
        quiet = f"{(cells['regimes'] == 1).sum()} of {len(cells)}"
        table.rows.append((str(noise), quiet))
    return table


def field(folder: Path | None = None) -> Table:
    """Realistic tables with the default, nothing known."""
    return field_summary(store.read("field", folder))


def field_total(folder: Path | None = None) -> Table:
    """All realistic tables together, nothing known, seeds that nothing was tuned on."""
    frame = store.read("field", folder)
    table = Table("field-total", "Realistic tables, defaults, no labels", ("of realistic tables", "count"))
    if frame.empty:
        return table
    kept = (frame["density"] == "auto") & (frame["told"] == "nothing") & (frame["seed"] < store.DEVELOPMENT)
    frame = frame[kept & ~frame["small"].astype(bool)]
    nothing_happened = frame["row"].str.startswith("quiet")
    hit, quiet = frame[~nothing_happened], frame[nothing_happened]
    usual = ~hit["row"].str.startswith("variables")
    table.rows.extend(
        [
            ("graph with at most one wrong edge", f"{(hit['shd'] <= 1).sum()} of {len(hit)}"),
            ("edges above 90 % that are right", f"{hit['sure_right'].sum():.0f} of {hit['sure'].sum():.0f}"),
            ("number of regimes right", f"{hit['regimes_right'].astype(bool).sum()} of {len(hit)}"),
            ("nothing happened, and one regime is found", f"{(quiet['regimes'] == 1).sum()} of {len(quiet)}"),
            (
                "median seconds of one core, 8 variables",
                f"{hit.loc[usual, 'processor_seconds'].median():.0f}",
            ),
        ]
    )
    return table


def incidents(folder: Path | None = None) -> Table:
    """Services: incidents and their root causes, and quiet times."""
    frame = store.read("together", folder)
    header = (
        "service",
        "method",
        "tables",
        "F1 of segments",
        "root cause first",
        "graph distance",
        "one regime",
    )
    table = Table("incidents", "Two weeks of 15 metrics with 12 incidents; quiet services", header)
    if frame.empty:
        return table
    frame = frame[frame["seed"] < store.DEVELOPMENT]
    for (what, method, noise), cells in frame.groupby(["what", "method", "noise"], sort=False):
        quiet = what != "incidents"
        table.rows.append(
            (
                f"{what}, {noise}",
                "latentdo" if method == "time" else str(method),
                f"{len(cells)}",
                _mean(cells["f1"]),
                _mean(cells["root_first"]),
                _mean(cells["hamming"], 1),
                f"{(cells['regimes'] == 1).sum()} of {len(cells)}" if quiet else "",
            )
        )
    return table


KINDS = {
    "mixed": "4 measurements, 2 yes/no, 2 counts, 2 categories",
    "counts": "8 counts, unequal library sizes",
    "binary": "8 yes/no columns",
}
"""What the rows of :mod:`.kinds` are, in words."""


def kinds(folder: Path | None = None) -> Table:
    """Columns of every kind: our search without labels and with them."""
    frame = store.read("kinds", folder)
    header = (
        "columns",
        "tables",
        "wrong entries",
        "with labels",
        "empty graph",
        "regimes right",
        "ARI",
        "best possible ARI",
        "sure arrows right",
        "processor seconds",
    )
    table = Table("kinds", "Columns of every kind, five regimes, nothing known", header)
    if frame.empty:
        return table
    frame = frame[(frame["seed"] < store.DEVELOPMENT) & (frame["method"] == "kinds")]
    for row, cells in frame[frame["row"].isin(KINDS)].groupby("row", sort=False):
        latent, labelled = (cells[cells["told"] == told] for told in ("nothing", "regimes"))
        table.rows.append(
            (
                KINDS[str(row)],
                f"{len(latent)}",
                _mean(latent["hamming"], 1),
                _mean(labelled["hamming"], 1),
                _mean(latent["true_edges"], 1),
                f"{latent['regimes_right'].astype(bool).sum()} of {len(latent)}",
                _mean(latent["ari"]),
                _mean(latent["ari_true"]),
                f"{latent['sure_right'].sum():.0f} of {latent['sure'].sum():.0f}",
                f"{latent['processor_seconds'].mean():.0f}",
            )
        )
    return table


def real(folder: Path | None = None) -> Table:
    """Real tables of many variables."""
    return real_tables.summary(store.read("real", folder))


def real_pairs(folder: Path | None = None) -> Table:
    """Real pairs of columns."""
    return real_tables.pairs_summary(store.read("real", folder))


def calibration(folder: Path | None = None) -> Table:
    """Whether edge probabilities are worth more than the base rate, and than the graph itself."""
    frame = store.read("calibration", folder)
    truth, hard, probability = pooled(frame)
    table = Table(
        "calibration",
        "Edge probabilities",
        ("skill over", "Brier", "log-score", "tables", "ordered pairs", "edges among them"),
    )
    for name, reference in (("the base rate", None), ("the graph (0 or 1)", hard)):
        skills = (
            measure(truth, probability, reference=reference)
            for measure in (metrics.brier_skill, metrics.log_score_skill)
        )
        counts = (str(len(frame)), str(truth.size), f"{truth.mean():.3f}")
        table.rows.append((name, *(f"{skill:.3f}" for skill in skills), *counts))
    return table


def acyclicity(folder: Path | None = None) -> Table:
    """Three measures of acyclicity, before and after the discrete search."""
    frame = store.read("gradient_acyclicity", folder)
    header = ("measure", "edges per node", "graphs", "relaxed fit", "with search", "steps")
    table = Table("acyclicity", "Measures of acyclicity", header)
    for (measure, edges), cells in frame.groupby(["measure", "edges_per_node"], sort=False):
        relaxed, polished = (cells[cells["polish"] == polish] for polish in (False, True))
        means = (_mean(part["hamming"], 1) for part in (relaxed, polished))
        steps = f"{relaxed['steps'].mean():.0f}"
        table.rows.append((str(measure), f"{edges:g}", str(cells["seed"].nunique()), *means, steps))
    return table


def _unseen_trust(folder: Path | None) -> pd.DataFrame:
    frame = store.read("trust", folder)
    return frame if frame.empty else frame[(frame["seed"] < store.DEVELOPMENT) & (frame["size"] != "smoke")]


def trust_rows(folder: Path | None = None) -> Table:
    """Checks and sure arrows, row by row."""
    frame = _unseen_trust(folder)
    return trust.summary(frame) if len(frame) else Table("trust", "Checks", ("tables", "how many"))


def trust_totals(folder: Path | None = None) -> Table:
    """All tables together."""
    return trust.totals(_unseen_trust(folder))


def trust_reliability(folder: Path | None = None) -> Table:
    """Probabilities beside shares of arrows."""
    frame = _unseen_trust(folder)
    return trust.reliability(frame) if len(frame) else Table("trust_reliability", "", ("probability",))
