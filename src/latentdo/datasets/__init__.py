"""Real data that come with the package and load without a network."""

from latentdo.datasets.sachs import Sachs, load_sachs, reference_graph

__all__ = ["Sachs", "load_sachs", "reference_graph"]
