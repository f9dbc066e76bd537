"""DCDI-G and SDCD (package ``sdcd``): networks, gradients and an acyclicity constraint, with known targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.baselines.interface import Graph, Problem


def dcdi(problem: Problem) -> Graph:
    """DCDI with Gaussian noise and perfect interventions, as shipped with SDCD and with its settings."""
    from sdcd.models import DCDI

    return _fit(DCDI(), problem)


def sdcd(problem: Problem) -> Graph:
    """Stable differentiable causal discovery with its default settings."""
    from sdcd.models import SDCD

    return _fit(SDCD(), problem)


def _fit(model: Any, problem: Problem) -> Graph:
    import torch
    from torch.utils.data import TensorDataset

    torch.set_num_threads(1)
    hit = problem.targets[problem.regimes]
    dataset = TensorDataset(
        torch.as_tensor(problem.X, dtype=torch.float32),
        torch.as_tensor(1 - hit, dtype=torch.long),  # 1 where the mechanism is the shared one
        torch.as_tensor(hit.sum(axis=1), dtype=torch.long),
    )
    model.train(dataset)
    return np.asarray(model.get_adjacency_matrix(threshold=True) != 0, dtype=np.int64)
