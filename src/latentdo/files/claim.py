"""One run owns an output folder, from its first look at the input to its last file.

Everything that a run needs beside the results lies in one folder next to them, ``OUT.unfinished``. A file in it is the
mark that it is ours, and says which process owns it. Its parts are:

============  ==========================================================================================
``states/``   what ``--resume`` goes on from
``earlier/``  states that a run which starts anew has set aside, until it has some of its own
``new/``      results while they are written; complete once ``old/`` exists
``old/``      results that are being replaced, always complete
``rubbish-``  whatever is being removed; a thing gets this name in one step, and only then goes piece by piece
============  ==========================================================================================

So a process may be killed between any two steps: what it leaves is complete, or has the name of rubbish.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from latentdo.files.atomic import kind_of, sweep
from latentdo.files.process import Process

MARK: Final = "latentdo-unfinished.json"
"""The file that says whose folder this is; nothing in a folder without it is ever removed."""

_STATES, _EARLIER, _NEW, _OLD, _RUBBISH = "states", "earlier", "new", "old", "rubbish-"
_MARK_BYTES: Final = 512
"""Length of every mark, filled up with spaces: a new owner writes over the last one in one step."""
_PROBE_BYTES: Final = 2**20
"""Written and removed before long work: finds folders that may not be written, quotas and full disks."""
_LEAST_FREE: Final = 2**25
"""Bytes that must be free; 32 MiB hold the results of a fit of some hundred thousand rows."""
_ATTEMPTS: Final = 100
"""Runs that may come and go while this one tries to get hold of a folder."""


class Claim:
    """What the owner of an output folder may do; see :func:`claimed`.

    Parameters
    ----------
    named : Path
        The output folder as the user wrote it.
    final : Path
        Where it is, links followed.
    """

    def __init__(self, named: Path, final: Path) -> None:
        self.named = named
        self.final = final
        self.folder = final.with_name(f"{final.name}.unfinished")

    @property
    def has_states(self) -> bool:
        """Whether there is something to resume."""
        return _holds_something(self.folder / _STATES)

    def has_states_of(self, beginning: str) -> bool:
        """Whether there is one whose name begins like this."""
        return any((self.folder / _STATES).glob(f"{beginning}*"))

    def state_file(self, name: str) -> Path:
        """Where to keep something that ``--resume`` can go on from."""
        path = state_of(self.final, name)
        path.parent.mkdir(exist_ok=True)
        return path

    def set_states_aside(self) -> None:
        """Begin without states; the earlier ones go when there are new ones, and return if there never are."""
        os.rename(self.folder / _STATES, self.folder / _EARLIER)

    def drop_states(self) -> None:
        """Nothing is left to resume."""
        self.discard(self.folder / _STATES)
        self.discard(self.folder / _EARLIER)

    def probe(self) -> None:
        """Make sure, before long work, that results can be written.

        Raises
        ------
        OSError
            If they cannot: naming the folder, and why.
        """
        free = shutil.disk_usage(self.folder).free
        if free < _LEAST_FREE:
            raise OSError(
                errno.ENOSPC, f"only {free / 2**20:.0f} MB are free, which is too little", str(self.named)
            )
        trial = self.folder / f"{_RUBBISH}{secrets.token_hex(6)}"
        with naming(self.named):
            trial.mkdir()
            try:
                with (trial / "probe").open("wb") as file:
                    file.write(bytes(_PROBE_BYTES))
                    file.flush()
                    os.fsync(file.fileno())
            finally:
                shutil.rmtree(trial, ignore_errors=True)

    @contextmanager
    def fresh_results(self, check: Callable[[], object]) -> Iterator[Path]:
        """Fill a new folder that takes the place of the output folder if the block succeeds.

        Parameters
        ----------
        check : callable
            Raises if what is there may not be replaced; called again just before that.

        Yields
        ------
        Path
            The new folder.
        """
        check()
        fresh, old = self.folder / _NEW, self.folder / _OLD
        fresh.mkdir()
        try:
            yield fresh
            for file in fresh.iterdir():
                with naming(self.named / file.name), file.open("rb") as stream:
                    os.fsync(stream.fileno())
            if self.final.exists():
                check()
                os.rename(self.final, old)
            try:
                os.rename(fresh, self.final)
            except BaseException:
                if old.exists():
                    os.rename(old, self.final)
                raise
        finally:
            self.discard(fresh)
        self.discard(old)

    def discard(self, part: Path) -> None:
        """Remove a part of the working folder, if it is there."""
        if part.exists():
            rubbish = self.folder / f"{_RUBBISH}{secrets.token_hex(6)}"
            os.rename(part, rubbish)
            shutil.rmtree(rubbish, ignore_errors=True)

    def _recover(self) -> None:
        """Finish what a process that was killed has begun."""
        for entry in self.folder.glob(f"{_RUBBISH}*"):
            shutil.rmtree(entry, ignore_errors=True)
        fresh, old = self.folder / _NEW, self.folder / _OLD
        if old.exists() and not self.final.exists():
            os.rename(fresh if fresh.exists() else old, self.final)
        self.discard(old)
        self.discard(fresh)
        if (self.folder / _STATES).exists():
            sweep(self.folder / _STATES)
        self._keep_latest_states()

    def _keep_latest_states(self) -> None:
        states, earlier = self.folder / _STATES, self.folder / _EARLIER
        if earlier.exists():
            if self.has_states:
                self.discard(earlier)
            else:
                self.discard(states)
                os.rename(earlier, states)

    def _release(self) -> None:
        """Go, leaving only what can be resumed."""
        self._keep_latest_states()
        if not self.has_states:
            self.discard(self.folder / _STATES)
        mark = self.folder / MARK
        if set(os.listdir(self.folder)) == {MARK}:
            mark.unlink()
            with suppress(OSError):  # another run has found it in the meantime, and stays
                self.folder.rmdir()
        else:
            _write_mark(mark, None)


_held: dict[Path, tuple[int, int, Claim]] = {}
"""Claims of this process, with process and thread; a fork inherits the table, but not the claims."""


@contextmanager
def claimed(directory: str | Path) -> Iterator[Claim]:
    """Own an output folder for a while: no other run, thread or process gets it.

    Within the block the same thread may claim it again. What a killed run has left is put in order first.

    Parameters
    ----------
    directory : str or Path
        The output folder; it need not exist. Folders above it are created, and removed again if nothing comes of it.

    Yields
    ------
    Claim
        What the owner may do.

    Raises
    ------
    OSError
        If somebody else owns it, or if nobody could.
    """
    named = Path(directory)
    final = _located(named)
    me = (os.getpid(), threading.get_ident())
    if final in _held and _held[final][:2] == me:
        yield _held[final][2]
        return
    with naming(named):
        made = _make_folders(final.parent)
    claim = Claim(named, final)
    try:
        _take(claim)
        _held[final] = (*me, claim)
        try:
            claim._recover()
            yield claim
        finally:
            del _held[final]
            if os.getpid() == me[0]:  # not in a fork that unwinds
                claim._release()
    finally:
        for folder in made:
            if not _holds_something(folder):
                folder.rmdir()


def state_of(out: Path, name: str) -> Path:
    """Where the owner of an output folder keeps a state: for its helpers, which own nothing."""
    final = Path(os.path.realpath(out))
    return Claim(out, final).folder / _STATES / name


def _located(named: Path) -> Path:
    """Where an output folder is, links followed; or why it cannot be one."""
    shown = repr(str(named))
    try:
        final = Path(os.path.realpath(named))
        kind = kind_of(final)
    except OSError as error:
        raise OSError(error.errno, f"cannot be an output folder: {error.strerror}", str(named)) from error
    here = Path.cwd()
    if final == here or final in here.parents:
        which = "the current folder" if final == here else "a folder that the current one lies in"
        raise FileExistsError(
            f"{shown} is {which}; results get a folder of their own: name a new one, such as "
            f"{str(named / 'results')!r}."
        )
    if kind not in (None, "a folder"):
        raise FileExistsError(f"{shown} is {kind}, not a folder; choose another name.")
    if os.path.ismount(final):
        raise FileExistsError(
            f"{shown} is where a disk is mounted, so it cannot be replaced; name a folder in it, such as "
            f"{str(named / 'results')!r}."
        )
    for above in final.parents:
        if kind_of(above) not in (None, "a folder"):
            raise NotADirectoryError(
                f"{shown} cannot be created: {str(above)!r} is {kind_of(above)}, not a folder."
            )
    return final


def _make_folders(folder: Path) -> list[Path]:
    """Create a folder and those above it; which ones were missing, the lowest first."""
    missing = [above for above in (folder, *folder.parents) if not above.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def _take(claim: Claim) -> None:
    """Become the owner of the working folder, or say who is."""
    mark = claim.folder / MARK
    if claim.folder.is_symlink() or kind_of(claim.folder) not in (None, "a folder"):
        raise _foreign(claim)
    for _ in range(_ATTEMPTS):
        with naming(claim.named):
            claim.folder.mkdir(exist_ok=True)
        try:
            if mark.name not in (inside := os.listdir(claim.folder)) and inside:
                raise _foreign(claim)
            with naming(claim.named):
                handle = os.open(mark, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # the last owner has just gone, and the folder with it
            continue
        try:
            with _alone(handle):
                if not _is_same(handle, mark):
                    continue
                owner = _read_mark(os.read(handle, _MARK_BYTES), claim)
                if owner is not None:
                    _refuse_if_owned(owner, claim)
                _write_mark(mark, Process.current())
                return
        finally:
            os.close(handle)
    raise FileExistsError(f"{str(claim.folder)!r} keeps changing; is something else writing to it?")


def _refuse_if_owned(owner: dict[str, Any], claim: Claim) -> None:
    process = Process.parse(str(owner.get("process")))
    if process is None or not process.may_run():
        return
    if process == Process.current() and claim.final not in _held:
        return  # an earlier claim of this process, which could not be given back
    shown = repr(str(claim.named))
    if process.is_here:
        raise FileExistsError(
            f"{shown} is being written by another run of latentdo, process {process.pid} (since {owner.get('since')}); "
            "wait until it has ended, or choose another folder."
        )
    raise FileExistsError(
        f"{shown} is being written by another run of latentdo, process {process.pid} on {owner.get('host')} (since "
        f"{owner.get('since')}); wait until it has ended, or choose another folder. If it no longer runs, delete "
        f"{str(claim.folder / MARK)!r}."
    )


def _foreign(claim: Claim) -> FileExistsError:
    return FileExistsError(
        f"{str(claim.folder)!r} is needed for work in progress, but holds what latentdo did not write there (it has no "
        f"{MARK} of latentdo); move it away, or choose another output folder than {str(claim.named)!r}."
    )


def _write_mark(mark: Path, owner: Process | None) -> None:
    content: dict[str, Any] = {"program": "latentdo", "format": 1}
    if owner is not None:
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        content |= {"process": owner.tag, "pid": owner.pid, "host": platform.node()[:99], "since": since}
    handle = os.open(mark, os.O_WRONLY)
    try:
        os.write(handle, json.dumps(content).ljust(_MARK_BYTES).encode())
    finally:
        os.close(handle)


def _read_mark(content: bytes, claim: Claim) -> dict[str, Any] | None:
    """What a mark says of its owner; None if it was never written, because its process was killed on the way."""
    if not content:
        return None
    try:
        found = json.loads(content)
    except ValueError:
        raise _foreign(claim) from None
    if not isinstance(found, dict) or found.get("program") != "latentdo":
        raise _foreign(claim)
    return found


@contextmanager
def _alone(handle: int) -> Iterator[None]:
    """Let nobody else look at a mark between our look and our word; a moment, not the life of a run."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with suppress(
        OSError
    ):  # some network file systems have no locks; without, two runs must start in one millisecond
        fcntl.flock(handle, fcntl.LOCK_EX)
    yield  # closing the file unlocks it


def _is_same(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _holds_something(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let errors of the system name what the user knows, not our temporary files."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"cannot be written: {error.strerror or error}", str(path)) from error
