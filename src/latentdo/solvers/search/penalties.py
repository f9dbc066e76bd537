r"""What structure costs: every penalty of the search, in one place.

The score of a fit is its log-likelihood less the cost of what was used to reach it:

==========================  ==============================================================================
reference mechanism         :math:`\tfrac12 (|pa(j)| + 2) \log N_j`, over the :math:`N_j` rows that share it
edge :math:`i \to j`        minus its prior log-odds, ``edge_prior[i, j]`` (default: :data:`DEFAULT_EDGE_PRIOR`)
target :math:`(k, j)`       :math:`\tfrac12 p \log N_k` for its *p* own parameters, and minus ``target_prior``
mixture weights             :math:`\tfrac12 (K - 1) \log n`
==========================  ==============================================================================

The first and third rows are the Schwarz approximation with the rows that really inform each parameter. Variances
are floored at :data:`VARIANCE_FLOOR` (of a standardised variable): mixtures and atomic interventions have an unbounded
likelihood, and float64 moments carry no information below it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

VARIANCE_FLOOR = 1e-12
"""Smallest noise variance of a standardised variable; the rounding error of its moments is about 1e-15."""

DEFAULT_EDGE_PRIOR = 0.0
"""Prior log-odds of an edge, on top of its parameter cost."""

DEFAULT_TARGET_PRIOR = -2.0
"""Prior log-odds of a target, on top of its parameter cost."""


@dataclass(frozen=True, eq=False)
class Penalties:
    """Prior log-odds of edges and targets, checked and spread to matrices.

    Parameters
    ----------
    edge_prior : ndarray [d, d]
        Log-odds of every directed edge.
    target_prior : float
        Log-odds of every target.
    """

    edge_prior: NDArray[np.float64]
    target_prior: float = DEFAULT_TARGET_PRIOR

    @classmethod
    def build(
        cls, n_variables: int, edge_prior: float | NDArray[np.float64] | None, target_prior: float | None
    ) -> Penalties:
        """Spread scalars, and take the defaults for None."""
        edge = DEFAULT_EDGE_PRIOR if edge_prior is None else edge_prior
        matrix = np.array(np.broadcast_to(np.asarray(edge, dtype=np.float64), (n_variables, n_variables)))
        return cls(matrix, DEFAULT_TARGET_PRIOR if target_prior is None else float(target_prior))
