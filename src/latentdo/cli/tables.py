"""Tables that the command line reads back: results, truths and known targets."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentdo.names import from_cell

if TYPE_CHECKING:
    import pandas as pd


def check_results(folder: Path, *, file_allowed: bool = False) -> None:
    """Refuse what is not a folder that ``latentdo fit`` wrote, and say what it is instead."""
    advice = "give the folder that `latentdo fit ... --out FOLDER` wrote"
    if file_allowed and folder.is_file():
        if folder.suffix != ".safetensors":
            raise ValueError(f"{str(folder)!r} is not a safetensors file; {advice}.")
        return
    if not folder.exists():
        raise FileNotFoundError(f"There is no folder {str(folder)!r}; {advice}.")
    if not folder.is_dir():
        raise NotADirectoryError(f"{str(folder)!r} is a file, not a folder of results; {advice}.")
    absent = [
        name
        for name in ("result.json", "adjacency.csv", "model.safetensors")
        if not (folder / name).is_file()
    ]
    if absent:
        kind = "but a simulation " if (folder / "simulation.json").is_file() else ""
        raise FileNotFoundError(
            f"{str(folder)!r} is not a folder of results {kind}(it has no {' and no '.join(absent)}); {advice}."
        )


def compare_folders(results: Path, truth: Path) -> dict[str, dict[str, Any]]:
    """Compare what a fit wrote with whatever the truth folder holds; the empty graph stands beside the found one."""
    from latentdo import metrics

    found = read_matrix(results / "adjacency.csv")
    scores: dict[str, Any] = {}
    if (truth / "adjacency.csv").is_file():
        true = read_matrix(truth / "adjacency.csv")
        scores["graph"] = metrics.compare_graphs(true, found)
        scores["empty graph"] = metrics.compare_graphs(true, found * 0)
        probabilities = read_matrix(results / "edge_probabilities.csv")
        scores["probabilities"] = {"brier_skill": metrics.brier_skill(true, probabilities)}
    if (truth / "regimes.csv").is_file():
        labels = [read_labels(folder / "regimes.csv") for folder in (truth, results)]
        common = labels[0].index.intersection(labels[1].index)
        if len(common) == 0:
            raise ValueError(
                f"{truth / 'regimes.csv'} and {results / 'regimes.csv'} have no row number in common."
            )
        true_regimes, found_regimes = (side.loc[common].tolist() for side in labels)
        scores["regimes"] = {
            "rows": len(common),
            "true_regimes": len(set(true_regimes)),
            "found_regimes": len(set(found_regimes)),
            "adjusted_rand_index": metrics.adjusted_rand_index(true_regimes, found_regimes),
            "normalized_mutual_information": metrics.normalized_mutual_information(
                true_regimes, found_regimes
            ),
        }
        if (truth / "targets.csv").is_file():
            true_targets, found_targets = (read_matrix(folder / "targets.csv") for folder in (truth, results))
            scores["targets"] = metrics.target_scores(
                true_targets, found_targets, true_regimes, found_regimes
            ).as_dict()
    if not scores:
        raise FileNotFoundError(
            f"{str(truth)!r} holds neither adjacency.csv nor regimes.csv to compare with."
        )
    return scores


def find_label(text: str, labels: dict[str, Any], option: str) -> Any:
    """The label that the text of an option stands for."""
    if text not in labels:
        raise ValueError(
            f"{option} {text!r} does not occur in the regime column; it holds {', '.join(labels) or 'no label'}."
        )
    return labels[text]


def find_regime(text: str, names: Sequence[Hashable]) -> Hashable:
    """The regime that the text of an option stands for."""
    known = {str(name): name for name in names}
    if text not in known:
        raise ValueError(f"there is no regime {text!r}; they are {', '.join(known)}.")
    return known[text]


def read_targets(path: Path, labels: dict[str, Any]) -> pd.DataFrame:
    """A 0/1 table whose index holds the labels of the regime column, with their types."""
    table = read_matrix(path)
    return table.set_axis([labels.get(str(label), label) for label in table.index], axis=0)


def read_origin(path: Path) -> tuple[dict[str, str] | None, dict[str, list[str]] | None]:
    """What ``result.json`` adds to the model: the versions that made it, and what ``diagnose()`` said; None if absent.

    The file is meant for people and other programs, so it may have been edited; what the report could not show is
    refused with the name of the field.
    """
    from pydantic import BaseModel, ValidationError

    class Diagnosis(BaseModel):
        sentences: dict[str, list[str]] | None = None

    class Origin(BaseModel):
        versions: dict[str, str] | None = None
        diagnosis: Diagnosis | None = None

    try:
        origin = Origin.model_validate_json(path.read_bytes(), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        field = f"{'.'.join(map(str, first['loc']))}: " if first["loc"] else ""
        raise ValueError(
            f"{str(path)!r} is not as `latentdo fit` wrote it ({field}{first['msg']}); restore it, or delete it and "
            "fit again."
        ) from None
    return origin.versions, None if origin.diagnosis is None else origin.diagnosis.sentences


def read_matrix(path: Path) -> pd.DataFrame:
    """A table of numbers whose first column holds names; names stay the text they are."""
    from latentdo.readers import read_csv

    table = read_csv(path, text=(0,))
    table = table.set_index(table.columns[0])
    table.index, table.columns = table.index.map(from_cell), table.columns.map(from_cell)
    text = [str(name) for name in table.columns[[kind.kind not in "biuf" for kind in table.dtypes]]]
    if text:
        raise ValueError(f"{str(path)!r} must hold numbers, but these columns do not: {', '.join(text)}.")
    return table


def read_labels(path: Path) -> pd.Series[Any]:
    """Regime of each row, by the number or name of the row; both stay the text they are."""
    from latentdo.messages import listed
    from latentdo.readers import read_csv

    table = read_csv(path, text=("row", "regime"))
    missing = {"row", "regime"} - set(table.columns)
    if missing:
        raise ValueError(f"{str(path)!r} lacks the column {' and '.join(sorted(missing))}.")
    rows = table["row"].map(lambda row: from_cell(row) if isinstance(row, str) else row)
    labels = table["regime"].map(from_cell).set_axis(rows.to_numpy())
    if not labels.index.is_unique:
        twice = listed(labels.index[labels.index.duplicated()].unique())
        raise ValueError(f"{str(path)!r} says more than once to which regime these rows belong: {twice}.")
    return labels


def read_trials(path: Path) -> pd.DataFrame:
    """The trials of a tuning, as `latentdo tune` wrote them."""
    from latentdo.readers import read_csv
    from latentdo.report.trials import check_trials

    trials = read_csv(path)
    try:
        check_trials(trials)
    except ValueError as error:
        raise ValueError(f"{str(path)!r}: {error}") from error
    return trials
