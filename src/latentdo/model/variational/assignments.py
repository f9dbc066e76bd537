r"""Which regime a row belongs to: the exact posterior, and the paper's amortised one (section 3.6).

Given everything else, the bound is maximised by
:math:`q(z = k) \propto \exp(\mathbb E[\log p(x \mid k)] + \mathbb E[\log \beta_k])`, and its value then is
the log-sum of these
terms: no relaxation and no amortisation gap. The paper instead trains a network,
:math:`q(z = k) \propto \exp(u_k^\top \mathrm{NN}(x) / \sqrt h)`.

A label replaces the posterior of its row: the row contributes :math:`\log p(x \mid k) + \mathbb E[\log
\beta_k]`, no entropy.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from latentdo.model.variational.network import BatchedLinear, Trunk

UNKNOWN = -1
"""Label of a row whose regime is not known."""


def exact_row_bounds(log_joint: Tensor, labels: Tensor) -> Tensor:
    r"""Bound of every row with the best :math:`q(z)`, ``[B]``.

    Parameters
    ----------
    log_joint : Tensor [B, n_regimes]
        :math:`\mathbb E[\log p(x \mid k)] + \mathbb E[\log \beta_k]`; minus infinity leaves a regime out of
        ``q``.
    labels : Tensor [B] of int64
        Known regimes, ``UNKNOWN`` elsewhere.
    """
    free = torch.logsumexp(log_joint, dim=1)
    known = log_joint.gather(1, labels.clamp_min(0)[:, None])[:, 0]
    return torch.where(labels == UNKNOWN, free, known)


def responsibilities(log_joint: Tensor, labels: Tensor) -> Tensor:
    """The posterior behind :func:`exact_row_bounds`, ``[B, n_regimes]``; labelled rows are certain."""
    free = torch.softmax(log_joint, dim=1)
    known = functional.one_hot(labels.clamp_min(0), log_joint.shape[1]).to(free.dtype)
    return torch.where((labels == UNKNOWN)[:, None], free, known)


class AmortisedAssignments(nn.Module):
    """The paper's attention of a row over the embeddings.

    Parameters
    ----------
    n_variables, embedding_size, width, n_blocks : int
        Shape of the network from rows to embedding space.
    dropout : float
        Dropout of its blocks.
    """

    def __init__(
        self, n_variables: int, embedding_size: int, width: int, n_blocks: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.first = BatchedLinear(1, n_variables, width)
        self.trunk = Trunk(1, width, n_blocks, embedding_size, dropout)
        self.scale = 1.0 / math.sqrt(embedding_size)

    def log_probabilities(self, x: Tensor, u: Tensor) -> Tensor:
        r""":math:`\log q(z \mid x)` ``[B, n_regimes]`` for embeddings ``u [n_regimes, h]``."""
        # the output layer is linear: apply it to the few embeddings, and no row ever has h numbers
        output = self.trunk.output
        keys, offset = output.weight[0] @ u.T, output.bias[0] @ u.T
        hidden = self.trunk.body(self.first(x[None]))[0]
        return functional.log_softmax(self.scale * (hidden @ keys + offset), dim=1)

    @staticmethod
    def relax(log_q: Tensor, temperature: float) -> Tensor:
        """Gumbel-softmax draw ``[B, n_regimes]`` from the logits."""
        uniform = torch.rand_like(log_q).clamp(1e-10, 1.0 - 1e-7)
        return torch.softmax((log_q - (-uniform.log()).log()) / temperature, dim=1)
