r"""Kinds of columns: continuous, binary, count or categorical, found from the values unless the user says so.

What a column is decides what can be said of it: a density, or a probability. It is found as follows.

- Booleans, text and pandas categories are *binary* with two levels and *categorical* with more, ordered where pandas
  says so. Text of which some reads as a number, or that hardly recurs, is not taken for levels.
- Numbers with two values, shared by ten rows each on average, are *binary*: in a continuous column hardly two rows
  share a value.
- Small whole numbers from 0 on are a *count* if counting explains them better than rounding does. Mixtures of up to
  three negative binomial laws, which tend to Poisson's where they have no more spread, are compared with mixtures
  of as many rounded normal laws, of rounded log-normal ones if no row is zero, and with an even spread from the lowest
  value to the highest, by the Schwarz criterion

  .. math:: \log p(y) - \tfrac{1}{2} m \log n,

  :math:`m` the number of parameters. A count cannot have less spread than Poisson's law, and its spread grows with its
  mean: ages, heights and ratings are explained better by rounding. Mixtures, because hidden regimes and causes mix. If
  a transform was asked for, whole numbers are measurements: that is what a transform is for.
- All other numbers are *continuous*, as are those of which too little is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp, ndtr, xlogy

from latentdo.messages import listed, shown

Array = NDArray[np.float64]
KindName = Literal["continuous", "binary", "count", "categorical"]
KINDS: Final[tuple[str, ...]] = get_args(KindName)

MOST_LEVELS: Final = 50
"""Levels of a category, at most: each has coefficients of its own, and names of rows are no category."""

SHARED: Final = 10
"""Rows per value from which on numbers may be a binary column, or a count: a regime needs as many."""

MOST_LAWS: Final = 3
"""Laws in a mixture that is to explain whole numbers."""

LAW_STEPS: Final = 30
"""Steps of expectation and maximisation for such a mixture; it only has to be told from another."""

LAW_ROWS: Final = 2000
"""Rows that are looked at to tell counts from rounded values: more would only take longer."""

SMALL: Final = 100.0
"""Median up to which whole numbers may be taken for counts if nobody says so. Beyond, the noise of counting is ten
times as wide as its steps: a density does as well, and a negative binomial law would win by its skew alone."""

LARGEST_COUNT: Final = 2.0**53
"""Whole numbers beyond are not exact in float64."""


@dataclass(frozen=True)
class Kind:
    """What a column is.

    Parameters
    ----------
    kind : {"continuous", "binary", "count", "categorical"}
        The word for it.
    levels : tuple of str
        Of binary and categorical columns, in the order of their codes: the column holds ``0, 1, ...`` inside.
    ordered : bool
        Whether the order of the levels means something.

    Examples
    --------
    >>> Kind("categorical", ("liver", "lung", "skin")).decode(np.array([2.0, 0.0])).tolist()
    ['skin', 'liver']
    """

    kind: KindName = "continuous"
    levels: tuple[str, ...] = ()
    ordered: bool = False

    def __post_init__(self) -> None:
        """Refuse what no column is, whether it comes from a user or from a file."""
        if self.kind not in KINDS:
            raise ValueError(f"{shown(self.kind)} is not a kind of column; kinds are {', '.join(KINDS)}")
        has_levels = self.kind in ("binary", "categorical")
        fewest, most = (2, 2 if self.kind == "binary" else MOST_LEVELS) if has_levels else (0, 0)
        if not fewest <= len(self.levels) <= most or len(set(self.levels)) != len(self.levels):
            raise ValueError(f"a {self.kind} column cannot have the levels {listed(self.levels) or 'none'}")
        if any(not isinstance(level, str) for level in self.levels):
            raise ValueError("levels of a column are not text")

    @property
    def is_discrete(self) -> bool:
        """Whether values have probabilities, rather than densities."""
        return self.kind != "continuous"

    def code(self, value: Any) -> float:
        """What a value is inside: the number itself, or the code of a level.

        Raises
        ------
        ValueError
            If the column cannot have such a value; the message says which it can have.
        """
        if not self.levels:
            number = float(value)
            if self.kind == "count" and not (0.0 <= number <= LARGEST_COUNT and number % 1.0 == 0.0):
                raise ValueError("counts are whole numbers from 0")
            return number
        label = label_of(value)
        if label in self.levels:
            return float(self.levels.index(label))
        # Levels that are no numbers are numbered in arrays, which hold nothing else.
        named = any(_number(level) is None for level in self.levels)
        place = _number(value) if named and not isinstance(value, str) else None
        if place is not None and place % 1.0 == 0.0 and 0.0 <= place < len(self.levels):
            return place
        raise ValueError(f"its levels are {listed(self.levels)}")

    def encode(self, column: pd.Series[Any], name: str) -> Array:
        """Codes of new rows; what was not there before is refused by row, column and remedy. Missing cells stay."""
        entries = column.to_numpy(dtype=object)
        missing = pd.isna(entries)
        codes = np.full(len(entries), np.nan)
        known: dict[Any, float] = {}
        for row in np.flatnonzero(~missing).tolist():
            entry = entries[row]
            if entry not in known:
                try:
                    known[entry] = self.code(entry)
                except (TypeError, ValueError) as error:
                    raise ValueError(
                        f"row {row} (counted from 0) of {name!r} is {shown(entry)}, which this {self.kind} column "
                        f"cannot have: {error}. Correct it, drop such rows, or fit again with rows that have it."
                    ) from None
            codes[row] = known[entry]
        return codes

    def decode(self, codes: Array) -> Any:
        """Values as the user would write them: numbers, booleans, or categories; missing where a code is NaN."""
        if not self.levels:
            return _whole(codes) if self.kind == "count" else codes
        missing = np.isnan(codes)
        at = np.where(missing, -1.0, codes).astype(np.int64)
        if self.levels == ("False", "True") and not missing.any():
            return at == 1
        numbers = [_number(level) for level in self.levels]
        if None not in numbers:
            return _whole(np.where(missing, np.nan, np.array(numbers, dtype=np.float64)[at]))
        return pd.Categorical.from_codes(at, categories=pd.Index(self.levels), ordered=self.ordered)

    def to_dict(self) -> dict[str, Any]:
        """Plain words, for a file."""
        return {"kind": self.kind, "levels": list(self.levels), "ordered": self.ordered}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Kind:
        """Undo :meth:`to_dict`."""
        return cls(state["kind"], tuple(state["levels"]), state["ordered"] is True)


CONTINUOUS: Final = Kind()


def read_kinds(given: Any, columns: Sequence[str]) -> dict[str, str | Kind]:
    """What the user says of columns, checked: a dict from names to kinds."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(
            f"kinds={shown(given)} must be a dict from columns to kinds, such as {{'clicks': 'count'}}"
        )
    for name, kind in given.items():
        if name not in columns:
            raise ValueError(
                f"kinds names {name!r}, which is not a column; the columns are {listed(columns)}."
            )
        if not isinstance(kind, Kind) and kind not in KINDS:
            raise ValueError(f"kinds calls {name!r} {shown(kind)}; kinds of columns are {', '.join(KINDS)}.")
    return dict(given)


def kind_name(kind: str | Kind | None) -> str | None:
    """The word for what a user said of a column, if anything."""
    return kind.kind if isinstance(kind, Kind) else kind


def label_of(entry: Any) -> str:
    """The name of a level: numbers as short as they are exact, anything else as text."""
    number = None if isinstance(entry, bool | np.bool_ | str) else _number(entry)
    if number is None:
        return str(entry)
    short = f"{number:.15g}"
    return short if float(short) == number else repr(float(number))


def levels_of(column: pd.Series[Any]) -> tuple[Kind | None, Array]:
    """Levels of a column of text, categories or numbers, and the code of each row, NaN where it is missing.

    Levels are in the order that pandas gives categories, else sorted; those without rows are left out. No kind if there
    are fewer than two levels or more than a category may have.
    """
    ordered = isinstance(column.dtype, pd.CategoricalDtype) and bool(column.cat.ordered)
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.cat.remove_unused_categories()
        found, codes = list(column.cat.categories), column.cat.codes.to_numpy().astype(np.float64)
    else:
        entries = column.to_numpy(dtype=object)
        seen = pd.unique(entries[~pd.isna(entries)])
        found = sorted(seen, key=_sort_key)
        at = {entry: float(code) for code, entry in enumerate(found)}
        codes = np.array([np.nan if pd.isna(entry) else at[entry] for entry in entries])
    codes[codes < 0.0] = np.nan
    names = tuple(label_of(entry) for entry in found)
    if not 2 <= len(names) <= MOST_LEVELS or len(set(names)) != len(names):
        return None, codes
    return Kind("binary" if len(names) == 2 else "categorical", names, ordered), codes


def find_kinds(
    values: Array,
    names: Sequence[str],
    coded: Mapping[str, Kind],
    given: Mapping[str, str | Kind],
    *,
    look_for_counts: bool = True,
) -> tuple[Kind, ...]:
    """What every column of ``values [n, d]`` is; levels of numbers become codes, in place.

    Parameters
    ----------
    coded : mapping from str to Kind
        Columns that were no numbers and hold codes already.
    given : mapping from str to str or Kind
        What the user says.
    look_for_counts : bool
        Whether whole numbers may be counts if nobody says so.

    Raises
    ------
    ValueError
        If a column cannot be what the user says it is.
    """
    found = []
    for j, name in enumerate(names):
        column, said = values[:, j], given.get(name)
        if isinstance(said, Kind):
            kind = said
            if said.levels and name not in coded:
                values[:, j] = said.encode(pd.Series(column), name)
        elif name in coded:
            kind = _seen(coded[name], column)
            if said == "binary" and len(kind.levels) != 2:
                raise ValueError(_contradiction(name, said, f"it has {len(kind.levels)} levels"))
            if said == "categorical" and kind.kind == "binary":
                kind = Kind("categorical", kind.levels, kind.ordered)
        else:
            kind = _of_numbers(column, name, said, look_for_counts)
        _check(kind, column, name)
        found.append(kind)
    return tuple(found)


def describe_kinds(kinds: Sequence[Kind], names: Sequence[str]) -> str:
    """What is said of columns that are not continuous; empty if all are."""
    parts = []
    for word in KINDS[1:]:
        mine = [
            f"{name!r} ({', '.join(kind.levels)})" if 0 < len(kind.levels) <= _SHOWN_LEVELS else repr(name)
            for kind, name in zip(kinds, names, strict=True)
            if kind.kind == word
        ]
        if mine:
            parts.append(f"{word}: {', '.join(mine)}")
    if not parts:
        return ""
    return f"Kinds of columns, as inferred or given: {'; '.join(parts)}. Correct them with kinds= where they are wrong."


def as_words(kinds: Mapping[str, str | Kind] | None) -> dict[str, str] | None:
    """What was said of columns, in words that a file can hold."""
    return None if kinds is None else {name: str(kind_name(kind)) for name, kind in kinds.items()}


def names_of(kinds: Iterable[Kind]) -> tuple[str, ...]:
    """The word for every column."""
    return tuple(kind.kind for kind in kinds)


_SHOWN_LEVELS: Final = 4


def _sort_key(entry: Any) -> tuple[bool, float, str]:
    number = None if isinstance(entry, str) else _number(entry)
    return (number is None, 0.0 if number is None else number, str(entry))


def _whole(values: Array) -> NDArray[Any]:
    """Whole numbers as integers; others stay as they are."""
    is_whole = (
        bool((np.isfinite(values) & (np.abs(values) <= LARGEST_COUNT)).all()) and not (values % 1.0).any()
    )
    return values.astype(np.int64) if is_whole else values


def _number(entry: Any) -> float | None:
    try:
        number = float(entry)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if np.isfinite(number) else None


def _seen(kind: Kind, codes: Array) -> Kind:
    """The same without levels that no row has; codes are moved up, in place."""
    present = np.unique(codes[np.isfinite(codes)]).astype(np.int64)
    if present.size == len(kind.levels) or present.size < 2:
        return kind
    finite = np.isfinite(codes)
    codes[finite] = np.searchsorted(present, codes[finite])
    levels = tuple(kind.levels[code] for code in present)
    return Kind("binary" if len(levels) == 2 else "categorical", levels, kind.ordered)


def _of_numbers(column: Array, name: str, said: str | None, look_for_counts: bool) -> Kind:
    """The kind of a column of numbers; codes take the place of values that are levels."""
    seen = column[np.isfinite(column)]
    if said == "continuous" or (said is None and seen.size < 2 * SHARED):
        return CONTINUOUS
    if said == "count":
        return Kind("count")
    first = seen[:LAW_ROWS]
    if said is None and (first % 1.0).any() and np.unique(first).size > 2:
        return CONTINUOUS
    values = np.unique(seen)
    if said in ("binary", "categorical") or (values.size == 2 and seen.size >= SHARED * values.size):
        said = said or "binary"
        if said == "binary" and values.size != 2:
            raise ValueError(_contradiction(name, said, f"it has {values.size} values"))
        if values.size > MOST_LEVELS:
            raise ValueError(too_many(name, values.size))
        if values.size < 2:
            return CONTINUOUS  # refused elsewhere, like all columns that never change
        finite = np.isfinite(column)
        column[finite] = np.searchsorted(values, column[finite])
        levels = tuple(label_of(value) for value in values)
        return Kind("binary" if said == "binary" else "categorical", levels)
    whole = look_for_counts and values[0] >= 0.0 and values[-1] <= LARGEST_COUNT and not (values % 1.0).any()
    is_count = whole and float(np.median(seen)) <= SMALL and looks_like_counts(seen)
    return Kind("count") if is_count else CONTINUOUS


def too_many(name: str, number: int) -> str:
    """What is said of a column with more levels than a category may have."""
    return (
        f"Column {name!r} has {number} levels; a category may have at most {MOST_LEVELS}, since each has "
        "coefficients of its own. Join rare levels, use a coarser grouping, or drop the column."
    )


def _contradiction(name: str, said: str, but: str) -> str:
    return f"kinds calls {name!r} {said}, but {but}; give another kind, or leave it out to have it inferred."


def _check(kind: Kind, column: Array, name: str) -> None:
    """Refuse counts that are none."""
    if kind.kind != "count":
        return
    finite = np.isfinite(column)
    wrong = finite & ~(
        (column >= 0.0) & (column <= LARGEST_COUNT) & (np.where(finite, column, 0.0) % 1.0 == 0.0)
    )
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            _contradiction(
                name,
                "count",
                f"row {row} (counted from 0) is {column[row]:g}, which is not a whole number from 0",
            )
        )


def looks_like_counts(values: Array) -> bool:
    """Whether whole numbers from 0 on, ``[n]``, are explained better by counting than by rounding; see the module.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> looks_like_counts(rng.poisson(3.0, 500).astype(float))
    True
    >>> looks_like_counts(rng.normal(170.0, 10.0, 500).round())
    False
    """
    values = values[:: -(-values.size // LAW_ROWS)]
    found, counts = np.unique(values, return_counts=True)
    edges = np.stack([found - 0.5, found + 0.5])
    even = -float(counts.sum()) * np.log(found[-1] - found[0] + 1.0) - np.log(counts.sum())
    rivals = [_evidence(found, counts, edges, _rounded), even]
    if found[0] > 0.0:
        rivals.append(_evidence(np.log(found), counts, np.log(edges), _rounded))
    return bool(_evidence(found, counts, edges, _counted) > max(rivals))


def _evidence(values: Array, counts: NDArray[np.int64], edges: Array, law: Any) -> float:
    """Log-likelihood less Schwarz cost of the best mixture of laws for values that so many rows have."""
    n, best = counts.sum(), -np.inf
    for k in range(1, min(MOST_LAWS, values.size // 2) + 1):
        # Begin with as many rows in each law, from low to high.
        rank = (np.cumsum(counts) - 0.5 * counts) / n
        share = np.eye(k)[np.minimum((rank * k).astype(np.int64), k - 1)]
        for _ in range(1 if k == 1 else LAW_STEPS):
            weights = np.maximum(counts @ share, 1e-9)
            means = (counts * values) @ share / weights
            spreads = (counts[:, None] * share * (values[:, None] - means) ** 2).sum(axis=0) / weights
            log_laws, size = law(values, edges, means, spreads)
            joint = log_laws + np.log(weights / n)
            total = logsumexp(joint, axis=1, keepdims=True)
            share = np.exp(joint - total)
            value = float(counts @ total[:, 0]) - 0.5 * (size + k - 1) * np.log(n)
            best = max(best, value)
    return best


def _counted(values: Array, edges: Array, means: Array, spreads: Array) -> tuple[Array, int]:  # noqa: ARG001
    """Log-probabilities ``[v, k]`` of negative binomial laws with these moments, or Poisson's, and parameters."""
    means = np.maximum(means, 1e-9)
    size = means**2 / np.maximum(spreads - means, 1e-9 * means)
    y = values[:, None]
    poisson = xlogy(y, means) - means - gammaln(y + 1.0)
    negative = (
        gammaln(y + size)
        - gammaln(size)
        - gammaln(y + 1.0)
        - size * np.log1p(means / size)
        + xlogy(y, means / (means + size))
    )
    spread = spreads > means * (1.0 + _SPREAD)
    return np.where(spread, negative, poisson), means.size + int(spread.sum())


def _rounded(values: Array, edges: Array, means: Array, spreads: Array) -> tuple[Array, int]:
    """The same of normal laws, rounded to where the edges are, ``[2, v]``."""
    width = np.median(edges[1] - edges[0])
    scale = np.sqrt(np.maximum(spreads, (_NARROW * width) ** 2))
    low, high = ((edge[:, None] - means) / scale for edge in edges)
    # Mirror the upper half, where differences of probabilities near one would be lost.
    up = values[:, None] > means
    mass = np.where(up, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
    return np.log(np.maximum(mass, _TINY)), 2 * means.size


_SPREAD: Final = 0.02  # spread beyond Poisson's, as a share, from which on it is worth a parameter
_NARROW: Final = 0.3  # of the width of rounding: a standard deviation of rounded values is not less
_TINY: Final = 1e-300
