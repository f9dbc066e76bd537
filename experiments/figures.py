"""Figures from the store, with error bars: each function returns a figure, or None if its cells were not run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import store
from experiments.paper import MECHANISMS, PAIRS, TABLE_1, VARIANTS, Row
from latentdo.plots import PALETTE, REFERENCE_COLOUR

Maker = Callable[[Path | None], Figure | None]


def _curve(ax: Axes, frame: pd.DataFrame, x: str, y: str, label: str, colour: str) -> None:
    """Means over graphs with standard errors."""
    groups = frame.groupby(x)[y]
    mean, error = groups.mean(), groups.std(ddof=1).fillna(0) / np.sqrt(groups.size())
    ax.errorbar(mean.index, mean, error, label=label, color=colour, marker="o", ms=4, capsize=3, lw=1.3)


def _two_panels(x_label: str, *y_labels: str) -> tuple[Figure, Axes, Axes]:
    """A figure with two axes side by side."""
    figure = Figure(figsize=(9, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    for ax, label in zip((left, right), y_labels, strict=True):
        ax.set_xlabel(x_label)
        ax.set_ylabel(label)
    return figure, left, right


def table1(folder: Path | None = None) -> Figure | None:
    """Ours without labels beside the paper's two extremes and the empty graph."""
    frame = store.ours(folder)
    latent = frame[frame["variant"] == "latent"]
    if latent.empty:
        return None
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    ax = figure.subplots()
    measured = {row: store.of_row(latent, row) for row in store.ROWS}
    series = {
        "empty graph": (REFERENCE_COLOUR, [_mean_error(measured[row]["true_edges"]) for row in store.ROWS]),
        "paper, no labels": (PALETTE[4], [_published(row, "latent") for row in store.ROWS]),
        "paper, everything known": (PALETTE[5], [_published(row, "known") for row in store.ROWS]),
        "latentdo, no labels": (PALETTE[0], [_mean_error(measured[row]["hamming"]) for row in store.ROWS]),
    }
    place = np.arange(len(store.ROWS))
    for i, (label, (colour, values)) in enumerate(series.items()):
        means, errors = np.array(values).T
        ax.bar(place + (i - 1.5) * 0.2, means, 0.2, yerr=errors, label=label, color=colour, capsize=2)
    names = [f"{r.intervention[:5]}.\n{MECHANISMS[r.mechanism]}\ne={r.edges_per_node}" for r in store.ROWS]
    ax.set_xticks(place, names, fontsize=7)
    ax.set_ylabel("Hamming distance")
    figure.legend(fontsize=8, frameon=False, ncols=4, loc="outside upper center")
    return figure


def _mean_error(values: pd.Series) -> tuple[float, float]:
    """Mean and standard error; no bar where nothing was run."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return (float(values.mean()), float(error)) if len(values) else (np.nan, 0.0)


def _published(row: Row, variant: str) -> tuple[float, float]:
    """The paper's mean, and its standard deviation over ten graphs turned into a standard error."""
    mean, deviation = TABLE_1[row][VARIANTS.index(variant)]
    return mean, deviation / np.sqrt(10)


def pairs(folder: Path | None = None) -> Figure | None:
    """Counts of distances 0, 1 and 2 over the cause-effect pairs."""
    frame = store.read("pairs", folder)
    if frame.empty:
        return None
    figure = Figure(figsize=(9, 2.6), layout="constrained")
    for ax, (variant, counts) in zip(figure.subplots(1, 4, sharey=True), PAIRS.items(), strict=True):
        found = frame.loc[frame["variant"] == variant, "hamming"]
        ax.bar(
            np.arange(3) - 0.2,
            [(found == k).sum() for k in range(3)],
            0.4,
            color=PALETTE[0],
            label="latentdo",
        )
        ax.bar(np.arange(3) + 0.2, counts, 0.4, color=PALETTE[4], label="paper")
        ax.set_title(variant, fontsize=10)
        ax.set_xticks([0, 1, 2])
        ax.set_xlabel("Hamming distance")
    figure.axes[0].set_ylabel("pairs")
    figure.axes[0].legend(fontsize=8, frameon=False)
    return figure


def semi_supervised(folder: Path | None = None) -> Figure | None:
    """Distance and assignment of unlabelled rows against the share of labels."""
    frame = store.read("semi_supervised", folder)
    if frame.empty:
        return None
    figure, left, right = _two_panels(
        "share of rows with labels", "Hamming distance", "ARI of rows without label"
    )
    for colour, (setting, cells) in zip(PALETTE, frame.groupby("setting", sort=False), strict=False):
        _curve(left, cells, "fraction", "hamming", setting, colour)
        _curve(right, cells.dropna(subset="ari_unlabelled"), "fraction", "ari_unlabelled", setting, colour)
    # room, so that a curve at zero is seen to be there
    left.set_ylim(-0.2, max(2.0, 1.1 * frame["hamming"].max()))
    right.set_ylim(0, 1.05)
    left.legend(fontsize=8, frameon=False)
    return figure


def scaling(folder: Path | None = None) -> Figure | None:
    """Seconds and memory against the number of variables."""
    frame = store.read("scaling", folder)
    if frame.empty:
        return None
    figure, left, right = _two_panels("variables", "seconds", "peak memory (MB)")
    for colour, (variant, cells) in zip(PALETTE, frame.groupby("variant", sort=False), strict=False):
        _curve(left, cells, "n_variables", "fit_seconds", variant, colour)
        _curve(right, cells, "n_variables", "memory_mb", variant, colour)
    left.set_yscale("log")
    right.set_ylim(bottom=0)
    left.legend(fontsize=8, frameon=False)
    return figure


def overlap(folder: Path | None = None) -> Figure | None:
    """Distance and assignments against the separation of overlapping regimes."""
    frame = store.read("overlap", folder)
    frame = frame[frame["n_variables"] == 10] if len(frame) else frame
    if frame.empty:
        return None
    figure, left, right = _two_panels("separation (standard deviations)", "Hamming distance", "ARI")
    names = {
        "latent": "latent",
        "two_step": "mixture, then search",
        "observational": "one regime",
        "oracle": "true regimes",
    }
    for colour, (column, label) in zip(PALETTE, names.items(), strict=False):
        _curve(left, frame, "separation", column, label, colour)
    names = {"ari": "latent", "ari_two_step": "mixture", "ari_ceiling": "true parameters"}
    for colour, (column, label) in zip(PALETTE, names.items(), strict=False):
        _curve(right, frame, "separation", column, label, colour)
    for ax in (left, right):
        ax.legend(fontsize=8, frameon=False)
    return figure


FIGURES: dict[str, Maker] = {
    "table1": table1,
    "pairs": pairs,
    "semi-supervised": semi_supervised,
    "scaling": scaling,
    "overlap": overlap,
}
