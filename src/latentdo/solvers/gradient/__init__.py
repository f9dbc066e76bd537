"""The paper's algorithm and its exact-expectation relative: gradients under an acyclicity constraint."""

from latentdo.solvers.gradient.configuration import GradientConfiguration
from latentdo.solvers.gradient.lagrangian import AugmentedLagrangian
from latentdo.solvers.gradient.proposal import Proposal
from latentdo.solvers.gradient.solve import solve

__all__ = ["AugmentedLagrangian", "GradientConfiguration", "Proposal", "solve"]
