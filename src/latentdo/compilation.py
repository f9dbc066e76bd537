"""Inner loops as machine code, kept on disk wherever that is possible: a cache saves seconds and is never needed."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numba
from numba.core.caching import FunctionCache

__all__ = ["njit"]

_UNUSABLE = (OSError, EOFError, pickle.UnpicklingError)
"""What a full disk raises, a folder that has gone, or a file that was cut short when the machine lost power."""


class _Cache(FunctionCache):
    """Numba's cache, which lets a function be compiled anew if a file of its own cannot be read or written."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except _UNUSABLE:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except _UNUSABLE:
            self.disable()  # type: ignore[no-untyped-call]


def njit(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called; later processes find the machine code in Numba's cache.

    The cache lies beside the package, or in the user's home if that cannot be written, or in ``NUMBA_CACHE_DIR``. Where
    none of them can be written, every process compiles for itself.

    Examples
    --------
    >>> @njit
    ... def double(x):
    ...     return x + x
    >>> double(2.5)
    5.0
    """
    try:
        compiled: Any = numba.njit(cache=True)(function)
    except RuntimeError:  # Numba has found no folder to write to
        return numba.njit(function)
    if compiled is not function:  # as it is where NUMBA_DISABLE_JIT asks for plain Python
        compiled._cache = _Cache(function)  # type: ignore[no-untyped-call]
    return compiled
