r"""The intervention embeddings :math:`u_k \in \mathbb R^h`: Gaussian, with a standard normal prior (section 3.5)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class EmbeddingPosterior(nn.Module):
    r"""Factorised Gaussians :math:`q(u_{kl}) = \mathcal N(\mu_{kl}, \sigma_{kl}^2)`.

    Parameters
    ----------
    n_regimes, size : int
        Number of embeddings and their length ``h``.
    initial_scale : float
        Start of every standard deviation.
    """

    def __init__(self, n_regimes: int, size: int, *, initial_scale: float = 0.1) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.randn(n_regimes, size))
        self.log_scale = nn.Parameter(torch.full((n_regimes, size), initial_scale).log())

    def sample(self) -> Tensor:
        """One reparametrised draw per regime, ``[n_regimes, h]``: once per step, never per row."""
        return self.mean + self.log_scale.exp() * torch.randn_like(self.mean)

    def divergence(self) -> Tensor:
        r"""Exact :math:`\sum_{kl} \tfrac12 (\sigma^2 + \mu^2 - 1) - \log \sigma` (appendix D)."""
        return (0.5 * ((2.0 * self.log_scale).exp() + self.mean.square() - 1.0) - self.log_scale).sum()
