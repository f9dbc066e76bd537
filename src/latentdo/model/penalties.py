r"""What structure costs: every penalty of every solver, in one place.

The score of a fit is its log-likelihood less the cost of what was used to reach it:

==========================  ==============================================================================
reference mechanism         :math:`\tfrac12 p \log N_j` for its *p* parameters, over the :math:`N_j` rows that share it
edge :math:`i \to j`        minus its prior log-odds, ``edge_prior[i, j]`` (default :math:`-\tfrac12 \log d`)
target :math:`(k, j)`       :math:`\tfrac12 p \log N_k` for its *p* own parameters, and minus ``target_prior``
                            (default :math:`-\max(2, \log d)`)
mixture weights             :math:`\tfrac12 (K - 1) \log n` for *n* rows, groups of rows that share a regime, or short
                            stretches of a series; one more if a duration is fitted
==========================  ==============================================================================

The first and third rows are the Schwarz approximation with the rows that really inform each parameter. The default
priors grow with the number of variables as in the extended criterion of Chen and Chen (2008), so that the number of
false edges and targets does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from latentdo.model.fitted import FittedModel

FEWEST_ROWS = 2.0
"""Rows that a parameter is charged for at least: the logarithm of fewer would be a reward."""


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

    def cost(self, model: FittedModel, n_units: float, counts: NDArray[np.float64] | None = None) -> float:
        """What the structure of a model costs, in nats; with its log-likelihood this makes the evidence.

        Parameters
        ----------
        model : FittedModel
            What is paid for.
        n_units : float
            Number of rows, or of groups of rows: what the weights are shares of.
        counts : ndarray [n_regimes], optional
            Rows in every regime, which inform its mechanisms. By default rows are units, and the weights say it.
        """
        topology = model.topology
        counts = n_units * topology.weights if counts is None else counts
        n_parameters = np.count_nonzero(topology.weights > 0) - 1 + (topology.duration > 0.0)
        cost = 0.5 * n_parameters * np.log(n_units)
        for j, mechanism in enumerate(model.reference):
            shared = max(float(counts @ (topology.targets[:, j] == 0)), FEWEST_ROWS)
            cost += 0.5 * mechanism.n_parameters * np.log(shared)
            cost -= self.edge_prior[model.parents[j], j].sum()
        for (k, _), mechanism in model.own.items():
            cost += 0.5 * mechanism.n_parameters * np.log(max(counts[k], FEWEST_ROWS)) - self.target_prior
        return float(cost)
