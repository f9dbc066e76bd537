"""What an adapter takes and gives back; nothing but numpy, because peers live in environments of their own."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Problem:
    """Data, and as much of the truth as the method assumes to be known; None where it is not told.

    Parameters
    ----------
    X : array [n, d]
    regimes : int array [n], optional
        Regime of every row; 0 is observational.
    targets : 0/1 array [n_regimes, d], optional
        What each regime targets.
    observational : bool array [n], optional
        Which rows are observational.
    n_regimes : int, optional
        Number of regimes, for methods that cluster first.
    time : array [n], optional
        When every row was measured, where rows have an order.
    density, intervention : str
        What the mechanisms are like, in the words of `LatentInterventionDAG`, for our own search and for peers that
        have to choose a regression.
    """

    X: NDArray[np.float64]
    regimes: NDArray[np.int64] | None = None
    targets: NDArray[np.int64] | None = None
    observational: NDArray[np.bool_] | None = None
    n_regimes: int | None = None
    time: NDArray[np.float64] | None = None
    density: str = "linear"
    intervention: str = "perfect"

    def showing(self, given: tuple[str, ...]) -> Problem:
        """Hide everything that is not given, so that no adapter can look at what its table row does not admit."""
        secrets = ("regimes", "targets", "observational", "n_regimes", "time")
        return replace(self, **{name: None for name in secrets if name not in given})

    def rows(self) -> NDArray[np.float64]:
        """Rows for methods that know of no interventions: the observational ones if those are known, else all."""
        return self.X if self.observational is None else self.X[self.observational]

    def environments(self) -> list[NDArray[np.float64]]:
        """Rows of each regime, the observational ones first."""
        return [self.X[self.regimes == k] for k in range(int(self.regimes.max()) + 1)]

    def target_lists(self) -> list[list[int]]:
        """Indices of the targets of each regime."""
        return [np.flatnonzero(row).tolist() for row in self.targets]

    def save(self, path: Path) -> None:
        """Write to one ``.npz`` file."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        np.savez(path, **{name: value for name, value in values.items() if value is not None})

    @classmethod
    def load(cls, path: Path) -> Problem:
        """Read what `save` wrote."""
        with np.load(path) as file:
            return cls(**{name: file[name].item() if file[name].ndim == 0 else file[name] for name in file})


Graph = NDArray[np.int64]
"""0/1 matrix [d, d]: ``graph[i, j] == 1`` is i -> j, both directions together are an undirected edge."""
