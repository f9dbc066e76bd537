"""One check: what was measured, how surprising it is, and what to tell a user."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

Array = NDArray[np.float64]
_UNKEPT: Final = ("pairs", "weight")


@dataclass(frozen=True)
class Check:
    """What one check found.

    Parameters
    ----------
    check : str
        What was checked.
    statistic : float
        The largest deviation, in the unit that ``words`` names.
    p_value : float or None
        How probable one as large is if the assumption holds, corrected for the number of places that were looked at;
        where two explanations are compared, the probability of the one that the fit assumes; None where nothing is
        random.
    failed : bool
        Whether the assumption is refuted.
    words : str
        One sentence, and the remedy if it failed.
    pairs : tuple of pairs of names, optional
        Variables between which arrows are in doubt if it failed, see :mod:`latentdo.checks.doubts`; None: all.
    weight : float, optional
        How probable it is that the assumption does not hold; None: one if the check failed, else zero.
    """

    check: str
    statistic: float
    p_value: float | None
    failed: bool
    words: str
    pairs: tuple[tuple[str, str], ...] | None = None
    weight: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """What a result keeps; its probabilities tell which arrows are in doubt."""
        return {name: value for name, value in asdict(self).items() if name not in _UNKEPT}


def failures(checks: Iterable[Check]) -> list[str]:
    """What to tell of the checks that failed."""
    return [one.words for one in checks if one.failed]


def z_value(products: Array, weights: Array | None = None) -> float:
    """How far the mean of products of rows ``[n]`` is from zero, in standard errors; 0 if all of them are zero."""
    counted = products if weights is None else products * weights
    size = float(np.sqrt((counted**2).sum()))
    return float(counted.sum()) / size if size > 0.0 else 0.0


def p_value(largest: float, places: int) -> float:
    """Two-sided, of the largest of so many standard normal values, independent or not (Bonferroni)."""
    return float(min(2.0 * norm.sf(abs(largest)) * max(places, 1), 1.0))


def touching(some: Collection[str], names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """All pairs of names with one of ``some`` among them.

    Examples
    --------
    >>> touching(["b"], ["a", "b", "c"])
    (('a', 'b'), ('b', 'c'))
    """
    return tuple((a, b) for a, b in combinations(names, 2) if a in some or b in some)


def listed(words: Sequence[str], most: int = 4) -> str:
    """Words in a sentence; of many, the first."""
    shown = list(words[:most]) + ([f"{len(words) - most} more"] if len(words) > most else [])
    return " and ".join(shown) if len(shown) < 3 else f"{', '.join(shown[:-1])} and {shown[-1]}"
