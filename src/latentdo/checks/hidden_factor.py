r"""A hidden variable that moves many columns: size, depth, temperature.

.. math:: z_j = c_{jk} + b_{jk}^\top z_{pa(j)} + \lambda_{jk} f + \varepsilon_j, \qquad f \sim N(0, 1).

Given a row, :math:`f` is Gaussian with a mean that is linear in the row, so that the expected moments of
:math:`(1, z, f)` are a linear map of those of :math:`(1, z)`. A nearly complete graph can imitate :math:`f`, with an
arrow for every pair where it needs one loading per column.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from latentdo.checks.check import Array
from latentdo.checks.rivals import Climb, Lines, equations
from latentdo.checks.starts import Start, explore
from latentdo.model.fitted import FittedModel, Topology
from latentdo.model.mechanisms.linear import LinearMechanism
from latentdo.model.mechanisms.noise import VARIANCE_FLOOR, Noise
from latentdo.solvers.search.learner import Graph
from latentdo.solvers.search.moments import Moments
from latentdo.solvers.settings import FACTOR_LOADINGS, LOADED, RIVAL_STEPS

_STANDARD = LinearMechanism(np.zeros(1), Noise.gaussian(1.0))


@dataclass(frozen=True, eq=False)
class HiddenFactor:
    """What one hidden variable would explain.

    Parameters
    ----------
    gain : float
        Evidence with it less evidence without it, in nats.
    arrows : tuple of int
        Arrows among the columns without it, and with it.
    loadings : ndarray [d]
        Correlation of what parents leave of each column with it, in the reference.
    """

    gain: float
    arrows: tuple[int, int]
    loadings: Array

    @property
    def loaded(self) -> NDArray[np.int64]:
        """Columns that it moves."""
        return np.flatnonzero(np.abs(self.loadings) > LOADED)


class WithFactor(Lines):
    """Lines beside one hidden variable."""

    hidden = 1
    steps = RIVAL_STEPS

    def expected(self, moments: Moments, model: FittedModel) -> Moments:
        """See :class:`.Lines`."""
        matrices, d = moments.matrices, self.n_variables
        constants, coefficients, variances = equations(model)
        loadings, weights = coefficients[:, :d, d], coefficients[:, :d, :d]
        pull = loadings / variances[:, :d]
        precision = 1.0 + (pull * loadings).sum(axis=1)
        extend = np.tile(np.eye(d + 2, d + 1), (len(matrices), 1, 1))
        extend[:, d + 1, 0] = -(pull * constants[:, :d]).sum(axis=1) / precision
        extend[:, d + 1, 1:] = (pull - (pull[:, None] @ weights)[:, 0]) / precision[:, None]
        full = extend @ matrices @ extend.transpose(0, 2, 1)
        full[:, d + 1, d + 1] += matrices[:, 0, 0] / precision
        return Moments(full)

    def fit(self, moments: Moments, graph: Graph) -> FittedModel:
        """See :class:`.Lines`; the hidden variable stays standard normal."""
        fitted = super().fit(moments, graph)
        return replace(fitted, reference=(*fitted.reference[:-1], _STANDARD))

    def cost(self, model: FittedModel, n_rows: float) -> float:
        """See :class:`.Lines`; the distribution of the hidden variable is given."""
        return super().cost(model, n_rows) - 0.5 * _STANDARD.n_parameters * float(np.log(n_rows))

    def start(self, moments: Moments, loading: float) -> tuple[FittedModel, Graph]:
        """Columns that have nothing in common but the hidden variable, with a level of their own in every regime."""
        d, counts = self.n_variables, moments.counts
        means = moments.matrices[:, 0, 1:] / counts[:, None]
        between = np.einsum("k,ki,kj->ij", counts, means, means)
        within = (moments.matrices[:, 1:, 1:].sum(axis=0) - between) / counts.sum()
        deviation = np.sqrt(np.maximum(within.diagonal(), VARIANCE_FLOOR))
        # Which columns rise together: signs of what they share most.
        shared = np.linalg.eigh(within / np.outer(deviation, deviation))[1][:, -1]
        loadings = loading * np.where(shared * shared.sum() >= 0.0, 1.0, -1.0) * deviation
        noises = [Noise.gaussian(float(size)) for size in deviation**2 - loadings**2]
        graph = np.zeros((d + 1, d + 1), dtype=np.int8)
        graph[d, :d] = 1
        targets = np.ones((len(counts), d + 1), dtype=np.int8)
        targets[:, d] = 0
        own = {
            (k, j): LinearMechanism(np.array([means[k, j], loadings[j]]), noises[j])
            for k in range(len(counts))
            for j in range(d)
        }
        reference = (*(own[0, j] for j in range(d)), _STANDARD)
        return FittedModel(Topology(graph, targets, counts / counts.sum()), reference, own), graph


def look_for_factor(
    z: Array, responsibilities: Array, plain: Climb, *, imperfect: bool = True, told: bool = False
) -> HiddenFactor:
    """Compare the best lines, ``plain``, with lines beside one hidden variable, from rows as the fit assigns them."""
    rival, d = WithFactor(z.shape[1], imperfect=imperfect), z.shape[1]
    starts = [Start(rival, partial(rival.start, loading=loading)) for loading in FACTOR_LOADINGS]
    _, reached, gain = explore(starts, z, responsibilities, plain.evidence, told=told)
    _, coefficients, variances = equations(reached.model)
    loading = coefficients[0, :d, d]
    return HiddenFactor(
        gain,
        (int(plain.model.topology.adjacency.sum()), int(reached.model.topology.adjacency[:d, :d].sum())),
        np.asarray(loading / np.sqrt(loading**2 + variances[0, :d])),
    )
