r"""What structure costs: every penalty of the search, in one place.

The score of a fit is its log-likelihood less the cost of what was used to reach it:

==========================  ==============================================================================
reference mechanism         :math:`\tfrac12 (|pa(j)| + 2) \log N_j`, over the :math:`N_j` rows that share it
edge :math:`i \to j`        minus its prior log-odds, ``edge_prior[i, j]`` (default :math:`-\tfrac12 \log d`)
target :math:`(k, j)`       :math:`\tfrac12 p \log N_k` for its *p* own parameters, and minus ``target_prior``
                            (default :math:`-\max(2, \log d)`)
mixture weights             :math:`\tfrac12 (K - 1) \log n`
==========================  ==============================================================================

The first and third rows are the Schwarz approximation with the rows that really inform each parameter. The default
priors grow with the number of variables as in the extended criterion of Chen and Chen (2008), so that the number of
false edges and targets does not. Variances
are floored at :data:`VARIANCE_FLOOR` (of a standardised variable): mixtures and atomic interventions have an unbounded
likelihood, and float64 moments carry no information below it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

VARIANCE_FLOOR = 1e-12
"""Smallest noise variance of a standardised variable; the rounding error of its moments is about 1e-15."""


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
    target_prior: float

    @classmethod
    def build(
        cls, n_variables: int, edge_prior: float | NDArray[np.float64] | None, target_prior: float | None
    ) -> Penalties:
        """Spread scalars, and take the defaults for None."""
        edge = -0.5 * np.log(n_variables) if edge_prior is None else edge_prior
        target = -max(2.0, float(np.log(n_variables))) if target_prior is None else float(target_prior)
        matrix = np.array(np.broadcast_to(np.asarray(edge, dtype=np.float64), (n_variables, n_variables)))
        return cls(matrix, target)
