r"""Deep sigmoidal flows whose parameters are networks of the embedding and the parents (paper, section 3.4).

Each of the ``l`` layers is :math:`\tau(x) = \sigma^{-1}(w^\top \sigma(a x + b))` with ``F`` units, :math:`a
> 0` and ``w`` on the
simplex; the result is standard normal after a shift and a scale. Everything is computed in log-space,
:math:`\log \sigma(c)` and :math:`\log \sigma(-c)`, so that neither the value nor the exact log-determinant
saturates.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from latentdo.model.variational.densities.base import LOG_SCALE_RANGE, gaussian_log_density
from latentdo.model.variational.densities.nonlinear import NetworkDensity
from latentdo.model.variational.graph import GraphSample

LOG_SLOPE_RANGE = (-9.0, 9.0)
"""Bounds of the log-slopes of units, so that no float overflows."""


def sigmoidal_layer(x: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
    r"""One layer of the flow and its log-derivative.

    Parameters
    ----------
    x : Tensor [m, B]
        Points.
    parameters : Tensor [m, 3 * F, B]
        Logarithms of the slopes, offsets, and unconstrained weights (through softmax) of the units.

    Returns
    -------
    y, log_derivative : Tensor [m, B]
        :math:`y = \sigma^{-1}(w^\top \sigma(a x + b))` and
        :math:`\log y' = \log \sum_f w_f a_f \sigma'_f - \log \sigma(y) - \log \sigma(-y)`.
    """
    log_slope, offset, raw_weight = parameters.chunk(3, dim=1)
    log_slope = log_slope.clamp(*LOG_SLOPE_RANGE)
    log_weight = torch.log_softmax(raw_weight, dim=1)
    unit = log_slope.exp() * x[:, None] + offset
    log_high = log_weight + functional.logsigmoid(unit)
    log_low = log_high - unit  # log sigma(-c) = log sigma(c) - c
    log_p = torch.logsumexp(log_high, dim=1)
    log_1p = torch.logsumexp(log_low, dim=1)
    log_sum = torch.logsumexp(log_high + log_low + (log_slope - log_weight), dim=1)
    return log_p - log_1p, log_sum - log_p - log_1p


class FlowDensity(NetworkDensity):
    """The deep sigmoidal flow family.

    Parameters
    ----------
    n_variables, embedding_size
        As for every family.
    n_layers, n_units : int
        Layers ``l`` and units ``F`` of the flow.
    outputs : int
        Numbers that networks give at least, where others are of use too.
    **network
        As for the nonlinear Gaussian family.
    """

    name: ClassVar[str] = "flow"
    parameters_per_mechanism: ClassVar[int] = 8

    def __init__(
        self,
        n_variables: int,
        embedding_size: int,
        *,
        n_layers: int = 2,
        n_units: int = 12,
        outputs: int = 0,
        **network: Any,
    ) -> None:
        outputs = max(outputs, 3 * n_units * n_layers + 2)
        super().__init__(n_variables, embedding_size, outputs=outputs, **network)
        self.n_layers = n_layers
        self.n_units = n_units
        self._spread_offsets()

    def _spread_offsets(self) -> None:
        """Start the units spread over the line, so that the flow begins near the identity."""
        bias = self.trunk.output.bias
        with torch.no_grad():
            for layer in range(self.n_layers):
                start = 3 * self.n_units * layer
                bias[..., start : start + self.n_units] = 0.0
                bias[..., start + self.n_units : start + 2 * self.n_units] = torch.linspace(
                    -2.0, 2.0, self.n_units
                )

    def transform(self, x: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
        """Flow the points ``[m, B]`` under network outputs ``[m, outputs, B]``; value and log-derivative."""
        *layers, _ = self._split(out)
        total = torch.zeros_like(x)
        for parameters in layers:
            x, log_derivative = sigmoidal_layer(x, parameters)
            total = total + log_derivative
        return x, total

    def _split(self, out: Tensor) -> tuple[Tensor, ...]:
        """Parameters of each layer ``[m, 3 * F, B]``, then shift and log-scale ``[m, 2, B]``.

        One split for all: the gradient of a slice would be a copy of everything, filled with zeros.
        """
        sizes = [3 * self.n_units] * self.n_layers + [2]
        return torch.split(out if out.shape[1] == sum(sizes) else out[:, : sum(sizes)], sizes, dim=1)

    def continuous(self, x: Tensor, out: Tensor) -> Tensor:
        """Log-densities ``[m, B]`` of values under outputs ``[m, outputs, B]``."""
        y, log_derivative = self.transform(x, out)
        shift, log_scale = self._split(out)[-1].unbind(1)
        return gaussian_log_density(y, shift, log_scale.clamp(*LOG_SCALE_RANGE)) + log_derivative

    def reference(self, x: Tensor, graph: GraphSample, u: Tensor) -> Tensor:
        """See :class:`ConditionalDensity`."""
        return self.continuous(self.own_columns(x).T, self.reference_outputs(x, graph, u)).T

    def intervened(self, x: Tensor, graph: GraphSample, u: Tensor, rows: Tensor, regimes: Tensor) -> Tensor:
        """See :class:`ConditionalDensity`."""
        points = self.own_columns(x)[rows].T
        if not self.perfect:
            return self.continuous(points, self.intervened_outputs(x, graph, u, rows, regimes)).T
        # regime by regime: one set of parameters for all its rows, instead of a copy for each
        out = self.embedding_outputs(u)
        order = torch.argsort(regimes, stable=True)
        sizes = torch.bincount(regimes, minlength=len(u)).tolist()
        parts = torch.split(points[:, order], sizes, dim=1)
        density = [self.continuous(part, out[:, :, k : k + 1]) for k, part in enumerate(parts) if sizes[k]]
        if not density:
            return points.T
        return torch.zeros_like(points).index_copy(1, order, torch.cat(density, dim=1)).T

    def inverse(self, y: Tensor, out: Tensor, n_steps: int = 80) -> Tensor:
        """Invert :meth:`transform` by bisection, after doubling an interval until it contains the solution."""
        low, high = torch.full_like(y, -1.0), torch.full_like(y, 1.0)
        for _ in range(40):
            low = torch.where(self.transform(low, out)[0] > y, 2.0 * low, low)
            high = torch.where(self.transform(high, out)[0] < y, 2.0 * high, high)
        for _ in range(n_steps):
            middle = 0.5 * (low + high)
            above = self.transform(middle, out)[0] > y
            low, high = torch.where(above, low, middle), torch.where(above, middle, high)
        return 0.5 * (low + high)

    def draw(
        self, x: Tensor, graph: GraphSample, u: Tensor, regime: int, *, intervened: bool, noise: Tensor
    ) -> Tensor:
        """See :class:`ConditionalDensity`."""
        if intervened and self.perfect:
            out = self.embedding_outputs(u[regime : regime + 1]).expand(-1, -1, len(x))
        else:
            at = regime if intervened else 0
            out = self.reference_outputs(x, graph, u[at : at + 1])
        return self.drawn(out, noise.T).T

    def drawn(self, out: Tensor, noise: Tensor) -> Tensor:
        """Values ``[m, B]`` for standard normal noise, under outputs ``[m, outputs, B]``."""
        shift, log_scale = self._split(out)[-1].unbind(1)
        return self.inverse(shift + log_scale.clamp(*LOG_SCALE_RANGE).exp() * noise, out)
