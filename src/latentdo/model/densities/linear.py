r"""Linear Gaussian mechanisms whose coefficients come from a hypernetwork of the embedding (paper, section 3.4).

:math:`g_j(x_j \mid A_j \odot x, u_k) = \mathcal N(\tilde a_j^\top (A_j \odot x) + \tilde b_j, \tilde\sigma_j^2)` with
:math:`(\tilde a_j, \tilde b_j, \tilde\sigma_j) = \mathrm{NN}(u_k; \theta_j)`. The network sees embeddings only, never rows, so a step
costs a few thin matrix products. The expectation over independent edges is exact: with edge probabilities :math:`p_i`,

.. math::
    \mathbb E\big[(x_j - b - \textstyle\sum_i a_i A_i x_i)^2\big]
    = (x_j - b - \textstyle\sum_i a_i p_i x_i)^2 + \textstyle\sum_i a_i^2 p_i (1 - p_i) x_i^2.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from latentdo.model.densities.base import LOG_2PI, LOG_SCALE_RANGE, ConditionalDensity
from latentdo.model.graph import GraphSample
from latentdo.model.moments import Moments
from latentdo.model.network import BatchedLinear, Trunk


class LinearDensity(ConditionalDensity):
    """The linear Gaussian family.

    Parameters
    ----------
    n_variables, embedding_size, perfect
        As for every family.
    width, n_blocks : int
        Shape of the hypernetworks.
    dropout : float
        Dropout of their blocks.
    """

    name: ClassVar[str] = "linear"
    parameters_per_edge: ClassVar[int] = 1

    def __init__(
        self,
        n_variables: int,
        embedding_size: int,
        *,
        perfect: bool,
        width: int = 32,
        n_blocks: int = 2,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(n_variables, embedding_size, perfect=perfect)
        self.first = BatchedLinear(n_variables, embedding_size, width)
        self.trunk = Trunk(n_variables, width, n_blocks, n_variables + 2, dropout)

    @property
    def is_cheap_in_regimes(self) -> bool:
        return True

    def mechanisms(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Coefficients ``[K, d, m]`` (parent, variable), intercepts and log standard deviations ``[K, m]``."""
        out = self.trunk(self.first(u.expand(self.n_networks, -1, -1)))
        coefficients = out[:, :, : self.n_variables].permute(1, 2, 0)
        log_scale = out[:, :, -1].T.clamp(*LOG_SCALE_RANGE)
        return coefficients, out[:, :, -2].T, log_scale

    def _masked(self, graph: GraphSample) -> Tensor:
        values = graph.values
        return values if self.n_networks == self.n_variables else values[:, :, list(self.variables)]

    def _log_density(
        self, x: Tensor, graph: GraphSample, mechanisms: tuple[Tensor, Tensor, Tensor]
    ) -> Tensor:
        """Under each of ``K`` mechanisms with parents, ``[B, K, m]``."""
        coefficients, intercept, log_scale = mechanisms
        k, d, m = coefficients.shape
        masks = self._masked(graph)
        grouped = graph.split(x)
        weights = (masks[:, None] * coefficients).permute(0, 2, 1, 3).reshape(graph.n_groups, d, k * m)
        mean = torch.bmm(grouped, weights).reshape(-1, k, m)[: len(x)] + intercept
        square = (self.own_columns(x)[:, None] - mean).square()
        if graph.expected:
            spread = (masks * (1.0 - masks) * coefficients.square()).permute(1, 0, 2).reshape(d, k * m)
            square = square + (x.square() @ spread).reshape(-1, k, m)
        return -0.5 * square * (-2.0 * log_scale).exp() - log_scale - 0.5 * LOG_2PI

    def reference(self, x: Tensor, graph: GraphSample, u: Tensor) -> Tensor:
        return self._log_density(x, graph, self.mechanisms(u[:1]))[:, 0]

    def intervened(self, x: Tensor, graph: GraphSample, u: Tensor, rows: Tensor, regimes: Tensor) -> Tensor:
        coefficients, intercept, log_scale = self.mechanisms(u)
        if self.perfect:
            square = (self.own_columns(x)[rows] - intercept[regimes]).square()
            scale = log_scale[regimes]
            return -0.5 * square * (-2.0 * scale).exp() - scale - 0.5 * LOG_2PI
        return self._log_density(x, graph, (coefficients, intercept, log_scale))[rows, regimes]

    def intervened_sum(self, x: Tensor, graph: GraphSample, u: Tensor, weights: Tensor) -> Tensor:
        mechanisms = self.mechanisms(u)
        if not self.perfect:
            return torch.einsum("bkm,km->bk", self._log_density(x, graph, mechanisms), weights)
        return gaussian_sum(self.own_columns(x), mechanisms[1], mechanisms[2], weights)

    def log_likelihood(self, moments: Moments, graph: GraphSample, u: Tensor, targets: Tensor) -> Tensor:
        r"""Expected log-likelihood of all rows from their moments, exact over edges and targets.

        :math:`\sum_{kj} (1 - \pi_{kj}) \ell_{kj}(u_0) + \pi_{kj} \ell_{kj}(u_k)`, where
        :math:`\ell_{kj} = -\tfrac{1}{2\sigma^2} \mathrm{tr}(M_k C) - n_k \log(\sqrt{2\pi} \sigma)` and ``C`` is the expected outer
        product of the contrast :math:`[-b, -a \odot A, 1]`.
        """
        coefficients, intercept, log_scale = self.mechanisms(u)
        edges = graph.values[0]
        reference = self._from_moments(
            torch.einsum("kj,kab->jab", 1.0 - targets, moments.second),
            edges * coefficients[0],
            edges * (1.0 - edges) * coefficients[0].square() if graph.expected else None,
            intercept[0],
            log_scale[0],
        ).sum()
        if len(u) == 1:
            return reference
        k, _, d = coefficients.shape
        used = torch.zeros_like(coefficients) if self.perfect else edges * coefficients
        spread = None
        if graph.expected and not self.perfect:
            spread = (edges * (1.0 - edges) * coefficients.square()).permute(1, 0, 2).reshape(d, k * d)
        own = self._from_moments(
            moments.second.repeat_interleave(d, dim=0),
            used.permute(1, 0, 2).reshape(d, k * d),
            spread,
            intercept.reshape(-1),
            log_scale.reshape(-1),
        )
        return reference + (targets.reshape(-1) * own).sum()

    def _from_moments(
        self,
        second: Tensor,
        coefficients: Tensor,
        spread: Tensor | None,
        intercept: Tensor,
        log_scale: Tensor,
    ) -> Tensor:
        """Log-likelihood of each of ``m`` mechanisms ``[m]``, each with moments ``[m, d + 1, d + 1]`` of its own."""
        m = len(second)
        own = torch.eye(self.n_variables, dtype=second.dtype, device=second.device).repeat(
            1, m // self.n_variables
        )
        contrast = torch.cat([-intercept[None], own - coefficients]).T
        square = torch.einsum("ma,mab,mb->m", contrast, second, contrast)
        if spread is not None:
            square = square + (spread * second.diagonal(dim1=1, dim2=2)[:, 1:].T).sum(0)
        return -0.5 * square * (-2.0 * log_scale).exp() - second[:, 0, 0] * (log_scale + 0.5 * LOG_2PI)

    def draw(
        self, x: Tensor, graph: GraphSample, u: Tensor, regime: int, *, intervened: bool, noise: Tensor
    ) -> Tensor:
        at = regime if intervened else 0
        coefficients, intercept, log_scale = self.mechanisms(u[at : at + 1])
        mean = intercept
        if not (intervened and self.perfect):
            mean = mean + x @ (self._masked(graph)[0] * coefficients[0])
        return mean + log_scale.exp() * noise


def gaussian_sum(x: Tensor, mean: Tensor, log_scale: Tensor, weights: Tensor) -> Tensor:
    r""":math:`\sum_j w_{kj} \log \mathcal N(x_j; \mu_{kj}, \sigma_{kj}^2)` ``[B, K]``, as two matrix products.

    The expanded square cancels badly for narrow distributions, so the products are taken in float64.
    """
    mean, log_scale, weights = mean.double(), log_scale.double(), weights.double()
    wide = x.double()
    precision = weights * (-2.0 * log_scale).exp()
    constant = -0.5 * (precision * mean.square()) - weights * (log_scale + 0.5 * LOG_2PI)
    total = wide.square() @ (-0.5 * precision).T + wide @ (precision * mean).T + constant.sum(1)
    return total.to(x.dtype)
