"""Regime labels and intervention targets: whatever the user's form, integers and a 0/1 matrix inside."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latentdo.data.table import DataWarning, aligned_array, listed

__all__ = ["REFERENCE_LABEL", "encode_regimes", "encode_targets", "order_labels"]

REFERENCE_LABEL: Final = "(reference)"
"""Label of regime 0 where the user says that there is no observational label."""

_CONTROLS = frozenset(
    {"baseline", "control", "controls", "ctl", "ctrl", "dmso", "mock", "none", "normal", "observational", "placebo",
     "reference", "untreated", "vehicle", "wild-type", "wildtype", "wt"}
)  # fmt: skip


def encode_regimes(
    regimes: Any, rows: NDArray[np.int64], n_rows: int, index: pd.Index[Any] | None = None
) -> tuple[NDArray[np.int64], list[Hashable]]:
    """Give numbers to the labels by first appearance.

    Parameters
    ----------
    regimes : sequence of n_rows hashable labels
        -1, None and NaN mean unknown; 1.0 and ``np.int64(1)`` are the label 1.
    rows : ndarray of int
        Positions of the rows that are used.
    n_rows : int
        Rows of the table, used or not.
    index : pandas.Index, optional
        Index of the table, to notice labels in another order.

    Returns
    -------
    codes : ndarray [len(rows)] of int64
        Position in ``labels``, -1 where unknown.
    labels : list
        Distinct labels among ``rows``.

    Examples
    --------
    >>> import numpy as np
    >>> encode_regimes(["drug", None, "none", "drug"], np.arange(4), 4)
    (array([ 0, -1,  1,  0]), ['drug', 'none'])
    """
    if isinstance(regimes, str | bytes | Mapping) or not hasattr(regimes, "__len__"):
        raise TypeError(f"regimes must be a sequence with one label a row, got {type(regimes).__name__}.")
    shape = tuple(getattr(regimes, "shape", (len(regimes),)))
    if len(shape) != 1:
        raise ValueError(f"regimes must be 1D, one label a row; got shape {shape}.")
    if shape[0] != n_rows:
        raise ValueError(f"regimes has {shape[0]} entries, but X has {n_rows} rows (samples).")
    if index is not None and isinstance(regimes, pd.Series) and _is_reordered(regimes.index, index):
        raise ValueError(
            "regimes has the index of X in another order; pass regimes.loc[X.index], or regimes.to_numpy() "
            "if its order is right."
        )
    listing = regimes.to_pylist() if hasattr(regimes, "to_pylist") else list(regimes)
    series = pd.Series(listing, dtype=object)
    try:
        found, distinct = pd.factorize(series.to_numpy(dtype=object)[rows])
    except TypeError as error:
        raise TypeError("regimes must hold hashable labels, such as text or integers.") from error
    position: dict[Hashable, int] = {}
    code_of = []
    for label in map(_plain, distinct):
        unknown = label == -1
        code_of.append(-1 if unknown else position.setdefault(label, len(position)))
    return np.array([*code_of, -1], dtype=np.int64)[found], list(position)


def order_labels(
    seen: Sequence[Hashable], targets: Any = None, observational: Hashable = 0, *, has_unknown: bool = False
) -> tuple[Hashable, ...]:
    """Give every label its regime index: the observational one first, the others sorted.

    Parameters
    ----------
    seen : sequence
        Labels that occur in regimes.
    targets : mapping, table or matrix, optional
        May speak of further labels, whose rows are unknown.
    observational : hashable
        See :meth:`latentdo.data.Dataset.from_table`.
    has_unknown : bool
        Whether some rows have no label.

    Returns
    -------
    tuple
        Label of each regime index.

    Examples
    --------
    >>> order_labels(["b", "none", "a"], observational="none")
    ('none', 'a', 'b')
    >>> order_labels([1, 2], observational=None)
    ('(reference)', 1, 2)
    """
    reference = _plain(observational)
    _check_observational(seen, reference)
    if reference == 0 and seen and 0 not in seen:
        _hint_at_observational(seen, has_unknown=has_unknown)
    first: Hashable = REFERENCE_LABEL if reference is None else reference
    if targets is not None and _is_numbered(targets, seen, reference):
        return (first, *range(1, len(targets)))
    known = _labels_in(targets)
    if targets is not None:
        lost = [label for label in seen if label not in known and label != reference]
        if lost:
            raise ValueError(
                f"targets does not mention {listed(lost)}, which occurs in regimes; add it, with no names if "
                "nothing was targeted."
            )
        unseen = [label for label in known if label not in seen and label != reference]
        if unseen and not has_unknown:
            message = f"targets mentions {listed(unseen)}, which no row of regimes has."
            warnings.warn(message, DataWarning, stacklevel=4)
    others = {label: None for label in [*seen, *known] if label != reference}
    try:
        return (first, *sorted(cast("dict[str, None]", others)))
    except TypeError:  # labels of several types
        return (first, *sorted(others, key=lambda label: (type(label).__name__, repr(label))))


def encode_targets(
    targets: Any, labels: Sequence[Hashable], seen: Sequence[Hashable], columns: Sequence[str]
) -> NDArray[np.int8]:
    """Write targets as a 0/1 matrix.

    Parameters
    ----------
    targets : mapping, table or matrix
        See :meth:`latentdo.data.Dataset.from_table`.
    labels : sequence
        Label of each regime index, from :func:`order_labels` with the same arguments.
    seen : sequence
        Labels that occur in regimes.
    columns : sequence of str
        Names of the variables.

    Returns
    -------
    ndarray [n_regimes, d] of int8
        Row 0 is zero.

    Examples
    --------
    >>> encode_targets({"drug": ["b"]}, ["none", "drug"], ["none", "drug"], ["a", "b"])
    array([[0, 0],
           [0, 1]], dtype=int8)
    """
    out = np.zeros((len(labels), len(columns)), dtype=np.int8)
    position = {label: k for k, label in enumerate(labels)}
    if isinstance(targets, Mapping):
        at = {name: j for j, name in enumerate(columns)}
        for label, given in targets.items():
            names = _as_names(given)
            absent = [name for name in names if name not in at]
            if absent:
                raise ValueError(
                    f"targets of {label!r} names {listed(absent)}, but the variables are {listed(columns)}."
                )
            for name in names:
                out[position[_plain(label)], at[name]] = 1
    else:
        mismatch = "targets has {found} columns, but there are {d} variables."
        values = aligned_array(targets, columns, mismatch, who="targets")
        wrong = np.argwhere(~np.isin(values, (0.0, 1.0)))
        if wrong.size:
            row, j = (int(i) for i in wrong[0])
            raise ValueError(
                f"targets must hold only 0 and 1, but row {row}, column {columns[j]!r} is {values[row, j]:g}."
            )
        reference = None if labels[0] == REFERENCE_LABEL else labels[0]
        numbered = _is_numbered(targets, seen, reference)
        rows = range(len(values)) if numbered else [position[_plain(label)] for label in targets.index]
        out[list(rows)] = values.astype(np.int8)
    if out[0].any():
        hit = [columns[int(j)] for j in np.flatnonzero(out[0])]
        raise ValueError(
            f"targets says that the observational regime {labels[0]!r} changed {listed(hit)}; row 0 must be "
            "zero. Name the observational label with observational=, or None if there is none."
        )
    return out


def _is_reordered(one: pd.Index[Any], other: pd.Index[Any]) -> bool:
    return not one.equals(other) and other.is_unique and set(one) == set(other)


def _plain(label: Any) -> Hashable:
    """Python's own scalar: 1.0 and np.int64(1) are the label 1."""
    value = label.item() if isinstance(label, np.generic) else label
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return cast("Hashable", value)


def _is_unknown(label: Hashable) -> bool:
    """Whether a label says that nothing is known."""
    return bool(pd.api.types.is_scalar(label) and pd.isna(label)) or label == -1  # type: ignore[call-overload]


def _as_names(given: Any) -> list[str]:
    if given is None:
        return []
    if isinstance(given, str | int):
        return [str(given)]
    return [str(name) for name in given]


def _check_observational(seen: Sequence[Hashable], reference: Hashable) -> None:
    """Accept a label that occurs, None, or the default 0; otherwise say what to pass."""
    if reference is None:
        return
    if _is_unknown(reference):
        raise ValueError(
            f"observational={reference!r} means unknown; name a label, or pass None if there is none."
        )
    if reference in seen:
        return
    for label in seen:
        if str(label) == str(reference):
            raise ValueError(
                f"observational={reference!r} is a {type(reference).__name__}, but regimes holds {label!r}, "
                f"a {type(label).__name__}; pass observational={label!r}."
            )
    if reference != 0:
        raise ValueError(
            f"observational={reference!r} does not occur in regimes, whose labels are {listed(seen)}; name "
            "one of them, or pass observational=None if no rows are observational."
        )


def _hint_at_observational(seen: Sequence[Hashable], *, has_unknown: bool) -> None:
    """Nobody said which label is observational: the fit can do without, but labels that say it are worth much."""
    likely = [label for label in seen if str(label).strip().lower() in _CONTROLS]
    if has_unknown and not likely:
        return  # the rows without a label may well be the ones without an intervention
    example = likely[0] if likely else seen[0]
    guess = f"{example!r} looks like it" if likely else f"The first is {example!r}"
    warnings.warn(
        f"No label was named observational (without an intervention); the labels are {listed(seen)}. {guess}: pass "
        f"observational={example!r} if it is, or observational=None if there is none.",
        DataWarning,
        stacklevel=5,
    )


def _labels_in(targets: Any) -> list[Hashable]:
    """Labels that a dict or an indexed table speaks of."""
    if targets is None:
        return []
    labels = [_plain(label) for label in (targets if isinstance(targets, Mapping) else targets.index)]
    nobody = [label for label in labels if _is_unknown(label)]
    if nobody:
        raise ValueError(
            f"targets speaks of {listed(nobody)}, which means unknown in regimes; name the regimes by their labels."
        )
    if len(set(labels)) < len(labels):
        raise ValueError("targets has the same label twice; give one row a label.")
    return labels


def _is_numbered(targets: Any, seen: Sequence[Hashable], reference: Hashable) -> bool:
    """Whether row ``k`` of targets belongs to the integer label ``k``, rather than rows carrying labels."""
    if isinstance(targets, Mapping):
        return False
    n = len(targets)
    possible = all(isinstance(label, int) and 0 <= label < n for label in seen) and (
        reference == 0 or (reference is None and 0 not in seen)
    )
    if isinstance(targets, pd.DataFrame):
        return possible and [_plain(label) for label in targets.index] == list(range(n))
    if not possible:
        raise ValueError(
            f"A targets matrix with {n} rows needs integer labels 0 .. {n - 1}, with 0 observational, "
            f"but regimes holds {listed(seen)}; pass a dict from label to variable names, or a pandas table "
            "whose index holds the labels."
        )
    return True
