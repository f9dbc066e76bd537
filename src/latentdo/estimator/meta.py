"""What estimators made of an estimator share: reading its rows, counting, and plain values for fingerprints."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from latentdo.data import Dataset


def read_rows(estimator: BaseEstimator, X: Any, **known: Any) -> Dataset:
    """Rows, and what is known of them (labels, targets, groups, time, ...), as the estimator itself would read them."""
    parameters = estimator.get_params()
    return Dataset.from_table(
        X,
        **known,
        observational=parameters["observational"],
        transform=parameters["transform"],
        kinds=parameters["kinds"],
        missing=parameters["missing"],
    )


def check_count(name: str, value: Any) -> int:
    """A number of fits, or what is wrong with it.

    Examples
    --------
    >>> check_count("n_trials", 3)
    3
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name}={value!r} must be a whole number of at least 1")
    return int(value)


def plain(value: Any) -> Any:
    """What JSON can hold of a parameter: arrays as lists, anything else that it cannot hold as text."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)
