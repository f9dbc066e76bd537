"""Errors that nobody foresaw: one line that takes the blame, and a traceback for those who will mend it."""

from __future__ import annotations

import os
import tempfile
import traceback
from typing import Final

EXIT_FAULT: Final = 70
"""Exit code of a fault of ours; the EX_SOFTWARE of BSD's sysexits, so that scripts can tell it from bad input."""

SHOW_TRACEBACK: Final = "LATENTDO_TRACEBACK"
"""Variable of the environment that, unless empty or 0, asks for tracebacks on standard error."""


def wants_traceback() -> bool:
    """Whether the user asked to see where errors come from."""
    return os.environ.get(SHOW_TRACEBACK, "0") not in ("", "0")


def about_fault(error: BaseException) -> str:
    """One line about an error that nobody foresaw; the traceback goes to a file that the line names."""
    what = f"{type(error).__name__}: {str(error).strip()}".splitlines()[0].removesuffix(": ")
    return (
        f"error: latentdo failed unexpectedly ({what}). This is a fault of latentdo, not yours: please report it in "
        f"the project's issue tracker, with the command and {_kept(error)}."
    )


def _kept(error: BaseException) -> str:
    """Where the traceback is."""
    if wants_traceback():
        return "the traceback above"
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="latentdo-traceback-", suffix=".txt", delete=False, encoding="utf-8", errors="replace"
        ) as file:
            traceback.print_exception(error, file=file)
    except OSError:  # nowhere to write: the report needs the traceback, so say how to see it
        return f"the traceback, which {SHOW_TRACEBACK}=1 shows (it could not be written to a temporary file)"
    return f"the traceback in {file.name}"
