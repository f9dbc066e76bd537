r"""Columns with errors of their own, which no effect inherits.

What causes others is then a value that nobody saw. Given the measured cause, its effects still depend on what comes
before it, so that a fit draws arrows from there as well. The rival explanation has lines for what was meant,

.. math:: z_j = z^*_j + e_j, \qquad \operatorname{var} e_j = \rho,

with one share :math:`\rho` of the variance of every column. Given a row, what was meant is Gaussian and linear in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latentdo.checks.check import Array
from latentdo.checks.rivals import Climb, Lines, moments_of, without_small
from latentdo.checks.starts import Start, explore
from latentdo.model.fitted import FittedModel
from latentdo.solvers.search.learner import Graph
from latentdo.solvers.search.moments import Moments
from latentdo.solvers.settings import ERROR_LIMIT, ERROR_SHARES, RIVAL_STEPS


class MeasurementError(NamedTuple):
    """What errors of measurement would explain.

    ``gain`` is the evidence with errors less that without, in nats, for the best ``share`` of the variance of every
    column; ``arrows`` are those without errors, and with them.
    """

    gain: float
    share: float
    arrows: tuple[int, int]


class WithErrors(Lines):
    """Lines for what was meant."""

    steps = RIVAL_STEPS

    def __init__(self, n_variables: int, errors: Array, *, imperfect: bool = True) -> None:
        super().__init__(n_variables, imperfect=imperfect)
        self.errors = errors

    def expected(self, moments: Moments, model: FittedModel) -> Moments:
        """See :class:`.Lines`."""
        matrices = moments.matrices
        means, covariances = super().distributions(model)
        pull = np.linalg.solve(covariances + np.diag(self.errors), covariances).transpose(0, 2, 1)
        shrink = np.tile(np.eye(matrices.shape[1]), (len(matrices), 1, 1))
        shrink[:, 1:, 1:], shrink[:, 1:, 0] = pull, means - (pull @ means[:, :, None])[:, :, 0]
        found = shrink @ matrices @ shrink.transpose(0, 2, 1)
        found[:, 1:, 1:] += matrices[:, :1, :1] * (covariances - pull @ covariances)
        return Moments(0.5 * (found + found.transpose(0, 2, 1)))

    def distributions(self, model: FittedModel) -> tuple[Array, Array]:
        """See :class:`.Lines`."""
        means, covariances = super().distributions(model)
        return means, covariances + np.diag(self.errors)

    def cost(self, model: FittedModel, n_rows: float) -> float:
        """See :class:`.Lines`; the share is a parameter."""
        return super().cost(model, n_rows) + 0.5 * float(np.log(n_rows))


def look_for_errors(
    z: Array, responsibilities: Array, plain: Climb, *, imperfect: bool = True, told: bool = False
) -> MeasurementError:
    """Compare the best lines for what was measured, ``plain``, with lines for what was meant."""
    moments = moments_of(z, without_small(responsibilities))
    counts = moments.counts[:, None]
    means = moments.matrices[:, 0, 1:] / counts
    squares = np.diagonal(moments.matrices, axis1=1, axis2=2)[:, 1:] / counts
    smallest = (squares - means**2).min(axis=0)
    graph = plain.model.topology.adjacency
    lines = Lines(z.shape[1], imperfect=imperfect)

    def begin(moments: Moments) -> tuple[FittedModel, Graph]:
        return lines.fit(moments, graph), graph

    starts = [
        Start(WithErrors(z.shape[1], np.minimum(share, ERROR_LIMIT * smallest), imperfect=imperfect), begin)
        for share in ERROR_SHARES
    ]
    start, reached, gain = explore(starts, z, responsibilities, plain.evidence, told=told)
    arrows = (int(graph.sum()), int(reached.model.topology.adjacency.sum()))
    return MeasurementError(gain, ERROR_SHARES[starts.index(start)], arrows)
