r"""The graph: independent Bernoulli edges with probabilities :math:`\sigma(\Lambda)` (paper, sections 3.2 and 3.8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from latentdo.model.assignment import LIKELY


@dataclass(frozen=True, eq=False)
class GraphSample:
    """Graphs under which rows are evaluated: one, or one per group of consecutive rows.

    Parameters
    ----------
    values : Tensor [G, d, d]
        ``values[g, i, j]`` is the edge ``i -> j`` of group ``g``: 0 or 1, or a probability if ``expected``.
    expected : bool
        The values are probabilities of independent edges, over which a density has to take the expectation.
    """

    values: Tensor
    expected: bool = False

    @property
    def n_groups(self) -> int:
        """Number of groups ``G``."""
        return int(self.values.shape[0])

    def group_size(self, n_rows: int) -> int:
        """Rows in a group; the last one may have fewer."""
        return -(-n_rows // self.n_groups)

    def split(self, rows: Tensor) -> Tensor:
        """Cut rows ``[B, ...]`` into groups ``[G, group size, ...]``, padded with zeros."""
        size = self.group_size(len(rows))
        missing = size * self.n_groups - len(rows)
        if missing:
            rows = torch.cat([rows, rows.new_zeros(missing, *rows.shape[1:])])
        return rows.reshape(self.n_groups, size, *rows.shape[1:])

    def of_rows(self, n_rows: int) -> Tensor:
        """Graph of every row, ``[B, d, d]`` (``[1, d, d]`` if there is only one)."""
        if self.n_groups == 1:
            return self.values
        size = self.group_size(n_rows)
        return self.values[:, None].expand(-1, size, -1, -1).flatten(0, 1)[:n_rows]


class _StraightThrough(torch.autograd.Function):
    """Round to 0 or 1 going forward, pass the gradient on going backward."""

    @staticmethod
    def forward(_: Any, soft: Tensor) -> Tensor:
        return (soft > LIKELY).to(soft.dtype)

    @staticmethod
    def backward(_: Any, gradient: Tensor) -> Tensor:
        return gradient


class GraphPosterior(nn.Module):
    r"""Edge logits :math:`\Lambda`, with edges that domain knowledge forbids or requires.

    Parameters
    ----------
    n_variables : int
        Number of variables ``d``.
    allowed : Tensor [d, d] of bool, optional
        Edges that may exist; loops never may.
    required : Tensor [d, d] of bool, optional
        Edges that must exist.
    initial_logit : float
        Start of every free logit.
    """

    allowed: Tensor
    required: Tensor

    def __init__(
        self,
        n_variables: int,
        *,
        allowed: Tensor | None = None,
        required: Tensor | None = None,
        initial_logit: float = 0.0,
    ) -> None:
        super().__init__()
        possible = ~torch.eye(n_variables, dtype=torch.bool)
        self.register_buffer("allowed", possible if allowed is None else possible & allowed)
        self.register_buffer("required", torch.zeros_like(possible) if required is None else required)
        if bool((self.required & ~self.allowed).any()):
            raise ValueError(
                "An edge is both required and forbidden (or a loop); remove one of the two demands."
            )
        self.logits = nn.Parameter(torch.full((n_variables, n_variables), initial_logit))

    def _constrain(self, values: Tensor) -> Tensor:
        return torch.where(self.required, torch.ones_like(values), values * self.allowed)

    def probabilities(self) -> Tensor:
        r""":math:`\sigma(\Lambda)` ``[d, d]``, zero where forbidden and one where required."""
        return self._constrain(torch.sigmoid(self.logits))

    def expected(self) -> GraphSample:
        """The edge probabilities themselves, for densities that know the exact expectation."""
        return GraphSample(self.probabilities()[None], expected=True)

    def sample(self, n_groups: int, temperature: float = 1.0) -> GraphSample:
        r"""Draw hard graphs with straight-through gradients (paper, section 3.8).

        With logistic noise :math:`L`, the relaxed edge is :math:`\sigma((\Lambda + L) / \tau)` and the hard
        one
        whether it exceeds one half; the hard value goes forward and the gradient of the relaxed one backward.
        """
        d = self.logits.shape[0]
        uniform = torch.rand(n_groups, d, d, dtype=self.logits.dtype, device=self.logits.device)
        noise = torch.logit(uniform, eps=1e-6)
        soft = torch.sigmoid((self.logits + noise) / temperature)
        hard: Tensor = _StraightThrough.apply(soft)  # type: ignore[no-untyped-call]
        return GraphSample(self._constrain(hard))

    def expected_log_prior(self, log_odds: Tensor | float) -> Tensor:
        r"""Exact expectation of the log-prior under the edge probabilities.

        :math:`\sum_{ij} p_{ij} \log \sigma(\xi_{ij}) + (1 - p_{ij}) \log \sigma(-\xi_{ij})`.

        Parameters
        ----------
        log_odds : Tensor [d, d] or float
            Prior log-odds :math:`\xi` of the edges. Forbidden and required edges are certain and cost
            nothing.
        """
        p = self.probabilities()
        xi = torch.as_tensor(log_odds, dtype=p.dtype, device=p.device).expand_as(p)
        terms = p * functional.logsigmoid(xi) + (1.0 - p) * functional.logsigmoid(-xi)
        return (terms * (self.allowed & ~self.required)).sum()
