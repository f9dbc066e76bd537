"""The frozen data set: rows, names, scaling, and what is known about regimes and targets."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Self, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from latentdo.data.atoms import Atoms
from latentdo.data.background import Background
from latentdo.data.circumstances import Circumstances
from latentdo.data.kinds import Kind, find_kinds
from latentdo.data.labels import encode_regimes, encode_targets, order_labels, warn_about_rare_labels
from latentdo.data.missing import check_seen, warn_about_missing, warn_about_rows_left_out
from latentdo.data.offset import check_counted
from latentdo.data.problems import every_problem
from latentdo.data.refusals import check_finite, check_infinite, check_varying
from latentdo.data.remarks import warn_about_copies, warn_about_repeats, warn_about_shape
from latentdo.data.table import LABEL_REMEDY, Missing, read_columns
from latentdo.data.together import encode_groups, label_groups, read_circumstances
from latentdo.data.transforms import Preprocessor
from latentdo.data.weights import check_weights, encode_weights

Array = NDArray[np.float64]

BLOCKS = 40
"""Stretches of time into which rows are cut where some are drawn or held out."""

SHORTEST_BLOCK = 20
"""Rows of such a stretch, at least."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Validated rows, in the user's units and standardised, with what is known about their regimes.

    Build it with :meth:`from_table`; the arrays are read-only.

    Parameters
    ----------
    x : ndarray [n, d] of float64
        The rows in the user's units, C-contiguous; codes where columns have levels, NaN where a cell is missing.
    columns : tuple of str
        One name a variable.
    preprocessor : Preprocessor
        Maps ``x`` to :attr:`z`, and says of what kind columns are; fitted on all rows of the table this data set came
        from.
    regimes : ndarray [n] of int64, optional
        Index of each row's regime, -1 where unknown. None if nothing is known about any row.
    regime_labels : tuple
        The user's label of each regime index; entry 0 is the observational (reference) label.
    targets : ndarray [n_regimes, d] of int8, optional
        ``targets[k, j] == 1``: regime ``k`` changed the mechanism of variable ``j``. Row 0 is zero.
    row_index : ndarray [n] of int64, optional
        Position of each row in the table the user passed; ``0 .. n - 1`` by default.
    n_dropped : int
        Rows of that table left out on request (``missing="drop"``, or a weight of 0).
    groups : ndarray [n] of int64, optional
        Group of each row: rows of a group share their regime. None if rows do not belong together.
    group_labels : tuple
        The user's label of each group; groups with larger numbers are rows on their own.
    where : Circumstances
        Time, series, batch, weight and offset of each row, as far as they are known. Neighbours in time tend to share
        their regime; a row of weight 2 counts like two.
    background : Background, optional
        What these explain; ``expected`` and ``unit`` are then what it says of the rows, ``[n, d]``.

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
    groups: NDArray[np.int64] | None = None
    group_labels: tuple[Hashable, ...] = ()
    where: Circumstances = Circumstances()  # noqa: RUF009  (frozen)
    background: Background | None = None
    expected: Array | None = None
    unit: Array | None = None

    def __post_init__(self) -> None:
        """Check that the parts fit together, and make the arrays read-only."""
        x = _read_only(self.x, np.float64)
        rows = _read_only(self.row_index if self.row_index.size else np.arange(len(x)), np.int64)
        regimes = None if self.regimes is None else _read_only(self.regimes, np.int64)
        targets = None if self.targets is None else _read_only(self.targets, np.int8)
        groups = None if self.groups is None else _read_only(self.groups, np.int64)
        n, d = x.shape
        if len(self.columns) != d or self.preprocessor.columns != self.columns or rows.shape != (n,):
            raise ValueError(
                f"x has shape {x.shape}, but there are {len(self.columns)} names, {rows.size} rows."
            )
        if regimes is not None and (regimes.shape != (n,) or not self.regime_labels):
            raise ValueError(
                f"regimes has shape {regimes.shape}; it needs one entry per row ({n}), and labels."
            )
        if regimes is not None and regimes.size and not -1 <= regimes.min() <= regimes.max() < self.n_regimes:
            raise ValueError(f"regimes must lie in -1 .. {self.n_regimes - 1}.")
        if targets is not None and (targets.shape != (self.n_regimes, d) or targets[0].any()):
            raise ValueError(f"targets must have shape {(self.n_regimes, d)}, with row 0 zero.")
        if groups is not None and (groups.shape != (n,) or (n and groups.min() < 0)):
            raise ValueError(f"groups must be {n} numbers from 0, one entry per row.")
        for name, array in (
            ("x", x),
            ("row_index", rows),
            ("regimes", regimes),
            ("targets", targets),
            ("groups", groups),
        ):
            object.__setattr__(self, name, array)

    @classmethod
    def from_table(
        cls,
        X: Any,
        *,
        regimes: Any = None,
        targets: Any = None,
        groups: Any = None,
        time: Any = None,
        series: Any = None,
        batch: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        observational: Hashable = 0,
        transform: str = "none",
        columns: Sequence[str] | None = None,
        kinds: Mapping[str, str | Kind] | None = None,
        missing: Missing = "error",
        allow_constant: bool = False,
    ) -> Self:
        """Check a table and what is known about it, and make it a data set.

        Parameters
        ----------
        X : table or array-like [n, d]
            A pandas, polars or pyarrow table, an array, or nested lists. Names come from the table (numbers
            become text); the columns of an array are called ``X1 .. Xd``.
        regimes : sequence of n labels, optional
            Any hashable labels; -1, None and NaN mean unknown. Labels are numbered in sorted order after the
            observational one.
        targets : mapping, table or matrix, optional
            What each regime intervened on, needs ``regimes``: a dict from label to one or several variable
            names; a 0/1 table whose columns are the variables and whose index holds the labels; or a 0/1
            matrix ``[n_regimes, d]`` with row 0 zero, where label ``k`` (an integer) is row ``k``. Every
            label in ``regimes`` but the observational one must occur.
        groups : sequence of n labels, optional
            Any hashable labels; rows of a group share their regime, and a row with a label in ``regimes`` gives it to
            its whole group. -1, None and NaN: a row on its own.
        time : sequence of n numbers, dates or timestamps, optional
            When each row was measured, in any order; neighbours tend to share their regime.
        series : sequence of n labels, optional
            Rows of different series are no neighbours. Without ``time``, rows are in order.
        batch : sequence of n labels, optional
            Batches may differ in level and scale of everything, see :class:`.Background`.
        sample_weight : sequence of n numbers, or a number, optional
            How often each row counts: 2 as if it were there twice, 0 as if it were not there.
        offset : sequence of n numbers, optional
            What counts of each row are in proportion to, such as its library size.
        observational : hashable, default 0
            Which label is observational. It becomes regime 0. None: there is none, and regime 0 is a
            reference without rows. The same happens if the default 0 never occurs; another label must occur.
        transform : {"none", "log", "log1p", "rank-gaussian"}
            See :class:`latentdo.data.transforms.Preprocessor`.
        columns : sequence of str, optional
            For a table, the columns to use, in this order; for an array, the names to give.
        kinds : mapping from name to kind, optional
            What columns are ("continuous", "binary", "count", "categorical") where that is not to be found, see
            :mod:`latentdo.data.kinds`.
        missing : {"error", "drop", "model"}
            What to do about rows with missing values: refuse them, leave them out (those with infinite values too), or
            keep them, with NaN for what is missing.
        allow_constant : bool
            Accept columns that never vary. They carry no information, so the default is to refuse them.

        Raises
        ------
        ValueError, TypeError
            If anything cannot be used; the message names the place and the remedy.

        Warns
        -----
        DataWarning
            If there are no more rows than variables, columns differ in scale by more than 1e6 or copy each other,
            rows repeat or count very often, values are rounded or shared by many rows, cells are missing, labels were
            given without saying which of them is observational, or a label with very few rows is spelt almost as
            another one.
        """
        if missing not in get_args(Missing):
            raise ValueError(f'missing={missing!r} is unknown; use "error", "drop" or "model".')
        label_remedy = LABEL_REMEDY if regimes is None else None
        with every_problem(X, columns, kinds, missing, label_remedy, allow_constant=allow_constant):
            values, names, given, coded = read_columns(X, columns, kinds, label_remedy=label_remedy)
            n_all = len(values)
            kept = np.arange(n_all)
            index = X.index if isinstance(X, pd.DataFrame) else None
            weights = None if sample_weight is None else encode_weights(sample_weight, n_all, index)
            if weights is not None:
                kept = np.flatnonzero(weights > 0.0)
                values = values[kept]
                check_weights(weights[kept], kept)
            if missing == "drop":
                whole = np.isfinite(values).all(axis=1)
                kept, values = kept[whole], values[whole]
                if len(kept) < min(2, n_all):
                    raise ValueError(
                        f"Only {len(kept)} of {n_all} rows (samples) have no missing value; keep the others with "
                        'missing="model", or drop the columns with the most missing values first.'
                    )
                warn_about_rows_left_out(int((~whole).sum()), int(whole.size))
            found_kinds = find_kinds(values, names, coded, given, look_for_counts=transform == "none")
            if missing == "model":
                check_infinite(values, names, row_index=kept)
                check_seen(values, names)
            else:
                check_finite(values, names, row_index=kept)
            check_array(values, ensure_min_samples=2, ensure_all_finite=False)
            if not allow_constant:
                check_varying(values, names)
        where = read_circumstances(
            kept, n_all, index, time=time, series=series, batch=batch, weights=weights, offset=offset
        )
        preprocessor = Preprocessor.fit(values, transform, names, kept, where.weight, found_kinds)
        if where.offset is not None:
            check_counted(found_kinds, names)
            typical = float(np.exp(np.average(np.log(where.offset), weights=where.weight)))
            preprocessor = replace(preprocessor, exposure=typical)
        varying = np.fmin.reduce(values) < np.fmax.reduce(values)
        spread = np.where(varying & preprocessor.continuous, preprocessor.scale, 0.0)
        warn_about_shape(len(values), spread, names)
        standardised = preprocessor.forward(values)
        for j in np.flatnonzero(varying & ~preprocessor.continuous):
            standardised[:, j] = (values[:, j] - np.nanmean(values[:, j])) / np.nanstd(values[:, j])
        warn_about_copies(
            standardised[:, varying], [name for name, s in zip(names, varying, strict=True) if s]
        )
        warn_about_repeats(values)
        values.setflags(write=False)
        found = cls(values, names, preprocessor, row_index=kept, n_dropped=n_all - len(kept), where=where)
        group_labels: Sequence[Hashable] = ()
        if groups is not None:
            members, group_labels = encode_groups(groups, kept, n_all, index)
            found = replace(found, groups=members, group_labels=tuple(group_labels))
        if groups is not None and (time is not None or series is not None):
            raise ValueError(
                "groups were given together with time or series; rows of a group share their regime, neighbours in "
                "time only tend to: choose one."
            )
        warn_about_missing(values, names, found.blocks, found_kinds)
        if regimes is None:
            if targets is not None:
                raise ValueError("targets were given without regimes; pass regimes= too, one label per row.")
            found.atoms.warn(values, names)
            return found
        codes, seen = encode_regimes(regimes, kept, n_all, index)
        warn_about_rare_labels(codes, seen)
        if found.groups is not None:
            codes = label_groups(codes, found.groups, kept, seen, group_labels)
        labels = order_labels(
            seen, targets, observational, has_unknown=bool((codes < 0).any()), columns=names
        )
        matrix = None if targets is None else encode_targets(targets, labels, seen, names)
        codes = np.array([*(labels.index(label) for label in seen), -1], dtype=np.int64)[codes]
        found = replace(found, regimes=codes, regime_labels=labels, targets=matrix)
        found.atoms.warn(values, names)
        return found

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What every column is."""
        return self.preprocessor.kinds

    @property
    def is_mixed(self) -> bool:
        """Whether some column is not continuous."""
        return not self.preprocessor.continuous.all()

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
    def n_groups(self) -> int:
        """Number of groups that have rows, those of one row included; rows that do not belong together are such."""
        return self.n_rows if self.groups is None else int(np.unique(self.groups).size)

    @cached_property
    def blocks(self) -> NDArray[np.int64] | None:
        """What is drawn or held out as a whole, by rows: groups, or stretches of time; None if rows are single."""
        if self.groups is not None or self.time is None:
            return self.groups
        order, gaps = self.where.order()
        length = max(self.n_rows // BLOCKS, SHORTEST_BLOCK)
        begins = np.flatnonzero(np.isinf(gaps))
        place = np.arange(order.size) - np.repeat(begins, np.diff(np.append(begins, order.size)))
        found = np.empty(order.size, dtype=np.int64)
        found[order] = np.cumsum(place % length == 0) - 1
        return found

    def together(self) -> dict[str, Any]:
        """Which rows belong together, when and where they were measured, and how much they count, for another fit."""
        where = self.where
        names = where.batch_names
        return {
            "groups": self.groups,
            "time": None if where.time is None or where.counted else where.shown(where.time),
            "series": where.series,
            "batch": None if where.batch is None else [names[code] for code in where.batch.tolist()],
            "sample_weight": where.weight,
            "offset": where.offset,
        }

    @property
    def time(self) -> Array | None:
        """Time of every row, if that is known."""
        return self.where.time

    @property
    def weight(self) -> Array | None:
        """How often every row counts, if not once."""
        return self.where.weight

    @cached_property
    def offset(self) -> Array | None:
        """Logarithm of what counts are in proportion to, in units of a typical one, ``[n]``; None if there is none."""
        return self.preprocessor.offset_of(self.where.offset)

    @property
    def total(self) -> float:
        """How many rows those here count for."""
        return self.where.total(self.n_rows)

    def explained(
        self,
        *,
        lags: int,
        periods: tuple[float, ...],
        responsibilities: Array | None = None,
        adjacency: NDArray[np.int8] | None = None,
    ) -> Self:
        """The same rows less what time, the past and batches explain: ``z`` is then what is new in them.

        One unit of ``z`` is a standard deviation of that, in usual rows; see :class:`.Background`.
        """
        assert self.background is None
        z = self.preprocessor.forward(self.x)
        fit = partial(
            Background.fit,
            where=self.where,
            lags=lags,
            periods=periods,
            responsibilities=responsibilities,
            adjacency=adjacency,
        )
        usual = fit(z).typical_unit()
        background = fit(z / usual)
        expected, unit = background.describe(z / usual, self.where)
        preprocessor = replace(self.preprocessor, scale=self.preprocessor.scale * usual)
        return replace(self, preprocessor=preprocessor, background=background, expected=expected, unit=unit)

    @property
    def settled(self) -> Self:
        """The same rows less shifts of level that last for a while, too; see :class:`.Shifts`."""
        assert self.background is not None
        assert self.expected is not None
        assert self.unit is not None
        shift = self.background.shifts(self.preprocessor.forward(self.x), self.where)
        return self if not shift.any() else replace(self, expected=self.expected + shift * self.unit)

    @cached_property
    def z(self) -> Array:
        """The transformed and standardised rows ``[n, d]``, read-only; 0/1, counts and codes of levels as they are."""
        z = np.ascontiguousarray(self.preprocessor.forward(self.x))
        if self.expected is not None and self.unit is not None:
            z = (z - self.expected) / self.unit
        z.setflags(write=False)
        return z

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are missing, ``[n, d]``."""
        return np.isnan(self.x)

    @cached_property
    def atoms(self) -> Atoms:
        """What is not continuous about the columns: rounded values, limits, zeros."""
        return Atoms.of(self.x, self.regimes, self.preprocessor.continuous)

    def spread(self, random_state: int) -> Self:
        """The same rows with rounded values spread over their rounding, for a fit; see :class:`Atoms`."""
        if not any(self.atoms.rounded):
            return self
        rng = np.random.default_rng([random_state, *b"atoms"])
        return replace(self, x=self.atoms.spread(self.x, rng))

    def take(self, rows: ArrayLike) -> Self:
        """Select rows by position, repeats allowed; the preprocessor stays the same."""
        at = np.asarray(rows, dtype=np.int64)
        regimes = None if self.regimes is None else self.regimes[at]
        groups = None if self.groups is None else self.groups[at]
        expected = None if self.expected is None else self.expected[at]
        unit = None if self.unit is None else self.unit[at]
        x = self.x[at]
        x.setflags(write=False)
        return replace(
            self,
            x=x,
            regimes=regimes,
            groups=groups,
            where=self.where.take(at),
            expected=expected,
            unit=unit,
            row_index=self.row_index[at],
        )

    def split(
        self, fraction: float, random_state: int | np.random.Generator | np.random.RandomState | None = None
    ) -> tuple[Self, Self]:
        """Split the rows at random into two parts that share the preprocessor.

        Known regimes are spread proportionally over both parts; rows keep their order, and groups and stretches of
        time stay together.

        Parameters
        ----------
        fraction : float
            Share of the rows (of the groups, if there are any) in the first part, between 0 and 1; each part gets at
            least one.
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
        n, kind = self.n_rows, "row"
        if self.blocks is not None:
            n, kind = int(np.unique(self.blocks).size), "group" if self.groups is not None else "stretch"
        if n < 2:
            raise ValueError(f"Cannot split {n} {kind}(s) into two parts.")
        of_row, regimes = np.arange(self.n_rows), self.regimes
        if self.blocks is not None:
            _, leader, of_row = np.unique(self.blocks, return_index=True, return_inverse=True)
            regimes = None if regimes is None else regimes[leader]
        rng = (
            random_state
            if isinstance(random_state, np.random.Generator)
            else check_random_state(random_state)
        )
        order = rng.permutation(n)
        if regimes is not None:
            order = order[np.argsort(regimes[order], kind="stable")]
        size = min(max(round(fraction * n), 1), n - 1)
        # systematic sampling along the order: exactly `size` rows or groups, spread evenly over the regimes
        first = np.zeros(n, dtype=bool)
        first[order] = np.diff(np.arange(n + 1) * size // n).astype(bool)
        return self.take(np.flatnonzero(first[of_row])), self.take(np.flatnonzero(~first[of_row]))

    def to_frame(self) -> pd.DataFrame:
        """The rows in the user's units, as a table with the names of variables and levels."""
        return self.preprocessor.to_frame(self.x)

    def labels(self) -> list[Hashable | None] | None:
        """The user's label of every row, None where it is unknown; None if nothing is known of any row."""
        if self.regimes is None:
            return None
        return [None if k < 0 else self.regime_labels[k] for k in self.regimes]

    def content_hash(self) -> str:
        """Hexadecimal SHA-256 of the names and the values, for provenance."""
        return content_hash(self.x, self.columns)


def content_hash(x: Array, columns: Sequence[str]) -> str:
    """Hexadecimal SHA-256 of names and values: what :meth:`Dataset.content_hash` gives for rows ``[n, d]``."""
    digest = hashlib.sha256(repr((tuple(columns), x.shape)).encode())
    digest.update(np.ascontiguousarray(x, dtype="<f8").tobytes())
    return digest.hexdigest()


def _read_only(values: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Own a read-only copy, unless the array already is one."""
    if values.dtype == dtype and values.flags.c_contiguous and not values.flags.writeable:
        return values
    out = np.array(values, dtype=dtype, order="C")
    out.setflags(write=False)
    return out
