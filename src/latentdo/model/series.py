r"""Rows in order of time: neighbours tend to share their regime.

From one row of a series to the next, the regime stays what it is with a chance that falls with the gap :math:`g`
between them, and is otherwise drawn anew,

.. math:: P(z_t = l \mid z_{t-1} = k) = s_t [k = l] + (1 - s_t) \beta_l, \qquad s_t = e^{-g_t / \tau}.

So the weights :math:`\beta` are shares of time, whatever the *duration* :math:`\tau`; rows may be left out, because two
steps of this chain are one of a longer gap; and forward-backward takes time proportional to rows times regimes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from latentdo.compilation import njit
from latentdo.model.assignment import IMPOSSIBLE, Array, Assignment, Groups, Prior, Units, two_of_each

MOST_GAPS = 256
"""Different gaps that are told apart when the duration is fitted; more are joined to so many of their quantiles."""

STEPS = 3
"""Of expectation-maximisation of the prior, for one of the mechanisms."""

LONGEST = 1e3
"""Durations beyond so many times the whole time that was observed are not told apart."""

SHORTEST = 1e-3
"""Durations below so much of the shortest gap are not told apart: rows are independent then."""


class _Passes(NamedTuple):
    """What forward-backward leaves.

    ``responsibilities [n, K]`` and ``log_likelihood [n]`` are by rows in order of time, the latter given the rows
    before; ``draws [K]`` is how often regimes were drawn anew, as expected, and ``renewed [n]`` whether a row's was.
    """

    responsibilities: Array
    log_likelihood: Array
    draws: Array
    renewed: Array


@dataclass(frozen=True, eq=False)
class Series(Groups):
    """Rows of one or several series, in order of time.

    Where regimes are proposed, short stretches of neighbours go together, as groups do; where rows are assigned, the
    chain decides.

    Parameters
    ----------
    members : ndarray [n] of int64
        Stretch of every row.
    order : ndarray [n] of int64
        The rows series by series, in order of time.
    gaps : ndarray [n]
        Time since the row before, in that order; infinite for the first of a series.
    times : ndarray [n]
        Time of every row.
    series : ndarray [n] of int64
        Series of every row.
    length : int
        Rows of a stretch.
    weights : ndarray [n], optional
        How often every row counts, as if that many had been measured at once.
    """

    order: NDArray[np.int64]
    gaps: Array
    times: Array
    series: NDArray[np.int64]
    length: int

    @classmethod
    def by_time(
        cls, times: Array, series: NDArray[np.int64] | None, length: int, weights: Array | None = None
    ) -> Series:
        """Series of rows at some ``times [n]``; stretches have at most ``length`` rows, and no unusually long gap."""
        series = np.zeros(times.size, dtype=np.int64) if series is None else series
        order = np.lexsort((times, series))
        gaps = np.diff(times[order], prepend=-np.inf)
        gaps[np.flatnonzero(np.diff(series[order], prepend=series[order[:1]] - 1))] = np.inf
        finite = gaps[np.isfinite(gaps) & (gaps > 0.0)]
        usual = float(np.median(finite)) if finite.size else 0.0
        breaks = np.flatnonzero(np.isinf(gaps) | (gaps > length * usual))
        place = np.arange(times.size) - np.repeat(breaks, np.diff(np.append(breaks, times.size)))
        members = np.empty(times.size, dtype=np.int64)
        members[order] = np.cumsum(place % length == 0) - 1
        return cls(members, order, gaps, times, series, length, weights=weights)

    def take(self, rows: NDArray[np.int64]) -> Units:
        """See :class:`Units`; gaps are then longer."""
        weights = None if self.weights is None else self.weights[rows]
        return Series.by_time(self.times[rows], self.series[rows], self.length, weights)

    def twice(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], Units]:
        """See :class:`Units`: in another series."""
        both, again = two_of_each(rows, int(self.series.max()) + 1)
        weights = None if self.weights is None else self.weights[both]
        return both, Series.by_time(self.times[both], self.series[both] + again, self.length, weights)

    def assign(self, log_density: Array, prior: Prior, labels: NDArray[np.int64] | None = None) -> Assignment:
        """See :class:`Units`: forward-backward; the log-likelihood of a row is that given the rows before."""
        passes = self._passes(log_density, prior, labels)
        log_likelihood = np.empty(len(log_density))
        log_density[self.order] = passes.responsibilities
        log_likelihood[self.order] = passes.log_likelihood
        return Assignment(log_density, log_likelihood)

    @property
    def pooled(self) -> Units:
        """See :class:`Units`: stretches of neighbours."""
        return Groups.of(self.members, self.weights)

    def prior(self, responsibilities: Array) -> Prior:
        """See :class:`Units`: a first guess, by how often the regime changes from row to row."""
        weights = self.counted(responsibilities).sum(axis=0) / self.counts.sum()
        ordered = responsibilities[self.order]
        inner = np.flatnonzero(np.isfinite(self.gaps))
        changes = 0.5 * float(np.abs(ordered[inner] - ordered[inner - 1]).sum())
        observed = float(self.gaps[inner].sum())
        seen = 1.0 - float(weights @ weights)  # draws that change something
        low, high = self._range
        duration = observed * max(seen, 1.0 / LONGEST) / changes if changes * high > observed else high
        return Prior(weights, float(np.clip(duration, low, high)))

    def settle(self, log_density: Array, prior: Prior, labels: NDArray[np.int64] | None) -> Prior:
        """See :class:`Units`: expectation-maximisation of weights and duration, for a few steps."""
        for _ in range(STEPS):
            passes = self._passes(log_density, prior, labels)
            prior = Prior(passes.draws / passes.draws.sum(), self._duration(passes.renewed))
        return prior

    def _passes(self, log_density: Array, prior: Prior, labels: NDArray[np.int64] | None) -> _Passes:
        n, k = log_density.shape
        known = np.full(n, -1, dtype=np.int64) if labels is None else labels
        emission, peak = np.empty((n, k)), np.empty(n)
        _emit(self.counted(log_density), self.order, known, prior.weights, emission, peak)
        stay = np.exp(-self.gaps / prior.duration) if prior.duration > 0.0 else np.zeros(n)
        forward, draws, renewed = np.empty((n, k)), np.zeros(k), np.empty(n)
        _forward_backward(emission, peak, stay, prior.weights, forward, draws, renewed)
        return _Passes(forward, peak, draws, renewed)

    @cached_property
    def _bins(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
        """Rows after a gap, which of a few gaps it is, and those gaps."""
        rows = np.flatnonzero(np.isfinite(self.gaps) & (self.gaps > 0.0))
        gaps, which = np.unique(self.gaps[rows], return_inverse=True)
        if gaps.size > MOST_GAPS:
            which = np.searchsorted(np.quantile(gaps[which], np.linspace(0, 1, MOST_GAPS + 1)[1:-1]), gaps)[
                which
            ]
            which = np.unique(which, return_inverse=True)[1]
            gaps = np.bincount(which, self.gaps[rows]) / np.bincount(which)
        return rows, which, gaps

    @cached_property
    def _range(self) -> tuple[float, float]:
        """Durations that can be told apart."""
        rows, _, gaps = self._bins
        if not rows.size:
            return 1.0, 1.0
        return SHORTEST * float(gaps.min()), LONGEST * float(self.gaps[rows].sum())

    def _duration(self, renewed: Array) -> float:
        """The likeliest duration, given how probably the regime was drawn anew at every row."""
        rows, which, gaps = self._bins
        low, high = self._range
        if not rows.size:
            return high
        counts = np.bincount(which).astype(np.float64)
        anew = np.bincount(which, renewed[rows])

        def slope(log_duration: float) -> float:
            """Of the expected log-likelihood, by the rate of renewals; it falls with the rate."""
            rate = np.exp(-log_duration)
            odds = np.exp(-rate * gaps) / -np.expm1(-rate * gaps)
            return float((anew * gaps * odds).sum() - ((counts - anew) * gaps).sum())

        ends = np.log(low), np.log(high)
        if slope(ends[1]) <= 0.0:
            return high
        if slope(ends[0]) >= 0.0:
            return low
        return float(np.exp(brentq(slope, *ends, xtol=1e-6)))

    def path(
        self, log_density: Array, prior: Prior, labels: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64]:
        """The likeliest regimes of all rows together, ``[n]`` (Viterbi)."""
        n, k = log_density.shape
        known = np.full(n, -1, dtype=np.int64) if labels is None else labels
        emission, peak = np.empty((n, k)), np.empty(n)
        _emit(self.counted(log_density), self.order, known, prior.weights, emission, peak)
        stay = np.exp(-self.gaps / prior.duration) if prior.duration > 0.0 else np.zeros(n)
        path = np.empty(n, dtype=np.int64)
        with np.errstate(divide="ignore"):
            path[self.order] = _likeliest_path(np.log(emission), stay, np.log(prior.weights))
        return path


@njit
def _emit(log_density, order, labels, weights, emission, peak):  # type: ignore[no-untyped-def]
    """Densities in order of time, scaled to a peak of one, whose logarithm is kept; a label rules all others out.

    Rows that no regime can explain say nothing.
    """
    for t in range(order.size):
        i = order[t]
        high = -np.inf
        for k in range(weights.size):
            if weights[k] > 0.0 and (labels[i] < 0 or labels[i] == k) and log_density[i, k] > high:
                high = log_density[i, k]
        if not np.isfinite(high):
            peak[t] = IMPOSSIBLE
            for k in range(weights.size):
                emission[t, k] = 1.0 if labels[i] < 0 or labels[i] == k else 0.0
            continue
        peak[t] = high
        for k in range(weights.size):
            value = np.exp(log_density[i, k] - high)
            emission[t, k] = value if (labels[i] < 0 or labels[i] == k) and value <= 1.0 else 0.0


@njit
def _forward_backward(emission, peak, stay, weights, posterior, draws, renewed):  # type: ignore[no-untyped-def]
    """Fill ``posterior [n, K]``, ``draws [K]`` and ``renewed [n]``; ``peak [n]`` becomes the log-likelihood."""
    n, n_regimes = emission.shape
    scale = np.empty(n)
    last = weights.copy()  # the first row of a series forgets it
    for t in range(n):
        total = 0.0
        for k in range(n_regimes):
            posterior[t, k] = (stay[t] * last[k] + (1.0 - stay[t]) * weights[k]) * emission[t, k]
            total += posterior[t, k]
        if total <= 0.0:  # nothing that the rows before allow explains this one
            for k in range(n_regimes):
                posterior[t, k] = weights[k] * emission[t, k]
                total += posterior[t, k]
            peak[t] += IMPOSSIBLE
            if total <= 0.0:
                posterior[t] = weights
                total = 1.0
            scale[t] = -1.0
        else:
            peak[t] += np.log(total)
            scale[t] = total
        for k in range(n_regimes):
            posterior[t, k] /= total
        last = posterior[t]
    after = np.ones(n_regimes)
    for t in range(n - 1, -1, -1):
        total = 0.0
        for k in range(n_regimes):
            posterior[t, k] *= after[k]
            total += posterior[t, k]
        for k in range(n_regimes):
            posterior[t, k] /= total
        if scale[t] < 0.0:  # the chain was cut here
            renewed[t] = 1.0
            for k in range(n_regimes):
                draws[k] += posterior[t, k]
                after[k] = 1.0
            continue
        fresh = 0.0
        for k in range(n_regimes):
            drawn = (1.0 - stay[t]) * weights[k] * emission[t, k] * after[k] / scale[t]
            draws[k] += drawn
            fresh += drawn
        renewed[t] = fresh
        # What is renewed forgets the rows before, whichever their regime was.
        for k in range(n_regimes):
            after[k] = stay[t] * emission[t, k] * after[k] / scale[t] + fresh


@njit
def _likeliest_path(log_emission, stay, log_weights):  # type: ignore[no-untyped-def]
    """Viterbi: the regimes ``[n]`` with the highest joint probability; two regimes to look back to are enough."""
    n, n_regimes = log_emission.shape
    best = np.empty(n_regimes)
    came = np.empty((n, n_regimes), dtype=np.int64)
    for t in range(n):
        top = 0 if t == 0 else np.argmax(best)
        now = np.empty(n_regimes)
        for k in range(n_regimes):
            fresh = np.log1p(-stay[t]) + log_weights[k]
            same = np.log(stay[t] + (1.0 - stay[t]) * np.exp(log_weights[k]))
            if t == 0:
                now[k], came[t, k] = log_weights[k], k
            elif best[k] + same >= best[top] + fresh:
                now[k], came[t, k] = best[k] + same, k
            else:
                now[k], came[t, k] = best[top] + fresh, top
            now[k] += log_emission[t, k]
        best = now
    path = np.empty(n, dtype=np.int64)
    path[n - 1] = np.argmax(best)
    for t in range(n - 1, 0, -1):
        path[t - 1] = came[t, path[t]]
    return path
