"""Are probabilities worth their name? Skill over a reference forecast, and reliability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from latentdo.graphs import GraphLike
from latentdo.graphs.matrix import check_same_names
from latentdo.metrics.inputs import align_graphs, align_matrices

Floats = NDArray[np.float64]
Forecasts = ArrayLike | pd.DataFrame | pd.Series


def edge_forecasts(true: GraphLike, probabilities: Forecasts) -> tuple[Floats, Floats]:
    """Outcomes (0/1) and probabilities of all ordered pairs of variables, flat, to be pooled over graphs.

    Parameters
    ----------
    true : array_like or DataFrame of 0/1, shape (d, d)
    probabilities : array_like or DataFrame in [0, 1], shape (d, d)
        Two frames are aligned by name. The diagonal is left out.

    Returns
    -------
    outcomes, probabilities : ndarray of float, shape (d * (d - 1),)

    Examples
    --------
    >>> edge_forecasts([[0, 1], [0, 0]], [[0, 0.9], [0.2, 0]])
    (array([1., 0.]), array([0.9, 0.2]))
    """
    first, second = align_matrices(true, probabilities)
    values = np.asarray(second, dtype=float)
    # The same shape and name checks as for two graphs.
    outcomes, _ = align_graphs(first, np.zeros(values.shape))
    off_diagonal = ~np.eye(len(outcomes), dtype=bool)
    return outcomes[off_diagonal].astype(float), _checked(values[off_diagonal])


def _checked(probabilities: Floats) -> Floats:
    if not len(probabilities):
        raise ValueError("there are no forecasts to judge")
    wrong = np.flatnonzero(~((probabilities >= 0) & (probabilities <= 1)))
    if len(wrong):
        raise ValueError(f"probabilities must be between 0 and 1, but one is {probabilities[wrong[0]]}")
    return probabilities


def _flat(true: Forecasts, probabilities: Forecasts) -> tuple[Floats, Floats]:
    """Read flat forecasts as they are, and square matrices as graphs."""
    if isinstance(true, pd.DataFrame) or np.ndim(np.asarray(true)) == 2:
        return edge_forecasts(true, probabilities)
    if isinstance(true, pd.Series) and isinstance(probabilities, pd.Series):
        check_same_names(
            probabilities.index, true.index, "the index of the probabilities", "that of the truth"
        )
        probabilities = probabilities.loc[list(true.index)]
    outcomes, values = np.asarray(true, dtype=float), np.asarray(probabilities, dtype=float)
    if outcomes.ndim != 1 or values.shape != outcomes.shape:
        raise ValueError(
            "give two graphs or two flat arrays of equal length,"
            f" not arrays of shapes {outcomes.shape} and {values.shape}"
        )
    if not np.isin(outcomes, (0, 1)).all():
        raise ValueError("true must hold only 0 and 1")
    return outcomes, _checked(values)


def _reference(true: Forecasts, outcomes: Floats, reference: Forecasts | float | None) -> Floats:
    if reference is None:
        return np.full_like(outcomes, outcomes.mean())
    if np.ndim(reference) == 0:
        return _checked(np.full_like(outcomes, float(np.asarray(reference))))
    return _flat(true, reference)[1]


def _skill(score: float, reference: float) -> float:
    """Compute ``1 - score / reference`` for losses, with its limits."""
    if reference == 0 or np.isinf(score):
        return float("nan") if score == reference else -float("inf")
    return float(1 - score / reference)


def brier_skill(
    true: Forecasts, probabilities: Forecasts, *, reference: Forecasts | float | None = None
) -> float:
    r"""Brier skill score, :math:`1 - \sum_i (p_i - y_i)^2 / \sum_i (b_i - y_i)^2`.

    1 is perfect, 0 no better than the reference, negative worse.

    Parameters
    ----------
    true : array_like or DataFrame of 0/1
        A graph of shape (d, d), whose diagonal is left out, or flat outcomes of shape (m,): to pool several
        graphs concatenate :func:`edge_forecasts`; for targets pass ``targets.ravel()``.
    probabilities : array_like or DataFrame
        Same shape; two frames are aligned by name, two series by their index.
    reference : None, float or like `probabilities`
        The forecast to beat. None: the base rate, the share of ones in `true` (known only in hindsight). A
        hard 0/1 answer is possible, too.

    Returns
    -------
    float
        NaN if the reference is perfect and so are the probabilities, minus infinity if only the reference is.

    Examples
    --------
    >>> brier_skill([1, 0, 0, 0], [0.25, 0.25, 0.25, 0.25])
    0.0
    >>> brier_skill([1, 0, 0, 0], [1, 0, 0, 0])
    1.0
    """
    outcomes, values = _flat(true, probabilities)
    other = _reference(true, outcomes, reference)
    return _skill(float(((values - outcomes) ** 2).mean()), float(((other - outcomes) ** 2).mean()))


def log_score_skill(
    true: Forecasts,
    probabilities: Forecasts,
    *,
    reference: Forecasts | float | None = None,
    clip: float = 0.0,
) -> float:
    r"""Logarithmic skill score: one minus the ratio of the mean :math:`-\log p_i(y_i)` to the reference's.

    Parameters
    ----------
    true, probabilities, reference
        See :func:`brier_skill`.
    clip : float
        Move probabilities (also the reference's) into ``[clip, 1 - clip]``. With 0, one certain forecast that
        is wrong gives minus infinity, as it should.

    Examples
    --------
    >>> round(log_score_skill([1, 0, 0, 0], [0.7, 0.1, 0.1, 0.1]), 2)
    0.7
    """
    outcomes, values = _flat(true, probabilities)
    other = _reference(true, outcomes, reference)
    return _skill(_log_loss(outcomes, values, clip), _log_loss(outcomes, other, clip))


def _log_loss(outcomes: Floats, probabilities: Floats, clip: float) -> float:
    given = np.clip(np.where(outcomes == 1, probabilities, 1 - probabilities), clip, 1 - clip)
    with np.errstate(divide="ignore"):
        return float(-np.log(given).mean())


@dataclass(frozen=True)
class Reliability:
    """Forecast probability against observed frequency, by bins.

    Attributes
    ----------
    edges : tuple of float, length bins + 1
        Limits of the bins.
    counts : tuple of int
        Forecasts in each bin.
    forecast, observed : tuple of float
        Mean probability and share of ones in each bin, NaN where it is empty.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    forecast: tuple[float, ...]
    observed: tuple[float, ...]

    @property
    def expected_calibration_error(self) -> float:
        """Mean distance of forecast and observed, weighted by counts; NaN without forecasts."""
        total = sum(self.counts)
        if not total:
            return float("nan")
        bins = zip(self.counts, self.forecast, self.observed, strict=True)
        return sum(count * abs(forecast - seen) for count, forecast, seen in bins if count) / total

    def to_frame(self) -> pd.DataFrame:
        """Return one row a bin: low, high, count, forecast, observed."""
        return pd.DataFrame(
            {
                "low": self.edges[:-1],
                "high": self.edges[1:],
                "count": self.counts,
                "forecast": self.forecast,
                "observed": self.observed,
            }
        )

    def as_dict(self) -> dict[str, float]:
        """Return the summary: number of forecasts and expected calibration error."""
        return {"count": sum(self.counts), "expected_calibration_error": self.expected_calibration_error}

    def __str__(self) -> str:
        summary = (
            f"{sum(self.counts)} forecasts, expected calibration error {self.expected_calibration_error:.3f}"
        )
        return f"{self.to_frame().round(3).to_string(index=False)}\n{summary}"


def reliability(
    true: Forecasts, probabilities: Forecasts, low: float = 0.05, high: float = 0.95, bins: int = 9
) -> Reliability:
    """Compare forecast probabilities with observed frequencies, in bins of equal width.

    Most pairs of variables are plainly not edges and would make any forecast look calibrated: only those
    with ``low < p < high`` count (with ``low=0`` also ``p = 0``, with ``high=1`` also ``p = 1``).

    Parameters
    ----------
    true, probabilities
        See :func:`brier_skill`.
    low, high : float
        Range of probabilities.
    bins : int
        Number of bins.

    Examples
    --------
    >>> table = reliability([0, 1, 1, 0], [0.2, 0.3, 0.8, 0.01], bins=2)
    >>> table.counts, table.observed, round(table.expected_calibration_error, 3)
    ((2, 1), (0.5, 1.0), 0.233)
    """
    if not 0 <= low < high <= 1 or bins < 1:
        raise ValueError(f"need 0 <= low < high <= 1 and bins >= 1, not low={low}, high={high}, bins={bins}")
    outcomes, values = _flat(true, probabilities)
    inside = ((values > low) | (low == 0)) & ((values < high) | (high == 1))
    outcomes, values = outcomes[inside], values[inside]
    edges = np.linspace(low, high, bins + 1)
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, bins - 1)
    counts = np.bincount(place, minlength=bins)
    with np.errstate(invalid="ignore"):
        forecast = np.bincount(place, weights=values, minlength=bins) / counts
        observed = np.bincount(place, weights=outcomes, minlength=bins) / counts
    return Reliability(*(tuple(column.tolist()) for column in (edges, counts, forecast, observed)))


def expected_calibration_error(
    true: Forecasts, probabilities: Forecasts, low: float = 0.05, high: float = 0.95, bins: int = 9
) -> float:
    """Mean distance of forecast and observed frequency over the bins of :func:`reliability`.

    Examples
    --------
    >>> expected_calibration_error([0, 1], [0.5, 0.5])
    0.0
    """
    return reliability(true, probabilities, low, high, bins).expected_calibration_error
