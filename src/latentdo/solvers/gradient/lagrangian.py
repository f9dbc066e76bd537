"""The augmented Lagrangian that drives the graph to a DAG (paper, section 3.8)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from torch import Tensor


@dataclass(frozen=True)
class AugmentedLagrangian:
    r"""Multiplier and penalty of the constraint :math:`h = 0`; :meth:`update` returns a new one.

    Parameters
    ----------
    multiplier : float
        The paper's :math:`\varphi`.
    penalty : float
        The paper's :math:`\mu`.
    growth : float
        :math:`\eta`: factor of the penalty when a sub-problem did not reduce the violation enough.
    progress : float
        :math:`\delta`: "enough" means to this share of the last violation.
    last : float
        Violation at the last update.
    limit : float
        The penalty never grows beyond it.
    """

    multiplier: float = 0.0
    penalty: float = 1e-8
    growth: float = 2.0
    progress: float = 0.9
    last: float = math.inf
    limit: float = 1e16

    def cost(self, violation: Tensor) -> Tensor:
        r""":math:`\varphi h + \tfrac\mu2 h^2`, to be added to the loss."""
        return self.multiplier * violation + 0.5 * self.penalty * violation.square()

    def update(self, violation: float) -> AugmentedLagrangian:
        """The Lagrangian of the next sub-problem, after one that ended with this violation."""
        penalty = self.penalty
        if violation > self.progress * self.last:
            penalty = min(self.growth * penalty, self.limit)
        return replace(
            self,
            multiplier=self.multiplier + self.penalty * violation,
            penalty=penalty,
            last=violation,
        )
