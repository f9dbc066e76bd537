"""Effects with intervals that take graph and regimes as uncertain, for every family of densities."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pandas as pd

from latentdo.bootstrap.resample import Resample
from latentdo.bootstrap.storage import unpack_result
from latentdo.effects import total_effects, usual_shift
from latentdo.estimator import LatentInterventionDAG


def resampled_effects(
    estimator: LatentInterventionDAG,
    resamples: Sequence[Resample],
    cause: str,
    on: str | Sequence[str] | None,
    *,
    do: tuple[float, float] | None,
    shift: float | None,
    regime: Hashable,
    level: float,
    statistic: str,
    n: int,
    seed: int,
) -> pd.DataFrame:
    """The effect by the fit to all rows, with the range of what the resamples say; see ``BootstrapDAG.effect``."""
    result = estimator.result_
    at = estimator._regime_index(regime)
    if do is None and shift is None and cause in result.columns:
        shift = usual_shift(result, cause, at, seed)
    table = estimator.effect(
        cause, on, do=do, shift=shift, regime=regime, level=level, statistic=statistic, n=n, random_state=seed
    )
    start, stop = (None, None) if do is None else (float(do[0]), float(do[1]))
    changes = [
        total_effects(
            unpack_result(resample.fit),
            cause,
            list(table.index),
            start=start,
            stop=stop,
            shift=shift,
            regime=int(resample.match[at]),
            level=level,
            statistic=statistic,
            n=n,
            seed=seed,
            n_draws=0,
        )["change"].to_numpy()
        for resample in resamples
        if resample.match[at] >= 0
    ]
    if not changes:
        raise ValueError(
            f"no resample has found regime {regime!r} again, so there is nothing to compare with"
        )
    low, high = np.quantile(changes, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
    support = (np.array(changes) != 0.0).mean(axis=0)
    interval = {"low": low, "high": high, "interval": f"{100 * level:g} % over {len(changes)} resamples"}
    # in the order of a single fit, whether or not its family of densities has intervals
    before = table.drop(columns=["low", "high", "interval", "path_probability"], errors="ignore")
    paths = table["path_probability"]
    return before.assign(**interval, path_probability=paths, support=support, resamples=len(changes))
