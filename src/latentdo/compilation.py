"""Inner loops as machine code, kept on disk wherever that is possible: a cache saves seconds and is never needed."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import numba
from numba.core.caching import FunctionCache

__all__ = ["njit", "vectorised"]

_UNUSABLE = (OSError, EOFError, pickle.UnpicklingError)
"""What a full disk raises, a folder that has gone, or a file that was cut short when the machine lost power."""


def _contents(function: Callable[..., Any], callers: tuple[Callable[..., Any], ...] = ()) -> tuple[Any, ...]:
    """What a function consists of beyond its file: numbers it finds in its module, and compiled functions it calls.

    Each number comes after its name, and each function with its code and what it consists of itself.
    """
    found: list[Any] = []
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        called = getattr(value, "py_func", None)
        if called is not None and called not in callers:
            code = called.__code__
            found += (code.co_code, code.co_consts, *_contents(called, (*callers, function)))
        elif isinstance(value, int | float | tuple):
            found += (name, value)
    return tuple(found)


class _Cache(FunctionCache):
    """Numba's cache, which lets a function be compiled anew if a file of its own cannot be read or written.

    Numba itself notices that the file of a function has changed, but not that something has which the file imports: one
    of the settings, or a function. So these are part of what is looked up.
    """

    def __init__(self, function: Callable[..., Any], fastmath: Sequence[str]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._fastmath = fastmath

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        contents = repr((self._fastmath, _contents(self._py_func))).encode()
        return (*super()._index_key(sig, codegen), sha256(contents).digest())  # type: ignore[no-untyped-call]

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


def _compile(function: Callable[..., Any], *fastmath: str) -> Any:
    # Divisions that need not ask whether they are by zero can be made several at a time.
    options: dict[str, Any] = {"error_model": "numpy", "fastmath": set(fastmath)}
    try:
        compiled: Any = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # Numba has found no folder to write to
        return numba.njit(**options)(function)
    if compiled is not function:  # as it is where NUMBA_DISABLE_JIT asks for plain Python
        compiled._cache = _Cache(function, fastmath)
    return compiled


def njit(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called; later processes find the machine code in Numba's cache.

    The cache lies beside the package, or in the user's home if that cannot be written, or in ``NUMBA_CACHE_DIR``. Where
    none of them can be written, every process compiles for itself. What is divided by zero is infinite, as in NumPy.

    Examples
    --------
    >>> @njit
    ... def double(x):
    ...     return x + x
    >>> double(2.5)
    5.0
    """
    return _compile(function, "contract")  # none at all would mean those of whoever calls it first


def vectorised(function: Callable[..., Any]) -> Any:
    """The same for loops over arrays that may take several elements at a time, and add sums up in another order."""
    return _compile(function, "contract", "reassoc", "nsz", "arcp")
