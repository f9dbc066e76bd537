"""What the rows say about regimes between two chunks of steps: pairs worth evaluating, and moments."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from latentdo.model.variational.assignments import UNKNOWN, responsibilities
from latentdo.model.variational.mixture import LatentMixture
from latentdo.model.variational.moments import Moments
from latentdo.solvers.settings import PAIR_ROWS


@torch.no_grad()
def current_moments(model: LatentMixture, x: Tensor, labels: Tensor) -> Moments:
    """Moments under the labels where there are any, else under the best responsibilities at the posterior means."""
    if bool((labels != UNKNOWN).all()):
        return Moments.of(x, functional.one_hot(labels, model.architecture.n_regimes))
    return Moments.of(x, responsibilities(model.log_joint(x), labels))


@torch.no_grad()
def likely_pairs(model: LatentMixture, x: Tensor, labels: Tensor, threshold: float) -> Tensor | None:
    """Pairs of row and regime worth evaluating ``[n, n_regimes]``; None where all of them are cheap.

    Labelled rows have one. The others have every regime whose responsibility exceeds the threshold, and the likeliest.
    """
    n_regimes = model.architecture.n_regimes
    if model.density.is_cheap_in_regimes or n_regimes == 1:
        return None
    known = functional.one_hot(labels.clamp_min(0), n_regimes).bool()
    unknown = labels == UNKNOWN
    if not bool(unknown.any()):
        return known
    model.eval()
    parts = []
    for rows in x.split(PAIR_ROWS):  # type: ignore[no-untyped-call]
        if model.assignments is not None:
            features = model.density.features(rows)
            parts.append(model.assignments.log_probabilities(features, model.embeddings.mean).exp())
        else:
            parts.append(torch.softmax(model.log_joint(rows), dim=1))
    q = torch.cat(parts)
    likely = (q > threshold) | (q == q.max(1, keepdim=True).values)
    return torch.where(unknown[:, None], likely, known)
