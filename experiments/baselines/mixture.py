"""First step of the two-step methods: clusters of a plain Gaussian mixture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from experiments.baselines.interface import Problem

MOST_CLUSTERS = 16
"""As many as our own search may find by default."""


def clusters(problem: Problem) -> NDArray[np.int64]:
    """Labels from a mixture with full covariances that is told the number of regimes."""
    from sklearn.mixture import GaussianMixture

    model = GaussianMixture(problem.n_regimes, n_init=4, reg_covar=1e-6, random_state=0)
    return np.asarray(model.fit_predict(problem.X), dtype=np.int64)


def clusters_by_bic(X: NDArray[np.float64]) -> NDArray[np.int64]:
    """The same for a user who is told nothing: the number by the Schwarz criterion, on standardised columns."""
    from sklearn.mixture import GaussianMixture

    scaled = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    fits = [GaussianMixture(k, n_init=2, random_state=0).fit(scaled) for k in range(1, MOST_CLUSTERS + 1)]
    best = min(fits, key=lambda fit: fit.bic(scaled))
    return np.asarray(best.predict(scaled), dtype=np.int64)
