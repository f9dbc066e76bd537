"""What real tables do to the model's assumptions: one violation at a time, of a size that hurts.

==================  ========================================================================================
violation           what happens
==================  ========================================================================================
rounding            values have few digits: steps of about a quarter of a column's standard deviation
detection-limit     the lowest fifth of every column is reported as its limit
zeros               columns start at zero, and a fifth of all cells is zero
common-factor       one hidden variable adds 0.7 of its standard deviation to every column ("cell size")
measurement-error   independent errors of half a standard deviation, which no effect inherits
dependent-rows      the noise of a row resembles that of the row before it (see `Autocorrelated`)
copies              two columns appear twice, the second time with an error of a hundredth
log-normal          columns are exponentials of what the model made
==================  ========================================================================================

Columns that are not continuous stay as they are, except that zeros also fall on counts: molecules that were missed.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np
import pandas as pd

from latentdo.scm.discrete import CONTINUOUS, COUNT
from latentdo.scm.model import SCM
from latentdo.scm.noise import Autocorrelated, FloatArray
from latentdo.scm.variable import Variable

DEPENDENT_ROWS: Final = "dependent-rows"
COPIES: Final = "copies"
ZEROS: Final = "zeros"
MISSED: Final = 0.2
"""Share of cells that are zero."""

COPY_SUFFIX: Final = "_copy"


def _deviation(X: FloatArray) -> FloatArray:
    """Standard deviation of every column; one for a constant, which has no size to measure by."""
    return np.where(np.ptp(X, axis=0) == 0, 1.0, X.std(axis=0))


def _rounding(X: FloatArray, rng: np.random.Generator) -> FloatArray:  # noqa: ARG001
    quarter = 0.25 * _deviation(X)
    digit = 10.0 ** np.floor(np.log10(quarter))
    step = np.round(quarter / digit) * digit
    return np.asarray(np.round(X / step) * step)


def _detection_limit(X: FloatArray, rng: np.random.Generator) -> FloatArray:  # noqa: ARG001
    return np.maximum(X, np.quantile(X, 0.2, axis=0))


def _zeros(X: FloatArray, rng: np.random.Generator) -> FloatArray:
    return np.where(rng.random(X.shape) < MISSED, 0.0, X - X.min(axis=0))


def _common_factor(X: FloatArray, rng: np.random.Generator) -> FloatArray:
    return np.asarray(X + 0.7 * _deviation(X) * rng.standard_normal((len(X), 1)))


def _measurement_error(X: FloatArray, rng: np.random.Generator) -> FloatArray:
    return np.asarray(X + 0.5 * _deviation(X) * rng.standard_normal(X.shape))


def _log_normal(X: FloatArray, rng: np.random.Generator) -> FloatArray:  # noqa: ARG001
    return np.asarray(np.exp((X - X.mean(axis=0)) / _deviation(X)))


_CELLS: Mapping[str, Callable[[FloatArray, np.random.Generator], FloatArray]] = MappingProxyType(
    {
        "rounding": _rounding,
        "detection-limit": _detection_limit,
        ZEROS: _zeros,
        "common-factor": _common_factor,
        "measurement-error": _measurement_error,
        "log-normal": _log_normal,
    }
)

VIOLATIONS: Final = (*_CELLS, DEPENDENT_ROWS, COPIES)
"""Names that ``simulate(violation=...)`` knows."""


def with_dependent_rows(scm: SCM) -> SCM:
    """Return the same model, except that the noise of a row resembles that of the row before."""
    return SCM(
        {
            name: Variable(old.mechanism, Autocorrelated(old.noise)) if old.kind == CONTINUOUS else old
            for name, old in scm.variables.items()
        }
    )


def violate(
    X: pd.DataFrame, violation: str, rng: np.random.Generator, kinds: Mapping[str, str]
) -> pd.DataFrame:
    """Return the table as the violation leaves it; dependent rows were drawn as such and stay."""
    continuous = [name for name in X.columns if kinds[name] == CONTINUOUS]
    counts = [name for name in X.columns if kinds[name] == COUNT] if violation == ZEROS else []
    if not continuous and not counts:
        raise ValueError(f"violation={violation!r} befalls continuous columns, and this table has none")
    if violation == COPIES:
        chosen = rng.choice(np.array(continuous, dtype=object), size=min(2, len(continuous)), replace=False)
        errors = rng.standard_normal((len(X), len(chosen)))
        copies = X[chosen] + 0.01 * X[chosen].std(ddof=0).to_numpy() * errors
        return pd.concat([X, copies.add_suffix(COPY_SUFFIX)], axis=1)
    if violation in _CELLS:
        changed = _CELLS[violation](X[continuous].to_numpy(), rng)
        X = X.assign(**dict(zip(continuous, changed.T, strict=True)))
        for name in counts:
            X[name] = X[name].where(rng.random(len(X)) >= MISSED, 0)
    return X


def with_copies(adjacency: pd.DataFrame, columns: pd.Index) -> pd.DataFrame:
    """Return the true graph over all ``columns``: a copy is an effect of its original."""
    extended = adjacency.reindex(index=columns, columns=columns, fill_value=0)
    for copy in columns.difference(adjacency.columns):
        extended.loc[copy.removesuffix(COPY_SUFFIX), copy] = 1
    return extended
