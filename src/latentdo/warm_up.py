"""Compile beforehand what first fits would compile, so that nobody waits for it at the first table."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

from latentdo.estimator import LatentInterventionDAG
from latentdo.model.mechanisms.histograms import histogram
from latentdo.notices import collecting
from latentdo.scm import simulate

__all__ = ["Warmth", "warm_up"]

_FITS: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({"preset": "field", "mechanism": "smooth", "noise": "gamma", "n_variables": 5, "n_samples": 900}, {}),
    ({"preset": "mixed", "n_variables": 5, "n_samples": 600}, {}),
    ({"n_variables": 14, "n_samples": 600}, {"density": "linear", "noise": "gaussian"}),
)
"""Tables to simulate, and settings to fit them with. Between them they need nearly everything a default fit can: lines,
curves, noise of any shape, growing scales, all kinds of columns, and graphs too large for an exact search. Small ones
suffice: what is compiled does not depend on the number of rows."""


class Warmth(NamedTuple):
    """How long it took, and where the compiled code lies; None if no folder could be written."""

    seconds: float
    folder: Path | None


def warm_up() -> Warmth:
    """Fit small simulated tables, so that the code of default fits is compiled and kept.

    Compiled code belongs to one version of the package, of Numba and of the processor; an upgrade asks for it anew.
    """
    began = time.perf_counter()
    for table, settings in _FITS:
        with collecting():  # nobody reads what these fits warn of
            data = simulate(n_regimes=3, random_state=0, **table)
            LatentInterventionDAG(max_regimes=4, **settings).fit(data.X)
    folder = histogram.stats.cache_path
    return Warmth(time.perf_counter() - began, None if folder is None else Path(folder).parent)
