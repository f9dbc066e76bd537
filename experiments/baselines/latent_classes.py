"""Latent classes of mixed columns (StepMix), their number by the Schwarz criterion: which class every row is in.

Within a class columns are independent: normal, binary or categorical; counts are normal on the logarithmic scale, since
StepMix has no counts. Run as a script in the environment that has ``stepmix``:
``python latent_classes.py rows.npy kinds.npy classes.npy``, with levels as numbers and kinds as places in `KINDS`.
"""

from __future__ import annotations

import sys

import numpy as np

KINDS = ("continuous", "binary", "count", "categorical")
MOST_CLASSES = 12
PATIENCE = 2


def classes(x: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """The likeliest class of every row."""
    import pandas as pd
    from stepmix.stepmix import StepMix
    from stepmix.utils import get_mixed_descriptor

    names = np.array([f"x{j}" for j in range(x.shape[1])])
    table = pd.DataFrame(x, columns=names)
    measured, counted = kinds == KINDS.index("continuous"), kinds == KINDS.index("count")
    table.loc[:, counted] = np.log1p(table.loc[:, counted])
    normal = measured | counted
    table.loc[:, normal] = (table.loc[:, normal] - table.loc[:, normal].mean()) / table.loc[:, normal].std()
    columns = {
        "continuous": names[normal].tolist(),
        "binary": names[kinds == KINDS.index("binary")].tolist(),
        "categorical": names[kinds == KINDS.index("categorical")].tolist(),
    }
    rows, descriptor = get_mixed_descriptor(table, **{key: value for key, value in columns.items() if value})
    best, lowest, since = np.zeros(len(x), dtype=np.int64), np.inf, 0
    for count in range(1, MOST_CLASSES + 1):
        model = StepMix(
            count,
            measurement=descriptor,
            n_init=3,
            max_iter=300,
            rel_tol=1e-6,
            random_state=0,
            progress_bar=0,
        )
        criterion = model.fit(rows).bic(rows)
        if criterion < lowest:
            best, lowest, since = model.predict(rows), criterion, 0
        else:
            since += 1
        if since >= PATIENCE:
            break
    return np.asarray(best, dtype=np.int64)


if __name__ == "__main__":
    np.save(sys.argv[3], classes(np.load(sys.argv[1]), np.load(sys.argv[2])))
