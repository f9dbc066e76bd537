"""The command line: thin sub-commands over the public interface.

Exit codes: 0 done, 1 something was wrong with data or arguments (one message, no traceback), 2 wrong usage, 70 a fault
of ours (one message, the traceback in a file), 130 interrupted. Results go to standard output, everything else to
standard error. Heavy imports happen inside the commands, so that ``--help`` is quick; and nothing but the standard
library is imported before :func:`main` has begun, so that Ctrl-C finds somebody who answers. ``commands`` holds one
file per sub-command, ``options`` what they share, and ``sources`` where options come from besides flags.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

# Busy waiting between parallel regions makes small machines many times slower; OpenMP reads this once, when loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

if TYPE_CHECKING:
    from latentdo.cli.application import app

__all__ = ["app", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    if arguments is None:  # this process is ours: its workers import nothing from the current folder either
        os.environ.setdefault("PYTHONSAFEPATH", "1")
    with _leaving_at_once():
        from cyclopts import CycloptsError

        from latentdo.cli.console import complain, console, plain_warnings
        from latentdo.cli.faults import EXIT_FAULT, about_fault, wants_traceback

        app = __getattr__("app")
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
        complain("interrupted; no results were written.")
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


@contextmanager
def _leaving_at_once() -> Iterator[None]:
    """End on Ctrl-C without unwinding: an exception in the middle of an import ends in a traceback from anywhere."""
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_ours or threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(*_: object) -> None:
        os.write(2, b"interrupted; no results were written.\n")
        os._exit(130)

    signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
