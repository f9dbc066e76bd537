"""A hidden Markov model of Gaussians, the number of states by the Schwarz criterion: which state every row is in.

Run as a script in the environment that has ``hmmlearn``: ``python hidden_markov.py rows.npy states.npy``.
"""

from __future__ import annotations

import sys

import numpy as np

MOST_STATES = 12
PATIENCE = 2


def states(x: np.ndarray) -> np.ndarray:
    """The likeliest states of rows in order of time."""
    from hmmlearn.hmm import GaussianHMM

    z = (x - x.mean(axis=0)) / x.std(axis=0)
    best, lowest, since = np.zeros(len(z), dtype=np.int64), np.inf, 0
    for count in range(1, MOST_STATES + 1):
        model = GaussianHMM(count, covariance_type="full", n_iter=50, tol=1.0, random_state=0).fit(z)
        criterion = model.bic(z)
        if criterion < lowest:
            best, lowest, since = model.predict(z), criterion, 0
        else:
            since += 1
        if since >= PATIENCE:
            break
    return best


if __name__ == "__main__":
    np.save(sys.argv[2], states(np.load(sys.argv[1])))
