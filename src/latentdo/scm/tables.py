"""Rows of a model as a table for people, and back: integers for counts and 0/1, categories for levels."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from latentdo.scm.discrete import CATEGORICAL, CONTINUOUS
from latentdo.scm.noise import FloatArray
from latentdo.scm.variable import Variable


def to_frame(values: FloatArray, variables: Mapping[str, Variable]) -> pd.DataFrame:
    """Table of rows ``[n, d]`` whose columns are ``variables``."""
    if all(variable.kind == CONTINUOUS for variable in variables.values()):
        return pd.DataFrame(values, columns=list(variables))
    return pd.DataFrame(
        {
            name: _shown(column, variable)
            for column, (name, variable) in zip(values.T, variables.items(), strict=True)
        }
    )


def _shown(column: FloatArray, variable: Variable) -> pd.Series:
    if variable.kind == CONTINUOUS:
        return pd.Series(column)
    whole = column.astype(np.int64)
    if variable.kind == CATEGORICAL:
        return pd.Series(pd.Categorical.from_codes(whole, categories=pd.Index(variable.levels)))
    return pd.Series(whole)


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
    places = pd.Index(variable.levels).get_indexer(pd.Index(column.astype(object)))
    unknown = np.flatnonzero(places < 0)
    if len(unknown):
        row = int(unknown[0])
        raise ValueError(
            f"column {column.name!r}, row {row}: {column.iloc[row]!r} is none of its levels "
            f"{', '.join(variable.levels)}"
        )
    return places.astype(np.float64)
