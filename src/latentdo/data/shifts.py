"""Levels that are left for a while and come back, in rows that remember those before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from latentdo.data.circumstances import LONGEST_GAP, Array, Circumstances

END_LEVEL: Final = 1e-3
"""Share of rows that may look like the ends of a stretch by chance."""

MOST_ENDS: Final = 1000
"""Rows that are looked at as such ends, the least expected ones: all their pairs are."""

MISMATCH: Final = 0.2
"""Share of what is new at the two ends that need not be the same level, come and gone."""

OUTLIER: Final = 3.0
"""Standard deviations beyond which a row between two ends does not speak any louder."""

SURE: Final = 4.0
"""Standard errors by which a variable has to be off before its level counts as shifted, too: its past is otherwise
counted from a level that it does not have, which would look like an intervention."""

DOUBT: Final = 2.0
"""Nats by which a stretch has to beat two outliers, besides the choice among all pairs of ends: false ones are not
found even where noise has three degrees of freedom (together 8)."""

SMALLEST: Final = 1e-6
"""Least scale of what is new in a row, of that of the column; less is rounding."""


@dataclass(frozen=True, eq=False)
class Shifts:
    r"""Levels that are left for a while and come back, in rows that remember.

    Where noise remembers its past, an intervention that lifts a level by :math:`\delta` shows at its two ends: what is
    new in the first row is :math:`\delta`, in those that follow only :math:`(1 - \varphi) \delta`, and
    :math:`-\varphi \delta` once it is over. Pairs of unusual rows that match are looked at as such ends, and the rows
    between them decide. Within a stretch the past is then counted from its level, so that all of :math:`\delta` is new
    in all of its rows.

    Parameters
    ----------
    habits : ndarray [lags, d]
        How much of a level of every variable is expected to be left after so many rows.
    root : ndarray [d, d]
        Makes what is new in a row independent, and of one standard deviation.
    sparse : bool
        Whether levels are shifted in few of the directions of ``root``.
    """

    habits: Array = field(default_factory=lambda: np.empty((0, 0)))
    root: Array = field(default_factory=lambda: np.empty((0, 0)))
    sparse: bool = False

    @classmethod
    def of(cls, new: Array, past: Array, lags: int, adjacency: NDArray[np.int8] | None = None) -> Self:
        """From rows ``new [n, d]`` less what their past explains, and its coefficients ``past [lags d, d]``.

        With a graph ``adjacency [d, d]``, what is independent is what its equations leave over, and shifts are those of
        single equations.
        """
        d = new.shape[1]
        own = np.array([np.diag(past[lag * d : (lag + 1) * d]) for lag in range(lags)])
        centred = new - new.mean(axis=0)
        spread = np.sqrt(np.maximum((centred**2).mean(axis=0), SMALLEST**2))
        correlation = (centred / spread).T @ (centred / spread) / len(new)
        if adjacency is None:
            values, vectors = np.linalg.eigh(correlation)
            return cls(own, vectors / np.sqrt(np.maximum(values, SMALLEST)) / spread[:, None])
        root = np.eye(d)
        for j in range(d):
            parents = np.flatnonzero(adjacency[:, j])
            inner = correlation[np.ix_(parents, parents)] + SMALLEST * np.eye(parents.size)
            slopes = np.linalg.solve(inner, correlation[parents, j])
            root[parents, j] = -slopes
            root[:, j] /= np.sqrt(max(1.0 - float(slopes @ correlation[parents, j]), SMALLEST))
        return cls(own, root / spread[:, None], sparse=True)

    def levels(self, new: Array, where: Circumstances, usual: float) -> Array:
        """By how much every row is shifted, ``[n, d]``; zero in rows that are in no stretch."""
        order, gaps = where.order()
        run = np.cumsum(~((gaps > 0.0) & (gaps <= LONGEST_GAP * usual)), dtype=np.int64)
        rows = new[order] @ self.root
        found = np.zeros_like(new)
        for begin, end, level in self._stretches(rows, run):
            found[order[begin:end]] = level
        if found.any():
            found = found @ np.linalg.pinv(self.root)
        return found

    def _stretches(self, rows: Array, run: NDArray[np.int64]) -> list[tuple[int, int, Array]]:
        """Stretches ``begin .. end - 1`` with their levels, of rows in order whose entries are independent."""
        parts = np.split(rows, rows.shape[1], axis=1) if self.sparse else [rows]
        fades, doubt = self._fades(), float(np.log(len(parts))) + DOUBT
        pairs = [
            pair for j, part in enumerate(parts) for pair in _pairs(part, run, float(fades[0, j]), doubt)
        ]
        total = np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(rows, axis=0)])
        taken = np.zeros(len(rows), dtype=bool)
        found = []
        for _, a, b in sorted(pairs, reverse=True):
            if not taken[a : b + 1].any():
                taken[a:b] = True
                over = b < len(rows) and run[b] == run[a]
                found.append((a, b, self._level(rows, total, a, b, over=over)))
        return found

    def _fades(self) -> Array:
        """How much of a level is left in the end, and after one row, of every direction of ``root``, ``[2, d]``."""
        both = np.stack([self.habits.sum(axis=0), self.habits[0]])
        return both if self.sparse else np.median(both, axis=1, keepdims=True).repeat(both.shape[1], axis=1)

    def _level(self, rows: Array, total: Array, a: int, b: int, *, over: bool) -> Array:
        """The likeliest level of the rows from ``a`` to before ``b``, ``[d]``; ``over`` if it was left there."""
        fade, first = self._fades()
        left, inside = 1.0 - fade, max(b - a - 1, 0)
        sums = rows[a] + left * (total[b] - total[a + 1])
        norm = 1.0 + inside * left**2
        if over:
            sums, norm = sums - fade * rows[b], norm + fade**2
        if inside:  # the second row remembers only the first
            sums = sums + (fade - first) * rows[a + 1]
            norm = norm + (1.0 - first) ** 2 - left**2
        level = np.asarray(sums / norm)
        if not self.sparse:
            return level
        sure = np.abs(level) * np.sqrt(norm)
        return np.where((sure > SURE) | (sure == sure.max()), level, 0.0)


def _pairs(rows: Array, run: NDArray[np.int64], fade: float, doubt: float) -> list[tuple[float, int, int]]:
    """Pairs of rows that are the ends of a stretch, with how much they and the rows between them speak for it.

    Rows at the ends may be off for any reason, and where noise has heavy tails many are. So these two only have to
    match; whether there is a stretch is up to the rows between them, given the level that the ends suggest.
    """
    n, d = rows.shape
    size = (rows**2).sum(axis=1)
    ends = np.flatnonzero(size > chi2.isf(END_LEVEL, d))
    by_size = ends[np.argsort(-size[ends], kind="stable")[:MOST_ENDS]]
    rank = np.zeros(n)
    rank[by_size] = 1.0 + np.arange(by_size.size)
    ends = np.sort(by_size)
    usual = np.clip(rows, -OUTLIER, OUTLIER)  # ends of other stretches must not speak for this one
    total = np.concatenate([np.zeros((1, d)), np.cumsum(usual, axis=0)])
    found: list[tuple[float, int, int]] = []
    stops = np.searchsorted(run, run[ends], side="right")
    for place, (a, stop) in enumerate(zip(ends.tolist(), stops.tolist(), strict=True)):
        # One that goes on to the last row has only one end.
        rest = stop - a - 1
        spoken = float(rows[a] @ (total[stop] - total[a + 1]))
        lasting = (1.0 - fade) * spoken - 0.5 * rest * (1.0 - fade) ** 2 * float(size[a])
        if lasting > np.log(rank[a]) + doubt:
            found.append((lasting + 0.5 * float(size[a]), a, stop))
        b = ends[place + 1 :]
        b = b[run[b] == run[a]]
        level = (rows[a] - fade * rows[b]) / (1.0 + fade**2)
        strength = (level**2).sum(axis=1)
        both = size[a] + size[b]
        matching = both - (1.0 + fade**2) * strength <= MISMATCH * both + chi2.isf(END_LEVEL, d)
        inside = np.maximum(b - a - 1, 0)
        spoken = (level * (total[b] - total[np.minimum(a + 1, b)])).sum(axis=1)
        gain = (1.0 - fade) * spoken - 0.5 * inside * (1.0 - fade) ** 2 * strength
        # Of so many pairs of rows that are as far off, some look like the ends of a stretch by chance.
        needed = np.log(np.maximum(rank[a], rank[b]) ** 2 / (4.0 * d)) + doubt
        whole = gain + 0.5 * (1.0 + fade**2) * strength
        found += [
            (float(whole[i]), int(a), int(b[i])) for i in np.flatnonzero(matching & (gain > needed)).tolist()
        ]
    return found


def new_by_shift(level: Array, before: NDArray[np.int64], past: Array) -> Array:
    """What is new in rows because of a shift by ``level [n, d]``, of which their past has its part."""
    moved, d = level.copy(), level.shape[1]
    for lag, row in enumerate(before):
        moved -= np.where((row >= 0)[:, None], level[row], 0.0) @ past[lag * d : (lag + 1) * d]
    return moved
