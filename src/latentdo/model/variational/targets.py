r"""The intervention targets :math:`r_{kj}`: independent Bernoulli variables (paper, section 3.5, appendix D)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class TargetPosterior(nn.Module):
    r"""Logits of :math:`\pi_{kj}`, the probability that regime ``k`` changes variable ``j``.

    Parameters
    ----------
    n_regimes, n_variables : int
        Shape of the target matrix.
    known : Tensor [n_regimes, d], optional
        Zeros and ones where the targets are known; NaN where they are not.
    pin_reference : bool
        Regime 0 has no targets.
    initial_logit : float
        Start of every free logit.
    """

    known: Tensor

    def __init__(
        self,
        n_regimes: int,
        n_variables: int,
        *,
        known: Tensor | None = None,
        pin_reference: bool = True,
        initial_logit: float = 0.0,
    ) -> None:
        super().__init__()
        fixed = torch.full((n_regimes, n_variables), torch.nan) if known is None else known.clone()
        if pin_reference:
            fixed[0] = 0.0
        self.register_buffer("known", fixed)
        self.logits = nn.Parameter(torch.full((n_regimes, n_variables), initial_logit))

    @property
    def free(self) -> Tensor:
        """Which entries are unknown, ``[n_regimes, d]`` of bool."""
        return self.known.isnan()

    def _fill(self, values: Tensor) -> Tensor:
        return torch.where(self.free, values, self.known.nan_to_num())

    def probabilities(self) -> Tensor:
        r""":math:`\pi` ``[n_regimes, d]``, known entries included."""
        return self._fill(torch.sigmoid(self.logits))

    def sample(self, temperature: float) -> Tensor:
        """Relaxed (Gumbel-softmax) draw of all targets, ``[n_regimes, d]``; not hard, as in the paper."""
        noise = torch.logit(torch.rand_like(self.logits), eps=1e-6)
        return self._fill(torch.sigmoid((self.logits + noise) / temperature))

    def cross_entropy(self, log_odds: float) -> Tensor:
        r"""What the prior charges: :math:`-\sum_{kj} \mathbb E[\log p(r_{kj})]`, unknown ones only."""
        p = torch.sigmoid(self.logits)
        gamma = self.logits.new_tensor(log_odds)
        terms = p * functional.logsigmoid(gamma) + (1.0 - p) * functional.logsigmoid(-gamma)
        return -(terms * self.free).sum()

    def entropy(self) -> Tensor:
        r"""Entropy :math:`\sum_{kj} H(\pi_{kj})` of the posterior, unknown ones only."""
        p = torch.sigmoid(self.logits)
        terms = p * functional.logsigmoid(self.logits) + (1.0 - p) * functional.logsigmoid(-self.logits)
        return -(terms * self.free).sum()

    def divergence(self, log_odds: float) -> Tensor:
        r"""Exact :math:`\sum_{kj} KL(\mathrm{Bern}(\pi_{kj}) \| \mathrm{Bern}(\sigma(\gamma)))`, unknown ones only."""
        return self.cross_entropy(log_odds) - self.entropy()
