"""Which trial wins: the sparsest of those that held-out rows cannot tell from the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from latentdo.tuning.study import place_of

if TYPE_CHECKING:
    import optuna as optuna_types

ROUNDING = 1e-9
"""Relative differences of scores that are no differences: sums of thousands of rows in another order."""


def choose(trials: Sequence[optuna_types.trial.FrozenTrial], names: list[str]) -> pd.DataFrame:
    """All trials as a table; the sparsest within one standard error of the best is marked as chosen."""
    best = max(trials, key=lambda t: (t.user_attrs["held_out"], -place_of(t)))
    top = np.asarray(best.user_attrs["blocks"])
    records = []
    for t in sorted(trials, key=place_of):
        lag = top - np.asarray(t.user_attrs["blocks"])
        error = float(lag.std(ddof=1) / np.sqrt(len(lag))) if len(lag) > 1 else 0.0
        attributes = {
            key: t.user_attrs[key] for key in ("held_out", "edges", "targets", "regimes", "seconds")
        }
        behind = best.user_attrs["held_out"] - t.user_attrs["held_out"]
        close = bool(behind <= error + ROUNDING * abs(best.user_attrs["held_out"]))
        records.append(
            {"trial": place_of(t), **{n: t.params[n] for n in names}, **attributes, "within_one_error": close}
        )
    table = pd.DataFrame(records)
    near = table[table["within_one_error"]]
    sparse = near.assign(size=near["edges"] + near["targets"], rank=-near["held_out"])
    winner = sparse.sort_values(["size", "rank", "trial"], kind="stable").index[0]
    return table.assign(chosen=table.index == winner)
