"""What each edge of trained networks is worth: probabilities, and edges that do not pay."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
from scipy.special import expit

from latentdo.model.assignment import LIKELY
from latentdo.model.fitted import Array, FittedModel
from latentdo.model.mechanisms.neural import NeuralMechanism
from latentdo.solvers.search.problem import Problem


def edge_probabilities(problem: Problem, model: FittedModel) -> Array:
    r"""Approximate probability of every directed edge, ``[d, d]``.

    For an edge ``i -> j`` of the final graph, :math:`\Delta` is what the log-likelihood of ``j`` loses when the edge is
    cut and the remaining mechanism keeps its parameters; with the penalty ``c`` of an edge its probability is
    :math:`\sigma(\Delta - c)`. An edge that is not in the graph gets :math:`\sigma(-c)` (one half at most: nothing
    speaks for it but the prior), or 0 if the graph has it the other way round.

    This is an approximation, and not :math:`\sigma(\Lambda)`, which collapses and is no posterior: the rest of the
    graph is not optimised again, so the doubt about directions and about absent edges is understated.
    """
    adjacency = model.topology.adjacency
    responsibilities = model.assign(problem.z, problem.labels).responsibilities
    density, d = cast("NeuralMechanism", model.reference[0]).networks.density, len(adjacency)
    alone = [density.n_parameters(j, ()) for j in range(d)]
    one = np.array([[density.n_parameters(j, (i,)) - alone[j] for j in range(d)] for i in range(d)])
    prior = problem.penalties.edge_prior
    out = np.minimum(expit(prior - 0.5 * one * np.log(problem.n_rows)), LIKELY)
    out[adjacency.T == 1] = 0.0
    np.fill_diagonal(out, 0.0)
    for i, j in np.argwhere(adjacency):
        out[i, j] = expit(_worth(problem, model, problem.z, responsibilities, int(i), int(j)))
    return np.asarray(np.where(problem.constraints.allowed, out, 0.0))


def prune_edges(problem: Problem, model: FittedModel, held: Array, responsibilities: Array) -> FittedModel:
    """Drop edges that held-out rows do not pay for, the least useful first.

    The mechanism is not trained again without the edge, so its loss is overstated and pruning is cautious.

    Parameters
    ----------
    problem : Problem
        All rows, to which what held-out rows lose is scaled up, and what is known.
    model : FittedModel
        Trained networks.
    held, responsibilities : ndarray [m, d], [m, n_regimes]
        Held-out rows and who they belong to.
    """
    for j in range(problem.n_variables):
        while True:
            worth = [
                (_worth(problem, model, held, responsibilities, int(i), j), int(i))
                for i in model.parents[j]
                if not problem.constraints.required[i, j]
            ]
            if not worth or min(worth)[0] > 0:
                break
            model = without_edge(model, min(worth)[1], j)
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


def _worth(problem: Problem, model: FittedModel, z: Array, responsibilities: Array, i: int, j: int) -> float:
    """Nats that the edge ``i -> j`` is worth in all rows, judged by the rows ``z``, after its cost."""
    shared = responsibilities @ (1.0 - model.topology.targets[:, j])
    cut = without_edge(model, i, j)
    loss = float(
        shared @ (model.variable_log_density(z, j, 0) - cut.log_density_under(z, j, cut.reference[j]))
    )
    parameters = model.reference[j].n_parameters - cut.reference[j].n_parameters
    cost = 0.5 * parameters * np.log(problem.n_rows) - problem.penalties.edge_prior[i, j]
    return problem.n_rows / len(z) * loss - float(cost)
