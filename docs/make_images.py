"""Draw the pictures of README and documentation from a real fit: ``python docs/make_images.py [overview ...]``."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from latentdo import LatentInterventionDAG, plots, simulate
from latentdo.report import render_report
from latentdo.scm import simulate_snapshots

IMAGES = Path(__file__).parent / "images"


def overview() -> Figure:
    """One table in; graph, regimes and targets out: the service of ``latentdo demo``."""
    X = simulate_snapshots(random_state=1).X
    result = LatentInterventionDAG("linear", noise="gaussian", random_state=0).fit(X).result_
    cause, effect = "queries", "disk_wait"
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    before, after, graph = figure.subplots(1, 3, width_ratios=[1, 1.5, 1.2])
    before.scatter(X[cause], X[effect], s=6, color=plots.REFERENCE_COLOUR, alpha=0.5, linewidths=0)
    before.set_xlabel(cause)
    before.set_ylabel(effect)
    before.set_title("What you have: rows without labels", fontsize=11)
    plots.pair(result, X, cause, effect, after, max_rows=2000)
    after.set_title("Found: when something broke, and what", fontsize=11)
    plots.graph(result, graph)
    graph.set_title("Found: the causal graph", fontsize=11)
    return figure


def paper() -> Figure:
    """The paper's figure of simulated pairs: one row a mechanism, one column a kind of intervention."""
    figure = Figure(figsize=(10, 9), layout="constrained")
    panels = figure.subplots(3, 3)
    for row, mechanism in zip(panels, ("linear", "nonlinear", "nonadditive"), strict=True):
        for ax, intervention in zip(row, ("atomic", "stochastic", "imperfect"), strict=True):
            plots.paper_scatter(mechanism, intervention, ax, random_state=3)
            ax.set_title(f"{mechanism}, {intervention}", fontsize=10)
            ax.get_legend().remove()
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def gallery() -> Figure:
    """What else ``latentdo.plots`` draws, from one small fit, and the calibration of stored experiments."""
    data = simulate(
        n_variables=5, edges_per_node=1.2, n_samples=900, preset="dcdi", separation=4, random_state=2
    )
    result = LatentInterventionDAG(max_regimes=8, random_state=0).fit(data.X).result_
    stored = pd.read_csv(Path(__file__).parents[1] / "experiments/results/calibration.csv")
    truth = np.concatenate([np.array(list(text[1:]), dtype=float) for text in stored["truth"]])
    forecast = np.concatenate([np.array(text.split(), dtype=float) for text in stored["probabilities"]])
    figure = Figure(figsize=(12, 7.4), layout="constrained")
    (a, b, c), (d, e, f) = figure.subplots(2, 3)
    for ax, draw, title in (
        (a, plots.graph, "graph"),
        (b, plots.regimes, "regimes"),
        (c, plots.responsibilities, "responsibilities"),
        (d, plots.effects, "effects"),
        (e, plots.evidence, "evidence"),
    ):
        draw(result, ax)
        ax.set_title(title)
    plots.calibration(truth, forecast, f)
    f.set_title(f"calibration ({f.get_title()})", fontsize=10)
    return figure


def report(path: Path) -> None:
    """Photograph a report, where there is a browser (Debian: apt-get install chromium)."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("no chromium: the picture of the report stays as it is")
        return
    from playwright.sync_api import sync_playwright

    data = simulate(n_variables=8, edges_per_node=1.5, n_samples=3000, random_state=6)
    X = data.X.rename(columns=dict(zip(data.X.columns, "ABCDEFGH", strict=True)))
    result = LatentInterventionDAG(max_regimes=12, random_state=0).fit(X).result_
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        page_file = Path(folder) / "report.html"
        page_file.write_text(render_report(result, X), encoding="utf-8")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 900})
        page.goto(page_file.as_uri())
        most = int(result.model.topology.adjacency.sum(axis=0).argmax())
        page.locator(f'svg.graph [data-node="{most}"]').click()
        page.locator('label[for="show-2"]').click()
        page.locator("#graph-title").locator("xpath=..").screenshot(path=path)
        browser.close()


def main(names: Sequence[str]) -> None:
    """Write the pictures that are named, or all of them; the same versions give the same bytes."""
    IMAGES.mkdir(exist_ok=True)
    for draw in (overview, paper, gallery):
        if not names or draw.__name__ in names:
            draw().savefig(IMAGES / f"{draw.__name__}.png", dpi=110, metadata={"Software": None})
    if not names or "report" in names:
        report(IMAGES / "report.png")


if __name__ == "__main__":
    main(sys.argv[1:])
