"""The light tunnel of Gamella, Peters and Bühlmann (2025): measurements of a machine whose graph is known.

The table is not part of the package: it comes from a folder, or through the package ``causalchamber``, which downloads
it. Its licence is CC BY 4.0; cite the paper with every figure made from it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from latentdo.readers import read_csv

REFERENCE: Final = "reference"

_DATASET: Final = "lt_interventions_standard_v1"
_PREFIX: Final = "uniform_"
_LIGHTS: Final = ("red", "green", "blue", "pol_1", "pol_2")
_SENSORS: Final = {
    "v_c": "current",
    **{f"v_angle_{k}": f"angle_{k}" for k in (1, 2)},
    **{f"t_{kind}_{k}": f"{kind}_{k}" for kind in ("ir", "vis") for k in (1, 2, 3)},
}
"""Settings that are no columns, and the sensor that has each: to change one is to intervene on the sensor."""

_EXPERIMENTS: Final = {
    REFERENCE: [],
    **{f"{name}_strong": [name] for name in _LIGHTS},
    **{f"{setting}_strong": [sensor] for setting, sensor in _SENSORS.items()},
}
_VARIABLES: Final = (
    *("red", "green", "blue", "current", "pol_1", "pol_2", "angle_1", "angle_2"),
    *("ir_1", "vis_1", "ir_2", "vis_2", "ir_3", "vis_3", "l_11", "l_12", "l_21", "l_22", "l_31", "l_32"),
)
_FILES: Final = ("targets.json", "graph.csv")
_ROWS: Final = ("rows.csv.gz", "rows.csv")


@dataclass(frozen=True, eq=False)
class LightTunnel:
    """What :func:`load_light_tunnel` returns.

    Parameters
    ----------
    X : pandas.DataFrame [n, d]
        Settings of lights and polarisers, and readings of sensors.
    experiments : pandas.Series [n]
        Name of the experiment that each row comes from; ``"reference"`` is the one without an intervention.
    targets : pandas.DataFrame [n_experiments, d] of 0/1
        What each experiment changed, indexed by its name; the reference first.
    adjacency : pandas.DataFrame [d, d] of 0/1
        The physical graph, row causes column.
    """

    X: pd.DataFrame
    experiments: pd.Series[Any]
    targets: pd.DataFrame
    adjacency: pd.DataFrame


def load_light_tunnel(path: str | Path | None = None) -> LightTunnel:
    """Load the interventions of the light tunnel: 20 variables, 24 000 rows, 14 interventions.

    Parameters
    ----------
    path : str or Path, optional
        A folder with ``rows.csv.gz`` (or ``rows.csv``; a column ``experiment`` and one per variable), ``targets.json``
        (names of variables by experiment) and ``graph.csv`` (0/1, row causes column); or any other folder, in which the
        package ``causalchamber`` keeps its downloads. ``~/.cache/latentdo`` by default.

    Returns
    -------
    LightTunnel
        ``fit(data.X)`` sees no experiment; ``fit(data.X, regimes=data.experiments)`` with
        ``observational="reference"`` sees them all.

    Raises
    ------
    ImportError
        If there are no files and ``causalchamber`` is not installed.
    OSError
        If it could not download them.

    References
    ----------
    J. L. Gamella, J. Peters and P. Bühlmann. Causal chambers as a real-world physical testbed for AI methodology.
    Nature Machine Intelligence, 2025. https://doi.org/10.1038/s42256-024-00964-x
    """
    folder = Path.home() / ".cache" / "latentdo" if path is None else Path(path)
    rows = next((folder / name for name in _ROWS if (folder / name).is_file()), None)
    return _downloaded(folder) if rows is None else _from_files(rows, folder)


def _from_files(rows: Path, folder: Path) -> LightTunnel:
    absent = [name for name in _FILES if not (folder / name).is_file()]
    if absent:
        raise FileNotFoundError(f"{str(folder)!r} has {rows.name}, but no {' and no '.join(absent)}.")
    table = read_csv(rows)
    if "experiment" not in table:
        raise ValueError(f"{rows.name} has no column 'experiment', which says where each row comes from.")
    hit = json.loads((folder / "targets.json").read_text("utf-8"))
    graph = read_csv(folder / "graph.csv")
    adjacency = graph.set_index(graph.columns[0]).rename_axis(None)
    return _assembled(table.drop(columns="experiment"), table["experiment"], hit, adjacency)


def _downloaded(folder: Path) -> LightTunnel:
    """By ``causalchamber``, which needs a network the first time, and for its list of tables at every import."""
    remedy = f"give a folder with {_ROWS[0]}, {' and '.join(_FILES)}: load_light_tunnel(path)."
    try:
        from causalchamber.datasets import Dataset
        from causalchamber.ground_truth import graph
    except ModuleNotFoundError as error:
        raise ImportError(
            f"The light tunnel is not part of latentdo, and {str(folder)!r} holds no {_ROWS[0]}. Install what "
            f"downloads it (pip install causalchamber), or {remedy}"
        ) from error
    except Exception as error:  # it asks the network while it is imported
        raise OSError(f"causalchamber could not reach its tables ({error}); {remedy}") from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
        dataset = Dataset(_DATASET, root=str(folder), download=True)
        parts = {
            name: dataset.get_experiment(name=f"{_PREFIX}{name}").as_pandas_dataframe()
            for name in _EXPERIMENTS
        }
    except Exception as error:
        raise OSError(f"{_DATASET} could not be downloaded to {str(folder)!r} ({error}); {remedy}") from error
    names = list(_VARIABLES)
    X = pd.concat([part[names] for part in parts.values()], ignore_index=True).astype(np.float64)
    labels = np.repeat(list(parts), [len(part) for part in parts.values()])
    known = graph(chamber="lt", configuration="standard")
    return _assembled(X, pd.Series(labels, dtype=object), _EXPERIMENTS, known.loc[names, names])


def _assembled(
    X: pd.DataFrame, experiments: pd.Series[Any], hit: dict[str, list[str]], adjacency: pd.DataFrame
) -> LightTunnel:
    """Check that the parts speak of the same variables and experiments."""
    names = list(X.columns)
    if sorted(adjacency.index) != sorted(names) or sorted(adjacency.columns) != sorted(names):
        raise ValueError("The graph of the light tunnel does not have the variables of its rows.")
    unknown = set(experiments) - set(hit) or {name for targets in hit.values() for name in targets} - set(
        names
    )
    if unknown:
        raise ValueError(
            f"The targets of the light tunnel do not fit its rows: {', '.join(sorted(unknown))}."
        )
    order = [REFERENCE, *(name for name in hit if name != REFERENCE)]
    targets = pd.DataFrame(
        [[int(name in hit.get(one, ())) for name in names] for one in order],
        index=pd.Index(order, name="experiment"),
        columns=names,
    )
    graph = (adjacency.loc[names, names].to_numpy() != 0).astype(np.int64)
    return LightTunnel(
        X, experiments.rename("experiment"), targets, pd.DataFrame(graph, index=names, columns=names)
    )
