"""Real measurements whose causes are known: a machine, cells under drugs, and pairs of columns.

``python -m experiments.real`` fits with defaults the light tunnel (a machine with a known graph), flow cytometry under
six and nine conditions, and the Tübingen cause-effect pairs; ``--tables light-tunnel`` takes one of them, ``--told
nothing,some,all`` says how many rows have labels (none, a fifth, all), ``--densities linear/gaussian`` fits lines with
Gaussian noise, which takes seconds. Beside every graph stand random graphs with as
many edges, which are right by chance. ``--fresh`` runs stored fits again, and ``python -m experiments.report`` puts the
tables into docs/real-data.md. No measurements but those of cytometry belong to the package: ``--data`` says where the
light tunnel lies (:func:`latentdo.datasets.load_light_tunnel`), and the pairs are those that the package ``cdt`` ships
(``make baselines``); what cannot be had is left out, with a word. A smoke run uses simulated tables of the same form.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments import runner
from experiments.baselines.solve import ROOT
from experiments.cytometry import GRAPHS
from experiments.field import SURE, estimator
from experiments.light_tunnel import DATA, gains, interventions, simulated
from experiments.tables import Table
from latentdo import LatentInterventionDAG, load_sachs, metrics
from latentdo.datasets import LightTunnel, load_light_tunnel, reference_graph
from latentdo.datasets.light_tunnel import REFERENCE

TABLES: Final = {"light-tunnel": 4000, "cytometry-6": 2000, "cytometry-9": 2000}
"""Tables with many variables, and how many of their rows are drawn."""

TOLD: Final = {"nothing": 0.0, "some": 0.2, "all": 1.0}
"""Share of rows with labels."""

PAIR_ROWS: Final = 1000
RANDOM_GRAPHS: Final = 1000
FOLDER: Final = "LATENTDO_LIGHT_TUNNEL"  # not part of a cell: where it lies does not matter
PAIRS: Final = "cdt/data/resources"
"""Where the package ``cdt`` has them, under ``site-packages``."""


def load(table: str, n_samples: int, seed: int) -> LightTunnel:
    """Rows drawn from a table, with their conditions, what these target, and the graph; simulated if so called."""
    if table == "simulated":
        whole = simulated()
    elif table == "light-tunnel":
        whole = load_light_tunnel(os.environ[FOLDER])
    else:
        cells = load_sachs("dcdi" if table == "cytometry-6" else "full", log=True)
        names = dict.fromkeys([cells.observational], REFERENCE)
        targets = cells.targets.rename(index=names)
        whole = LightTunnel(cells.X, cells.regimes.replace(names), targets, cells.adjacency)
    drawn = np.random.default_rng(seed).permutation(len(whole.X))[:n_samples]
    return replace(whole, X=whole.X.iloc[drawn], experiments=whole.experiments.iloc[drawn])


def labels(truth: LightTunnel, share: float, seed: int) -> NDArray[Any] | None:
    """Conditions of a share of the rows, None for the others."""
    if share == 0:
        return None
    hidden = np.random.default_rng(seed + 1).random(len(truth.X)) >= share
    return np.where(hidden, None, truth.experiments.to_numpy(dtype=object))


def by_chance(truth: pd.DataFrame, n_edges: int, seed: int) -> NDArray[np.int64]:
    """Distance and right edges of random acyclic graphs with as many edges; [graphs, 2]."""
    rng, d = np.random.default_rng(seed), len(truth)
    upper = np.transpose(np.triu_indices(d, 1))
    out = np.zeros((RANDOM_GRAPHS, 2), dtype=np.int64)
    for row in out:
        graph, order = np.zeros((d, d), dtype=np.int64), rng.permutation(d)
        for i, j in upper[rng.permutation(len(upper))[:n_edges]]:
            graph[order[i], order[j]] = 1
        row[:] = metrics.shd(truth.to_numpy(), graph), int((graph & truth.to_numpy()).sum())
    return out


def promises(truth: NDArray[np.int64], model: LatentInterventionDAG) -> dict[str, int]:
    """Arrows above 0.9 and how many of them are right: by the model alone, and as shown after the checks."""
    both = {"plain": model.model_edge_probabilities_, "shown": model.edge_probabilities_}
    out = {}
    for name, probabilities in both.items():
        sure = probabilities.to_numpy() > SURE
        out |= {f"{name}_sure": int(sure.sum()), f"{name}_right": int(truth[sure].sum())}
    return out


def cell(table: str, density: str, told: str, seed: int, n_samples: int) -> Mapping[str, Any]:
    """Fit one draw of rows, or one pair of columns."""
    if table.startswith("pair"):
        return pair(table, density, seed, n_samples)
    truth = load(table, n_samples, seed)
    model = estimator(density).set_params(observational=REFERENCE)
    seconds = _fit(model, truth.X, regimes=labels(truth, TOLD[told], seed))
    right, graph = truth.adjacency.to_numpy(), model.adjacency_.to_numpy()
    chance = by_chance(truth.adjacency, int(graph.sum()), seed)
    shd = metrics.shd(truth.adjacency, model.adjacency_)
    others = {}
    if table.startswith("cytometry"):
        others = {f"shd_{name}": metrics.shd(reference_graph(name), model.adjacency_) for name in GRAPHS}
    return {
        "shd": shd,
        "true_edges": int(right.sum()),
        "edges": int(graph.sum()),
        "edges_right": int((graph & right).sum()),
        "chance_shd": float(chance[:, 0].mean()),
        "chance_right": float(chance[:, 1].mean()),
        "chance_as_close": float((chance[:, 0] <= shd).mean()),
        **others,
        **promises(right, model),
        "conditions": truth.experiments.nunique(),
        "regimes": model.n_regimes_,
        "ari": metrics.adjusted_rand_index(truth.experiments, model.regimes_),
        **interventions(truth, model, gains(truth.X, model)),
        "failed": ";".join(one["check"] for one in model.result_.checks if one["failed"]) or "none",
        "density_found": model.result_.density,
        "processor_seconds": round(seconds, 1),
    }


def _fit(model: LatentInterventionDAG, X: pd.DataFrame, **known: Any) -> float:
    """Processor seconds."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, **known)
    return time.process_time() - began


def pair_files() -> Path | None:
    """The folder of the pairs, if ``make baselines`` was run."""
    return next(iter(ROOT.glob(f".venv-baselines-orders/lib/python*/site-packages/{PAIRS}")), None)


def pair(name: str, density: str, seed: int, n_samples: int) -> Mapping[str, Any]:
    """Two columns of which one causes the other: which way the arrow goes, and how sure that is."""
    folder = pair_files()
    if folder is None:
        return {"failed": "not installed"}
    table, forward = read_pair(name, folder)
    if len(table) > n_samples:
        table = table.iloc[np.random.default_rng(seed).permutation(len(table))[:n_samples]]
    model = estimator(density)
    try:
        seconds = _fit(model, table)
    except ValueError as error:
        return {"failed": f"refused: {error}".split("\n")[0]}
    truth = np.array([[0, 1], [0, 0]] if forward else [[0, 0], [1, 0]])
    graph = model.adjacency_.to_numpy()
    return {
        "rows": len(table),
        "edges": int(graph.sum()),
        "edges_right": int((graph & truth).sum()),
        **promises(truth, model),
        "regimes": model.n_regimes_,
        "failed": ";".join(one["check"] for one in model.result_.checks if one["failed"]) or "none",
        "processor_seconds": round(seconds, 1),
    }


def read_pair(name: str, folder: Path) -> tuple[pd.DataFrame, bool]:
    """The two columns of a pair, and whether the first causes the second."""
    rows = pd.read_csv(folder / "Tuebingen_pairs.csv", index_col="SampleID").loc[name]
    target = pd.read_csv(folder / "Tuebingen_targets.csv", index_col="SampleID").loc[name, "Target"]
    return pd.DataFrame({column: np.array(rows[column].split(), float) for column in "AB"}), target > 0


def summary(frame: pd.DataFrame) -> Table:
    """One line per table and amount of labels."""
    table = Table(
        "real",
        "Real tables. Distance: pairs of variables connected differently. By chance: mean of random graphs "
        "with as many edges, and how many of a thousand are as close.",
        ("table", "density", "labels", "edges", "right", "by chance", "distance", "by chance", "as close",
         "above 0.9, plain", "above 0.9, shown", "ARI", "interventions found", "target first",
         "checks that failed", "seconds"),
    )  # fmt: skip
    if frame.empty:
        return table
    order = frame.assign(place=frame["told"].map(list(TOLD).index))
    order = order[~frame["table"].str.startswith("pair")].sort_values(["table", "density", "place"])
    for one in order.to_dict("records"):
        table.rows.append(
            (
                str(one["table"]),
                str(one["density"]),
                {"nothing": "none", "some": "a fifth", "all": "all"}[one["told"]],
                f"{one['edges']:.0f} of {one['true_edges']:.0f}",
                f"{one['edges_right']:.0f}",
                f"{one['chance_right']:.1f}",
                f"{one['shd']:.0f}",
                f"{one['chance_shd']:.1f}",
                f"{1000 * one['chance_as_close']:.0f}",
                f"{one['plain_right']:.0f}/{one['plain_sure']:.0f}",
                f"{one['shown_right']:.0f}/{one['shown_sure']:.0f}",
                f"{one['ari']:.2f}",
                f"{one['own_regime']:.0f} of {one['interventions']:.0f}",
                f"{one['target_first']:.0f}",
                one["failed"].replace(";", ", "),
                f"{one['processor_seconds']:.0f}",
            )
        )
    return table


def pairs_summary(frame: pd.DataFrame) -> Table:
    """All pairs together: which way arrows go, and what sure ones are worth."""
    table = Table("real-pairs", "Cause-effect pairs, defaults, no labels.", ("of the pairs", "count"))
    if frame.empty or not frame["table"].str.startswith("pair").any():
        return table
    pairs = frame[frame["table"].str.startswith("pair")]
    fitted = pairs[pairs["edges"].notna()]
    arrows = fitted[fitted["edges"] == 1]
    clean = fitted[fitted["failed"] == "none"]
    table.rows.extend(
        [
            ("fitted, of all", f"{len(fitted)} of {len(pairs)}"),
            ("an arrow is drawn", f"{len(arrows)}"),
            ("drawn the right way", f"{arrows['edges_right'].sum():.0f} of {len(arrows)}"),
            ("some check fails", f"{len(fitted) - len(clean)}"),
            ("more than one regime", f"{(fitted['regimes'] > 1).sum()}"),
            ("above 0.9 by the model alone, right", _share(fitted, "plain")),
            ("above 0.9 as shown, right", _share(fitted, "shown")),
            ("median seconds", f"{fitted['processor_seconds'].median():.1f}"),
        ]
    )
    return table


def _share(frame: pd.DataFrame, name: str) -> str:
    return f"{frame[f'{name}_right'].sum():.0f} of {frame[f'{name}_sure'].sum():.0f}"


def cells_of(
    tables: Iterable[str], densities: Iterable[str], told: Iterable[str], seeds: Iterable[int], data: str
) -> list[dict[str, Any]]:
    """What can be run here; a word about the rest."""
    out: list[dict[str, Any]] = []
    for table in tables:
        if table == "pairs":
            folder = pair_files()
            if folder is None:
                print("pairs: left out, because `make baselines` was not run")
                continue
            names = pd.read_csv(folder / "Tuebingen_targets.csv")["SampleID"]
            out += [
                {"table": name, "density": way, "told": "nothing", "seed": seed, "n_samples": PAIR_ROWS}
                for seed in seeds
                for way in densities
                for name in names
            ]
            continue
        if table == "light-tunnel":
            try:
                load_light_tunnel(data)
                os.environ[FOLDER] = data
            except (ImportError, OSError) as error:
                print(f"light-tunnel: left out. {error} Say --data where the measurements are.")
                continue
        size = {"n_samples": TABLES.get(table, 600)}
        out += [
            {"table": table, "density": density, "told": way, "seed": seed, **size}
            for seed in seeds
            for density in densities
            for way in told
        ]
    return out


def main() -> None:
    options = runner.arguments(
        __doc__, tables=",".join([*TABLES, "pairs"]), densities="auto", told=",".join(TOLD), data=str(DATA)
    )
    if options.smoke:
        cells = cells_of(["simulated"], ["linear/gaussian"], ["all"], [0], "")
    else:
        cells = cells_of(
            options.tables.split(","),
            options.densities.split(","),
            options.told.split(","),
            runner.seeds_of(options.seeds, [0]),
            options.data,
        )
    if not cells:
        return
    frame = runner.run("real", cells, cell, n_jobs=options.n_jobs, store=options.store, fresh=options.fresh)
    print(f"\n{runner.machine()}\n\n{summary(frame).markdown()}\n\n{pairs_summary(frame).markdown()}")


if __name__ == "__main__":
    main()
