"""What the package warns of: fits that run side by side in threads hear their own warnings only.

``warnings.catch_warnings`` swaps the filters of the whole process: two threads that use it at once catch each other's
warnings, and may leave the wrong filters behind. Here, whoever wants to hear or silence the package listens in a
context variable, which every thread has for itself.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

__all__ = ["Notice", "as_part", "collecting", "ignoring_in_sklearn", "is_part", "warn"]


@dataclass(frozen=True)
class Notice:
    """A warning that somebody listens to."""

    message: str
    category: type[Warning]


_listener: ContextVar[list[Notice] | None] = ContextVar("listener", default=None)


def warn(message: str, category: type[Warning], stacklevel: int = 1) -> None:
    """Warn whoever listens, or else the user; arguments as those of :func:`warnings.warn`."""
    heard = _listener.get()
    if heard is None:
        warnings.warn(message, category, stacklevel=stacklevel + 1)
    else:
        heard.append(Notice(message, category))


@contextmanager
def collecting() -> Iterator[list[Notice]]:
    """Keep what the package warns of within the block from the user; the list holds it.

    Examples
    --------
    >>> with collecting() as heard:
    ...     warn("the table is small", UserWarning)
    >>> heard[0].message
    'the table is small'
    """
    heard: list[Notice] = []
    token = _listener.set(heard)
    try:
        yield heard
    finally:
        _listener.reset(token)


_part: ContextVar[bool] = ContextVar("part", default=False)


@contextmanager
def as_part() -> Iterator[None]:
    """Fits within the block are parts of a larger question: nobody asks each of them what speaks against it.

    Examples
    --------
    >>> with as_part():
    ...     is_part()
    True
    >>> is_part()
    False
    """
    token = _part.set(True)
    try:
        yield
    finally:
        _part.reset(token)


def is_part() -> bool:
    """Whether a fit that runs now is a part of a larger question."""
    return _part.get()


@contextmanager
def ignoring_in_sklearn(category: type[Warning]) -> Iterator[None]:
    """Ignore warnings of scikit-learn within the block, in whatever thread; the user's filters stay as they are.

    Every block adds its own entry to the list of filters and takes one away again, so blocks may overlap.
    """
    filters = cast("list[Any]", warnings.filters)
    entry = ("ignore", None, category, re.compile(r"sklearn\."), 0)
    filters.insert(0, entry)
    try:
        yield
    finally:
        if entry in filters:  # not if somebody has reset them meanwhile
            filters.remove(entry)
