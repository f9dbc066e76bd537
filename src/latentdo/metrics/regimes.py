"""Agreement of regimes and their targets, whose labels are arbitrary: match first, then compare."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from latentdo.graphs.matrix import check_same_names
from latentdo.metrics.inputs import Scores

Labels = Iterable[Any]
Targets = ArrayLike | pd.DataFrame | Mapping[Any, Iterable[Any]]


@dataclass(frozen=True)
class RegimeMatching:
    """Which found regime plays the part of which true one.

    Attributes
    ----------
    pairs : tuple of (true label, found label, rows in common)
        At most one pair a regime; only pairs that share rows.
    unmatched_true, unmatched_found : tuple of labels
        Regimes that were left over.
    """

    pairs: tuple[tuple[Hashable, Hashable, int], ...]
    unmatched_true: tuple[Hashable, ...]
    unmatched_found: tuple[Hashable, ...]

    @property
    def found_to_true(self) -> dict[Hashable, Hashable]:
        """True label of each matched found one."""
        return {found: true for true, found, _ in self.pairs}

    @property
    def true_to_found(self) -> dict[Hashable, Hashable]:
        """Found label of each matched true one."""
        return {true: found for true, found, _ in self.pairs}

    def __str__(self) -> str:
        lines = [f"true {true} = found {found} ({rows} rows)" for true, found, rows in self.pairs]
        for side, labels in (("true", self.unmatched_true), ("found", self.unmatched_found)):
            if labels:
                lines.append(f"{side} without a match: {', '.join(map(str, labels))}")
        return "\n".join(lines)


def _codes(regimes: Labels, what: str) -> tuple[NDArray[np.intp], list[Any]]:
    """Integers for labels, -1 for unknown ones (-1, None, NaN), and the known labels in order."""
    if isinstance(regimes, np.ndarray) and regimes.ndim != 1:
        raise ValueError(f"{what} must be a flat sequence with one label per row")
    # tolist turns numpy's numbers into Python's; list() keeps labels of mixed types what they are.
    labels = pd.Series(regimes.tolist() if isinstance(regimes, np.ndarray) else list(regimes), dtype=object)
    unknown = labels.isna() | (labels == -1)
    distinct = set(labels[~unknown])
    try:
        ordered = sorted(distinct)
    except TypeError:
        ordered = sorted(distinct, key=str)
    place = {label: code for code, label in enumerate(ordered)}
    codes = [-1 if skip else place[label] for label, skip in zip(labels, unknown, strict=True)]
    return np.array(codes, dtype=np.intp), ordered


def _paired_codes(
    true_regimes: Labels, found_regimes: Labels
) -> tuple[NDArray[np.intp], NDArray[np.intp], list[Any], list[Any]]:
    true, true_labels = _codes(true_regimes, "true_regimes")
    found, found_labels = _codes(found_regimes, "found_regimes")
    if len(true) != len(found):
        raise ValueError(f"true_regimes has {len(true)} rows, but found_regimes {len(found)}")
    return true, found, true_labels, found_labels


def match_regimes(true_regimes: Labels, found_regimes: Labels) -> RegimeMatching:
    """Match found to true regimes one to one, with as many rows in common as possible (Hungarian method).

    Parameters
    ----------
    true_regimes, found_regimes : sequence of labels, length n
        Any hashable labels; -1, None and NaN mean unknown, and such rows do not count.

    Examples
    --------
    >>> matching = match_regimes(["control", "control", "drug", "drug"], [1, 1, 0, 2])
    >>> print(matching)
    true control = found 1 (2 rows)
    true drug = found 0 (1 rows)
    found without a match: 2
    """
    true, found, true_labels, found_labels = _paired_codes(true_regimes, found_regimes)
    overlap = np.zeros((len(true_labels), len(found_labels)), dtype=np.int64)
    known = (true >= 0) & (found >= 0)
    np.add.at(overlap, (true[known], found[known]), 1)
    chosen = [
        (i, j) for i, j in zip(*linear_sum_assignment(overlap, maximize=True), strict=True) if overlap[i, j]
    ]
    taken_true, taken_found = {i for i, _ in chosen}, {j for _, j in chosen}
    return RegimeMatching(
        pairs=tuple((true_labels[i], found_labels[j], int(overlap[i, j])) for i, j in chosen),
        unmatched_true=tuple(label for i, label in enumerate(true_labels) if i not in taken_true),
        unmatched_found=tuple(label for j, label in enumerate(found_labels) if j not in taken_found),
    )


def target_scores(
    true_targets: Targets, found_targets: Targets, true_regimes: Labels, found_regimes: Labels
) -> Scores:
    """Precision, recall and F1 of intervention targets, after matching found regimes to true ones.

    Every target of a true regime without a match is a miss, every target of a found regime without a match is
    false. This includes regimes without rows.

    Parameters
    ----------
    true_targets, found_targets : array_like, DataFrame or dict
        0/1, one row per regime, one column per variable. Labels of regimes are looked up in the index of a frame;
        if none of them is there, and for an array, they are row numbers. Columns of two frames are aligned by
        name. A dict maps a label to the names of its targets (a label that is not in it has none).
    true_regimes, found_regimes : sequence of labels, length n
        The regime of every row, see :func:`match_regimes`.

    Examples
    --------
    The same answer under other labels is perfect:

    >>> print(target_scores([[0, 0], [1, 0], [0, 1]], [[0, 0], [0, 1], [1, 0]], [0, 1, 2], [0, 2, 1]))
    precision 1.00, recall 1.00, F1 1.00
    """
    matching = match_regimes(true_regimes, found_regimes)
    true_labels = [*matching.true_to_found, *matching.unmatched_true]
    found_labels = [*matching.found_to_true, *matching.unmatched_found]
    true, found = _aligned_targets(true_targets, found_targets, true_labels, found_labels)
    hits = sum(int((true[first] & found[second]).sum()) for first, second, _ in matching.pairs)
    total_true, total_found = (sum(int(row.sum()) for row in side.values()) for side in (true, found))
    return Scores(tp=hits, fn=total_true - hits, fp=total_found - hits)


def _aligned_targets(
    true: Targets, found: Targets, true_labels: list[Any], found_labels: list[Any]
) -> tuple[dict[Any, NDArray[np.int64]], dict[Any, NDArray[np.int64]]]:
    """Targets by regime label, over the same variables in the same order."""
    if isinstance(true, Mapping):
        true = _dict_to_frame(true, found, true_labels)
    if isinstance(found, Mapping):
        found = _dict_to_frame(found, true, found_labels)
    if isinstance(true, pd.DataFrame) and isinstance(found, pd.DataFrame):
        check_same_names(found.columns, true.columns, "the columns of found_targets", "those of true_targets")
        found = found[list(true.columns)]
    widths = [np.shape(side)[-1] for side in (true, found)]
    if widths[0] != widths[1]:
        raise ValueError(f"true_targets has {widths[0]} variables, but found_targets {widths[1]}")
    return _by_label(true, true_labels, "true_targets"), _by_label(found, found_labels, "found_targets")


def _dict_to_frame(targets: Mapping[Any, Any], others: Targets, labels: list[Any]) -> pd.DataFrame:
    """Write targets given as label -> names into a frame over the variables of the other side."""
    sets = _sets(targets)
    mentioned = set().union(*sets.values())
    if isinstance(others, pd.DataFrame):
        names = list(others.columns)
    elif isinstance(others, Mapping):  # a variable that neither side mentions is a target of nothing
        names = sorted(mentioned.union(*_sets(others).values()), key=str)
    else:
        raise ValueError(
            "targets in a dict need names to compare with: give the others as a dict or DataFrame"
        )
    if not mentioned <= set(names):
        raise ValueError(f"unknown targets: {', '.join(sorted(map(str, mentioned - set(names))))}")
    index = list(dict.fromkeys([*sets, *labels]))
    rows = [[int(name in sets.get(label, ())) for name in names] for label in index]
    return pd.DataFrame(rows, index=index, columns=names)


def _sets(targets: Mapping[Any, Any]) -> dict[Any, set[Any]]:
    return {label: {names} if isinstance(names, str) else set(names) for label, names in targets.items()}


def _by_label(targets: Targets, labels: list[Any], what: str) -> dict[Any, NDArray[np.int64]]:
    """Rows of a target matrix by regime label: from the index of a frame, else by number."""
    values = np.asarray(targets)
    if values.ndim != 2 or not np.isin(values, (0, 1)).all():
        raise ValueError(
            f"{what} must be a matrix of 0 and 1, one row per regime; threshold probabilities first"
        )
    rows = dict(enumerate(values.astype(np.int64)))
    if isinstance(targets, pd.DataFrame):
        named = dict(zip(targets.index, rows.values(), strict=True))
        if len(named) < len(rows):
            raise ValueError(f"{what} has two rows for the same regime")
        if any(label in named for label in labels):
            rows = named
    missing = [str(label) for label in labels if label not in rows]
    if missing:
        raise ValueError(f"{what} has no row for these regimes: {', '.join(missing)}")
    return rows


def adjusted_rand_index(true_regimes: Labels, found_regimes: Labels) -> float:
    """Compute the adjusted Rand index: 1 for the same partition, about 0 for a random one.

    Labels do not matter. Rows whose true regime is unknown (-1, None, NaN) are left out. Rows that a method
    left unassigned form one more group: abstaining is not rewarded.

    Examples
    --------
    >>> adjusted_rand_index(["a", "a", "b", "b"], [1, 1, 0, 0])
    1.0
    """
    true, found, *_ = _paired_codes(true_regimes, found_regimes)
    return float(adjusted_rand_score(*_where_known(true, found)))


def normalized_mutual_information(true_regimes: Labels, found_regimes: Labels) -> float:
    """Compute the mutual information over the arithmetic mean of the entropies, between 0 and 1.

    Unknown labels are treated as in :func:`adjusted_rand_index`.

    Examples
    --------
    >>> normalized_mutual_information(["a", "a", "b", "b"], [1, 1, 0, 0])
    1.0
    """
    true, found, *_ = _paired_codes(true_regimes, found_regimes)
    return float(normalized_mutual_info_score(*_where_known(true, found)))


def _where_known(
    true: NDArray[np.intp], found: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    known = true >= 0
    if not known.any():
        raise ValueError("true_regimes is unknown in every row: there is nothing to compare with")
    return true[known], found[known]
