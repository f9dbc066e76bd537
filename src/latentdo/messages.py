"""How values and names look in a message: short, whatever they are."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Hashable, Iterable
from typing import Any

__all__ = ["listed", "shown"]

_SHOWN = 8  # at most so many names in one message
_LONG_INTEGER = 200  # bits; Python refuses to write integers of many thousands


class _Short(reprlib.Repr):
    """Values as Python writes them, cut where they are long or deep: a message must not fail at what it is about."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 80
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = 6
        self.maxlevel = 3

    def repr_int(self, x: int, level: int) -> str:  # noqa: ARG002  (the signature is reprlib's)
        if x.bit_length() <= _LONG_INTEGER:
            return repr(x)
        return f"an integer of about {round(x.bit_length() * math.log10(2))} digits"


_short = _Short()


def shown(value: Any) -> str:
    """Write a value for a message, cut if it is long or deeply nested.

    Examples
    --------
    >>> shown(["a", 1.5]), shown(10**5000)
    ("['a', 1.5]", 'an integer of about 5000 digits')
    """
    return _short.repr(value)


def listed(names: Iterable[Hashable]) -> str:
    """Write a list of names for a message, shortened if long."""
    quoted = [repr(name) for name in names]
    return ", ".join(quoted[:_SHOWN]) + (f", ... ({len(quoted)} in all)" if len(quoted) > _SHOWN else "")
