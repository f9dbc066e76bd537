"""BARO's ranking of root causes (RobustScorer): which column broke first in each of some windows of time.

Run as a script in the environment that has ``fse-baro``: ``python root_cause.py rows.npy windows.npy causes.npy``.
Every window is the first row, the row where the incident begins, and the row after its last; the answer is one column
each.
"""

from __future__ import annotations

import sys

import numpy as np


def causes(x: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """The likeliest root cause of every window."""
    import pandas as pd
    from baro.root_cause_analysis import robust_scorer

    names = [f"m{j}" for j in range(x.shape[1])]
    found = []
    for first, begin, end in windows:
        window = pd.DataFrame(x[first:end], columns=names).assign(time=np.arange(first, end))
        found.append(names.index(robust_scorer(window, inject_time=begin)["ranks"][0]))
    return np.array(found, dtype=np.int64)


if __name__ == "__main__":
    np.save(sys.argv[3], causes(np.load(sys.argv[1]), np.load(sys.argv[2])))
