"""The bound on the log-likelihood, with a name for every term."""

from __future__ import annotations

from dataclasses import dataclass, fields

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Evidence:
    """Terms of the lower bound on ``log p(all rows)`` (paper, sections 3.6 and 3.7, appendix D).

    Terms of rows are summed over all rows (a minibatch is scaled up); global terms count once per data set, or
    once per row
    in the paper's own weighting.

    Parameters
    ----------
    log_likelihood : Tensor
        Expected log-likelihood of the rows.
    assignment_divergence : Tensor
        KL of the rows' regimes from the stick-breaking weights.
    graph_log_prior : Tensor
        Expected log-prior of the graph.
    target_divergence, embedding_divergence, stick_divergence : Tensor
        KL of targets, embeddings and sticks.
    parameter_cost : Tensor
        Half the logarithm of ``n`` for every expected free parameter of edges and targets; zero in the
        paper's weighting.
    label_bonus : Tensor
        The paper's kappa times the amortised log-probability of the known labels; not part of a bound.
    """

    log_likelihood: Tensor
    assignment_divergence: Tensor
    graph_log_prior: Tensor
    target_divergence: Tensor
    embedding_divergence: Tensor
    stick_divergence: Tensor
    parameter_cost: Tensor
    label_bonus: Tensor

    @property
    def total(self) -> Tensor:
        """What a fit maximises."""
        return (
            self.log_likelihood
            - self.assignment_divergence
            + self.graph_log_prior
            - self.target_divergence
            - self.embedding_divergence
            - self.stick_divergence
            - self.parameter_cost
            + self.label_bonus
        )

    def to_floats(self) -> dict[str, float]:
        """All terms and the total as plain numbers."""
        terms = {field.name: float(getattr(self, field.name).detach()) for field in fields(self)}
        return terms | {"total": float(self.total.detach())}
