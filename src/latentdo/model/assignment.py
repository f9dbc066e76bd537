r"""The E-step: from log-densities to responsibilities, in one place.

Given everything else, the posterior of a row's regime is
:math:`q(z = k) \propto \exp(\log p(x \mid k) + \log \beta_k)`, and the log-likelihood of the row is the logarithm of
the sum of these terms. A row with a label belongs to it, and contributes :math:`\log p(x \mid k) + \log \beta_k` alone.

Rows need not have regimes of their own. :class:`Units` says how they belong together, and is the one place that knows:
the rows of a group *g* share one regime, so that their log-densities add up and its weight is paid once,

.. math:: q(z_g = k) \propto \exp\Bigl(\sum_{i \in g} \log p(x_i \mid k) + \log \beta_k\Bigr).

Nor need they count once each. A row of weight :math:`w_i` counts like :math:`w_i` equal rows: on its own it has the
posterior of one row and :math:`w_i` times its log-likelihood; in a group it adds :math:`w_i \log p(x_i \mid k)`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit

Array = NDArray[np.float64]

LIKELY = 0.5
"""What is more probable than this is more probable than not: edges, targets and memberships count as there."""

IMPOSSIBLE = -1e6
"""Log-density of a row that underflows everywhere: finite, so that fits stay comparable."""


class Assignment(NamedTuple):
    """Who belongs where.

    ``responsibilities [n, K]`` sum to one in every row; ``log_likelihood [n]`` has the regimes summed out, or is that
    of the label. Rows that belong together carry equal parts of theirs: the sum over rows is that of the table.
    """

    responsibilities: Array
    log_likelihood: Array


def assign(log_density: Array, weights: Array, labels: NDArray[np.int64] | None = None) -> Assignment:
    """Responsibilities and log-likelihood of rows, each on its own; see :meth:`Units.assign` for others.

    Densities and weights come apart because whoever assigns several rows together pays for their regime once.

    Parameters
    ----------
    log_density : ndarray [n, K]
        ``log p(x | regime)``, up to a constant per row if only responsibilities are wanted. It is overwritten: the
        responsibilities take its place.
    weights : ndarray [K]
        Shares of the regimes; they are also the responsibilities of rows that no regime can explain in float64, which
        say nothing about them.
    labels : ndarray [n] of int64, optional
        Known regime of every row, -1 where unknown.

    Examples
    --------
    >>> log_density = np.log([[0.1, 0.3], [0.2, 0.2]])
    >>> assign(log_density, np.array([0.75, 0.25])).responsibilities
    array([[0.5 , 0.5 ],
           [0.75, 0.25]])
    """
    known = np.full(len(log_density), -1, dtype=np.int64) if labels is None else labels
    log_likelihood = np.empty(len(log_density))
    _normalise(log_density, weights, _log(weights), known, log_likelihood)
    return Assignment(log_density, log_likelihood)


class Prior(NamedTuple):
    """What is believed of regimes before rows are seen.

    ``weights [K]`` are shares of units; ``duration`` is the time after which a regime is drawn anew, where rows are in
    order of time, and 0 where they are not.
    """

    weights: Array
    duration: float = 0.0


class Units:
    """How rows belong together: here not at all, every row is a unit that has a regime of its own, and counts once.

    A unit is what a regime is drawn for: weights are shares of units. Whoever assigns rows, counts what is assigned, or
    takes some of the rows asks here, and need not know what a unit is. Mechanisms are about rows, whatever the units:
    their parameters and costs count rows, as often as these count (:meth:`counted`).
    """

    single: ClassVar[bool] = True
    """Whether units are rows, so that shares of units are shares of what rows count."""

    def counted(self, values: Array) -> Array:
        """What rows carry, ``[n, ...]``, as often as they count."""
        return values

    def repeats(self) -> Array:
        """How often every row counts, ``[n]``, for compiled code; empty if once each."""
        return np.empty(0)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """There is one :data:`SEPARATE`, also in another process."""
        return "SEPARATE" if type(self) is Units else super().__reduce_ex__(protocol)

    def assign(self, log_density: Array, prior: Prior, labels: NDArray[np.int64] | None = None) -> Assignment:
        """Responsibilities and log-likelihood of rows, see :func:`assign`; the weights are shares of units."""
        return assign(log_density, prior.weights, labels)

    def prior(self, responsibilities: Array) -> Prior:
        """What to believe before rows are seen if they are assigned so, or a guess to :meth:`settle` from."""
        return Prior(responsibilities.mean(axis=0))

    def settle(self, log_density: Array, prior: Prior, labels: NDArray[np.int64] | None) -> Prior:  # noqa: ARG002
        """A likelier prior given log-densities ``[n, K]``, if :meth:`prior` can only guess."""
        return prior

    @property
    def pooled(self) -> Units:
        """Rows that go together as a whole, where it is proposed who might leave a regime."""
        return self

    def number(self, n_rows: int) -> float:
        """How many units so many rows are; only for all rows together."""
        return n_rows

    def total(self, values: Array) -> Any:
        """Sum over units of what all rows of a unit carry alike, ``[n, ...]`` to ``[...]``."""
        return values.sum(axis=0)

    def sums(self, values: Array) -> Array:
        """Sums over the units' rows, ``[n, ...]`` to ``[n_units, ...]``."""
        return values

    def means(self, values: Array) -> Array:
        """Means of the units' rows, ``[n, ...]`` to ``[n_units, ...]``."""
        return values

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """What every row carries if this is what its unit has, ``[n_units, ...]`` to ``[n, ...]``."""
        return values

    def take(self, rows: NDArray[np.int64]) -> Units:  # noqa: ARG002
        """The units of some rows."""
        return self

    def twice(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], Units]:
        """Some of the rows as if each were there twice, in different units: which rows that makes, and their units."""
        return rows, Weighted(np.full(rows.size, 2.0))

    def numbers(self) -> NDArray[np.int64]:
        """Number of every row's unit, ``[n]``, for compiled code; empty if rows are units."""
        return np.empty(0, dtype=np.int64)

    def thin(self, rows: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
        """At most about ``limit`` of the rows, evenly spaced and in the same order."""
        return rows[:: max(-(-rows.size // limit), 1)]

    def first(self, rows: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
        """About ``limit`` of the rows, which are in random order."""
        return rows[:limit]

    def draw(self, n_rows: int, limit: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """About ``limit`` rows, drawn at random from all ``n_rows``, ascending."""
        return np.sort(rng.choice(n_rows, min(limit, n_rows), replace=False))


SEPARATE = Units()
"""Rows that do not belong together."""


def _times(values: Array, repeats: Array) -> Array:
    """Rows ``[n, ...]`` as often as they count, ``[n]``."""
    return values * repeats.reshape(-1, *[1] * (values.ndim - 1))


@dataclass(frozen=True, eq=False)
class Weighted(Units):
    """Rows on their own that count more or less often than once: one of weight 2 is two units.

    Parameters
    ----------
    weights : ndarray [n]
        How often every row counts, above 0.

    Examples
    --------
    >>> rows = Weighted(np.array([1.0, 3.0]))
    >>> rows.prior(np.eye(2)).weights
    array([0.25, 0.75])
    """

    weights: Array

    def counted(self, values: Array) -> Array:
        """See :class:`Units`."""
        return _times(values, self.weights)

    def repeats(self) -> Array:
        """See :class:`Units`."""
        return self.weights

    def assign(self, log_density: Array, prior: Prior, labels: NDArray[np.int64] | None = None) -> Assignment:
        """See :class:`Units`."""
        found = assign(log_density, prior.weights, labels)
        return Assignment(found.responsibilities, found.log_likelihood * self.weights)

    def prior(self, responsibilities: Array) -> Prior:
        """See :class:`Units`."""
        return Prior(self.weights @ responsibilities / self.weights.sum())

    def number(self, n_rows: int) -> float:
        """See :class:`Units`."""
        assert n_rows == self.weights.size
        return float(self.weights.sum())

    def twice(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], Units]:
        """See :class:`Units`."""
        return rows, Weighted(2.0 * self.weights[rows])

    def total(self, values: Array) -> Any:
        """See :class:`Units`."""
        return self.weights @ values

    def take(self, rows: NDArray[np.int64]) -> Units:
        """See :class:`Units`."""
        return Weighted(self.weights[rows])


class Pooled(NamedTuple):
    """Log-densities of groups, summed over their rows; what parts of the rows say of the same groups adds up.

    ``sums [G, K]`` leave rows out that no regime can explain; ``lost [G]`` counts those, and ``possible [G]`` the
    others, as often as they count.
    """

    sums: Array
    lost: Array
    possible: Array

    @classmethod
    def of(
        cls, log_density: Array, weights: Array, members: NDArray[np.int64], n_groups: int, repeats: Array
    ) -> Pooled:
        """Of rows ``[n, K]`` whose groups are ``members [n]``, ``weights [K]`` being the shares of the regimes."""
        pooled = cls(np.zeros((n_groups, log_density.shape[1])), np.zeros(n_groups), np.zeros(n_groups))
        _pool(log_density, members, repeats, _log(weights), *pooled)
        return pooled

    def plus(self, other: Pooled) -> Pooled:
        """Of both sets of rows together."""
        return Pooled(*(one + two for one, two in zip(self, other, strict=True)))

    def assign(self, weights: Array, labels: NDArray[np.int64]) -> Assignment:
        """Responsibilities ``[G, K]`` and log-likelihood ``[G]`` of the groups."""
        hopeless = self.possible == 0.0
        shares, log_likelihood = assign(np.where(hopeless[:, None], -np.inf, self.sums), weights, labels)
        log_likelihood += IMPOSSIBLE * np.where(hopeless, self.lost - 1.0, self.lost)
        return Assignment(shares, log_likelihood)


@dataclass(frozen=True, eq=False)
class Groups(Units):
    """Rows in groups, each of which has one regime.

    Parameters
    ----------
    members : ndarray [n] of int64
        Group of every row, from 0; every number up to the largest occurs.
    weights : ndarray [n], optional
        How often every row counts, above 0. A group is one unit all the same.

    Examples
    --------
    >>> log_density = np.log([[0.1, 0.3], [0.4, 0.2], [0.5, 0.5]])
    >>> groups = Groups(np.array([0, 0, 1]))
    >>> groups.assign(log_density, Prior(np.array([0.6, 0.4]))).responsibilities
    array([[0.5, 0.5],
           [0.5, 0.5],
           [0.6, 0.4]])
    """

    single: ClassVar[bool] = False
    members: NDArray[np.int64]
    weights: Array | None = field(default=None, kw_only=True)

    @classmethod
    def of(cls, codes: NDArray[np.int64] | None, weights: Array | None = None) -> Units:
        """Units of rows with these groups, any integers, and weights; None: rows do not belong together, or count once.

        Groups of one row each are no groups, unless a row counts several times, with one regime.
        """
        if codes is None:
            return SEPARATE if weights is None else Weighted(weights)
        members = _renumbered(codes)
        if weights is None and (members.size == 0 or members.max() + 1 == members.size):
            return SEPARATE
        return cls(members, weights=weights)

    def counted(self, values: Array) -> Array:
        """See :class:`Units`."""
        return values if self.weights is None else _times(values, self.weights)

    def repeats(self) -> Array:
        """See :class:`Units`."""
        return np.empty(0) if self.weights is None else self.weights

    @cached_property
    def sizes(self) -> Array:
        """Rows of every group."""
        return np.bincount(self.members).astype(np.float64)

    @cached_property
    def counts(self) -> Array:
        """Rows of every group, as often as they count."""
        return np.asarray(np.bincount(self.members, self.weights), dtype=np.float64)

    def assign(self, log_density: Array, prior: Prior, labels: NDArray[np.int64] | None = None) -> Assignment:
        """See :class:`Units`; a row's label is that of its group, and rows that no regime can explain are left out."""
        known = np.full(self.sizes.size, -1, dtype=np.int64)
        if labels is not None:
            known[self.members[labels >= 0]] = labels[labels >= 0]
        pooled = Pooled.of(log_density, prior.weights, self.members, self.sizes.size, self.repeats())
        shares, log_likelihood = pooled.assign(prior.weights, known)
        np.take(shares, self.members, axis=0, out=log_density)
        return Assignment(log_density, (log_likelihood / self.sizes)[self.members])

    def prior(self, responsibilities: Array) -> Prior:
        """See :class:`Units`."""
        return Prior(self.total(responsibilities) / self.sizes.size)

    def number(self, n_rows: int) -> float:
        """See :class:`Units`."""
        assert n_rows == self.members.size
        return self.sizes.size

    def total(self, values: Array) -> Any:
        """See :class:`Units`."""
        return (1.0 / self.sizes)[self.members] @ values

    def sums(self, values: Array) -> Array:
        """See :class:`Units`."""
        columns = self.counted(values).reshape(len(values), -1).T
        found = [np.bincount(self.members, column, self.sizes.size) for column in columns]
        return np.stack(found, axis=1).reshape(-1, *values.shape[1:]).astype(np.float64)

    def means(self, values: Array) -> Array:
        """See :class:`Units`."""
        return self.sums(values) / self.counts.reshape(-1, *[1] * (values.ndim - 1))

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """See :class:`Units`."""
        return values[self.members]

    def take(self, rows: NDArray[np.int64]) -> Units:
        """See :class:`Units`."""
        return Groups.of(self.members[rows], None if self.weights is None else self.weights[rows])

    def twice(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], Units]:
        """See :class:`Units`: a group counted twice would be surer of its regime, two equal ones are not."""
        both, again = two_of_each(rows, int(self.members.max()) + 1)
        return both, Groups.of(
            self.members[both] + again, None if self.weights is None else self.weights[both]
        )

    def numbers(self) -> NDArray[np.int64]:
        """See :class:`Units`."""
        return self.members

    def thin(self, rows: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
        """Whole groups, evenly spaced by their first rows; of very large groups only some rows.

        Groups are cut where there would otherwise be fewer groups than rows of each: with few groups regimes would be
        lost, with few rows of each nobody could tell their regime.
        """
        if rows.size <= limit:
            return rows
        _, first, found = np.unique(self.members[rows], return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        members = place[found]
        most = _cap(np.bincount(members), limit)
        by_group = np.argsort(members, kind="stable")
        sizes = np.bincount(members)
        begin = np.cumsum(sizes) - sizes
        position = np.empty(rows.size, dtype=np.int64)
        position[by_group] = np.arange(rows.size) - begin[members[by_group]]
        count = max(int(limit / np.minimum(sizes, most).mean()), 1)
        chosen = np.zeros(sizes.size, dtype=bool)
        chosen[np.linspace(0, sizes.size - 1, min(count, sizes.size)).astype(np.int64)] = True
        return rows[chosen[members] & (position < most)]

    def first(self, rows: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
        """See :class:`Units`, and :meth:`thin`."""
        return self.thin(rows, limit)

    def draw(self, n_rows: int, limit: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """See :class:`Units`, and :meth:`thin`."""
        return np.sort(self.first(rng.permutation(n_rows), limit))


def two_of_each(rows: NDArray[np.int64], n_units: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows two times, and what to add to the number of each one's unit for the second to be another."""
    return np.concatenate([rows, rows]), np.repeat([0, n_units], rows.size)


def _renumbered(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers from 0 without gaps in the place of any integers."""
    return np.unique(codes, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _cap(sizes: NDArray[np.int64], limit: int) -> int:
    """Most rows of a group: the root of the ``limit``, or more if all groups together then fall short of it."""
    ascending = np.sort(sizes)
    left = limit - (np.cumsum(ascending) - ascending)  # for groups that are not smaller than this one
    level = left / np.arange(sizes.size, 0, -1)
    fits = np.flatnonzero(ascending >= level)
    water = int(level[fits[0]]) if fits.size else int(ascending[-1])
    return max(int(np.ceil(np.sqrt(limit))), water)


def _log(weights: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(weights))


@njit
def _pool(density, members, repeats, log_weights, sums, lost, possible):  # type: ignore[no-untyped-def]
    """Fill :class:`Pooled`: every row as often as it counts, if ``repeats`` is not empty."""
    n_regimes = density.shape[1]
    for i in range(density.shape[0]):
        explained = False
        for k in range(n_regimes):
            explained |= density[i, k] + log_weights[k] > -np.inf
        group = members[i]
        count = repeats[i] if repeats.size else 1.0
        if not explained:
            lost[group] += count
            continue
        possible[group] += count
        for k in range(n_regimes):
            sums[group, k] += count * density[i, k]


@njit
def _normalise(density, weights, log_weights, labels, log_likelihood):  # type: ignore[no-untyped-def]
    n_regimes = density.shape[1]
    for i in range(density.shape[0]):
        high = -np.inf
        for k in range(n_regimes):
            density[i, k] += log_weights[k]
            if np.isnan(density[i, k]):  # infinities of opposite sign met in a row far out
                density[i, k] = -np.inf
            high = max(high, density[i, k])
        known = density[i, labels[i]]
        if np.isfinite(high):
            total = 0.0
            for k in range(n_regimes):
                density[i, k] = np.exp(density[i, k] - high)
                total += density[i, k]
            for k in range(n_regimes):
                density[i, k] /= total
            log_likelihood[i] = high + np.log(total)
        else:
            density[i] = weights
            log_likelihood[i] = IMPOSSIBLE
        if labels[i] >= 0:
            log_likelihood[i] = max(known, IMPOSSIBLE)
            density[i] = 0.0
            density[i, labels[i]] = 1.0
