"""Effects with intervals that take graph and regimes as uncertain, for every family of densities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from latentdo.bootstrap.resample import Resample
from latentdo.bootstrap.storage import unpack_result
from latentdo.effects import Contrast, central_range, total_effects
from latentdo.result import FitResult


def resampled_effects(
    result: FitResult, resamples: Sequence[Resample], contrast: Contrast, seed: int
) -> pd.DataFrame:
    """The effect by the fit to all rows, with the range of what the resamples say; see ``BootstrapDAG.effect``.

    Parameters
    ----------
    result : FitResult
        The fit to all rows.
    resamples : sequence of Resample
        The others.
    contrast : Contrast
        What is compared; its regime is one of the fit to all rows.
    seed : int
        Seed of the noise of the resamples.
    """
    table = total_effects(result, contrast, n_draws=0)
    changes = [
        total_effects(
            unpack_result(resample.fit),
            replace(contrast, regime=int(resample.match[contrast.regime]), seed=seed),
            n_draws=0,
        )["change"].to_numpy()
        for resample in resamples
        if resample.match[contrast.regime] >= 0
    ]
    if not changes:
        name = result.regime_names[contrast.regime]
        raise ValueError(f"no resample has found regime {name!r} again, so there is nothing to compare with")
    low, high = central_range(changes, contrast.level)
    interval = f"{100 * contrast.level:g} % over {len(changes)} resamples"
    paths = table.pop("path_probability")
    support = (np.array(changes) != 0.0).mean(axis=0)
    return table.drop(columns="interval").assign(
        low=low,
        high=high,
        interval=interval,
        path_probability=paths,
        support=support,
        resamples=len(changes),
    )
