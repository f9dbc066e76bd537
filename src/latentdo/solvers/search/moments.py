r"""Moment matrices, which contain all that the M-step and the search need to know about the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from latentdo.solvers.settings import NEGLIGIBLE


@dataclass(frozen=True, eq=False)
class Moments:
    r"""Weighted second moments of ``[1, z]`` in every regime, :math:`\sum_i r_{ik} [1, z_i][1, z_i]^\top`.

    Parameters
    ----------
    matrices : ndarray [n_regimes, d + 1, d + 1]
        They add up: regimes that share a mechanism share the sum of their matrices.
    """

    matrices: NDArray[np.float64]

    @property
    def counts(self) -> NDArray[np.float64]:
        """(Soft) number of rows in every regime."""
        return np.ascontiguousarray(self.matrices[:, 0, 0])

    @classmethod
    def of(cls, design: NDArray[np.float64], responsibilities: NDArray[np.float64]) -> Moments:
        """Moments of ``design = [1, z]``, ``[n, d + 1]``, under soft assignments ``[n, n_regimes]``."""
        width = design.shape[1]
        matrices = np.zeros((responsibilities.shape[1], width, width))
        for k in range(responsibilities.shape[1]):
            weight = responsibilities[:, k]
            rows = np.flatnonzero(weight > NEGLIGIBLE)
            if rows.size == 0:
                continue
            part = design[rows] if rows.size < len(design) else design
            matrices[k] = (part * weight[rows, None]).T @ part
        return cls(matrices)

    def __add__(self, other: Moments) -> Moments:
        """Moments of both sets of rows together."""
        return Moments(self.matrices + other.matrices)

    def merged(self, first: int, second: int) -> Moments:
        """Moments after regime ``second`` is merged into ``first`` and dropped."""
        matrices = np.delete(self.matrices, second, axis=0)
        matrices[first - (second < first)] += self.matrices[second]
        return Moments(matrices)
