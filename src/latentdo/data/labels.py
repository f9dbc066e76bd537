"""Regime labels and intervention targets: whatever the user's form, integers and a 0/1 matrix inside."""

from __future__ import annotations

import difflib
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latentdo.data.remarks import DataWarning
from latentdo.data.table import aligned_array
from latentdo.data.tensors import without_gradient
from latentdo.messages import listed
from latentdo.notices import warn

REFERENCE_LABEL: Final = "(reference)"
"""Label of regime 0 where the user says that there is no observational label."""

_CONTROLS = frozenset(
    {"baseline", "control", "controls", "ctl", "ctrl", "dmso", "mock", "none", "normal", "observational", "placebo",
     "reference", "untreated", "vehicle", "wild-type", "wildtype", "wt"}
)  # fmt: skip

_LABEL_BITS = 1024
"""Integers of so many bits have no float64."""

_RARE = 5
"""A label with fewer rows may be another one, misspelt."""

_MOST_RARE = 20
"""If more labels than this are rare, that says nothing about their spelling."""

_ALIKE = 0.8
"""Similarity (difflib) of a word and its misspelling."""


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
    return encode(regimes, "regimes", rows, n_rows, index)


def encode(
    given: Any, name: str, rows: NDArray[np.int64], n_rows: int, index: pd.Index[Any] | None
) -> tuple[NDArray[np.int64], list[Hashable]]:
    """Labels of rows as numbers, see :func:`encode_regimes`; ``name`` is what the user calls them."""
    given = without_gradient(given, name)
    if isinstance(given, np.ma.MaskedArray):
        given = given.tolist()  # None, which is unknown, where an entry is masked
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__len__"):
        raise TypeError(f"{name} must be a sequence with one label per row, got {type(given).__name__}.")
    shape = tuple(getattr(given, "shape", (len(given),)))
    if len(shape) != 1:
        raise ValueError(f"{name} must be 1D, one label per row; got shape {shape}.")
    if shape[0] != n_rows:
        raise ValueError(f"{name} has {shape[0]} entries, but X has {n_rows} rows (samples).")
    if index is not None and isinstance(given, pd.Series) and is_reordered(given.index, index):
        raise ValueError(
            f"{name} has the index of X in another order; pass {name}.loc[X.index], or {name}.to_numpy() "
            "if its order is right."
        )
    listing = given.to_pylist() if hasattr(given, "to_pylist") else list(given)
    series = pd.Series(listing, dtype=object)
    try:
        found, distinct = pd.factorize(series.to_numpy(dtype=object)[rows])
    except TypeError as error:
        raise TypeError(f"{name} must hold hashable labels, such as text or integers.") from error
    position: dict[Hashable, int] = {}
    code_of = []
    for label in map(_plain, distinct):
        if not is_writable(label):
            raise ValueError(f"{name} holds an integer of hundreds of digits; pass such labels as text.")
        unknown = label == -1
        code_of.append(-1 if unknown else position.setdefault(label, len(position)))
    return np.array([*code_of, -1], dtype=np.int64)[found], list(position)


def order_labels(
    seen: Sequence[Hashable],
    targets: Any = None,
    observational: Hashable = 0,
    *,
    has_unknown: bool = False,
    columns: Sequence[str] | None = None,
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
    columns : sequence of str, optional
        Names of the variables, to notice a wrong one in targets before labels that it leaves out.

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
    if columns is not None and isinstance(targets, Mapping):
        _check_variables(targets, columns)
    if targets is not None:
        _check_mentioned(known, seen, reference, has_unknown=has_unknown)
    others = {label: None for label in [*seen, *known] if label != reference}
    return (first, *_sorted(others))


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
        _check_variables(targets, columns)
        for label, given in targets.items():
            for name in _as_names(given):
                out[position[_plain(label)], at[name]] = 1
    else:
        mismatch = "targets has {found} columns, but there are {d} variables."
        values = aligned_array(targets, columns, mismatch, who="targets")
        wrong = np.argwhere(~np.isin(values, (0.0, 1.0)))
        if wrong.size:
            row, j = (int(i) for i in wrong[0])
            raise ValueError(
                f"targets must hold only 0 and 1, but row {row} (counted from 0), column "
                f"{columns[j]!r} is {values[row, j]:g}."
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


def warn_about_rare_labels(codes: NDArray[np.int64], labels: Sequence[Hashable]) -> None:
    """Point out labels with very few rows that are spelt almost as another one.

    Labels that differ in a number, or in a whole word, are different on purpose.

    Parameters
    ----------
    codes : ndarray [n] of int
        Position of every row's label in ``labels``, -1 where unknown.
    labels : sequence
        The labels.
    """
    counts = np.bincount(codes[codes >= 0], minlength=len(labels))
    words = [(label, int(n)) for label, n in zip(labels, counts, strict=True) if isinstance(label, str)]
    common = [label for label, n in words if n >= _RARE]
    rare = [(label, n) for label, n in words if n < _RARE]
    if len(rare) > _MOST_RARE:
        return
    for label, n in rare:
        near = [other for other in common if _is_misspelt(label, other)]
        if near:
            meant = max(near, key=lambda other: difflib.SequenceMatcher(None, label, other).ratio())
            warn(
                f"label {label!r} has {n} row{'' if n == 1 else 's'}; did you mean {meant!r}?",
                DataWarning,
                stacklevel=4,
            )


def _is_misspelt(one: str, other: str) -> bool:
    """Whether two texts differ by capitals, blanks or a slip in some words, and in no number."""
    mine, theirs = (re.findall(r"[^\W_]+", text.lower()) for text in (one, other))
    if "".join(mine) == "".join(theirs):
        return bool(mine)
    return len(mine) == len(theirs) and all(
        a == b
        or (
            re.sub(r"\D", "", a) == re.sub(r"\D", "", b)
            and difflib.SequenceMatcher(None, a, b).ratio() >= _ALIKE
        )
        for a, b in zip(mine, theirs, strict=True)
    )


def _check_variables(targets: Mapping[Any, Any], columns: Sequence[str]) -> None:
    """Refuse names that are no variables."""
    variables = set(columns)
    for label, given in targets.items():
        absent = [name for name in _as_names(given) if name not in variables]
        if absent:
            raise ValueError(
                f"targets of {label!r} names {listed(absent)}, but the variables are {listed(columns)}"
                f"{_suggestion(absent, columns)}"
            )


def _check_mentioned(
    known: Sequence[Hashable], seen: Sequence[Hashable], reference: Hashable, *, has_unknown: bool
) -> None:
    """Refuse targets that leave out a label; a label that no row has is the likelier mistake, and named first."""
    lost = _sorted(label for label in seen if label not in known and label != reference)
    unseen = _sorted(label for label in known if label not in seen and label != reference)
    if lost:
        wrong = ""
        if unseen:
            labels = _sorted(label for label in seen if label != reference)
            wrong = (
                f"targets mentions {listed(unseen)}, which no row of regimes has; the labels are {listed(labels)}"
                f"{_suggestion(unseen, lost)} "
            )
        one = len(lost) == 1
        raise ValueError(
            f"{wrong}targets does not mention {listed(lost)}, which {'occurs' if one else 'occur'} in regimes; add "
            f"{'it' if one else 'them'}, with no names if nothing was targeted."
        )
    if unseen and not has_unknown:
        message = f"targets mentions {listed(unseen)}, which no row of regimes has{_suggestion(unseen, seen)}"
        warn(message, DataWarning, stacklevel=5)


def _suggestion(wrong: Sequence[Hashable], known: Sequence[Hashable]) -> str:
    """End of a sentence: the nearest name that exists, for the first wrong one that has any."""
    by_text = {str(name).lower(): name for name in known}
    for name in wrong:
        close = difflib.get_close_matches(str(name).lower(), by_text, n=1, cutoff=0.5)
        if close:
            return f"; did you mean {by_text[close[0]]!r} by {name!r}?"
    return "."


def _sorted(labels: Iterable[Hashable]) -> list[Hashable]:
    """In order, also if they are of several types."""
    found = list(labels)
    try:
        return sorted(cast("list[str]", found))  # type: ignore[return-value]
    except TypeError:
        return sorted(found, key=lambda label: (type(label).__name__, repr(label)))


def is_reordered(one: pd.Index[Any], other: pd.Index[Any]) -> bool:
    """Whether an index has the entries of another in another order."""
    return not one.equals(other) and other.is_unique and set(one) == set(other)


def _plain(label: Any) -> Hashable:
    """Python's own scalar: 1.0 and np.int64(1) are the label 1."""
    value = label.item() if isinstance(label, np.generic) else label
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return cast("Hashable", value)


def is_writable(label: Hashable) -> bool:
    """Whether a label can stand in a table: pandas takes no integers beyond float64, Python writes none of 4300 digits.

    Examples
    --------
    >>> is_writable(10**30), is_writable(10**400), is_writable("1" * 400)
    (True, False, True)
    """
    return not isinstance(label, int) or label.bit_length() < _LABEL_BITS


def is_unknown(label: Hashable) -> bool:
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
    if is_unknown(reference):
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
    warn(
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
    nobody = [label for label in labels if is_unknown(label)]
    if nobody:
        raise ValueError(
            f"targets speaks of {listed(nobody)}, which means unknown in regimes; name the regimes by their labels."
        )
    if len(set(labels)) < len(labels):
        raise ValueError("targets has the same label twice; give one row per label.")
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
