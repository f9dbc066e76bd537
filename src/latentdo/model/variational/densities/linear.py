r"""Linear Gaussian mechanisms whose coefficients come from a hypernetwork of the embedding (section 3.4).

:math:`g_j(x_j \mid A_j \odot x, u_k) = \mathcal N(\tilde a_j^\top (A_j \odot x) + \tilde b_j,
\tilde\sigma_j^2)` with
:math:`(\tilde a_j, \tilde b_j, \tilde\sigma_j) = \mathrm{NN}(u_k; \theta_j)`. The network sees embeddings
only, never rows, so a step
costs a few thin matrix products. The expectation over independent edges is exact: with edge probabilities
:math:`p_i`,

.. math::
    \mathbb E\big[(x_j - b - \textstyle\sum_i a_i A_i x_i)^2\big]
    = (x_j - b - \textstyle\sum_i a_i p_i x_i)^2 + \textstyle\sum_i a_i^2 p_i (1 - p_i) x_i^2.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from latentdo.model.variational.densities.base import LOG_2PI, LOG_SCALE_RANGE, ConditionalDensity
from latentdo.model.variational.graph import GraphSample
from latentdo.model.variational.moments import Moments
from latentdo.model.variational.network import BatchedLinear, Trunk

RIDGE = 1e-10
"""Relative ridge of closed-form regressions: collinear parents share, and nothing else notices."""

GRANTED_RESIDUAL = 1e-10
"""A weak prior on variances: this much squared residual is added to every mechanism, whatever its number of rows."""


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
        free_reference: bool = False,
    ) -> None:
        super().__init__(n_variables, embedding_size, perfect=perfect)
        self.own_reference = (
            nn.Parameter(torch.zeros(n_variables, n_variables + 2)) if free_reference else None
        )
        self.first = BatchedLinear(n_variables, embedding_size, width)
        self.trunk = Trunk(n_variables, width, n_blocks, n_variables + 2, dropout)

    @property
    def is_exact_over_edges(self) -> bool:
        """See :class:`ConditionalDensity`."""
        return True

    @property
    def is_cheap_in_regimes(self) -> bool:
        """See :class:`ConditionalDensity`."""
        return True

    def mechanisms(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Coefficients ``[K, d, m]`` (parent, variable), intercepts and log standard deviations ``[K, m]``."""
        out = self.trunk(self.first(u.expand(self.n_networks, -1, -1)))
        coefficients = out[:, : self.n_variables].permute(2, 1, 0)
        log_scale = out[:, -1].T.clamp(*LOG_SCALE_RANGE)
        return coefficients, out[:, -2].T, log_scale

    def reference_mechanism(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """That of the reference, in the shape of :meth:`mechanisms` with one regime."""
        own = self.own_reference
        if own is None:
            return self.mechanisms(u[:1])
        log_scale = own[:, -1].clamp(*LOG_SCALE_RANGE)
        return own[:, : self.n_variables].T[None], own[None, :, -2], log_scale[None]

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
        """See :class:`ConditionalDensity`."""
        return self._log_density(x, graph, self.reference_mechanism(u))[:, 0]

    def intervened(self, x: Tensor, graph: GraphSample, u: Tensor, rows: Tensor, regimes: Tensor) -> Tensor:
        """See :class:`ConditionalDensity`."""
        coefficients, intercept, log_scale = self.mechanisms(u)
        if self.perfect:
            square = (self.own_columns(x)[rows] - intercept[regimes]).square()
            scale = log_scale[regimes]
            return -0.5 * square * (-2.0 * scale).exp() - scale - 0.5 * LOG_2PI
        return self._log_density(x, graph, (coefficients, intercept, log_scale))[rows, regimes]

    def intervened_sum(self, x: Tensor, graph: GraphSample, u: Tensor, weights: Tensor) -> Tensor:
        """See :class:`ConditionalDensity`."""
        mechanisms = self.mechanisms(u)
        if not self.perfect:
            return torch.einsum("bkm,km->bk", self._log_density(x, graph, mechanisms), weights)
        return gaussian_sum(self.own_columns(x), mechanisms[1], mechanisms[2], weights)

    def log_likelihood(self, moments: Moments, graph: GraphSample, u: Tensor, targets: Tensor) -> Tensor:
        r"""Expected log-likelihood of all rows from their moments, exact over edges and targets.

        :math:`\sum_{kj} (1 - \pi_{kj}) \ell_{kj}(u_0) + \pi_{kj} \ell_{kj}(u_k)`, where
        :math:`\ell_{kj} = -\tfrac{1}{2\sigma^2} \mathrm{tr}(M_k C) - n_k \log(\sqrt{2\pi} \sigma)` and ``C``
        is the expected outer
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
        # a regime without rows has no say
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
        """See :class:`ConditionalDensity`."""
        if intervened:
            coefficients, intercept, log_scale = self.mechanisms(u[regime : regime + 1])
        else:
            coefficients, intercept, log_scale = self.reference_mechanism(u)
        mean = intercept
        if not (intervened and self.perfect):
            mean = mean + x @ (self._masked(graph)[0] * coefficients[0])
        return mean + log_scale.exp() * noise


class ClosedFormLinearDensity(LinearDensity):
    r"""Linear mechanisms at their maximum-likelihood values, refitted from moments instead of trained.

    Given edge probabilities and targets, the best coefficients solve one small linear system a variable, so
    the score is
    profiled: :math:`\max_\theta` in the paper's relaxed score is exact at every step, and no embedding is
    needed. With
    :math:`e = [1, p]` and pooled moments ``M``, the expected square is minimised by
    :math:`(e e^\top \odot M + \mathrm{diag}(e (1 - e)) \odot M) w = e \odot M_{\cdot j}`.

    Parameters
    ----------
    n_variables, n_regimes : int
        Number of variables, and of regimes with the reference.
    perfect : bool
        Intervened mechanisms ignore the parents.
    """

    coefficients: Tensor
    intercept: Tensor
    log_scale: Tensor

    def __init__(self, n_variables: int, n_regimes: int, *, perfect: bool) -> None:
        super().__init__(n_variables, 1, perfect=perfect, width=1, n_blocks=0)
        del self.first, self.trunk
        self._fitted_to: Moments | None = None
        d, k = n_variables, n_regimes
        self.register_buffer("coefficients", torch.zeros(k, d, d))
        self.register_buffer("intercept", torch.zeros(k, d))
        self.register_buffer("log_scale", torch.zeros(k, d))

    def mechanisms(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The fitted mechanisms of the first ``len(u)`` regimes; the embeddings are not used."""
        k = len(u)
        return self.coefficients[:k], self.intercept[:k], self.log_scale[:k]

    @torch.no_grad()
    def refit(self, moments: Moments, graph: GraphSample, targets: Tensor) -> None:
        """Set every mechanism to its best value: the reference on pooled moments, the own ones regime by regime."""
        edges, d = graph.values[0], self.n_variables
        own = torch.arange(d, device=edges.device)
        pooled = torch.einsum("kj,kab->jab", 1.0 - targets, moments.second)
        coefficients, intercept, log_scale = closed_form(pooled, edges.T, own)
        self.coefficients[0], self.intercept[0], self.log_scale[0] = coefficients.T, intercept, log_scale
        k = len(targets) - 1
        if k == 0:
            return
        if self.perfect:
            if self._fitted_to is not moments:  # they depend on nothing else
                count = moments.counts[1:, None].clamp_min(1e-9)
                mean = moments.second[1:, 0, 1:] / count
                square = moments.second[1:].diagonal(dim1=1, dim2=2)[:, 1:] / count - mean.square()
                variance = square.clamp_min(0.0) + GRANTED_RESIDUAL / count
                self.intercept[1:], self.log_scale[1:] = mean, (0.5 * variance.log()).clamp(*LOG_SCALE_RANGE)
                self._fitted_to = moments
            return
        second = moments.second[1:].repeat_interleave(d, dim=0)
        coefficients, intercept, log_scale = closed_form(second, edges.T.repeat(k, 1), own.repeat(k))
        self.coefficients[1:] = coefficients.reshape(k, d, d).transpose(1, 2)
        self.intercept[1:], self.log_scale[1:] = intercept.reshape(k, d), log_scale.reshape(k, d)


def closed_form(second: Tensor, edges: Tensor, own: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Best coefficients ``[m, d]``, intercepts and log standard deviations ``[m]`` of ``m`` regressions.

    Parameters
    ----------
    second : Tensor [m, d + 1, d + 1]
        Moments of each, constant first.
    edges : Tensor [m, d]
        Probabilities of the parents of each.
    own : Tensor [m] of int64
        The variable each describes.
    """
    m = torch.arange(len(own), device=own.device)
    e = torch.cat([torch.ones_like(edges[:, :1]), edges], dim=1)
    diagonal = second.diagonal(dim1=1, dim2=2)
    gram = e[:, :, None] * e[:, None, :] * second + torch.diag_embed(e * (1.0 - e) * diagonal)
    right = e * second[m, :, 1 + own]
    ridge = RIDGE * (diagonal * e + second[:, :1, 0]) + 1e-9
    solution = torch.linalg.solve(gram + torch.diag_embed(ridge), right)
    quadratic = torch.einsum("ja,jab,jb->j", solution, gram, solution)
    residual = diagonal[m, 1 + own] - 2.0 * (solution * right).sum(1) + quadratic
    variance = (residual.clamp_min(0.0) + GRANTED_RESIDUAL) / diagonal[:, 0].clamp_min(1e-9)
    return solution[:, 1:], solution[:, 0], (0.5 * variance.log()).clamp(*LOG_SCALE_RANGE)


def gaussian_sum(x: Tensor, mean: Tensor, log_scale: Tensor, weights: Tensor) -> Tensor:
    r""":math:`\sum_j w_{kj} \log \mathcal N(x_j; \mu_{kj}, \sigma_{kj}^2)` ``[B, K]`` by matrix products.

    The expanded square cancels badly for narrow distributions, so the products are taken in float64.
    """
    mean, log_scale, weights = mean.double(), log_scale.double(), weights.double()
    wide = x.double()
    precision = weights * (-2.0 * log_scale).exp()
    constant = -0.5 * (precision * mean.square()) - weights * (log_scale + 0.5 * LOG_2PI)
    total = wide.square() @ (-0.5 * precision).T + wide @ (precision * mean).T + constant.sum(1)
    return total.to(x.dtype)
