r"""What linear Gaussian mechanisms need to know of the rows: one moment matrix per regime.

Given responsibilities :math:`q`, the expected log-likelihood of linear Gaussian mechanisms depends on the
rows only through
:math:`M_k = \sum_i q_{ik} [1, x_i][1, x_i]^\top`. A step on these costs the same for a thousand rows and for
a billion.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Moments:
    """Rows, summed up under fixed responsibilities.

    Parameters
    ----------
    second : Tensor [n_regimes, d + 1, d + 1] of float64
        The moment matrices, constant first.
    entropy : Tensor
        Entropy of the responsibilities, summed over rows; labelled rows have none.
    """

    second: Tensor
    entropy: Tensor

    @classmethod
    def of(cls, x: Tensor, q: Tensor) -> Moments:
        """Sum up rows ``x [n, d]`` under responsibilities ``q [n, n_regimes]``."""
        rows = torch.cat([torch.ones(len(x), 1, dtype=torch.float64, device=x.device), x.double()], dim=1)
        weights = q.double()
        second = torch.stack([rows.T @ (weights[:, k : k + 1] * rows) for k in range(q.shape[1])])
        return cls(second, -torch.special.xlogy(weights, weights).sum())

    @property
    def counts(self) -> Tensor:
        """Expected number of rows in every regime, ``[n_regimes]``."""
        return self.second[:, 0, 0]

    @property
    def n_rows(self) -> float:
        """Number of rows."""
        return float(self.counts.detach().sum())
