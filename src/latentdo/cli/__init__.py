"""The command line: thin sub-commands over the public interface.

Exit codes: 0 done, 1 something was wrong with data or arguments (one message, no traceback), 2 wrong usage, 70 a fault
of ours (one message, the traceback in a file), 130 interrupted. Results go to standard output, everything else to
standard error. Heavy imports happen inside the commands, so that ``--help`` is quick; and nothing but the standard
library is imported before :func:`main` has begun, so that Ctrl-C finds somebody who answers. ``commands`` holds one
file per sub-command, ``options`` what they share, and ``sources`` where options come from besides flags.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

# Busy waiting between parallel regions makes small machines many times slower; OpenMP reads this once, when loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

if TYPE_CHECKING:
    from latentdo.cli.application import app

__all__ = ["app", "main"]

_INTERRUPTED: Final = "interrupted; no results were written."
_SECONDS_TO_LOOK_AGAIN: Final = 0.05
"""Until it is seen whether an import has come to its end; too short for anybody to notice."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    if arguments is None:  # this process is ours: its workers import nothing from the current folder either
        os.environ.setdefault("PYTHONSAFEPATH", "1")
    with _interrupts() as interrupts:
        from cyclopts import CycloptsError

        from latentdo.cli.console import complain, console, plain_warnings
        from latentdo.cli.faults import EXIT_FAULT, about_fault, wants_traceback

        app = __getattr__("app")
        interrupts.loading = False
        try:
            with plain_warnings():
                code = app(
                    sys.argv[1:] if arguments is None else list(arguments),
                    console=console(),
                    error_console=console(stderr=True),
                    exit_on_error=False,
                )
        except CycloptsError:
            return 2  # cyclopts has printed what was wrong
        except KeyboardInterrupt:
            complain(_INTERRUPTED)
            return 130
        except BrokenPipeError:  # `latentdo ... | head`: nobody listens any more
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except Exception as error:
            if wants_traceback():
                traceback.print_exc()
            if isinstance(error, (ValueError, OSError, ImportError, MemoryError)):
                complain(f"error: {error}" if str(error) else f"error: {type(error).__name__}")
                return 1
            complain(about_fault(error))
            return EXIT_FAULT
        return code if isinstance(code, int) else 0


def __getattr__(name: str) -> Any:
    """Import the program with all its sub-commands on first use."""
    if name != "app":
        raise AttributeError(f"module 'latentdo.cli' has no attribute {name!r}")
    import latentdo.cli.commands  # noqa: F401  (registers the sub-commands)
    from latentdo.cli.application import app

    return app


class _Interrupts:
    """What Ctrl-C does: no exception in the middle of an import, where it may be lost or become another error."""

    def __init__(self) -> None:
        self.loading = True
        self._reminder: threading.Timer | None = None
        self._reminded = False

    def answer(self, _: int, frame: FrameType | None) -> None:
        """End at once while there is only the program; later wait until an import is done, unless asked twice."""
        if self.loading:
            os.write(2, f"{_INTERRUPTED}\n".encode())
            os._exit(130)
        asked_twice = self._reminder is not None and not self._reminded
        self.forget()
        if asked_twice or not _is_importing(frame):
            raise KeyboardInterrupt
        self._reminder = threading.Timer(_SECONDS_TO_LOOK_AGAIN, self._remind)
        self._reminder.daemon = True
        self._reminder.start()

    def forget(self) -> None:
        """Nothing is left to answer."""
        if self._reminder is not None:
            self._reminder.cancel()
        self._reminder, self._reminded = None, False

    def _remind(self) -> None:
        self._reminded = True
        main = threading.main_thread().ident
        if hasattr(signal, "pthread_kill") and main is not None:
            signal.pthread_kill(
                main, signal.SIGINT
            )  # a true signal, which also wakes a thread that sleeps or reads
        else:
            _thread.interrupt_main()


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


@contextmanager
def _interrupts() -> Iterator[_Interrupts]:
    """Answer Ctrl-C, unless somebody else does already."""
    found = _Interrupts()
    is_free = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_free or threading.current_thread() is not threading.main_thread():
        yield found
        return
    signal.signal(signal.SIGINT, found.answer)
    try:
        yield found
    finally:
        found.forget()
        signal.signal(signal.SIGINT, signal.default_int_handler)
