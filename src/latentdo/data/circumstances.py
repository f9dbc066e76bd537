"""When and where rows were measured, and how much they count."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[np.float64]

HARMONICS: Final = 6
"""Sines and cosines of every cycle: a day is resolved to four hours."""

LONGEST_GAP: Final = 1.5
"""Times the usual gap; a row after a longer one has no past."""

SPANS: Final = 2.0
"""Cycles that the times have to cover before one is looked for."""

DAY, WEEK = 86_400.0, 604_800.0
PERIODS: Final[Mapping[str, float]] = {"hour": 3600.0, "day": DAY, "week": WEEK, "year": 365.2425 * DAY}
"""Cycles that have a name, in seconds."""

ROWS: Final = ("time", "series", "batch", "weight", "offset")
"""What is said of every row."""


@dataclass(frozen=True, eq=False)
class Circumstances:
    """When and where rows were measured, and how much they count; everything may be unknown.

    Parameters
    ----------
    time : ndarray [n], optional
        Times; of dates, seconds since 1970.
    series : ndarray [n] of int64, optional
        Series of every row; one, if there is a time and no series.
    batch : ndarray [n] of int64, optional
        Batch of every row, numbered as in ``batch_names``.
    batch_names : tuple
        The user's names of the batches.
    dated : bool
        Whether times are dates, so that days and weeks mean something.
    series_names : tuple
        The user's names of the series; series with larger numbers are rows on their own.
    counted : bool
        Whether nobody gave times, and they are the numbers of rows.
    weight : ndarray [n], optional
        How often every row counts, above 0; once, if that is unknown.
    offset : ndarray [n], optional
        What counts of every row are in proportion to, above 0: its library size, or hours of observation.
    """

    time: Array | None = None
    series: NDArray[np.int64] | None = None
    batch: NDArray[np.int64] | None = None
    batch_names: tuple[Hashable, ...] = ()
    dated: bool = False
    series_names: tuple[Hashable, ...] = ()
    counted: bool = False
    weight: Array | None = None
    offset: Array | None = None

    def check(self, n_rows: int) -> None:
        """Refuse what could not be said of so many rows, with a :class:`ValueError`."""
        if self.time is not None and not (
            self.time.shape == (n_rows,) and self.time.dtype.kind == "f" and np.isfinite(self.time).all()
        ):
            raise ValueError("time is not one number per row")
        for name, most in (("series", None), ("batch", len(self.batch_names))):
            codes = getattr(self, name)
            if codes is not None and not (
                codes.shape == (n_rows,)
                and codes.dtype.kind == "i"
                and codes.min() >= 0
                and (most is None or codes.max() < most)
            ):
                raise ValueError(f"{name} is not one number from 0 per row")
        if self.series is not None and self.time is None:
            raise ValueError("series have no time")
        for name in ("weight", "offset"):
            held = getattr(self, name)
            if held is not None and not (
                held.shape == (n_rows,)
                and held.dtype.kind == "f"
                and np.isfinite(held).all()
                and (held > 0.0).all()
            ):
                raise ValueError(f"{name} is not one positive number per row")

    def take(self, rows: NDArray[np.int64]) -> Self:
        """Those of some rows."""
        picked: dict[str, Any] = {
            name: None if (held := getattr(self, name)) is None else held[rows] for name in ROWS
        }
        return replace(self, **picked)

    def total(self, n_rows: int) -> float:
        """How many rows so many count for."""
        return float(n_rows) if self.weight is None else float(self.weight.sum())

    def shown(self, times: Array) -> Any:
        """Times in the user's form, ``[n]``: dates, if they were dates."""
        if not self.dated:
            return times
        return pd.to_datetime(np.round(times * 1e6).astype(np.int64), unit="us", utc=True)

    def series_of_rows(self) -> pd.Series[Any]:
        """The user's name of every row's series; None for rows on their own."""
        assert self.series is not None
        named = dict(enumerate(self.series_names))
        return pd.Series([named.get(code) for code in self.series.tolist()], dtype=object)

    def table(self) -> dict[str, Any]:
        """What is known of every row, by name, in the user's words."""
        found: dict[str, Any] = {}
        if self.series is not None:
            found["series"] = self.series_of_rows()
        if self.time is not None and not self.counted:
            found["time"] = self.shown(self.time)
        if self.batch is not None:
            found["batch"] = pd.Series([self.batch_names[code] for code in self.batch.tolist()], dtype=object)
        if self.weight is not None:
            found["weight"] = self.weight
        if self.offset is not None:
            found["offset"] = self.offset
        return found

    def order(self) -> tuple[NDArray[np.int64], Array]:
        """The rows series by series in order of time, and the time since the row before; infinite for the first."""
        assert self.time is not None
        series = np.zeros(self.time.size, dtype=np.int64) if self.series is None else self.series
        order = np.lexsort((self.time, series))
        gaps = np.diff(self.time[order], prepend=-np.inf)
        gaps[np.flatnonzero(np.diff(series[order], prepend=series[order[:1]] - 1))] = np.inf
        return order, gaps

    def usual_gap(self) -> float:
        """The median time between neighbours that do not share theirs; 0 if there are none.

        Where gaps are irregular it is more, so that most rows have a past: all but one in ten.
        """
        _, gaps = self.order()
        finite = gaps[np.isfinite(gaps) & (gaps > 0.0)]
        if not finite.size:
            return 0.0
        median, most = np.quantile(finite, (0.5, 0.9))
        return float(max(median, most / LONGEST_GAP))

    def before(self, lags: int, usual: float) -> NDArray[np.int64]:
        """Which row comes 1 .. ``lags`` steps before each, ``[lags, n]``; -1 if none does, or after too long a gap."""
        order, gaps = self.order()
        follows = (gaps > 0.0) & (gaps <= LONGEST_GAP * usual)
        found = np.full((lags, order.size), -1, dtype=np.int64)
        last = np.full(order.size, -1, dtype=np.int64)
        last[order[1:]] = np.where(follows[1:], order[:-1], -1)
        at = np.arange(order.size)
        for lag in range(lags):
            at = np.where(at >= 0, last[at], -1)
            found[lag] = at
        return found

    def cycles(self, seasonality: str | Sequence[str | float] | None) -> tuple[float, ...]:
        """Lengths of the cycles to look for; "auto" means days and weeks, where times are dates and cover two.

        Raises
        ------
        ValueError
            If a cycle has a name and times are no dates.
        """
        if self.time is None or seasonality is None or not self.time.size:
            return ()
        if seasonality == "auto":
            span, usual = float(np.ptp(self.time)), self.usual_gap()
            fits = [one for one in (DAY, WEEK) if SPANS * one <= span and HARMONICS * usual <= one]
            return tuple(fits) if self.dated else ()
        found = []
        for one in [seasonality] if isinstance(seasonality, str | float | int) else seasonality:
            if isinstance(one, str) and not self.dated:
                raise ValueError(
                    f"seasonality={one!r} has a meaning only if time holds dates; with numbers, give the length of the "
                    "cycle in the unit of time"
                )
            found.append(PERIODS[one] if isinstance(one, str) else float(one))
        return tuple(found)
