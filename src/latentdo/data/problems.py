"""Everything that keeps a table in memory from being fitted, in one error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

from latentdo.data.missing import check_seen
from latentdo.data.refusals import (
    ColumnError,
    all_problems,
    check_finite,
    check_infinite,
    check_varying,
    find_problems,
)
from latentdo.data.table import Missing, read_columns


@contextmanager
def every_problem(
    X: Any,
    columns: Sequence[str] | None,
    kinds: Any,
    missing: Missing,
    label_remedy: str | None,
    *,
    allow_constant: bool = False,
) -> Iterator[None]:
    """Where some columns of ``X`` are refused, look for what else is wrong, and refuse all of it together.

    The arguments are those of ``Dataset.from_table``.

    Raises
    ------
    ValueError
        With every problem, and what to do about all of them.
    """

    def look(without: frozenset[str], given: Mapping[str, Any]) -> None:
        """Check the table without some columns, and as if some arguments had been given."""
        read = read_columns(X, columns, kinds, label_remedy=label_remedy, without=without)
        values, how = read.values, given.get("missing", missing)
        if how == "drop":
            values = values[np.isfinite(values).all(axis=1)]
        elif how == "model":
            check_infinite(values, read.names)
            check_seen(values, read.names)
        else:
            check_finite(values, read.names)
        if not allow_constant and len(values) > 1:
            check_varying(values, read.names)

    try:
        yield
    except ColumnError as error:
        problems = find_problems(look)
        if len(problems) < 2:
            raise
        leave_out = "dropping {names} from X" if isinstance(X, pd.DataFrame) else "leaving {names} out of X"
        raise ValueError(all_problems("X", problems, leave_out, " and passing ")) from error
