"""From edge probabilities to a DAG, whatever the constraint reached."""

from __future__ import annotations

import torch
from torch import Tensor

from latentdo.model.assignment import LIKELY


def nearest_dag(probabilities: Tensor, required: Tensor | None = None) -> Tensor:
    r"""The likely edges, less the least probable ones that close a cycle, ``[d, d]`` of 0/1.

    Edges above one half enter in order of probability (required ones first) unless they close a cycle: a
    greedy maximiser of the
    graph's posterior :math:`\sum_{ij} A_{ij} \Lambda_{ij}` over DAGs.
    """
    d = probabilities.shape[0]
    p = probabilities.detach().cpu().double().clone()
    if required is not None:
        p[required.cpu()] = 2.0
    adjacency = torch.zeros(d, d, dtype=torch.int8)
    reach = torch.eye(d, dtype=torch.bool)  # reach[a, b]: there is a path from a to b
    for flat in torch.argsort(p.flatten(), descending=True, stable=True).tolist():
        i, j = divmod(flat, d)
        if p[i, j] <= LIKELY:
            break
        if reach[j, i]:
            continue
        adjacency[i, j] = 1
        reach |= reach[:, i : i + 1] & reach[j : j + 1]
    return adjacency
