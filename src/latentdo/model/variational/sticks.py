r"""Truncated stick-breaking weights of the Dirichlet process (paper, sections 3.5-3.6, appendix D).

:math:`\beta_k = v_k \prod_{k' < k} (1 - v_{k'})` with :math:`v_k \sim \mathrm{Beta}(1, \alpha)` and
:math:`q(v_k) = \mathrm{Beta}(\rho_k w_k, (1 - \rho_k) w_k)`. At the truncation the last stick is taken
whole: :math:`v_K = 1`.
The paper's appendix prints the divergence of the prior from the posterior; the bound needs the other
direction.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.distributions import Beta, kl_divergence
from torch.nn import functional


class StickPosterior(nn.Module):
    """Beta posteriors of the first ``n_regimes - 1`` sticks.

    Parameters
    ----------
    n_regimes : int
        Truncation: number of regimes, the reference included.
    concentration : float
        The Dirichlet process's alpha.
    """

    def __init__(self, n_regimes: int, concentration: float) -> None:
        super().__init__()
        self.concentration = concentration
        k = torch.arange(n_regimes - 1, dtype=torch.get_default_dtype())
        # start at equal expected weights: v_k = 1 / (remaining regimes)
        self.location = nn.Parameter(torch.logit(1.0 / (n_regimes - k)))
        self.log_strength = nn.Parameter(torch.full((n_regimes - 1,), 10.0).expm1().log())

    def posterior(self) -> Beta:
        r""":math:`q(v)`, ``[n_regimes - 1]``."""
        rho = torch.sigmoid(self.location)
        w = functional.softplus(self.log_strength) + 1e-4
        return Beta(rho * w, (1.0 - rho) * w, validate_args=False)

    def expected_log_weights(self) -> Tensor:
        r"""Exact :math:`\mathbb E_q[\log \beta_k]` by digamma functions (appendix D), ``[n_regimes]``."""
        q = self.posterior()
        a, b = q.concentration1, q.concentration0
        total = torch.digamma(a + b)
        log_v = torch.cat([torch.digamma(a) - total, a.new_zeros(1)])
        log_rest = torch.cat([a.new_zeros(1), (torch.digamma(b) - total).cumsum(0)])
        return log_v + log_rest

    def divergence(self) -> Tensor:
        r"""Exact :math:`\sum_k KL(q(v_k) \| \mathrm{Beta}(1, \alpha))`."""
        q = self.posterior()
        one = torch.ones_like(q.concentration1)
        prior = Beta(one, self.concentration * one, validate_args=False)
        divergence: Tensor = kl_divergence(q, prior).sum()
        return divergence
