"""Splitting a regime in two by one variable: part of the rows follow one mechanism there, the rest another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentdo.model.assignment import SEPARATE, Units
from latentdo.solvers.search.intervened_rows import knowing, two_mechanisms
from latentdo.solvers.settings import (
    MINORITY_TOLERANCE,
    PROBE_ROWS,
    SPLIT_EXTENSION_STEPS,
    SPLIT_GLANCE,
    SPLIT_MISFITS,
    SPLIT_STEPS,
    SPLIT_TAIL,
)

if TYPE_CHECKING:
    from latentdo.solvers.search.problem import Problem
    from latentdo.solvers.search.state import State


class Split(NamedTuple):
    """The gain of a split in nats, the part of every row that is split off, ``[n]``, and the mechanism of the others.

    If that is the reference mechanism, only the rows that are split off have the variable as a target.
    """

    gain: float
    share: NDArray[np.float64]
    reference_stays: bool = True

    def among(self, n_rows: int, rows: NDArray[np.int64]) -> Split:
        """The same with the parts of all rows, of which only these may be split off."""
        share = np.zeros(n_rows)
        share[rows] = self.share
        return self._replace(share=share)


def split_by_lines(problem: Problem, state: State, k: int, j: int, rows: NDArray[np.int64]) -> Split | None:
    """The best split of some rows of a regime by a line, or a constant, in addition to their present mechanism.

    It is found on some of the rows and extended to all.
    """
    probe = problem.units.thin(rows, PROBE_ROWS)
    found = _best_split(problem, state, k, j, probe)
    if found is None:
        return None
    mine = problem.counted(state.responsibilities[:, k])
    scale = mine[rows].sum() / mine[probe].sum()
    share = found.share if probe.size == rows.size else _extend(problem, found, rows)
    return Split(found.gain * float(scale), share, found.reference_stays)


_Base = Callable[[NDArray[np.int64]], NDArray[np.float64]]
"""Log-density of given rows under a mechanism."""


@dataclass(frozen=True, eq=False)
class _Split:
    """The best way to split some rows of a regime in two by one variable, and what was tried."""

    gain: float
    rows: NDArray[np.int64]
    share: NDArray[np.float64]
    base: _Base
    columns: NDArray[np.int64]
    reference_stays: bool


def _best_split(problem: Problem, state: State, k: int, j: int, rows: NDArray[np.int64]) -> _Split | None:
    """Try several guesses for a few steps, and continue the best of them to convergence."""
    model, z = state.model, problem.z[rows]
    weights = np.ascontiguousarray(state.responsibilities[rows, k])
    bases: list[_Base] = [lambda at: model.log_density_under(problem.z[at], j, model.reference[j])]
    if state.targets[k, j]:
        bases.append(lambda at: model.variable_log_density(problem.z[at], j, k))
    now = float(problem.counted(state.responsibilities[:, k])[rows] @ bases[-1](rows))
    parents = np.flatnonzero(state.adjacency[:, j])
    shapes = [np.array([0, 1 + j])]
    if problem.imperfect and parents.size:
        shapes.append(np.concatenate([[0], 1 + parents, [1 + j]]))
    top, best = -np.inf, None
    units = problem.units.pooled.take(rows)
    company = {"groups": units.numbers(), "repeats": units.repeats()}
    for base in bases:
        density = knowing(log_density=base(rows), **company)
        for columns in shapes:
            view = np.ascontiguousarray(problem.design[rows][:, columns])
            for guess in guesses(density.log_density, z[:, j], units):
                value = two_mechanisms(
                    view, 0, columns.size - 1, density, weights, guess, SPLIT_GLANCE, MINORITY_TOLERANCE, 0.0
                )
                if value > top:
                    top, best = value, _Split(0.0, rows, guess, base, columns, base is bases[0])
    if best is None:
        return None
    view = np.ascontiguousarray(problem.design[rows][:, best.columns])
    density, share = knowing(log_density=best.base(rows), **company), best.share.copy()
    value = two_mechanisms(
        view, 0, best.columns.size - 1, density, weights, share, SPLIT_STEPS, MINORITY_TOLERANCE, 0.0
    )
    return replace(best, gain=float(value) - now, share=share) if value > now else None


def _extend(problem: Problem, split: _Split, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Extend a split found on some rows to all: one more step, from the nearest probed value of the variable."""
    known = problem.design[split.rows, split.columns[-1]]
    order = np.argsort(known)
    place = np.searchsorted(known[order], problem.design[rows, split.columns[-1]]).clip(0, order.size - 1)
    units = problem.units.pooled.take(rows)
    share = np.array(units.spread(units.means(split.share[order[place]])))
    view = np.ascontiguousarray(problem.design[rows][:, split.columns])
    n_second = split.columns.size - 1
    density = knowing(log_density=split.base(rows), groups=units.numbers(), repeats=units.repeats())
    two_mechanisms(
        view, 0, n_second, density, np.ones(rows.size), share, SPLIT_EXTENSION_STEPS, MINORITY_TOLERANCE, 0.0
    )
    return share


def guesses(
    base: NDArray[np.float64], values: NDArray[np.float64], units: Units = SEPARATE
) -> list[NDArray[np.float64]]:
    """Units to split off: those that a mechanism explains worst, at three depths, and either end of the values."""
    means = units.means(base), units.means(values)
    misfit, rank = (np.argsort(np.argsort(one)) / len(one) for one in means)
    masks = [misfit < depth for depth in SPLIT_MISFITS]
    masks += [rank < SPLIT_TAIL, rank > 1.0 - SPLIT_TAIL]
    return [units.spread(mask.astype(np.float64)) for mask in masks]
