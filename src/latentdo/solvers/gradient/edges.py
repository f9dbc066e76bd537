"""Approximate probabilities of edges from what each edge of the final graph is worth."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from latentdo.model.densities import FAMILIES
from latentdo.model.fitted import Array, FittedModel
from latentdo.model.mechanisms.neural import NeuralMechanism
from latentdo.solvers.gradient.configuration import GradientConfiguration


def edge_probabilities(
    model: FittedModel, z: Array, labels: NDArray[np.int64], configuration: GradientConfiguration
) -> Array:
    r"""Approximate probability of every directed edge, ``[d, d]``.

    For an edge ``i -> j`` of the final graph, :math:`\Delta` is what the log-likelihood of ``j`` loses when
    the edge is cut and the
    remaining mechanism keeps its parameters but for the location and scale of its residual; with the penalty
    ``c`` of an edge
    (half the logarithm of ``n`` a parameter, less the prior log-odds) its probability is
    :math:`\sigma(\Delta - c)`. An edge that is
    not in the graph gets :math:`\sigma(-c)` (one half at most: nothing speaks for it but the prior), or 0 if the graph
    has it the other way round.

    This is an approximation, and not :math:`\sigma(\Lambda)`, which collapses and is no posterior: the rest
    of the graph is not
    re-optimised, so the doubt about directions and about absent edges is understated.
    """
    topology = model.topology
    n, d = z.shape
    q = model.assign(z, labels).responsibilities
    family = FAMILIES[configuration.density]
    xi = np.broadcast_to(np.asarray(configuration.edge_log_odds, dtype=np.float64), (d, d))
    cost = 0.5 * np.log(n) * family.parameters_per_edge - xi
    out = np.minimum(1.0 / (1.0 + np.exp(np.clip(cost, -500, 500))), 0.5)
    out[topology.adjacency.T == 1] = 0.0
    np.fill_diagonal(out, 0.0)
    for i, j in np.argwhere(topology.adjacency):
        gain = _loss_without(model, z, q, int(i), int(j))
        out[i, j] = 1.0 / (1.0 + np.exp(np.clip(cost[i, j] - gain, -500, 500)))
    return np.asarray(out)


def prune_edges(
    model: FittedModel,
    z: Array,
    labels: NDArray[np.int64],
    n_rows: int,
    configuration: GradientConfiguration,
) -> FittedModel:
    """Drop edges that held-out rows do not pay for, the least useful first.

    The loss of held-out log-likelihood without the edge, scaled up to all rows, is compared with the edge's penalty.
    The mechanism is not retrained without the edge, so its loss is overstated and pruning is cautious.

    Parameters
    ----------
    model : FittedModel
        A fitted model.
    z, labels : ndarray [m, d], [m]
        Held-out rows and their known regimes.
    n_rows : int
        Number of rows the penalty refers to.
    configuration : GradientConfiguration
        Family, prior and required edges.
    """
    q = model.assign(z, labels).responsibilities
    d = z.shape[1]
    xi = np.broadcast_to(np.asarray(configuration.edge_log_odds, dtype=np.float64), (d, d))
    cost = 0.5 * np.log(n_rows) * FAMILIES[configuration.density].parameters_per_edge - xi
    required = configuration.required
    for j in range(d):
        while True:
            edges = [
                (n_rows / len(z) * _loss_without(model, z, q, int(i), j) - cost[i, j], int(i))
                for i in np.flatnonzero(model.topology.adjacency[:, j])
                if required is None or not required[i, j]
            ]
            if not edges or min(edges)[0] > 0:
                break
            model = without_edge(model, min(edges)[1], j)
    return model


def without_edge(model: FittedModel, i: int, j: int) -> FittedModel:
    """The same networks with the edge ``i -> j`` cut."""
    adjacency = model.topology.adjacency.copy()
    adjacency[i, j] = 0
    reference = list(model.reference)
    reference[j] = cast("NeuralMechanism", reference[j]).without(i)
    own = {
        key: cast("NeuralMechanism", one).without(i) if key[1] == j else one for key, one in model.own.items()
    }
    topology = replace(model.topology, adjacency=adjacency)
    return replace(model, topology=topology, reference=tuple(reference), own=own)


def _loss_without(model: FittedModel, z: Array, q: Array, i: int, j: int) -> float:
    """Log-likelihood of ``j``'s reference mechanism with the edge ``i -> j``, less that without it."""
    shared = q @ (1.0 - model.topology.targets[:, j])
    total = float(shared.sum())
    if total < 1.0:
        return 0.0
    with_edge = float(shared @ model.variable_log_density(z, j, 0))
    # the location and scale of the residual are refitted, or any change of units would look like evidence
    form = model.reference[j].linear_form
    if form is not None:
        slopes = np.where(model.parents[j] == i, 0.0, form.coefficients[1:])
        residual = z[:, j] - form.coefficients[0] - model.inputs(z, j) @ slopes
        residual = residual - shared @ residual / total
        variance = max(float(shared @ residual**2) / total, 1e-300)
        return with_edge + 0.5 * total * (float(np.log(2.0 * np.pi * variance)) + 1.0)
    cut = without_edge(model, i, j)
    return with_edge - float(shared @ cut.variable_log_density(z, j, 0))
