r"""Many small networks of the same shape, run as one batched computation (paper, appendix F).

The paper gives every variable its own network :math:`\theta_j`. All of them have the same shape, so their
weights are
stacked along a leading axis ``m`` (the number of networks) and one batched matrix product serves them all.

The paper's block is linear map, layer normalisation, SiLU, dropout, with a residual connection. The affine
parameters of
the normalisation are left out: they would fold into the linear map that follows.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class BatchedLinear(nn.Module):
    """``m`` affine maps at once: ``[m, B, inputs] -> [m, B, outputs]``.

    Parameters
    ----------
    n_networks, inputs, outputs : int
        Shape of the stacked weights.
    scale : float
        Multiplies the usual ``1 / sqrt(inputs)`` range of the initial weights; 0 starts at the zero map.
    """

    def __init__(self, n_networks: int, inputs: int, outputs: int, *, scale: float = 1.0) -> None:
        super().__init__()
        bound = scale / math.sqrt(max(inputs, 1))
        self.weight = nn.Parameter(torch.empty(n_networks, inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(n_networks, 1, outputs).uniform_(-bound, bound))

    def forward(self, values: Tensor) -> Tensor:
        """Apply the maps."""
        return torch.baddbmm(self.bias, values, self.weight)


class Block(nn.Module):
    r"""The residual block :math:`h + \mathrm{dropout}(\mathrm{SiLU}(W\,\mathrm{LN}(h) + b))` of ``m`` networks."""

    def __init__(self, n_networks: int, width: int, dropout: float) -> None:
        super().__init__()
        self.linear = BatchedLinear(n_networks, width, width)
        self.width = width
        self.dropout = dropout

    def forward(self, hidden: Tensor) -> Tensor:
        """Apply the blocks."""
        inner = functional.silu(self.linear(functional.layer_norm(hidden, (self.width,))))
        if self.dropout > 0.0:
            inner = functional.dropout(inner, self.dropout, self.training)
        return hidden + inner


def _rows_first(gradient: Tensor | None) -> Tensor | None:
    """Bring a gradient that comes back rows last into the order of the blocks: mixing both is ten times slower."""
    return None if gradient is None else gradient.contiguous()


class Trunk(nn.Module):
    """Blocks and the output layer: from the first hidden layer ``[m, B, width]`` to ``[m, outputs, B]``.

    The first layer is not part of it: it is linear, so the densities apply it to the few embeddings before they add
    it to the many rows, and the rows x regimes x embedding tensor never exists. Outputs come before rows: what follows
    works on one output of all rows at a time, which then lie side by side in memory.
    """

    def __init__(self, n_networks: int, width: int, n_blocks: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(n_networks, width, dropout) for _ in range(n_blocks))
        self.output = BatchedLinear(n_networks, width, outputs)

    def body(self, hidden: Tensor) -> Tensor:
        """The blocks alone, ``[m, B, width]``."""
        for block in self.blocks:
            hidden = block(hidden)
        return hidden

    def forward(self, hidden: Tensor) -> Tensor:
        """Apply blocks and output layer."""
        hidden = self.body(hidden)
        if hidden.requires_grad:
            hidden.register_hook(_rows_first)  # type: ignore[no-untyped-call]  # torch has no types for it
        weight, bias = self.output.weight.transpose(1, 2), self.output.bias.transpose(1, 2)
        return torch.baddbmm(bias, weight, hidden.transpose(1, 2))
