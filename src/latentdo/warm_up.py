"""Compile beforehand what first fits would compile, so that nobody waits for it at the first table."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from latentdo.estimator import LatentInterventionDAG
from latentdo.model.mechanisms.histograms import histogram
from latentdo.scm import simulate

__all__ = ["Warmth", "warm_up"]

_TABLES = (
    {"preset": "field", "mechanism": "smooth", "noise": "gamma", "n_variables": 5, "n_samples": 900},
    {"preset": "mixed", "n_variables": 5, "n_samples": 600},
)
"""Between them they need nearly everything a fit with the default settings can: lines, curves, noise of any shape,
growing scales, and all kinds of columns. Small ones suffice: what is compiled does not depend on the size."""


class Warmth(NamedTuple):
    """How long it took, and where the compiled code lies; None if no folder could be written."""

    seconds: float
    folder: Path | None


def warm_up(step: Callable[[int, int], object] | None = None) -> Warmth:
    """Fit small simulated tables, so that the code of a default fit is compiled and kept.

    Parameters
    ----------
    step : callable, optional
        Told how many tables are done, of how many.

    Returns
    -------
    Warmth
        Compiled code belongs to one version of the package, of Numba and of the processor; after an upgrade it is made
        anew.
    """
    began = time.perf_counter()
    for done, arguments in enumerate(_TABLES):
        if step is not None:
            step(done, len(_TABLES))
        data = simulate(n_regimes=3, random_state=0, **arguments)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nobody reads these fits
            LatentInterventionDAG(max_regimes=4).fit(data.X)
    folder = histogram.stats.cache_path
    return Warmth(time.perf_counter() - began, None if folder is None else Path(folder).parent)
