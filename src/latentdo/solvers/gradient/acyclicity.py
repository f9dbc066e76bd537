r"""How far a matrix of edge probabilities is from a DAG: three measures behind one small interface.

Each is zero exactly on matrices whose support is acyclic, positive elsewhere, and differentiable.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Acyclicity = Callable[[Tensor], Tensor]
"""From a non-negative matrix ``[d, d]`` to a non-negative number."""


def trace_exponential(weights: Tensor) -> Tensor:
    r""":math:`\mathrm{tr}\, e^{W} - d` of NOTEARS, the paper's constraint."""
    return torch.trace(torch.linalg.matrix_exp(weights)) - weights.shape[0]


def log_determinant(weights: Tensor) -> Tensor:
    r""":math:`-\log\det(sI - W) + d \log s` of DAGMA, with ``s`` just above the largest column sum.

    The bound on the spectral radius keeps the matrix an M-matrix, where the measure is defined; ``s`` carries no gradient.
    """
    d = weights.shape[0]
    s = torch.clamp(weights.detach().sum(0).max() * 1.01, min=1.0)
    matrix = s * torch.eye(d, dtype=weights.dtype, device=weights.device) - weights
    return -torch.linalg.slogdet(matrix)[1] + d * torch.log(s)


def spectral_radius(weights: Tensor, n_steps: int = 30) -> Tensor:
    r"""Spectral radius of ``W`` (NO-BEARS, SDCD), by power iteration of left and right vectors.

    The gradient is that of :math:`v^\top W u / v^\top u` with the vectors held fixed, exact at convergence. A tiny constant added
    to all entries keeps the iteration away from nilpotent matrices; it is taken off the value.
    """
    d = weights.shape[0]
    with torch.no_grad():
        matrix = weights + 1e-12
        right = torch.ones(d, dtype=weights.dtype, device=weights.device)
        left = right.clone()
        for _ in range(n_steps):
            right = torch.nn.functional.normalize(matrix @ right, dim=0, eps=1e-30)
            left = torch.nn.functional.normalize(left @ matrix, dim=0, eps=1e-30)
    return (left @ weights @ right) / (left @ right).clamp_min(1e-12)


MEASURES: dict[str, Acyclicity] = {
    "trace-exponential": trace_exponential,
    "log-determinant": log_determinant,
    "spectral": spectral_radius,
}
"""Every measure by its name."""
