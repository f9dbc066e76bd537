"""The penalised score of a fitted model: what fits are compared by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latentdo.model.densities import FAMILIES
from latentdo.model.fitted import Array, FittedModel
from latentdo.solvers.gradient.configuration import GradientConfiguration


def penalised_score(
    model: FittedModel, z: Array, labels: NDArray[np.int64], configuration: GradientConfiguration
) -> dict[str, float]:
    r"""Log-likelihood of all rows less ``log(n) / 2`` a free parameter, plus the edges' prior.

    Labelled rows enter with :math:`\log p(x \mid k) + \log w_k`, the others with the regimes summed out. How
    many free parameters an
    edge or a mechanism counts for is a property of the density's family.
    """
    rows = model.assign(z, labels).log_likelihood
    topology = model.topology
    family = FAMILIES[configuration.density]
    parents = topology.adjacency.sum(axis=0)
    mechanism = family.parameters_per_mechanism
    count = float((mechanism + family.parameters_per_edge * parents).sum())
    own = mechanism + (
        family.parameters_per_edge * parents if configuration.intervention == "imperfect" else 0
    )
    count += float((topology.targets * own).sum()) + (topology.n_regimes - 1)
    xi = np.broadcast_to(np.asarray(configuration.edge_log_odds, dtype=np.float64), topology.adjacency.shape)
    terms = {
        "log_likelihood": float(rows.sum()),
        "parameter_cost": -0.5 * count * float(np.log(len(z))),
        "edge_prior": float((xi * topology.adjacency).sum()),
    }
    return terms | {"total": sum(terms.values())}
