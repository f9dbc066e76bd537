"""One table, checked once: the frozen :class:`Dataset` that every solver receives.

Anything a user may hand over (pandas, polars and pyarrow tables, arrays, nested lists; labels of any hashable
type; targets as a matrix, a table or a dict) becomes one canonical form here. Nothing is changed silently:
what cannot be used is refused with row, column and remedy.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal, Self, cast

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from latentdo.transforms import Preprocessor

__all__ = ["REFERENCE_LABEL", "DataWarning", "Dataset", "Missing", "table_to_array", "validate_rows"]

Array = NDArray[np.float64]
Missing = Literal["error", "drop"]

REFERENCE_LABEL: Final = "(reference)"
"""Label of regime 0 where the user says that there is no observational label."""

_SCALE_RATIO = 1e6
_SHOWN = 8  # at most so many names in one message


class DataWarning(UserWarning):
    """The data can be used, but something about them deserves a look."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Validated rows, in the user's units and standardised, with what is known about their regimes.

    Build it with :meth:`from_table`; the arrays are read-only.

    Parameters
    ----------
    x : ndarray [n, d] of float64
        The rows in the user's units, C-contiguous.
    columns : tuple of str
        One name a variable.
    preprocessor : Preprocessor
        Maps ``x`` to :attr:`z`; fitted on all rows of the table this data set came from.
    regimes : ndarray [n] of int64, optional
        Index of each row's regime, -1 where unknown. None if nothing is known about any row.
    regime_labels : tuple
        The user's label of each regime index; entry 0 is the observational (reference) label.
    targets : ndarray [n_regimes, d] of int8, optional
        ``targets[k, j] == 1``: regime ``k`` changed the mechanism of variable ``j``. Row 0 is zero.
    row_index : ndarray [n] of int64, optional
        Position of each row in the table the user passed; ``0 .. n - 1`` by default.
    n_dropped : int
        Rows of that table left out on request (``missing="drop"``).

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"Raf": [1.0, 2.0, 4.0], "Mek": [3.0, 1.0, 2.0]})
    >>> data = Dataset.from_table(table, regimes=["none", "drug", None], observational="none",
    ...                           targets={"drug": "Mek"})
    >>> data.regimes, data.regime_labels
    (array([ 0,  1, -1]), ('none', 'drug'))
    >>> data.targets
    array([[0, 0],
           [0, 1]], dtype=int8)
    """

    x: Array
    columns: tuple[str, ...]
    preprocessor: Preprocessor
    regimes: NDArray[np.int64] | None = None
    regime_labels: tuple[Hashable, ...] = ()
    targets: NDArray[np.int8] | None = None
    row_index: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    n_dropped: int = 0

    def __post_init__(self) -> None:
        """Check that the parts fit together, and make the arrays read-only."""
        x = np.array(self.x, dtype=np.float64, order="C")
        rows = np.array(self.row_index if self.row_index.size else np.arange(len(x)), dtype=np.int64)
        regimes = None if self.regimes is None else np.array(self.regimes, dtype=np.int64)
        targets = None if self.targets is None else np.array(self.targets, dtype=np.int8)
        n, d = x.shape
        if len(self.columns) != d or self.preprocessor.columns != self.columns or rows.shape != (n,):
            raise ValueError(
                f"x has shape {x.shape}, but there are {len(self.columns)} names, {rows.size} rows."
            )
        if regimes is not None and (regimes.shape != (n,) or not self.regime_labels):
            raise ValueError(
                f"regimes has shape {regimes.shape}; it needs one entry a row ({n}), and labels."
            )
        if regimes is not None and regimes.size and not -1 <= regimes.min() <= regimes.max() < self.n_regimes:
            raise ValueError(f"regimes must lie in -1 .. {self.n_regimes - 1}.")
        if targets is not None and (targets.shape != (self.n_regimes, d) or targets[0].any()):
            raise ValueError(f"targets must have shape {(self.n_regimes, d)}, with row 0 zero.")
        for name, array in (("x", x), ("row_index", rows), ("regimes", regimes), ("targets", targets)):
            if array is not None:
                array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def from_table(
        cls,
        X: Any,
        *,
        regimes: Any = None,
        targets: Any = None,
        observational: Hashable = 0,
        transform: str = "none",
        columns: Sequence[str] | None = None,
        missing: Missing = "error",
        allow_constant: bool = False,
    ) -> Self:
        """Check a table and what is known about it, and make it a data set.

        Parameters
        ----------
        X : table or array-like [n, d]
            A pandas, polars or pyarrow table, an array, or nested lists. Names come from the table (numbers as
            names become text); the columns of an array are called ``X1 .. Xd``.
        regimes : sequence of n labels, optional
            Any hashable labels; -1, None and NaN mean unknown. Labels are numbered in sorted order after the
            observational one.
        targets : mapping, table or matrix, optional
            What each regime intervened on, needs ``regimes``: a dict from label to one or several variable
            names; a 0/1 table whose columns are the variables and whose index holds the labels; or a 0/1
            matrix ``[n_regimes, d]`` with row 0 zero, where label ``k`` (an integer) is row ``k``. Every label
            in ``regimes`` but the observational one must occur.
        observational : hashable, default 0
            Which label is observational. It becomes regime 0. None: there is none, and regime 0 is a reference
            without rows. The same happens if the default 0 never occurs; any other label must occur.
        transform : {"none", "log", "log1p", "rank-gaussian"}
            See :class:`latentdo.transforms.Preprocessor`.
        columns : sequence of str, optional
            For a table, the columns to use, in this order; for an array, the names to give.
        missing : {"error", "drop"}
            What to do about rows with NaN or infinite values.
        allow_constant : bool
            Accept columns that never vary. They carry no information, so the default is to refuse them.

        Raises
        ------
        ValueError, TypeError
            If anything cannot be used; the message names the place and the remedy.

        Warns
        -----
        DataWarning
            If there are no more rows than variables, or columns differ in scale by more than 1e6.
        """
        if missing not in ("error", "drop"):
            raise ValueError(f'missing={missing!r} is unknown; use "error" or "drop".')
        values, names = table_to_array(X, columns=columns, min_rows=1)
        n_all = values.shape[0]
        codes, seen = (None, []) if regimes is None else _factorise(regimes, n_all, X)
        kept = np.arange(n_all)
        if missing == "drop":
            kept = np.flatnonzero(np.isfinite(values).all(axis=1))
            values = values[kept]
            codes = None if codes is None else codes[kept]
        _check_finite(values, names)
        check_array(values, ensure_min_samples=2)
        constant = [] if allow_constant else [names[j] for j in np.flatnonzero(np.ptp(values, axis=0) == 0.0)]
        if constant:
            raise ValueError(
                f"Constant columns: {_listed(constant)}. A variable that never changes has no causes or effects "
                "that data could show; drop these columns."
            )
        preprocessor = Preprocessor.fit(values, transform, names, row_index=kept)
        _warn_about_shape(values, preprocessor)
        labels: tuple[Hashable, ...] = ()
        matrix = None
        if codes is not None:
            labels, rows_by_label = _order_labels(seen, targets, observational, bool((codes < 0).any()))
            position = {label: k for k, label in enumerate(labels)}
            codes = np.array([position[label] for label in seen] + [-1], dtype=np.int64)[codes]
            if targets is not None:
                matrix = _targets_matrix(targets, labels, rows_by_label, names)
        elif targets is not None:
            raise ValueError("targets were given without regimes; pass regimes= too, one label a row.")
        return cls(values, names, preprocessor, codes, labels, matrix, kept, n_all - len(kept))

    @property
    def n_rows(self) -> int:
        """Number of rows ``n``."""
        return int(self.x.shape[0])

    @property
    def n_variables(self) -> int:
        """Number of variables ``d``."""
        return int(self.x.shape[1])

    @property
    def n_regimes(self) -> int:
        """Number of regimes that have a label, the reference included; 0 if regimes are unknown."""
        return len(self.regime_labels)

    @cached_property
    def z(self) -> Array:
        """The transformed and standardised rows ``[n, d]``, read-only."""
        z = np.ascontiguousarray(self.preprocessor.forward(self.x))
        z.setflags(write=False)
        return z

    def take(self, rows: ArrayLike) -> Self:
        """Select rows by position, repeats allowed; the preprocessor stays the same."""
        at = np.asarray(rows, dtype=np.int64)
        regimes = None if self.regimes is None else self.regimes[at]
        return replace(self, x=self.x[at], regimes=regimes, row_index=self.row_index[at])

    def split(
        self, fraction: float, random_state: int | np.random.Generator | np.random.RandomState | None = None
    ) -> tuple[Self, Self]:
        """Split the rows at random into two parts that share the preprocessor.

        Known regimes are spread proportionally over both parts; rows keep their order.

        Parameters
        ----------
        fraction : float
            Share of the rows in the first part, between 0 and 1; each part gets at least one row.
        random_state : int, Generator, RandomState or None
            Source of randomness; an int always gives the same split.

        Examples
        --------
        >>> import numpy as np
        >>> data = Dataset.from_table(np.arange(20.0).reshape(10, 2))
        >>> train, test = data.split(0.8, random_state=0)
        >>> train.n_rows, test.n_rows
        (8, 2)
        """
        if not 0.0 < fraction < 1.0:
            raise ValueError(f"fraction={fraction} must lie strictly between 0 and 1.")
        n = self.n_rows
        if n < 2:
            raise ValueError(f"Cannot split {n} row(s) into two parts.")
        rng = (
            random_state
            if isinstance(random_state, np.random.Generator)
            else check_random_state(random_state)
        )
        order = rng.permutation(n)
        if self.regimes is not None:
            order = order[np.argsort(self.regimes[order], kind="stable")]
        size = min(max(round(fraction * n), 1), n - 1)
        # systematic sampling along the order: exactly `size` rows, spread evenly over the regimes
        first = np.zeros(n, dtype=bool)
        first[order] = np.diff(np.arange(n + 1) * size // n).astype(bool)
        return self.take(np.flatnonzero(first)), self.take(np.flatnonzero(~first))

    def content_hash(self) -> str:
        """Hexadecimal SHA-256 of the names and the values, for provenance."""
        digest = hashlib.sha256(repr((self.columns, self.x.shape)).encode())
        digest.update(np.ascontiguousarray(self.x, dtype="<f8").tobytes())
        return digest.hexdigest()


def validate_rows(X: Any, columns: Sequence[str], *, estimator: str = "LatentInterventionDAG") -> Array:
    """Check new rows against the variables of a fitted model.

    Parameters
    ----------
    X : table or array-like [n, d]
        A table is aligned by name, whatever the order of its columns; an array must have the fitted order.
    columns : sequence of str
        Names of the variables seen in ``fit``.
    estimator : str
        Name for the message.

    Returns
    -------
    ndarray [n, d] of float64
        Finite values in the order of ``columns``.

    Raises
    ------
    ValueError
        If columns are missing or unexpected, or values are not finite.

    Examples
    --------
    >>> import pandas as pd
    >>> validate_rows(pd.DataFrame({"b": [1.0], "a": [2.0]}), columns=["a", "b"])
    array([[2., 1.]])
    """
    values, names = table_to_array(X, min_rows=1, default_names=columns, estimator=estimator)
    _check_finite(values, names, remedy="remove these rows or fill them in")
    return values


def table_to_array(
    X: Any,
    *,
    columns: Sequence[str] | None = None,
    min_rows: int = 1,
    default_names: Sequence[str] | None = None,
    estimator: str | None = None,
) -> tuple[Array, tuple[str, ...]]:
    """Turn any table into a new float64 matrix and its names, refusing what is not a number.

    Parameters
    ----------
    X : table or array-like [n, d]
        See :meth:`Dataset.from_table`. NaN and infinity pass.
    columns : sequence of str, optional
        Columns to keep of a table, or names to give to an array.
    min_rows : int
        Fewer rows are an error.
    default_names : sequence of str, optional
        Names of a fitted model: a table must have exactly these and is brought into their order.
    estimator : str, optional
        Who asks, for messages.

    Returns
    -------
    values : ndarray [n, d] of float64
    names : tuple of str
    """
    named = _columns_of(X)
    if named is None:
        array = check_array(X, dtype="numeric", ensure_all_finite=False, ensure_min_samples=min_rows)
        values = _to_float64(array, "the array")
        chosen = columns if default_names is None else default_names
        names = [f"X{j + 1}" for j in range(values.shape[1])] if chosen is None else [str(c) for c in chosen]
        if estimator is not None and len(names) != values.shape[1]:
            raise ValueError(
                f"X has {values.shape[1]} features, but {estimator} is expecting {len(names)} features as input."
            )
        if len(names) != values.shape[1]:
            raise ValueError(f"columns has {len(names)} names, but X has {values.shape[1]} columns.")
        _check_names(names)
        return values, tuple(names)
    _check_names([name for name, _ in named])
    table = dict(named)
    wanted = [str(c) for c in (columns if default_names is None else default_names) or table]
    absent = [name for name in wanted if name not in table]
    extra = [name for name in table if name not in wanted] if default_names is not None else []
    if absent or extra:
        parts = [f"missing: {_listed(absent)}"] * bool(absent) + [f"unexpected: {_listed(extra)}"] * bool(
            extra
        )
        raise ValueError(
            f"The columns of X do not match; {'; '.join(parts)}. Expected exactly {_listed(wanted)}."
            if default_names is not None
            else f"X has no column {_listed(absent)}; its columns are {_listed(list(table))}."
        )
    _check_names(wanted)
    text = [name for name in wanted if not _is_numeric(table[name])]
    if text:
        raise ValueError(_text_message(table[text[0]], text))
    arrays = [_to_float64(_numbers(table[name]), f"column {name!r}") for name in wanted]
    n = len(named[0][1]) if named else 0
    values = np.column_stack(arrays) if arrays else np.zeros((n, 0))
    check_array(values, ensure_all_finite=False, ensure_min_samples=min_rows)
    return np.ascontiguousarray(values), tuple(wanted)


def _columns_of(X: Any) -> list[tuple[str, pd.Series[Any]]] | None:
    """Names and columns of a table, each column as a pandas Series; None if X is not a table."""
    if isinstance(X, pd.DataFrame):
        return [(str(name), X.iloc[:, j]) for j, name in enumerate(X.columns)]
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X is a lazy table; call .collect() first.")
    table = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(table, nw.DataFrame):
        return None
    return [(str(name), _as_series(table[name])) for name in table.columns]


def _as_series(column: nw.Series[Any]) -> pd.Series[Any]:
    """Bring a polars or pyarrow column to pandas without needing pyarrow."""
    if column.dtype == nw.Boolean or column.dtype.is_numeric():
        if column.null_count() == 0 and column.dtype.is_integer():
            return pd.Series(column.to_numpy())
        return pd.Series(np.asarray(column.cast(nw.Float64).to_numpy(), dtype=np.float64))
    return pd.Series(column.to_list(), dtype=object)


def _is_numeric(column: pd.Series[Any]) -> bool:
    if pd.api.types.is_bool_dtype(column.dtype) or pd.api.types.is_numeric_dtype(column.dtype):
        return True
    if column.dtype != object:
        return False
    return _first_text(column) is None


def _first_text(column: pd.Series[Any]) -> int | None:
    """Position of the first entry that is neither a number nor missing."""
    for i, value in enumerate(column.to_numpy(dtype=object)):
        if isinstance(value, str | bytes) or not (value is None or value is pd.NA or np.isscalar(value)):
            try:
                if isinstance(value, str | bytes):
                    return i
                float(value)
            except (TypeError, ValueError):
                return i
    return None


def _numbers(column: pd.Series[Any]) -> NDArray[Any]:
    """Values of a numeric column; missing entries become NaN, which later checks report."""
    if pd.api.types.is_complex_dtype(column.dtype):
        raise ValueError(
            f"Complex data not supported: column {column.name!r}; pass real and imaginary parts."
        )
    if isinstance(column.dtype, np.dtype) and column.dtype != object:
        return column.to_numpy()
    if not column.isna().any() and pd.api.types.is_integer_dtype(column.dtype):
        return column.to_numpy(dtype=object).astype(np.int64)
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _to_float64(values: NDArray[Any], where: str) -> Array:
    """Convert, and say so if large integers lose digits."""
    out = np.array(values, dtype=np.float64, order="C")
    if values.dtype.kind in "iu" and values.size and (np.abs(out) > 2.0**53).any():
        warnings.warn(f"Integers beyond 2**53 in {where} were rounded to float64.", DataWarning, stacklevel=3)
    return out


def _text_message(first: pd.Series[Any], names: list[str]) -> str:
    row = _first_text(first.astype(object))
    shown = "" if row is None else f" (row {row} of {names[0]!r} is {first.iloc[row]!r})"
    looks = pd.to_numeric(first.astype(object), errors="coerce").notna().all()
    convert = f"numbers stored as text: convert with X[{names[0]!r}] = pd.to_numeric(X[{names[0]!r}])"
    encode = "drop them, or encode categories as 0/1 columns, for example with pandas.get_dummies"
    return f"Non-numeric columns: {_listed(names)}{shown}; {convert if looks else encode}."


def _check_names(names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise ValueError(
            f"Duplicate column names: {_listed(twice)}; rename or drop them, names must be unique."
        )


def _check_finite(
    values: Array,
    names: Sequence[str],
    remedy: str = 'pass missing="drop" to drop these rows, or fill them in',
) -> None:
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    row, j = (int(i) for i in np.argwhere(bad)[0])
    counts = [f"{names[i]} {int(bad[:, i].sum())}" for i in np.flatnonzero(bad.any(axis=0))]
    kind = "NaN" if np.isnan(values[row, j]) else "inf"
    more = f", ... ({len(counts)} columns)" if len(counts) > _SHOWN else ""
    raise ValueError(
        f"Input X contains NaN or infinity: the first is {kind} in row {row} (counted from 0), column {names[j]!r}. "
        f"Cells by column: {', '.join(counts[:_SHOWN])}{more}. To go on, {remedy}."
    )


def _warn_about_shape(values: Array, preprocessor: Preprocessor) -> None:
    n, d = values.shape
    if n <= d:
        warnings.warn(
            f"There are only {n} rows for {d} variables; a graph found in so few rows means little.",
            DataWarning,
            stacklevel=3,
        )
    scale = np.where(np.ptp(values, axis=0) > 0.0, preprocessor.scale, np.nan)
    if np.isfinite(scale).any() and np.nanmax(scale) / np.nanmin(scale) > _SCALE_RATIO:
        low, high = int(np.nanargmin(scale)), int(np.nanargmax(scale))
        warnings.warn(
            f"Columns differ hugely in scale: the standard deviation of {preprocessor.columns[high]!r} is "
            f"{scale[high]:.3g}, that of {preprocessor.columns[low]!r} is {scale[low]:.3g}. Each column is "
            "standardised, so this does no harm if the units are right; check them.",
            DataWarning,
            stacklevel=3,
        )


def _listed(names: Iterable[Hashable]) -> str:
    shown = [repr(name) for name in names]
    return ", ".join(shown[:_SHOWN]) + (f", ... ({len(shown)} in all)" if len(shown) > _SHOWN else "")


def _plain(label: Any) -> Hashable:
    """Python's own scalar: 1.0 and np.int64(1) are the label 1."""
    value = label.item() if isinstance(label, np.generic) else label
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return cast("Hashable", value)


def _factorise(regimes: Any, n_rows: int, X: Any) -> tuple[NDArray[np.int64], list[Hashable]]:
    """Codes by first appearance, and the labels; unknown entries are -1."""
    if isinstance(regimes, str | bytes | Mapping) or not hasattr(regimes, "__len__"):
        raise TypeError(f"regimes must be a sequence with one label a row, got {type(regimes).__name__}.")
    shape = getattr(regimes, "shape", (len(regimes),))
    if len(shape) != 1:
        raise ValueError(f"regimes must be 1D, one label a row; got shape {tuple(shape)}.")
    if len(regimes) != n_rows:
        raise ValueError(f"regimes has {len(regimes)} entries, but X has {n_rows} rows (samples).")
    if isinstance(X, pd.DataFrame) and isinstance(regimes, pd.Series) and not X.index.equals(regimes.index):
        if X.index.is_unique and set(X.index) == set(regimes.index):
            raise ValueError(
                "regimes has the index of X in another order; pass regimes.loc[X.index], or regimes.to_numpy() if "
                "its order is right."
            )
    listed = regimes.to_pylist() if hasattr(regimes, "to_pylist") else list(regimes)
    try:
        raw, uniques = pd.factorize(pd.Series(listed, dtype=object).to_numpy(dtype=object))
    except TypeError as error:
        raise TypeError("regimes must hold hashable labels, such as text or integers.") from error
    position: dict[Hashable, int] = {}
    to_code = []
    for label in map(_plain, uniques):
        unknown = label == -1 and not isinstance(label, bool)
        to_code.append(-1 if unknown else position.setdefault(label, len(position)))
    return np.array([*to_code, -1], dtype=np.int64)[raw], list(position)


def _order_labels(
    seen: list[Hashable], targets: Any, observational: Hashable, has_unknown: bool
) -> tuple[tuple[Hashable, ...], bool]:
    """Regime labels in order of their index, and whether a table of targets is to be read by label."""
    reference = _plain(observational)
    if reference is not None and reference not in seen:
        twin = [label for label in seen if str(label) == str(reference)]
        if twin:
            raise ValueError(
                f"observational={reference!r} is a {type(reference).__name__}, but regimes holds {twin[0]!r}, a "
                f"{type(twin[0]).__name__}; pass observational={twin[0]!r}."
            )
        if reference != 0:
            raise ValueError(
                f"observational={reference!r} does not occur in regimes, whose labels are {_listed(seen)}; "
                "name one of them, or pass observational=None if no rows are observational."
            )
    first: Hashable = REFERENCE_LABEL if reference is None else reference
    known, by_label = _labels_of(targets, seen)
    if not by_label:
        if any(
            type(label) not in (int, bool) or not 0 <= cast("int", label) < len(known) for label in seen
        ) or (reference not in (None, 0) or (reference is None and 0 in seen)):
            raise ValueError(
                f"A targets matrix with {len(known)} rows needs integer labels 0 .. {len(known) - 1} with 0 "
                f"observational, but regimes holds {_listed(seen)} (observational={observational!r}); pass a dict "
                "from label to variable names, or a table whose index holds the labels."
            )
        return (first, *known[1:]), False
    if targets is not None:
        lost = [label for label in seen if label not in known and label != reference]
        if lost:
            raise ValueError(
                f"targets does not mention {_listed(lost)}, which occur in regimes; add them (with no names if "
                "nothing was targeted)."
            )
        unseen = [label for label in known if label not in seen and label != reference]
        if unseen and not has_unknown:
            warnings.warn(
                f"targets mentions {_listed(unseen)}, which no row of regimes has.", DataWarning, stacklevel=4
            )
    others = {label: None for label in [*seen, *known] if label != reference}
    try:
        ordered = sorted(others)  # type: ignore[type-var]
    except TypeError:
        ordered = sorted(others, key=lambda label: (type(label).__name__, repr(label)))
    return (first, *ordered), True


def _labels_of(targets: Any, seen: list[Hashable]) -> tuple[list[Hashable], bool]:
    """Labels that targets speaks about; False if its rows are numbered rather than labelled."""
    if targets is None:
        return [], True
    if isinstance(targets, Mapping):
        return [_plain(label) for label in targets], True
    if isinstance(targets, pd.DataFrame):
        index = [_plain(label) for label in targets.index]
        if len(set(index)) < len(index):
            raise ValueError("targets has duplicate labels in its index; give one row a label.")
        if index != list(range(len(index))):
            return index, True
    return list(range(len(targets))), False


def _targets_matrix(
    targets: Any, labels: tuple[Hashable, ...], by_label: bool, columns: tuple[str, ...]
) -> NDArray[np.int8]:
    """Read a dict, table or matrix of targets into ``[n_regimes, d]``."""
    out = np.zeros((len(labels), len(columns)), dtype=np.int8)
    if isinstance(targets, Mapping):
        for raw, named in targets.items():
            label = _plain(raw)
            names = [named] if isinstance(named, str | int) else list(named if named is not None else ())
            absent = [name for name in names if str(name) not in columns]
            if absent:
                raise ValueError(
                    f"targets of {label!r} names {_listed(absent)}, but the variables are {_listed(columns)}."
                )
            for name in names:
                out[labels.index(label), columns.index(str(name))] = 1
    else:
        is_table = _columns_of(targets) is not None
        values, _ = table_to_array(targets, default_names=columns if is_table else None)
        if values.shape[1] != len(columns):
            raise ValueError(
                f"targets has {values.shape[1]} columns, but there are {len(columns)} variables."
            )
        if not np.isin(values, (0.0, 1.0)).all():
            raise ValueError("targets must hold only 0 and 1.")
        order = [labels.index(_plain(k)) for k in targets.index] if by_label else np.arange(len(labels))
        out[order] = values.astype(np.int8)
    if out[0].any():
        hit = [columns[j] for j in np.flatnonzero(out[0])]
        raise ValueError(
            f"targets says that the observational regime {labels[0]!r} intervenes on {_listed(hit)}; row 0 must be "
            "zero. Name the observational label with observational=, or None if there is none."
        )
    return out
