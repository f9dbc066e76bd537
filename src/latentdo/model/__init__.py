"""What is fitted: the shared graph, the mechanisms of every regime, and the mixture over regimes."""

from latentdo.model.fitted import FittedModel, Topology
from latentdo.model.linear_mixture import LinearMixture

__all__ = ["FittedModel", "LinearMixture", "Topology"]
