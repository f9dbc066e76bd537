r"""Gaussian mechanisms: mean and scale are networks of the embedding and the parents (section 3.4).

:math:`g_j(x_j \mid A_j \odot x, u_k) = \mathcal N(\tilde\mu_j, \tilde\sigma_j^2)` with
:math:`(\tilde\mu_j, \tilde\sigma_j) = \mathrm{NN}([u_k, A_j \odot x]; \theta_j)`.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from latentdo.model.variational.densities.base import (
    LOG_SCALE_RANGE,
    ConditionalDensity,
    gaussian_log_density,
)
from latentdo.model.variational.densities.linear import gaussian_sum
from latentdo.model.variational.graph import GraphSample
from latentdo.model.variational.network import BatchedLinear, Trunk


class NetworkDensity(ConditionalDensity):
    """Families whose parameters are network outputs of ``[u, parents]``.

    Parameters
    ----------
    n_variables, embedding_size, perfect
        As for every family.
    outputs : int
        Number of parameters of the distribution.
    n_inputs : int, optional
        Columns of the rows, if not one per variable.
    width, n_blocks : int
        Shape of the networks.
    dropout : float
        Dropout of their blocks.
    """

    parameters_per_edge: ClassVar[int] = 8

    def __init__(
        self,
        n_variables: int,
        embedding_size: int,
        *,
        perfect: bool,
        outputs: int = 2,
        n_inputs: int | None = None,
        width: int = 32,
        n_blocks: int = 2,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(n_variables, embedding_size, perfect=perfect)
        # the first layer in two parts: the few embeddings go through theirs before they meet the many rows
        self.first_embedding = BatchedLinear(n_variables, embedding_size, width)
        self.first_parents = BatchedLinear(n_variables, n_inputs or n_variables, width)
        self.trunk = Trunk(n_variables, width, n_blocks, outputs, dropout)

    def _embedded(self, u: Tensor) -> Tensor:
        """First layer of the embeddings, ``[m, K, width]``."""
        out: Tensor = self.first_embedding(u.expand(self.n_networks, -1, -1))
        return out

    def reference_outputs(self, x: Tensor, graph: GraphSample, u: Tensor) -> Tensor:
        """Network outputs of every row under the reference, ``[m, outputs, B]``."""
        bias = self.first_parents.bias + self._embedded(u[:1])
        hidden = torch.baddbmm(bias, self.parents(x, graph), self.first_parents.weight)
        out: Tensor = self.trunk(hidden)
        return out

    def intervened_outputs(
        self, x: Tensor, graph: GraphSample, u: Tensor, rows: Tensor, regimes: Tensor
    ) -> Tensor:
        """Network outputs of the pairs, ``[m, outputs, P]``; imperfect interventions."""
        embedded = self._embedded(u) + self.first_parents.bias
        hidden = torch.bmm(self.parents(x, graph), self.first_parents.weight)
        out: Tensor = self.trunk(hidden.index_select(1, rows) + embedded.index_select(1, regimes))
        return out

    def embedding_outputs(self, u: Tensor) -> Tensor:
        """Network outputs that see the embedding alone (perfect interventions), ``[m, outputs, K]``."""
        out: Tensor = self.trunk(self._embedded(u) + self.first_parents.bias)
        return out


class NonlinearDensity(NetworkDensity):
    """The nonlinear Gaussian family."""

    name: ClassVar[str] = "nonlinear"

    @property
    def is_cheap_in_regimes(self) -> bool:
        """See :class:`ConditionalDensity`."""
        return self.perfect

    @staticmethod
    def _mean_and_log_scale(out: Tensor) -> tuple[Tensor, Tensor]:
        """From the first and the last of outputs ``[m, 2, B]`` to two ``[B, m]``."""
        return out[:, 0].T, out[:, -1].T.clamp(*LOG_SCALE_RANGE)

    def continuous(self, values: Tensor, out: Tensor) -> Tensor:
        """Log-densities ``[m, B]`` of values under outputs ``[m, outputs, B]``."""
        return gaussian_log_density(values, out[:, 0], out[:, -1].clamp(*LOG_SCALE_RANGE))

    def drawn(self, out: Tensor, noise: Tensor) -> Tensor:
        """Values ``[m, B]`` for standard normal noise, under outputs ``[m, outputs, B]``."""
        return out[:, 0] + out[:, -1].clamp(*LOG_SCALE_RANGE).exp() * noise

    def reference(self, x: Tensor, graph: GraphSample, u: Tensor) -> Tensor:
        """See :class:`ConditionalDensity`."""
        mean, log_scale = self._mean_and_log_scale(self.reference_outputs(x, graph, u))
        return gaussian_log_density(self.own_columns(x), mean, log_scale)

    def intervened(self, x: Tensor, graph: GraphSample, u: Tensor, rows: Tensor, regimes: Tensor) -> Tensor:
        """See :class:`ConditionalDensity`."""
        if self.perfect:
            mean, log_scale = self._mean_and_log_scale(self.embedding_outputs(u))
            return gaussian_log_density(self.own_columns(x)[rows], mean[regimes], log_scale[regimes])
        out = self.intervened_outputs(x, graph, u, rows, regimes)
        mean, log_scale = self._mean_and_log_scale(out)
        return gaussian_log_density(self.own_columns(x)[rows], mean, log_scale)

    def intervened_sum(self, x: Tensor, graph: GraphSample, u: Tensor, weights: Tensor) -> Tensor:
        """See :class:`ConditionalDensity`."""
        if not self.perfect:
            return super().intervened_sum(x, graph, u, weights)
        mean, log_scale = self._mean_and_log_scale(self.embedding_outputs(u))
        return gaussian_sum(self.own_columns(x), mean, log_scale, weights)

    def draw(
        self, x: Tensor, graph: GraphSample, u: Tensor, regime: int, *, intervened: bool, noise: Tensor
    ) -> Tensor:
        """See :class:`ConditionalDensity`."""
        if intervened and self.perfect:
            out = self.embedding_outputs(u[regime : regime + 1])
        else:
            at = regime if intervened else 0
            out = self.reference_outputs(x, graph, u[at : at + 1])
        mean, log_scale = self._mean_and_log_scale(out)
        return mean + log_scale.exp() * noise
