"""What is fitted: the shared graph, the mechanisms of every regime, and the mixture over regimes."""

from latentdo.model.fitted import FittedModel, Topology

__all__ = ["FittedModel", "Topology"]
