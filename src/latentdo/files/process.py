"""Which process wrote something, and whether it still runs.

A process number alone says little: numbers are used again, and after a restart of the machine they begin anew. So a
process is its number together with the moment at which it began, on a machine.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_TAG: Final = re.compile(r"([0-9a-f]{8})-(\d+)-([0-9a-f]{8})")
_UNKNOWN: Final = "0" * 8
"""In place of a beginning that this system does not tell."""
_DEAD: Final = ("Z", "X")
"""States of processes that have ended, and whose parents have not asked yet."""


@dataclass(frozen=True)
class Process:
    """One process of one machine.

    Parameters
    ----------
    host : str
        Digest of the machine's name and of the space in which its process numbers hold (containers have their own).
    pid : int
        Number of the process.
    started : str
        Digest of the boot and of the moment at which the process began.

    Examples
    --------
    >>> me = Process.current()
    >>> me.may_run(), Process.parse(me.tag) == me
    (True, True)
    """

    host: str
    pid: int
    started: str

    @classmethod
    def current(cls) -> Process:
        """The process that asks."""
        return _process(os.getpid())

    @classmethod
    def parse(cls, tag: str) -> Process | None:
        """The process that a :attr:`tag` names; None for any other text."""
        found = _TAG.fullmatch(tag)
        return None if found is None else cls(found[1], int(found[2]), found[3])

    @property
    def tag(self) -> str:
        """A short text for names of files."""
        return f"{self.host}-{self.pid}-{self.started}"

    @property
    def is_here(self) -> bool:
        """Whether it belongs to this machine, so that :meth:`may_run` knows."""
        return self.host == _host()

    def may_run(self) -> bool:
        """Whether it runs, as far as can be told from here: processes of other machines always may."""
        if not self.is_here:
            return True
        started = _started(self.pid)
        return started is not None and (started == self.started or _UNKNOWN in (started, self.started))


@cache
def _process(pid: int) -> Process:
    return Process(_host(), pid, _started(pid) or _UNKNOWN)


@cache
def _host() -> str:
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return _digest(f"{platform.node()} {space}")


@cache
def _boot() -> str:
    """Tells one start of the machine from the next; processes count their beginning from it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:  # some sandboxes do not show it, but then a restart gives them another process space
        return ""


def _started(pid: int) -> str | None:
    """When a process began, in a form that only compares; None if there is no such process."""
    if Path("/proc/self/stat").exists():
        try:
            # the name of the program stands in parentheses and may hold anything, parentheses too
            fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return _UNKNOWN if _is_hidden(pid) else None
        if fields[0] in _DEAD:
            return None
        return _digest(f"{_boot()} {fields[19]}")
    if os.name == "posix":
        listed = subprocess.run(
            ["ps", "-p", str(pid), "-o", "stat=", "-o", "lstart="],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.strip()
        state, _, began = listed.partition(" ")
        return None if not listed or state.startswith(_DEAD) else _digest(began.strip())
    return _UNKNOWN


def _is_hidden(pid: int) -> bool:
    """Whether the process is there although ``/proc`` does not show it, because it is another user's."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return (
        False  # ours, and visible by now: it began after we had looked, so it is not the one we asked about
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
