r"""Columns of every kind: Bernoulli, negative binomial and categorical heads beside a family of densities.

The paper names such densities (section 3.4) and leaves them out. What a family makes of embedding and parents, the mean
of its Gaussian or the first numbers of its flow, is here the linear predictor of a probability:

.. math::
    P(x_j = a) \propto e^{\eta_a}, \; \eta_0 = 0, \qquad
    P(x_j = y) = \mathrm{NB}(y; \mu, r), \; \mu = e^{\eta}, \; r = e^{\rho},

with :math:`\eta` linear in the parents for "linear", and networks of them for the others; a Bernoulli variable has two
levels, and a negative binomial law tends to Poisson's as :math:`r` grows. Continuous variables keep their family.

Parents are what they are to all mechanisms (:mod:`latentdo.model.mechanisms.inputs`): logarithms of counts, one
indicator per level but the first. An edge masks all columns of its cause at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from scipy.stats import nbinom
from torch import Tensor, nn
from torch.nn import functional

from latentdo.model.variational.densities.base import (
    LOG_SCALE_RANGE,
    ConditionalDensity,
    gaussian_log_density,
    masked_parents,
)
from latentdo.model.variational.densities.flow import FlowDensity
from latentdo.model.variational.densities.nonlinear import NonlinearDensity
from latentdo.model.variational.graph import GraphSample
from latentdo.model.variational.network import BatchedLinear, Trunk

Recipe = tuple[float, float, float]
"""A row of :class:`latentdo.model.mechanisms.inputs.Inputs`: as it is; the logarithm of a count; or levels."""

CONTINUOUS, COUNT, LEVELS = 0.0, 1.0, 2.0

PREDICTOR_RANGE = (-30.0, 30.0)
"""Bounds of linear predictors: beyond, a probability is as good as certain."""

LOG_SIZE_RANGE = (-6.0, 12.0)
"""Bounds of the logarithm of ``r``: below nearly all rows are zero, beyond the law is Poisson's."""


class LinearPredictors(nn.Module):
    """Numbers that are linear in the parents, and a last one that is not; from a hypernetwork of the embedding."""

    parameters_per_edge: ClassVar[int] = 1
    parameters_per_mechanism: ClassVar[int] = 2

    def __init__(
        self,
        n_variables: int,
        embedding_size: int,
        *,
        n_inputs: int,
        outputs: int,
        width: int = 32,
        n_blocks: int = 2,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.n_inputs, self.n_predictors = n_inputs, outputs - 1
        self.variables = tuple(range(n_variables))
        self.first = BatchedLinear(n_variables, embedding_size, width)
        self.trunk = Trunk(n_variables, width, n_blocks, (n_inputs + 1) * self.n_predictors + 1, dropout)

    def _coefficients(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Slopes ``[m, P, q, K]``, and constants with the last number, ``[m, P + 1, K]``."""
        out = self.trunk(self.first(u.expand(len(self.variables), -1, -1)))
        slopes, rest = torch.split(out, [self.n_inputs * self.n_predictors, self.n_predictors + 1], dim=1)
        return slopes.reshape(len(self.variables), self.n_predictors, self.n_inputs, len(u)), rest

    def reference_outputs(self, x: Tensor, graph: GraphSample, u: Tensor) -> Tensor:
        """See :class:`.nonlinear.NetworkDensity`."""
        slopes, rest = self._coefficients(u[:1])
        signal = torch.einsum("mpq,mbq->mpb", slopes[..., 0], masked_parents(x, graph, self.variables))
        return torch.cat([signal + rest[:, :-1], rest[:, -1:].expand(-1, -1, len(x))], dim=1)

    def intervened_outputs(
        self, x: Tensor, graph: GraphSample, u: Tensor, rows: Tensor, regimes: Tensor
    ) -> Tensor:
        """See :class:`.nonlinear.NetworkDensity`."""
        slopes, rest = self._coefficients(u)
        parents = masked_parents(x, graph, self.variables).index_select(1, rows)
        own = rest.index_select(2, regimes)
        signal = (slopes.index_select(3, regimes) * parents.transpose(1, 2)[:, None]).sum(2)
        return torch.cat([signal + own[:, :-1], own[:, -1:]], dim=1)

    def embedding_outputs(self, u: Tensor) -> Tensor:
        """See :class:`.nonlinear.NetworkDensity`."""
        return self._coefficients(u)[1]

    def continuous(self, values: Tensor, out: Tensor) -> Tensor:
        """See :class:`.nonlinear.NetworkDensity`."""
        return gaussian_log_density(values, out[:, 0], out[:, -1].clamp(*LOG_SCALE_RANGE))

    def drawn(self, out: Tensor, noise: Tensor) -> Tensor:
        """See :class:`.nonlinear.NetworkDensity`."""
        return out[:, 0] + out[:, -1].clamp(*LOG_SCALE_RANGE).exp() * noise


class MixedDensity(ConditionalDensity):
    """A family for the continuous variables, and heads for all others.

    Parameters
    ----------
    density : {"linear", "nonlinear", "flow"}
        The family.
    recipes : sequence of (what, first, second)
        One per variable, see :data:`Recipe`: how it looks to its children, and so what it is.
    embedding_size, perfect, **network
        As for every family.
    """

    name: ClassVar[str] = "mixed"
    owner: Tensor

    def __init__(
        self, density: str, recipes: Sequence[Recipe], embedding_size: int, *, perfect: bool, **network: Any
    ) -> None:
        super().__init__(len(recipes), embedding_size, perfect=perfect)
        self.recipes = tuple(recipes)
        owner = [j for j in range(len(recipes)) for _ in range(self.width(j))]
        self.register_buffer("owner", torch.tensor(owner, dtype=torch.int64), persistent=False)
        most = max(self.n_predictors(j) for j in range(len(recipes)))
        shape = {"n_inputs": len(owner), "outputs": most + 1, **network}
        self.networks: LinearPredictors | NonlinearDensity | FlowDensity
        if density == "linear":
            self.networks = LinearPredictors(len(recipes), embedding_size, **shape)
        else:
            family = FlowDensity if density == "flow" else NonlinearDensity
            self.networks = family(len(recipes), embedding_size, perfect=perfect, **shape)

    @property
    def trunk(self) -> Trunk:
        """Where the time goes, for a compiler."""
        return self.networks.trunk

    def width(self, variable: int) -> int:
        """Columns that a variable is to its children."""
        what, first, _ = self.recipes[variable]
        return int(first) - 1 if what == LEVELS else 1

    def n_predictors(self, variable: int) -> int:
        """Linear predictors of a variable."""
        return self.width(variable)

    def n_parameters(self, variable: int, parents: Sequence[int]) -> int:
        """See :class:`ConditionalDensity`."""
        predictors, inputs = self.n_predictors(variable), sum(self.width(i) for i in parents)
        what = self.recipes[variable][0]
        own = self.networks.parameters_per_mechanism if what == CONTINUOUS else predictors + (what == COUNT)
        return own + self.networks.parameters_per_edge * predictors * inputs

    def edge_parameters(self, probabilities: Tensor) -> Tensor:
        """See :class:`ConditionalDensity`."""
        widths = probabilities.new_tensor([self.width(j) for j in range(self.n_variables)])
        return (widths @ probabilities @ widths) * self.networks.parameters_per_edge

    def target_parameters(self, probabilities: Tensor) -> Tensor:
        """See :class:`ConditionalDensity`."""
        own = [self.n_parameters(j, ()) for j in range(self.n_variables)]
        return (probabilities @ probabilities.new_tensor(own)).sum()

    def only(self, variable: int) -> Self:
        """See :class:`ConditionalDensity`."""
        one = super().only(variable)
        one.networks.variables = one.variables
        return one

    def features(self, x: Tensor) -> Tensor:
        """What rows ``[B, d]`` are to children, ``[B, q]``."""
        parts = []
        for (what, first, second), column in zip(self.recipes, x.T, strict=True):
            if what == COUNT:
                parts.append((torch.log1p(column.clamp_min(0.0))[:, None] - first) / second)
            elif what == LEVELS:
                levels = torch.arange(1, int(first), device=x.device)
                parts.append((column[:, None] == levels).to(x.dtype))
            else:
                parts.append(column[:, None])
        return torch.cat(parts, dim=1)

    def _masked(self, graph: GraphSample) -> GraphSample:
        return GraphSample(graph.values[:, self.owner])

    def reference(self, x: Tensor, graph: GraphSample, u: Tensor) -> Tensor:
        """See :class:`ConditionalDensity`."""
        out = self.networks.reference_outputs(self.features(x), self._masked(graph), u)
        return self._log_density(self.own_columns(x), out)

    def intervened(self, x: Tensor, graph: GraphSample, u: Tensor, rows: Tensor, regimes: Tensor) -> Tensor:
        """See :class:`ConditionalDensity`."""
        if self.perfect:
            out = self.networks.embedding_outputs(u).index_select(2, regimes)
        else:
            features, masks = self.features(x), self._masked(graph)
            out = self.networks.intervened_outputs(features, masks, u, rows, regimes)
        return self._log_density(self.own_columns(x)[rows], out)

    def _log_density(self, values: Tensor, out: Tensor) -> Tensor:
        """Of values ``[B, m]`` under outputs ``[m, O, B]``, ``[B, m]``."""
        found: list[Tensor | None] = [None] * len(self.variables)
        smooth = [place for place, j in enumerate(self.variables) if self.recipes[j][0] == CONTINUOUS]
        if smooth:
            density = self.networks.continuous(values[:, smooth].T, out[smooth])
            for place, one in zip(smooth, density, strict=True):
                found[place] = one
        for place, j in enumerate(self.variables):
            what, first, _ = self.recipes[j]
            if what == COUNT:
                found[place] = count_log_probability(values[:, place], *self._law(out[place], first))
            elif what == LEVELS:
                chosen = values[:, place].long().clamp(0, int(first) - 1)
                found[place] = level_log_probabilities(out[place], int(first)).gather(0, chosen[None])[0]
        return torch.stack([one for one in found if one is not None], dim=1)

    @staticmethod
    def _law(out: Tensor, typical: float) -> tuple[Tensor, Tensor]:
        """Logarithms of mean and size of a count; networks begin where a typical count is."""
        return (out[0] + typical).clamp(*PREDICTOR_RANGE), out[-1].clamp(*LOG_SIZE_RANGE)

    def outputs(self, x: Tensor, graph: GraphSample, u: Tensor, regime: int, *, intervened: bool) -> Tensor:
        """What the networks say of rows in a regime, ``[m, O, B]``."""
        if intervened and self.perfect:
            return self.networks.embedding_outputs(u[regime : regime + 1]).expand(-1, -1, len(x))
        at = regime if intervened else 0
        return self.networks.reference_outputs(self.features(x), self._masked(graph), u[at : at + 1])

    def draw(
        self, x: Tensor, graph: GraphSample, u: Tensor, regime: int, *, intervened: bool, noise: Tensor
    ) -> Tensor:
        """See :class:`ConditionalDensity`: discrete values are quantiles of the normal noise's place."""
        out = self.outputs(x, graph, u, regime, intervened=intervened)
        uniform = torch.special.ndtr(noise)
        drawn = []
        for place, j in enumerate(self.variables):
            what, first, _ = self.recipes[j]
            if what == COUNT:
                drawn.append(self.count_quantile(out[place], first, uniform[:, place]))
            elif what == LEVELS:
                steps = level_log_probabilities(out[place], int(first)).exp().cumsum(0)[:-1]
                drawn.append((steps < uniform[:, place]).sum(0).to(x.dtype))
            else:
                drawn.append(self.networks.drawn(out[place][None], noise[:, place][None])[0])
        return torch.stack(drawn, dim=1)

    @classmethod
    def count_quantile(cls, out: Tensor, typical: float, uniform: Tensor) -> Tensor:
        """The counts that a share of rows does not exceed, ``[B]``, under outputs ``[O, B]``."""
        mean, size = (part.double().exp().expand_as(uniform) for part in cls._law(out, typical))
        parts = (uniform.double(), size, size / (size + mean))
        found = nbinom.ppf(*(part.cpu().numpy() for part in parts))
        return torch.as_tensor(np.maximum(found, 0.0), dtype=uniform.dtype, device=uniform.device)


def count_log_probability(y: Tensor, log_mean: Tensor, log_size: Tensor) -> Tensor:
    """Log-probability of counts ``[B]``; in float64, because gamma functions of large counts cancel."""
    wide, log_mean, log_size = y.double(), log_mean.double(), log_size.double()
    size = log_size.exp()
    total = torch.logaddexp(log_mean, log_size)
    gammas = torch.lgamma(wide + size) - torch.lgamma(size) - torch.lgamma(wide + 1.0)
    return (gammas + size * (log_size - total) + wide * (log_mean - total)).to(y.dtype)


def level_log_probabilities(out: Tensor, n_levels: int) -> Tensor:
    """Log-probabilities ``[L, B]`` of levels under outputs ``[O, B]``."""
    predictors = out[: n_levels - 1].clamp(*PREDICTOR_RANGE)
    return functional.log_softmax(torch.cat([torch.zeros_like(predictors[:1]), predictors]), dim=0)
