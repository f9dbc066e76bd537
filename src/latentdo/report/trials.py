"""The trials of a tuning: what was tried, how held-out rows judged it, and what was chosen."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

from latentdo.report.messages import MINUS, cell

_MOST_TRIALS = 60
_COUNTS: Final = ("edges", "targets", "regimes")
_OUTCOMES: Final = frozenset({"trial", "held_out", "seconds", "within_one_error", "chosen", *_COUNTS})


def check_trials(trials: pd.DataFrame) -> None:
    """Refuse a table that is not one of trials, by column."""
    if missing := sorted(_OUTCOMES - set(trials.columns)):
        raise ValueError(f"the table of trials has no column {', '.join(missing)}; was it changed?")
    for name in sorted(_OUTCOMES):
        kind = "b" if name in ("chosen", "within_one_error") else "biuf"
        if trials[name].dtype.kind not in kind or not np.isfinite(trials[name].to_numpy()).all():
            form = "True or False" if kind == "b" else "finite numbers"
            raise ValueError(f"the column {name!r} of the table of trials must hold {form}; was it changed?")


def trial_table(trials: pd.DataFrame) -> dict[str, Any]:
    """The best trials by held-out log-likelihood, and the chosen one, which need not be among them.

    Parameters
    ----------
    trials : DataFrame
        ``TunedDAG.trials_``, or the ``trials.csv`` that the command line writes.

    Raises
    ------
    ValueError
        If columns are missing, or hold something else.
    """
    check_trials(trials)
    order = trials.sort_values("held_out", ascending=False, kind="stable")
    shown = order[(order["chosen"].astype(bool)) | (order.reset_index().index < _MOST_TRIALS)]
    names = [str(name) for name in trials.columns if name not in _OUTCOMES]
    return {
        "parameters": names,
        "counts": _COUNTS,
        "left_out": len(order) - len(shown),
        "rows": [
            {
                "number": int(row["trial"]),
                "values": [cell(row[name]) for name in names],
                "held_out": f"{row['held_out']:.4f}".replace("-", MINUS),
                "counts": [int(row[name]) for name in _COUNTS],
                "verdict": "chosen" if row["chosen"] else "as good" if row["within_one_error"] else "",
            }
            for row in shown.to_dict("records")
        ],
    }
