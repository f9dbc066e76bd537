r"""How far a matrix of edge probabilities is from a DAG: three measures behind one small interface.

Each is zero exactly on matrices whose support is acyclic, positive elsewhere, and differentiable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from latentdo.solvers.settings import LOG_DETERMINANT_MARGIN, SPECTRAL_GUARD, SPECTRAL_SQUARINGS

Acyclicity = Callable[[Tensor], Tensor]
"""From a non-negative matrix ``[d, d]`` to a non-negative number."""


class _TraceExponential(torch.autograd.Function):
    r""":math:`\mathrm{tr}\, e^{W}`, whose gradient :math:`(e^{W})^\top` costs nothing more.

    Torch would take the exponential of a matrix of twice the size for it.
    """

    @staticmethod
    def forward(context: Any, weights: Tensor) -> Tensor:
        exponential = torch.linalg.matrix_exp(weights)
        context.save_for_backward(exponential)
        return torch.trace(exponential)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        exponential: Tensor = context.saved_tensors[0]
        return gradient * exponential.T


def trace_exponential(weights: Tensor) -> Tensor:
    r""":math:`\mathrm{tr}\, e^{W} - d` of NOTEARS, the paper's constraint."""
    trace: Tensor = _TraceExponential.apply(weights)  # type: ignore[no-untyped-call]
    return trace - weights.shape[0]


def log_determinant(weights: Tensor) -> Tensor:
    r""":math:`-\log\det(sI - W) + d \log s` of DAGMA, with ``s`` just above the largest column sum.

    The bound on the spectral radius keeps the matrix an M-matrix, where the measure is defined; ``s``
    carries no gradient.
    """
    d = weights.shape[0]
    s = torch.clamp(weights.detach().sum(0).max() * LOG_DETERMINANT_MARGIN, min=1.0)
    matrix = s * torch.eye(d, dtype=weights.dtype, device=weights.device) - weights
    log_det: Tensor = torch.linalg.slogdet(matrix)[1]
    return d * torch.log(s) - log_det


def spectral_radius(weights: Tensor, n_squarings: int = SPECTRAL_SQUARINGS) -> Tensor:
    r"""Spectral radius of ``W`` (NO-BEARS, SDCD), from left and right vectors of a high power of it.

    The gradient is that of :math:`v^\top W u / v^\top u` with the vectors held fixed, exact at convergence.
    Powers of an acyclic
    matrix vanish, so the value there is exactly zero.
    """
    with torch.no_grad():
        power = weights.detach().clone()
        for _ in range(n_squarings):
            power = power @ power
            size = power.abs().max()
            if float(size) == 0.0:
                return 0.0 * weights.sum()
            power = power / size
        right, left = power.sum(1), power.sum(0)
    return (left @ weights @ right) / (left @ right).clamp_min(SPECTRAL_GUARD)


MEASURES: dict[str, Acyclicity] = {
    "trace-exponential": trace_exponential,
    "log-determinant": log_determinant,
    "spectral": spectral_radius,
}
"""Every measure by its name."""
