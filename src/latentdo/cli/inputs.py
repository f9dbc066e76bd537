"""From what the user typed to what the estimator takes, and the fit itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentdo.choices import DENSITY, SOLVER
from latentdo.cli.console import complain, warn
from latentdo.cli.options import EstimatorOptions, KnownOptions, ReadOptions, RowOptions
from latentdo.cli.panel import progress
from latentdo.cli.tables import find_label, read_targets

if TYPE_CHECKING:
    import pandas as pd

    from latentdo.diagnosis import Diagnosis
    from latentdo.estimator import LatentInterventionDAG

_USUAL_CONTROLS = ("0", "control")
"""Labels that count as observational if nothing is said: the estimator's default, and that of scPerturb's files."""

_PERTURBATION = "perturbation"
"""Column of ``obs`` in which scPerturb's files keep the labels."""


def gather(
    data: Path, read: ReadOptions, model: EstimatorOptions, known: KnownOptions
) -> tuple[pd.DataFrame, dict[str, Any], dict[str, Any]]:
    """The table, the arguments of the estimator, and what is known of the rows: the arguments of ``fit``."""
    from latentdo.readers.table import ReadingOptions, read_labelled

    arguments = model.given() | ({"missing": "model"} if read.missing == "model" else {})
    _check_known(known)
    about = {
        "regimes": known.regime_column,
        "groups": known.group_column,
        "time": known.time_column,
        "series": known.series_column,
        "batch": known.batch_column,
        "sample_weight": known.weight_column,
        "offset": known.offset_column,
        "ids": known.id_column,
    }
    options = ReadingOptions(**read.arguments(), kinds=arguments.get("kinds"))
    X, found = read_labelled(data, about, options)
    rows: dict[str, Any] = {**found}
    if "ids" in rows:
        X, rows = named_rows(X, rows, str(known.id_column))
    if known.regime_column is None:
        _point_out_perturbations(data)
    else:
        _add_labels(rows["regimes"].dropna().unique(), known, arguments, rows)
    if known.knowledge is not None:
        _add_knowledge(known.knowledge, list(X.columns), arguments)
    return X, arguments, rows


def gather_stream(
    data: Path, read: ReadOptions, model: EstimatorOptions, known: KnownOptions
) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """As :func:`gather` for a table that is not read at once: its place, and the arguments of ``fit_stream``."""
    from latentdo.readers.table import names_among
    from latentdo.streaming import labels_of, parts_of

    defaults = ReadOptions().arguments()
    for name, value in read.arguments().items():
        if name not in ("columns", "drop", "missing") and value != defaults[name]:
            raise ValueError(
                f"--{name.replace('_', '-')} is not for --stream, which reads Parquet files; leave it out."
            )
    for name in ("time_column", "series_column", "batch_column", "offset_column", "id_column"):
        if getattr(known, name) is not None:
            raise ValueError(
                f"--{name.replace('_', '-')} is not for --stream, which takes rows in any order. Fit as many of them "
                "as fit into memory, without --stream."
            )
    if known.weight_column is not None:
        raise ValueError(
            "--weight-column is not for --stream, which takes every row once. Fit as many rows as fit into memory, "
            "without --stream."
        )
    arguments: dict[str, Any] = {**model.given(), "missing": read.missing}
    _check_known(known)
    _, names = parts_of(data, read.columns, known.regime_column, known.group_column)
    drop = names_among(read.drop or (), names)
    absent = [name for name in drop if name not in names]
    if absent:
        raise ValueError(f"--drop names {', '.join(absent)}, but the columns are {', '.join(names)}.")
    columns = [name for name in names if name not in drop]
    rows: dict[str, Any] = {
        "columns": columns,
        "regimes": known.regime_column,
        "groups": known.group_column,
    }
    if known.regime_column is not None:
        _add_labels(labels_of(data, known.regime_column), known, arguments, rows)
    if known.knowledge is not None:
        _add_knowledge(known.knowledge, columns, arguments)
    return data, arguments, rows


def gather_rows(
    data: Path, variables: Sequence[str], read: ReadOptions, belong: RowOptions
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Rows of a table with the variables of a fit, and how they belong together, for questions about them."""
    from latentdo.readers.table import ReadingOptions, read_labelled

    given = read.arguments() | {"columns": list(variables), "drop": None, "to_fit": False}
    X, found = read_labelled(data, belong.columns(), ReadingOptions(**given))
    known: dict[str, Any] = {**found}
    return named_rows(X, known, str(belong.id_column)) if "ids" in known else (X, known)


def named_rows(X: pd.DataFrame, rows: dict[str, Any], column: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The same rows, called by the names that a column gives them, and what is known of them under these names."""
    import pandas as pd

    names = rows["ids"]
    if names.isna().any():
        raise ValueError(
            f"row {names.index[names.isna()][0]} (counted from 0) has no name in column {column!r} (--id-column)."
        )
    if names.duplicated().any():
        twice = names[names.duplicated()].iloc[0]
        raise ValueError(
            f"column {column!r} (--id-column) calls {int((names == twice).sum())} rows {twice!r}; names of rows "
            "have to differ. Rows that share something belong to --group-column, --series-column or --batch-column."
        )
    index = pd.Index(names.to_numpy(), name=column)
    known = {what: column.set_axis(index) for what, column in rows.items() if what != "ids"}
    return X.set_axis(index, axis=0), known


def _check_known(known: KnownOptions) -> None:
    if known.regime_column is None and (known.observational is not None or known.targets is not None):
        raise ValueError("--observational and --targets need --regime-column, which names the conditions.")


def _add_labels(
    found: Iterable[Any], known: KnownOptions, arguments: dict[str, Any], rows: dict[str, Any]
) -> None:
    """What the options say about conditions, in terms of the labels that occur."""
    labels = {str(label): label for label in found}
    usual = next((name for name in _USUAL_CONTROLS if name in labels), None)
    if known.observational is not None:
        arguments["observational"] = find_label(known.observational, labels, "--observational")
    elif usual is not None:
        arguments["observational"] = labels[usual]
    if known.targets is not None:
        rows["targets"] = read_targets(known.targets, labels)


def _point_out_perturbations(data: Path) -> None:
    """Labels that scPerturb's files carry are not used unless asked for; the user should know that they are there."""
    if data.suffix.lower() != ".h5ad":
        return
    from latentdo.readers.cells import read_cells

    cells = read_cells(data, backed=True)
    try:
        if _PERTURBATION in cells.obs:
            complain(
                f"note: {data.name} says what happened to its cells (obs column {_PERTURBATION!r}), which is not used; "
                f"pass --regime-column {_PERTURBATION} to use it, in part or whole."
            )
    finally:
        cells.file.close()


def _add_knowledge(path: Path, columns: list[str], arguments: dict[str, Any]) -> None:
    """Join a file of prior knowledge with the flags; the two may add to, but not replace, each other."""
    from latentdo.readers.knowledge import read_knowledge

    for name, value in read_knowledge(path, columns).items():
        if name in ("forbidden", "required"):
            arguments[name] = [*value, *arguments.get(name, ())]
        elif name in arguments:
            raise ValueError(
                f"{path} and --{name.replace('_', '-')} both say something about {name}; drop one."
            )
        else:
            arguments[name] = value


def fit_table(
    X: pd.DataFrame | Path, arguments: dict[str, Any], rows: dict[str, Any], *, silent: bool = False
) -> LatentInterventionDAG:
    """Fit with the public estimator, with a sign of life; what is only named is streamed."""
    from latentdo.estimator import LatentInterventionDAG

    estimator = LatentInterventionDAG(**arguments)
    if isinstance(X, Path):
        with progress(f"Fitting the rows of {X}", silent=silent) as step:
            return estimator.fit_stream(X, **rows, progress=step)
    groups = f" in {rows['groups'].nunique()} groups" if "groups" in rows else ""
    _say_kinds(X, arguments)
    text = f"Fitting {len(X)} rows{groups} of {X.shape[1]} variables"
    with progress(text, n_stages=_n_stages(arguments, rows), silent=silent) as step:
        estimator.fit(X, **rows, progress=step)
    return estimator


def _say_kinds(X: pd.DataFrame, arguments: dict[str, Any]) -> None:
    """Say what the columns are taken for before the fit, which may take minutes: a wrong kind can then be corrected."""
    from latentdo.data.kinds import describe_kinds, find_kinds
    from latentdo.data.table import read_columns

    values, names, given, coded = read_columns(X, None, arguments.get("kinds"), label_remedy=None)
    look_for_counts = arguments.get("transform", "none") == "none"
    if said := describe_kinds(
        find_kinds(values, names, coded, given, look_for_counts=look_for_counts), names
    ):
        warn(said)


def _n_stages(arguments: dict[str, Any], rows: dict[str, Any]) -> int | None:
    """Most entries that the linear search sends: one per start, one from the labels if there are any, and the end.

    Unknown where something else is fitted, or may be.
    """
    solver = SOLVER.resolve(arguments.get("solver", "auto")).name
    density = DENSITY.resolve(arguments.get("density", "auto"), solver)
    gaussian = arguments.get("noise", "auto") == "gaussian"
    if solver != "search" or density.search != "linear" or not gaussian:
        return None
    return int(arguments.get("n_init", 4)) + ("regimes" in rows) + 1


def diagnose_fit(
    estimator: LatentInterventionDAG, arguments: dict[str, Any], *, silent: bool = False
) -> Diagnosis:
    """Simulate and fit again, with a sign of life."""
    seed, n_jobs = arguments.get("random_state", 0), arguments.get("n_jobs", 1)
    with progress("Diagnosing", silent=silent) as step:
        return estimator.diagnose(random_state=seed, n_jobs=n_jobs, progress=step)
