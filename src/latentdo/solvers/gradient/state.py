"""Everything a training run needs to go on: explicit, frozen, saved and restored whole."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from torch import Tensor

from latentdo.solvers.gradient.lagrangian import AugmentedLagrangian

Phase = Literal["relaxed", "fixed", "done"]

KNOWN_TARGETS = "targets.known"
"""The one entry of a model's state that may hold NaN: where a target is not known."""


@dataclass(frozen=True, eq=False)
class TrainState:
    """State between two chunks of optimisation steps.

    Parameters
    ----------
    model, optimizer : mapping
        State dictionaries of torch.
    rng : Tensor
        State of torch's generator.
    lagrangian : AugmentedLagrangian
        Of the current sub-problem.
    phase : {"relaxed", "fixed", "done"}
        The graph is relaxed, fixed to a DAG, or nothing is left to do.
    step, phase_step, subproblem : int
        Steps overall, steps in this sub-problem (or phase), sub-problems finished.
    rate_scale : float
        Learning rate relative to the configured one; halved when the loss breaks down.
    best, stale : float, int
        Best bound a row in this sub-problem, and chunks without improvement on it.
    evidence : float
        Mean bound a row over the last chunk, less nothing for cycles.
    violation : float
        Acyclicity violation after the last chunk.
    adjacency : Tensor [d, d], optional
        The DAG of the phase "fixed".
    history : tuple of mappings
        One entry a chunk.
    warnings : tuple of str
        What went wrong on the way.
    """

    model: Mapping[str, Tensor]
    optimizer: Mapping[str, Any]
    rng: Tensor
    lagrangian: AugmentedLagrangian
    phase: Phase = "relaxed"
    step: int = 0
    phase_step: int = 0
    subproblem: int = 0
    rate_scale: float = 1.0
    best: float = float("-inf")
    stale: int = 0
    evidence: float = float("-inf")
    violation: float = float("inf")
    adjacency: Tensor | None = None
    history: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = field(default=())

    def wrong_field(self) -> str:
        """The first field that no run leaves between two chunks, for example after a forgery; empty if all is well."""
        counts = (self.step, self.phase_step, self.subproblem, self.stale)
        numbers = (self.rate_scale, self.best, self.evidence, self.violation)
        fine = {
            "model": isinstance(self.model, Mapping)
            and all(
                isinstance(v, Tensor) and (name == KNOWN_TARGETS or not bool(v.isnan().any()))
                for name, v in self.model.items()
            ),
            "optimizer": isinstance(self.optimizer, Mapping),
            "rng": isinstance(self.rng, Tensor),
            "phase": self.phase in get_args(Phase),
            "count of steps": all(isinstance(v, int) and v >= 0 for v in counts),
            "evidence": all(isinstance(v, float) and not math.isnan(v) for v in numbers)
            and 0.0 < self.rate_scale <= 1.0,
            "adjacency": self.adjacency is None or isinstance(self.adjacency, Tensor),
            "history": all(isinstance(entry, Mapping) for entry in self.history),
            "warnings": all(isinstance(entry, str) for entry in self.warnings),
        }
        return next((name for name, holds in fine.items() if not holds), "")
