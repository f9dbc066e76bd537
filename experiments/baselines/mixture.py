"""First step of the two-step methods: clusters of a plain Gaussian mixture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from experiments.baselines.interface import Problem


def clusters(problem: Problem) -> NDArray[np.int64]:
    """Labels from a mixture with full covariances that is told the number of regimes."""
    from sklearn.mixture import GaussianMixture

    model = GaussianMixture(problem.n_regimes, n_init=4, reg_covar=1e-6, random_state=0)
    return np.asarray(model.fit_predict(problem.X), dtype=np.int64)
