"""Rows of a model as a table for people, and back: integers for counts and 0/1, categories for levels."""

from collections.abc import Mapping
from typing import cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from latentdo.data.kinds import Kind, KindName
from latentdo.scm.discrete import BINARY, CATEGORICAL, CONTINUOUS
from latentdo.scm.noise import FloatArray
from latentdo.scm.variable import Variable


def to_frame(values: FloatArray, variables: Mapping[str, Variable]) -> pd.DataFrame:
    """Table of rows ``[n, d]`` whose columns are ``variables``."""
    if all(variable.kind == CONTINUOUS for variable in variables.values()):
        return pd.DataFrame(values, columns=list(variables))
    return pd.DataFrame(
        {
            name: _kind(variable).decode(column)
            for column, (name, variable) in zip(values.T, variables.items(), strict=True)
        }
    )


def to_array(X: pd.DataFrame | npt.ArrayLike, variables: Mapping[str, Variable]) -> FloatArray:
    """Rows ``[n, d]`` in the order of ``variables``; a table is matched by column name, an array by column order.

    In an array a level is its place.
    """
    names = list(variables)
    if isinstance(X, pd.DataFrame):
        missing = [name for name in names if name not in X.columns]
        if missing:
            raise ValueError(f"the data lack the variable {missing[0]!r}; they have {list(X.columns)}")
        columns = [_places(X[name], variables[name]) for name in names]
        return np.column_stack(columns) if columns else np.empty((len(X), 0))
    values = np.asarray(X, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != len(names):
        raise ValueError(f"expected rows with {len(names)} columns {names}, got shape {values.shape}")
    return values


def _places(column: pd.Series, variable: Variable) -> FloatArray:
    if variable.kind != CATEGORICAL:
        return column.to_numpy(dtype=np.float64)
    return _kind(variable).encode(column, str(column.name))


def _kind(variable: Variable) -> Kind:
    """What a column of this variable is to the rest of the package."""
    levels = ("0", "1") if variable.kind == BINARY else variable.levels
    return Kind(cast("KindName", variable.kind), levels)
