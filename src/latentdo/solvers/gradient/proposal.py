"""A structure to start from: another solver's graph, targets and regimes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from latentdo.result import FitResult


@dataclass(frozen=True, eq=False)
class Proposal:
    """A DAG and what goes with it: where a fit starts.

    Parameters
    ----------
    adjacency : ndarray [d, d]
        The DAG.
    targets : ndarray [n_regimes, d]
        The targets.
    labels : ndarray [n] of int64, optional
        A guess of every row's regime.
    """

    adjacency: NDArray[np.int8]
    targets: NDArray[np.int8]
    labels: NDArray[np.int64] | None = None

    @classmethod
    def from_result(cls, result: FitResult) -> Proposal:
        """What another solver found, as a start: its graph, its targets and the likeliest regime of every row."""
        topology = result.model.topology
        labels = result.responsibilities.argmax(axis=1).astype(np.int64)
        return cls(topology.adjacency.astype(np.int8), topology.targets.astype(np.int8), labels)

    def take(self, rows: NDArray[np.int64]) -> Proposal:
        """The same for some of the rows."""
        return replace(self, labels=None if self.labels is None else self.labels[rows])

    def content(self) -> bytes:
        """All values, to tell proposals apart."""
        parts = (self.adjacency, self.targets, np.zeros(0) if self.labels is None else self.labels)
        return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)
