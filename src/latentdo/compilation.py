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


def _numbers(function: Callable[..., Any], callers: tuple[Callable[..., Any], ...] = ()) -> tuple[Any, ...]:
    """Numbers that a function, and the compiled ones it calls, find in their modules, each after its name."""
    found: list[Any] = []
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        called = getattr(value, "py_func", None)
        if called is not None and called not in callers:
            found += _numbers(called, (*callers, function))
        elif isinstance(value, int | float | tuple):
            found += (name, value)
    return tuple(found)


class _Cache(FunctionCache):
    """Numba's cache, which lets a function be compiled anew if a file of its own cannot be read or written.

    Numba itself notices that the file of a function has changed, but not that a number has which the file imports, such
    as one of the settings. So these numbers are part of what is looked up.
    """

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), _numbers(self._py_func))  # type: ignore[no-untyped-call]

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
