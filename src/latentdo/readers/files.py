"""Whether there is a file, what it is, and how much comes out of it."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from typing_extensions import Buffer

PACKED: Final[dict[str, Callable[..., Any]]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
"""Endings of compressed files, and what unpacks them."""

UNPACKED_VARIABLE: Final = "LATENTDO_MAX_UNPACKED_GB"
"""Environment variable with the largest size, in 10^9 bytes, to which a compressed file may unpack."""

_GIGABYTE: Final = 1_000_000_000
_ALWAYS_UNPACKED: Final = _GIGABYTE  # any computer that fits models holds so much
_USUAL_RATIO: Final = 100  # text shrinks to a tenth, tables full of zeros to a fiftieth

_KINDS: Final = (
    (stat.S_ISDIR, "a folder, not a file"),
    (stat.S_ISFIFO, "a pipe, which can be read only once; write what it holds to a file first"),
    (stat.S_ISSOCK, "a socket, not a file"),
    (stat.S_ISCHR, "a device, not a file; write what it holds to a file first"),
    (stat.S_ISBLK, "a device, not a file"),
)


def check_file(path: Path, purpose: str = "") -> None:
    """Refuse what is not an ordinary file, and say what it is instead.

    Pipes (process substitution, ``/dev/stdin`` behind ``|``) are refused as well: a table is read twice, first to find
    what is wrong with it.

    Parameters
    ----------
    path : Path
        The file.
    purpose : str
        What it was to be read for, if that is not obvious; ends the message.

    Raises
    ------
    FileNotFoundError
        If there is nothing.
    ValueError
        If there is something else than a file.
    """
    words = purpose and f" {purpose}"
    if "\0" in str(path):
        raise ValueError(f"{str(path)!r} is not the name of a file{words}: it holds a NUL character.")
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(
            f"There is no file {str(path)!r}{words}; check the name and the current folder."
        ) from None
    for is_kind, kind in _KINDS:
        if is_kind(mode):
            raise ValueError(f"{str(path)!r}{words} is {kind}.")


def open_text(path: Path, encoding: str) -> IO[str]:
    """Open a text file, compressed or not; line ends stay as they are.

    What unpacks to more than it may (:func:`check_unpacked`) is refused while it unpacks.
    """
    opener = PACKED.get(path.suffix.lower())
    if opener is None:
        return path.open(encoding=encoding, newline="")
    unpacking = _Unpacking(opener(path, "rb"), path)
    return io.TextIOWrapper(io.BufferedReader(unpacking), encoding=encoding, newline="")


def check_unpacked(path: Path, size: int, allowed: int | None = None) -> None:
    """Refuse a compressed file that fills so many bytes: a small file must not fill the memory.

    Allowed are a gigabyte or a hundred times the size of the file, whichever is more, or what the environment variable
    ``LATENTDO_MAX_UNPACKED_GB`` says.
    """
    allowed = _allowed(path) if allowed is None else allowed
    if size > allowed:
        raise ValueError(
            f"{path.name} ({path.stat().st_size} bytes) unpacks to more than {allowed / _GIGABYTE:.3g} GB, as a file "
            f"made to fill the memory would; if it is right, set the environment variable {UNPACKED_VARIABLE} to more."
        )


def _allowed(path: Path) -> int:
    given = os.environ.get(UNPACKED_VARIABLE)
    if given is None:
        return max(_ALWAYS_UNPACKED, _USUAL_RATIO * path.stat().st_size)
    try:
        allowed = float(given) * _GIGABYTE
    except ValueError:
        allowed = -1.0
    if not 0.0 < allowed < float("inf"):
        raise ValueError(
            f"the environment sets {UNPACKED_VARIABLE}={given!r}, which is not a number of gigabytes."
        )
    return int(allowed)


class _Unpacking(io.RawIOBase):
    """What a compressed file holds, counted while it is read."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream = cast("io.BufferedIOBase", stream)
        self._path = path
        self._allowed = _allowed(path)
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        count = self._stream.readinto(buffer)
        self._size += count
        check_unpacked(self._path, self._size, self._allowed)
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()
