"""Real data: cytometry, which comes with the package, and the light tunnel, which is downloaded."""

from latentdo.datasets.light_tunnel import LightTunnel, load_light_tunnel
from latentdo.datasets.sachs import Sachs, load_sachs, reference_graph

__all__ = ["LightTunnel", "Sachs", "load_light_tunnel", "load_sachs", "reference_graph"]
