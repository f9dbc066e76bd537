"""Tables, figures and pages from the stored cells: ``python -m experiments.report``.

Tables are Markdown and LaTeX; the pages are docs/comparison.md and the marked tables of others (:mod:`.blocks`).

Nothing is run and no figure is typed in: a sentence about a win or a loss is in the page only while the store says so.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from experiments import blocks, kinds, rivals, runner, scatter, store, summaries
from experiments.baselines.registry import METHODS, SLOW
from experiments.cytometry import GRAPHS
from experiments.duels import Duel, duels, opponent
from experiments.figures import FIGURES
from experiments.paper import TABLE_1, Row, published
from experiments.tables import Table

ROOT = Path(__file__).parents[1]

REASONS = {
    ("nonadditive", 1): (
        "regimes and graph are found together, and where noise passes through a network evidence is unreliable for "
        "both (a few tables are badly wrong); labels from another source, even poor ones, do not depend on it"
    ),
    ("nonadditive", 4): "as on sparse graphs, evidence is unreliable where noise passes through a network",
    ("nonlinear", 1): "an edge whose network is dead or nearly constant leaves nothing to see",
    ("nonlinear", 4): (
        "missing edges: nearly constant networks, and networks that are not fitted to the noise floor"
    ),
    ("linear", 1): "single edges",
    ("linear", 4): "weights near zero leave nothing to see; the oracle misses the same edges",
}
"""Why a row is lost, where it is; the lab books have the experiments behind these sentences."""


OUTSIDE = (
    (
        "Realistic tables",
        "field",
        (
            "`python -m experiments.rivals --rows linear-gaussian,linear-laplace,smooth-student`: 8 variables, 3000 "
            "rows, 4 hidden regimes, as much noise as signal. Ours are the stored fits of `experiments.field`."
        ),
    ),
    (
        "Small tables",
        "small",
        (
            "`python -m experiments.rivals --rows small-5,small-8,switches`: the sizes that CMM, the nearest relative, "
            "was published with (5 or 8 variables, 500 or 1000 rows). In `switches` three variables have a hidden "
            "switch each, independent of one another, as CMM assumes and we do not."
        ),
    ),
    (
        "Rows in order of time",
        "time",
        (
            "`python -m experiments.rivals --rows incidents,incidents-small`: a service with incidents, "
            "autocorrelated noise and daily cycles; 15 metrics over two weeks, and 4 metrics over 400 minutes. Ours on "
            "the former are the stored fits of `experiments.together`."
        ),
    ),
)
MIXED = (
    "`python -m experiments.kinds --rows mixed --methods kinds,classes --rivals-python "
    ".venv-baselines-kinds/bin/python`: binary columns, counts and categories beside measurements. The rival is "
    "StepMix (latent classes, their number by the Schwarz criterion), then greedy equivalence search of pgmpy with a "
    "conditional Gaussian score."
)


def promises(found: list[Duel], folder: Path | None = None) -> list[str]:
    """What the plan asked for, counted."""
    ours = store.ours(folder)
    latent = ours[ours["variant"] == "latent"]
    below = [
        row
        for row in store.ROWS
        if store.distances(store.of_row(latent, row)).mean() <= published(row, "known")
    ]
    free = [duel for duel in found if METHODS[duel.method].label_free]
    dense = {duel.row for duel in free if duel.row.edges_per_node == 4}
    ahead = [row for row in dense if all(d.difference.mean() > 0 for d in free if d.row == row)]
    labelled = [duel for duel in found if opponent(duel.method) != "latent"]
    rows = {duel.row for duel in labelled}
    own = [duel for duel in labelled if METHODS[duel.method].own]
    foreign = [duel for duel in labelled if not METHODS[duel.method].own]
    return [
        f"Without labels at or below the paper's *known* column in **{len(below)} of {len(TABLE_1)}** rows (goal 11).",
        (
            f"Behind some label-free method in **{len(_lost(free))} of {len({d.row for d in free})}** rows that were "
            f"compared (goal 0){_list(_lost(free))}. Behind another package, not our own search in another role: "
            f"**{len(_lost([duel for duel in free if not METHODS[duel.method].own]))}**."
        ),
        (
            f"Ahead of all of them in **{len(ahead)} of {len(dense)}** dense rows that were compared (goal all)"
            f"{_list([row for row in store.ROWS if row in dense - set(ahead)], 'level or behind')}."
        ),
        (
            "With labels, ahead of or level with every labelled peer in "
            f"**{len(rows) - len(_lost(foreign))} of {len(rows)}** rows that were compared (goal 10 of {len(TABLE_1)})"
            f"{_list(_lost(foreign))}."
        ),
        (
            "With labels, behind our own exact linear search, given the same labels, in "
            f"**{len(_lost(own))}** rows: on those graphs `density='linear'` is the better choice, although the data "
            "are not linear."
        ),
    ]


def _lost(found: list[Duel]) -> list[Row]:
    return [row for row in store.ROWS if any(duel.lost for duel in found if duel.row == row)]


def _list(rows: list[Row], word: str = "behind") -> str:
    return f"; {word} in {', '.join(f'*{row}*' for row in rows)}" if rows else ""


def _sorted(found: Iterable[Duel]) -> list[Duel]:
    """The clearest loss first."""
    return sorted(found, key=lambda duel: duel.difference.mean())


def losses(found: list[Duel], folder: Path | None = None) -> list[str]:
    """Every row in which some method is closer to the truth on average, by how much, and why."""
    favoured = duels(folder, favoured=True)
    out = []
    for row in store.ROWS:
        lost = _sorted(duel for duel in found if duel.row == row and duel.lost)
        known = {duel.method for duel in lost}
        only = _sorted(d for d in favoured if d.row == row and d.lost and d.method not in known)
        if lost or only:
            names = "; ".join(map(str, lost))
            if only:
                names += ". " if lost else ""
                names += f"Only if undirected edges are turned by the truth: {'; '.join(map(str, only))}"
            out.append(f"**{row}**: {names}. Why: {REASONS[row.mechanism, row.edges_per_node]}.")
    ours = store.ours(folder)
    worse = []
    for row in store.ROWS:
        cells = store.of_row(ours[ours["variant"] == "observational"], row)
        if len(cells) and cells["hamming"].mean() > published(row, "observational"):
            worse.append(f"{row} {cells['hamming'].mean():.1f} (paper {published(row, 'observational'):.1f})")
    if worse:
        out.append(
            f"**One regime for a mixture** (`max_regimes=1` on all rows): {'; '.join(worse)}. Why: a mixture of "
            "interventions makes nearly everything dependent, and an exact search finds it all; one that stops early "
            "stays nearer the empty graph. Neither is useful: do not say that there is one regime where there are more."
        )
    frame = store.read("cytometry", folder)
    if len(frame):
        mine = frame[(frame["method"] == "latentdo") & (frame["variant"] == "latent")]
        better = frame[(frame["method"] != "latentdo") & (frame["shd_17"] < mine["shd_17"].min())]
        names = ", ".join(
            f"{METHODS[m].title if m in METHODS else m} {s:.0f}"
            for m, s in better[["method", "shd_17"]].to_numpy()
        )
        if names:
            out.append(
                f"**Cytometry**, SHD to the 17-edge graph: our best model without labels has "
                f"{mine['shd_17'].min():.0f}; closer are {names}. Why: real conditions change many mechanisms at "
                "once and overlap, our models keep far more edges than the reference has, and an empty or sparse "
                "answer is hard to beat against a graph of which much cannot be seen in these data."
            )
    return out


def rival_losses(folder: Path | None = None) -> list[str]:
    """Rows outside the paper's benchmark on which some method is closer to the truth on average than ours."""
    frame = store.read("rivals", folder)
    out = []
    for row in rivals.ROWS if len(frame) else ():
        cells = rivals.paired(frame)
        cells = cells[(cells["row"] == row) & cells["ours"].notna() & cells["hamming"].notna()]
        lost = []
        for name, part in cells.groupby("method", sort=False):
            method, column = METHODS[str(name)], "hamming"
            if part["hamming"].mean() >= part["ours"].mean():
                column = "hamming_favourable"  # as kind to the peer as can be
            if part[column].mean() < part["ours"].mean():
                words = " if undirected edges are turned by the truth" if column != "hamming" else ""
                lost.append(
                    f"{method.title} (told {method.told}) {part[column].mean():.1f} against our "
                    f"{part['ours'].mean():.1f} on {len(part)} {'table' if len(part) == 1 else 'tables'}{words}"
                )
        if lost:
            out.append(f"**{row}**: {'; '.join(lost)}.")
    return out


def absent(folder: Path | None = None) -> list[str]:
    """Methods without any answer, with the stored reason, and those of which another implementation stands in."""
    peers = store.peers(folder)
    out = []
    other = store.read("rivals", folder)
    for name, method in METHODS.items():
        cells = peers[peers["method"] == name]
        if cells.empty and (method.own or (len(other) and (other["method"] == name).any())):
            continue
        if cells.empty:
            why = f" (many minutes of one core a table; `--methods {name}`)" if name in SLOW else ""
            out.append(f"{method.title}: installed, not run{why}.")
        elif not (cells["status"] == "ok").any():
            out.append(
                f"{method.title}: no answer in {len(cells)} cells ({cells['message'].mode().iloc[0]})."
            )
    out.append(
        "CAM: the R package was taken off CRAN, and the port in `dodiscover` has no release on PyPI; ours is a small "
        "one written from the paper (`experiments/baselines/cam.py`)."
    )
    out.append("DCDI-DSF: no package; our flow model with known targets stands in.")
    return out


def provenance(folder: Path | None = None) -> str:
    """Commits, dates and machine of the stored cells."""
    cells = pd.concat(
        [
            store.read(name, folder)
            for name in (
                "table1",
                "nonlinear_latent",
                "cytometry",
                "semi_supervised",
                "larger",
                "settings",
                "solvers",
            )
        ]
    )
    if "versions" not in cells:
        return runner.machine()
    texts = cells["versions"].dropna()
    commits = sorted({text.split()[0] for text in texts if not text.startswith("python")})
    dates = cells["date"].dropna()
    return f"commits {', '.join(commits)}; {dates.min()} to {dates.max()}; {runner.machine()}"


def page(folder: Path | None = None, pictures: Iterable[str] = ()) -> tuple[str, list[Table]]:
    """The text of docs/comparison.md, and its tables."""
    found = duels(folder)
    tables: list[Table] = []
    lines: list[str] = []

    def show(table: Table) -> None:
        if table.rows:
            tables.append(table)
            lines.extend([table.caption, "", table.markdown(), ""])
        else:
            lines.extend(["Not run.", ""])

    def picture(name: str, words: str) -> None:
        if name in pictures:
            lines.extend([f"![{words}](images/experiments-{name}.png)", ""])

    def heading(text: str) -> None:
        lines.extend([f"## {text}", ""])

    lines += [
        "# Comparison",
        "",
        "<!-- Written by `python -m experiments.report` from experiments/results: change those, not this page. -->",
        "",
        (
            "The paper's benchmark, 10 variables and 10 000 rows, with everything else that could be installed. Every "
            "method gets the same tables, so that differences are paired over graphs, and is told what it assumes and "
            "no more: the column *told* marks methods that need labels. Time limit: 180 s of one core per cell."
        ),
        "",
        f"Stored cells: {provenance(folder)}. [How to run all this](experiments.md).",
        "",
    ]
    heading("What we lose, and why")
    lines += [*(f"- {line}" for line in [*losses(found, folder), *rival_losses(folder)]), ""]
    heading("Table 1")
    show(summaries.headline(folder))
    lines += [
        "Bold: below the paper's mean of the same column. Latent cells of nonlinear rows: `nonlinear_latent`.",
        "",
    ]
    picture("table1", "Hamming distances of the twelve rows")
    heading("What was promised")
    sizes = [len(duel.difference) for duel in found] or [0]
    lines += [
        f"A comparison counts the graphs that both sides have, {min(sizes)} to {max(sizes)} per row.",
        "",
    ]
    lines += [*(f"- {line}" for line in promises(found, folder)), ""]
    heading("Methods without labels")
    show(summaries.methods("label-free", [m for m in METHODS if METHODS[m].label_free], ("latent",), folder))
    heading("Methods with labels")
    named = [m for m in METHODS if not METHODS[m].label_free]
    show(summaries.methods("labelled", named, ("latent", "unknown", "known"), folder))
    heading("Graph by graph")
    show(summaries.scores(found))
    other = store.read("rivals", folder)
    for title, family, words in OUTSIDE:
        heading(title)
        lines += [words, ""]
        show(rivals.summary(other, family) if len(other) else Table(family, "", ()))
    heading("Columns of every kind")
    lines += [MIXED, ""]
    mixed = store.read("kinds", folder)
    show(kinds.summary(mixed[mixed["seed"] < store.DEVELOPMENT]) if len(mixed) else Table("kinds", "", ()))
    heading("Time and memory")
    show(summaries.costs(folder))
    picture("scaling", "Seconds and memory against the number of variables")
    heading("Cytometry")
    lines += [
        (
            "The paper's Table 2 with columns matched by name, on the 5846 cells of DCDI. Published on the 17-edge "
            "graph (SHD): DCDI-G 36, DCDI-DSF 33, CAM 35, IGSP 18, GIES 38, FCI 35. The paper's own rows are not "
            "comparable: the script published with it matches columns by position."
        ),
        "",
    ]
    for graph in GRAPHS:
        show(summaries.cytometry(graph, folder))
    heading("Cause-effect pairs")
    show(summaries.pairs(folder))
    picture("pairs", "Histogram of distances over 60 pairs")
    heading("Some labels")
    show(summaries.semi_supervised(folder))
    picture("semi-supervised", "Distance and ARI against the share of labels")
    heading("Larger tables, several targets")
    show(summaries.larger(folder))
    heading("Other interventions")
    show(summaries.settings(folder))
    heading("Our gradient solver")
    show(summaries.solvers("gradient", folder))
    heading("The published algorithm")
    show(summaries.solvers("paper", folder))
    heading("Sensitivity")
    show(summaries.sensitivity(folder))
    heading("Overlapping regimes")
    picture("overlap", "Distance and ARI against separation")
    heading("Simulated interventions")
    picture("scatter", "Nine panels of simulated pairs")
    heading("Peers that could not be compared")
    lines += [f"- {line}" for line in absent(folder)]
    return "\n".join(lines).rstrip() + "\n", tables


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--store", type=Path, default=None, help="folder of the stored cells")
    parser.add_argument("--out", type=Path, default=ROOT, help="root under which docs and tables are written")
    options = parser.parse_args()
    images = options.out / "docs" / "images"
    images.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, make in {**FIGURES, "scatter": lambda _: scatter.figure()}.items():
        figure = make(options.store)
        if figure is not None:
            figure.savefig(images / f"experiments-{name}.png", dpi=80, metadata={"Software": None})
            drawn.append(name)
    text, tables = page(options.store, drawn)
    (options.out / "docs" / "comparison.md").write_text(text, "utf-8")
    blocks.write(options.out, options.store)
    for table in tables:
        table.write(options.out / "experiments" / "tables")
    print(f"wrote docs/comparison.md, {len(tables)} tables and {len(drawn)} figures")


if __name__ == "__main__":
    main()
