r"""What a family of densities :math:`g_j(x_j \mid A_j \odot x, u; \theta_j)` has to offer (section 3.4)."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from latentdo.model.variational.graph import GraphSample

LOG_2PI = math.log(2.0 * math.pi)

LOG_SCALE_RANGE = (-14.0, 6.0)
"""Bounds of a log standard deviation in standardised units; the benchmark's variances go down to 1e-11."""


def gaussian_log_density(x: Tensor, mean: Tensor, log_scale: Tensor) -> Tensor:
    """Log-density of a normal distribution, elementwise."""
    return -0.5 * ((x - mean) * (-log_scale).exp()).square() - log_scale - 0.5 * LOG_2PI


class ConditionalDensity(nn.Module, ABC):
    r"""The ``m`` conditional densities of one family, run together.

    Every parameter has the networks along its first axis, so that :meth:`only` can cut one variable out.
    With perfect
    interventions the intervened density sees the embedding alone (appendix A); with imperfect ones it sees
    the parents
    too.

    Parameters
    ----------
    n_variables : int
        Number of variables ``d``, each with its own network.
    embedding_size : int
        Length ``h`` of the embeddings.
    perfect : bool
        Intervened mechanisms ignore the parents.
    """

    name: ClassVar[str]
    parameters_per_edge: ClassVar[int]
    """How many free parameters an edge counts for in penalised scores."""

    parameters_per_mechanism: ClassVar[int] = 2
    """How many free parameters a mechanism without parents counts for."""

    def __init__(self, n_variables: int, embedding_size: int, *, perfect: bool) -> None:
        super().__init__()
        self.n_variables = n_variables
        self.embedding_size = embedding_size
        self.perfect = perfect
        self.variables: tuple[int, ...] = tuple(range(n_variables))

    @property
    def n_networks(self) -> int:
        """Number of networks ``m``: ``d``, or 1 after :meth:`only`."""
        return len(self.variables)

    @property
    def is_exact_over_edges(self) -> bool:
        """Whether the expectation over independent edges is known, so that none need be drawn."""
        return False

    @property
    def is_cheap_in_regimes(self) -> bool:
        """Whether :meth:`intervened_sum` over all regimes costs little more than one regime."""
        return False

    @abstractmethod
    def reference(self, x: Tensor, graph: GraphSample, u: Tensor) -> Tensor:
        r""":math:`\log g_j(x_j \mid A_j \odot x, u_0)` ``[B, m]`` for rows ``x [B, d]`` and ``u [n_regimes, h]``."""

    @abstractmethod
    def intervened(self, x: Tensor, graph: GraphSample, u: Tensor, rows: Tensor, regimes: Tensor) -> Tensor:
        r""":math:`\log g_j` under :math:`u_k` for pairs of a row and a regime, ``[P, m]``.

        Parameters
        ----------
        x : Tensor [B, d]
            All rows.
        graph : GraphSample
            Graphs of the rows.
        u : Tensor [n_regimes, h]
            Embeddings.
        rows, regimes : Tensor [P] of int64
            The pairs.
        """

    def intervened_sum(self, x: Tensor, graph: GraphSample, u: Tensor, weights: Tensor) -> Tensor:
        r""":math:`\sum_j w_{kj} \log g_j(x_j \mid \cdot, u_k)` for all rows and regimes, ``[B, n_regimes]``."""
        n_rows, n_regimes = len(x), len(u)
        rows = torch.arange(n_rows, device=x.device).repeat_interleave(n_regimes)
        regimes = torch.arange(n_regimes, device=x.device).repeat(n_rows)
        density = self.intervened(x, graph, u, rows, regimes)
        return (density * weights[regimes]).sum(1).reshape(n_rows, n_regimes)

    @abstractmethod
    def draw(
        self, x: Tensor, graph: GraphSample, u: Tensor, regime: int, *, intervened: bool, noise: Tensor
    ) -> Tensor:
        """Draw ``[B, m]`` given the parents in ``x`` and standard normal ``noise [B, m]``."""

    def only(self, variable: int) -> Self:
        """The density of one variable alone: one network, the same inputs."""
        one = copy.deepcopy(self)
        one.variables = (self.variables[variable],)
        for module in one.modules():
            for name, parameter in list(module.named_parameters(recurse=False)):
                cut = nn.Parameter(parameter.detach()[variable : variable + 1].clone(), requires_grad=False)
                setattr(module, name, cut)
        return one

    def own_columns(self, x: Tensor) -> Tensor:
        """The columns the networks describe, ``[B, m]``."""
        return x if self.n_networks == self.n_variables else x[:, list(self.variables)]

    def parents(self, x: Tensor, graph: GraphSample) -> Tensor:
        r""":math:`A_j \odot x` of every network, ``[m, B, d]``."""
        return masked_parents(x, graph, self.variables)

    def n_parameters(self, variable: int, parents: Sequence[int]) -> int:  # noqa: ARG002
        """How many free parameters a mechanism with these parents counts for."""
        return self.parameters_per_mechanism + self.parameters_per_edge * len(parents)

    def edge_parameters(self, probabilities: Tensor) -> Tensor:
        """How many all edges count for, given the probability of each ``[d, d]``."""
        return probabilities.sum() * self.parameters_per_edge

    def target_parameters(self, probabilities: Tensor) -> Tensor:
        """How many all intervened mechanisms count for, given the probability of each ``[n_regimes, d]``."""
        return probabilities.sum() * self.parameters_per_mechanism

    def features(self, x: Tensor) -> Tensor:
        """What rows are to a network that sees them whole: as they are."""
        return x


def masked_parents(x: Tensor, graph: GraphSample, variables: tuple[int, ...]) -> Tensor:
    r""":math:`A_j \odot x` of some variables, ``[m, B, q]`` for rows ``[B, q]`` and graphs ``[G, q, d]``."""
    masks = graph.of_rows(len(x))
    if len(variables) != masks.shape[-1]:
        masks = masks[:, :, list(variables)]
    return (x[:, :, None] * masks).permute(2, 0, 1)
