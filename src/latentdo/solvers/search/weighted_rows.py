"""Statistics for learning from weighted rows: how rows are assigned, and the fits made so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from latentdo.model.fitted import FittedModel
from latentdo.model.mechanisms.base import Mechanism
from latentdo.solvers.search.moments import Moments
from latentdo.solvers.settings import FAMILY_FAINT

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Local:
    """The best fit of one variable given its parents.

    Parameters
    ----------
    score : float
        Evidence of the variable, without the prior of its edges; minus infinity if too few rows share the mechanism.
    shares : ndarray [K] of bool
        Regimes that share the reference mechanism.
    reference : Mechanism
        That mechanism.
    own : mapping regime -> Mechanism
        Mechanisms of the other regimes.
    """

    score: float
    shares: NDArray[np.bool_]
    reference: Mechanism
    own: Mapping[int, Mechanism]


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Assigned and weighted rows, the model from which fits start, and the fits made so far.

    If that is ``settled``, fits need only follow the rows: the shape of a mechanism, say, was chosen one step ago.
    ``design`` are ones and functions of every variable, ``[n, 1 + d L]``.
    """

    responsibilities: Array
    model: FittedModel | None = None
    settled: bool = False
    design: Array = field(default_factory=lambda: np.empty((0, 0)))
    fits: dict[tuple[int, tuple[int, ...]], Local] = field(default_factory=dict)
    glances: dict[tuple[int, float | None], dict[tuple[int, ...], float | None]] = field(default_factory=dict)
    """About the scores of parent sets of a variable, with a prior of targets; see :mod:`.glances`."""
    explained: dict[tuple[int, bytes], dict[tuple[int, ...], float]] = field(default_factory=dict)
    """Approximate scores of parent sets of a variable whose mechanism these regimes share; see :mod:`.glances`."""

    @cached_property
    def counts(self) -> Array:
        """(Soft) number of rows in every regime."""
        return np.asarray(self.responsibilities.sum(axis=0))

    @cached_property
    def moments(self) -> Moments:
        """Moments of the functions, for a quick guess."""
        return Moments.of(self.design, self.responsibilities)

    def before(self, regime: int, variable: int) -> Mechanism | None:
        """The mechanism that an intervention put in place one step ago, if all that matters was chosen then."""
        return self.model.own.get((regime, variable)) if self.settled and self.model is not None else None

    def length(self, n_variables: int) -> int:
        """Number of functions of every variable."""
        return int(self.design.shape[1] - 1) // n_variables

    def line_moments(self, n_variables: int) -> Moments:
        """Moments of the variables themselves, for lines."""
        length = self.length(n_variables)
        own = np.concatenate([[0], 1 + length * np.arange(n_variables)])
        return Moments(self.moments.matrices[:, own[:, None], own])

    @cached_property
    def members(self) -> list[tuple[NDArray[np.int64], Array]]:
        """Rows of every regime, without those of negligible weight, and their weights."""
        rows = [np.flatnonzero(column > FAMILY_FAINT) for column in self.responsibilities.T]
        return [(mine, self.responsibilities[mine, k]) for k, mine in enumerate(rows)]


def rows_that_count(x: Array, y: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Without rows of negligible weight; if none is left, all with equal weight, since families need rows to fit."""
    rows = weights > FAMILY_FAINT
    if not rows.any():
        return x, y, np.ones(len(y))
    return (x, y, weights) if rows.all() else (x[rows], y[rows], weights[rows])
