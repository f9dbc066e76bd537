r"""The E-step: from log-densities to responsibilities, in one place.

Given everything else, the posterior of a row's regime is
:math:`q(z = k) \propto \exp(\log p(x \mid k) + \log \beta_k)`, and the log-likelihood of the row is the logarithm of
the sum of these terms. A row with a label belongs to it, and contributes :math:`\log p(x \mid k) + \log \beta_k` alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentdo.compilation import njit

Array = NDArray[np.float64]

LIKELY = 0.5
"""What is more probable than this is more probable than not: edges, targets and memberships count as there."""

IMPOSSIBLE = -1e6
"""Log-density of a row that underflows everywhere: finite, so that fits stay comparable."""


class Assignment(NamedTuple):
    """Who belongs where.

    ``responsibilities [n, K]`` sum to one in every row; ``log_likelihood [n]`` has the regimes summed out, or is that
    of the label.
    """

    responsibilities: Array
    log_likelihood: Array


def assign(log_density: Array, weights: Array, labels: NDArray[np.int64] | None = None) -> Assignment:
    """Responsibilities and log-likelihood of rows.

    Densities and weights come apart because whoever assigns several rows together pays for their regime once.

    Parameters
    ----------
    log_density : ndarray [n, K]
        ``log p(x | regime)``, up to a constant per row if only responsibilities are wanted. It is overwritten: the
        responsibilities take its place.
    weights : ndarray [K]
        Shares of the regimes; they are also the responsibilities of rows that no regime can explain in float64, which
        say nothing about them.
    labels : ndarray [n] of int64, optional
        Known regime of every row, -1 where unknown.

    Examples
    --------
    >>> log_density = np.log([[0.1, 0.3], [0.2, 0.2]])
    >>> assign(log_density, np.array([0.75, 0.25])).responsibilities
    array([[0.5 , 0.5 ],
           [0.75, 0.25]])
    """
    known = np.full(len(log_density), -1, dtype=np.int64) if labels is None else labels
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    log_likelihood = np.empty(len(log_density))
    _normalise(log_density, weights, log_weights, known, log_likelihood)
    return Assignment(log_density, log_likelihood)


@njit
def _normalise(density, weights, log_weights, labels, log_likelihood):  # type: ignore[no-untyped-def]
    n_regimes = density.shape[1]
    for i in range(density.shape[0]):
        high = -np.inf
        for k in range(n_regimes):
            density[i, k] += log_weights[k]
            if np.isnan(density[i, k]):  # infinities of opposite sign met in a row far out
                density[i, k] = -np.inf
            high = max(high, density[i, k])
        known = density[i, labels[i]]
        if np.isfinite(high):
            total = 0.0
            for k in range(n_regimes):
                density[i, k] = np.exp(density[i, k] - high)
                total += density[i, k]
            for k in range(n_regimes):
                density[i, k] /= total
            log_likelihood[i] = high + np.log(total)
        else:
            density[i] = weights
            log_likelihood[i] = IMPOSSIBLE
        if labels[i] >= 0:
            log_likelihood[i] = max(known, IMPOSSIBLE)
            density[i] = 0.0
            density[i, labels[i]] = 1.0
