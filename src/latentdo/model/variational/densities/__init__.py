"""Families of conditional densities; a new family is one new file and one entry here."""

from __future__ import annotations

from latentdo.model.variational.densities.base import ConditionalDensity
from latentdo.model.variational.densities.flow import FlowDensity
from latentdo.model.variational.densities.heads import MixedDensity
from latentdo.model.variational.densities.linear import ClosedFormLinearDensity, LinearDensity
from latentdo.model.variational.densities.nonlinear import NonlinearDensity

FAMILIES: dict[str, type[LinearDensity | NonlinearDensity | FlowDensity]] = {
    family.name: family for family in (LinearDensity, NonlinearDensity, FlowDensity)
}
"""Every family by its name."""

__all__ = [
    "FAMILIES",
    "ClosedFormLinearDensity",
    "ConditionalDensity",
    "FlowDensity",
    "LinearDensity",
    "MixedDensity",
    "NonlinearDensity",
]
