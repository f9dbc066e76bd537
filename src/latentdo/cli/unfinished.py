"""What an interrupted command leaves behind, so that ``--resume`` can go on from there.

It lies in a folder beside the results, ``OUT.unfinished``, which a command that comes to its end removes.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from latentdo.cli.console import complain

__all__ = ["Unfinished", "clear_the_way", "place_for", "unfinished"]


class Unfinished:
    """The folder of one command; what is written there stays if the command was interrupted.

    Parameters
    ----------
    folder : Path
        The folder; it exists.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.keep = False

    def file(self, name: str) -> Path:
        """Where to keep something."""
        return self.folder / name


def clear_the_way(out: Path, *, resume: bool, overwrite: bool) -> None:
    """Refuse to pass over what an interrupted run has left: hours of work are not dropped by accident.

    Parameters
    ----------
    out : Path
        Folder of the results.
    resume : bool
        It will be taken up.
    overwrite : bool
        It may be dropped, and is, unless it will be taken up.

    Raises
    ------
    FileExistsError
        If something is there and neither was asked for.
    """
    folder = place_for(out)
    if resume or not _holds_something(folder):
        return
    if not overwrite:
        raise FileExistsError(
            f"{str(folder)!r} holds what an interrupted run has computed; pass --resume to go on from there, or "
            "--overwrite to start anew."
        )
    shutil.rmtree(folder)


@contextmanager
def unfinished(out: Path, *, resume: bool) -> Iterator[Unfinished]:
    """A place for what is not finished; it is removed when the command has come to its end.

    Parameters
    ----------
    out : Path
        Folder of the results.
    resume : bool
        Whether the user expects something to be there; said if there is not.

    Yields
    ------
    Unfinished
        Set ``keep`` on it if results were written although something is still to be done.
    """
    folder = place_for(out)
    if resume and not _holds_something(folder):
        complain(f"nothing to resume: there is no {str(folder)!r}, so this starts from the beginning.")
    folder.mkdir(parents=True, exist_ok=True)
    kept = Unfinished(folder)
    try:
        yield kept
    except BaseException:
        kept.keep = True
        raise
    finally:
        if not kept.keep:
            shutil.rmtree(folder, ignore_errors=True)
        elif _holds_something(folder):
            complain(f"What was computed so far is kept in {folder}; the same command with --resume goes on.")
        else:
            folder.rmdir()


def place_for(out: Path) -> Path:
    """The folder beside the results."""
    return out.with_name(f"{out.name}.unfinished")


def _holds_something(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())
