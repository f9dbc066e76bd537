"""When a long run keeps what it has: often at first, then once a minute, and never for much of its time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from latentdo.notices import warn

CHECKPOINT_SECONDS: Final = 60.0
"""Longest time between two checkpoints unless the user says otherwise: a minute of work is cheap to repeat."""

_FIRST: Final = 2.0
"""Seconds to the first checkpoint: less is done again sooner than it is written and read."""
_GROWTH: Final = 0.25
"""Share of the time so far until the next one, so that a kill early on loses little and later intervals are longer."""
_COST: Final = 20.0
"""Times as long as the last one took to write: at most a twentieth of a run goes into checkpoints."""


class Cadence:
    """Says when the next checkpoint is due.

    Parameters
    ----------
    seconds : float
        Longest time between two checkpoints, unless writing one takes long; 0 for one after every step.

    Examples
    --------
    >>> now = [0.0]
    >>> cadence = Cadence(60.0, clock=lambda: now[0])
    >>> moments = []
    >>> for second in range(600):
    ...     now[0] = float(second)
    ...     if cadence.is_due():
    ...         cadence.done()
    ...         moments.append(second)
    >>> moments[:5], moments[-1] - moments[-2]
    ([2, 4, 6, 8, 10], 60)
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._longest = check_seconds(seconds)
        self._clock = clock
        self._began = self._last = self._asked = clock()
        self._cost = 0.0

    def is_due(self) -> bool:
        """Whether enough time has gone by; :meth:`done` is to be called after writing."""
        self._asked = self._clock()
        wait = min(max(_FIRST, _GROWTH * (self._last - self._began)), self._longest)
        return self._asked - self._last >= max(wait, _COST * self._cost if self._longest else 0.0)

    def done(self) -> None:
        """Take note that a checkpoint was written."""
        self._last = self._clock()
        self._cost = self._last - self._asked


class Keeper:
    """Writes checkpoints when they are due; one that cannot be written is a warning, because the work goes on.

    Parameters
    ----------
    path : Path or str, optional
        The file; None if nothing is kept.
    write : callable
        Writes it.
    seconds : float
        See :class:`Cadence`.
    """

    def __init__(self, path: str | Path | None, write: Callable[[Path], object], seconds: float) -> None:
        self._path = None if path is None else Path(path)
        self._write = write
        self._cadence = Cadence(seconds)

    def step(self) -> None:
        """Something was done: write if it is time."""
        if self._path is not None and self._cadence.is_due():
            self.keep()

    def keep(self) -> None:
        """Write now."""
        if self._path is None:
            return
        try:
            self._write(self._path)
        except OSError as error:
            warn(
                f"the checkpoint {str(self._path)!r} could not be written ({error.strerror or error}); the work goes "
                "on, but would be lost if it were interrupted now.",
                UserWarning,
                stacklevel=3,
            )
        self._cadence.done()


def check_seconds(seconds: float) -> float:
    """Seconds between checkpoints, or what is wrong with them."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        raise ValueError(f"checkpoint_seconds={seconds!r} must be a number of at least 0")
    return float(seconds)
