r"""The paper's generative model and its variational family, put together (paper, sections 3.1-3.7).

With reference log-densities :math:`\ell_j` and intervened ones :math:`\ell_{kj}`, the log-density of a row
under regime ``k`` is
linear in the binary targets, so its expectation over :math:`q(r)` is exact:

.. math::
    \mathbb E[\log p(x \mid k)] = \sum_j (1 - \pi_{kj}) \ell_j + \pi_{kj} \ell_{kj}.

``exact_evidence`` sums over regimes as well; ``sampled_evidence`` is the published estimator: relaxed draws
of graph, targets and
regimes, with an amortised posterior of the regimes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from latentdo.model.assignment import LIKELY
from latentdo.model.variational.assignments import UNKNOWN, AmortisedAssignments, exact_row_bounds
from latentdo.model.variational.densities import (
    FAMILIES,
    ClosedFormLinearDensity,
    ConditionalDensity,
    LinearDensity,
    MixedDensity,
)
from latentdo.model.variational.densities.heads import LEVELS
from latentdo.model.variational.embeddings import EmbeddingPosterior
from latentdo.model.variational.evidence import Evidence
from latentdo.model.variational.graph import GraphPosterior, GraphSample
from latentdo.model.variational.moments import Moments
from latentdo.model.variational.sticks import StickPosterior
from latentdo.model.variational.targets import TargetPosterior


@dataclass(frozen=True)
class Architecture:
    """Shape of a model; the defaults are the paper's (appendix B).

    Parameters
    ----------
    density : str
        Name of the family of densities.
    perfect : bool
        Intervened mechanisms ignore the parents.
    n_variables, n_regimes : int
        Number of variables, and of regimes with the reference.
    embedding_size, width, n_blocks, dropout
        Of embeddings and networks.
    flow_layers, flow_units : int
        Of the flow family.
    amortised : bool
        Whether there is a network for the regimes of rows.
    closed_form : bool
        Linear mechanisms are refitted in closed form instead of coming from a hypernetwork.
    recipes : tuple of (float, float, float)
        What the variables are, if not all are continuous; see :class:`.densities.MixedDensity`.
    free_reference : bool
        Linear mechanisms of the reference are parameters, not outputs of the hypernetwork.
    """

    density: str
    perfect: bool
    n_variables: int
    n_regimes: int
    embedding_size: int = 264
    width: int = 32
    n_blocks: int = 2
    dropout: float = 0.0
    flow_layers: int = 2
    flow_units: int = 12
    amortised: bool = False
    closed_form: bool = False
    recipes: tuple[tuple[float, float, float], ...] = ()
    free_reference: bool = False

    def build_density(self) -> ConditionalDensity:
        """Fresh networks of this shape."""
        if self.closed_form:
            return ClosedFormLinearDensity(self.n_variables, self.n_regimes, perfect=self.perfect)
        options: dict[str, Any] = {
            "width": self.width,
            "n_blocks": self.n_blocks,
            "dropout": self.dropout,
            **({"n_layers": self.flow_layers, "n_units": self.flow_units} if self.density == "flow" else {}),
        }
        if self.density == "linear" and not self.recipes:
            options["free_reference"] = self.free_reference
        if self.recipes:
            return MixedDensity(
                self.density, self.recipes, self.embedding_size, perfect=self.perfect, **options
            )
        return FAMILIES[self.density](self.n_variables, self.embedding_size, perfect=self.perfect, **options)

    @property
    def n_features(self) -> int:
        """Columns of rows as a network sees them whole."""
        widths = (int(first) - 1 if what == LEVELS else 1 for what, first, _ in self.recipes)
        return sum(widths) if self.recipes else self.n_variables


@dataclass(frozen=True, eq=False)
class Priors:
    """Prior knowledge and its weight.

    Parameters
    ----------
    edge_log_odds : Tensor [d, d] or float
        The paper's xi.
    target_log_odds : float
        The paper's gamma.
    per_row : bool
        The divergences of graph, targets and sticks count once per row, as the paper writes them, instead of
        once per data set.
    per_row_embeddings : bool
        So does that of the embeddings. With the paper's 264 dimensions this is the literal reading, and it
        collapses: every
        embedding returns to its prior, and no intervened mechanism can be told from the reference.
    per_row_target_entropy : bool
        With ``per_row``, the entropy of the targets' posterior counts once per row too: again the literal reading, and
        again it collapses, to targets that are all near one half. What the prior charges for a target counts once a
        row in any case.
    parameter_cost : float
        Cost of a free parameter, usually half the logarithm of the number of rows.
    """

    edge_log_odds: Tensor | float = 0.0
    target_log_odds: float = 0.0
    per_row: bool = False
    per_row_embeddings: bool = False
    per_row_target_entropy: bool = False
    parameter_cost: float = 0.0


@dataclass(frozen=True)
class StartingValues:
    """Where the parameters of a model start.

    Parameters
    ----------
    edge_logit, edge_jitter : float
        Logits of edges: their mean, and the standard deviation of random starts around it.
    target_logit, target_jitter : float
        Logits of targets, likewise.
    embedding_scale : float
        Standard deviation of the embeddings' posterior.
    """

    edge_logit: float = 0.0
    edge_jitter: float = 0.0
    target_logit: float = 0.0
    target_jitter: float = 0.0
    embedding_scale: float = 0.1


@dataclass(frozen=True)
class Draws:
    """How graphs (and whatever else is relaxed) are drawn in one step.

    Parameters
    ----------
    n_graphs : int
        Graphs, shared out among the rows.
    temperature : float
        Of the relaxations.
    """

    n_graphs: int = 32
    temperature: float = 1.0


class LatentMixture(nn.Module):
    """Graph, targets, embeddings, sticks, densities and (if amortised) assignments.

    Parameters
    ----------
    architecture : Architecture
        Shape of everything.
    concentration : float
        Alpha of the Dirichlet process.
    known_targets : Tensor [n_regimes, d], optional
        Known targets, NaN where unknown.
    allowed, required : Tensor [d, d] of bool, optional
        Constraints on edges.
    start : StartingValues
        Where its parameters start.
    """

    def __init__(
        self,
        architecture: Architecture,
        *,
        concentration: float = 9.0,
        known_targets: Tensor | None = None,
        allowed: Tensor | None = None,
        required: Tensor | None = None,
        start: StartingValues = StartingValues(),  # noqa: B008  (frozen)
    ) -> None:
        super().__init__()
        shape = architecture
        self.architecture = shape
        self.graph = GraphPosterior(
            shape.n_variables, allowed=allowed, required=required, initial_logit=start.edge_logit
        )
        self.targets = TargetPosterior(
            shape.n_regimes, shape.n_variables, known=known_targets, initial_logit=start.target_logit
        )
        with torch.no_grad():
            for logits, jitter in (
                (self.graph.logits, start.edge_jitter),
                (self.targets.logits, start.target_jitter),
            ):
                if jitter:
                    logits.add_(jitter * torch.randn_like(logits))
        self.embeddings = EmbeddingPosterior(
            shape.n_regimes, shape.embedding_size, initial_scale=start.embedding_scale
        )
        self.sticks = StickPosterior(shape.n_regimes, concentration)
        self.density = shape.build_density()
        self.assignments = (
            AmortisedAssignments(
                shape.n_features, shape.embedding_size, shape.width, shape.n_blocks, shape.dropout
            )
            if shape.amortised
            else None
        )

    def regime_log_density(
        self, x: Tensor, graph: GraphSample, u: Tensor, targets: Tensor, candidates: Tensor | None = None
    ) -> Tensor:
        r""":math:`\mathbb E[\log p(x \mid k)]` for all rows and regimes, ``[B, n_regimes]``.

        Parameters
        ----------
        x : Tensor [B, d]
            Rows.
        graph : GraphSample
            Graphs of the rows.
        u : Tensor [n_regimes, h]
            Embeddings.
        targets : Tensor [n_regimes, d]
            Target probabilities, or a draw.
        candidates : Tensor [B, n_regimes] of bool, optional
            Pairs worth evaluating; the others become minus infinity, which takes them out of ``q(z)`` and
            keeps the
            bound a bound. Without it all pairs are evaluated.
        """
        reference = self.density.reference(x, graph, u)
        density = reference.sum(1, keepdim=True) - reference @ targets.T
        if candidates is None:
            if len(u) == 1:
                return density
            return density + self.density.intervened_sum(x, graph, u, targets)
        pairs = candidates.clone()
        pairs[:, 0] = False  # the reference has no targets
        rows, regimes = pairs.nonzero(as_tuple=True)
        own = (self.density.intervened(x, graph, u, rows, regimes) * targets[regimes]).sum(1)
        density = density.index_put((rows, regimes), own, accumulate=True)
        return density.masked_fill(~candidates, -math.inf)

    def sample_graph(self, draws: Draws, *, exact: bool) -> GraphSample:
        """Edge probabilities where the family knows the exact expectation, else hard draws."""
        if exact and self.density.is_exact_over_edges:
            return self.graph.expected()
        return self.graph.sample(draws.n_graphs, draws.temperature)

    def log_joint(
        self, x: Tensor, candidates: Tensor | None = None, graph: GraphSample | None = None
    ) -> Tensor:
        """Expected log-density plus log-weight at the posterior means, ``[B, n_regimes]``; nothing is drawn."""
        if graph is None:
            probabilities = self.graph.probabilities()
            exact = self.density.is_exact_over_edges
            values = probabilities if exact else (probabilities > LIKELY).to(probabilities.dtype)
            graph = GraphSample(values[None], expected=exact)
        targets = self.targets.probabilities()
        density = self.regime_log_density(x, graph, self.embeddings.mean, targets, candidates)
        return density + self.sticks.expected_log_weights()

    def _evidence(
        self, priors: Priors, n_rows: int, log_likelihood: Tensor, assignment: Tensor, bonus: Tensor
    ) -> Evidence:
        weight = float(n_rows) if priors.per_row else 1.0
        entropy_weight = weight if priors.per_row_target_entropy else 1.0
        targets = weight * self.targets.cross_entropy(priors.target_log_odds)
        targets = targets - entropy_weight * self.targets.entropy()
        edges = self.density.edge_parameters(self.graph.probabilities())
        free = self.density.target_parameters(self.targets.probabilities() * self.targets.free)
        return Evidence(
            log_likelihood=log_likelihood,
            assignment_divergence=assignment,
            graph_log_prior=weight * self.graph.expected_log_prior(priors.edge_log_odds),
            target_divergence=targets,
            embedding_divergence=(float(n_rows) if priors.per_row_embeddings else 1.0)
            * self.embeddings.divergence(),
            stick_divergence=weight * self.sticks.divergence(),
            parameter_cost=priors.parameter_cost * (edges + free),
            label_bonus=bonus,
        )

    def exact_evidence(
        self,
        x: Tensor,
        labels: Tensor,
        priors: Priors,
        n_rows: int,
        *,
        candidates: Tensor | None = None,
        graph: GraphSample | None = None,
        draws: Draws = Draws(),  # noqa: B008  (frozen)
        u: Tensor | None = None,
    ) -> Evidence:
        """Bound with exact expectations over targets and regimes, and over the graph where possible.

        Parameters
        ----------
        x, labels : Tensor [B, d], [B]
            Rows and their known regimes.
        priors : Priors
            Prior knowledge.
        n_rows : int
            Rows of the whole data set, to which a batch is scaled up.
        candidates : Tensor [B, n_regimes] of bool, optional
            See :meth:`regime_log_density`.
        graph : GraphSample, optional
            Fixed graph instead of draws.
        draws : Draws
            How graphs are drawn.
        u : Tensor [n_regimes, h], optional
            Fixed embeddings instead of a draw.
        """
        graph = self.sample_graph(draws, exact=True) if graph is None else graph
        u = self.embeddings.sample() if u is None else u
        density = self.regime_log_density(x, graph, u, self.targets.probabilities(), candidates)
        joint = density + self.sticks.expected_log_weights()
        bound = exact_row_bounds(joint, labels).sum() * (n_rows / len(x))
        # only reporting splits the bound, so the divergence carries no gradient
        with torch.no_grad():
            q = torch.softmax(joint, dim=1)
            free = (q * density.masked_fill(q == 0, 0.0)).sum(1)
            known = density.gather(1, labels.clamp_min(0)[:, None])[:, 0]
            expected = torch.where(labels == UNKNOWN, free, known).sum() * (n_rows / len(x))
            divergence = expected - bound
        return self._evidence(priors, n_rows, bound + divergence, divergence, bound.new_zeros(()))

    def moment_evidence(self, moments: Moments, priors: Priors, graph: GraphSample | None = None) -> Evidence:
        """Bound of a linear model under fixed responsibilities, from moments alone.

        It touches :meth:`exact_evidence` where the responsibilities are the best ones, and lies below it
        elsewhere.
        """
        assert isinstance(self.density, LinearDensity), "only linear densities live on moments"
        graph = self.graph.expected() if graph is None else graph
        u = self.embeddings.sample()
        if isinstance(self.density, ClosedFormLinearDensity):
            self.density.refit(moments, graph, self.targets.probabilities())
        likelihood = self.density.log_likelihood(moments, graph, u, self.targets.probabilities())
        divergence = -(moments.counts @ self.sticks.expected_log_weights()) - moments.entropy
        n_rows = round(moments.n_rows)
        return self._evidence(priors, n_rows, likelihood, divergence, likelihood.new_zeros(()))

    def sampled_evidence(
        self,
        x: Tensor,
        labels: Tensor,
        priors: Priors,
        n_rows: int,
        *,
        candidates: Tensor | None = None,
        graph: GraphSample | None = None,
        draws: Draws = Draws(),  # noqa: B008  (frozen)
        kappa: float = 0.5,
    ) -> Evidence:
        """The paper's estimator: relaxed draws of graph, targets and regimes (sections 3.8, 3.9).

        Parameters are those of :meth:`exact_evidence`; ``kappa`` weighs the amortised posterior's
        log-probability of
        the labels that are known when others are not.
        """
        assert self.assignments is not None, "the sampled bound needs an amortised architecture"
        scale = n_rows / len(x)
        graph = self.sample_graph(draws, exact=False) if graph is None else graph
        u = self.embeddings.sample()
        density = self.regime_log_density(x, graph, u, self.targets.sample(draws.temperature), candidates)
        log_weights = self.sticks.expected_log_weights()
        known = labels != UNKNOWN
        index = labels.clamp_min(0)
        if bool(known.all()):
            own = density.gather(1, index[:, None]).sum() * scale
            return self._evidence(priors, n_rows, own, -log_weights[index].sum() * scale, own.new_zeros(()))
        log_q = self.assignments.log_probabilities(self.density.features(x), u)
        if candidates is not None:
            log_q = functional.log_softmax(log_q.masked_fill(~candidates, -math.inf), dim=1)
        one_hot = functional.one_hot(index, len(u)).to(x.dtype)
        z = torch.where(known[:, None], one_hot, self.assignments.relax(log_q, draws.temperature))
        likelihood = (z * density.masked_fill(z == 0, 0.0)).sum()
        q = log_q.exp()
        free = (q * (log_q.masked_fill(q == 0, 0.0) - log_weights)).sum(1)
        divergence = torch.where(known, -log_weights[index], free).sum()
        bonus = kappa * (log_q.gather(1, index[:, None])[:, 0].clamp_min(-1e4) * known).sum()
        return self._evidence(priors, n_rows, likelihood * scale, divergence * scale, bonus * scale)
