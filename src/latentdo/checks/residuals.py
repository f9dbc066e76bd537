"""What mechanisms leave over of rows, as normal scores, in every regime."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from latentdo.checks.check import Array
from latentdo.model.fitted import FittedModel
from latentdo.solvers.settings import CHECKED_BLOCK, CHECKED_ROWS, EMPTY, OUTERMOST


@dataclass(frozen=True, eq=False)
class Residuals:
    """Rows, and what a model leaves over of them.

    Parameters
    ----------
    model : FittedModel
        Graph, targets and mechanisms.
    z : ndarray [n, d]
        The rows as the model sees them.
    scores : ndarray [K, n, d]
        Normal scores of the residuals, if a row belonged to a regime: standard normal if it does.
    responsibilities : ndarray [n, K]
        How probable that is.
    weights : ndarray [n] or None
        How often rows count.
    before : ndarray [n] of int64
        Which of the rows comes right before each; -1 where none does.
    """

    model: FittedModel
    z: Array
    scores: Array
    responsibilities: Array
    weights: Array | None
    before: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        model: FittedModel,
        z: Array,
        responsibilities: Array,
        weights: Array | None = None,
        before: NDArray[np.int64] | None = None,
        seed: int = 0,
    ) -> Self:
        """Residuals of rows, or of some stretches of them if there are many.

        ``before [n]`` says which row comes right before each, -1 where none does; without it they are in order.
        """
        before = np.arange(-1, len(z) - 1) if before is None else before
        rows = stretches(len(z), CHECKED_ROWS, CHECKED_BLOCK)
        if rows.size < len(z):
            rows = in_order(before)[rows]
        z, responsibilities = z[rows], responsibilities[rows]
        rng = np.random.default_rng([seed, *b"checks"])
        n_regimes, d = model.topology.n_regimes, model.topology.n_variables
        scores = np.empty((n_regimes, len(z), d))
        for j in range(d):
            x, y = model.inputs(z, j), np.ascontiguousarray(z[:, j])
            scores[:, :, j] = _normal(model.reference[j].below(x, y, rng))
            for k in np.flatnonzero(model.topology.targets[:, j]).tolist():
                scores[k, :, j] = _normal(model.own[k, j].below(x, y, rng))
        place = np.full(before.size + 1, -1)  # the last is for rows that nothing comes before
        place[rows] = np.arange(rows.size)
        weights = None if weights is None else weights[rows]
        return cls(model, z, scores, responsibilities, weights, place[before[rows]])

    @cached_property
    def centred(self) -> Array:
        """The scores less their mean in every regime: a level that is a little off is no dependence."""
        shares = self._counted.T
        total = np.maximum(shares.sum(axis=1), EMPTY)
        means = np.einsum("kn,knj->kj", shares, self.scores) / total[:, None]
        return np.asarray(self.scores - means[:, None])

    @cached_property
    def expected(self) -> Array:
        """Centred scores of rows whose regimes are summed out, ``[n, d]``."""
        return np.asarray(np.einsum("nk,knj->nj", self.responsibilities, self.centred))

    @cached_property
    def ranks(self) -> Array:
        """Normal scores of the variables themselves, ``[n, d]``."""
        values = self.z[:, : self.scores.shape[2]]  # without an offset, which is no variable
        return np.asarray(ndtri((rankdata(values, axis=0) - 0.5) / len(values)))

    @cached_property
    def counts(self) -> Array:
        """(Soft) number of rows in every regime, ``[K]``."""
        return np.asarray(self._counted.sum(axis=0))

    @property
    def _counted(self) -> Array:
        q = self.responsibilities
        return q if self.weights is None else q * self.weights[:, None]

    def products(self, i: int, j: int) -> Array:
        """Products of the residuals of two variables in every row, regimes summed out, ``[n]``."""
        shares, scores = self.responsibilities, self.centred
        return np.asarray(np.einsum("nk,kn,kn->n", shares, scores[:, :, i], scores[:, :, j], optimize=True))


def in_order(before: NDArray[np.int64]) -> NDArray[np.int64]:
    """All rows, each right after the one that comes ``before`` it, if one does.

    Examples
    --------
    >>> in_order(np.array([2, -1, 1, -1]))
    array([1, 2, 0, 3])
    """
    after = np.full(before.size + 1, -1)
    after[before] = np.arange(before.size)
    found = np.empty(before.size, dtype=np.int64)
    at = 0
    for first in np.flatnonzero(before < 0):
        row = int(first)
        while row >= 0:
            found[at] = row
            row, at = int(after[row]), at + 1
    return found


def stretches(n_rows: int, limit: int, length: int) -> NDArray[np.int64]:
    """All of so many rows, or about ``limit`` of them in stretches of neighbours, evenly spaced.

    Examples
    --------
    >>> stretches(4, 10, 2), stretches(12, 6, 2)
    (array([0, 1, 2, 3]), array([ 0,  1,  5,  6, 10, 11]))
    """
    if n_rows <= limit:
        return np.arange(n_rows)
    begins = np.linspace(0, n_rows - length, max(limit // length, 1)).astype(np.int64)
    return np.unique((begins[:, None] + np.arange(length)).ravel())


def _normal(below: Array) -> Array:
    return np.asarray(ndtri(np.clip(below, OUTERMOST, 1.0 - OUTERMOST)))
