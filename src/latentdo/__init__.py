"""Causal discovery when nobody recorded the interventions."""

from latentdo import metrics
from latentdo.datasets import load_sachs
from latentdo.estimator import LatentInterventionDAG
from latentdo.readers import read_table
from latentdo.scm import simulate

__all__ = ["LatentInterventionDAG", "load_sachs", "metrics", "read_table", "simulate"]
__version__ = "0.1.0"
