"""Single files: whole or not at all, and nothing left lying about."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from latentdo.files.process import Process

_TEMPORARY: Final = re.compile(
    r"\.(?P<name>.+)\.(?P<tag>[0-9a-f]{8}-\d+-[0-9a-f]{8})-[0-9a-f]{8}\.tmp", re.DOTALL
)
_LONGEST: Final = 200
"""Bytes of a name that its temporary file repeats: names may have 255, of which the tag needs some 45."""
_KINDS: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISREG, "a file"),
    (stat.S_ISFIFO, "a named pipe (FIFO)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a temporary file beside ``path``, then move it there in one step.

    A full disk or a folder that may not be written leaves what was there untouched, and the error names the file. What
    processes that were killed on the way have left is removed.

    Parameters
    ----------
    path : Path
        The file; if it is a link, what it points to.
    write : callable
        Called with the temporary file.
    """
    final = check_target(path)
    sweep(final.parent, [final.name])
    tag = f"{Process.current().tag}-{secrets.token_hex(4)}"
    temporary = final.with_name(f".{_shortened(final.name)}.{tag}.tmp")
    try:
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())  # or a crash of the machine could leave the new name with nothing in it
        os.replace(temporary, final)
    except OSError as error:
        # the system names the temporary file, or none at all
        reason = f"cannot write, nothing was changed: {error.strerror or error}"
        raise OSError(error.errno, reason, str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)


def check_target(path: Path) -> Path:
    """Where a file can be written, links followed; or what stands in its way.

    Raises
    ------
    OSError
        If its folder does not exist, or if something that is not a file has the name already.
    """
    final = Path(os.path.realpath(path))
    if not final.parent.is_dir():
        raise FileNotFoundError(f"The folder {str(path.parent)!r} does not exist; create it first.")
    kind = kind_of(final)
    if kind == "a folder":
        raise IsADirectoryError(f"{str(path)!r} is a folder; give the name of a file.")
    if kind not in (None, "a file"):
        raise FileExistsError(f"{str(path)!r} is {kind}; give the name of a file.")
    return final


def kind_of(path: Path) -> str | None:
    """What lies at a place, in words; None if nothing does."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    return next(
        (words for is_kind, words in _KINDS if is_kind(mode)), "something else than a file or a folder"
    )


def is_leftover(name: str, files: Collection[str] | None = None) -> bool:
    """Whether a name is that of a temporary file, for one of ``files`` or any, whose writer has died."""
    found = _TEMPORARY.fullmatch(name)
    if found is None or (files is not None and found["name"] not in map(_shortened, files)):
        return False
    writer = Process.parse(found["tag"])
    return writer is not None and not writer.may_run()


def sweep(folder: Path, files: Collection[str] | None = None) -> None:
    """Remove from a folder what processes that were killed have left; see :func:`is_leftover`."""
    for name in os.listdir(folder):
        if is_leftover(name, files):
            (folder / name).unlink(missing_ok=True)


def _shortened(name: str) -> str:
    return os.fsdecode(os.fsencode(name)[:_LONGEST])
