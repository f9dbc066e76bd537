"""What is known of regimes and targets: a variant of the method is data, not a class (paper, section 3.9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from latentdo.data import Dataset
from latentdo.model.variational.assignments import UNKNOWN

Variant = Literal["latent", "semi-supervised", "unknown", "known", "observational"]


@dataclass(frozen=True, eq=False)
class Supervision:
    """What a data set says about its regimes.

    Parameters
    ----------
    n_regimes : int
        Regimes the model has, the reference included: at least as many as have labels.
    labels : ndarray [n] of int64
        Regime of every row, -1 where unknown.
    targets : ndarray [n_regimes, d] of float64
        Zeros and ones where targets are known, NaN where they are not.
    """

    n_regimes: int
    labels: NDArray[np.int64]
    targets: NDArray[np.float64]

    @classmethod
    def from_dataset(cls, dataset: Dataset, max_regimes: int) -> Supervision:
        """Read a data set; rows without a label may belong to up to ``max_regimes`` regimes.

        With ``max_regimes=1`` every row is taken to be observational, whatever its label.
        """
        n, d = dataset.n_rows, dataset.n_variables
        if max_regimes == 1:
            return cls(1, np.zeros(n, dtype=np.int64), np.zeros((1, d)))
        labels = np.full(n, UNKNOWN, dtype=np.int64) if dataset.regimes is None else dataset.regimes
        n_regimes = dataset.n_regimes
        if (labels == UNKNOWN).any():
            n_regimes = max(n_regimes, max_regimes)
        targets = np.full((n_regimes, d), np.nan)
        targets[0] = 0.0
        if dataset.targets is not None:
            targets[: len(dataset.targets)] = dataset.targets
        return cls(n_regimes, labels, targets)

    def limit(self, n_regimes: int) -> Supervision:
        """The same with room for fewer regimes; those that have labels must stay."""
        return Supervision(n_regimes, self.labels, self.targets[:n_regimes])

    @property
    def variant(self) -> Variant:
        """Name of the paper's variant that this amounts to."""
        if (self.labels == UNKNOWN).all():
            return "latent"
        if self.n_regimes == 1:
            return "observational"
        if (self.labels == UNKNOWN).any():
            return "semi-supervised"
        return "unknown" if np.isnan(self.targets).any() else "known"

    def take(self, rows: NDArray[np.int64]) -> Supervision:
        """The same for some of the rows."""
        return Supervision(self.n_regimes, self.labels[rows], self.targets)

    def label_tensor(self, device: torch.device | str = "cpu") -> Tensor:
        """The labels as a tensor."""
        return torch.as_tensor(self.labels, device=device)
